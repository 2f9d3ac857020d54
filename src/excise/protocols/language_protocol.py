"""Languages: how code is parsed, how tests are run and their coverage is mapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from excise.protocols.codebase_protocol import Codebase
from excise.protocols.grading_protocol import Grading
from excise.protocols.sandbox_protocol import ForkServer, Session, Start
from excise.protocols.scan_rules import ScanRules
from excise.protocols.scrub_rules import ScrubRules
from excise.types import CoverageMap, ExecutedCode, Need, ProjectInfo, Recipe, Status, TestRun, Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRunRequest:
    """Which tests to run, and how; the answer is a :class:`~excise.types.TestRun`."""

    __test__ = False

    ids: Sequence[str] | None = None
    """Ids of the tests to run, ``None`` for all. One that does not report gets the status ``MISSING``."""
    excluded: Sequence[str] = ()
    """Ids of tests that are never run."""
    shuffle_seed: int | None = None
    """Seed of a random order of the tests; ``None`` keeps the order of the project."""
    load_stress: bool = False
    """Imitate a busy machine: pause the interpreter at random, so that tests that depend on timing fail."""
    timeout_s: float = 600.0
    """Wall seconds for the whole run."""
    test_timeout_s: float = 60.0
    """Wall seconds for each test."""
    explained: bool = True
    """Whether messages say why a test failed. A run that only counts failures need not prepare for that."""
    program_timeout_s: float | None = None
    """If set, trivial programs are tried in place of the code that the tree's ``trivial`` stubs stand for, each for at
    most so many wall seconds. The results are those of programs: one passes if all tests of ``ids``, in order, do."""
    until_failure: bool = False
    """End the run at the first test that does not pass, where the language can: those behind it are ``MISSING``."""
    start: Start = Start.FRESH
    """How the run may begin. In a session without the fork server for it, it is a process of its own."""
    executed: bool = False
    """Note what each test executes (:attr:`~excise.types.TestRun.executed`), if that costs next to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRequest:
    """Which tests to run under coverage, and how; the answer is a :class:`~excise.types.CoverageMap`."""

    env_id: str
    """Environment, as recorded in the map."""
    timeout_s: float
    """Wall seconds for the whole run."""
    test_timeout_s: float = 60.0
    """Wall seconds for each test."""
    fork: bool = True
    """Run each test in a forked process of its own. Otherwise all tests share one process, which is faster where forks
    are slow, but code is not covered by a test if an earlier test left its result in a cache."""
    ids: Sequence[str] | None = None
    """Ids of the tests to map, ``None`` for all."""
    both_orders: bool = False
    """Make a second pass over the tests, in reverse order."""
    reverse: bool = False
    """Make the only pass in reverse order."""
    warm_up: str = ""
    """What to prepare before tests are forked, so that not each of them does it: :attr:`CoveragePass.warm_up`."""


class CoveragePass(NamedTuple):
    """What one pass over the tests under coverage reports."""

    coverage: CoverageMap
    """Symbols executed by each test."""
    statuses: dict[str, Status]
    """Test id to status."""
    warm_up: str = ""
    """What the tests left in caches of the language's own library; a text that only the adapter understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRun:
    """How a grader outside excise runs tests: a program that reads a request on stdin and writes a report."""

    program: str
    """Name of the program's file."""
    files: Mapping[str, bytes]
    """File name to content: the program, and all that it loads from its own folder."""
    shared: tuple[str, ...]
    """Names of the files that it imports from ``/excise/shared``; outside excise they lie beside it."""
    request: Mapping[str, Any]
    """The request: ``root``, the checkout as tests see it, ``ids``, and what the program needs beyond that. The caller
    adds ``report``, the file to write."""
    settings: tuple[str, ...]
    """Patterns of ``fnmatch`` for names and paths of files that say how tests run: a solution may add none."""


class Language(Protocol):
    """One programming language: parsing, running tests, mapping coverage."""

    name: str
    suffixes: tuple[str, ...]
    inside: Path
    """Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""

    scrub_rules: ScrubRules
    """Which files of a tree its tools have made."""
    scan_rules: ScanRules
    """How its code looks to a leak scan, and which files of its toolchain hold copies of projects."""
    keeps_outputs: bool
    """Whether build outputs of the untouched project may be there in later runs, such as byte code, which is only used
    for files that have not changed. Otherwise each run begins with those of other code only."""

    @property
    def grading(self) -> Grading:
        """How graders run the tests of this language."""
        ...

    def detect(self, root: Path) -> float:
        """How well the files of a project fit this language, from 0 to 1: 1 with a manifest, else the share of files.

        Nothing of the project is run.
        """
        ...

    def project_info(self, root: Path) -> ProjectInfo:
        """What the manifests of this language in the main folder say, as far as they can be read.

        Nothing of the project is run.
        """
        ...

    def complete_subfolder(self, copy: Path, folder: Path, whole: Path) -> None:
        """Write into ``copy``, the files of ``folder`` alone, what its manifest takes from those of the folders above
        it, up to ``whole``. Nothing of the project is run.
        """
        ...

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse those of the files ``paths`` (relative to ``root``) that can be read.

        ``tests`` are known test ids, and ``names`` the import names that the project installs; they are used to
        distinguish test files from library code.
        """
        ...

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:
        """The command of :meth:`run_tests` for runs that begin like this; ``None`` if they have a process each."""
        ...

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Run tests in an open sandbox. Failures, crashes and timeouts of tests are results and raise nothing.

        A refused run (:attr:`Start.COLLECTED`) is not finished and has no results.
        """
        ...

    def plain_run(self, recipe: Recipe, ids: Sequence[str], *, timeout_s: float, test_timeout_s: float) -> PlainRun:
        """What runs the tests ``ids`` outside excise; time limits in wall seconds, for the run and for each test."""
        ...

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """Run every requested test and map what it executes to symbols.

        Returns one pass or, for both orders, two, the one in reverse order last. Raises :class:`EnvironmentFailure`.
        """
        ...

    def map_executed(
        self, codebase: Codebase, env_id: str, executed: ExecutedCode, tests: Iterable[str]
    ) -> CoveragePass:
        """The pass over ``tests`` that an ordinary run was, in which all of them passed; it costs nothing."""
        ...

    def find_needs(
        self, codebase: Codebase, removed: Sequence[str], tests: Sequence[str], watched: Watched | None = None
    ) -> tuple[Need, ...]:
        """The details that ``tests`` need from the symbols ``removed`` besides names and signatures.

        They are read by syntax; ``watched``, what a run of the tests showed, adds others and drops some. Where a solver
        finds them is not filled in.
        """
        ...
