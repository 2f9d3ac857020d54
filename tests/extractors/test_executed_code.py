"""What reports say of executed code: places that are numbered by processes that are forked from each other."""

from __future__ import annotations

import pytest

from excise.extractors.test_reports.executed_code import Executed


def names(executed: Executed, test: str) -> set[tuple[str, int]]:
    code = executed.code()
    return {code.places[n] for n in code.by_test[test]}


def test_each_process_numbers_places_after_those_of_the_one_it_was_forked_from() -> None:
    executed = Executed()
    executed.add({"id": "", "first": 0, "new": [["a.py", 1], ["a.py", 5]], "places": [1, 0]})
    executed.add({"id": "one", "first": 2, "new": [["b.py", 7]], "places": [0, 2]})  # a fork
    executed.add({"id": "two", "first": 2, "new": [["c.py", 9]], "places": [2]})  # another one
    executed.add({"id": "three", "first": 0, "new": [["c.py", 9]], "places": [0]})  # a new process
    executed.add({"id": "one", "first": 1, "new": [["a.py", 1]], "places": [1]})
    assert names(executed, "one") == {("a.py", 1), ("b.py", 7)}
    assert names(executed, "two") == names(executed, "three") == {("c.py", 9)}
    assert executed.code().at_import == (0, 1)


def test_passes_of_one_run_share_their_indexes() -> None:
    first = Executed()
    first.add({"id": "", "first": 0, "new": [["a.py", 1]], "places": [0]})
    other = Executed(first)
    other.add({"id": "one", "first": 1, "new": [["b.py", 2]], "places": [0, 1]})
    assert names(other, "one") == {("a.py", 1), ("b.py", 2)}
    assert other.code().places == first.code().places
    assert (other.code().at_import, first.code().by_test) == ((), {})


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "x", "places": [0]},
        {"id": "x", "first": "0", "new": [], "places": []},
        {"id": "x", "first": 0, "new": [], "places": None},
    ],
)
def test_malformed_entries_are_left_out(entry: dict[str, object]) -> None:
    executed = Executed()
    executed.add(entry)
    assert executed.code().by_test == {}


def test_malformed_places_and_numbers_are_left_out() -> None:
    executed = Executed()
    executed.add({"id": "x", "first": -3, "new": [["a.py"], 7, ["a.py", 3]], "places": [2, 9, -1, "a"]})
    assert names(executed, "x") == {("a.py", 3)}
