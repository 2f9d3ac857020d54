"""The server engine against a small server with the interface of vLLM, which is killed, hangs or refuses requests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel

from excise.errors import EngineError
from excise.system.supervisor import descendants
from excise.trainer.engines.http_calls import call
from excise.trainer.engines.server_process import SUPERVISOR, ServerProcess
from excise.trainer.engines.vllm_engine import VLLMOptions
from excise.trainer.engines.vllm_server import VLLMServer
from excise.trainer.rollout_types import Sampling, Stop

from ..byte_model import byte_model
from .reference_logprobs import TOLERANCE, reference_logprobs, weights_of

HOLD = 100
"""Number of tokens at which an answer of the shared server waits for weights of a version above zero."""

PROGRAM = Path(__file__).with_name("vllm_like_server.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("model")
    model: PreTrainedModel = byte_model()
    model.save_pretrained(into)
    return into


def command(folder: Path, *more: str) -> Sequence[str]:
    return [sys.executable, str(PROGRAM), "--model", str(folder), *more]


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    """The address of a server that the tests of this module share."""
    process = ServerProcess(command(folder, "--hold", str(HOLD)), {})
    asyncio.run(process.wait_until_ready(60))
    yield process.url
    process.close()


def running(pids: Sequence[int]) -> list[int]:
    """Those of the processes that run; zombies do not count."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            found += [pid] * (state != "Z")
    return found


async def connect(folder: Path, url: str, **options: Any) -> VLLMServer:
    return await VLLMServer.connect(folder, url, VLLMOptions(**{"context_length": 512, "deadline_s": 30.0} | options))


async def start(folder: Path, *more: str, **options: Any) -> VLLMServer:
    values = {"context_length": 512, "start_s": 60.0, "deadline_s": 30.0} | options
    return await VLLMServer.start_command(folder, command(folder, *more), VLLMOptions(**values))


def test_the_server_engine_samples_scores_and_loads_weights(run_async: Any, folder: Path, served: str) -> None:
    other = byte_model(seed=1)

    async def go() -> Any:
        engine = await connect(folder, served + "/")
        await engine.load(weights_of(byte_model()), 0)
        first = await engine.generate([[1, 2, 3], [4]], Sampling(max_tokens=12, temperature=0.8, stop_ids=(258,)))
        scores = await engine.score([[1, 2, 3, 4], [5]])
        long = asyncio.create_task(engine.generate([[9]], Sampling(max_tokens=400)))
        while not (await call(served + "/held", timeout_s=30.0, method="GET"))["held"]:
            await asyncio.sleep(0.02)
        await engine.load(weights_of(other), 4)
        second = await engine.generate([[1, 2, 3]], Sampling(max_tokens=12))
        full = await engine.generate([[1] * 512, [1] * 510], Sampling(max_tokens=12))
        with pytest.raises(EngineError, match="weight"):
            await engine.load(weights_of(other)[1:], 5)
        version, mixed = engine.version, await long
        await engine.close()
        return first, scores, second, full, version, mixed[0]

    first, scores, second, full, version, mixed = run_async(go())
    model = byte_model()
    for prompt, answer in zip([[1, 2, 3], [4]], first, strict=True):
        assert answer.logprobs == pytest.approx(reference_logprobs(model, prompt, answer.ids, 0.8), abs=TOLERANCE)
        assert set(answer.versions) == {0}
    assert scores == [pytest.approx([0.0, *reference_logprobs(model, [1], (2, 3, 4))], abs=TOLERANCE), [0.0]]
    assert set(second[0].versions) == {4} == {version}
    assert second[0].logprobs == pytest.approx(reference_logprobs(other, [1, 2, 3], second[0].ids), abs=TOLERANCE)
    assert (full[0].ids, full[0].stop) == ((), Stop.LENGTH)
    assert set(mixed.versions) == {0, 4}


