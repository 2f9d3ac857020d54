"""Do engine and trainer compute the same probabilities? If not, what is learned is off by as much as they differ."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from excise.errors import TrainingError
from excise.trainer.interfaces import Engine
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.worker import Worker
from excise.trainer.rollout_types import Sampling, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far apart log-probabilities of the same tokens are, in nats."""

    mean: float
    """Of the absolute differences."""
    largest: float
    """Of them."""
    num_tokens: int
    """Looked at."""


async def measure(
    engine: Engine,
    learner: Learner,
    worker: Worker,
    *,
    num_answers: int = 4,
    num_tokens: int = 48,
    deadline_s: float = 600.0,
) -> Agreement:
    """Sample some answers and compare the engine's log-probabilities with the trainer's.

    The prompts are the first ids of the vocabulary: any will do. Raises :class:`TrainingError` past the deadline or if
    the engine gives no answer.
    """
    prompts = [list(range(1, 9 + number)) for number in range(num_answers)]
    temperature = learner.settings.temperature
    sampling = Sampling(max_tokens=num_tokens, temperature=temperature, seed=0)
    try:
        answers = await asyncio.wait_for(engine.generate(prompts, sampling), deadline_s)
    except TimeoutError:
        raise TrainingError(f"The engine gave no answer in {deadline_s:.0f} s.", reason="engine_slow") from None
    whole = [(p, a) for p, a in zip(prompts, answers, strict=True) if a.ids and a.stop is not Stop.ABORTED]
    if not whole:
        raise TrainingError("The engine gives no answers; its own log says why.", reason="engine_silent")
    ids = [[*prompt, *answer.ids] for prompt, answer in whole]
    ours = await worker.start(learner.score, ids, temperature, deadline_s=deadline_s, what="Comparing")
    differences = [
        abs(mine - theirs)
        for (prompt, answer), scored in zip(whole, ours, strict=True)
        for mine, theirs in zip(scored[len(prompt) :], answer.logprobs, strict=True)
    ]
    return Agreement(mean=sum(differences) / len(differences), largest=max(differences), num_tokens=len(differences))


def require(found: Agreement, tolerance: float) -> None:
    """Raise :class:`TrainingError` if the mean difference is above ``tolerance``."""
    if not found.mean <= tolerance:  # a nan is not, either
        raise TrainingError(
            f"Engine and trainer disagree: log-probabilities of {found.num_tokens} sampled tokens differ by "
            f"{found.mean:.4f} on average and {found.largest:.4f} at most; {tolerance} on average is allowed. Do both "
            "have the same weights, number format and temperature, and does the engine cut nothing off (top-p, top-k)?",
            reason="engine_disagrees",
        )
