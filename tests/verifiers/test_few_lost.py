"""A task hides few tests that pass without its code, takes what its tests check, and counts those that need it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from excise.types import Status, TestRun
from excise.verifiers import build_candidate, plan_deletion
from excise.verifiers.build_candidate import MAX_IDLE, require_checked, require_few_lost
from excise.verifiers.candidate import PlannedDeletion, Rejected, Unchecked


@pytest.mark.parametrize(
    ("num_failing", "num_passing", "is_refused"),
    [
        (1, MAX_IDLE, False),  # a few always may be
        (1, MAX_IDLE + 1, True),
        (MAX_IDLE + 1, MAX_IDLE + 1, False),
        (MAX_IDLE + 1, MAX_IDLE + 2, True),
    ],
)
def test_cases_that_pass_are_not_hidden_in_numbers(num_failing: int, num_passing: int, *, is_refused: bool) -> None:
    failing = [f"t.py::test_a[{n}]" for n in range(num_failing)]
    passing = [f"t.py::test_a[x{n}]" for n in range(num_passing)]
    shortened = frozenset(f"t.py::test_b[{n}]" for n in range(100))
    statuses = {
        **dict.fromkeys(failing, Status.FAILED),
        **dict.fromkeys([*passing, *shortened, "t.py::test_c"], Status.PASSED),
    }
    hidden = shortened.union(failing, passing, ["t.py::test_c"])  # test_c is not trusted
    plan = SimpleNamespace(hidden=hidden, shortened=shortened, trusted=hidden - {"t.py::test_c"})
    run = cast("TestRun", SimpleNamespace(statuses=lambda: statuses))
    if not is_refused:
        require_few_lost(cast("PlannedDeletion", plan), failing, run)
        return
    with pytest.raises(Rejected, match=f"{num_passing} tests that pass .* the {num_failing} that fail") as refused:
        require_few_lost(cast("PlannedDeletion", plan), failing, run)
    assert refused.value.reason == "hides_other_tests"


@pytest.mark.parametrize(
    ("needs_mirrors", "with_value", "expected"),
    [
        (True, Status.FAILED, ["panics", "works"]),
        (True, Status.PASSED, ["works"]),
        (True, Status.MISSING, ["works"]),  # nothing was compiled
        (False, Status.FAILED, ["works"]),
    ],
)
def test_a_test_that_expects_a_panic_fails_with_a_stub_that_returns(
    with_value: Status, expected: list[str], *, needs_mirrors: bool
) -> None:
    """Without the code nothing compiles, and the other stub panics."""
    statuses = {
        "deleted": dict.fromkeys(["panics", "works", "other"], Status.MISSING),
        "raise": {"panics": Status.PASSED, "works": Status.FAILED, "other": Status.PASSED},
        "none": {"panics": with_value, "works": Status.FAILED, "other": Status.PASSED},
    }
    plan = SimpleNamespace(
        run=lambda tree, ids: SimpleNamespace(statuses=lambda: statuses[tree]),
        deletion=SimpleNamespace(stub_patches=(("raise", "a"), ("none", "b"))),
        bench=SimpleNamespace(language=SimpleNamespace(grading=SimpleNamespace(needs_mirrors=needs_mirrors))),
    )
    assert plan_deletion.tests_needing_feature(cast("PlannedDeletion", plan), ["panics", "works", "other"]) == expected


@pytest.mark.parametrize("executed", [["A.java::A.read"], []])
def test_a_constant_is_not_among_what_is_checked(monkeypatch: pytest.MonkeyPatch, executed: list[str]) -> None:
    """It is no symbol of the sources, and goes with the function that uses it."""
    functions = ["A.java::A.read", "A.java::A.skip"]
    codebase = SimpleNamespace(
        symbols=lambda: {each: SimpleNamespace(is_callable=True, is_public=True) for each in functions},
        callers=lambda symbol: set(),
    )
    coverage = SimpleNamespace(executing=lambda symbols: {"t"} if set(executed) & set(symbols) else set())
    plan = SimpleNamespace(
        bench=SimpleNamespace(codebase=codebase, prepared=SimpleNamespace(coverage=coverage)),
        deletion=SimpleNamespace(removed=(*functions, "A.java::A.LIMIT")),
    )
    split = SimpleNamespace(fail_to_pass=("t",), untold=())
    monkeypatch.setattr(build_candidate, "require_statement", lambda plan: split)
    if not executed:
        require_checked(cast("PlannedDeletion", plan))  # nothing would be left
        return
    with pytest.raises(Unchecked, match=r"A\.skip") as found:
        require_checked(cast("PlannedDeletion", plan))
    assert found.value.checked == set(executed)


@pytest.mark.parametrize(
    ("untold", "is_public", "is_left_out"),
    [((), True, False), (("dropped",), True, True), (("dropped",), False, False)],
)
def test_what_only_a_dropped_test_executes_is_left_out(
    monkeypatch: pytest.MonkeyPatch, untold: tuple[str, ...], *, is_public: bool, is_left_out: bool
) -> None:
    """Although what is graded may call it: as it seems from a name such as ``from``."""
    functions = ["a.rs::Set.add", "a.rs::Cow.from"]
    symbol = SimpleNamespace(is_callable=True, is_public=is_public)
    codebase = SimpleNamespace(symbols=lambda: dict.fromkeys(functions, symbol), callers=lambda _: {functions[0]})
    tests = {functions[0]: {"graded"}, functions[1]: {"dropped"}}
    coverage = SimpleNamespace(executing=lambda symbols: set().union(*(tests[each] for each in symbols)))
    plan = SimpleNamespace(
        bench=SimpleNamespace(codebase=codebase, prepared=SimpleNamespace(coverage=coverage)),
        deletion=SimpleNamespace(removed=tuple(functions)),
    )
    split = SimpleNamespace(fail_to_pass=("graded",), untold=untold)
    monkeypatch.setattr(build_candidate, "require_statement", lambda plan: split)
    if not is_left_out:
        require_checked(cast("PlannedDeletion", plan))
        return
    with pytest.raises(Unchecked, match=r"Cow\.from") as found:
        require_checked(cast("PlannedDeletion", plan))
    assert found.value.checked == {functions[0]}


@pytest.mark.parametrize(
    ("signatures", "is_executed", "is_left_out"),
    [
        (("def f(self)", "def f(self)"), False, True),
        (("def f(self)", "def f(self)"), True, False),
        (("def f(self)", "def f(self, value)"), False, False),  # an accessor, or an overload
    ],
)
def test_a_definition_for_another_platform_is_left_out(
    monkeypatch: pytest.MonkeyPatch, signatures: tuple[str, str], *, is_executed: bool, is_left_out: bool
) -> None:
    """Even if what is graded seems to call it, since it has the same name."""
    functions = ["a.py::A.f", "a.py::A.f#2"]
    symbols = {
        name: SimpleNamespace(is_callable=True, is_public=True, is_overload=False, signature=signature, decorators=())
        for name, signature in zip(functions, signatures, strict=True)
    }
    codebase = SimpleNamespace(symbols=lambda: symbols, callers=lambda _: set(functions))
    tests = {functions[0]: {"graded"}, functions[1]: {"graded"} if is_executed else set()}
    coverage = SimpleNamespace(executing=lambda symbols: frozenset().union(*(tests[each] for each in symbols)))
    plan = SimpleNamespace(
        bench=SimpleNamespace(codebase=codebase, prepared=SimpleNamespace(coverage=coverage)),
        deletion=SimpleNamespace(removed=tuple(functions)),
    )
    monkeypatch.setattr(
        build_candidate, "require_statement", lambda plan: SimpleNamespace(fail_to_pass=("graded",), untold=())
    )
    if not is_left_out:
        require_checked(cast("PlannedDeletion", plan))
        return
    with pytest.raises(Unchecked, match=r"A\.f#2") as found:
        require_checked(cast("PlannedDeletion", plan))
    assert found.value.checked == {functions[0]}
