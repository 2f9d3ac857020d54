"""Deletions that are planned in codebases of a few lines."""

from __future__ import annotations

from excise.deleters.all_deleters import get
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Deletion, Feature, FeatureKind, Repo

REPO = Repo(repo="pkg", base_commit="0" * 40, tree="1" * 40, source="dir:pkg", version="1.2")
"""The project that statements name."""


def delete_symbol(codebase: PythonCodebase, symbol: str, tests: tuple[str, ...], deleter: str = "remove") -> Deletion:
    """The deletion of one symbol that ``tests`` execute."""
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=tests
    )
    return get(deleter).delete(codebase, feature)
