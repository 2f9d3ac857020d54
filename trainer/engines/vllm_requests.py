"""What excise says to vLLM and how its answers are read, whether it runs in this process or behind HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excise.trainer.rollout_types import Generation, Sampling, Stop

STOPS = {"stop": Stop.END, "length": Stop.LENGTH}
NOTHING = Generation(ids=(), logprobs=(), versions=(), stop=Stop.LENGTH)
"""The answer to a prompt that fills the context."""
ABORTED = Generation(ids=(), logprobs=(), versions=(), stop=Stop.ABORTED)


def engine_options(context_length: int) -> dict[str, Any]:
    """Options without which log-probabilities were not those of the distribution that tokens are drawn from."""
    return {"max_model_len": context_length, "logprobs_mode": "processed_logprobs", "generation_config": "vllm"}


def sampling_values(sampling: Sampling, number: int, room: int) -> dict[str, Any]:
    """Values of ``vllm.SamplingParams`` for the ``number``-th prompt of a call; ``room`` is the most it may have."""
    return {
        "max_tokens": room,
        "temperature": sampling.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "seed": None if sampling.seed is None else sampling.seed + number,
        "stop_token_ids": list(sampling.stop_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "detokenize": False,
    }


SCORING = {"max_tokens": 1, "temperature": 1.0, "prompt_logprobs": 0, "detokenize": False}
"""Values of ``vllm.SamplingParams`` for reading what a model thinks of a sequence."""


def generation_of(
    ids: Sequence[int],
    logprobs: Sequence[float],
    finish_reason: str | None,
    spans: Sequence[Mapping[str, Any]] | None,
    version: int,
) -> Generation:
    """An answer; ``spans`` say which version drew which tokens, ``version`` is believed where they say nothing."""
    stop = STOPS.get(finish_reason or "", Stop.ABORTED)
    if stop is Stop.ABORTED or len(logprobs) != len(ids):
        return ABORTED
    versions = [version] * len(ids)
    for span in spans or ():
        if str(span["version"]).lstrip("-").isdigit():
            start, end = int(span["start"]), int(span["end"])
            versions[start:end] = [int(span["version"])] * (min(end, len(ids)) - start)
    return Generation(ids=tuple(ids), logprobs=tuple(logprobs), versions=tuple(versions), stop=stop)


def room_for(prompt: Sequence[int], sampling: Sampling, context_length: int) -> int:
    """Most tokens that an answer may have; 0 or less if the prompt fills the context."""
    return min(sampling.max_tokens, context_length - len(prompt))
