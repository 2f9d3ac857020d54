"""The baseline stage: finds the tests of the untouched project that pass in every run.

Comes after :mod:`excise.pipeline.stages.environment_stage` (or :mod:`excise.pipeline.stages.model_stage`);
:mod:`excise.pipeline.stages.coverage_stage` is next. The runs are made and compared in
:mod:`excise.verifiers.baseline`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from excise.config import Settings
from excise.errors import EnvironmentFailure
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.run_files import KeptLayer
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.system.deadline import deadline
from excise.types import Baseline, ExecutedCode, TestRun, WorkerOutcome
from excise.verifiers.baseline import max_baseline_s, run_baseline
from excise.verifiers.workbench import Prepared, Workbench

MIN_KEPT_S = 20.0
"""Wall seconds of a run from which on it is kept, so that an interrupted baseline goes on with it."""


def baseline_key(settings: Settings, prepared: Prepared) -> str:
    """The cache key of a project's baseline."""
    return stage_key("baseline", prepared.environment.env_id, measurement_fingerprint(settings))


def first_run(settings: Settings, prepared: Prepared) -> ExecutedCode | None:
    """What the tests executed in the first run of the baseline, if that was noted."""
    key = stage_key("executed", baseline_key(settings, prepared))
    found = StageCache(settings.cache).get(ExecutedCode, "executed", key)
    return found if isinstance(found, ExecutedCode) else None


@stage("baseline")
def baseline_stage(settings: Settings, prepared: Prepared) -> Prepared:
    """Run the untouched project's tests several times; the build outputs of the first run become a layer.

    What the tests of that run executed is cached for the coverage stage.
    """
    key = baseline_key(settings, prepared)
    cache = StageCache(settings.cache)
    kept = cache.get(KeptLayer, "byte code", stage_key("byte code", key))
    bench = open_workbench(settings, prepared)
    fresh = Path(prepared.layers.env).parent / "pyc" if bench.language.keeps_outputs else Path(prepared.layers.outputs)
    outputs = Path(kept.path) if isinstance(kept, KeptLayer) else fresh
    baseline = cache.get_or_raise(Baseline, "baseline", key)
    if baseline is None or not outputs.is_dir():
        outputs = fresh
        try:
            with deadline(max_baseline_s(settings.verdict) + STAGE_GRACE_S, f"The baseline of {prepared.repo.repo}"):
                warm = fresh if bench.language.keeps_outputs else None
                finished = partial(_finished, cache, key, bench, warm)
                note = partial(cache.put, "executed", stage_key("executed", key))
                baseline = run_baseline(bench, warm, note, finished)
        except EnvironmentFailure as failure:
            cache.put_failure("baseline", key, prepared.repo.repo, failure)
            raise
        cache.put("byte code", stage_key("byte code", key), KeptLayer(path=str(outputs)))
        cache.put("baseline", key, baseline)
    return replace(prepared, baseline=baseline, layers=replace(prepared.layers, outputs=str(outputs)))


def _finished(
    cache: StageCache, key: str, bench: Workbench, outputs: Path | None, number: int, make: Callable[[], TestRun]
) -> TestRun:
    """The run of a number that an interrupted baseline made, if it took long; else it is made, and kept if it does.

    The first run also makes ``outputs``, which later ones use: without these it is made again.
    """
    own = stage_key("baseline", key, "run", number)
    kept = cache.get(TestRun, "baseline", own) if number or outputs is None or outputs.is_dir() else None
    if isinstance(kept, TestRun):
        if not number and outputs is not None:
            bench.use_outputs(outputs)
        return kept
    made = make()
    if made.worker is WorkerOutcome.OK and made.finished and made.wall_s >= MIN_KEPT_S:
        cache.put("baseline", own, made)
    return made
