"""Assertions of hidden tests that statements show of functions without recorded calls: the few that differ most."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from excise.deleters.statement.test_words import FROM_TESTS, WITH_WORDS
from excise.protocols import Assertion, Codebase, StatementWords
from excise.types import Symbol, Visibility, content_id

HIDDEN_FOR_EACH_SHOWN = 2
"""Number of assertions of a function, and of a test, that are not shown, for each one that is; of two, one may be."""
MAX_ASSERTIONS = 4
"""Number of assertions of one function that are shown."""
MAX_SHOWN = 12
"""Number of assertions that are shown in all."""
MANY = 4
"""Number of assertions of hidden tests from which on some are shown though words have an example."""


def assertions_of_tests(
    codebase: Codebase,
    tests: Iterable[str],
    words: StatementWords,
    visibility: Visibility,
    removed: Iterable[Symbol],
    without_example: Collection[Symbol],
) -> str:
    """The section with assertions of ``tests`` on functions that are ``removed``: of those that many assertions call,
    and of those ``without_example``; empty if there are none."""
    if visibility not in WITH_WORDS:
        return ""
    listed, lines = sorted(tests), list[str]()
    for symbol in (each for each in removed if each.is_callable):
        found = {test: list(words.assertions(codebase, test, symbol)) for test in listed}
        places = {each.place for own in found.values() for each in own}
        if symbol in without_example or len(places) >= MANY:
            lines += [each.text for each in chosen_assertions(found) if each.text not in lines]
    lead = "Some assertions of tests that are not in this checkout:"
    block = "\n".join([f"```{words.fence}", *lines[:MAX_SHOWN], "```"])
    return "\n\n".join([FROM_TESTS, lead, block]) if lines else ""


def chosen_assertions(found: Mapping[str, Collection[Assertion]]) -> list[Assertion]:
    """The assertions that are shown of one function, in the order of their files, of those of each test.

    Each time the one whose literals have most that those before it have not; which one of several alike depends on
    their texts alone. At most one of three is shown of the function, and of each test that has it, or one of two.
    """
    places = {each.place for own in found.values() for each in own}
    having: dict[str, set[str]] = defaultdict(set)
    for test, own in found.items():
        for each in own:
            having[each.text].add(test)
    left = {each.text: each for own in found.values() for each in own if each.text}
    limits = {test: _most_shown(len({each.place for each in own})) for test, own in found.items()}
    shown: list[Assertion] = []
    given, covered = Counter[str](), set[str]()
    while left and len(shown) < min(MAX_ASSERTIONS, _most_shown(len(places))):
        best = max(left.values(), key=lambda each: (len(_form(each) - covered), content_id("assertion", each.text)))
        del left[best.text]
        if all(given[test] < limits[test] for test in having[best.text]):
            shown.append(best)
            given.update(having[best.text])
            covered |= _form(best)
    return sorted(shown, key=lambda each: each.place)


def _most_shown(number: int) -> int:
    """The number of assertions of so many that may be shown."""
    return max(number // (1 + HIDDEN_FOR_EACH_SHOWN), int(number > 1))


def _form(assertion: Assertion) -> set[str]:
    """What is special about the literals of an assertion: characters that are no letters, and that one is empty."""
    inner = [re.sub(r"^\w*[\"'`]|[\"'`]$", "", each) for each in assertion.literals]
    signs = {sign for each in inner for sign in re.sub(r"[^\W_]+", "", each)}
    return signs | {"empty" for each in inner if not each} | {"number" for each in inner if re.match(r"-?\d", each)}
