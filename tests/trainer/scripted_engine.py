"""An engine whose answers are given by a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from excise.errors import EngineError
from excise.trainer.rollout_types import Generation, Sampling, Stop

Say = Callable[[str], str]
"""Function from the text of the context to the next answer."""


class ScriptedEngine:
    """An engine that answers with ``say(context)``, or with the next text of a list.

    Every token has the log-probability -0.5. The answer ``DEAD`` raises :class:`EngineError`.
    """

    name = "scripted"
    needs_checkpoint_names = False

    def __init__(self, tokenizer: Any, say: Say | Iterable[str], *, context_length: int = 100_000) -> None:
        self.tokenizer, self.context_length, self.version = tokenizer, context_length, 3
        answers = iter(()) if callable(say) else iter(say)
        self.say: Say = say if callable(say) else lambda _: next(answers)
        self.contexts: list[tuple[int, ...]] = []
        self.pause_s = 0.0

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        await asyncio.sleep(self.pause_s)
        return [self._one(tuple(prompt), sampling) for prompt in prompts]

    def _one(self, prompt: tuple[int, ...], sampling: Sampling) -> Generation:
        self.contexts.append(prompt)
        text = self.say(self.tokenizer.decode(list(prompt)))
        if text == "DEAD":
            raise EngineError("The engine is gone.")
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), sampling.stop_ids[0]]
        stop = Stop.END if len(ids) <= sampling.max_tokens else Stop.LENGTH
        ids = ids[: sampling.max_tokens]
        return Generation(ids=tuple(ids), logprobs=(-0.5,) * len(ids), versions=(self.version,) * len(ids), stop=stop)

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        return [[0.0] + [-0.5] * (len(s) - 1) for s in sequences]

    async def load(self, weights: Iterable[Any], version: int) -> None:
        self.version = version

    async def close(self) -> None:
        pass
