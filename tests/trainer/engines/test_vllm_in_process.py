"""The engine in this process around a core that fails, without vLLM."""

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


class Core:
    """What is asked of ``AsyncLLM`` while it takes weights."""

    def __init__(self) -> None:
        self.paused, self.weight_version, self.stays = False, "0", False
        self.reading = asyncio.Event()
        self.reading.set()
        self.held = threading.Event()
        self.held.set()

    async def pause_generation(self, **_: Any) -> None:
        self.paused = True

    async def resume_generation(self) -> None:
        if self.stays:
            raise RuntimeError("it stays paused")
        self.paused = False

    async def collective_rpc(self, method: str, kwargs: Any) -> None:
        await self.reading.wait()

    async def reset_prefix_cache(self, **_: Any) -> None:
        pass

    async def update_weight_version(self, version: str) -> None:
        self.weight_version = version

    def shutdown(self) -> None:
        self.held.wait()


@pytest.fixture
def files(tmp_path: Path) -> WeightFiles:
    byte_model().save_pretrained(tmp_path)
    return WeightFiles(tmp_path, tmp_path)


def around(core: Core, files: WeightFiles) -> VLLMInProcess:
    return VLLMInProcess(core, files, context_length=512, deadline_s=30.0)


def test_a_core_that_stays_paused_is_an_error(going: Any, files: WeightFiles) -> None:
    async def go() -> None:
        core = Core()
        core.stays = True
        engine = around(core, files)
        for _ in range(2):
            with pytest.raises(EngineError, match="stays paused"):
                await engine.load(weights_of(byte_model()), 1)
        await engine.close()

    going(go())


def test_a_load_that_is_cancelled_goes_on_and_the_next_waits(going: Any, files: WeightFiles) -> None:
    async def go() -> None:
        core = Core()
        core.reading.clear()
        engine = around(core, files)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.load(weights_of(byte_model()), 1), 0.5)
        assert core.paused
        following = asyncio.create_task(engine.load(weights_of(byte_model()), 2))
        await asyncio.sleep(0.1)
        core.reading.set()
        await following
        assert (core.paused, core.weight_version, engine.version) == (False, "2", 2)
        core.reading.clear()
        cut_off = asyncio.create_task(engine.load(weights_of(byte_model()), 3))
        await asyncio.sleep(0.2)
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await cut_off

    going(go())


def test_a_core_that_does_not_go_is_left_in_time(
    going: Any, files: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_in_process, "SHUTDOWN_S", 0.3)

    async def go() -> Core:
        core = Core()
        core.held.clear()
        engine = around(core, files)
        await engine.close()
        await engine.close()
        return core

    began = time.monotonic()
    core = going(go())  # also waits for the threads that asyncio has
    assert time.monotonic() - began < 10
    core.held.set()