@pytest.mark.slow
def test_a_killed_server_is_restarted_with_its_last_weights(run_async: Any, folder: Path) -> None:
    other = byte_model(seed=1)

    async def go() -> Any:
        engine = await start(folder)
        await engine.load(weights_of(other), 2)
        assert engine._server is not None
        long = asyncio.create_task(engine.generate([[3, 2, 1]] * 3, Sampling(max_tokens=300)))
        await asyncio.sleep(0.3)
        for pid in descendants(engine._server.pid):
            os.kill(pid, signal.SIGKILL)
        answers = await long
        await engine.close()
        return answers

    for answer in run_async(go()):
        assert len(answer.ids) == 300
        assert set(answer.versions) == {2}
        assert answer.logprobs == pytest.approx(reference_logprobs(other, [3, 2, 1], answer.ids), abs=TOLERANCE)


def test_a_server_that_is_not_restarted_is_an_error(run_async: Any, folder: Path) -> None:
    """The server is killed with its supervisor while answers are pending, and may not be restarted."""

    async def go() -> None:
        engine = await start(folder, "--hang", max_restarts=0)
        assert engine._server is not None
        asked = asyncio.create_task(engine.generate([[3]] * 2, Sampling(max_tokens=3)))
        await asyncio.sleep(0.3)
        engine._server._process.kill()
        with pytest.raises(EngineError, match="gone"):
            await asyncio.wait_for(asked, 200)
        with pytest.raises(EngineError):
            await engine.generate([[3]], Sampling(max_tokens=3))
        await engine.close()
        await engine.close()

    run_async(go())


def test_a_hanging_server_is_an_error_after_the_deadline(run_async: Any, folder: Path) -> None:
    async def go() -> float:
        engine = await start(folder, "--hang", deadline_s=1.0, max_restarts=0)
        began = time.monotonic()
        with pytest.raises(EngineError):
            await engine.generate([[3]], Sampling(max_tokens=3))
        took = time.monotonic() - began
        await engine.close()
        return took

    assert 1 <= run_async(go()) < 10


def test_a_server_that_does_not_start_says_why(run_async: Any, folder: Path) -> None:
    async def go() -> None:
        with pytest.raises(EngineError, match="no such model"):
            await VLLMServer.start_command(
                folder, [sys.executable, "-c", "raise SystemExit('no such model')"], VLLMOptions(context_length=8)
            )

    run_async(go())


def test_a_refused_request_is_an_error_and_the_server_stays(run_async: Any, folder: Path, served: str) -> None:
    async def go() -> Any:
        engine = await connect(folder, served, context_length=2000)
        with pytest.raises(EngineError, match="refuses"):
            await engine.generate([[1] * 600], Sampling(max_tokens=3))
        answers = await engine.generate([[1]], Sampling(max_tokens=4))
        await engine.close()
        return answers

    assert [len(answer.ids) for answer in run_async(go())] == [4]


def test_an_address_without_a_server_is_an_error(run_async: Any, folder: Path) -> None:
    async def go() -> None:
        with pytest.raises(EngineError, match="VLLM_SERVER_DEV_MODE"):
            await connect(folder, "http://127.0.0.1:9")

    run_async(go())


