"""The table of the gates: their order, numbers, stored names and claims.

A new gate is one file here (a class as in :class:`excise.protocols.Gate`) and one line in :data:`TABLE`. Numbers are
used in documents ("gate 3"); they do not give the order, which is by cost. Stored names are in the
verdicts and certificates of published sets and never change, so ``g10_statement`` and ``g10_calls`` share a number.

======  ================  =====================================================================
number  stored name       module
======  ================  =====================================================================
1       g1_baseline       :mod:`verifiers.gates.baseline_green`
2       g2_resolves       :mod:`verifiers.gates.imports_from_checkout`
3       g3_applies        :mod:`verifiers.gates.patches_apply`
4       g4_collects       :mod:`verifiers.gates.shipped_tree_collects`
5       g5_f2p_fail       :mod:`verifiers.gates.fail_to_pass_fails`
6       g6_p2p_pass       :mod:`verifiers.gates.pass_to_pass_passes`
7       g7_gold           :mod:`verifiers.gates.gold_passes`
8       g8_empty          :mod:`verifiers.gates.empty_solutions_fail`
9       g9_leaks          :mod:`verifiers.gates.no_leaks`
10      g10_statement     :mod:`verifiers.gates.statement_complete`
11      g11_recovery      :mod:`verifiers.gates.not_recoverable`
12      g10_calls         :mod:`verifiers.gates.calls_recorded` (a step after the gates, not a gate)
13      g13_solved        :mod:`verifiers.gates.solved_by_model` (another, only with ``model.solve_attempts``)
======  ================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping

from excise.protocols import Gate, NamedClaim
from excise.types import IMPORTED, Task
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.baseline_green import BaselineGreen
from excise.verifiers.gates.calls_recorded import CallsRecorded
from excise.verifiers.gates.empty_solutions_fail import EmptySolutionsFail
from excise.verifiers.gates.fail_to_pass_fails import FailToPassFails
from excise.verifiers.gates.gold_passes import GoldPasses
from excise.verifiers.gates.imports_from_checkout import ImportsFromCheckout
from excise.verifiers.gates.no_leaks import NoLeaks
from excise.verifiers.gates.not_recoverable import NotRecoverable
from excise.verifiers.gates.pass_to_pass_passes import PassToPassPasses
from excise.verifiers.gates.patches_apply import PatchesApply
from excise.verifiers.gates.shipped_tree_collects import ShippedTreeCollects
from excise.verifiers.gates.solved_by_model import SolvedByModel
from excise.verifiers.gates.statement_complete import StatementComplete

TABLE: tuple[tuple[int, Gate[Candidate]], ...] = (
    (1, BaselineGreen()),
    (3, PatchesApply()),
    (10, StatementComplete()),
    (5, FailToPassFails()),
    (8, EmptySolutionsFail()),
    (9, NoLeaks()),
    (11, NotRecoverable()),
    (4, ShippedTreeCollects()),
    (2, ImportsFromCheckout()),
    (6, PassToPassPasses()),
    (7, GoldPasses()),
)
"""Number and gate, in the order in which they run: those that are cheap or refuse most candidates come first."""
GATES: tuple[Gate[Candidate], ...] = tuple(gate for _, gate in TABLE)
"""The gates, in the order of :data:`TABLE`."""
OWN_STATEMENTS = StatementComplete.name
"""The gate that does not apply to imported tasks: their statements were written by others."""
CALLS_RECORDED = CallsRecorded()
"""The step that makes the grading kit once all gates have passed."""
SOLVED_BY_MODEL = SolvedByModel()
"""The step in which a model tries the task, where the settings ask for it."""
_STEPS: Mapping[int, NamedClaim] = {12: CALLS_RECORDED, 13: SOLVED_BY_MODEL}
NUMBERS: Mapping[str, int] = {row.name: number for number, row in (*TABLE, *_STEPS.items())}
"""Stored name to number."""
_ROWS: tuple[NamedClaim, ...] = (*GATES, CALLS_RECORDED)
CLAIMS: Mapping[str, str] = {row.name: row.claim for row in _ROWS}
"""Stored name to claim, in the order of the rows that every certificate has."""
ALL_CLAIMS: Mapping[str, str] = {**CLAIMS, SOLVED_BY_MODEL.name: SOLVED_BY_MODEL.claim}
"""The same with rows that only some certificates have."""


def gates_of(task: Task) -> tuple[Gate[Candidate], ...]:
    """The gates that apply to a task, in their order."""
    return tuple(gate for gate in GATES if task.deleter != IMPORTED or gate.name != OWN_STATEMENTS)
