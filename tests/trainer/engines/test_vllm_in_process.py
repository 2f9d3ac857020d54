"""The engine with vLLM in this process, with a fake core that fails on demand; vLLM is not needed."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from excise.errors import EngineError
from excise.trainer.engines import vllm_in_process
from excise.trainer.engines.vllm_in_process import VLLMInProcess
from excise.trainer.engines.weight_files import WeightFiles

from ..byte_model import byte_model
from .reference_logprobs import weights_of


class FakeCore:
    """The part of vLLM's ``AsyncLLM`` that the engine uses to load weights."""

    def __init__(self) -> None:
        self.paused, self.weight_version, self.fails_to_resume = False, "0", False
        self.may_load = asyncio.Event()
        self.may_load.set()
        self.may_shut_down = threading.Event()
        self.may_shut_down.set()

    async def pause_generation(self, **_: Any) -> None:
        self.paused = True

    async def resume_generation(self) -> None:
        if self.fails_to_resume:
            raise RuntimeError("it stays paused")
        self.paused = False

    async def collective_rpc(self, method: str, kwargs: Any) -> None:
        await self.may_load.wait()

    async def reset_prefix_cache(self, **_: Any) -> None:
        pass

    async def update_weight_version(self, version: str) -> None:
        self.weight_version = version

    def shutdown(self) -> None:
        self.may_shut_down.wait()


@pytest.fixture
def files(tmp_path: Path) -> WeightFiles:
    byte_model().save_pretrained(tmp_path)
    return WeightFiles(tmp_path, tmp_path)


def engine_of(core: FakeCore, files: WeightFiles) -> VLLMInProcess:
    return VLLMInProcess(core, files, context_length=512, deadline_s=30.0)


def test_a_core_that_does_not_resume_is_an_error(run_async: Any, files: WeightFiles) -> None:
    async def go() -> None:
        core = FakeCore()
        core.fails_to_resume = True
        engine = engine_of(core, files)
        for _ in range(2):
            with pytest.raises(EngineError, match="stays paused"):
                await engine.load(weights_of(byte_model()), 1)
        await engine.close()

    run_async(go())


def test_a_cancelled_load_runs_to_its_end_and_the_next_one_waits(run_async: Any, files: WeightFiles) -> None:
    async def go() -> None:
        core = FakeCore()
        core.may_load.clear()
        engine = engine_of(core, files)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.load(weights_of(byte_model()), 1), 0.5)
        assert core.paused
        following = asyncio.create_task(engine.load(weights_of(byte_model()), 2))
        await asyncio.sleep(0.1)
        core.may_load.set()
        await following
        assert (core.paused, core.weight_version, engine.version) == (False, "2", 2)
        core.may_load.clear()
        cut_off = asyncio.create_task(engine.load(weights_of(byte_model()), 3))
        await asyncio.sleep(0.2)
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await cut_off

    run_async(go())


def test_closing_does_not_wait_for_a_core_that_hangs(
    run_async: Any, files: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_in_process, "SHUTDOWN_S", 0.3)

    async def go() -> FakeCore:
        core = FakeCore()
        core.may_shut_down.clear()
        engine = engine_of(core, files)
        await engine.close()
        await engine.close()
        return core

    began = time.monotonic()
    core = run_async(go())  # also waits for the threads that asyncio has
    assert time.monotonic() - began < 10
    core.may_shut_down.set()
