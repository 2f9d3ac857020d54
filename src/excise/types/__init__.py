"""The records that stages exchange; all are importable from ``excise.types``.

Every record is frozen, documents each field, and serialises to JSON by :func:`to_json` and
:func:`from_json`. Identity is by content: :func:`content_id`.

================  ==================================================================
module            records
================  ==================================================================
ids               how the ids of tests and symbols are built
repositories      sources as users specify them, snapshots of their files
environments      recipes of environments, built environments
measurements      test results and runs, the baseline, coverage per test
deletions         symbols, features, deletions of features
needs             details that hidden tests need, and where a solver finds them
foreign           tasks of other tools' sets as they are read
tasks             tasks, statements, verdicts, certificates, rejections, quarantines, reports
grades            grades of solutions, grading kits
serialization     JSON and content hashes
================  ==================================================================
"""

from excise.types.deletions import (
    Deletion,
    Feature,
    FeatureKind,
    Span,
    Symbol,
    SymbolKind,
    SymbolReport,
    by_plain_name,
)
from excise.types.environments import Environment, Recipe
from excise.types.foreign import BadRow, ForeignTask
from excise.types.grades import Grade, GradingKit, LiftedTest, RecordedCall
from excise.types.ids import (
    TestId,
    dotted_name,
    has_parameter,
    holders_of,
    holders_of_test,
    is_inside,
    is_whole_file,
    joined,
    name_in_file,
    path_of,
    symbol_of_test,
    without_parameter,
)
from excise.types.measurements import Baseline, CoverageMap, ExecutedCode, Status, TestResult, TestRun, WorkerOutcome
from excise.types.needs import FILLED_IN, GivenBy, Need, NeedKind, Watched, is_sign
from excise.types.repositories import ProjectInfo, Repo, SourceSpec
from excise.types.serialization import content_id, from_dict, from_json, to_dict, to_json
from excise.types.tasks import (
    DETERMINISTIC,
    IMPORTED,
    SCHEMA_VERSION,
    Certificate,
    Difficulty,
    GateOutcome,
    Quarantine,
    Rejection,
    RepoReport,
    StatementStyle,
    Task,
    TaskStatement,
    Verdict,
    Visibility,
)

__all__ = [
    "DETERMINISTIC",
    "FILLED_IN",
    "IMPORTED",
    "SCHEMA_VERSION",
    "BadRow",
    "Baseline",
    "Certificate",
    "CoverageMap",
    "Deletion",
    "Difficulty",
    "Environment",
    "ExecutedCode",
    "Feature",
    "FeatureKind",
    "ForeignTask",
    "GateOutcome",
    "GivenBy",
    "Grade",
    "GradingKit",
    "LiftedTest",
    "Need",
    "NeedKind",
    "ProjectInfo",
    "Quarantine",
    "Recipe",
    "RecordedCall",
    "Rejection",
    "Repo",
    "RepoReport",
    "SourceSpec",
    "Span",
    "StatementStyle",
    "Status",
    "Symbol",
    "SymbolKind",
    "SymbolReport",
    "Task",
    "TaskStatement",
    "TestId",
    "TestResult",
    "TestRun",
    "Verdict",
    "Visibility",
    "Watched",
    "WorkerOutcome",
    "by_plain_name",
    "content_id",
    "dotted_name",
    "from_dict",
    "from_json",
    "has_parameter",
    "holders_of",
    "holders_of_test",
    "is_inside",
    "is_sign",
    "is_whole_file",
    "joined",
    "name_in_file",
    "path_of",
    "symbol_of_test",
    "to_dict",
    "to_json",
    "without_parameter",
]
