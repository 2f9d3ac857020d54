"""The interfaces that extensions implement; ``from excise.protocols import Source`` works for each of them.

Implementations are duck-typed and found by name in a registry. To add one, write its file and add a line to the
registry.

===================  ============================================  ==================================
module               interfaces                                    registry
===================  ============================================  ==================================
source_protocol      ``Source``                                    ``extractors/sources.py``
language_protocol    ``Language``                                  ``languages.py``
codebase_protocol    ``Codebase``, which a language parses
editor_protocol      ``CodeEditor``, a language's part for deleters
grading_protocol     ``Grading``, a language's part for graders
scan_rules           ``ScanRules``, a language's part for leak scans
scrub_rules          ``ScrubRules``, a language's part for shipped trees
sandbox_protocol     ``Sandbox`` and its ``Session``               ``envs/sandboxes.py``
task_protocols       ``Deleter``                                   ``deleters/all_deleters.py``
..                   ``Gate``                                      ``verifiers/gates/all_gates.py``
export_protocol      ``Exporter``, ``ExportedSet``                 ``datasets/exports/registry.py``
import_protocol      ``Importer``                                  ``datasets/imports/registry.py``
===================  ============================================  ==================================
"""

from excise.protocols.codebase_protocol import Codebase, Inherited, Module
from excise.protocols.editor_protocol import (
    CONSTANTS,
    EMPTY,
    TRIVIAL,
    Assertion,
    CodeEditor,
    CodePath,
    HiddenRows,
    LackingPart,
    MissingCode,
    StatementWords,
)
from excise.protocols.export_protocol import (
    Checkout,
    ExportedSet,
    ExportedTask,
    Exporter,
    ExportMaterials,
    ExportReport,
    GradingFiles,
    TaskImage,
)
from excise.protocols.grading_protocol import (
    MAX_EXAMPLE_CHARS,
    NOTHING_INHERITED,
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
from excise.protocols.import_protocol import Importer
from excise.protocols.language_protocol import CoveragePass, CoverageRequest, Language, PlainRun, TestRunRequest
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
from excise.protocols.scan_rules import ScanRules
from excise.protocols.scrub_rules import ScrubRules
from excise.protocols.source_protocol import Fetched, Source
from excise.protocols.task_protocols import (
    CompiledDeleter,
    Deleter,
    DocumentingDeleter,
    ExampleTests,
    Gate,
    GateReport,
    NamedClaim,
    ShorteningDeleter,
)

__all__ = [
    "CONSTANTS",
    "EMPTY",
    "MAX_EXAMPLE_CHARS",
    "NOTHING_INHERITED",
    "TRIVIAL",
    "Assertion",
    "CallRecording",
    "Canaries",
    "Capabilities",
    "Checkout",
    "CodeEditor",
    "CodePath",
    "Codebase",
    "CompiledDeleter",
    "Completed",
    "CoveragePass",
    "CoverageRequest",
    "Deleter",
    "DocumentingDeleter",
    "ExampleTests",
    "ExportMaterials",
    "ExportReport",
    "ExportedSet",
    "ExportedTask",
    "Exporter",
    "Fetched",
    "ForkServer",
    "Gate",
    "GateReport",
    "GradedRun",
    "GradedRunRequest",
    "Grading",
    "GradingFiles",
    "GradingMode",
    "HiddenRows",
    "Importer",
    "Inherited",
    "LackingPart",
    "Language",
    "LiftedRun",
    "LiftedTests",
    "MissingCode",
    "Module",
    "Mount",
    "NamedClaim",
    "PlainRun",
    "Policy",
    "ReportedValues",
    "Sandbox",
    "ScanRules",
    "ScrubRules",
    "Session",
    "ShorteningDeleter",
    "Source",
    "Start",
    "StatementWords",
    "SystemRequest",
    "TaskImage",
    "TestRunRequest",
]
