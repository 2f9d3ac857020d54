"""What the monitor knows of a task: the deleted code and the hidden tests as telling lines, and the project's names."""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from excise.types import Task
from excise.verifiers.recovery.scoring import MIN_LINES, distinctive_lines

SHARE = 0.5
"""So much of the telling lines must be seen for a leak."""
IDENTIFIERS_SHARE = 0.8
MIN_IDENTIFIERS = 6
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_COMMON = frozenset(
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
class Known:
    """One task, as the monitor sees it."""

    task: Task
    """The task."""
    code: frozenset[str]
    """Telling lines of the deleted code."""
    tests: frozenset[str]
    """Telling lines of the hidden tests."""
    paths: frozenset[str]
    """Files that the feature was in."""
    packages: frozenset[str]
    """Import names that those files belong to."""
    identifiers: frozenset[str]
    """Names and words of the deleted code that the tree, the statement and common code do not have."""

    @property
    def project(self) -> str:
        """Name of the project, normalised as indexes do."""
        return re.sub(r"[-_.]+", "-", self.task.repo.rpartition("/")[2]).lower()


def known_of(task: Task, given: Iterable[str] = ()) -> Known:
    """What is known of a task; ``given`` are lines that the agent has anyway, those of the shipped tree."""
    free = set(given) | distinctive_lines(task.problem_statement) | distinctive_lines(task.interface)
    paths = frozenset(symbol.partition("::")[0] for symbol in task.removed)
    code = added(task.patch)
    known_words = {word for line in free for word in _IDENTIFIER.findall(line)} | _COMMON
    words = _names("\n".join(code))
    return Known(
        task=task,
        code=frozenset(distinctive_lines("\n".join(code)) - free),
        tests=frozenset(distinctive_lines("\n".join(added(task.test_patch))) - free),
        paths=paths,
        packages=frozenset(filter(None, map(_package, paths))),
        identifiers=frozenset(words - known_words - {w.upper() for w in _COMMON}),
    )


def _names(code: str) -> set[str]:
    """Names in code: neither strings (docstrings do not survive every compilation) nor comments."""
    found: set[str] = set()
    with suppress(tokenize.TokenError, SyntaxError):  # of a fragment, what stands before the fault
        for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(code)).readline):
            if token.type == tokenize.NAME and _IDENTIFIER.fullmatch(token.string):
                found.add(token.string)
    return found


def added(patch: str) -> list[str]:
    """Lines that a patch adds."""
    return [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++ ")]


def removed(patch: str) -> list[str]:
    """Lines that a patch takes away."""
    return [line[1:] for line in patch.splitlines() if line.startswith("-") and not line.startswith("--- ")]


def shown(wanted: frozenset[str], text: str, own: frozenset[str]) -> frozenset[str]:
    """Those of the wanted lines that stand in ``text`` and that the agent has not written itself; none if too few."""
    found = frozenset(distinctive_lines(text)) & wanted - own
    return found if len(found) >= MIN_LINES and len(found) >= SHARE * len(wanted) else frozenset()


def disassembled(known: Known, text: str) -> bool:
    """Whether a listing of byte code, or its strings, shows nearly all that is peculiar to the deleted code."""
    if len(known.identifiers) < MIN_IDENTIFIERS:
        return False
    found = set(_IDENTIFIER.findall(text)) & known.identifiers
    return len(found) >= IDENTIFIERS_SHARE * len(known.identifiers)


def _package(path: str) -> str:
    parts = PurePosixPath(path).parts
    if len(parts) > 1 and parts[0] in {"src", "lib", "python"}:
        parts = parts[1:]
    return parts[0].removesuffix(".py") if parts else ""
