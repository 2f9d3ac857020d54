"""vLLM itself, on the CPU, with real weights (SmolLM2-135M). It starts slowly: one test for each kind of engine."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from excise.system.supervisor import descendants
from excise.trainer.engines.vllm_engine import VLLMOptions
from excise.trainer.engines.vllm_server import VLLMServer
from excise.trainer.rollout_types import Sampling, Stop

from .answers_during_load import answers_during
from .reference_logprobs import reference_logprobs

ROOT = Path(__file__).resolve().parents[3]
CONTEXT = 512
"""Length of the context in tokens."""
TOLERANCE = 5e-3
"""Nats between vLLM's log-probabilities and those of a plain forward pass with transformers, both in 32 bits."""
CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCHDYNAMO_DISABLE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
"""Nothing is compiled for so few tokens, and the model runs in the process of the engine core, as on a GPU."""
pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def weights_folder(vllm_environment: Path) -> Path:
    return vllm_environment / "smollm2"


@pytest.fixture(scope="module")
def model(weights_folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(weights_folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer(weights_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(weights_folder)


@pytest.fixture(scope="module")
def prompt(tokenizer: Any) -> list[int]:
    return list(tokenizer.encode("def add(a, b):\n    return"))


def scaled(model: Any) -> Any:
    """The same model with all weights at nine tenths."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.9)
    return other


def test_the_server_engine_with_real_vllm(
    model: Any, tokenizer: Any, prompt: list[int], vllm_environment: Path, weights_folder: Path
) -> None:
    """Sampling, scoring, loading weights while answers are sampled; no process is left."""
    other = scaled(model)
    weights = [(name, parameter.detach()) for name, parameter in other.named_parameters()]

    async def go() -> dict[str, Any]:
        found: dict[str, Any] = {}
        arguments = ["--dtype", "float32", "--enforce-eager"]
        engine = await VLLMServer.start(
            weights_folder,
            vllm_environment / "bin/python",
            VLLMOptions(context_length=CONTEXT, environment=CPU, deadline_s=120.0, start_s=540.0),
            arguments=arguments,
        )
        try:
            assert engine._server is not None
            stops = tuple(tokenizer.encode("\n"))
            found["first"] = await engine.generate(
                [prompt] * 4, Sampling(max_tokens=24, temperature=0.7, stop_ids=stops, seed=1)
            )
            found["scores"] = await engine.score([[*prompt, *found["first"][0].ids]])
            found["full"] = await engine.generate([prompt * 150], Sampling(max_tokens=24))
            found["mixed"] = await answers_during(engine.load(weights, 5), engine, prompt)
            found["second"] = await engine.generate([prompt], Sampling(max_tokens=24))
            found["processes"] = [*descendants(engine._server.pid), engine._server.pid]
        finally:
            await engine.close()
        return found

    found = asyncio.run(asyncio.wait_for(go(), 900))
    for answer in found["first"]:
        assert answer.logprobs == pytest.approx(reference_logprobs(model, prompt, list(answer.ids), 0.7), abs=TOLERANCE)
        assert set(answer.versions) == {0}
        assert (answer.stop is Stop.END) == (answer.ids[-1] in tokenizer.encode("\n"))
    assert any(answer.stop is Stop.END for answer in found["first"])
    ids = [*prompt, *found["first"][0].ids]
    assert found["scores"][0] == pytest.approx([0.0, *reference_logprobs(model, ids[:1], ids[1:])], abs=TOLERANCE)
    assert (found["full"][0].ids, found["full"][0].stop) == ((), Stop.LENGTH)
    (answer,) = found["second"]
    assert set(answer.versions) == {5}
    assert answer.logprobs == pytest.approx(reference_logprobs(other, prompt, list(answer.ids)), abs=TOLERANCE)
    mixed = [answer for answer in found["mixed"] if set(answer.versions) == {0, 5}]
    assert mixed
    for answer in mixed:
        began = answer.versions.index(5)
        assert answer.versions == (0,) * began + (5,) * (len(answer.ids) - began)
        assert answer.logprobs[:began] == pytest.approx(
            reference_logprobs(model, prompt, list(answer.ids))[:began], abs=TOLERANCE
        )
        # keys and values of earlier tokens were computed again with the new weights
        assert answer.logprobs[began + 1 :] == pytest.approx(
            reference_logprobs(other, prompt, list(answer.ids))[began + 1 :], abs=TOLERANCE
        )
    assert not [pid for pid in found["processes"] if os.path.exists(f"/proc/{pid}")]


def test_the_in_process_engine_with_real_vllm(
    model: Any, prompt: list[int], vllm_environment: Path, weights_folder: Path
) -> None:
    """The same in the process of the trainer; a killed core is an error at once."""
    script = Path(__file__).with_name("vllm_in_process_program.py")
    done = subprocess.run(
        [vllm_environment / "bin/python", script, weights_folder, json.dumps(prompt), str(CONTEXT)],
        env={**os.environ, **CPU, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, check=False, timeout=800,
    )  # fmt: skip
    line = next((text for text in done.stdout.splitlines() if text.startswith("FOUND ")), "")
    assert line, done.stdout[-2000:] + done.stderr[-3000:]
    found = json.loads(line.removeprefix("FOUND "))
    first, second = found["first"], found["second"]
    assert first["logprobs"] == pytest.approx(reference_logprobs(model, prompt, first["ids"]), abs=TOLERANCE)
    ids = [*prompt, *first["ids"]]
    assert found["scores"] == pytest.approx([0.0, *reference_logprobs(model, ids[:1], ids[1:])], abs=TOLERANCE)
    assert (found["full"]["ids"], found["full"]["stop"]) == ([], "length")
    assert second["logprobs"] == pytest.approx(reference_logprobs(scaled(model), prompt, second["ids"]), abs=TOLERANCE)
    assert (set(first["versions"]), set(second["versions"])) == ({0}, {5})
    assert {0, 5} in [set(answer["versions"]) for answer in found["mixed"]]
    assert "vLLM is gone" in found["dead"]
