"""The completeness judge, and the issues that it completes: on stored tasks, and on specifications of every form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.datasets.taskset import TaskSet
from excise.deleters.python.statement_words import PythonWords
from excise.deleters.statement.completeness import completed, inventory, missing_items, told_code
from excise.deleters.statement.specification import specification_of
from excise.deleters.statement.styles import deterministic, in_style
from excise.types import StatementStyle, Task

from ..conftest import SETS

TASKS = {f"{task.deleter} {task.removed[0]}": task for task in TaskSet.open(SETS / "shapes").tasks()}
PARSE = TASKS["remove src/shapes/text.py::parse"]
SPECIFICATION = """# Bring back `Relation`, `Engine.start`

## What is missing

### `src/app/core.py`

> Words about nothing.

```python
@dataclass
class Relation
```
> A relation of two things.
>
> ## No heading
> It has an end.

- Attributes: `total`, `part`.
- Raises `BrokenError`; the message contains `'no end in …'`.

```python
def start(self, speed: int = 3) -> tuple[int, int]
```
(in `Engine`)

- Returns 2 values.
- Keys that it reads or makes in dictionaries, as far as tests name them: `'gear'`.

## Where it is used

- `src/app/run.py::main`: `Engine().start(2)`

## Examples

Calls, and what the original code gave:

```python
Relation(1, 2).total  # 3
```

## Also importable from

- `src/app/__init__.py` offered `Relation` as well.

## How it is checked

