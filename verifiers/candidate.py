"""What a candidate is at each step on its way to a task, one record a step, and the test runs that the steps share.

=========================  ====================================================  =============================
record                     what is known                                         made by
=========================  ====================================================  =============================
:class:`PlannedDeletion`   patches, and the tests to hide                        :mod:`verifiers.settle`
:class:`SplitDeletion`     FAIL_TO_PASS and PASS_TO_PASS                         :mod:`verifiers.build_candidate`
:class:`Candidate`         the task's record with its statement                  :mod:`verifiers.build_candidate`
``prove.Proof``            task, certificate and grading kit, or a rejection     :mod:`verifiers.prove`
=========================  ====================================================  =============================

Each record has everything of the one above it, and nothing in it is empty "until later". The gates check a
:class:`Candidate`; ``stored_tasks`` makes one from a task set's files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from excise.deleters.edits.empty_bodies import EMPTY
from excise.errors import ExciseError
from excise.types import Deletion, Status, Task, TestRun
from excise.verifiers.grading.intake import why_kept
from excise.verifiers.workbench import Edits, Workbench

TREES = ("base", "shipped", "deleted", *EMPTY)
"""``base`` (untouched), ``shipped`` (code and hidden tests removed), ``deleted`` (code removed, all tests in: what
grading an empty diff sees), and ``none``, ``raise`` and ``any`` (the code replaced by empty stubs)."""


class Rejected(ExciseError):
    """A candidate is refused; carries the test run that decided it, if one did."""

    def __init__(self, message: str, *, reason: str | None = None, run: TestRun | None = None) -> None:
        super().__init__(message, reason=reason)
        self.run = run


@dataclass(slots=True, kw_only=True)
class DeletionTrees:
    """The six trees of a deletion (:data:`TREES`), and every test run made on them: equal runs are made once."""

    bench: Workbench
    """The repository."""
    deletion: Deletion
    """Patches and names."""
    runs: dict[tuple[object, ...], TestRun] = field(default_factory=dict)
    """Runs so far, by tree, test ids, shuffle seed and number."""
    _edits: dict[str, Edits] = field(default_factory=dict)

    def edits(self, tree: str) -> Edits:
        """What distinguishes one of :data:`TREES` from the base tree. Raises :class:`PatchError`."""
        if tree not in self._edits:
            deletion = self.deletion
            patches = {
                "base": (),
                "shipped": (deletion.source_patch, deletion.hide_patch),
                "deleted": (deletion.source_patch,),
                **{stub: (patch,) for stub, patch in deletion.stub_patches},
            }
            self._edits[tree] = self.bench.edits_of(*patches[tree])
        return self._edits[tree]

    def run(
        self, tree: str, *, ids: Sequence[str] | None = None, shuffle_seed: int | None = None, number: int = 0
    ) -> TestRun:
        """Run all tests, or exactly ``ids``, on one of the trees in a fresh sandbox.

        An equal run made before is returned again; another ``number`` makes it anew.
        """
        key = (tree, None if ids is None else tuple(sorted(ids)), shuffle_seed, number)
        if key not in self.runs:
            self.runs[key] = self.bench.run(self.edits(tree), ids=ids, shuffle_seed=shuffle_seed)
        return self.runs[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDeletion:
    """A deletion with the tests that it hides. It is *settled* once every other trusted test passes on its tree."""

    trees: DeletionTrees
    """Its trees, and the test runs made on them."""
    trusted: frozenset[str]
    """Tests whose results count: every other test is ignored."""
    exposed: frozenset[str] = frozenset()
    """Tests that should be hidden and cannot be (examples in docstrings of code that stays): they fail visibly."""

    @property
    def bench(self) -> Workbench:
        """The repository."""
        return self.trees.bench

    @property
    def deletion(self) -> Deletion:
        """Patches and names."""
        return self.trees.deletion

    @property
    def hidden(self) -> frozenset[str]:
        """Tests that the deletion takes out of the visible tree."""
        return frozenset(self.deletion.hidden)

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

    def is_gradable(self, test: str) -> bool:
        """Whether the test lies in a file that graders restore.

        Examples in docstrings of the sources do not: a solution may change them.
        """
        path = test.partition("::")[0]
        return bool(why_kept(self.bench, path, ours=path in self.edits("deleted")))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDeletion(PlannedDeletion):
    """A settled deletion whose tests are divided into those that need the feature and those that do not."""

    fail_to_pass: tuple[str, ...]
    """Gradable tests that need the feature."""
    pass_to_pass: tuple[str, ...]
    """All other gradable trusted tests: they pass without it."""
    ungradable: tuple[str, ...] = ()
    """Tests that need the feature, in files that a solution may change: no grade asks for them."""

    @property
    def dependent_tests(self) -> list[str]:
        """Trusted tests that need the feature, or may: what empty solutions are graded by."""
        return sorted((self.hidden | self.exposed | set(self.fail_to_pass)) & self.trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(SplitDeletion):
    """A task that is complete but not proven: what the gates check."""

    task: Task
    """The task's record, problem statement included."""


def not_passing(run: TestRun, expected: Sequence[str]) -> dict[str, Status]:
    """Of the ``expected`` tests, those that did not pass, with their status (``MISSING`` for those not reported)."""
    statuses = run.statuses()
    return {t: s for t in expected if (s := statuses.get(t, Status.MISSING)) is not Status.PASSED}
