"""Gate 11: an adversary with every trick of leaks.md, in the agent's own sandbox, does not get the code back."""

from __future__ import annotations

from dataclasses import dataclass

from excise.protocols import GateReport
from excise.types import Outcome, TestRun, Verdict, Worker
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.candidate import Candidate
from excise.verifiers.recovery.inside.all_strategies import STRATEGIES
from excise.verifiers.recovery.reconstruction import by_strategy, passes, reconstruction
from excise.verifiers.recovery.recovery_attempt import Attempt, attempt
from excise.verifiers.recovery.scoring import MIN_LINES, Deleted, Recovered, deleted_of, judge, lines_of

TRY_SHARE = 0.2
"""A patch is built and tried when so much was recovered, leak or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What the recovery agent got out of one task."""

    attempt: Attempt
    """The attempt itself."""
    rates: dict[str, Recovered]
    """By strategy; those that got nothing are left out."""
    total: Recovered
    """All strategies together."""
    passing: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that pass with a patch made of what was recovered."""

    @property
    def succeeded(self) -> bool:
        """Source text or byte code came back, or enough to make a hidden test pass."""
        return self.total.leaks or bool(self.passing)


class NothingIsRecovered:
    """Gate 11."""

    name = "g11_recovery"
    claim = (
        f"{len(STRATEGIES)} scripted ways to recover the code from inside the agent's own sandbox bring back less than "
        "half of its telling lines, none of its byte code, and no patch that makes a hidden test pass"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Open the sandbox of an agent, run every strategy in it, and judge what they bring by content."""
        recovery = recover(candidate)
        done = recovery.attempt.completed
        run = TestRun(worker=done.worker, cpu_s=done.cpu_s, wall_s=done.wall_s)
        if not recovery.attempt.finished and not recovery.succeeded:
            problem = f"The strategies did not come to their end: {recovery.attempt.problems.get('all', '')}"
            reason = "recovery_unfinished" if done.worker is Worker.OK else str(done.worker)
            verdict = candidate.verdict(self.name, run, Outcome.UNDECIDED, reason=reason, detail=problem)
            return GateReport(verdicts=[verdict])
        return GateReport(verdicts=[self._verdict(candidate, recovery, run)])

    def _verdict(self, candidate: Candidate, recovery: Recovery, run: TestRun) -> Verdict:
        total = recovery.total
        got = "; ".join(f"{name}: {rate.level} {rate.share:.0%}" for name, rate in recovery.rates.items())
        evidence = {
            "strategies": str(len(recovery.attempt.seconds)),
            "recovery_rate": f"{total.share:.3f}",
            "recovered_lines": str(total.num_lines),
            "recovered_code_objects": str(len(total.shapes)),
            "files_listed": str(recovery.attempt.num_files),
            "bytes_read": str(recovery.attempt.bytes_read),
        }
        if got:
            evidence |= {"by_strategy": got[:1000], "where": ", ".join(total.where)[:1000]}
        if recovery.attempt.problems:
            evidence["problems"] = "; ".join(f"{n}: {p}" for n, p in recovery.attempt.problems.items())[:1000]
        problem = f"{total.level or 'A patch'} recovered by {got or 'no strategy alone'} from {', '.join(total.where)}."
        if recovery.passing:
            problem += f" {len(recovery.passing)} hidden tests pass with a patch made of it."
        return candidate.judged(
            self,
            run,
            not recovery.succeeded,
            reason="recovered",
            problem=problem,
            num_tests=len(recovery.passing),
            evidence=evidence,
        )


def recover(candidate: Candidate, *, thorough: bool = False) -> Recovery:
    """Attack one task's workspace, and judge the outcome. Raises :class:`excise.errors.SandboxError`."""
    bench = candidate.bench
    with workspace(bench, candidate.edits("shipped")) as place, place.open() as session:
        tried = attempt(
            session,
            candidate.deletion.removed,
            distribution=bench.repo.repo.rpartition("/")[2],
            packages=bench.recipe.packages,
            thorough=thorough,
        )
    bench.spent = bench.spent.plus(tried.completed.cpu_s, tried.completed.wall_s)
    return judged(candidate, tried)


def judged(candidate: Candidate, tried: Attempt) -> Recovery:
    """What an attempt was worth; a patch is built of it and tried if there is enough for one."""
    deleted = deleted_in(candidate)
    given: list[set[str]] = []

    def free() -> set[str]:
        if not given:
            given.append(shipped_lines(candidate))
        return given[0]

    rates = {name: judge(deleted, pieces, free) for name, pieces in by_strategy(tried.pieces).items()}
    rates = {name: rate for name, rate in rates.items() if rate.level}
    total = judge(deleted, tried.pieces, free)
    passing: tuple[str, ...] = ()
    if total.leaks or (total.share >= TRY_SHARE and total.num_lines >= MIN_LINES):
        edits = reconstruction(candidate, deleted, tried.pieces)
        passing = passes(candidate, edits) if edits else ()
    return Recovery(attempt=tried, rates=rates, total=total, passing=passing)


def deleted_in(candidate: Candidate) -> Deleted:
    """What a candidate's deletion took out."""
    modules = candidate.bench.codebase.modules
    paths = {symbol.partition("::")[0] for symbol in candidate.deletion.removed}
    sources = {path: modules[path].source.decode(errors="replace") for path in paths if path in modules}
    return deleted_of(candidate.deletion.text, sources)


def shipped_lines(candidate: Candidate) -> set[str]:
    """Lines of every text file of the tree as the agent gets it."""
    bench, edits = candidate.bench, candidate.edits("shipped")
    found: set[str] = set()
    for path in {*bench.paths, *edits}:
        file = bench.root / path
        data = edits[path] if path in edits else file.read_bytes() if file.is_file() else None
        if data and b"\0" not in data[:4096]:
            found |= lines_of(data.decode(errors="replace"))
    return found
