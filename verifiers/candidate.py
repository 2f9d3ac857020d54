"""A deletion on its way to a task: what was planned, and every run made for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from excise.deleters.edits.empty_bodies import EMPTY
from excise.types import Deletion, GradingKit, Outcome, Status, Task, TestRun, Verdict, Worker
from excise.verifiers.grading.intake import why_kept
from excise.verifiers.workbench import Edits, Workbench


class Claimed(Protocol):
    """What a verdict row takes from its gate."""

    name: str
    claim: str


TREES = ("base", "shipped", "deleted", *EMPTY)


@dataclass(slots=True, kw_only=True)
class Candidate:
    """The subject of the gates.

    Six trees are run: ``base`` (untouched), ``shipped`` (code and hidden tests out), ``deleted`` (code out,
    all tests in: what grading a no-op sees), and ``none``, ``raise`` and ``any`` (code replaced by empty
    stand-ins).
    """

    bench: Workbench
    """The repository."""
    deletion: Deletion
    """Patches and names."""
    instance_id: str
    """Id for the verdict rows."""
    fail_to_pass: tuple[str, ...] = ()
    """Tests that need the feature."""
    pass_to_pass: tuple[str, ...] = ()
    """All other trusted tests that pass without it."""
    uncounted: tuple[str, ...] = ()
    """Tests that need the feature, too, in files that a solution may change: no grade asks for them."""
    statement: str = ""
    """The problem statement, once written."""
    interface: str = ""
    """Public names that the hidden tests use."""
    trusted: frozenset[str]
    """Tests whose word counts: every other one is ignored."""
    exposed: frozenset[str] = frozenset()
    """Tests that were to be hidden and could not be (examples in docstrings of code that stays): they fail in sight."""
    task: Task | None = None
    """The task, once built."""
    kit: GradingKit | None = None
    """What graders need beside the task, once made."""
    runs: dict[tuple[object, ...], TestRun] = field(default_factory=dict)
    """Runs made so far; equal input is not run twice."""
    _edits: dict[str, Edits] = field(default_factory=dict)

    def edits(self, tree: str) -> Edits:
        """What distinguishes one of :data:`TREES` from the base tree. Raises :class:`PatchError`."""
        if tree not in self._edits:
            deletion = self.deletion
            stubs = dict(deletion.stub_patches)
            patches = {
                "base": (),
                "shipped": (deletion.source_patch, deletion.hide_patch),
                "deleted": (deletion.source_patch,),
            }
            chosen = patches[tree] if tree in patches else (stubs[tree],)
            self._edits[tree] = self.bench.edits_of(*chosen)
        return self._edits[tree]

    def run(
        self, tree: str, *, ids: Sequence[str] | None = None, shuffle_seed: int | None = None, number: int = 0
    ) -> TestRun:
        """Run tests on one of the trees, in a fresh sandbox; an equal run made before is not repeated."""
        key = (tree, None if ids is None else tuple(sorted(ids)), shuffle_seed, number)
        if key not in self.runs:
            run = self.bench.run(self.edits(tree), ids=ids, shuffle_seed=shuffle_seed)
            self.runs[key] = run
        return self.runs[key]

    @property
    def graded(self) -> list[str]:
        """Trusted tests that depend, or may depend, on the feature: what empty solutions are graded by."""
        return sorted((self.hidden | self.exposed | set(self.fail_to_pass)) & self.trusted)

    def counts(self, test: str) -> bool:
        """Whether the test lies in a file that graders keep: examples in docstrings of the sources are a solution's."""
        path = test.partition("::")[0]
        return bool(why_kept(self.bench, path, ours=path in self.edits("deleted")))

    @property
    def hidden(self) -> frozenset[str]:
        """Tests that the deletion takes out of the visible tree."""
        return frozenset(self.deletion.hidden)

    def judged(
        self,
        gate: Claimed,
        run: TestRun | None,
        good: bool,
        *,
        reason: str,
        problem: str,
        number: int = 0,
        num_tests: int = 0,
        statuses: dict[str, Status] | None = None,
        evidence: dict[str, str] | None = None,
    ) -> Verdict:
        """A gate's verdict row: its claim if it holds, else the reason and the problem."""
        return self.verdict(
            gate.name,
            run,
            Outcome.PASSED if good else Outcome.FAILED,
            number=number,
            reason=reason,
            detail=gate.claim if good else problem,
            num_tests=num_tests,
            statuses=statuses,
            evidence=evidence,
        )

    def verdict(
        self,
        gate: str,
        run: TestRun | None,
        outcome: Outcome,
        *,
        number: int = 0,
        reason: str = "",
        detail: str = "",
        num_tests: int = 0,
        statuses: dict[str, Status] | None = None,
        evidence: dict[str, str] | None = None,
    ) -> Verdict:
        """A verdict row about this candidate; a run that did not happen decides nothing."""
        worker = run.worker if run is not None else Worker.OK
        if run is not None and run.results:
            evidence = (evidence or {}) | {"statuses_sha256": self._fingerprint(run)}
        if worker in {Worker.INFRA_ERROR, Worker.KILLED} and outcome is not Outcome.PASSED:
            outcome = Outcome.UNDECIDED
        return Verdict(
            instance_id=self.instance_id,
            gate=gate,
            run=number,
            worker_outcome=worker,
            outcome=outcome,
            reason="" if outcome is Outcome.PASSED else reason or str(worker),
            detail=detail,
            num_tests=num_tests,
            statuses=statuses or {},
            evidence=evidence or {},
            cpu_s=round(run.cpu_s, 3) if run else 0.0,
            wall_s=round(run.wall_s, 3) if run else 0.0,
        )

    def _fingerprint(self, run: TestRun) -> str:
        """Hash of what every trusted test of a run said, where the row itself lists only some of them."""
        said = sorted((test, str(status)) for test, status in run.statuses().items() if test in self.trusted)
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def exceptions(run: TestRun, expected: Sequence[str]) -> dict[str, Status]:
    """Of the expected tests those that did not pass."""
    statuses = run.statuses()
    return {t: s for t in expected if (s := statuses.get(t, Status.MISSING)) is not Status.PASSED}
