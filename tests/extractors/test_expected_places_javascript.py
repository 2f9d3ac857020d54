"""Ranges of bytes that overlap, in files with many of them."""

from __future__ import annotations

import random

from excise.extractors.javascript.execution.expected_places import Overlapping


def test_all_ranges_that_overlap_are_found() -> None:
    rng = random.Random(3)
    spans = [(start, start + rng.randrange(1, 9)) for start in rng.sample(range(60), 25)]
    found = Overlapping(spans)
    for start in range(60):
        span = (start, start + rng.randrange(1, 5))
        assert sorted(found.of(span)) == sorted(each for each in spans if each[0] < span[1] and span[0] < each[1])
