"""An engine that is watched: how long it had nothing to do, how much at once, how many tokens it wrote."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from excise.trainer.interfaces import Engine
from excise.trainer.rollout_types import Generation, Sampling

if TYPE_CHECKING:
    import torch


class MeteredEngine:
    """Hands everything on; see :class:`excise.trainer.interfaces.Engine`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.context_length = engine.context_length
        self.reads_files = engine.reads_files
        self._asked = 0
        self._tokens = 0
        self._busy_s = 0.0
        self._prompt_s = 0.0
        self._since = self._began = time.monotonic()

    @property
    def version(self) -> int:
        """Of the engine."""
        return self._engine.version

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """As the engine's own."""
        self._change(+len(prompts))
        try:
            answers = await self._engine.generate(prompts, sampling)
        finally:
            self._change(-len(prompts))
        self._tokens += sum(len(answer.ids) for answer in answers)
        return answers

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """As the engine's own."""
        return await self._engine.score(sequences)

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """As the engine's own."""
        await self._engine.load(weights, version)

    async def close(self) -> None:
        """As the engine's own."""
        await self._engine.close()

    def _change(self, by: int) -> None:
        now = time.monotonic()
        if self._asked:
            self._busy_s += now - self._since
            self._prompt_s += self._asked * (now - self._since)
        self._since = now
        self._asked += by

    def reading(self) -> dict[str, float]:
        """``engine_idle``, ``engine_occupancy`` and ``engine_tokens_per_s`` since the last reading.

        Share of the time without a question; mean number of prompts in flight (those of a call until it returns).
        """
        self._change(0)
        elapsed = max(1e-9, self._since - self._began)
        found = {
            "engine_idle": 1 - min(1.0, self._busy_s / elapsed),
            "engine_occupancy": self._prompt_s / elapsed,
            "engine_tokens_per_s": self._tokens / elapsed,
        }
        self._busy_s, self._prompt_s, self._tokens, self._began = 0.0, 0.0, 0, self._since
        return found
