"""The records that travel between stages; ``from excise.types import Task`` works for each of them.

Every record is frozen, has a docstring under each field, and serialises to JSON by :func:`to_json` and
:func:`from_json`. Identity is by content: :func:`content_id`.

================  ==================================================================
module            records
================  ==================================================================
repositories      a source as the user names it, the snapshot of its files
environments      the recipe of an environment, the environment that was built
measurements      statuses and runs of tests, the baseline, coverage per test
deletions         symbols, features, features taken out of a tree
tasks             tasks, verdicts, certificates, rejections, quarantines, reports
grades            grades of solutions, kits for graders
serialization     JSON and content hashes of all of them
================  ==================================================================
"""

from excise.types.deletions import Deletion, Feature, FeatureKind, Span, Symbol, SymbolKind
from excise.types.environments import Environment, Recipe
from excise.types.grades import Grade, GradingKit, RecordedCall
from excise.types.measurements import Baseline, CoverageMap, Status, TestResult, TestRun, Worker
from excise.types.repositories import Repo, SourceSpec
from excise.types.serialization import content_id, from_dict, from_json, to_dict, to_json
from excise.types.tasks import (
    SCHEMA_VERSION,
    Certificate,
    Difficulty,
    Outcome,
    Quarantine,
    Rejection,
    RepoReport,
    Task,
    Verdict,
    Visibility,
)

__all__ = [
    "SCHEMA_VERSION",
    "Baseline",
    "Certificate",
    "CoverageMap",
    "Deletion",
    "Difficulty",
    "Environment",
    "Feature",
    "FeatureKind",
    "Grade",
    "GradingKit",
    "Outcome",
    "Quarantine",
    "Recipe",
    "RecordedCall",
    "Rejection",
    "Repo",
    "RepoReport",
    "SourceSpec",
    "Span",
    "Status",
    "Symbol",
    "SymbolKind",
    "Task",
    "TestResult",
    "TestRun",
    "Verdict",
    "Visibility",
    "Worker",
    "content_id",
    "from_dict",
    "from_json",
    "to_dict",
    "to_json",
]
