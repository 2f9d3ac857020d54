"""An interrupted baseline goes on with the runs that it has made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from excise.config import Settings
from excise.pipeline.stages import baseline_stage as module
from excise.types import Baseline
from excise.verifiers.workbench import Workbench


def test_long_runs_of_an_interrupted_baseline_are_not_made_again(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(cache=tmp_path / "cache", verdict=bench.settings.model_copy(update={"baseline_runs": 3}))
    env = tmp_path / "environment" / "layer"
    env.parent.mkdir()
    env.symlink_to(bench.prepared.layers.env)
    prepared = replace(bench.prepared, baseline=None, layers=replace(bench.prepared.layers, env=str(env)))
    made: list[int | None] = []
    interrupt = [True]
    run = Workbench.run

    def counted(self: Workbench, edits: object, **options: object) -> object:
        made.append(options.get("shuffle_seed"))  # type: ignore[arg-type]
        if len(made) == 3 and interrupt:
            interrupt.clear()
            raise KeyboardInterrupt
        return run(self, edits, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Workbench, "run", counted)
    monkeypatch.setattr(module, "MIN_KEPT_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        module.baseline_stage(settings, "shapes", prepared)
    assert len(made) == 3
    found = module.baseline_stage(settings, "shapes", prepared)
    assert len(made) == 4, "of three runs the last one only"
    assert made[3] is not None, "which is shuffled"
    assert not isinstance(found, Exception)
    assert isinstance(found.baseline, Baseline)  # type: ignore[union-attr]
    assert found.baseline.num_runs == 3  # type: ignore[union-attr]
