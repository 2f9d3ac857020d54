"""Inspects one foreign task: what its files give away, then everything that can be run; called on a worker."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from excise.config import Settings
from excise.datasets.rows import RepoRows
from excise.datasets.storage.store import Store
from excise.envs.install.failure_classes import advice_for
from excise.envs.interpreters import find_interpreters
from excise.errors import ExciseError
from excise.extractors.fetch.trees import pack
from excise.pipeline.services.foreign_attacks import AttackedGraders, attack_graders
from excise.pipeline.services.foreign_sources import SolvedSources, fetch_solved
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.environment_stage import environment_stage, open_workbench
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.system.folders import temporary_folder_beside
from excise.types import ForeignTask, GateOutcome, Rejection, Repo, RepoReport, SourceSpec, content_id, to_json
from excise.verifiers.imported_task import ImportedClaims, ImportedProof, prove_imported
from excise.verifiers.recovery.scoring import distinctive_lines
from excise.verifiers.workbench import Prepared, Workbench

LANGUAGES = frozenset({"python", "py"})
"""Languages of tasks that can be run."""
MIN_GIVEN_LINES = 3
"""Lines of the gold patch from which on a text gives it away."""
IMPORTED, REFUSED, NOT_RUN, BAD_ROW = "imported", "refused", "not_run", "bad_row"
"""What becomes of a row: a task of the set; run, and a check failed; not run; no task."""


@dataclass(slots=True, kw_only=True)
class Inspection:
    """What came of one foreign task."""

    status: str = NOT_RUN
    """``imported``, ``refused`` or ``not_run``."""
    reason: str = ""
    """Machine-readable code; empty for an imported task."""
    detail: str = ""
    """A sentence for users."""
    advice: str = ""
    """What to do about it."""
    retry: bool = False
    """Whether the infrastructure failed, so that another try may have another result."""
    checks: dict[str, str] = field(default_factory=dict)
    """Check to ``passed``, ``failed: …`` or ``not run: …``, in order."""
    proof: ImportedProof = field(default_factory=ImportedProof)
    """What the tests and the gates said."""
    attacks: AttackedGraders = field(default_factory=AttackedGraders)
    """What the attacks got."""
    history: str = ""
    """How the project's history gives the solution away."""
    given: str = ""
    """Texts of the set that give the solution away."""
    rows: RepoRows | None = None
    """The rows of an imported task."""
    wall_s: float = 0.0
    """Wall seconds."""


def inspect_foreign(settings: Settings, task: ForeignTask, repos: Path | None, attacks: int) -> Inspection:
    """Check one foreign task; a failure is a result with its reason, never an exception.

    ``repos`` is a folder of local repositories to use instead of the network; ``attacks`` the number of attacks of each
    vector.
    """
    began, found = time.monotonic(), Inspection()
    try:
        _inspect(settings, task, repos, attacks, found)
    except Exception as error:  # the boundary: an error is what came of this task
        _fail(found, rejection_of("import", task.instance_id, error))
    found.wall_s = round(time.monotonic() - began, 1)
    return found


def _fail(found: Inspection, rejection: Rejection) -> None:
    found.status = NOT_RUN
    found.reason, found.detail = rejection.reason, rejection.detail
    found.advice = ADVICE.get(rejection.reason) or advice_for(rejection.reason)
    found.retry = not is_conclusive(rejection)
    found.checks.setdefault(rejection.stage, f"failed: {rejection.detail}")


ADVICE = {
    "no_repository": "Add repo and base_commit to the task, or look at it with the tool it was made for.",
    "no_local_repository": "Clone it into the folder of --repos, or leave --repos out to fetch it.",
    "no_such_revision": "Compare base_commit with the repository; a shallow clone may lack it.",
    "patch_does_not_apply": "The patch was made for other sources: compare base_commit.",
    "unsafe_path": "Do not run this set: its patch writes outside the checkout.",
    "not_a_regular_file": "Do not run this set unchecked: its patch makes links.",
    "unsupported_language": "Only Python projects tested with pytest can be run.",
    "no_gold_patch": "Add the gold patch as solution/gold.patch, or as patch in the metadata.",
}
"""Reason to what a user can do, for reasons that only imports have."""


