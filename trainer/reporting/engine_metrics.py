"""An engine wrapper that measures idle time, occupancy and throughput."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from excise.trainer.interfaces import Engine
from excise.trainer.rollout_types import Generation, Sampling

if TYPE_CHECKING:
    import torch


class MeteredEngine:
    """Forwards everything to another engine and measures its use. See :class:`excise.trainer.interfaces.Engine`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.context_length = engine.context_length
        self.needs_checkpoint_names = engine.needs_checkpoint_names
        self._in_flight = 0
        self._tokens = 0
        self._busy_s = 0.0
        """Seconds with at least one prompt in flight."""
        self._prompt_s = 0.0
        """Sum over prompts of their seconds in flight."""
        self._last_change = self._period_start = time.monotonic()

    @property
    def version(self) -> int:
        """Version of the engine's weights."""
        return self._engine.version

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """See :class:`excise.trainer.interfaces.Engine`."""
        self._add_in_flight(+len(prompts))
        try:
            answers = await self._engine.generate(prompts, sampling)
        finally:
            self._add_in_flight(-len(prompts))
        self._tokens += sum(len(answer.ids) for answer in answers)
        return answers

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """See :class:`excise.trainer.interfaces.Engine`."""
        return await self._engine.score(sequences)

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See :class:`excise.trainer.interfaces.Engine`."""
        await self._engine.load(weights, version)

    async def close(self) -> None:
        """See :class:`excise.trainer.interfaces.Engine`."""
        await self._engine.close()

    def _add_in_flight(self, number: int) -> None:
        now = time.monotonic()
        if self._in_flight:
            self._busy_s += now - self._last_change
            self._prompt_s += self._in_flight * (now - self._last_change)
        self._last_change = now
        self._in_flight += number

    def take_metrics(self) -> dict[str, float]:
        """``engine_idle``, ``engine_occupancy`` and ``engine_tokens_per_s`` since the last call; starts a new period.

        Idle is the share of time without any prompt in flight, occupancy the mean number of prompts in flight. The
        prompts of a call are in flight until it returns.
        """
        self._add_in_flight(0)
        elapsed = max(1e-9, self._last_change - self._period_start)
        metrics = {
            "engine_idle": 1 - min(1.0, self._busy_s / elapsed),
            "engine_occupancy": self._prompt_s / elapsed,
            "engine_tokens_per_s": self._tokens / elapsed,
        }
        self._busy_s, self._prompt_s, self._tokens, self._period_start = 0.0, 0.0, 0, self._last_change
        return metrics
