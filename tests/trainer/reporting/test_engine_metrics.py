"""Metrics of an engine, measured with a clock that the test sets."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from excise.trainer.reporting import engine_metrics as metered
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.rollout_types import Sampling

from ..scripted_engine import ScriptedEngine


class HeldEngine(ScriptedEngine):
    """An engine that answers once ``released`` is set."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer, lambda _: "x")
        self.released = asyncio.Event()

    async def generate(self, *arguments: Any) -> Any:
        await self.released.wait()
        return await super().generate(*arguments)


def test_prompts_in_flight_are_weighted_by_time(
    run_async: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(metered, "time", SimpleNamespace(monotonic=lambda: now))

    async def go() -> tuple[dict[str, float], ...]:
        nonlocal now
        inner = HeldEngine(tokenizer)
        engine = MeteredEngine(inner)
        sampling = Sampling(max_tokens=4, stop_ids=(258,))
        now += 4  # nothing asked
        many = asyncio.create_task(engine.generate([[1]] * 3, sampling))
        await asyncio.sleep(0)
        now += 2  # three in flight
        one = asyncio.create_task(engine.generate([[1]], sampling))
        given_up = asyncio.create_task(engine.generate([[1]] * 6, sampling))
        await asyncio.sleep(0)
        now += 1  # ten
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        now += 3  # four
        first = engine.take_metrics()
        now += 5  # the same four
        inner.released.set()
        await asyncio.gather(many, one)
        now += 5
        return first, engine.take_metrics(), engine.take_metrics()

    first, second, third = run_async(go())
    assert first["engine_idle"] == pytest.approx(0.4)
    assert first["engine_occupancy"] == pytest.approx((3 * 2 + 10 * 1 + 4 * 3) / 10)
    assert second["engine_idle"] == pytest.approx(0.5)
    assert second["engine_occupancy"] == pytest.approx(2.0)
    assert second["engine_tokens_per_s"] == pytest.approx(8 / 10)
    assert third["engine_occupancy"] == 0