def _inspect(settings: Settings, task: ForeignTask, repos: Path | None, attacks: int, found: Inspection) -> None:
    found.given = "; ".join(_given_away(task))
    found.checks["texts"] = f"failed: {found.given}" if found.given else "passed"
    if task.language not in LANGUAGES:
        detail = f"The task is in {task.language}."
        _fail(found, _rejection(task, "language", "unsupported_language", detail))
        return
    try:
        solved = fetch_solved(settings, task, repos)
    except ExciseError as error:
        _fail(found, rejection_of("sources", task.instance_id, error))
        return
    found.checks["sources"] = "passed"
    found.history = solved.history
    found.checks["history"] = f"failed: {solved.history}" if solved.history else "passed"
    prepared = _prepare(settings, task, solved)
    if isinstance(prepared, Rejection):
        _fail(found, prepared)
        return
    found.checks |= {"environment": "passed", "baseline": "passed"}
    bench = open_workbench(settings, prepared)
    found.proof = proof = prove_imported(bench, _claims(task, solved))
    found.status, found.reason, found.detail = (REFUSED if proof.reason else IMPORTED), proof.reason, proof.detail
    found.retry = not proof.decided
    found.checks["tests"] = f"failed: {proof.detail}" if proof.task is None else "passed"
    for row in proof.verdicts:
        if row.outcome is not GateOutcome.PASSED:
            word = "failed" if row.outcome is GateOutcome.FAILED else "not decided"
            found.checks[row.gate] = f"{word}: {row.detail}"
        else:
            found.checks.setdefault(row.gate, "passed")
    if attacks:
        _attack(bench, attacks, found)
    if found.status == IMPORTED:
        found.rows = _rows(settings, bench, proof, task)


def _given_away(task: ForeignTask) -> list[str]:
    """The texts that a solver gets and that hold most of what the gold patch adds."""
    solution = task.patch or task.bug_patch
    sign, other = ("+", "-") if task.patch else ("-", "+")
    had = {line[1:].strip() for line in solution.splitlines() if line.startswith(other)}
    added = [
        line[1:]
        for line in solution.splitlines()
        if line.startswith(sign) and not line.startswith(sign * 3) and line[1:].strip() not in had
    ]
    wanted = distinctive_lines("\n".join(added)) or distinctive_lines(task.solution_script)
    texts = [("the statement", task.problem_statement), ("hints_text", task.hints_text), *task.environment_files]
    shares = [(name, len(wanted & distinctive_lines(text)), len(wanted)) for name, text in texts]
    return [
        f"{name} holds {count} of the solution's {total} lines"
        for name, count, total in shares
        if count >= min(MIN_GIVEN_LINES, total) and 2 * count >= total > 0
    ]


def _prepare(settings: Settings, task: ForeignTask, solved: SolvedSources) -> Prepared | Rejection:
    """The solved sources with environment and baseline: with what the set says about it, else without."""
    plain = SourceSpec(spec=solved.sources.repo.source)
    minor = ".".join(task.python.split(".")[:2])
    known = {".".join(interpreter.version.split(".")[:2]) for interpreter in find_interpreters()}
    hinted = replace(plain, python=minor if minor in known else None, requirements=task.requirements)
    answer: Prepared | Rejection | None = None
    for spec in dict.fromkeys((hinted, plain)):
        answer = environment_stage(settings, task.instance_id, spec, solved.sources)
        if not isinstance(answer, Rejection):
            answer = baseline_stage(settings, task.instance_id, _with_own_tests(answer, task))
        if not isinstance(answer, Rejection):
            return answer
    assert isinstance(answer, Rejection)
    return answer