2 tests that are not in this checkout (from `tests/test_core.py`) must pass.
"""
NEEDS = {
    "attribute total": "details", "exception BrokenError": "details", "message no end in": "details",
    "result start 2": "details", "key gear": "details", "text hidden": "tree", "attribute parent": "convention",
}  # fmt: skip


@pytest.fixture
def task() -> Task:
    patch = (
        "diff --git a/src/app/core.py b/src/app/core.py\n--- a/src/app/core.py\n+++ b/src/app/core.py\n@@ -1 +1,6 @@\n"
        "+    def start(self, speed: int = 3) -> tuple[int, int]:\n+        return self.gear * speed, sum(self.parts)\n"
        "+        return None\n"
    )
    return replace(PARSE, problem_statement=SPECIFICATION, needs=NEEDS, interface="", patch=patch)


def test_a_specification_is_taken_apart(task: Task) -> None:
    parts = specification_of(task)
    relation, start = parts.entries
    assert (relation.name, relation.path, relation.signature) == ("Relation", "src/app/core.py", "class Relation")
    assert relation.words[2:] == ["## No heading", "It has an end."]
    assert relation.first_paragraph == "A relation of two things."
    assert (start.name, start.owner, start.details[0]) == ("Engine.start", "Engine", "Returns 2 values.")
    assert parts.examples == ["Relation(1, 2).total  # 3"]
    assert parts.callers == ["src/app/run.py::main"]
    assert parts.offered == ["`src/app/__init__.py` offered `Relation` as well."]


@pytest.mark.parametrize(
    ("path", "module"), [("src/a/b.py", "a.b"), ("a/__init__.py", "a"), ("lib/a.py", "a"), ("a.py", "a")]
)
def test_modules_of_paths(path: str, module: str) -> None:
    assert PythonWords().module_of(path) == module


def test_the_inventory_is_what_only_the_specification_gives(task: Task) -> None:
    labels = [item.label for item in inventory(task)]
    assert labels == [
        "signature class Relation", "file src/app/core.py",
        "signature def start(self, speed: int = 3) -> tuple[int, int]", "file src/app/core.py",
        "import src/app/__init__.py: Relation",
        "attribute total", "exception BrokenError", "message no end in", "result start 2", "key gear",
    ]  # fmt: skip
    assert missing_items(task, SPECIFICATION) == []


def test_the_judge_adds_what_is_missing_and_nothing_else(task: Task) -> None:
    text = "# A title\n\n`app.core` lacks `Relation` with its `.total`. It raises `BrokenError`."
    whole, added = completed(task, text)
    assert whole.startswith(f"{text}\n\n## Details\n\n- ")
    assert added == (
        "signature def start(self, speed: int = 3) -> tuple[int, int]", "import src/app/__init__.py: Relation",
        "message no end in", "result start 2", "key gear",
    )  # fmt: skip
    lines = whole.partition("## Details\n\n")[2].splitlines()
    assert lines == [
        "- `def start(self, speed: int = 3) -> tuple[int, int]` of `Engine` in `src/app/core.py`.",
        "- `src/app/__init__.py` offered `Relation` as well.",
        "- `Relation`: Raises `BrokenError`; the message contains `'no end in …'`.",
        "- `Engine.start`: Returns 2 values.",
        "- `Engine.start`: Keys that it reads or makes in dictionaries, as far as tests name them: `'gear'`.",
    ]
    assert missing_items(task, whole) == []
    assert completed(task, whole) == (whole, ())


def test_a_word_of_prose_is_no_detail(task: Task) -> None:
    text = completed(task, SPECIFICATION.replace("`total`, ", "").replace(".total", "").replace("`'gear'`", "gear"))[1]
    assert set(text) >= {"attribute total", "key gear"}


def test_stubs_keep_their_signatures_in_the_tree(task: Task) -> None:
    text = "`Relation` and `Engine.start` of `src/app/core.py`"
    stub = replace(task, deleter="stub", needs={})
    assert [item.label for item in missing_items(stub, text)] == ["import src/app/__init__.py: Relation"]


def test_a_statement_of_another_origin_has_the_items_of_its_interface(task: Task) -> None:
    other = replace(task, problem_statement="Do it.", interface="a/b.py: def f(x)\na/c.py: a/c.py", needs={"what": "x"})
    assert [item.label for item in inventory(other)] == ["signature def f(x)", "file a/b.py", "file a/c.py"]
    assert completed(other, "f(x) in a.b, and a/c.py")[1] == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Return `self.gear * speed, sum(self.parts)` at once.", True),
        ("```\n    return   self.gear * speed, sum(self.parts)\n```", True),
        ("> return self.gear * speed, sum(self.parts)", True),
        ("It returns the gear times the speed, and the sum of the parts.", False),
        ("def start(self, speed: int = 3) -> tuple[int, int]: it returns None", False),
    ],
)
def test_code_of_the_body_is_found_however_it_is_quoted(task: Task, text: str, told: bool) -> None:
    assert bool(told_code(task, text)) == told


def test_what_the_specification_shows_may_be_said(task: Task) -> None:
    shown = replace(task, problem_statement=SPECIFICATION + "\n`self.gear * speed, sum(self.parts)`\n")
    assert told_code(shown, "return self.gear * speed, sum(self.parts)") == []


@pytest.mark.parametrize("name", TASKS)
def test_issues_and_specifications_are_complete_and_the_others_say_what_they_lack(name: str) -> None:
    task = TASKS[name]
    found = {style: deterministic(task, style) for style in StatementStyle}
    assert found[StatementStyle.SPECIFICATION].complete
    assert found[StatementStyle.ISSUE].complete
    assert not found[StatementStyle.AMBIGUOUS].complete
    assert found[StatementStyle.AMBIGUOUS].missing
    for statement in found.values():
        assert statement.author == "deterministic"
        assert statement.complete == (not statement.missing)
        assert not told_code(task, statement.text)
        assert in_style(task, statement.style) == statement.text


def test_an_issue_tells_what_a_user_sees(task: Task) -> None:
    text = in_style(task, StatementStyle.ISSUE)
    assert text.startswith("# `Relation`, `Engine.start`: missing in shapes 1.2.0\n")
    assert ">>> from app.core import Relation\nImportError: cannot import name 'Relation' from 'app.core'" in text
    assert ">>> Engine.start\nAttributeError: type object 'Engine' has no attribute 'start'" in text
    assert "What relies on it fails as well: `src/app/run.py: main`." in text
    assert "- `Relation`: A relation of two things.\n" in text
    assert "Relation(1, 2).total  # 3" in text
    assert "The tests in `tests/test_text.py` noticed it." in text
    private = replace(task, problem_statement=SPECIFICATION.replace("def start", "def _start"))
    before_details = in_style(private, StatementStyle.ISSUE).partition("## Details")[0]
    assert "_start" not in before_details
    stub = in_style(replace(task, deleter="stub"), StatementStyle.ISSUE)
    assert ">>> Engine.start(...)\nNotImplementedError" in stub
    whole = in_style(TASKS["remove src/shapes/walk.py"], StatementStyle.ISSUE)
    assert ">>> import shapes.walk\nModuleNotFoundError: No module named 'shapes.walk'" in whole
