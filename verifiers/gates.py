"""The gates, in order of cost. A new one is one class with ``name``, ``claim`` and ``check``, and one line here."""

from __future__ import annotations

from typing import Protocol

from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate
from excise.verifiers.gate_calls import CallsRecorded
from excise.verifiers.gate_leaks import NothingLeaks
from excise.verifiers.gate_recovery import NothingIsRecovered
from excise.verifiers.gate_statement import StatementIsComplete
from excise.verifiers.gates_tests import (
    BaselineGreen,
    EmptyFails,
    FailToPassFails,
    GoldRestores,
    PassToPassPasses,
    ResolvesIntoCheckout,
    ShippedTreeCollects,
)
from excise.verifiers.gates_tree import PatchesApply


class CandidateGate(Protocol):
    """A gate whose subject is a :class:`Candidate`; see :class:`excise.protocols.Gate`."""

    name: str
    claim: str

    def check(self, candidate: Candidate) -> GateReport:
        """Prove or refute the claim."""
        ...


GATES: tuple[CandidateGate, ...] = (
    BaselineGreen(),
    PatchesApply(),
    StatementIsComplete(),
    FailToPassFails(),
    EmptyFails(),
    NothingLeaks(),
    NothingIsRecovered(),
    ShippedTreeCollects(),
    ResolvesIntoCheckout(),
    PassToPassPasses(),
    GoldRestores(),
    CallsRecorded(),
)
