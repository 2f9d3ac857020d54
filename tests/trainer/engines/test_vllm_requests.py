"""Answers of vLLM: versions of the weights for each token, and answers that are not complete."""

from __future__ import annotations

import pytest

from excise.trainer.engines.vllm_requests import ABORTED, generation_of
from excise.trainer.rollout_types import Stop


def test_versions_of_tokens_come_from_the_spans_of_the_answer() -> None:
    spans = [{"version": "3", "start": 0, "end": 2}, {"version": "4", "start": 2, "end": 9}]
    found = generation_of([5, 6, 7], [-1.0, -2.0, -3.0], "stop", spans, 1)
    assert (found.versions, found.stop) == ((3, 3, 4), Stop.END)
    unlabelled = generation_of([5], [-1.0], "length", [{"version": "default", "start": 0, "end": 1}], 1)
    assert (unlabelled.versions, unlabelled.stop) == ((1,), Stop.LENGTH)


@pytest.mark.parametrize(("logprobs", "reason"), [([-1.0], "stop"), ([-1.0, -2.0], "abort"), ([-1.0, -2.0], None)])
def test_an_incomplete_answer_counts_as_aborted(logprobs: list[float], reason: str | None) -> None:
    """A missing log-probability is never filled in."""
    assert generation_of([5, 6], logprobs, reason, None, 1) == ABORTED
