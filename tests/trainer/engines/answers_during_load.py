"""Answers that are being written when an engine gets new weights, however long that takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from excise.trainer.rollout_types import Generation, Sampling

LENGTHS = (40, 61, 97)
"""Tokens of the answers of each writer: where one is between two answers, the others are not."""


async def written_during(loading: Awaitable[None], engine: Any, prompt: list[int]) -> list[Generation]:
    """What several writers, each with one answer after the other, wrote from before ``loading`` until it was done."""
    load = asyncio.ensure_future(wait_for_a_beginning(loading))

    async def write(length: int) -> list[Generation]:
        written: list[Generation] = []
        while not load.done():
            written += await engine.generate([prompt], Sampling(max_tokens=length))
        return written

    everything = await asyncio.gather(*(write(length) for length in LENGTHS))
    await load
    return [answer for written in everything for answer in written]


async def wait_for_a_beginning(loading: Awaitable[None]) -> None:
    await asyncio.sleep(0.5)
    await loading
