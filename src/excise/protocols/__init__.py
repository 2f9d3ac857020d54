"""The interfaces that extensions implement; ``from excise.protocols import Source`` works for each of them.

Implementations are duck-typed and found by name in a registry. To add one, write its file and add a line to the
registry.

===================  ============================================  ==================================
module               interfaces                                    registry
===================  ============================================  ==================================
source_protocol      ``Source``                                    ``extractors/sources.py``
language_protocol    ``Language``                                  ``extractors/languages.py``
codebase_protocol    ``Codebase``, which a language parses
grading_protocol     ``Grading``, a language's part for graders
sandbox_protocol     ``Sandbox`` and its ``Session``               ``envs/sandboxes.py``
task_protocols       ``Deleter``                                   ``deleters/all_deleters.py``
..                   ``Gate``                                      ``verifiers/gates/all_gates.py``
..                   ``Exporter``                                  ``datasets/exports.py``
===================  ============================================  ==================================
"""

from excise.protocols.codebase_protocol import Codebase, Module
from excise.protocols.grading_protocol import (
    CallRecording,
    Canaries,
    GradedRun,
    GradedRunRequest,
    Grading,
    GradingMode,
    LiftedRun,
    LiftedTests,
    ReportedValues,
)
from excise.protocols.language_protocol import CoveragePass, CoverageRequest, Language, TestRunRequest
from excise.protocols.sandbox_protocol import (
    Capabilities,
    Completed,
    ForkServer,
    Mount,
    Policy,
    Sandbox,
    Session,
    Start,
    SystemRequest,
)
from excise.protocols.source_protocol import Fetched, Source
from excise.protocols.task_protocols import Deleter, Exporter, Gate, GateReport, NamedClaim

__all__ = [
    "CallRecording",
    "Canaries",
    "Capabilities",
    "Codebase",
    "Completed",
    "CoveragePass",
    "CoverageRequest",
    "Deleter",
    "Exporter",
    "Fetched",
    "ForkServer",
    "Gate",
    "GateReport",
    "GradedRun",
    "GradedRunRequest",
    "Grading",
    "GradingMode",
    "Language",
    "LiftedRun",
    "LiftedTests",
    "Module",
    "Mount",
    "NamedClaim",
    "Policy",
    "ReportedValues",
    "Sandbox",
    "Session",
    "Source",
    "Start",
    "SystemRequest",
    "TestRunRequest",
]
