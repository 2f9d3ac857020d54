"""The records of a candidate, one per step of its proof, and the test runs that the steps share.

=========================  ====================================================  ===============================
record                     new fields                                            made by
=========================  ====================================================  ===============================
:class:`PlannedDeletion`   patches, and the tests to hide                        :mod:`verifiers.plan_deletion`
:class:`SplitDeletion`     FAIL_TO_PASS and PASS_TO_PASS                         :mod:`verifiers.build_candidate`
:class:`Candidate`         the task's record with its statement                  :mod:`verifiers.build_candidate`
``prove.Proof``            task, certificate and grading kit, or a rejection     :mod:`verifiers.prove`
=========================  ====================================================  ===============================

The first three extend each other, and all fields of a record are set when it is made. The gates check a
:class:`Candidate`; ``stored_tasks`` makes one from a task set's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from excise.errors import ExciseError
from excise.protocols import EMPTY, TRIVIAL
from excise.types import (
    Deletion,
    Need,
    Status,
    Task,
    TestRun,
    Watched,
    WorkerOutcome,
    is_inside,
    name_in_file,
    path_of,
    without_parameter,
)
from excise.verifiers.agent_workspace import Workspace, workspace
from excise.verifiers.grading.intake import why_kept
from excise.verifiers.grading.kit import RecordedBehaviour, record_behaviour, with_replays
from excise.verifiers.workbench import Edits, Workbench

TREES = ("base", "shipped", "deleted", *EMPTY, TRIVIAL)
"""``base`` (untouched), ``shipped`` (code and hidden tests removed), ``deleted`` (code removed, all tests in: what
grading an empty diff sees), ``none``, ``raise`` and ``any`` (the code replaced by empty stubs), and ``trivial``
(replaced by stubs that stand for trivial programs)."""
MAX_MESSAGE = 2000
"""Maximum number of characters that are shown of what a runner says about a file."""


class Rejected(ExciseError):
    """Raised when a candidate is refused. ``run`` is the test run that was the reason, if any."""

    def __init__(self, message: str, *, reason: str | None = None, run: TestRun | None = None) -> None:
        super().__init__(message, reason=reason)
        self.run = run


class Unchecked(Rejected):
    """Raised for stubs some of which no FAIL_TO_PASS test executes; ``checked`` are the ids of the others."""

    def __init__(self, message: str, checked: frozenset[str]) -> None:
        super().__init__(message, reason="unchecked")
        self.checked = checked


@dataclass(slots=True, kw_only=True)
class DeletionTrees:
    """The trees of a deletion (:data:`TREES`), and the test runs made on them: equal runs are made once."""

    bench: Workbench
    """The repository."""
    deletion: Deletion
    """The deletion's patches, removed symbols and hidden tests."""
    runs: dict[tuple[object, ...], TestRun] = field(default_factory=dict)
    """Runs made so far, by tree, test ids, and what else distinguishes them."""
    _edits: dict[str, Edits] = field(default_factory=dict)
    _behaviours: dict[tuple[str, ...], RecordedBehaviour] = field(default_factory=dict)
    _needs: dict[tuple[str, ...], tuple[Watched | None, tuple[Need, ...]]] = field(default_factory=dict)
    _kept: ExitStack | None = None
    _workspace: Workspace | None = None

    def edits(self, tree: str) -> Edits:
        """The edits that make one of :data:`TREES` from the base tree. Raises :class:`PatchError`."""
        if tree not in self._edits:
            deletion = self.deletion
            patches = {
                "base": (),
                "shipped": (deletion.source_patch, deletion.hide_patch),
                "deleted": (deletion.source_patch,),
                **dict.fromkeys((*EMPTY, TRIVIAL), (deletion.source_patch,)),  # where there is no function to empty
                **{stub: (patch,) for stub, patch in deletion.stub_patches},
            }
            self._edits[tree] = self.bench.edits_of(*patches[tree])
        return self._edits[tree]

    def run(
        self, tree: str, *, ids: Sequence[str] | None = None, shuffle_seed: int | None = None, number: int = 0
    ) -> TestRun:
        """Run all tests, or exactly ``ids``, on one of the trees in a fresh sandbox.

        Runs that confirm have processes of their own: the whole suite on the shipped tree and the first run on the base
        tree. So no certificate says that tests pass because they passed in a fork. The others may be forked.
        The result of an equal earlier run is returned; pass another ``number`` to repeat the run.
        """
        tree = self._first_equal(tree)
        key = _run_key(tree, ids, shuffle_seed, number)
        if key not in self.runs:
            forked = ids is not None if tree == "shipped" else tree != "base" or number > 0
            self.runs[key] = self.bench.run(self.edits(tree), ids=ids, shuffle_seed=shuffle_seed, forked=forked)
        return self.runs[key]

    def reuse_runs(self, other: DeletionTrees, more: Sequence[str], ids: Sequence[str]) -> None:
        """Take over what another deletion's runs of the tests ``more`` say of those in ``ids``.

        It must delete the same, and may hide other tests: these are not in the trees of such runs.
        """
        mine, its = self.deletion, other.deletion
        if (mine.source_patch, mine.stub_patches) != (its.source_patch, its.stub_patches):
            return
        wanted = set(ids)
        for tree in ("deleted", *EMPTY, TRIVIAL):
            run = other.runs.get(_run_key(tree, more))
            if run is not None:
                results = tuple(result for result in run.results if result.test_id in wanted)
                self.runs[_run_key(tree, ids)] = replace(run, results=results)

    def behaviour(self, tests: tuple[str, ...], *, is_replayed: bool = False) -> RecordedBehaviour:
        """What the tests call of the removed code, recorded once; ``is_replayed``: with the answers of the original."""
        bench, removed = self.bench, self.deletion.removed
        found = self._behaviours.get(tests) or record_behaviour(bench, removed, tests)
        if is_replayed:
            found = with_replays(bench, found, removed, bench.edits_of(self.deletion.hide_patch))
        self._behaviours[tests] = found
        return found

    def lost_symbols(self) -> list[str]:
        """Ids of the removed symbols, and of those that went along."""
        symbols, removed = self.bench.codebase.symbols(), self.deletion.removed
        along = dict.fromkeys(i for i, _ in self.deletion.text if i in symbols)
        return [*removed, *(i for i in along if not any(is_inside(i, outer) for outer in removed))]

    def needs(self, tests: tuple[str, ...], watched: Watched | None) -> tuple[Need, ...]:
        """The details that tests need of the removed code, found once; ``watched`` is what they were seen to use."""
        seen, found = self._needs.get(tests, (None, None))
        if found is None or seen is not watched:
            found = self.bench.language.find_needs(self.bench.codebase, self.lost_symbols(), tests, watched)
            self._needs[tests] = watched, found
        return found

    def first_failing(self, tree: str, ids: Sequence[str]) -> TestRun:
        """Run the tests ``ids`` on one of the trees until one fails, or all of them, once.

        If one fails, those that were not run are no part of the result. The run may be forked.
        """
        tree = self._first_equal(tree)
        key = (*_run_key(tree, ids), "until failure")
        if key not in self.runs:
            run = self.bench.run(self.edits(tree), ids=ids, forked=True, until_failure=True)
            failed = [result for result in run.results if result.status in {Status.FAILED, Status.ERROR}]
            ran = tuple(result for result in run.results if result.status is not Status.MISSING)
            self.runs[key] = replace(run, results=ran) if failed else run
        return self.runs[key]

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """The agents' workspace of the shipped tree, for those who only read it or mount it as a layer.

        In a block of :meth:`one_workspace` it is made once; else it is removed afterwards. Raises
        :class:`SandboxError` if git fails.
        """
        if self._workspace is not None:
            yield self._workspace
        elif self._kept is not None:
            self._workspace = self._kept.enter_context(workspace(self.bench, self.edits("shipped")))
            yield self._workspace
        else:
            with workspace(self.bench, self.edits("shipped")) as made:
                yield made

    @contextmanager
    def one_workspace(self) -> Iterator[None]:
        """Let :meth:`workspace` be the same in this block, and remove it afterwards."""
        with ExitStack() as kept:
            self._kept = kept
            try:
                yield
            finally:
                self._kept = self._workspace = None

    def try_programs(self, ids: Sequence[str]) -> TestRun:
        """Try trivial programs in place of the code, with the tests ``ids`` in order.

        The results are the programs'; their messages are the ids of the first tests that fail. The result of an equal
        earlier run is returned.
        """
        key = (TRIVIAL, tuple(ids), "programs")
        run = self.runs.get(key) or self.bench.run(self.edits(TRIVIAL), ids=ids, forked=True, programs=True)
        if run.worker is WorkerOutcome.OK:
            self.runs[key] = run
        return run

    def has_run(self, tree: str, ids: Sequence[str]) -> bool:
        """Whether :meth:`run` of exactly these tests costs nothing, since it was made before."""
        return _run_key(self._first_equal(tree), ids) in self.runs

    def _first_equal(self, tree: str) -> str:
        """The tree, or ``deleted`` if that is the same: a stub that raises deletes no more than the body."""
        return "deleted" if tree in EMPTY and self.edits(tree) == self.edits("deleted") else tree