@pytest.mark.slow
def test_all_requests_share_one_restart_which_outlives_their_cancellation(
    run_async: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests and loads that time out during the restart do not end it."""
    other = byte_model(seed=1)

    async def go() -> Any:
        engine = await start(folder, max_restarts=1)
        assert engine._server is not None
        for pid in descendants(engine._server.pid):
            os.kill(pid, signal.SIGKILL)
        for _ in range(4):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(engine.generate([[3, 2]] * 2, Sampling(max_tokens=5)), 0.2)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(engine.load(weights_of(other), 2), 0.2)
        await engine.load(weights_of(other), 3)
        answers = await engine.generate([[3, 2]] * 2, Sampling(max_tokens=5))
        await engine.close()
        return answers

    for answer in run_async(go()):
        assert set(answer.versions) == {3}
        assert answer.logprobs == pytest.approx(reference_logprobs(other, [3, 2], answer.ids), abs=TOLERANCE)
    (restart,) = [record for record in caplog.records if record.getMessage() == "engine restarted"]
    assert restart.name == "excise.trainer.engines.vllm_server"
    assert vars(restart)["reason"]
    assert vars(restart)["restarts_left"] == 0


def test_closing_the_engine_ends_a_restart(run_async: Any, folder: Path) -> None:
    async def go() -> int:
        engine = await start(folder)
        assert engine._server is not None
        for pid in descendants(engine._server.pid):
            os.kill(pid, signal.SIGKILL)
        asked = asyncio.create_task(engine.generate([[3]], Sampling(max_tokens=3)))
        loading = asyncio.create_task(engine.load(weights_of(byte_model()), 1))
        before = engine._server.pid
        while engine._server.pid == before:
            await asyncio.sleep(0.05)
        supervisor = engine._server.pid
        await engine.close()
        for waiting in (asked, loading):
            with pytest.raises(EngineError, match="closed"):
                await waiting
        return supervisor

    assert not running([run_async(go())])


@pytest.mark.slow
def test_a_server_that_does_not_resume_after_a_load_is_restarted(run_async: Any, folder: Path, tmp_path: Path) -> None:
    once = tmp_path / "once"

    async def go() -> Any:
        engine = await start(folder, "--once", str(once))
        once.touch()
        await engine.load(weights_of(byte_model(seed=1)), 2)
        answers = await asyncio.wait_for(engine.generate([[3, 2]], Sampling(max_tokens=5)), 200)
        await engine.close()
        return answers[0].versions

    assert set(run_async(go())) == {2}
    assert not once.exists()


def test_an_interrupted_load_leaves_no_server_paused(run_async: Any, folder: Path) -> None:
    """The load is cancelled, or the engine closed, before the server has confirmed that it is paused."""

    async def go(url: str, how: str) -> Any:
        engine = await connect(folder, url)
        loading = asyncio.create_task(engine.load(weights_of(byte_model()), 1))
        await asyncio.sleep(0.7)
        if how == "cancelled":
            loading.cancel()
        else:
            await engine.close()
        with pytest.raises(asyncio.CancelledError if how == "cancelled" else EngineError):
            await loading
        other = await connect(folder, url)
        answers = await asyncio.wait_for(other.generate([[3, 2]], Sampling(max_tokens=5)), 200)
        await engine.close()
        await other.close()
        return answers

    process = ServerProcess(command(folder, "--slow", "1.5"), {})
    asyncio.run(process.wait_until_ready(60))
    try:
        for how in ("cancelled", "closed"):
            assert [len(answer.ids) for answer in run_async(go(process.url, how))] == [5]
    finally:
        process.close()


def test_the_processes_of_a_server_end_with_its_supervisor() -> None:
    inner = "import subprocess, time; subprocess.Popen(['sleep', '1234']); time.sleep(1234)"
    process = ServerProcess([sys.executable, "-c", inner], {})
    deadline = time.monotonic() + 20
    while len(below := descendants(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(below) == 2
    os.kill(process.pid, signal.SIGKILL)
    while process.is_alive and time.monotonic() < deadline:
        time.sleep(0.1)
    process.close()
    process.close()
    while running(below) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not running(below)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_processes_of_a_server_end_with_the_process_that_started_it(how: signal.Signals, tmp_path: Path) -> None:
    """The supervised command has a child in another session; the process that started the supervisor is killed."""
    inner = "import subprocess,time;subprocess.Popen(['sleep','1234'],start_new_session=True);time.sleep(1234)"
    starter = (
        "import subprocess,sys,time\n"
        f"p=subprocess.Popen([sys.executable,{str(SUPERVISOR)!r},'0',sys.executable,'-c',{inner!r}],stdin=subprocess.PIPE)\n"
        "print(p.pid,flush=True)\ntime.sleep(1234)"
    )
    process = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    supervisor = int(process.stdout.readline())
    deadline = time.monotonic() + 20
    while len(below := descendants(supervisor)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(below) == 2
    os.kill(process.pid, how)
    process.wait(10)
    while any(os.path.exists(f"/proc/{pid}") for pid in (supervisor, *below)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in (supervisor, *below) if os.path.exists(f"/proc/{pid}")]
