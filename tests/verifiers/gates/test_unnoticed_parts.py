"""When it is clear whether tests check most of what a feature does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from excise.protocols import LackingPart
from excise.verifiers import unnoticed_parts
from excise.verifiers.unnoticed_parts import TriedParts, try_parts


@pytest.mark.parametrize(
    ("noticed", "expected"),
    [
        ([False] * 12, (5, True)),  # five of twelve are more than a third
        ([True] * 12, (8, False)),  # the four that are left cannot be
        ([False] * 5, (2, True)),
        ([False, True, True], (3, False)),
        ([False, True], (0, False)),
        ([None] * 7 + [False] * 5, (0, False)),  # the machine failed for most of them
        ([None] * 2 + [False] * 5, (3, True)),
    ],
)
def test_the_answer_is_given_when_it_is_clear(
    monkeypatch: pytest.MonkeyPatch, noticed: list[bool | None], expected: tuple[int, bool]
) -> None:
    parts = [LackingPart("m.py::f", "m.py", str(number), 0, 0, b"") for number in range(len(noticed))]
    coverage = SimpleNamespace(executing=lambda symbols: {"t"})
    bench = SimpleNamespace(
        prepared=SimpleNamespace(coverage=coverage),
        baseline=SimpleNamespace(durations={"t": 0.0}),
        expected_s=lambda ids: 0.0,
    )
    candidate: Any = SimpleNamespace(bench=bench, fail_to_pass=("t",))
    monkeypatch.setattr(unnoticed_parts, "_parts_of", lambda candidate: iter(parts))
    monkeypatch.setattr(unnoticed_parts, "_is_noticed", lambda candidate, part, ids: noticed[int(part.what)])
    tried = try_parts(candidate)
    assert isinstance(tried, TriedParts)
    assert (tried.num_tried, tried.is_thin) == expected
