"""Settings of a run, its plan, and the parts that are built from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from excise.errors import ConfigError, TrainingError
from excise.pipeline.cli import app
from excise.trainer.build import build, build_policy, learner_settings, rate_of
from excise.trainer.config import Method, RateTable, load_training
from excise.trainer.objective.teachers import EmaTeacher, TrustRegionTeacher

from .tiny_folder import make_folder, write_demonstrations

MINIMAL = 'folder = "runs/first"\n[policy]\nmodel = "model"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    make_folder(folder / "model")
    write_demonstrations(folder / "shown.jsonl", [("one?", "1"), ("two?", "2"), ("one?", "1")])
    (folder / "train.toml").write_text(MINIMAL)
    return folder


def written(place: Path, text: str) -> Path:
    (place / "other.toml").write_text(text)
    return place / "other.toml"


def test_one_seed_for_all_unless_a_table_says_another(place: Path) -> None:
    def seeds(*changes: str) -> tuple[int, int, int]:
        settings = load_training(place / "train.toml", changes)
        return settings.seed, settings.curriculum.seed, settings.loop.schedule.seed

    assert seeds() == (0, 0, 0)
    assert seeds("seed=3") == (3, 3, 3)
    assert seeds("seed=3", "curriculum.seed=1", "loop.schedule.batch=2") == (3, 1, 3)
    assert seeds("seed=3", "loop.schedule.seed=0") == (3, 3, 0)


def test_paths_are_the_files(place: Path) -> None:
    settings = load_training(place / "train.toml")
    assert (settings.folder, settings.policy.model) == (place / "runs/first", place / "model")
    assert settings.method is Method.RL
    moved = load_training(place / "train.toml", ["folder=elsewhere", "loop.schedule.batch=3"], method="rl")
    assert moved.folder == Path.cwd() / "elsewhere"
    assert moved.loop.schedule.batch == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\nmodel = 'm'\n", "folder: Field required"),
        (MINIMAL + "[learner]\nrow_token = 5\n", "learner.row_token: there is no such setting"),
        (MINIMAL + "[learner.loss]\nkapa = 1\n", "learner.loss.kapa: there is no such setting"),
        (MINIMAL + "[loop]\nsteps = 'x'\n", "loop.steps: Input should be a valid integer"),
        (MINIMAL + "[loop]\nsteps = 0\n", "loop.steps has to be above 0"),
        (MINIMAL + "[loop.schedule]\ngroup_size = 1\n", "group_size has to be 2 or more"),
        (MINIMAL + "[loop.schedule]\nstaleness = 9\n", "staleness has to be from 0 to drop_after"),
        (MINIMAL + "[teacher]\nprivileged = 'gold'\n", "needs \\[learner.lessons\\]"),
        ("method = 'sdft'\n" + MINIMAL, "sdft needs \\[sdft\\]"),
        (MINIMAL + "wrong", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(place: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_training(written(place, text))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_training(place / "missing.toml")
    with pytest.raises(ConfigError, match="--set x"):
        load_training(place / "train.toml", ["x"])


def test_a_dry_run_prints_the_plan_and_writes_nothing(place: Path) -> None:
    config = written(place, MINIMAL + "[sdft]\ndemonstrations = 'shown.jsonl'\n[learner.lessons]\nweight = 0.5\n")
    done = CliRunner().invoke(app, ["train", str(config), "--dry-run", "--method", "sdft", "--json"])
    assert done.exit_code == 0
    plan = json.loads(done.stdout)
    assert plan["demonstrations"] == 2
    assert plan["method"] == "sdft"
    assert "qwen3" in plan["model"]
    assert plan["lessons"].startswith("weight 0.5 from a teacher (ema")
    assert not (place / "runs").exists()
    lines = CliRunner().invoke(app, ["train", str(config), "--dry-run", "--method", "sdft"]).stdout.splitlines()
    assert len(lines) == len(plan)


def test_a_plan_without_model_or_tasks_is_refused(place: Path) -> None:
    done = CliRunner().invoke(app, ["train", str(place / "train.toml"), "--dry-run"])
    assert (done.exit_code, "needs a task set" in done.stderr) == (2, True)
    config = written(place, MINIMAL.replace('"model"', '"nothing"'))
    done = CliRunner().invoke(app, ["train", str(config), "--dry-run"])
    assert (done.exit_code, "no model of Hugging Face" in done.stderr) == (2, True)
    with pytest.raises(TrainingError, match="no model that can be trained"):
        build_policy(load_training(config))


def test_the_learning_rate_rises_and_falls() -> None:
    assert [rate_of(RateTable(warmup=4), 10)(step) for step in (0, 3, 4, 99)] == [0.25, 1.0, 1.0, 1.0]
    linear = rate_of(RateTable(warmup=0, decay="linear", floor=0.2), 10)
    assert [linear(step) for step in (0, 5, 10, 20)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    cosine = rate_of(RateTable(warmup=2, decay="cosine", floor=0.0), 12)
    assert [cosine(step) for step in (2, 7, 12)] == pytest.approx([1.0, 0.5, 0.0])


def test_a_policy_is_built_as_the_file_says(place: Path) -> None:
    config = written(
        place,
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


def test_distillation_has_lessons_alone(place: Path) -> None:
    settings = load_training(written(place, MINIMAL + "[sdft]\ndemonstrations = 'shown.jsonl'\n"), method="sdft")
    wanted = learner_settings(settings)
    assert wanted.policy_weight == 0
    assert wanted.lessons is not None
    assert wanted.lessons.weight == 1.0
    assert isinstance(build_policy(settings).learner.teacher, EmaTeacher)


def test_reinforcement_learning_needs_tasks(place: Path) -> None:
    from .tiny_run import PlainEngine

    settings = load_training(place / "train.toml")
    policy = build_policy(settings)
    with pytest.raises(ConfigError, match="needs a task set"):
        build(settings, PlainEngine(torch.nn.Linear(1, 1)), policy)
