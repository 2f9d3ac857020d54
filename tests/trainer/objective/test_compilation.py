"""Which models compile by themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from excise.errors import TrainingError
from excise.trainer.objective.policy_forward import can_compile, compile_layers

from ..tiny_policy import tiny_mixture, tiny_model


@pytest.mark.parametrize(
    ("model", "device", "world_size", "expected"),
    [
        (tiny_model, "cuda", 1, True),
        (tiny_mixture, "cuda", 1, False),
        (tiny_model, "cuda", 2, False),
        (tiny_model, "cpu", 1, False),
    ],
)
def test_one_process_on_a_gpu_compiles_models_without_experts(
    model: Any, device: str, world_size: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: True)
    assert can_compile(model(), torch.device(device), world_size) is expected


def test_models_with_layers_elsewhere_are_not_compiled_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: True)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert not can_compile(model, torch.device("cuda"))
    with pytest.raises(TrainingError, match=r"Sequential has no model\.layers"):
        compile_layers(model)


def test_nothing_compiles_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert not can_compile(tiny_model(), torch.device("cuda"))
