"""What a run tells: metrics, TensorBoard, the live view, the picture, rollouts as rows."""

from __future__ import annotations

import io
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from excise.datasets.catalogue import connect
from excise.datasets.rollouts import write_rollouts
from excise.datasets.store import Store
from excise.errors import ConfigError
from excise.trainer.reporting.metrics import (
    MetricsWriter,
    group_metrics,
    model_flops,
    plot_progress,
    read_metrics,
    staleness,
)
from excise.trainer.reporting.progress_display import ProgressDisplay, sparkline
from excise.trainer.reporting.rollout_rows import rollout_rows
from excise.trainer.rollout_types import Ending, Group

from ..tiny_policy import random_group, rollout_of, segment_of


def groups() -> list[Group]:
    segment = segment_of([1, 2, 3, 4], [(2, 4)], [-1.0] * 4, version=3)
    old = segment_of([1, 2, 3], [(2, 3)], [-1.0] * 3, version=1)
    mixed = (
        rollout_of("a-0", [segment], 1.0),
        rollout_of("a-1", [segment, old], 0.0),
        rollout_of("a-2", [segment], 1.0, flags=("leak_used",)),
        rollout_of("a-3", [], 0.0, ending=Ending.INFRA),
    )
    return [
        Group(group_id="a", instance_id="t1", rollouts=mixed),
        Group(group_id="b", instance_id="t2", rollouts=(rollout_of("b-0", [old], 0.5), rollout_of("b-1", [old], 0.5))),
    ]


def test_metrics_of_groups() -> None:
    found = group_metrics(groups(), {"t1": 1.0, "t2": 4.0}.get)
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
    assert staleness(groups(), 3) == {"staleness": pytest.approx(6 / 7), "staleness_max": 2}
    assert staleness([], 3) == {}
    assert model_flops(10, 5) == 300


def test_steps_that_are_made_again_are_written_once(tmp_path: Path) -> None:
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


def test_a_tracker_is_told_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_log_gets_a_line_a_step() -> None:
    out = io.StringIO()
    with ProgressDisplay(Console(file=out, width=150), steps=9) as watch:
        watch.status("waiting [/x]")
        watch.step(1, {"reward": 0.5, "pass@1": 0.25})
        watch.message("read [this]")
    assert "step 1: pass@1 0.25, reward 0.5" in out.getvalue()
    assert "read [this]" in out.getvalue()
    quiet = io.StringIO()
    with ProgressDisplay(Console(file=quiet), steps=9, quiet=True) as watch:
        watch.step(1, {"reward": 0.5})
        watch.message("nothing")
    assert quiet.getvalue() == ""


def test_a_terminal_gets_a_table() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with ProgressDisplay(console, steps=9) as watch:
        for step in (1, 2, 3):
            watch.step(step, {"reward": step / 4, "unknown": 1.0})
        watch.status("training on 4 groups [/x]")
        console.print(watch.table())
    text = out.getvalue()
    assert "step 3 of 9: training on 4 groups [/x]" in text
    assert "reward" in text
    assert "unknown" not in text
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([2.0]) == "▁"


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_of_the_run(tmp_path: Path, suffix: str) -> None:
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


def test_rollouts_become_rows_beside_the_tasks(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as writer:
        writer.publish()
    both = [*groups(), random_group("c", 1, [1.0, 0.0])]
    hinted = replace(both[0].rollouts[0].segments[0].turns[0], hint="No.", detector="unknown_tool")
    first = both[0].rollouts[0]
    first = replace(first, segments=(replace(first.segments[0], turns=(hinted,)),), penalty=0.25, diff="+x")
    both[0] = replace(both[0], rollouts=(first, *both[0].rollouts[1:]))
    rows = rollout_rows("run", 7, both, lambda ids: " ".join(map(str, ids)), {"t1": 2.0}.get)
    write_rollouts(tmp_path, "run", 7, rows)
    with connect(tmp_path) as connection:
        found = connection.execute(
            "SELECT rollout_id, counts, reward, advantage, hints, flags, version_min, text, diff, tier FROM rollouts "
            "WHERE group_id = 'a' ORDER BY rollout_id"
        ).fetchall()
        segments = connection.execute("SELECT segments FROM rollouts WHERE rollout_id = 'a-1'").fetchall()
    assert found[0] == ("a-0", True, 0.75, 0.375, ["unknown_tool"], [], 3, "1 2 3 4", "+x", 2.0)
    assert found[1][:4] == ("a-1", True, 0.0, -0.375)
    assert found[1][6:8] == (1, "1 2 3 4\n1 2 3")
    assert found[2][1:6] == (False, 1.0, None, [], ["leak_used"])
    assert found[3][1:4] == (False, 0.0, None)
    assert json.loads(segments[0][0])[1]["ids"] == [1, 2, 3]
