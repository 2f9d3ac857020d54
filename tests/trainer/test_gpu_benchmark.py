"""The benchmark for a GPU runs on the CPU too, smaller; there its numbers of correctness are exact."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_benchmark", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_part_measures_something(benchmark: ModuleType) -> None:
    parts = [name for name in benchmark.PARTS if name != "vllm"]
    found = benchmark.measure("tiny", 1, parts)
    assert not {name: found[name]["error"] for name in parts if "error" in found[name]}
    assert found["learner"]["sampled_tokens_per_s"] > 0
    assert found["engine"]["tokens_per_s"] > 0
    assert found["packing"]["gradient_difference"] < 1e-4
    assert found["precision"]["float32"]["gradient"] < 1e-4
    assert found["precision"]["float32"]["gradient"] < found["precision"]["bfloat16"]["gradient"] < 0.2
    assert found["resume"]["bit_for_bit"]
    assert found["loop"]["engine"] == "transformers"
    assert 0 < found["loop"]["reward_last"] < 1
    assert found["loop"]["mean"]["engine_tokens_per_s"] > 0


def test_a_part_that_fails_says_why(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> dict[str, object]:
        raise RuntimeError("out of memory")

    monkeypatch.setitem(benchmark.PARTS, "muon", broken)
    found = benchmark.measure("tiny", 1, ["muon", "sleep"])
    assert found["muon"]["error"] == "RuntimeError: out of memory"
    assert found["sleep"]["there_and_back_s"] > 0
