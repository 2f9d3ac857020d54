"""The gates, in order of cost. A new one is one class with ``name``, ``claim`` and ``check``, and one line here."""

from __future__ import annotations

from typing import Protocol

from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.baseline_green import BaselineGreen
from excise.verifiers.gates.calls_recorded import CallsRecorded
from excise.verifiers.gates.empty_solutions_fail import EmptyFails
from excise.verifiers.gates.fail_to_pass_fails import FailToPassFails
from excise.verifiers.gates.gold_passes import GoldRestores
from excise.verifiers.gates.imports_from_checkout import ResolvesIntoCheckout
from excise.verifiers.gates.no_leaks import NothingLeaks
from excise.verifiers.gates.not_recoverable import NothingIsRecovered
from excise.verifiers.gates.pass_to_pass_passes import PassToPassPasses
from excise.verifiers.gates.patches_apply import PatchesApply
from excise.verifiers.gates.shipped_tree_collects import ShippedTreeCollects
from excise.verifiers.gates.statement_complete import StatementIsComplete


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
