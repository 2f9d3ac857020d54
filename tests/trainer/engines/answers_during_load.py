"""Answers that are sampled while an engine loads new weights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from excise.trainer.rollout_types import Generation, Sampling

LENGTHS = (40, 61, 97)
"""Tokens of the answers of each task: the lengths differ, so that at any time some task is within an answer."""


async def answers_during(loading: Awaitable[None], engine: Any, prompt: list[int]) -> list[Generation]:
    """Sample answers in several tasks from before ``loading`` begins until it has ended, and return them all."""
    load = asyncio.ensure_future(load_after_a_delay(loading))

    async def sample(length: int) -> list[Generation]:
        answers: list[Generation] = []
        while not load.done():
            answers += await engine.generate([prompt], Sampling(max_tokens=length))
        return answers

    everything = await asyncio.gather(*(sample(length) for length in LENGTHS))
    await load
    return [answer for answers in everything for answer in answers]


async def load_after_a_delay(loading: Awaitable[None]) -> None:
    await asyncio.sleep(0.5)
    await loading
