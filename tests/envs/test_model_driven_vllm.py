"""The model-driven installer and the proposer of features against vLLM serving real weights on the CPU.

SmolLM2-135M is far too small to install or remove anything: the job must end by itself, in its budget, with its class,
and its transcript must tell the same story without the server.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.agents.budget import Meter, budget_of
from excise.agents.client import OpenAIClient
from excise.agents.messages import Message, Request
from excise.agents.transcript import read_events
from excise.config import ModelSettings, Settings, load
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.stages.error_boundary import is_conclusive
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.pipeline.stages.find_stage import find_stage
from excise.pipeline.stages.model_stage import model_stage
from excise.pipeline.stages.propose_stage import ProposedFeatures, propose_stage
from excise.types import Rejection, SourceSpec
from excise.verifiers.workbench import Prepared

from ..conftest import Run

START_S = 540.0
REFUSED = Rejection(repo="lookup", stage="environment", subject="lookup", reason="import_error", detail="no tables")


@pytest.fixture(scope="module")
def url(vllm_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM server on a free port."""
    sockets = tempfile.mkdtemp(prefix="vllm-")  # a short path, and not left behind
    log = tmp_path_factory.mktemp("vllm") / "log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        vllm_environment / "bin/python", "-m", "vllm.entrypoints.openai.api_server",
        "--model", vllm_environment / "smollm2", "--served-model-name", "smollm2",
        "--host", "127.0.0.1", "--port", str(port), "--enforce-eager",
        "--dtype", "float32", "--max-model-len", "8192", "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
               "TORCHDYNAMO_DISABLE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
               "VLLM_RPC_BASE_PATH": sockets}  # fmt: skip
    with open(log, "wb") as file:
        server = subprocess.Popen(
            list(map(str, command)), cwd=log.parent, env={**os.environ, **offline}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_until_healthy(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)
        shutil.rmtree(sockets)


def _wait_until_healthy(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"vLLM did not start within {START_S:.0f} s: {log.read_text(errors='replace')[-3000:]}")


def settings_for(folder: Path, **model: object) -> Settings:
    wanted = {"model": "smollm2", "tool_calls": "text", "max_reply_tokens": 48, "context_chars": 14_000,
              "max_tokens": 3_000, "max_wall_s": 300, **model}  # fmt: skip
    overrides = [f"model.{name}={value}" for name, value in wanted.items()]
    return load(overrides=overrides, environ={}, out=folder / "out", cache=folder / "cache")


def run_stage(settings: Settings) -> Rejection:
    spec = SourceSpec(spec=str(Path(__file__).resolve().parents[1] / "repos/lookup"))
    sourced = fetch_stage(settings, spec.spec, spec)
    assert not isinstance(sourced, Rejection), sourced
    answer = model_stage(settings, spec.spec, spec, sourced, REFUSED)
    assert isinstance(answer, Rejection), "SmolLM2-135M installed it"
    return answer


@pytest.mark.vllm
def test_a_job_with_a_real_model_ends_with_its_class_and_replays(url: str, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, base_url=url)
    began = time.monotonic()
    refused = run_stage(settings)
    assert time.monotonic() - began < 360
    assert is_conclusive(refused), refused
    assert refused.reason in {"vacuous_goals", "budget"}, refused
    (path,) = (settings.cache / "transcripts").iterdir()
    replies = [event["reply"] for event in read_events(path) if event["event"] == "reply"]
    assert replies
    assert all(reply["usage"]["completion_tokens"] > 0 for reply in replies)
    assert any(reply["message"]["content"].strip() for reply in replies)
    again = run_stage(settings_for(tmp_path / "again", replay=path))
    assert (again.reason, again.detail) == (refused.reason, refused.detail)


@pytest.mark.vllm
def test_a_proposal_of_a_real_model_ends_with_its_class_and_replays(
    url: str, tmp_path: Path, shapes_run: Run, prepared: Prepared
) -> None:
    found = find_stage(shapes_run.settings, "shapes", prepared)
    assert isinstance(found, FoundFeatures)

    def proposed(folder: Path, **model: object) -> Rejection:
        limits = {"propose_features": 1, "propose_steps": 2, "max_reply_tokens": 24, **model}
        settings = settings_for(folder, **limits)
        settings = settings.model_copy(update={"verdict": shapes_run.settings.verdict})
        answer = propose_stage(settings, "shapes", prepared, found)
        assert isinstance(answer, ProposedFeatures)
        (row,) = answer.rejections
        return row

    row = proposed(tmp_path, base_url=url)
    assert is_conclusive(row), row
    assert row.reason in {"step_limit", "budget", "malformed_calls", "no_change", "only_tests", "would_not_parse"}
    again = proposed(tmp_path / "again", replay=tmp_path / "cache" / "transcripts")
    assert (again.reason, again.detail) == (row.reason, row.detail)


@pytest.mark.vllm
def test_the_server_takes_tools_as_the_protocol_has_them(url: str) -> None:
    settings = ModelSettings(base_url=url, model="smollm2")
    meter = Meter(budget_of(settings))
    tool = {"name": "finish", "description": "Ends.", "parameters": {"type": "object", "properties": {}}}
    request = Request(model="smollm2", messages=(Message(role="user", content="Hello"),), tools=(tool,),
                      max_reply_tokens=16)  # fmt: skip
    reply = OpenAIClient(settings, meter).complete(request)
    assert reply.message.role == "assistant"
    assert 0 < meter.spent.completion_tokens <= 16
