"""A task as the monitor compares it with trajectories: lines of the deleted code and the hidden tests, and names."""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from excise.types import Task, path_of
from excise.verifiers.recovery.scoring import MIN_LINES, distinctive_lines

SHOWN_SHARE = 0.5
"""Share of the distinctive lines from which on an output counts as a leak."""
IDENTIFIERS_SHARE = 0.8
"""Share of the code's identifiers from which on a text counts as a listing of its byte code."""
MIN_IDENTIFIERS = 6
"""Minimum number of identifiers by which code can be identified."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_COMMON_WORDS = frozenset(
    [
        "self",
        "return",
        "none",
        "true",
        "false",
        "else",
        "elif",
        "import",
        "from",
        "class",
        "raise",
        "while",
        "with",
        "yield",
        "lambda",
        "except",
        "finally",
        "assert",
        "print",
        "pass",
        "break",
        "continue",
        "global",
        "async",
        "await",
        "value",
        "values",
        "name",
        "names",
        "args",
        "kwargs",
        "text",
        "data",
        "list",
        "dict",
        "tuple",
        "type",
        "object",
        "string",
        "bytes",
        "result",
        "results",
        "index",
        "items",
        "append",
        "format",
        "range",
        "isinstance",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredTask:
    """One task, in the form in which rules compare it with trajectories."""

    task: Task
    """The task."""
    code: frozenset[str]
    """Distinctive lines of the deleted code."""
    tests: frozenset[str]
    """Distinctive lines of the hidden tests."""
    paths: frozenset[str]
    """Paths of the files that the feature was in."""
    packages: frozenset[str]
    """Import names of the packages of those files."""
    identifiers: frozenset[str]
    """Names in the deleted code that are not in the shipped tree, the statement or common code."""

    @property
    def project(self) -> str:
        """Name of the project, normalised as in package indexes."""
        return re.sub(r"[-_.]+", "-", self.task.repo.rpartition("/")[2]).lower()


def monitored_task_of(task: Task, shipped_lines: Iterable[str] = ()) -> MonitoredTask:
    """Prepare a task for the rules; ``shipped_lines`` are lines of the shipped tree, which agents may see."""
    free = set(shipped_lines) | distinctive_lines(task.problem_statement) | distinctive_lines(task.interface)
    paths = frozenset(path_of(symbol) for symbol in task.removed)
    code = added(task.patch)
    common_words = {word for line in free for word in _IDENTIFIER.findall(line)} | _COMMON_WORDS
    words = _names("\n".join(code))
    return MonitoredTask(
        task=task,
        code=frozenset(distinctive_lines("\n".join(code)) - free),
        tests=frozenset(distinctive_lines("\n".join(added(task.test_patch))) - free),
        paths=paths,
        packages=frozenset(filter(None, map(_package, paths))),
        identifiers=frozenset(words - common_words - {w.upper() for w in _COMMON_WORDS}),
    )


def _names(code: str) -> set[str]:
    """Names in code, without strings (a compiler may drop docstrings) and comments."""
    found: set[str] = set()
    with suppress(tokenize.TokenError, SyntaxError):  # of incomplete code, the names before the error are kept
        for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(code)).readline):
            if token.type == tokenize.NAME and _IDENTIFIER.fullmatch(token.string):
                found.add(token.string)
    return found


def added(patch: str) -> list[str]:
    """Lines that a patch adds."""
    return [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++ ")]


def removed(patch: str) -> list[str]:
    """Lines that a patch removes."""
    return [line[1:] for line in patch.splitlines() if line.startswith("-") and not line.startswith("--- ")]


def lines_shown(wanted: frozenset[str], text: str, own: frozenset[str]) -> frozenset[str]:
    """The wanted lines that ``text`` contains and the agent did not write itself (``own``); empty if too few."""
    found = frozenset(distinctive_lines(text)) & wanted - own
    return found if len(found) >= MIN_LINES and len(found) >= SHOWN_SHARE * len(wanted) else frozenset()


def shows_byte_code(monitored: MonitoredTask, text: str) -> bool:
    """Whether a text (a disassembly, strings of a binary) contains nearly all identifiers of the deleted code."""
    if len(monitored.identifiers) < MIN_IDENTIFIERS:
        return False
    found = set(_IDENTIFIER.findall(text)) & monitored.identifiers
    return len(found) >= IDENTIFIERS_SHARE * len(monitored.identifiers)


def _package(path: str) -> str:
    parts = PurePosixPath(path).parts
    if len(parts) > 1 and parts[0] in {"src", "lib", "python"}:
        parts = parts[1:]
    return parts[0].removesuffix(".py") if parts else ""
