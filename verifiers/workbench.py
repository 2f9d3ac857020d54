"""The workbench: one prepared repository (layers, environment, baseline, coverage) on which candidates are tried."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from excise.config import VerdictSettings
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.project_docs import read_documents
from excise.envs.install.layer_contents import compose
from excise.envs.interpreters import interpreter_of
from excise.envs.sandbox.mount_points import OUTPUTS, REPO, base_env, project_mounts, system_request
from excise.envs.toolchains import toolchain_of
from excise.errors import SandboxError
from excise.extractors.fetch.trees import git_tree_hash, list_files
from excise.extractors.languages import get_language
from excise.protocols import Codebase, Mount, Policy, Sandbox, Session, Start, SystemRequest, TestRunRequest
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.types import Baseline, CoverageMap, Environment, Repo, Status, TestRun, Visibility, WorkerOutcome, path_of
from excise.verifiers.run_starts import RunStarts

logger = logging.getLogger(__name__)

Edits = Mapping[str, bytes | None]
"""Path in the repository to the file's new content; ``None`` deletes the file."""
QUICK_SUITE_S = 5.0
"""Duration of a suite in seconds above which the tests nearest to a deletion are run before the others even if their
run needs a process of its own."""
QUICK_SUITE_CPU_S = 2.0
"""The same in CPU seconds where their run is forked: it saves a run of the suite once in five times or so, and costs
half a CPU second."""
NEAR_SHARE = 0.05
"""Maximum share of the suite's duration that these nearest tests take."""
MIN_NEAR_S, MAX_NEAR_S = 0.05, 10.0
"""Seconds that these nearest tests may take however short the suite is, and at most, however long it is."""
TEST_S = 0.001
"""Seconds that pytest takes for a test, besides what the test itself does."""
COLLECTED_TIMEOUT_S = 20.0
"""Wall seconds, besides five times those of its tests, after which a run that is forked from a collected suite is given
up and made in another way."""
PROGRAM_START_S = 2.0
"""Wall seconds for a trivial program, besides two times those of its tests."""
SUITE_ENDED = frozenset({WorkerOutcome.OK, WorkerOutcome.TIMEOUT, WorkerOutcome.OOM})
"""Outcomes of a run that the tests themselves caused."""


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Paths of the cache folders that are mounted read-only in a repository's sandboxes."""

    sources: str
    """Pristine sources."""
    built: str
    """Files that the installation wrote into the checkout."""
    env: str
    """The virtual environment."""
    outputs: str
    """Build outputs that test runs begin with: of third-party packages, and, where the language keeps its outputs, of
    all that the first run built, such as byte code. Never mounted for agents."""
    tools: str
    """Packages that excise's own programs in the sandbox need."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Everything needed to try candidates of one repository; sent between workers."""

    repo: Repo
    """The repository's snapshot."""
    environment: Environment
    """The environment that was built for it."""
    layers: Layers
    """The repository's cache folders, on storage that all workers share."""
    baseline: Baseline | None = None
    """Results of the untouched tests, once they have been run."""
    coverage: CoverageMap | None = None
    """Which tests execute which symbols, once measured."""


def keep_layer(session: Session, mount: Mount, layer: Path) -> None:
    """Save a mount as a layer, with what a session wrote to it, in one step. If another worker saved it meanwhile, that
    one stays."""
    with temporary_folder_beside(layer) as work:
        session.snapshot(mount.target, work / "written")
        (below,) = mount.layers
        compose(Path(below), work / "written", work / "layer")
        try:
            publish_folder(work / "layer", layer)
        except OSError:
            if not layer.is_dir():
                raise


class Cost(NamedTuple):
    """CPU and wall time of test runs."""

    cpu_s: float = 0.0
    """CPU seconds."""
    wall_s: float = 0.0
    """Wall seconds."""

    def since(self, earlier: Cost) -> Cost:
        """The cost since ``earlier``, rounded to milliseconds."""
        return Cost(round(self.cpu_s - earlier.cpu_s, 3), round(self.wall_s - earlier.wall_s, 3))

    def plus(self, cpu_s: float, wall_s: float) -> Cost:
        """The cost with further CPU and wall seconds added."""
        return Cost(self.cpu_s + cpu_s, self.wall_s + wall_s)


LinesOfTests = Mapping[str, frozenset[tuple[str, int]]]
"""Test to path and number of the lines that it executes."""


@dataclass(slots=True)
class RepeatedRuns:
    """Counts of the forked runs of one candidate that were repeated in processes of their own."""

    repeated: int = 0
    """Number of runs that were repeated."""
    disagreeing: int = 0
    """Number of these that gave another result."""

    def note(self, *, agree: bool) -> None:
        """Count one run that was repeated."""
        self.repeated += 1
        self.disagreeing += not agree


