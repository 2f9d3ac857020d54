"""A stored specification, taken apart again: what it says of each definition, its examples, its other sections.

Statements of other styles are made from these parts, so that a set of any age can be asked in every style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from excise.deleters.code_editors import editor_of
from excise.types import Task

MISSING, USED, EXAMPLES, OFFERED = "What is missing", "Where it is used", "Examples", "Also importable from"
TESTED = "From the tests"
"""Titles of sections, as :mod:`excise.deleters.statement.problem_statement` writes them."""
_BARE = re.compile(
    r"^(?:async )?(?:function|method|class method|static method|(?:(?:sett|delet)er of )?property|class) `([\w.]+)`"
)
_PROJECT = re.compile(
    r"(?m)^(?:In this checkout of )?(\S+)(?: \S+)? (?:used to offer what|one `return` of|the code below) "
)
"""How the paragraph below the title calls the project."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """What a specification says of one definition."""

    path: str
    """File of the definition."""
    head: str
    """Its signature with decorators, or a sentence that names it; empty for a whole file."""
    owner: str = ""
    """The class that it is in."""
    words: list[str] = field(default_factory=list)
    """Lines of its documentation."""
    details: list[str] = field(default_factory=list)
    """Lines of details, without list marks."""
    heads: str = ""
    """A regular expression for the beginning of a definition, see :attr:`excise.protocols.StatementWords.heads`."""

    @property
    def name(self) -> str:
        """Its name with those of the classes around it; empty for a whole file or an assignment."""
        found = _BARE.search(self.head)
        if found:
            return found[1]
        found = re.search(rf"(?m)^{self.heads}", self.head) if self.heads else None
        if found is None:
            return ""
        return f"{self.owner}.{found[1]}" if self.owner else found[1]

    @property
    def accessor(self) -> str:
        """`` (setter)`` or `` (deleter)`` for these parts of a property that may still be there; empty for others."""
        found = re.search(r"(?m)^@.*\.(setter|deleter)$|^(setter|deleter) of property", self.head)
        return f" ({found[1] or found[2]})" if found else ""

    @property
    def signature(self) -> str:
        """Its head without decorators and what else stands above the signature."""
        found = re.search(rf"(?m)^{self.heads}", self.head) if self.heads else None
        return self.head[found.start() :] if found is not None else self.head.rpartition("\n")[2]

    @property
    def is_public(self) -> bool:
        """Whether no part of its name is private."""
        parts = self.name.split(".")
        return all(not part.startswith("_") or (part.startswith("__") and part.endswith("__")) for part in parts)

    @property
    def first_paragraph(self) -> str:
        """The first paragraph of its documentation, on one line."""
        text = "\n".join(self.words).strip()
        return " ".join(text.split("\n\n")[0].split())


@dataclass(slots=True, kw_only=True)
class Specification:
    """The parts of a specification."""

    entries: list[Entry] = field(default_factory=list)
    """What it says of definitions, in order."""
    examples: list[str] = field(default_factory=list)
    """Lines of code with results."""
    excerpts: list[str] = field(default_factory=list)
    """Lines of code of tests."""
    callers: list[str] = field(default_factory=list)
    """Ids of definitions that stayed and call the removed code."""
    offered: list[str] = field(default_factory=list)
    """Sentences about other files that offered the names."""

    @property
    def public(self) -> list[Entry]:
        """The named entries that users see; all named ones if they see none."""
        named = [entry for entry in self.entries if entry.name]
        return [entry for entry in named if entry.is_public] or named


def specification_of(task: Task) -> Specification:
    """Take the stored statement of a task apart. Of a statement that was not written by excise, nothing is found."""
    found = Specification()
    for title, lines in _sections(task.problem_statement):
        if title == MISSING:
            found.entries = list(_entries(lines, editor_of(task.language).words.heads))
        elif title == EXAMPLES:
            found.examples = _code(lines)
        elif title == TESTED:
            found.excerpts = _code(lines)
        elif title == USED:
            places = (re.match(r"- `([^`]+)`: ", line) for line in lines)
            found.callers = list(dict.fromkeys(place[1] for place in places if place))
        elif title == OFFERED:
            found.offered = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    return found


def project_of(task: Task) -> str:
    """The name and version of a task's project: as its specification has it, else as its record has it."""
    found = _PROJECT.search(task.problem_statement)
    return f"{(found[1] if found else task.repo).rpartition('/')[2]} {task.version}".strip()


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each section of the second level; headings in code do not count."""
    title, in_code = "", False
    lines: list[str] = []
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if line.startswith("## ") and not in_code:
            yield title, lines
            title, lines = line.removeprefix("## "), []
        else:
            lines.append(line)
    yield title, lines


def _code(lines: list[str]) -> list[str]:
    """The lines inside of fences."""
    found, in_code = [], False
    for line in lines:
        if line.startswith("```"):
            in_code = not in_code
        elif in_code:
            found.append(line)
    return found


def _entries(lines: list[str], heads: str) -> Iterator[Entry]:
    path, entry = "", Entry(path="", head="")
    code: list[str] | None = None
    for line in lines:
        if code is not None:
            if line.startswith("```"):
                entry = Entry(path=path, head="\n".join(code), heads=heads)
                code = None
                yield entry
            else:
                code.append(line)
        elif line.startswith("### `"):
            path = line[5:].partition("`")[0]
            entry = Entry(path=path, head="")
            if line.endswith("(the whole file)"):
                yield entry
        elif line.startswith("```"):
            code = []
        elif _BARE.match(line):
            entry = Entry(path=path, head=line)
            yield entry
        elif owner := re.fullmatch(r"\(in `([^`]+)`(?:, under `[^`]+`)?\)", line):
            entry.owner = owner[1]
        elif line.startswith(">"):
            entry.words.append(line.removeprefix(">").removeprefix(" "))
        elif line.startswith("- "):
            entry.details.append(line.removeprefix("- "))
