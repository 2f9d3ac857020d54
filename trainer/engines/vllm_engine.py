"""What the engines of vLLM share, in this process or behind HTTP: which prompts are asked, how answers are counted."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.trainer.engines.vllm_requests import NOTHING, generation_of, room_for, sampling_values
from excise.trainer.rollout_types import Generation, Sampling

if TYPE_CHECKING:
    import torch


class VLLMEngine(ABC):
    """The half of :class:`excise.trainer.interfaces.Engine` that needs no word about where vLLM runs."""

    reads_files = True

    def __init__(self, context_length: int) -> None:
        self.context_length = context_length
        self._version, self._broken = 0, ""
        self._handing: asyncio.Task[None] | None = None

    @property
    def version(self) -> int:
        """Version of the weights that the next token is drawn from."""
        return self._version

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """See the protocol."""
        return list(await asyncio.gather(*(self._one(n, list(p), sampling) for n, p in enumerate(prompts))))

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """See the protocol."""
        return list(await asyncio.gather(*(self._score(list(sequence)) for sequence in sequences)))

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See the protocol. A call that is cancelled goes on without its caller, and the next one waits for its end."""
        while self._handing is not None and not self._handing.done():
            await asyncio.wait([self._handing])
        self._require_sound()
        handing = self._handing = asyncio.create_task(self._hand_over(weights, version))
        try:
            await asyncio.shield(handing)
        except asyncio.CancelledError:
            if handing.cancelled():  # it ended with the engine
                self._require_sound()
            raise

    async def _one(self, number: int, prompt: list[int], sampling: Sampling) -> Generation:
        room = room_for(prompt, sampling, self.context_length)
        if room <= 0 or not prompt:
            return NOTHING
        version = self._version
        return generation_of(*await self._sampled(prompt, sampling_values(sampling, number, room)), version)

    async def _score(self, sequence: list[int]) -> list[float]:
        if len(sequence) < 2:
            return [0.0] * len(sequence)
        if len(sequence) >= self.context_length:
            raise EngineError(f"A sequence to score does not fit the context of {self.context_length} tokens.")
        return [0.0, *await self._read(sequence)]

    def _require_sound(self) -> None:
        if self._broken:
            raise EngineError(f"Nothing can be sampled: {self._broken}.")

    @abstractmethod
    async def _hand_over(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """What :meth:`load` does, one at a time; cancelled by nobody but :meth:`close`."""

    @abstractmethod
    async def _sampled(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        """Ids, log-probabilities, vLLM's reason for the end, and which version drew which of them."""

    @abstractmethod
    async def _read(self, sequence: list[int]) -> list[float]:
        """Log-probability of each token but the first."""
