"""Styles of problem statements, derived from a stored task.

A task is published with the detailed specification. The other styles are made from it, in the words of a user: an issue
has everything that hidden tests need, since the completeness judge adds what it lacks; a terse request and an ambiguous
complaint lack some of it on purpose. What they say comes from the task's own fields and statement, so nothing of the
deleted code is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from excise.deleters.deletion_record import KEPT_DEFINITIONS, PARTLY_KEPT
from excise.deleters.statement.completeness import missing_items
from excise.deleters.statement.issue import issue
from excise.deleters.statement.specification import project_of
from excise.deleters.statement.spelling import unnumbered
from excise.types import DETERMINISTIC, IMPORTED, StatementStyle, Task, TaskStatement, name_in_file, path_of

MAX_NAMES = 8
"""Maximum number of names in one sentence."""
MAX_SUMMARY = 200
"""Maximum number of characters of the summary of an unnamed feature."""


def in_style(task: Task, style: StatementStyle) -> str:
    """The text of a task's deterministic statement in a style."""
    return deterministic(task, style).text


def deterministic(task: Task, style: StatementStyle) -> TaskStatement:
    """The statement of a task in a style, derived from its stored specification without a model; that of an imported
    task is its authors' in every style."""
    added: tuple[str, ...] = ()
    if task.deleter == IMPORTED:
        text = task.problem_statement
    elif style is StatementStyle.TERSE:
        text = _terse(task)
    elif style is StatementStyle.AMBIGUOUS:
        text = _ambiguous(task)
    elif style is StatementStyle.ISSUE:
        text, added = issue(task)
    else:
        text = task.problem_statement
    return judged(task, style, DETERMINISTIC, text, added)


def judged(task: Task, style: StatementStyle, author: str, text: str, added: tuple[str, ...] = ()) -> TaskStatement:
    """The record of a text, with the verdict of the completeness judge; nothing is added to the text."""
    missing = tuple(item.label for item in missing_items(task, text))
    complete = style is StatementStyle.SPECIFICATION and author == DETERMINISTIC  # a gate has checked it
    return TaskStatement(
        instance_id=task.instance_id,
        style=style,
        author=author,
        text=text,
        complete=complete or not missing,
        added=added,
        missing=() if complete else missing,
    )


def _terse(task: Task) -> str:
    """Every removed name by file, as a request."""
    wanted = "; ".join(
        f"{_listed(names)} in `{path}`" if names else f"the whole file `{path}`"
        for path, names in _by_path(task).items()
    )
    if task.deleter in KEPT_DEFINITIONS:
        return f"Please implement {wanted}. {project_of(task)} has only stand-ins there.\n"
    if task.deleter in PARTLY_KEPT:
        return f"Please bring back what is gone of {wanted}. {project_of(task)} used to do more there.\n"
    return f"Please bring back {wanted}. {project_of(task)} used to have it.\n"


def _ambiguous(task: Task) -> str:
    """The files, the first half of the names, and the first sentence of the documentation."""
    by_path = _by_path(task)
    names = [name for found in by_path.values() for name in found]
    named = names[: len(names) // 2]
    rest = len(names) - len(named)
    files = _listed(list(by_path))
    is_left = task.deleter in KEPT_DEFINITIONS | PARTLY_KEPT
    if named:
        lack = "do not work" if is_left else "are gone"
        text = f"In {project_of(task)}, {', '.join(f'`{name}`' for name in named)} and {rest} more in {files} {lack}."
    else:
        lack = "does not work" if is_left else "is gone"
        text = f"In {project_of(task)}, something in {files} {lack}."
    summary = _summary(task.problem_statement, names)
    if summary:
        text += f" It was about this: “{summary}”"
    tests = sorted({path_of(test) for test in task.fail_to_pass})
    return f"{text} Make it work again; its tests were in {_listed(tests)}.\n"


def _by_path(task: Task) -> dict[str, list[str]]:
    """Path to the names that are missing there; an empty list for a file that is missing as a whole."""
    found: dict[str, list[str]] = {}
    for symbol in task.removed:
        path, name = path_of(symbol), name_in_file(symbol)
        names = found.setdefault(path, [])
        plain = unnumbered(name)
        if plain and plain not in names:
            names.append(plain)
    return found


def _listed(words: Sequence[str]) -> str:
    shown = [f"`{word}`" for word in words[:MAX_NAMES]]
    if len(words) > MAX_NAMES:
        shown.append(f"{len(words) - MAX_NAMES} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _summary(statement: str, names: Iterable[str]) -> str:
    """The first sentence of the first quoted docstring, with `…` for the names; empty if there is none."""
    quoted = re.search(r"(?m)^> (\S.*(?:\n> \S.*)*)", statement)
    if quoted is None:
        return ""
    text = " ".join(line.removeprefix("> ") for line in quoted[1].split("\n"))
    sentence = re.split(r"(?<=[.!?])\s", text)[0][:MAX_SUMMARY].strip()
    for name in names:
        sentence = re.sub(rf"\b{re.escape(name.rpartition('.')[2])}\b(?:\(\))?", "…", sentence)
    return sentence
