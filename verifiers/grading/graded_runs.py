"""Graded runs: running a project's tests, with edits, in the sandboxes that graders use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from excise.envs.sandbox.mount_points import OUTPUTS, REPO, project_mounts
from excise.protocols import ForkServer, GradedRun, GradedRunRequest, GradingMode, LiftedRun, Mount, Session
from excise.system.folders import make_folder_once
from excise.verifiers.shipped_tree import scrubbed
from excise.verifiers.workbench import Edits, Workbench

T = TypeVar("T")


def grading_mounts(bench: Workbench, *, trusted: bool = False) -> list[Mount]:
    """Mounts of a grader's sandbox: untouched sources, no build outputs of the project, and no place to write any.

    ``trusted``: what runs is the original code, and may find its build outputs.
    """
    layers = bench.prepared.layers
    sources = [Path(layers.built), bench.root]
    mounts = project_mounts(bench.interpreter, sources, [Path(layers.env)], inside=bench.language.inside)
    outputs = layers.outputs if trusted else str(_foreign_outputs(bench))
    return [*mounts, Mount(target=OUTPUTS, layers=(outputs,))]


def _foreign_outputs(bench: Workbench) -> Path:
    """A layer with the build outputs of all code except the project's own, which would contain the deleted code.

    Made once per environment.
    """
    if not bench.language.keeps_outputs:  # they are never the project's
        return Path(bench.prepared.layers.outputs)
    folder = Path(bench.prepared.layers.env).parent / "grading-pyc"
    if folder.is_dir():
        return folder
    warm = Path(bench.prepared.layers.outputs)
    if not any(warm.iterdir()):
        warm = folder.with_name("grading-pyc-warm")
        bench.run({}, keep_outputs=warm)
    own = str(warm / REPO.strip("/"))

    def link_foreign(work: Path) -> None:
        if warm.is_dir():
            shutil.copytree(
                warm,
                work,
                copy_function=os.link,
                ignore=lambda where, names: set(names) if where == own else set(),
                dirs_exist_ok=True,
            )

    return make_folder_once(folder, link_foreign)


def open_grading(
    bench: Workbench, edits: Edits, *, trusted: bool = False, fork_server: ForkServer | None = None
) -> Session:
    """A fresh sandbox for a graded run of the base tree with ``edits``; ``trusted``: see :func:`grading_mounts`.

    ``fork_server``: the command that it is for, if it may be forked.
    """
    inside = {f"{REPO}/{path}": data for path, data in {**_without_build_outputs(bench), **edits}.items()}
    mounts = grading_mounts(bench, trusted=trusted)
    return bench.sandbox.open(
        mounts, bench.policy, env=bench.variables, edits=inside, system=bench.system, fork_server=fork_server
    )


def _without_build_outputs(bench: Workbench) -> Edits:
    """Edits that delete build outputs that agents do not get, since they may contain copies of the sources."""
    built = Path(bench.prepared.layers.built)
    files = [path.relative_to(built).as_posix() for path in built.rglob("*") if path.is_file()]
    artefacts = scrubbed(files, bench.repo.language)
    return {path: None for path in files if path in artefacts or path.startswith(("build/", "dist/"))}


def mode_of(bench: Workbench) -> GradingMode:
    """The strictest grading mode that the language supports for this project."""
    return bench.language.grading.mode(bench.root, Path(bench.prepared.layers.env))


def graded_run(
    bench: Workbench,
    edits: Edits,
    ids: Sequence[str],
    mode: GradingMode,
    *,
    canaries: Mapping[str, float] | None = None,
    sealed: Mapping[str, str] | None = None,
    lifted: LiftedRun | None = None,
    timed: Sequence[str] | None = None,
    trusted: bool = False,
    forked: bool = False,
) -> GradedRun:
    """Run exactly ``ids`` as graders do, on the base tree with ``edits``, ``trusted`` or not (``grading_mounts``).

    ``timed``: the tests whose durations give the time limits, where ``ids`` are not those of the baseline. ``forked``:
    everything that runs is trusted, so that supervisor and worker may be forked from one process
    (:func:`run_forked`).
    """
    timed = ids if timed is None else timed
    request = GradedRunRequest(
        mode=mode,
        ids=ids,
        canaries=canaries or {},
        sealed=sealed or {},
        lifted=lifted,
        timeout_s=bench.suite_timeout_s(timed),
        test_timeout_s=bench.test_timeout_s(timed),
    )
    grading = bench.language.grading

    def work(session: Session) -> GradedRun:
        return grading.run_graded(session, bench.recipe, request)

    if forked:
        return run_forked(bench, edits, grading.run_server(bench.recipe, request), work, _results)
    with open_grading(bench, edits, trusted=trusted) as session:
        return work(session)


def run_forked(
    bench: Workbench,
    edits: Edits,
    server: ForkServer | None,
    work: Callable[[Session], T],
    results: Callable[[T], object] = lambda found: found,
) -> T:
    """What ``work`` finds in a sandbox that forks ``server``, on the base tree with ``edits``, which are trusted.

    Without a server, nothing is forked. Where :attr:`Workbench.repeats` is set, it is found once more without forks,
    and that is returned; ``results`` are those parts of it that must be equal.
    """
    with open_grading(bench, edits, trusted=True, fork_server=server) as session:
        found = work(session)
    if server is None or bench.repeats is None:
        return found
    with open_grading(bench, edits, trusted=True) as session:
        again = work(session)
    bench.repeats.note(agree=results(found) == results(again))
    return again


def _results(graded: GradedRun) -> tuple[object, ...]:
    """What two equal graded runs have in common."""
    return graded.run.worker, graded.run.statuses(), dict(graded.seen), dict(graded.numbered)
