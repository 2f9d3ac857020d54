"""What a run tries of what was found, and under which name its tasks are put into the set."""

from __future__ import annotations

from collections.abc import Sequence

from excise.extractors.finder import MIN_LOC
from excise.types import Feature, SourceSpec

STUB_EVERY = 4
"""One in so many functions is tried as a stub as well."""

MARK = "#request="
"""Between a source's name and the id of a request, in the names of entries of a set."""

Attempt = tuple[Feature, str]
"""A feature, and the name of the deleter that is to take it out."""


class Plan:
    """The usual one: every feature removed, and some of the functions as stubs too."""

    min_loc: int = MIN_LOC
    """Smallest definitions that are looked at, in lines of code."""

    def entry(self, spec: SourceSpec) -> str:
        """Name under which the rows of a source are published."""
        return spec.name

    def attempts(self, features: Sequence[Feature]) -> list[Attempt]:
        """What to try, in this order."""
        chosen: list[Attempt] = []
        for number, feature in enumerate(features):
            chosen.append((feature, "remove"))
            if number % STUB_EVERY == 1 and feature.kind in {"function", "method"}:
                chosen.append((feature, "stub"))
        return chosen

    def is_taken(self, instance_id: str) -> bool:  # noqa: ARG002
        """Whether the set has a task already, from another entry."""
        return False
