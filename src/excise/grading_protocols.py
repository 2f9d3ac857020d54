"""What graders need of a language; read :mod:`excise.protocols` first.

How a project's tests are run so that solutions cannot speak for them, and what else they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from excise.protocols import Codebase, Session
from excise.types import Recipe, RecordedCall, TestRun


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingMode:
    """How a project's tests are run for a grade: as strictly as its untouched tests bear."""

    ini: str = "/dev/null"
    """The runner's one configuration file, inside the sandbox: the project's own, untouched, or an empty one."""
    plugins: tuple[str, ...] = ()
    """Plugins that the untouched environment registers; no other is loaded by itself."""
    safe_path: bool = True
    """The checkout is not put before the standard library on the import path."""
    sealed: bool = True
    """Hidden tests come from memory; their files are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """What a graded run of tests said."""

    run: TestRun
    """Statuses of the asked-for tests and canaries; ``MISSING`` for those that did not report."""
    changed: tuple[str, ...] = ()
    """Parts of the test runner that were not what they had been before the code was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """A file of tests that must fail."""

    text: str
    """Its content."""
    tests: tuple[str, ...]
    """Names of its tests, as they follow the file's path in a test id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBook:
    """What a run of tests called, before anything is known of the answers."""

    calls: tuple[str, ...]
    """One JSON text per distinct call."""
    modules: tuple[str, ...]
    """Modules to load before replaying."""
    removed: tuple[str, ...]
    """Names of the functions and classes that were watched."""
    watched: int
    """Functions that could be watched."""
    refused: Mapping[str, int]
    """Why calls were not written down, to how many."""
    folders: tuple[str, ...] = ()
    """Folders of the tree from which tests import their helpers; looked into last."""


class Grading(Protocol):
    """What grading needs of a language."""

    def mode(self, root: Path, environment: Path) -> GradingMode:
        """The strictest way to run the tests of the sources ``root`` in the installed ``environment``."""
        ...

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Why a solution's change to this path does not count (a word), or nothing.

        ``ours``: the task's own gold patch changes the path, too.
        """
        ...

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:
        """Whether a new file would be loaded in the place of an installed or a standard module."""
        ...

    def canaries(self, seed: str) -> tuple[str, Canaries]:
        """(File name, content) of tests that must fail."""
        ...

    def mirrored(self, source: bytes, functions: Sequence[str]) -> bytes | None:
        """A test file in which these tests expect what is wrong; ``None`` if nothing in it could be changed."""
        ...

    def run_graded(
        self,
        session: Session,
        recipe: Recipe,
        mode: GradingMode,
        *,
        ids: Sequence[str],
        canaries: Mapping[str, float],
        sealed: Mapping[str, str],
        timeout_s: float,
        test_timeout_s: float,
    ) -> GradedRun:
        """Run exactly ``ids``, with canaries at their places (0 first, 1 last); nothing comes from the code's word."""
        ...

    def record_calls(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
    ) -> CallBook:
        """Run tests on the original code and write down the calls to public ``symbols``."""
        ...

    def replay_calls(
        self,
        session: Session,
        recipe: Recipe,
        book: CallBook,
        *,
        timeout_s: float,
        hash_seed: int = 0,
        later_s: float = 0.0,
    ) -> list[str]:
        """What each call of the book comes to, as JSON; empty where it did not come to an end.

        ``hash_seed`` shakes what depends on the order of hashes, ``later_s`` (seconds) what depends on the date.
        """
        ...

    def telling(self, recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
        """Whether recorded calls say something: no stub comes to all of their outcomes.

        ``stub``: what each call comes to with emptied bodies. A stub may know one result, or hand an argument back.
        """
        ...

    def same_outcome(self, expected: str, found: str) -> bool:
        """Whether two outcomes of a call are equal, as far as anyone may rely on it."""
        ...
