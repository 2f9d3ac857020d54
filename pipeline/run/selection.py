"""Selects the candidates that a run tries among the found features, and the name under which tasks are published."""

from __future__ import annotations

from collections.abc import Sequence

from excise.deleters.code_editors import editor_of
from excise.extractors.features.search_index import MIN_LOC
from excise.types import Feature, SourceSpec

STUB_EVERY = 4
"""Every fourth feature, if it is a function or a method, is also tried as a stub; those that other code needs always,
and only as stubs.

The stub comes after all features, so that small sets are about different code, and the removal is known: one that
became a stub, or was refused as one, too, is not tried again."""

REQUEST_MARK = "#request="
"""Separates a source's name and the id of a request in the names of a task set's entries."""

CandidateSpec = tuple[Feature, str]
"""A feature, and the name of the deleter to use."""


class CandidateSelection:
    """The selection of an ordinary run: every feature removed, some of the functions as stubs too, and some paths."""

    min_loc: int = MIN_LOC
    """Minimum lines of code of a feature of one definition."""
    publishes_features: bool = True
    """Whether the features that were found are rows of the set: they are the same for all requests."""

    def entry_name(self, spec: SourceSpec) -> str:
        """Name under which the rows of a source are published."""
        return spec.name

    def candidates(self, features: Sequence[Feature], language: str = "python") -> list[CandidateSpec]:
        """Return the candidates in the order in which they are tried; all as stubs where nothing can be removed."""
        if "remove" not in editor_of(language).deleters:
            return [(feature, "stub") for feature in features]
        chosen: list[CandidateSpec] = []
        later: list[CandidateSpec] = []
        for number, feature in enumerate(features):
            is_function = feature.kind in {"function", "method"}
            if feature.changed:
                chosen.append((feature, "path"))
                continue
            if not feature.needed_by:
                chosen.append((feature, "remove"))
            if is_function and feature.needed_by:
                chosen.append((feature, "stub"))
            elif is_function and number % STUB_EVERY == 1:
                later.append((feature, "stub"))
        return [*chosen, *later]

    def is_published_elsewhere(self, instance_id: str) -> bool:  # noqa: ARG002
        """Whether another entry of the set has this task already."""
        return False
