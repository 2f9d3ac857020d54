"""When it is clear whether tests check most of what a feature does."""

from __future__ import annotations

from collections.abc import Sequence
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
        ([False, False], (2, True)),
        ([False, True], (2, False)),
        ([True, False], (1, False)),
        ([None, False], (0, False)),  # the machine failed for half of them
        ([False], (1, True)),
        ([True], (1, False)),
        ([None], (0, False)),
        ([None, False, True], (2, False)),  # as of two
        ([None] * 7 + [False] * 5, (0, False)),  # the machine failed for most of them
        ([None] * 2 + [False] * 5, (3, True)),
    ],
)
def test_the_answer_is_given_when_it_is_clear(
    monkeypatch: pytest.MonkeyPatch, noticed: list[bool | None], expected: tuple[int, bool]
) -> None:
    parts = [LackingPart("m.py::f", "m.py", str(number), 0, 0, b"") for number in range(len(noticed))]
    tried = _tried(monkeypatch, parts, noticed)
    assert (tried.num_tried, tried.is_thin) == expected


@pytest.mark.parametrize(
    ("noticed", "expected"),
    [
        ([True, False], (2, True)),
        ([False, True], (1, True)),
        ([True, True], (2, False)),
        ([True, False, True, True], (4, False)),
    ],
)
def test_of_two_parts_none_that_fails_may_go_unnoticed(
    monkeypatch: pytest.MonkeyPatch, noticed: list[bool], expected: tuple[int, bool]
) -> None:
    parts = [
        LackingPart("m.rs::f", "m.rs", str(number), 0, 0, b"", is_compiled=True, fails=True)
        for number in range(len(noticed))
    ]
    tried = _tried(monkeypatch, parts, noticed)
    assert (tried.num_tried, tried.is_thin) == expected


@pytest.mark.parametrize(
    ("noticed", "statement", "expected"),
    [
        ([True, True, True, True, False, True], "", True),
        ([True, True, True, True, True, False], "", False),
        ([True, True, True, True, True, False], "- `m.py::g`: `f(size=3)`", True),
        ([True, True, True, True, True, False], "f(size=3)", False),
        ([False, True, True, True, True, True], "- `m.py::g`: `f(size=3)`", False),
    ],
)
def test_a_parameter_that_a_call_shows_and_an_essential_part_have_to_be_noticed(
    monkeypatch: pytest.MonkeyPatch, noticed: list[bool], statement: str, *, expected: bool
) -> None:
    parts = [LackingPart("m.py::f", "m.py", str(number), 0, 0, b"") for number in range(6)]
    parts[4] = parts[4]._replace(is_essential=True)
    parts[5] = parts[5]._replace(parameter="size")
    assert _tried(monkeypatch, parts, noticed, statement).is_thin is expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [("- `m.py::g`: `x = f(1, 2)`", True), ("- `m.py::g`: `x = f()`", False), ("def f(size)", False)],
)
def test_a_shown_call_gives_all_parameters_that_it_has_to(
    monkeypatch: pytest.MonkeyPatch, statement: str, *, expected: bool
) -> None:
    parts = [LackingPart("m.py::f", "m.py", str(number), 0, 0, b"") for number in range(6)]
    parts[5] = parts[5]._replace(parameter="size", is_required=True)
    assert _tried(monkeypatch, parts, [True] * 5 + [False], statement).is_thin is expected


@pytest.mark.parametrize(("num_idle", "is_thin"), [(0, True), (1, True), (2, True), (3, True), (4, False)])
def test_half_of_the_statements_that_may_be_idle_may_go_unnoticed(
    monkeypatch: pytest.MonkeyPatch, num_idle: int, *, is_thin: bool
) -> None:
    parts = [LackingPart("m.js::f", "m.js", str(n), 0, 0, b"", may_be_idle=n < num_idle) for n in range(4)]
    assert _tried(monkeypatch, parts, [True, False, False, True]).is_thin is is_thin


@pytest.mark.parametrize(
    ("num_parts", "num_tried"),
    [(4, 3), (6, 4), (13, 4), (16, 6), (17, 6), (18, 6), (60, 6)],  # half of 4, 6, 6, 8, 8, 9 and 9
)
def test_more_is_tried_of_more_parts_that_need_a_compiler(
    monkeypatch: pytest.MonkeyPatch, num_parts: int, num_tried: int
) -> None:
    parts = [LackingPart("m.go::f", "m.go", str(number), 0, 0, b"", is_compiled=True) for number in range(num_parts)]
    assert _tried(monkeypatch, parts, [True] * num_parts).num_tried == num_tried


@pytest.mark.parametrize(
    ("noticed", "num_functions", "expected"),
    [
        ([False], 1, (1, True)),
        ([True, False], 2, (1, True)),
        ([True, True], 1, (0, False)),
        ([None, None], 1, (0, False)),
        ([False, True, True], 3, (0, False)),
        ([False, True, False], 3, (2, True)),
        ([True] * 6 + [False], 1, (0, False)),  # no more than six are tried
    ],
)
def test_lesser_bodies_may_pass_for_few_functions(
    monkeypatch: pytest.MonkeyPatch, noticed: list[bool | None], num_functions: int, expected: tuple[int, bool]
) -> None:
    """One that is noticed does not count: it is no part of the code."""
    bodies = [LackingPart(f"m.go::F{number}", "m.go", str(number), 0, 0, b"") for number in range(len(noticed))]
    tried = _tried(monkeypatch, [], noticed, shortcuts=bodies, num_functions=num_functions)
    assert (tried.num_tried, tried.is_thin) == expected


def test_several_lesser_bodies_of_a_function_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [LackingPart("m.go::F", "m.go", str(number), 0, 0, b"") for number in range(2)]
    assert not _tried(monkeypatch, [], [False, False], shortcuts=bodies, num_functions=4).is_thin


def test_an_essential_lesser_body_passes_for_none_of_many_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [LackingPart("m.py::F", "m.py", "0", 0, 0, b"", is_essential=True)]
    assert _tried(monkeypatch, [], [False], shortcuts=bodies, num_functions=9).is_thin


def test_lesser_bodies_are_tried_of_functions_that_tests_execute(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [LackingPart("m.go::G", "m.go", "0", 0, 0, b"")]
    assert not _tried(monkeypatch, [], [False], shortcuts=bodies).is_thin


def _tried(
    monkeypatch: pytest.MonkeyPatch,
    parts: list[LackingPart],
    noticed: Sequence[bool | None],
    statement: str = "",
    shortcuts: Sequence[LackingPart] = (),
    num_functions: int = 1,
) -> TriedParts:
    """What is found of parts that tests notice, or not."""
    coverage = SimpleNamespace(executing=lambda symbols: {"t"} - {"t" for each in symbols if each.endswith("::G")})
    bench = SimpleNamespace(
        prepared=SimpleNamespace(coverage=coverage),
        baseline=SimpleNamespace(durations={"t": 0.0}),
        expected_s=lambda ids: 0.0,
    )
    candidate: Any = SimpleNamespace(
        bench=bench,
        fail_to_pass=("t",),
        task=SimpleNamespace(problem_statement=statement),
        deletion=SimpleNamespace(removed=("f",) * num_functions),
    )
    monkeypatch.setattr(unnoticed_parts, "_parts_of", lambda candidate: iter(parts))
    monkeypatch.setattr(unnoticed_parts, "_shortcuts_of", lambda candidate: iter(shortcuts))
    monkeypatch.setattr(unnoticed_parts, "_is_noticed", lambda candidate, part, ids: noticed[int(part.what)])
    return try_parts(candidate)
