"""Log-probabilities and weights of a model, to compare those of an engine with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

TOLERANCE = 2e-4
"""Largest difference in nats between a log-probability of the engine and of a plain forward pass, both in 32 bits."""


def reference_logprobs(model: Any, prompt: list[int], ids: Sequence[int], temperature: float = 1.0) -> list[float]:
    """Log-probabilities of ``ids`` after ``prompt``, by one forward pass without padding or cache."""
    whole = torch.tensor([[*prompt, *ids]])
    with torch.no_grad():
        logits = model(whole).logits[0, len(prompt) - 1 : -1].float() / temperature
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()


def weights_of(model: Any) -> list[tuple[str, torch.Tensor]]:
    """Copies of a model's weights with their names, as an engine loads them."""
    return [(name, parameter.detach().clone()) for name, parameter in model.named_parameters()]