def _with_own_tests(prepared: Prepared, task: ForeignTask) -> Prepared:
    """The same with folders of tests that only the set knows; the project's settings do not name them."""
    environment, own = prepared.environment, {path.partition("/")[0] for path, _ in task.test_files}
    missing = sorted(own - set(environment.recipe.test_paths))
    if not missing:
        return prepared
    recipe = replace(environment.recipe, test_paths=(*environment.recipe.test_paths, *missing))
    env_id = content_id("with tests", environment.env_id, *missing)[: len(environment.env_id)]
    return replace(prepared, environment=replace(environment, recipe=recipe, env_id=env_id))


def _claims(task: ForeignTask, solved: SolvedSources) -> ImportedClaims:
    return ImportedClaims(
        instance_id=task.instance_id,
        problem_statement=task.problem_statement,
        hints_text=task.hints_text,
        interface=task.interface,
        version=task.version,
        shipped=solved.shipped,
        test_paths=solved.test_paths,
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=task.pass_to_pass,
    )


def _attack(bench: Workbench, each: int, found: Inspection) -> None:
    """Attack the graders of a task whose claims about tests hold."""
    task = found.proof.task
    if task is None:
        found.checks["attacks"] = "not run: the tests do not say what a solution is"
        return
    if not any(path.endswith(".py") for path in bench.edits_of(task.patch and task.deletion_patch)):
        found.checks["attacks"] = "not run: the gold patch changes no Python file"
        return
    try:
        found.attacks = attacked = attack_graders(bench, task, found.proof.kit, each)
    except (ExciseError, ValueError, KeyError) as error:
        found.checks["attacks"] = f"not run: {error}"
        return
    parts = [f"excise rewards {', '.join(attacked.by_excise)}"] if attacked.by_excise else []
    parts += [f"wrong rewards: {', '.join(attacked.wrong)}"] if attacked.wrong else []
    found.checks["attacks"] = f"failed: {'; '.join(parts)}" if parts else "passed"


def _rejection(task: ForeignTask, stage: str, reason: str, detail: str) -> Rejection:
    return Rejection(repo=task.repo, stage=stage, subject=task.instance_id, reason=reason, detail=detail)


def _rows(settings: Settings, bench: Workbench, proof: ImportedProof, task: ForeignTask) -> RepoRows:
    """The rows to publish; the archive of the sources and the grading kit are stored in the set."""
    assert proof.task is not None
    assert proof.certificate is not None
    prepared = bench.prepared
    store = Store(settings.out)
    if proof.kit is not None:
        store.put_blob(to_json(proof.kit), ".json")
    repo = replace(prepared.repo, blob=_archive(store, bench.root, settings))
    return RepoRows(
        repo=repo,
        spec=SourceSpec(spec=repo.source),
        report=_report(repo, bench, proof, task),
        environment=prepared.environment,
        baseline=prepared.baseline,
        tasks=(proof.task,),
        certificates=(proof.certificate,),
    )


def _archive(store: Store, root: Path, settings: Settings) -> str:
    with temporary_folder_beside(settings.cache / "trees" / "packed") as work:
        archive = work / "sources.tar.xz"
        pack(root, archive)
        return store.put_blob(archive)


def _report(repo: Repo, bench: Workbench, proof: ImportedProof, task: ForeignTask) -> RepoReport:
    baseline = bench.baseline
    return RepoReport(
        repo=repo.repo,
        source=repo.source,
        status="ok",
        detail=f"{task.format}: {task.instance_id}",
        num_tests=len({*baseline.statuses, *baseline.flaky}),
        num_passing=len(baseline.passing()),
        num_flaky=len(baseline.flaky),
        num_candidates=1,
        num_valid=1,
        cpu_s=proof.certificate.cpu_s if proof.certificate else 0.0,
        wall_s=proof.certificate.wall_s if proof.certificate else 0.0,
    )
