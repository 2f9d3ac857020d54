"""The parts of a run that are built from its settings."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from excise.errors import ConfigError
from excise.trainer.objective.teachers import EmaTeacher, TrustRegionTeacher
from excise.trainer.rollout_types import Ending, Group, Rollout
from excise.trainer.setup.run_builder import build_policy, build_run, learner_settings, rate_schedule, rollout_writer
from excise.trainer.setup.training_config import RateTable, load_training

from ..tiny_folder import make_tokenizer
from .config_files import MINIMAL, write_config


def test_the_learning_rate_warms_up_and_decays() -> None:
    assert [rate_schedule(RateTable(warmup=4), 10)(step) for step in (0, 3, 4, 99)] == [0.25, 1.0, 1.0, 1.0]
    linear = rate_schedule(RateTable(warmup=0, decay="linear", floor=0.2), 10)
    assert [linear(step) for step in (0, 5, 10, 20)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    cosine = rate_schedule(RateTable(warmup=2, decay="cosine", floor=0.0), 12)
    assert [cosine(step) for step in (2, 7, 12)] == pytest.approx([1.0, 0.5, 0.0])


def test_a_policy_is_built_from_its_settings(input_folder: Path) -> None:
    config = write_config(
        input_folder,
        MINIMAL + "activation_checkpointing = true\n[optimizer]\nlr = 0.5\nweight_decay = 0.1\n[rate]\nwarmup = 5\n"
        "[learner.loss]\nbeta = 0.1\n[learner.lessons]\n[teacher]\nkind = 'trust_region'\nrate = 0.01\n",
    )
    policy = build_policy(load_training(config))
    learner = policy.learner
    assert learner.model.is_gradient_checkpointing
    assert isinstance(learner.teacher, TrustRegionTeacher)
    assert [group["weight_decay"] for group in learner.optimizer.param_groups] == [0.1, 0.0]
    assert all(p.ndim < 2 for p in learner.optimizer.param_groups[1]["params"])
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert sum(len(g["params"]) for g in learner.optimizer.param_groups) == len(list(learner.model.parameters()))


def test_distillation_trains_on_lessons_only(input_folder: Path) -> None:
    settings = load_training(
        write_config(input_folder, MINIMAL + "[sdft]\ndemonstrations = 'shown.jsonl'\n"), method="sdft"
    )
    wanted = learner_settings(settings)
    assert wanted.policy_weight == 0
    assert wanted.lessons is not None
    assert wanted.lessons.weight == 1.0
    assert isinstance(build_policy(settings).learner.teacher, EmaTeacher)


def test_reinforcement_learning_needs_tasks(input_folder: Path) -> None:
    from ..tiny_run import PlainEngine

    settings = load_training(input_folder / "train.toml")
    policy = build_policy(settings)
    with pytest.raises(ConfigError, match="needs a task set"):
        build_run(settings, PlainEngine(torch.nn.Linear(1, 1)), policy)


def test_runs_with_equal_folder_names_do_not_overwrite_each_other(input_folder: Path, tmp_path: Path) -> None:
    def stored(folder: str, instance_id: str) -> None:
        settings = load_training(
            input_folder / "train.toml", [f"folder='{tmp_path / folder}'", f"excise.out='{tmp_path / 'set'}'"]
        )
        keep = rollout_writer(settings, make_tokenizer(), lambda _: None)
        assert keep
        rollout = Rollout(rollout_id="r", group_id="g", instance_id=instance_id, segments=(), ending=Ending.FINISHED)
        keep(1, [Group(group_id="g", instance_id=instance_id, rollouts=(rollout,))])

    def there() -> dict[str, str]:
        rows = [row for path in (tmp_path / "set").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
        return {row["instance_id"]: row["run"] for row in rows}

    stored("a/first", "of a")
    stored("b/first", "of b")
    assert there()["of a"] == "first"
    assert there()["of b"] == (tmp_path / "b/first/stored-as").read_text().strip() != "first"
    stored("b/first", "of b, resumed")
    assert there()["of b, resumed"].startswith("first-")
    assert len(there()) == 2, "a resumed run keeps its name"
    (tmp_path / "a/first/stored-as").unlink()
    (tmp_path / "a/first/metrics.jsonl").touch()
    stored("a/first", "of an older program")
    assert there()["of an older program"] == "first"
