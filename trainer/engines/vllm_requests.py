"""Sampling parameters for vLLM and conversion of its answers, for both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excise.trainer.rollout_types import Generation, Sampling, Stop

STOPS = {"stop": Stop.END, "length": Stop.LENGTH}
EMPTY_ANSWER = Generation(ids=(), logprobs=(), versions=(), stop=Stop.LENGTH)
"""The answer to a prompt that leaves no room in the context."""
ABORTED = Generation(ids=(), logprobs=(), versions=(), stop=Stop.ABORTED)


def engine_options(context_length: int) -> dict[str, Any]:
    """Options that make vLLM report log-probabilities of the distribution that it samples from."""
    return {"max_model_len": context_length, "logprobs_mode": "processed_logprobs", "generation_config": "vllm"}


def sampling_values(sampling: Sampling, number: int, max_tokens: int) -> dict[str, Any]:
    """Values of ``vllm.SamplingParams`` for an answer of at most ``max_tokens`` to a call's ``number``-th prompt."""
    return {
        "max_tokens": max_tokens,
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
"""Values of ``vllm.SamplingParams`` for scoring a sequence."""


def generation_of(
    ids: Sequence[int],
    logprobs: Sequence[float],
    finish_reason: str | None,
    spans: Sequence[Mapping[str, Any]] | None,
    version: int,
) -> Generation:
    """Convert an answer of vLLM. ``spans`` are token ranges with their policy version; ``version`` is the default."""
    stop = STOPS.get(finish_reason or "", Stop.ABORTED)
    if stop is Stop.ABORTED or len(logprobs) != len(ids):
        return ABORTED
    versions = [version] * len(ids)
    for span in spans or ():
        if str(span["version"]).lstrip("-").isdigit():
            start, end = int(span["start"]), int(span["end"])
            versions[start:end] = [int(span["version"])] * (min(end, len(ids)) - start)
    return Generation(ids=tuple(ids), logprobs=tuple(logprobs), versions=tuple(versions), stop=stop)


def max_answer_tokens(prompt: Sequence[int], sampling: Sampling, context_length: int) -> int:
    """Maximum number of tokens of an answer; 0 or less if the prompt fills the context."""
    return min(sampling.max_tokens, context_length - len(prompt))
