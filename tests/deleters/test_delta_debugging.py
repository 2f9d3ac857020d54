"""Delta debugging finds a largest clean subset."""

from __future__ import annotations

from itertools import combinations

import pytest

from excise.deleters.delta_debugging import largest_clean


@pytest.mark.parametrize("bad", [*combinations(range(8), 0), *combinations(range(8), 1), *combinations(range(8), 3)])
def test_bad_items_are_left_out(bad: tuple[int, ...]) -> None:
    def is_clean(subset: frozenset[int]) -> bool:
        return not subset & set(bad)

    assert largest_clean(range(8), is_clean, 200) == frozenset(range(8)) - set(bad)


def test_items_that_need_each_other() -> None:
    def is_clean(subset: frozenset[str]) -> bool:
        return ("a" in subset) == ("b" in subset) and "z" not in subset

    assert largest_clean(["a", "b", "c", "z"], is_clean, 100) == {"a", "b", "c"}


def test_nothing_is_clean() -> None:
    assert largest_clean([1, 2, 3], lambda s: False, 100) == frozenset()
    assert largest_clean([], lambda s: True, 100) == frozenset()


@pytest.mark.parametrize("budget", [0, 1, 3, 10])
def test_the_budget_is_kept_and_no_question_is_repeated(budget: int) -> None:
    asked: list[frozenset[int]] = []

    def is_clean(subset: frozenset[int]) -> bool:
        asked.append(subset)
        return len(subset) < 3

    answer = largest_clean(range(16), is_clean, budget)
    assert len(asked) <= budget
    assert len(set(asked)) == len(asked)
    assert not answer or answer in asked


def test_what_is_blamed_is_left_out_first() -> None:
    tried: list[frozenset[int]] = []

    def is_clean(subset: frozenset[int]) -> bool:
        tried.append(subset)
        return subset.isdisjoint({3, 9})

    def blamed(subset: frozenset[int]) -> frozenset[int]:
        return frozenset({3} if 3 in subset else {9} & subset)

    everything = frozenset(range(16))
    assert largest_clean(range(16), is_clean, 20, blamed) == everything - {3, 9}
    assert tried[:3] == [everything, everything - {3}, everything - {3, 9}]
    assert len(tried) == 4, "at the end it tries to add 3 again; 9 was tried"


def test_chunks_are_tried_where_nothing_is_blamed_or_all_of_it() -> None:
    for blamed in (lambda subset: frozenset[int](), lambda subset: subset):
        assert largest_clean(range(8), lambda subset: 3 not in subset, 200, blamed) == frozenset(range(8)) - {3}
