"""Metrics of a run: their values, the files, a tracker and the plot."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from excise.errors import ConfigError
from excise.trainer.reporting.metrics import (
    MetricsWriter,
    group_metrics,
    model_flops,
    plot_progress,
    read_metrics,
    staleness,
)

from .example_groups import example_groups


def test_metrics_of_groups() -> None:
    found = group_metrics(example_groups(), {"t1": 1.0, "t2": 4.0}.get)
    assert found["pass@1"] == 0.25
    assert found["pass@k"] == 0.5
    assert found["reward"] == 0.5
    assert found["zero_variance"] == 0.5
    assert found["infra_errors"] == pytest.approx(1 / 6)
    assert found["hacks"] == pytest.approx(1 / 6)
    assert found["tier"] == 2.5
    assert found["tokens"] == pytest.approx((2 + 3 + 1 + 1) / 4)
    assert found["endings/infra_error"] == pytest.approx(1 / 6)
    assert group_metrics([]) == {}
    assert staleness(example_groups(), 3) == {"staleness": pytest.approx(6 / 7), "staleness_max": 2}
    assert staleness([], 3) == {}
    assert model_flops(10, 5) == 300


def test_repeated_steps_are_written_once(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, tensorboard=True)
    for step in (1, 2, 3):
        writer.write(step, {"reward": step / 10, "hint_kl": math.nan})
    writer.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "rew')
    again = MetricsWriter(tmp_path, tensorboard=True, after=2)
    again.write(3, {"reward": 0.9})
    again.close()
    assert read_metrics(tmp_path / "metrics.jsonl") == [
        {"step": 1, "reward": 0.1}, {"step": 2, "reward": 0.2}, {"step": 3, "reward": 0.9}
    ]  # fmt: skip
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(point.step, round(point.value, 3)) for point in events.Scalars("train/reward")] == [
        (1, 0.1), (2, 0.2), (3, 0.9)
    ]  # fmt: skip


def test_a_tracker_gets_the_same_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trackio.py").write_text(
        "said = []\n"
        "def init(**given): said.append(given)\n"
        "def log(values, step): said.append((step, values))\n"
        "def finish(): said.append('over')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for folder, values in (("first", {"reward": 0.5, "hint_kl": math.nan}), ("first", {}), ("other/first", {})):
        writer = MetricsWriter(tmp_path / folder, tensorboard=False, tracker="trackio")
        writer.write(1, values)
        writer.close()
    said = sys.modules.pop("trackio").said
    assert said[1:3] == [(1, {"reward": 0.5}), "over"]
    names = [begun.pop("name") for begun in said[::3]]
    assert said[::3] == [{"project": "excise", "resume": "allow"}] * 3
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("first-") for name in names)
    with pytest.raises(ConfigError, match="pip install wandb"):
        MetricsWriter(tmp_path / "second", tensorboard=False, tracker="wandb")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_plot_of_a_run_is_reproducible(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures are drawn with matplotlib")
    rows = [{"step": float(n), "pass@1": n / 9, "reward": n / 10, "tier": float(n // 3)} for n in range(1, 9)]
    path = tmp_path / f"progress.{suffix}"
    assert plot_progress(rows, path, "a run")
    first = path.read_bytes()
    assert len(first) > 2000
    assert plot_progress(rows, path, "a run")
    assert path.read_bytes() == first
    assert not plot_progress([], tmp_path / "none.svg")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
