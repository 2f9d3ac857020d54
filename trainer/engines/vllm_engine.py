"""The base class of the vLLM engines, in this process or behind HTTP."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.trainer.engines.vllm_requests import EMPTY_ANSWER, generation_of, max_answer_tokens, sampling_values
from excise.trainer.rollout_types import Generation, Sampling

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class VLLMOptions:
    """Options of both vLLM engines; the last two are for a server that is started here."""

    context_length: int
    """Maximum number of tokens of prompt and answer together."""
    dtype: str = "auto"
    """Number format of vLLM's weights: ``auto``, which is that of the model's files, or a name of torch's."""
    weights: Path | None = None
    """Folder for the files that pass weights to vLLM; ``None`` for a temporary folder in memory."""
    start_s: float = 900.0
    """Timeout in seconds for vLLM to start, and for a server to load new weights."""
    deadline_s: float = 3600.0
    """Timeout in seconds of one answer."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the server, added to this process's own."""
    max_restarts: int = 3
    """How often a server that died is replaced by a new one."""


class VLLMEngine(ABC):
    """The part of :class:`excise.trainer.interfaces.Engine` that does not depend on where vLLM runs."""

    needs_checkpoint_names = True

    def __init__(self, context_length: int) -> None:
        self.context_length = context_length
        self._version = 0
        self._broken = ""
        """Why the engine cannot be used; empty while it works."""
        self._loading: asyncio.Task[None] | None = None

    @property
    def version(self) -> int:
        """Version of the weights that the next token is sampled from."""
        return self._version

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """See :meth:`excise.trainer.interfaces.Engine.generate`."""
        return list(await asyncio.gather(*(self._generate_one(n, list(p), sampling) for n, p in enumerate(prompts))))

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """See :meth:`excise.trainer.interfaces.Engine.score`."""
        return list(await asyncio.gather(*(self._score_one(list(sequence)) for sequence in sequences)))

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See :meth:`excise.trainer.interfaces.Engine.load`. A cancelled call continues in the background, and the
        next call waits for it."""
        while self._loading is not None and not self._loading.done():
            await asyncio.wait([self._loading])
        self._require_working()
        loading = self._loading = asyncio.create_task(self._load_weights(weights, version))
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            if loading.cancelled():  # by close()
                self._require_working()
            raise

    async def _generate_one(self, number: int, prompt: list[int], sampling: Sampling) -> Generation:
        max_tokens = max_answer_tokens(prompt, sampling, self.context_length)
        if max_tokens <= 0 or not prompt:
            return EMPTY_ANSWER
        version = self._version
        return generation_of(*await self._sample(prompt, sampling_values(sampling, number, max_tokens)), version)

    async def _score_one(self, sequence: list[int]) -> list[float]:
        if len(sequence) < 2:
            return [0.0] * len(sequence)
        if len(sequence) >= self.context_length:
            raise EngineError(f"A sequence to score does not fit the context of {self.context_length} tokens.")
        return [0.0, *await self._prompt_logprobs(sequence)]

    def _require_working(self) -> None:
        if self._broken:
            raise EngineError(f"Nothing can be sampled: {self._broken}.")

    @abstractmethod
    async def _load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Implements :meth:`load`. Calls do not overlap and are cancelled by :meth:`close` only."""

    @abstractmethod
    async def _sample(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        """Sample an answer: token ids, log-probabilities, vLLM's finish reason, and spans of policy versions."""

    @abstractmethod
    async def _prompt_logprobs(self, sequence: list[int]) -> list[float]:
        """Log-probability of each token except the first."""