def _run_key(
    tree: str, ids: Sequence[str] | None, shuffle_seed: int | None = None, number: int = 0
) -> tuple[object, ...]:
    """What makes two runs equal."""
    return tree, None if ids is None else tuple(sorted(ids)), shuffle_seed, number


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDeletion:
    """A deletion with the tests that it hides. All other trusted tests pass on its shipped tree, apart from
    ``exposed``.

    While the deletion is being planned, some may still fail.
    """

    trees: DeletionTrees
    """The deletion's trees, and the test runs made on them."""
    trusted: frozenset[str]
    """Tests whose results count; all other tests are ignored."""
    exposed: frozenset[str] = frozenset()
    """Tests that need the feature but cannot be hidden (examples in docstrings of code that stays): agents see them
    fail."""

    renamed: frozenset[str] = frozenset()
    """Hidden tests that stay under other ids, as rows before them are gone."""

    @property
    def bench(self) -> Workbench:
        """The repository."""
        return self.trees.bench

    @property
    def deletion(self) -> Deletion:
        """The deletion's patches, removed symbols and hidden tests."""
        return self.trees.deletion

    @property
    def hidden(self) -> frozenset[str]:
        """Tests that are not in the shipped tree."""
        return frozenset(self.deletion.hidden)

    @property
    def shortened(self) -> frozenset[str]:
        """Trusted tests among the hidden ones of which a part stays."""
        return frozenset(self.deletion.shortened) & self.trusted

    @property
    def dependent_tests(self) -> list[str]:
        """Trusted tests that need the feature, or may: what empty solutions are graded by."""
        return sorted((self.hidden | self.exposed) & self.trusted)

    def edits(self, tree: str) -> Edits:
        """See :meth:`DeletionTrees.edits`."""
        return self.trees.edits(tree)

    def run(
        self, tree: str, *, ids: Sequence[str] | None = None, shuffle_seed: int | None = None, number: int = 0
    ) -> TestRun:
        """See :meth:`DeletionTrees.run`."""
        return self.trees.run(tree, ids=ids, shuffle_seed=shuffle_seed, number=number)

    def is_guarded(self, test: str) -> bool:
        """Whether a forged result of the test would be noticed: where no calls tell, it can be mirrored or lifted."""
        grading, path = self.bench.language.grading, path_of(test)
        if not grading.needs_mirrors:
            return True
        found, function = self.bench.read([path]).get(path, b""), name_in_file(without_parameter(test))
        if grading.mirrored(found, [function]) is not None:
            return True
        lifted = grading.lifted(found, [function], ())
        return lifted is not None and bool(lifted.functions)

    def is_gradable(self, test: str) -> bool:
        """Whether the test is in a file that graders restore.

        Examples in docstrings of the sources are not: a solution may change them.
        """
        path = path_of(test)
        return bool(why_kept(self.bench, path, ours=path in self.edits("deleted")))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDeletion(PlannedDeletion):
    """A planned deletion whose tests are divided into those that need the feature and those that do not."""

    fail_to_pass: tuple[str, ...]
    """Gradable tests that need the feature."""
    pass_to_pass: tuple[str, ...]
    """All other gradable trusted tests: they pass without the feature."""
    ungradable: tuple[str, ...] = ()
    """Tests that need the feature but are in files that a solution may change: they are not graded."""
    untold: tuple[str, ...] = ()
    """Tests that need what only the removed code could tell, a detail or what a function does: they are not graded."""

    @property
    def dependent_tests(self) -> list[str]:
        """Trusted tests that need the feature, or may: what empty solutions are graded by."""
        return sorted((self.hidden | self.exposed | set(self.fail_to_pass)) & self.trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(SplitDeletion):
    """A complete task that is not proven yet: the input of the gates."""

    task: Task
    """The task's record, problem statement included."""
    behaviour: RecordedBehaviour | None = None
    """What was recorded of the removed code for the statement's examples; the grading kit needs the same."""


def not_passing(run: TestRun, expected: Sequence[str]) -> dict[str, Status]:
    """The ``expected`` tests that did not pass, with their status (``MISSING`` if not reported)."""
    statuses = run.statuses()
    return {t: s for t in expected if (s := statuses.get(t, Status.MISSING)) is not Status.PASSED}