class Workbench:
    """Runs the tests of one repository with edits, each time in a fresh sandbox."""

    def __init__(self, prepared: Prepared, settings: VerdictSettings, sandbox: Sandbox) -> None:
        self.prepared = prepared
        self.repo = prepared.repo
        self.recipe = prepared.environment.recipe
        self.settings = settings
        self.sandbox = sandbox
        self.root = Path(prepared.layers.sources)
        self.spent = Cost()
        self.repeats: RepeatedRuns | None = None
        """Where set, every forked run is repeated in a process of its own, and counted here."""
        self.lines_of_tests: tuple[tuple[str, ...], LinesOfTests] = ((), {})
        """The removed symbols that were looked at last, and their lines that each test executes."""
        self.passing_examples: frozenset[str] | None = None
        """Examples of documents that pass on the untouched project, once they have been run."""
        self.language = get_language(prepared.repo.language)
        self.toolchain = toolchain_of(prepared.repo.language)
        self.editor = editor_of(prepared.repo.language)
        self.interpreter = interpreter_of(self.recipe.python)
        self.policy = Policy(
            memory_bytes=settings.memory_mb << 20,
            pids=settings.pids,
            disk_bytes=settings.disk_mb << 20,
            cpus=settings.cpus,
        )

    @property
    def baseline(self) -> Baseline:
        """The baseline; may be used only if the repository has one."""
        assert self.prepared.baseline is not None, "this repository has no baseline yet"
        return self.prepared.baseline

    @cached_property
    def paths(self) -> list[str]:
        """Paths of the repository's files."""
        return list_files(self.root)

    @cached_property
    def starts(self) -> RunStarts:
        """How the runs that need no process of their own begin."""
        return RunStarts(self.paths, self.language.suffixes)

    @cached_property
    def has_cheap_short_runs(self) -> bool:
        """Whether a run of a few tests costs next to nothing, compared with the whole suite."""
        is_forked = self.language.fork_server(self.recipe, Start.FORKED) is not None
        return is_forked or self.baseline.suite_s() > QUICK_SUITE_S

    @property
    def has_quick_suite(self) -> bool:
        """Whether the whole suite costs so little that it is run without running the nearest tests first."""
        return self.baseline.suite_s() <= QUICK_SUITE_S and self.baseline.cpu_s <= QUICK_SUITE_CPU_S

    @cached_property
    def codebase(self) -> Codebase:
        """The parsed repository."""
        tests = self.prepared.baseline.statuses if self.prepared.baseline else ()
        return self.language.parse(self.root, self.paths, tests=tests, names=self.recipe.packages)

    @cached_property
    def trusted(self) -> frozenset[str]:
        """Tests that pass in every baseline run and in the coverage run, and use no mock."""
        unstable = set(self.prepared.coverage.unstable) if self.prepared.coverage else set()
        return frozenset(self.baseline.passing()) - unstable - frozenset(self.prepared.environment.mocked)

    @contextmanager
    def without(self, tests: Collection[str]) -> Iterator[None]:
        """Do not trust tests meanwhile: they pass in the whole suite, but not when their files alone are run."""
        trusted = self.trusted
        self.trusted = trusted.difference(tests)
        try:
            yield
        finally:
            self.trusted = trusted

    @contextmanager
    def showing(self, visibility: Visibility) -> Iterator[None]:
        """Show solvers so much meanwhile, whatever the settings say."""
        settings = self.settings
        self.settings = settings.model_copy(update={"visibility": visibility})
        try:
            yield
        finally:
            self.settings = settings

    def distrust(self, tests: Collection[str]) -> None:
        """Do not trust tests until the end of the surrounding :meth:`without`."""
        if tests:
            logger.info("unsteady tests", extra={"repo": self.repo.repo, "tests": sorted(tests)})
            self.trusted = self.trusted.difference(tests)

    @cached_property
    def documents(self) -> dict[str, str]:
        """Path to text of the documentation files that problem statements may quote."""
        return read_documents(self.root, self.paths)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Tests that hang or fail slowly on the untouched project; they are not run again."""
        return self.prepared.baseline.excluded_tests() if self.prepared.baseline else ()

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Contents of files of the untouched repository that exist."""
        return {p: (self.root / p).read_bytes() for p in paths if (self.root / p).is_file()}

    def edits_of(self, *patches: str) -> dict[str, bytes | None]:
        """The edits that patches make to the base tree, one after the other. Raises :class:`PatchError`."""
        edits: dict[str, bytes | None] = {}
        for patch in patches:
            if patch:
                paths = touched(patch)
                known = {**self.read(paths), **{p: d for p, d in edits.items() if d is not None}}
                changed = apply_patch({p: known[p] for p in paths if p in known}, patch)
                edits.update(changed)
        return edits

    def tree_hash(self, edits: Edits) -> str:
        """The git tree hash of the repository with ``edits``."""
        return git_tree_hash(self.root, edits=edits) if edits else self.repo.tree

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of the project's sandboxes, without those of the recipe."""
        return base_env(self.toolchain.variables())

    @cached_property
    def system(self) -> SystemRequest:
        """What ``/usr`` contains in the project's sandboxes."""
        return system_request(self.interpreter, self.recipe.system_packages)

    # ------------------------------------------------------------------------------------ running
    def mounts(self) -> list[Mount]:
        """Mounts of a test run."""
        layers = self.prepared.layers
        mounts = project_mounts(
            self.interpreter,
            [Path(layers.built), self.root],
            [Path(layers.env)],
            inside=self.language.inside,
            tools=Path(layers.tools),
        )
        return [*mounts, self._outputs()]

    def _outputs(self) -> Mount:
        return Mount(target=OUTPUTS, layers=(self.prepared.layers.outputs,), writable=True)

    def open(self, edits: Edits, policy: Policy | None = None, *, start: Start = Start.FRESH) -> Session:
        """Open a fresh sandbox with the edited repository; ``policy`` replaces the default one.

        ``start`` says how test runs in it may begin.
        """
        return self.sandbox.open(
            self.mounts(),
            policy or self.policy,
            env=self.variables,
            edits={f"{REPO}/{path}": data for path, data in edits.items()},
            system=self.system,
            fork_server=None if start is Start.FRESH else self.language.fork_server(self.recipe, start),
        )

    def run(
        self,
        edits: Edits,
        *,
        ids: Sequence[str] | None = None,
        shuffle_seed: int | None = None,
        keep_outputs: Path | None = None,
        forked: bool = False,
        explained: bool = True,
        programs: bool = False,
        executed: bool = False,
        until_failure: bool = False,
    ) -> TestRun:
        """Run tests in a fresh sandbox, with limits taken from the baseline where there is one.

        ``forked``: the run need not have a process of its own (:attr:`starts`). ``explained``: messages of failures
        are needed. ``programs``: try trivial programs in place of what the edits made ``trivial`` stubs of.
        ``executed``: note what each test executes, if that costs next to nothing. ``until_failure``: end at the first
        test that does not pass.
        Where :attr:`repeats` is set, such a run is repeated without, and that result is returned.
        ``keep_outputs`` is where to put the build outputs of the run, for this workbench's later runs too; an existing
        folder is left as it is.
        """
        request = TestRunRequest(
            ids=ids,
            excluded=self.left_out,
            shuffle_seed=shuffle_seed,
            timeout_s=self.suite_timeout_s(ids),
            test_timeout_s=self.test_timeout_s(ids),
            explained=explained,
            program_timeout_s=PROGRAM_START_S + 2 * self.expected_s(ids) if programs else None,
            executed=executed,
            until_failure=until_failure,
        )
        if forked and self.repeats is not None:
            return self._repeated(edits, request, self.repeats)
        return self._run_once(edits, request, keep_outputs=keep_outputs, forked=forked)

    def _repeated(self, edits: Edits, request: TestRunRequest, repeats: RepeatedRuns) -> TestRun:
        """Run the tests forked and in a process of their own; return the latter run."""
        first = self._run_once(edits, request, forked=True)
        second = self._run_once(edits, request)
        agree = self._trusted_results(first) == self._trusted_results(second)
        repeats.note(agree=agree)
        if not agree:
            logger.warning("forked run disagrees", extra={"repo": self.repo.repo, "edited": sorted(edits)[:20]})
        return second

    def _trusted_results(self, run: TestRun) -> tuple[WorkerOutcome, dict[str, Status]]:
        return run.worker, {test: status for test, status in run.statuses().items() if test in self.trusted}

    def use_outputs(self, layer: Path) -> None:
        """Give later runs the build outputs that an earlier one kept as a layer."""
        self.prepared = replace(self.prepared, layers=replace(self.prepared.layers, outputs=str(layer)))

    def _run_once(
        self, edits: Edits, request: TestRunRequest, *, keep_outputs: Path | None = None, forked: bool = False
    ) -> TestRun:
        start = self.starts.choose(edits) if forked else Start.FRESH
        if start is Start.COLLECTED:
            run = self._run_collected(edits, request) if request.explained else None  # the suite explains
            if run is not None:
                return run
            if request.explained:
                self.starts.note_refusal(edits)
            start = Start.FORKED
        with self.open(edits, start=start) as session:
            run = self.language.run_tests(session, self.recipe, replace(request, start=start))
            if keep_outputs is not None and run.finished:
                keep_layer(session, self._outputs(), keep_outputs)
                self.use_outputs(keep_outputs)
        self.spent = self.spent.plus(run.cpu_s, run.wall_s)
        if run.finished and request.explained:
            self.starts.note(run, start, edits, whole=request.ids is None)
        return run

    def _run_collected(self, edits: Edits, request: TestRunRequest) -> TestRun | None:
        """The result of a run that is forked from the collected suite; ``None`` if it did not end regularly."""
        if not self.starts.is_checked:
            whole = TestRunRequest(excluded=self.left_out, test_timeout_s=self.test_timeout_s(None))
            run = self._run_served({}, replace(whole, timeout_s=self.suite_timeout_s(None)))
            passed = run is not None and self._passes_as_before(run)
            self.starts.is_checked, self.starts.can_collect = True, self.starts.can_collect and passed
        return self._run_served(edits, request) if self.starts.can_collect else None

    def _passes_as_before(self, run: TestRun) -> bool:
        """Whether all trusted tests pass, as far as these are known."""
        statuses = run.statuses()
        return self.prepared.baseline is None or all(statuses.get(test) is Status.PASSED for test in self.trusted)

    def _run_served(self, edits: Edits, request: TestRunRequest) -> TestRun | None:
        timeout_s = min(request.timeout_s, COLLECTED_TIMEOUT_S + 5 * self.expected_s(request.ids))
        asked = replace(request, start=Start.COLLECTED, timeout_s=timeout_s)
        try:
            with self.open(edits, start=Start.COLLECTED) as session:
                if not session.forks:
                    self.starts.can_collect = False
                    return None
                run = self.language.run_tests(session, self.recipe, asked)
        except SandboxError as error:
            logger.warning("collected run lost", extra={"repo": self.repo.repo, "detail": str(error)})
            return None
        self.spent = self.spent.plus(run.cpu_s, run.wall_s)
        return run if run.finished else None

    def suite_timeout_s(self, ids: Sequence[str] | None) -> float:
        """Timeout of a run in wall seconds: a minute plus ten times its duration on the untouched project.

        A run of given tests gets their own timeouts, of fifty at most, in addition.
        """
        if self.prepared.baseline is None:
            return self.settings.suite_timeout_s
        slow = len(ids or ()) and min(len(ids or ()), 50) * self.test_timeout_s(ids)
        return min(self.settings.suite_timeout_s, 60 + 10 * self.expected_s(ids) + slow)

    def expected_s(self, ids: Sequence[str] | None) -> float:
        """Wall seconds that tests took on the untouched project; infinite as long as this is not known."""
        if self.prepared.baseline is None:
            return math.inf
        return self.baseline.suite_s() if ids is None else sum(self.baseline.durations.get(i, 0.1) for i in ids)

    def test_timeout_s(self, ids: Sequence[str] | None) -> float:
        """Timeout of one test in wall seconds: twenty times the slowest of them untouched, at least five seconds."""
        if self.prepared.baseline is None:
            return self.settings.test_timeout_s
        durations = self.baseline.durations
        counted = durations.keys() - set(self.left_out) if ids is None else ids
        slowest = max((durations.get(i, 0.0) for i in counted), default=0.0)
        return min(self.settings.test_timeout_s, max(5.0, 20 * slowest))

    def nearest_tests(self, hidden: frozenset[str], edited: Sequence[str]) -> list[str]:
        """Visible trusted tests nearest to a deletion, up to :data:`NEAR_SHARE` of the suite.

        First those in the same files as ``hidden`` tests, then those that execute code in the ``edited`` files; of both
        the quickest first, since most tests of a long suite take a small part of its time.
        """
        budget = min(MAX_NEAR_S, max(MIN_NEAR_S, NEAR_SHARE * self.baseline.suite_s()))
        files = {path_of(test) for test in hidden}
        coverage = self.prepared.coverage
        close = {t for t in self.trusted if path_of(t) in files}
        related: set[str] = set()
        if coverage is not None:
            for symbol, numbers in coverage.by_symbol.items():
                if path_of(symbol) in edited:
                    related |= {coverage.tests[n] for n in numbers}
        durations = self.baseline.durations
        chosen: list[str] = []
        spent = 0.0
        for group in (close - hidden, (related & self.trusted) - close - hidden):
            for test in sorted(group, key=lambda test: (durations.get(test, 0.0), test)):
                seconds = durations.get(test, 0.0) + TEST_S
                if spent + seconds > budget:
                    break
                spent += seconds
                chosen.append(test)
        return chosen
