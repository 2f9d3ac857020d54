"""The style ``issue``: what a user of the project sees going wrong, and what should happen instead."""

from __future__ import annotations

from collections.abc import Iterator

from excise.deleters.code_editors import editor_of
from excise.deleters.deletion_record import KEPT_DEFINITIONS, PARTLY_KEPT
from excise.deleters.statement.completeness import completed
from excise.deleters.statement.specification import Entry, Specification, project_of, specification_of
from excise.protocols import StatementWords
from excise.types import Task, name_in_file, path_of

MAX_SHOWN = 5
"""Definitions whose failure is shown."""
MAX_EXPECTED = 12
"""Definitions of which the expected behaviour is told."""
MAX_EXAMPLES = 8
"""Calls that are shown."""
MAX_CALLERS = 3
"""Definitions that fail too, since they call what is missing."""


def issue(task: Task) -> tuple[str, tuple[str, ...]]:
    """The issue about a task, with what hidden tests need besides in a last section, and the labels of these items."""
    parts = specification_of(task)
    sections = [_title(task, parts), _happens(task, parts), _expected(task, parts), _checked(task)]
    return completed(task, "\n\n".join(section for section in sections if section) + "\n")


def _whole_files(parts: Specification) -> list[str]:
    return [entry.path for entry in parts.entries if not entry.head]


def _title(task: Task, parts: Specification) -> str:
    files, words = _whole_files(parts), editor_of(task.language).words
    shown = [f"`{words.module_of(path)}`" for path in files] or [
        f"`{entry.name}`{entry.accessor}" for entry in _outer(parts)
    ]
    names = ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
    if not names:
        names = f"Something in `{path_of(task.removed[0])}`" if task.removed else "Something"
    lack = "not implemented" if task.deleter in KEPT_DEFINITIONS else "missing"
    if task.deleter in PARTLY_KEPT:
        lack = "incomplete"
    return f"# {names}: {lack} in {project_of(task)}"


def _outer(parts: Specification) -> list[Entry]:
    """The public entries that are not in a class which is an entry itself."""
    names = {entry.name for entry in parts.public}
    return [entry for entry in parts.public if entry.owner not in names]


def _happens(task: Task, parts: Specification) -> str:
    """Calls that fail now, and how."""
    words = editor_of(task.language).words
    lines = ["## What happens", "", "With this checkout:", "", f"```{words.fence}"]
    shown = 0
    for path in _whole_files(parts)[:MAX_SHOWN]:
        if task.deleter not in KEPT_DEFINITIONS | PARTLY_KEPT:
            lines += words.missing_file(path)
            shown += 1
    if not shown:
        for entry in [entry for entry in _outer(parts) if not entry.accessor][:MAX_SHOWN]:
            lines += words.failure(entry.path, entry.name, task.deleter)
            shown += 1
    if not shown:
        lines = ["## What happens", "", f"{project_of(task)} no longer does what is described here."]
        return "\n".join(lines)
    lines.append("```")
    more = len(_outer(parts)) - MAX_SHOWN
    if more > 0 and not _whole_files(parts):
        lines += ["", f"The same goes for {more} more names."]
    callers = [f"{path_of(caller)}: {name_in_file(caller)}" for caller in parts.callers[:MAX_CALLERS]]
    if callers:
        lines += ["", f"What relies on it fails as well: {', '.join(f'`{caller}`' for caller in callers)}."]
    return "\n".join(lines)


def _expected(task: Task, parts: Specification) -> str:
    words = editor_of(task.language).words
    lines = list(_expectations(parts, words))
    examples = parts.examples[:MAX_EXAMPLES]
    if examples:
        lines += [*([""] if lines else []), "Before, these calls gave:", "", f"```{words.fence}", *examples, "```"]
    if parts.excerpts:
        lines += [*([""] if lines else []), "This used to pass:", "", f"```{words.fence}", *parts.excerpts, "```"]
    if not lines:
        return "## What should happen\n\nIt should work as its name, its callers and the rest of the project tell."
    return "\n".join(["## What should happen", "", *lines]).rstrip()


def _expectations(parts: Specification, words: StatementWords) -> Iterator[str]:
    for entry in [entry for entry in parts.entries if not entry.head]:
        if entry.first_paragraph:
            yield f"- `{words.module_of(entry.path)}`: {entry.first_paragraph}"
    told = [entry for entry in parts.public if entry.first_paragraph]
    for entry in told[:MAX_EXPECTED]:
        yield f"- `{entry.name}`: {entry.first_paragraph}"


def _checked(task: Task) -> str:
    files = sorted({path_of(test) for test in task.fail_to_pass})
    listed = ", ".join(f"`{file}`" for file in files[:MAX_SHOWN]) + (" and others" if len(files) > MAX_SHOWN else "")
    return f"The tests in {listed} noticed it. All others pass, and should go on passing."
