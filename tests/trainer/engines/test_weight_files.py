"""Weights on their way to an engine, and engines from tables."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from excise.errors import EngineError
from excise.system.process_identity import owned_temporary_folder
from excise.trainer.engines.engine_kinds import EngineSettings, build_engine
from excise.trainer.engines.vllm_requests import ABORTED, generation_of
from excise.trainer.engines.weight_files import WeightFiles, shapes_of
from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.rollout_types import Sampling, Stop

from ..byte_model import byte_model


def saved(folder: Path, *, tied: bool) -> Any:
    model = byte_model()
    if tied:
        model.config.tie_word_embeddings = True
        model.tie_weights()
    model.save_pretrained(folder)
    return model


def weights_of(model: Any) -> list[Any]:
    return [(name, parameter.detach()) for name, parameter in model.named_parameters()]


@pytest.mark.parametrize("tied", [False, True])
def test_what_is_written_is_what_was_given(tmp_path: Path, tied: bool) -> None:
    model = saved(tmp_path / "model", tied=tied)
    assert ("lm_head.weight" in shapes_of(tmp_path / "model")) is not tied
    files = WeightFiles(tmp_path / "model", tmp_path)
    written = [files.write(weights_of(model), version) for version in range(1, 5)]
    found = load_file(written[-1] / "model.safetensors")
    assert found.keys() == {name for name, _ in model.named_parameters()}
    assert all((found[name] == tensor).all() for name, tensor in weights_of(model))
    if tied:
        files.write(model.state_dict().items(), 5)
    files.delete_old()
    assert [path.exists() for path in written] == [False, False, not tied, True]
    with pytest.raises(EngineError, match="missing"):
        files.write(weights_of(model)[1:], 6)
    files.close()
    assert not any(path.exists() for path in written)


def test_experts_are_written_as_the_models_files_have_them(tmp_path: Path) -> None:
    model = byte_model(kind="mixture")
    model.save_pretrained(tmp_path / "model")
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), LearnerSettings())
    files = WeightFiles(tmp_path / "model", tmp_path)
    with pytest.raises(EngineError, match="has no weight"):
        files.write(learner.weights(), 1)
    found = load_file(files.write(learner.with_checkpoint_names(learner.weights()), 2) / "model.safetensors")
    known = load_file(tmp_path / "model" / "model.safetensors")
    assert found.keys() == known.keys()
    assert any(".experts.3." in name for name in found)
    assert all(torch.equal(found[name], known[name]) for name in known)
    files.close()


def test_files_of_a_trainer_that_was_killed_go(tmp_path: Path) -> None:
    saved(tmp_path / "model", tied=False)
    call = f"owned_temporary_folder('weights', {str(tmp_path)!r})"
    code = f"from excise.system.process_identity import owned_temporary_folder; print({call})"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    alive = owned_temporary_folder("weights", str(tmp_path))
    assert os.path.isdir(left)
    WeightFiles(tmp_path / "model", tmp_path).close()
    assert not os.path.isdir(left)
    assert os.path.isdir(alive)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no safetensors"):
        shapes_of(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(EngineError, match="cannot be read"):
        shapes_of(tmp_path)


def test_versions_come_from_the_spans() -> None:
    spans = [{"version": "3", "start": 0, "end": 2}, {"version": "4", "start": 2, "end": 9}]
    found = generation_of([5, 6, 7], [-1.0, -2.0, -3.0], "stop", spans, 1)
    assert (found.versions, found.stop) == ((3, 3, 4), Stop.END)
    unlabelled = generation_of([5], [-1.0], "length", [{"version": "default", "start": 0, "end": 1}], 1)
    assert (unlabelled.versions, unlabelled.stop) == ((1,), Stop.LENGTH)


@pytest.mark.parametrize(("logprobs", "reason"), [([-1.0], "stop"), ([-1.0, -2.0], "abort"), ([-1.0, -2.0], None)])
def test_an_answer_that_is_not_whole_is_none(logprobs: list[float], reason: str | None) -> None:
    """A missing log-probability is never made up."""
    assert generation_of([5, 6], logprobs, reason, None, 1) == ABORTED


def test_an_engine_from_a_table(tmp_path: Path) -> None:
    saved(tmp_path / "model", tied=False)

    async def go() -> Any:
        engine = await build_engine(EngineSettings(context_length=4000, device="cpu"), tmp_path / "model")
        answers = await engine.generate([[1, 2]], Sampling(max_tokens=3))
        length = engine.context_length
        await engine.close()
        with pytest.raises(EngineError, match="no model"):
            await build_engine(EngineSettings(), tmp_path)
        with pytest.raises(EngineError, match="ended while it was starting"):
            await build_engine(EngineSettings(kind="vllm-server", python=tmp_path / "python"), tmp_path / "model")
        return len(answers[0].ids), length

    assert asyncio.run(go()) == (3, 512)
