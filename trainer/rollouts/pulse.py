"""Whether an engine still lives: who waited in vain for an answer must know, before it is held against the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from excise.errors import EngineError
from excise.trainer.interfaces import Engine
from excise.trainer.rollout_types import Sampling, Stop

PULSE_S = 60.0
"""Within this time, a living engine draws one token."""
PROMPT_TOKENS = 16
"""Of the context, these are enough to ask."""


class Pulse:
    """Asks an engine for one token; all who want to know at the same time share one question."""

    def __init__(self, engine: Engine, within_s: float = PULSE_S) -> None:
        self._engine, self._within_s = engine, within_s
        self._asking: asyncio.Task[str] | None = None

    async def check(self, context: Sequence[int], sampling: Sampling) -> None:
        """Raises :class:`EngineError` if no token comes."""
        if self._asking is None or self._asking.done():
            asked = replace(sampling, max_tokens=1)
            self._asking = asyncio.create_task(self._ask(tuple(context[:PROMPT_TOKENS]), asked))
        if wrong := await asyncio.shield(self._asking):
            raise EngineError(f"The engine does not answer: {wrong}")

    async def _ask(self, prompt: tuple[int, ...], sampling: Sampling) -> str:
        """What is wrong with it; empty if nothing is."""
        try:
            async with asyncio.timeout(self._within_s):
                (answer,) = await self._engine.generate([prompt], sampling)
        except TimeoutError:
            return f"not one token within {self._within_s:.0f} s."
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "it gave up." if answer.stop is Stop.ABORTED else ""
