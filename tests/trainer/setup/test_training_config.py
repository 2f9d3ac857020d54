"""Settings of a run, its plan, and the parts that are built from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from excise.errors import ConfigError
from excise.pipeline.cli.main import app
from excise.trainer.objective.teachers import EmaTeacher, TrustRegionTeacher
from excise.trainer.rollout_types import Ending, Group, Rollout
from excise.trainer.setup.dry_run import trainable_tasks
from excise.trainer.setup.evaluation_config import load_evaluation
from excise.trainer.setup.model_folder import require_model
from excise.trainer.setup.run_builder import build_policy, build_run, learner_settings, rate_schedule, rollout_writer
from excise.trainer.setup.training_config import Method, RateTable, load_training
from excise.types import Task

from ..tiny_folder import make_folder, make_tokenizer, write_demonstrations

MINIMAL = 'folder = "runs/first"\n[policy]\nmodel = "model"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    make_folder(folder / "model")
    write_demonstrations(folder / "shown.jsonl", [("one?", "1"), ("two?", "2"), ("one?", "1")])
    (folder / "train.toml").write_text(MINIMAL)
    return folder


def task_of(instance_id: str, deleter: str, symbol: str, repo: str) -> Task:
    """A task; nothing else of it means anything."""
    names = (field.name for field in fields(Task))
    return Task(**dict.fromkeys(names, "") | {
        "instance_id": instance_id, "deleter": deleter, "removed": (symbol,), "repo": repo,
    })  # fmt: skip


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
        (MINIMAL + "[loop]\nload_tries = 0\n", "loop.load_tries has to be above 0"),
        (MINIMAL + "[loop]\ntolerance = nan\n", "loop.tolerance has to be above 0"),
        (MINIMAL + "[loop]\nstep_deadline_s = nan\n", "loop.step_deadline_s has to be above 0"),
        (MINIMAL + "[loop.schedule]\nwindow = -1\n", "window has to be from 0 to 1"),
        (MINIMAL + "[loop.schedule]\nwindow = nan\n", "window has to be from 0 to 1"),
        (MINIMAL + "[loop.schedule]\nretries = -5\n", "retries has to be 0 or more"),
        (MINIMAL + "[loop.schedule]\nretry_delay_s = -1\n", "retry_delay_s has to be 0 or more"),
        (MINIMAL + "[engine]\nkind = 'vllm-server'\n[loop]\nload_deadline_s = 60\n", "engine.start_s \\(900 s\\)"),
        (MINIMAL + "[excise]\nnosuch = 1\n", "other.toml: excise.nosuch: there is no such setting"),
        ("excise = 3\n" + MINIMAL, "excise: Input should be"),
        ("engine = 3\n" + MINIMAL, "engine: Input should be"),
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


def test_what_is_wrong_is_named_where_a_model_is_evaluated(place: Path) -> None:
    for text in ("excise = 3\n", "engine = 3\n", "[excise]\nnosuch = 1\n", "[engine]\nnosuch = 1\n"):
        with pytest.raises(ConfigError, match=r"other\.toml: (excise|engine)"):
            load_evaluation(written(place, text))
    for override in ("eval.samples.x=1", "excise.out.x=1"):
        with pytest.raises(ConfigError, match=override.partition(".x")[0]):
            load_evaluation(written(place, "[eval]\nsamples = 3\n[excise]\nout = 'set'\n"), [override])


def test_there_is_time_for_a_server_of_ours_to_start_again(place: Path) -> None:
    for changes in ([], ["start_s=1800"], ["start_s=1801", "url=http://host:1"]):
        load_training(place / "train.toml", ["engine.kind=vllm-server", *(f"engine.{item}" for item in changes)])
    slow = ["engine.kind=vllm-server", "engine.start_s=1801"]
    with pytest.raises(ConfigError, match=r"\(1800 s\) has to be engine.start_s"):
        load_training(place / "train.toml", slow)
    load_training(place / "train.toml", [*slow, "loop.load_tries=4"])


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


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_run_without_model_or_tasks_is_refused(place: Path, dry: list[str]) -> None:
    done = CliRunner().invoke(app, ["train", str(place / "train.toml"), *dry])
    assert (done.exit_code, "needs a task set" in done.stderr) == (2, True)
    config = written(place, MINIMAL.replace('"model"', '"nothing"'))
    done = CliRunner().invoke(app, ["train", str(config), *dry])
    assert (done.exit_code, "no model here" in done.stderr) == (2, True)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("file", "harm", "said"),
    [
        ("model.safetensors", _cut, "model.safetensors: these weights cannot be read"),
        ("model.safetensors", Path.unlink, "no weights in it"),
        ("model.safetensors.index.json", lambda path: path.write_text("{}"), "index.json: cannot be read"),
        ("config.json", lambda path: path.write_text("3"), "config.json: no model that can be used"),
        ("config.json", lambda path: path.write_text('{"model_type": "nothing"}'), "config.json: no model that"),
        ("tokenizer.json", lambda path: path.write_text("{"), "no tokenizer can be loaded"),
        ("tokenizer*", Path.unlink, "no tokenizer in it"),
    ],
)
def test_a_broken_model_is_found_without_loading_it(
    place: Path, tmp_path: Path, file: str, harm: Callable[[Path], object], said: str
) -> None:
    model = shutil.copytree(place / "model", tmp_path / "model")
    if file.endswith("index.json"):
        (model / "model.safetensors").rename(model / file)
    for path in list(model.glob(file)):
        harm(path)
    with pytest.raises(ConfigError, match=said) as caught:
        require_model(model)
    assert "\n" not in str(caught.value)
    done = CliRunner().invoke(app, ["eval", str(place / "train.toml"), "--model", str(model), "--out", str(tmp_path)])
    assert (done.exit_code, str(caught.value) in done.stderr) == (2, True)


def test_weights_in_several_files_are_all_looked_at(place: Path, tmp_path: Path) -> None:
    model = shutil.copytree(place / "model", tmp_path / "model")
    (model / "model.safetensors").rename(model / "part-1.safetensors")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part-1.safetensors"}}')
    assert require_model(model) == require_model(place / "model")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part-1.safetensors", "b": "part-2"}}')
    with pytest.raises(ConfigError, match="part-2: these weights cannot be read"):
        require_model(model)


def test_the_plan_counts_what_can_be_trained_on(place: Path) -> None:
    made = {f"t{n}": task_of(f"t{n}", "stub" if n < 4 else "remove", f"m{n}.py::f", f"p{n % 2}") for n in range(6)}
    config = written(place, MINIMAL + "[excise]\nout = 'set'\n")

    def found(*changes: str, tests_only: tuple[str, ...] = ()) -> list[str]:
        return sorted(trainable_tasks(load_training(config, changes), made, tests_only))

    function, one_held = "eval.mode=function", 'eval.held_out.projects=["p0"]'
    assert found() == sorted(made)
    assert found(function) == ["t0", "t1", "t2", "t3"]
    assert found(function, one_held) == ["t1", "t3"]
    without = ("curriculum.tests_only=false", function)
    assert found(*without, one_held, tests_only=("t1", "t2")) == ["t3"]
    assert found("eval.mode=line") == [], "such are asked for"
    assert found(*without, tests_only=("t0", "t1", "t2", "t3")) == []
    with pytest.raises(ConfigError, match="held out"):
        found(function, one_held, 'eval.held_out.projects=["p0", "p1"]')
    with pytest.raises(ConfigError, match="tests_only = true"):
        found(*without, tests_only=tuple(made))
    made.clear()
    with pytest.raises(ConfigError, match="has no task"):
        found()


def test_the_learning_rate_rises_and_falls() -> None:
    assert [rate_schedule(RateTable(warmup=4), 10)(step) for step in (0, 3, 4, 99)] == [0.25, 1.0, 1.0, 1.0]
    linear = rate_schedule(RateTable(warmup=0, decay="linear", floor=0.2), 10)
    assert [linear(step) for step in (0, 5, 10, 20)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    cosine = rate_schedule(RateTable(warmup=2, decay="cosine", floor=0.0), 12)
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
    from ..tiny_run import PlainEngine

    settings = load_training(place / "train.toml")
    policy = build_policy(settings)
    with pytest.raises(ConfigError, match="needs a task set"):
        build_run(settings, PlainEngine(torch.nn.Linear(1, 1)), policy)


def test_runs_of_equal_names_do_not_write_over_each_other(place: Path, tmp_path: Path) -> None:
    def stored(folder: str, instance_id: str) -> None:
        settings = load_training(
            place / "train.toml", [f"folder='{tmp_path / folder}'", f"excise.out='{tmp_path / 'set'}'"]
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
