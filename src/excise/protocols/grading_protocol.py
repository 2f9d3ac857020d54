"""The part of a language adapter that graders use.

It runs a project's tests so that a solution cannot forge their results, and makes the other checks of a grade: canary
tests, mirrored tests (with wrong expectations), and recorded calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from excise.protocols.codebase_protocol import Codebase
from excise.protocols.sandbox_protocol import ForkServer, Session, Start
from excise.types import Recipe, RecordedCall, TestRun, Watched

NOTHING_INHERITED: Mapping[str, Collection[str]] = MappingProxyType({})
"""Classes that inherit tests from another file, where there are none."""
MAX_EXAMPLE_CHARS = 160
"""Length of an example that a statement shows: a call with its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingMode:
    """How a project's tests are run for a grade: as strictly as its untouched tests allow."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the language's graded runs, by name: what of the project's own configuration they need."""
    strict: bool = True
    """Whether the language keeps files of the checkout from replacing parts of the test runner, where it can. Some
    projects' tests do not pass like that."""
    sealed: bool = True
    """Hidden tests are passed in memory; their files in the sandbox are empty. Only for languages whose programs are
    their sources: elsewhere tests are in the build, and the sandbox of the run has no sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedTests:
    """Two forms of a test file: tests are divided into what they do with the code and what they expect."""

    observing: bytes
    """The file that runs with a solution and reports values; it contains nothing that its tests expect."""
    judging: bytes
    """The file that runs with the original code and compares reported values with what is expected. Where values must
    be equal to the original's, what else to know of them, or nothing; it never runs."""
    functions: tuple[str, ...]
    """The functions (``name`` or ``Class::name``) that are divided."""
    refused: Mapping[str, str]
    """The other functions, to the reason why they are not."""
    whole: bytes = b""
    """The file with all that it has, in which the divided tests report what they find; it runs with the original code
    alone, where they must report the same in both forms. Empty if the first form is known to leave nothing out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedValues:
    """What a judging run has to know of the values that the original code reported in a lifted test."""

    names: tuple[str, ...] = ()
    """Names, sorted, of the classes and functions in the objects among them; others are not accepted."""
    nested: str = ""
    """The values, as JSON, that functions within the test reported; empty if there are none. Where values must be equal
    to the original's, a digest of all of them."""
    telling: bool = True
    """Whether there is more than one truth value, or ``None``, over and over, which anybody would report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedRun:
    """A run of one form of lifted tests, in which parametrised tests are numbered: ``test_x[0]``, ``test_x[1]``…"""

    functions: Sequence[str]
    """The lifted functions, as ids without parameters."""
    removed: Sequence[str] = ()
    """Ids of the removed symbols: no objects of their classes are reported."""
    is_repeated: bool = False
    """In an observing run, whether a test is run twice where no judging form exists, and what differs left out."""
    seen: Mapping[str, str] | None = None
    """In a judging run, each test's reported values; ``None`` in an observing run."""
    originals: Mapping[str, ReportedValues] = field(default_factory=dict)
    """In a judging run, what to know of the values that each test reported on the original code."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """In a judging run, path of each test file to its judging form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRunRequest:
    """A run of tests whose results a solution cannot forge; the answer is a :class:`GradedRun`."""

    mode: GradingMode
    """How strictly the tests are run."""
    ids: Sequence[str]
    """Ids of the tests to run; nothing else is run but the canaries."""
    canaries: Mapping[str, float] = field(default_factory=dict)
    """Ids of canary tests to their positions in the order of the run, from 0 (first) to 1 (last)."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """Paths of hidden test files to their texts, which are passed in memory."""
    lifted: LiftedRun | None = None
    """For a run of lifted tests: which of their two forms is run."""
    timeout_s: float
    """Wall seconds for the whole run."""
    test_timeout_s: float
    """Wall seconds for each test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """The result of a graded run of tests."""

    run: TestRun
    """Statuses of the requested tests and canaries; ``MISSING`` for those that did not report."""
    changed: tuple[str, ...] = ()
    """Names of the parts of the test runner that the loaded code replaced or modified."""
    seen: Mapping[str, str] = field(default_factory=dict)
    """Test of an observing run to the values that it reported, as JSON in the format of the language adapter."""
    numbered: Mapping[str, str] = field(default_factory=dict)
    """Number that a parametrised test had in a run of lifted tests, to its id in the file that was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """A file of tests that must fail."""

    text: str
    """Content of the file."""
    tests: tuple[str, ...]
    """Names of its tests: the part of the test id that follows the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecording:
    """Calls of public functions, recorded during a test run, without their outcomes."""

    calls: tuple[str, ...]
    """One JSON text per distinct call."""
    modules: tuple[str, ...]
    """Names of the modules to import before the replay."""
    removed: tuple[str, ...]
    """Names of the functions and classes whose calls were recorded."""
    watched: int
    """Number of functions that were instrumented for recording."""
    refused: Mapping[str, int]
    """Reason why calls could not be recorded, to the number of such calls."""
    by_test: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Test to its calls, for tests all of whose calls could be recorded."""
    returned: Mapping[str, bool] = field(default_factory=dict)
    """Whether a call returned in the tests, or raised. Those that did both are missing, and where that is unknown."""
    folders: tuple[str, ...] = ()
    """Folders of the tree from which tests import their helpers; last on the import path."""
    uses: Watched = field(default_factory=Watched)
    """What the tests did with values that came from the removed code."""


class Grading(Protocol):
    """How graders run the tests of one language, and what else they check."""

    def mode(self, root: Path, environment: Path) -> GradingMode:
        """The strictest way to run the tests of the sources ``root`` in the installed ``environment``."""
        ...

    def forbidden(self, path: str, *, ours: bool) -> str:
        """The reason (one word) why a solution may not change this path; empty if it may.

        ``ours``: whether the task's gold patch changes the path.
        """
        ...

    @property
    def needs_mirrors(self) -> bool:
        """Whether some FAIL_TO_PASS tests must be mirrored or lifted, enough to refute empty solutions: nothing else
        would tell a forged result."""
        ...

    @property
    def mirror_seeds(self) -> Sequence[str]:
        """Seeds of the wrong expectations that a mirrored test may have. Each grade draws one; a kit has the tests that
        fail with every one on the original code."""
        ...

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:
        """Whether a new file would be imported instead of an installed module or one of the standard library.

        ``roots`` are the folders of the tree that are on the import path.
        """
        ...

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:
        """File name and content of a file of tests that must fail; equal seeds give equal files.

        It will stand in the folder of a test file with the content ``beside``.
        """
        ...

    def failing_copies(
        self, path: str, source: bytes, functions: Sequence[str], seed: str
    ) -> tuple[str, Canaries] | None:
        """File name and content of a copy of the test file ``path`` in which tests do what they do there, and then fail
        for certain; ``None`` if no test can be copied like that.

        It will stand in the same folder. Its tests are copies of some of the ``functions``, in their order. Equal seeds
        give equal files.
        """
        ...

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:
        """The test file with wrong expectations in the test ``functions``; ``None`` if none could be inverted.

        ``seed``: one of :attr:`mirror_seeds`; equal seeds give equal expectations.
        """
        ...

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,
        *,
        inheriting: Mapping[str, Collection[str]] = NOTHING_INHERITED,
    ) -> LiftedTests | None:
        """Divide the test ``functions`` of a file; ``None`` if the file cannot be parsed.

        ``depending``: names of the code under test and of what calls it. ``beside`` reads the other test files of the
        folder, in which helpers may be. ``inheriting``: classes whose lifted tests another file defines, to the names
        that these tests use.
        """
        ...

    def reported(self, values: str) -> ReportedValues:
        """What a judging run has to know of the values that a lifted test reported on the original code."""
        ...

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> ForkServer | None:
        """The command of graded runs that may be forked: those of the original code, or of a part of it.

        ``None`` if its program serves no forks.

        Observing and judging runs have different ones, since all forks of a process share the addresses of objects:
        values that depend on these must not be equal by that.
        """
        ...

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Run the tests in worker processes, whose reports are not trusted, and return what their supervisor saw.

        In a session that forks, the supervisor is no more than a fork, too: :meth:`run_server`.
        """
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
        start: Start = Start.FRESH,
        executed: Collection[str] | None = None,
    ) -> CallRecording:
        """Run the tests ``ids`` on the original code and record their calls to the public ``symbols``.

        ``start``: how the run begins; from a collected suite, no calls are found that a fresh import would make.
        ``executed``: symbols that the tests execute. If given, what the tests do with values that come from the
        symbols is watched, too.
        """
        ...

    def watch_tests(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
        start: Start = Start.FRESH,
        executed: Collection[str],
    ) -> Watched:
        """Watch what the tests ``ids`` do with values that come from the ``symbols``, and record no calls.

        For tests that fail when calls are recorded; the arguments are those of :meth:`record_calls`.
        """
        ...

    def replay_server(self, recipe: Recipe, hash_seed: int) -> ForkServer | None:
        """The command of replays that may be forked: those of the original code, or of stubs in its place.

        ``None`` if its program serves no forks.
        """
        ...

    def replay_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        *,
        timeout_s: float,
        hash_seed: int = 0,
        later_s: float = 0.0,
        zone: str = "",
        alone: int | None = None,
    ) -> list[str]:
        """Make each call of ``recording`` and return its outcome as JSON; empty for a call that did not end.

        The first ``alone`` calls, or all, have processes of their own; others share some, which is cheaper, and may
        have outcomes that depend on the calls before them.
        Replays with different values of ``hash_seed`` reveal outcomes that depend on the order of hashes, and replays
        with a clock that is ahead by ``later_s`` seconds, or in another time zone (``zone``, if it is not empty), with
        other arguments of the process, another home folder and another user, those that depend on the date or on these.
        """
        ...

    def trace_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        new: int,
        timeout_s: float,
        alone: int = 0,
    ) -> list[tuple[str, frozenset[str]]]:
        """Make the calls like :meth:`replay_calls`; with each outcome, return what of ``symbols`` the call reached.

        The last ``new`` calls come from :meth:`vary_calls`: they must be quick, or they have no outcome.
        That is lines which it executed, without the last ones where these are very many, and texts of the code that are
        among its arguments or in its result.
        """
        ...

    def vary_calls(self, calls: Sequence[str], codebase: Codebase, removed: Sequence[str]) -> list[str]:
        """New calls that resemble recorded ones: arguments exchanged between calls, varied within their types, or added
        for parameters of the symbols ``removed`` that no recorded call gives one."""
        ...

    def added_argument(self, call: str) -> tuple[str, str]:
        """The parameter for which a new call has an argument more than a recorded one, and that recorded call in a
        form that is the same for equal calls; for others, an empty name, and the call in this form."""
        ...

    def called(self, call: str) -> str:
        """The qualified name of the function that a recorded call calls, without the module."""
        ...

    def arguments_given(self, call: str) -> str:
        """Which parameters a recorded call gives arguments: their number, and the names of keywords."""
        ...

    def is_result(self, outcome: str) -> bool:
        """Whether an outcome is a result, and no exception."""
        ...

    def texts_in(self, outcome: str) -> frozenset[str]:
        """The texts in a result, and in what a call changes: those that are compared."""
        ...

    def has_few_in_order(self, outcome: str) -> bool:
        """Whether an outcome has a list of few different texts: if their order is that of a set, few replays may not
        show it."""
        ...

    def is_compared_whole(self, outcome: str) -> bool:
        """Whether an outcome holds no object of which only the class is compared, and no argument that may be left as
        it was."""
        ...

    def told_outcome(self, call: str, outcome: str) -> str:
        """What the line of :meth:`example` says of an outcome, to be compared: all of it, or its result alone; empty if
        it does not say all of that."""
        ...

    def example(self, call: str, outcome: str) -> str:
        """A line of code with a call and its result as a comment; empty if it cannot be shown in one.

        Lines of more than :data:`MAX_EXAMPLE_CHARS` characters are not shown.
        """
        ...

    def distinguish_from_stub(self, recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
        """Whether recorded calls distinguish a solution from a stub: no simple stub has the same outcome in all calls.

        ``stub`` holds the outcomes of the calls on emptied bodies. The other simple stubs return one constant, or one
        of their arguments.
        """
        ...

    def same_result(self, first: str, second: str) -> bool:
        """Whether outcomes of two calls are equal but for what is printed, and what became of their arguments."""
        ...

    def same_outcome(self, expected: str, found: str, statement: str | None = None) -> bool:
        """Whether two outcomes of a call are equal in everything that callers may rely on.

        ``statement`` is what a solver was told, if the second one is a solution's: an exception of the language that it
        does not name may be another one, and one whose message it quotes has a part of a quoted one.
        """
        ...
