"""Who knows better: a slower copy of the policy, or a frozen one that follows it a little. Never the policy itself.

A teacher that is the live policy runs away with it: both drift towards whatever the spliced context makes likely.
(SDPO, arXiv 2601.20802, table 4, on the same tasks: live 36.1, frozen 48.8, moving average 49.3, trust region 50.6.)
"""

from __future__ import annotations

import copy
from enum import StrEnum
from typing import Protocol

import torch

from excise.trainer.objective.policy_forward import full_precision, predicted_logits
from excise.trainer.objective.row_packing import PackedIds


class TeacherKind(StrEnum):
    """Which teacher."""

    EMA = "ema"
    """Exponential moving average of the policy's weights."""
    TRUST_REGION = "trust_region"
    """Logits of the first policy, drawn a little towards the live one's."""
    FROZEN = "frozen"
    """The first policy."""


USUAL_RATE = {TeacherKind.EMA: 0.02, TeacherKind.TRUST_REGION: 0.01}
"""Of a teacher, if nothing is said."""


class Teacher(Protocol):
    """Makes logits for contexts that the student does not see."""

    def logits(self, packed: PackedIds) -> torch.Tensor:
        """``[P, V]``, without gradient."""
        ...

    def follow(self, student: torch.nn.Module) -> None:
        """The student made a step."""
        ...

    def weights(self) -> torch.nn.Module | None:
        """What of it belongs into a checkpoint; ``None``: it can be had from the first policy again."""
        ...


def frozen_copy(model: torch.nn.Module) -> torch.nn.Module:
    """A copy that nothing trains."""
    return copy.deepcopy(model).eval().requires_grad_(False)


class FrozenTeacher:
    """The policy as it was."""

    def __init__(self, first: torch.nn.Module) -> None:
        self._first = first

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """Of the first policy."""
        return predicted_logits(self._first, packed)

    def follow(self, student: torch.nn.Module) -> None:
        """Nothing moves it."""

    def weights(self) -> torch.nn.Module | None:
        """None of its own."""
        return None


class EmaTeacher:
    """``teacher += rate · (student - teacher)`` after every step."""

    def __init__(self, average: torch.nn.Module, rate: float, products: torch.dtype = torch.float32) -> None:
        """``average`` is a copy of the student, sharded as it is, in float32: a step of ``rate`` is less than the
        steps of bfloat16. ``products`` is the student's number format, for matrix products.
        """
        self._average, self._rate, self._products = average, rate, products

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """Of the average."""
        if self._products != torch.bfloat16:
            return predicted_logits(self._average, packed)
        with torch.autocast(packed.ids.device.type, self._products):
            return predicted_logits(self._average, packed)

    @torch.no_grad()
    def follow(self, student: torch.nn.Module) -> None:
        """Move a little."""
        for mine, theirs in zip(self._average.parameters(), student.parameters(), strict=True):
            mine.lerp_(theirs.detach().to(mine.dtype), self._rate)

    def weights(self) -> torch.nn.Module | None:
        """The average."""
        return self._average


class TrustRegionTeacher:
    """``lerp(first policy's logits, live policy's logits, rate)``, both given the teacher's context."""

    def __init__(self, first: torch.nn.Module, live: torch.nn.Module, rate: float) -> None:
        self._first, self._live, self._rate = first, live, rate

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """A geometric mixture of the two distributions."""
        first = full_precision(predicted_logits(self._first, packed))
        return first.lerp(full_precision(predicted_logits(self._live, packed)), self._rate)

    def follow(self, student: torch.nn.Module) -> None:
        """It looks at the live policy anyway."""

    def weights(self) -> torch.nn.Module | None:
        """None of its own."""
        return None
