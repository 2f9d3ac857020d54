"""Which candidates a run tries of the features that were found, and under which name their tasks are published."""

from __future__ import annotations

from collections.abc import Sequence

from excise.extractors.finder import MIN_LOC
from excise.types import Feature, SourceSpec

STUB_EVERY = 4
"""One in so many features, where it is a function or a method, is tried as a stub as well."""

REQUEST_MARK = "#request="
"""Stands between a source's name and the id of a request in the names of a task set's entries."""

CandidateSpec = tuple[Feature, str]
"""A feature, and the name of the deleter that is to take it out."""


class CandidateSelection:
    """The selection of an ordinary run: every feature removed, and some of the functions as stubs too."""

    min_loc: int = MIN_LOC
    """Lines of code of the smallest definitions that are looked at."""

    def entry_name(self, spec: SourceSpec) -> str:
        """Name under which the rows of a source are published."""
        return spec.name

    def candidates(self, features: Sequence[Feature]) -> list[CandidateSpec]:
        """What to try, in this order."""
        chosen: list[CandidateSpec] = []
        for number, feature in enumerate(features):
            chosen.append((feature, "remove"))
            if number % STUB_EVERY == 1 and feature.kind in {"function", "method"}:
                chosen.append((feature, "stub"))
        return chosen

    def is_published_elsewhere(self, instance_id: str) -> bool:  # noqa: ARG002
        """Whether another entry of the set has this task already."""
        return False
