"""Styles of statements, derived from stored tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.datasets.taskset import TaskSet
from excise.deleters.statement.specification import project_of
from excise.deleters.statement.styles import in_style
from excise.types import StatementStyle

from ..conftest import SETS

TASKS = {f"{task.deleter} {task.removed[0]}": task for task in TaskSet.open(SETS / "shapes").tasks()}


@pytest.mark.parametrize("name", TASKS)
def test_terse_statements_have_every_name_and_little_else(name: str) -> None:
    task = TASKS[name]
    text = in_style(task, StatementStyle.TERSE)
    for symbol in task.removed:
        path, _, qualname = symbol.partition("::")
        assert f"`{qualname or path}`" in text
    assert len(text) < 300
    assert text.count(". ") <= 2


@pytest.mark.parametrize("name", TASKS)
def test_ambiguous_statements_name_at_most_half(name: str) -> None:
    task = TASKS[name]
    text = in_style(task, StatementStyle.AMBIGUOUS)
    names = [symbol.partition("::")[2] for symbol in task.removed if "::" in symbol]
    named = [each for each in names if f"`{each}`" in text]
    assert len(named) <= len(names) / 2
    assert all(f"`{symbol.partition('::')[0]}`" in text for symbol in task.removed)
    assert task.fail_to_pass[0].partition("::")[0] in text
    unnamed = {each.rpartition(".")[2] for each in names} - {each.rpartition(".")[2] for each in named}
    assert not [word for word in unnamed if word in text.replace(".py", "").split()]


def test_the_words_are_those_of_a_user() -> None:
    task = TASKS["remove src/shapes/squares.py::Rectangle.fits_into"]
    assert in_style(task, StatementStyle.TERSE) == (
        "Please bring back `Rectangle.fits_into`, `Square.grow` and `diagonal` in `src/shapes/squares.py`. "
        "shapes 1.2.0 used to have it.\n"
    )
    assert in_style(task, StatementStyle.AMBIGUOUS).startswith(
        "In shapes 1.2.0, `Rectangle.fits_into` and 2 more in `src/shapes/squares.py` are gone. It was about this: “"
    )
    many = replace(task, removed=tuple(f"a.py::f{n}#2" for n in range(20)))
    assert "`f7` and 12 more in `a.py`" in in_style(many, StatementStyle.TERSE)


def test_the_issue_about_a_setter_does_not_say_that_its_property_is_gone() -> None:
    text = (
        "# Bring back the setter of `Box.f`\n\n## What is missing\n\n### `box.py`\n\n```python\n@f.setter\n"
        "def f(self, value)\n```\n(in `Box`)\n> Keep half of it.\n\n## How it is checked\n\nBy tests.\n"
    )
    task = replace(next(iter(TASKS.values())), removed=("box.py::Box.f#2",), deleter="remove", problem_statement=text)
    issue = in_style(task, StatementStyle.ISSUE)
    assert issue.startswith("# `Box.f` (setter): missing in shapes 1.2.0\n")
    assert "AttributeError" not in issue
    assert "- `Box.f`: Keep half of it." in issue


def test_the_specification_is_the_stored_statement() -> None:
    for task in TASKS.values():
        assert in_style(task, StatementStyle.SPECIFICATION) == task.problem_statement


def test_no_line_of_the_deleted_code_is_told() -> None:
    for task in TASKS.values():
        code = {line[1:].strip() for line in task.patch.splitlines() if line.startswith("+") and len(line) > 20}
        for style in (StatementStyle.TERSE, StatementStyle.AMBIGUOUS):
            assert not [line for line in code if line in in_style(task, style) and line not in task.problem_statement]


@pytest.mark.parametrize("name", TASKS)
def test_all_styles_call_a_project_as_its_specification_does(name: str) -> None:
    task = TASKS[name]
    assert project_of(task) == project_of(replace(task, problem_statement="")) == "shapes 1.2.0"
    called = replace(
        task, repo="repo", problem_statement=task.problem_statement.replace("shapes 1.2.0", "me/forms 1.2.0")
    )
    assert project_of(called) == "forms 1.2.0"
    styles = (StatementStyle.TERSE, StatementStyle.AMBIGUOUS, StatementStyle.ISSUE)
    assert all("forms 1.2.0" in in_style(called, style) for style in styles)
