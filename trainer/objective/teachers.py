"""Teachers for distillation: a moving average of the policy, a frozen copy, or a mixture; never the live policy.

With the live policy as teacher, training diverges: both drift towards whatever the inserted context makes likely.
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
    """The kind of teacher."""

    EMA = "ema"
    """Exponential moving average of the policy's weights."""
    TRUST_REGION = "trust_region"
    """The initial policy's logits, interpolated slightly towards the live policy's."""
    FROZEN = "frozen"
    """The initial policy."""


DEFAULT_RATE = {TeacherKind.EMA: 0.02, TeacherKind.TRUST_REGION: 0.01}
"""Kind of teacher to its rate, where the configuration has none."""


class Teacher(Protocol):
    """Computes logits for contexts that the student does not see."""

    def logits(self, packed: PackedIds) -> torch.Tensor:
        """``[P, V]``, without gradient."""
        ...

    def update(self, student: torch.nn.Module) -> None:
        """Called after each step of the student."""
        ...

    def weights(self) -> torch.nn.Module | None:
        """The weights to store in a checkpoint; ``None`` if the initial policy is enough to rebuild the teacher."""
        ...


def frozen_copy(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a model in evaluation mode, without gradients."""
    return copy.deepcopy(model).eval().requires_grad_(False)


class FrozenTeacher:
    """The initial policy."""

    def __init__(self, first: torch.nn.Module) -> None:
        self._first = first

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """Logits of the initial policy."""
        return predicted_logits(self._first, packed)

    def update(self, student: torch.nn.Module) -> None:
        """Does nothing."""

    def weights(self) -> torch.nn.Module | None:
        """``None``: the initial policy is enough to rebuild this teacher."""
        return None


class EmaTeacher:
    """``teacher += rate · (student - teacher)`` after every step."""

    def __init__(self, average: torch.nn.Module, rate: float, products: torch.dtype = torch.float32) -> None:
        """``average`` is a float32 copy of the student with the same sharding; bfloat16 would round updates of ``rate``
        away. ``products`` is the student's number format, used for matrix products.
        """
        self._average, self._rate, self._products = average, rate, products

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """Logits of the average."""
        if self._products != torch.bfloat16:
            return predicted_logits(self._average, packed)
        with torch.autocast(packed.ids.device.type, self._products):
            return predicted_logits(self._average, packed)

    @torch.no_grad()
    def update(self, student: torch.nn.Module) -> None:
        """Move the average towards the student by ``rate``."""
        for own, new in zip(self._average.parameters(), student.parameters(), strict=True):
            own.lerp_(new.detach().to(own.dtype), self._rate)

    def weights(self) -> torch.nn.Module | None:
        """The averaged model."""
        return self._average


class TrustRegionTeacher:
    """``lerp(initial policy's logits, live policy's logits, rate)``, both for the teacher's context."""

    def __init__(self, first: torch.nn.Module, live: torch.nn.Module, rate: float) -> None:
        self._first, self._live, self._rate = first, live, rate

    @torch.no_grad()
    def logits(self, packed: PackedIds) -> torch.Tensor:
        """A geometric mixture of the two distributions."""
        first = full_precision(predicted_logits(self._first, packed))
        return first.lerp(full_precision(predicted_logits(self._live, packed)), self._rate)

    def update(self, student: torch.nn.Module) -> None:
        """Does nothing: the logits use the live policy anyway."""

    def weights(self) -> torch.nn.Module | None:
        """``None``: the initial policy is enough to rebuild this teacher."""
        return None
