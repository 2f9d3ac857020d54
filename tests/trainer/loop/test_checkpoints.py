"""Checkpoints: what they hold, how they are replaced and removed, and which are refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException

from excise.errors import TrainingError
from excise.trainer.loop.checkpoints import Checkpoints, export, random_states, set_random_states
from excise.trainer.loop.controller import RunEnd
from excise.trainer.objective.teachers import EmaTeacher, frozen_copy

from ..tiny_run import QUICK, TinyRun, same


def test_a_checkpoint_restores_the_whole_state_of_the_learner(tmp_path: Path) -> None:
    """Weights (tied ones, too), optimizer, schedule, teacher, random states. Incomplete checkpoints are ignored."""
    lessons = {"teacher": lambda policy: EmaTeacher(frozen_copy(policy), 0.5), "model": {"tie_word_embeddings": True}}
    run = TinyRun(tmp_path / "run", replace(QUICK, steps=6, checkpoint_every=1), **lessons)
    run.run()
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.steps() == [5, 6]
    half = checkpoints.path(7)
    half.mkdir()
    (half / "state.json").write_text("{}")
    assert checkpoints.steps() == [5, 6]
    states = random_states()
    other = TinyRun(tmp_path / "other", seed=3, **lessons)
    state = checkpoints.load(6, other.learner)
    assert (state.step, state.queue.begun) == (6, {})
    assert same(other.weights(), run.weights())
    assert random_states() == states
    for ours, theirs in zip(run.learner.optimizer.state.values(), other.learner.optimizer.state.values(), strict=True):
        assert ours.keys() == theirs.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert run.learner.scheduler is not None
    assert other.learner.scheduler is not None
    assert run.learner.scheduler.state_dict() == other.learner.scheduler.state_dict()
    assert run.learner.optimizer.param_groups[0]["lr"] == other.learner.optimizer.param_groups[0]["lr"]
    averages = [r.learner.teacher.weights() for r in (run, other) if r.learner.teacher]
    assert averages[0] is not None
    assert averages[1] is not None
    assert same(averages[0].state_dict(), averages[1].state_dict())
    assert not same(averages[0].state_dict(), run.weights())


def test_random_states_are_restored() -> None:
    states = random_states()
    first = [torch.rand(3), torch.rand(1)]
    set_random_states(states)
    assert all(torch.equal(a, b) for a, b in zip(first, [torch.rand(3), torch.rand(1)], strict=True))


def test_a_newer_or_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=1)).run()
    path = tmp_path / "run" / "checkpoints" / "step-00000001" / "state.json"
    path.write_text(path.read_text().replace('"format":1', '"format":99'))
    with pytest.raises(TrainingError, match="Upgrade"):
        TinyRun(tmp_path / "run").run(resume=True)
    path.write_text("{")
    with pytest.raises(TrainingError, match=r"Remove .*step-00000001 to go on"):
        TinyRun(tmp_path / "run").run(resume=True)


def test_an_export_is_a_hugging_face_folder(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    run = TinyRun(tmp_path / "run", model={"tie_word_embeddings": True})
    for _ in range(2):
        export(run.learner, None, tmp_path / "policy")
    assert {path.name for path in (tmp_path / "policy").iterdir()} >= {"model.safetensors", "config.json"}
    read = AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(read(input_ids=ids).logits, run.learner.model(input_ids=ids).logits)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".policy")] == []


def hidden_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*"))


@pytest.mark.parametrize("moment", ["writing", "before the old one goes", "between the names", "removing"])
def test_a_kill_while_a_checkpoint_is_renamed_loses_none(tmp_path: Path, moment: str) -> None:
    TinyRun(tmp_path / "run", replace(QUICK, steps=2)).run()
    folder = tmp_path / "run" / "checkpoints"
    (target,) = folder.glob("step-*")
    if moment == "writing":
        shutil.copytree(target, folder / ".step-00000004.tmp")
        (folder / ".step-00000004.tmp" / "COMPLETE").unlink()
    elif moment == "before the old one goes":
        shutil.copytree(target, folder / f".{target.name}.tmp")
    elif moment == "between the names":
        shutil.copytree(target, folder / f".{target.name}.old")
        target.rename(folder / f".{target.name}.tmp")
    else:
        target.rename(folder / f".{target.name}.old")
    more = TinyRun(tmp_path / "run", replace(QUICK, steps=3), seed=5)
    assert more.run(resume=True) is RunEnd.STEPS
    assert hidden_names(folder) == []
    whole = TinyRun(tmp_path / "whole", replace(QUICK, steps=3))
    whole.run()
    assert same(more.weights(), whole.weights())


def test_a_partly_removed_checkpoint_is_not_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = shutil.rmtree

    def half(path: Path, **options: Any) -> None:
        if Path(path).suffix == ".old" and Path(path).exists():
            really(Path(path) / "model")
            (Path(path) / "state.json").unlink()
            raise RuntimeError("killed")
        really(path, **options)

    settings = replace(QUICK, steps=4, checkpoint_every=1, keep=1)
    with monkeypatch.context() as patched:
        patched.setattr("excise.trainer.loop.checkpoints.shutil.rmtree", half)
        with pytest.raises(RuntimeError, match="killed"):
            TinyRun(tmp_path / "run", settings).run()
    folder = tmp_path / "run" / "checkpoints"
    assert hidden_names(folder) == [".step-00000001.old"]
    checkpoints = Checkpoints(folder)
    checkpoints.recover()
    assert (checkpoints.steps(), hidden_names(folder)) == ([2], [])
    assert TinyRun(tmp_path / "run", settings, seed=5).run(resume=True) is RunEnd.STEPS


def test_a_full_disk_and_a_damaged_checkpoint_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = TinyRun(tmp_path / "run", replace(QUICK, steps=2))
    run.run()
    before = run.checkpoint_steps()

    def full(*_: Any, **__: Any) -> None:
        raise CheckpointException("x", {0: (OSError(28, "No space left on device"), None)})  # type: ignore[dict-item]

    with monkeypatch.context() as patched:
        patched.setattr("excise.trainer.loop.checkpoints.save_tensors", full)
        with pytest.raises(OSError, match="No space left on device"):
            TinyRun(tmp_path / "run", replace(QUICK, steps=4)).run(resume=True)
    assert run.checkpoint_steps() == before
    for part in (tmp_path / "run" / "checkpoints" / f"step-{before[-1]:08d}" / "model").glob("*.distcp"):
        part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(TrainingError, match=r"cannot be read .*Remove .*step-00000002 to go on"):
        TinyRun(tmp_path / "run", replace(QUICK, steps=4)).run(resume=True)
