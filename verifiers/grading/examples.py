"""Examples of what removed code does, for statements: calls with the original's results.

They are calls that the tests do not make. Where none of these reaches what a test reaches (a path through the code, a
word that it looks for, a kind of result or argument), a call of a test is shown, but never more than one of three, or
one of two.
Calls made of words that the tests use are preferred: values are varied at random, and a reader wonders about ``'ction
web service'``. An exception that neither the statement names nor a call of the tests raises comes of such values, and
is no example.
Code that no test executes is described by words alone at best: of the calls that execute some, two are shown, too.
Of a function that lost a part, calls that execute the part come first: what it does else, its other code shows. Each
``return`` of the part is executed by one of them, if there is one that is not the only such call of the tests.
"""

from __future__ import annotations

import platform
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from excise.extractors.test_reports.runner_program import REPO
from excise.protocols import MAX_EXAMPLE_CHARS, Grading
from excise.types import RecordedCall
from excise.verifiers.grading.kit import RecordedBehaviour

MAX_EXAMPLES = 8
"""Maximum number of examples of one function."""
MIN_EXAMPLES = 3
"""Number of examples below which they do not describe what a function does."""
MAX_BEYOND = 2
"""Number of further examples of one function that execute what no call of the tests does."""
MAX_ALIKE = 2
"""Number of examples that differ in nothing but words and numbers which their results repeat."""
_RAISES = "raises "
_NOTHING = "None"
"""Outcome that tells little: one example of it is enough."""
_WORD = re.compile(r"[^\W\d]+|-?\d+")
_LITERAL = re.compile(r"""b?'[^'\\\n]*'|b?"[^"\\\n]*"|-?\b\d[\d.]*""")
_ALONE = frozenset({"True", "False", "None", "''", "b''", "[]", "{}", "()", "set()"})
"""Results that are kinds of their own."""
_OF_PYTHON = frozenset({"TypeError", "AttributeError"})
"""Exceptions that Python itself raises where an object is not what code expects: no examples of code that raises none
of them itself."""
_SPECIAL = {
    "characters outside ASCII": re.compile(r"[^\x00-\x7f]|\\[xuU][0-9a-f]{2}"),
    "an empty argument": re.compile(r"[(,=] ?b?(?:''|\[\]|\{\}|\(\))[,)]"),
    "None": re.compile(r"\bNone\b"),
    "bytes": re.compile(r"\bb['\"]"),
    "a negative number": re.compile(r"[(,=\[] ?-\d"),
    "a fraction": re.compile(r"\d\.\d"),
    "a nested list": re.compile(r"\[[\[(]"),
}
"""What is special about arguments, by how they are written."""
_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\bNone\b|(?<![\w)\]])(?:\[\]|\{\}|\(\))|\bset\(\)|\w+=(?!=)|[()\[\]{},]"""
)
_EMPTY = frozenset({"''", '""', "[]", "{}", "()", "set()"})
MAX_DEPTH = 2
"""Depth of calls and containers in which it is told apart which argument is ``None``, or empty."""
_LINE = re.compile(rf"{re.escape(REPO)}/.*:\d+$", re.DOTALL)
"""A line of code, among what a call reaches."""
_SANDBOX = re.compile(rf"testbed\b|/tmp/|{re.escape(platform.release())}", re.IGNORECASE)
"""Paths of the sandbox in which calls were recorded, and the machine's own version."""
HIDDEN_FOR_EACH_SHOWN = 2
"""Number of calls of tests to a function that are not shown, for each one that is."""


class Example(NamedTuple):
    """One call with its outcome."""

    line: str
    """The call and, as a comment, its result or exception."""
    outcome: str
    """The result or exception."""
    reached: frozenset[str]
    """What of the removed code the call reaches, and its traits, of those that calls of the tests have."""
    strangeness: tuple[int, int] = (0, 0)
    """Numbers of its words and numbers that are in no call of the tests, and of calls before the one that is shown."""
    parameter: str = ""
    """The parameter without whose argument a call of the tests has another outcome."""
    beyond: frozenset[str] = frozenset()
    """Lines of the removed code that the call executes, and no call of the tests."""

    @property
    def raises(self) -> bool:
        """Whether the outcome is an exception."""
        return self.outcome.startswith(_RAISES)


class Examples(NamedTuple):
    """Lines of code that show what one function does."""

    shown: list[str]
    """At most :data:`MAX_EXAMPLES` calls: first those that reach together what all do, one with a result that tells
    something among them if there is one, then those with results of their own."""
    raising: list[str]
    """One further call for each exception that the statement names."""
    num_paths: int
    """Number of the calls that reach together what all do."""
    num_results: int
    """Number of calls with a result that could be shown."""
    parameters: tuple[str, ...] = ()
    """One further call for each parameter that no call of the tests gives an argument, if it makes a difference."""
    beyond: tuple[str, ...] = ()
    """At most :data:`MAX_BEYOND` further calls that execute what no call of the tests does."""


def examples_of(
    behaviour: RecordedBehaviour,
    grading: Grading,
    exceptions: Mapping[str, Collection[str]] = MappingProxyType({}),
    parts: Mapping[str, Collection[str]] = MappingProxyType({}),
    returns: Collection[str] = (),
) -> dict[str, Examples]:
    """Qualified name of a function to its examples.

    ``exceptions`` maps the names of those that are shown to the qualified names of the functions that raise them.
    ``parts`` maps the qualified names of functions that lost a part to the lines of the part, as ``path:line``;
    ``returns`` are those of these lines that return something.
    """
    replayed = behaviour.replayed
    if replayed is None:
        return {}

    def reached_by(call: str, line: str) -> frozenset[str]:
        text, _, outcome = line.rpartition("  # ")
        traits = {*_traits(text, outcome), f"given {grading.arguments_given(call)}"} if line else set[str]()
        return replayed.reached.get(call, frozenset()) | traits

    wanted = frozenset[str]().union(
        *(reached_by(call, grading.example(call, found) if found else "") for call, found, _ in replayed.recorded)
    )
    made: dict[str, list[Example]] = defaultdict(list)
    tested: dict[str, list[Example]] = defaultdict(list)
    known = {word for call, *_ in replayed.recorded for word in _words(call)}
    outcomes = {grading.added_argument(call)[1]: found for call, found, _ in replayed.recorded}
    tested_lines = frozenset[str]().union(*(replayed.reached.get(call, frozenset()) for call, *_ in replayed.recorded))

    def parameter_of(call: str, outcome: str) -> str:
        name, base = grading.added_argument(call)
        makes_difference = bool(outcomes.get(base)) and not grading.same_result(outcomes[base], outcome)
        return name if makes_difference and grading.is_result(outcome) else ""

    def add(place: dict[str, list[Example]], call: str, outcome: str) -> None:
        line = grading.example(call, outcome)
        is_shown = any(each.line == line for each in place.get(grading.called(call), ()))
        if line and not is_shown and len(line) <= MAX_EXAMPLE_CHARS and not _SANDBOX.search(line):
            reached = reached_by(call, line) & wanted
            strangeness = len(_words(call) - known), line.count("; ")
            result, parameter = line.rpartition("  # ")[2], parameter_of(call, outcome)
            beyond = frozenset(filter(_LINE.match, replayed.reached.get(call, frozenset()) - tested_lines))
            place[grading.called(call)].append(Example(line, result, reached, strangeness, parameter, beyond))

    for one in (*replayed.varied, *replayed.raising):
        is_plain = grading.is_result(one.outcome) or not grading.added_argument(one.call)[0]
        if is_plain or _tells_of(one, grading, exceptions):  # else it may be a wrong argument
            add(made, one.call, one.outcome)
    for call, first, second in replayed.recorded:
        if first and call not in replayed.local and grading.same_outcome(first, second):
            add(tested, call, first)
    return {
        name: _of_part(made[name], tested[name], _raised_by(name, exceptions), parts.get(name, ()), returns)
        for name in sorted(made.keys() | tested.keys())
    }


def _tells_of(one: RecordedCall, grading: Grading, exceptions: Mapping[str, Collection[str]]) -> bool:
    """Whether a call raises an exception of which its own function tells."""
    raised = grading.example(one.call, one.outcome).rpartition(f"# {_RAISES}")[2]
    function = grading.called(one.call)
    return any(function in raising for name, raising in exceptions.items() if name in re.findall(r"\w+", raised))


def tells_something(line: str) -> bool:
    """Whether an example has a result that is neither an exception nor ``None``, a truth value or empty."""
    outcome = line.rpartition("  # ")[2]
    return not outcome.startswith(_RAISES) and outcome not in _ALONE


def _raised_by(function: str, exceptions: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The exceptions that a function may raise by its own code, or by that of another one."""
    return frozenset(
        name
        for name, raising in exceptions.items()
        if name not in _OF_PYTHON or any(f"{each}.".startswith(f"{function}.") for each in raising)
    )


def _of_part(
    made: Sequence[Example],
    tested: Sequence[Example],
    exceptions: frozenset[str],
    lines: Collection[str],
    returns: Collection[str],
) -> Examples:
    """The examples of a function that lost these lines: of the calls that execute one of them, and as many others as
    make :data:`MIN_EXAMPLES`; of all calls where there are none."""
    whole = _chosen(made, tested, exceptions)
    if not lines:
        return whole
    executed = {f"{REPO}/{line}" for line in lines}
    of_part = [[each._replace(beyond=each.beyond & executed) for each in some] for some in (made, tested)]
    inside = [[each for each in some if not executed.isdisjoint(each.reached | each.beyond)] for some in of_part]
    own = _chosen(inside[0], inside[1], exceptions)
    own = own._replace(
        shown=[*_of_returns(own.shown, inside[0], inside[1], executed.intersection(f"{REPO}/{r}" for r in returns))]
    )
    if not own.shown:
        return whole
    others = [line for line in whole.shown if line not in own.shown]
    shown = [*own.shown, *others[: max(MIN_EXAMPLES - len(own.shown), 0)]]
    if not any(map(tells_something, shown)):
        shown = [*[line for line in others if tells_something(line)][:1], *shown][:MAX_EXAMPLES]
    known = {line.rpartition("  # ")[2] for line in (*own.raising, *shown)}
    raising = [*own.raising, *(line for line in whole.raising if line.rpartition("  # ")[2] not in known)]
    return whole._replace(shown=shown, raising=raising, num_paths=own.num_paths, beyond=own.beyond)


def _of_returns(
    shown: Sequence[str], made: Sequence[Example], tested: Sequence[Example], returns: Collection[str]
) -> list[str]:
    """Lines of examples, with one for each place of ``returns`` that none of them executes."""
    found = list(shown)
    every = {each.line: each for each in (*tested, *made)}
    for place in sorted(returns):
        if not any(place in every[line].reached for line in found):
            new, known = ([each.line for each in some if place in each.reached] for some in (made, tested))
            found += new[:1] or known[: len(known) > 1]
    return found[:MAX_EXAMPLES]


def _chosen(made: Sequence[Example], tested: Sequence[Example], exceptions: frozenset[str]) -> Examples:
    """The examples of one function: each reaches something that the tests reach, as long as there is something left."""
    expected = {each.outcome for each in tested}
    if expected.union(each.outcome for each in made) == {_NOTHING}:
        return Examples([], [], 0, 0)  # they say nothing of what it is for
    made = sorted(
        (each for each in made if not each.raises or each.outcome in expected or _is_named(each, exceptions)),
        key=lambda each: each.strangeness,
    )
    paths = _covering(made)
    covered = frozenset[str]().union(*(each.reached for each in paths))
    may_show = max(len(tested) // (1 + HIDDEN_FOR_EACH_SHOWN), len(tested) > 1)
    paths += _covering(tested, covered)[:may_show]
    results = [each for each in made if not each.raises]
    telling = [each for each in (*results, *tested[:may_show]) if tells_something(each.line)]
    if telling and not any(tells_something(each.line) for each in paths):
        paths.append(telling[0])
    paths.sort(key=lambda each: not tells_something(each.line))  # what it gives comes before what it refuses
    more = [each for each in _unlike(paths, _different_first(results)) if each not in paths]
    silent = next((each for each in (*paths, *more) if each.outcome == _NOTHING), None)
    shown = [*paths, *(each for each in more if each.outcome != _NOTHING or each is silent)][:MAX_EXAMPLES]
    named: dict[str, str] = {}
    for each in made:
        if each.raises and _is_named(each, exceptions):
            named.setdefault(each.outcome, each.line)
    known = {each.outcome for each in shown}
    others = [line for outcome, line in named.items() if outcome not in known]
    telling_last = sorted(
        (each for each in reversed(made) if each.parameter), key=lambda each: tells_something(each.line)
    )
    given = {each.parameter: each.line for each in telling_last}
    parameters = tuple(given[name] for name in sorted(given))
    beyond = tuple(each.line for each in _executing_more(made, paths)[:MAX_BEYOND])
    return Examples(
        [each.line for each in shown], others, min(len(paths), MAX_EXAMPLES), len(results), parameters, beyond
    )


def _executing_more(made: Sequence[Example], shown: Sequence[Example]) -> list[Example]:
    """Few examples that execute together all that no call of the tests does, and none of those ``shown``."""
    more = [each._replace(reached=each.beyond) for each in made if each.beyond]
    return _covering(more, frozenset[str]().union(*(each.beyond for each in shown)))


def _unlike(shown: Sequence[Example], others: Sequence[Example]) -> list[Example]:
    """Those of the other examples that show something that :data:`MAX_ALIKE` before them do not."""
    counts = Counter(_form(each.line) for each in shown)
    found = []
    for each in (each for each in others if each not in shown):
        form = _form(each.line)
        counts[form] += 1
        if form is None or counts[form] <= MAX_ALIKE:
            found.append(each)
    return found


def _form(line: str) -> tuple[str, str] | None:
    """A call without its literals, and its outcome without the words that the call has, too; ``None`` if it has none
    of these."""
    call, _, outcome = line.rpartition("  # ")
    words = _words(call)
    rest = _WORD.sub(lambda word: "" if word[0].lower() in words else word[0], outcome)
    return (_LITERAL.sub("", call), rest) if rest != outcome else None


def _is_named(example: Example, exceptions: frozenset[str]) -> bool:
    """Whether the exception that a call raises is one of ``exceptions``."""
    return not exceptions.isdisjoint(re.findall(r"\w+", example.outcome))


def _words(call: str) -> set[str]:
    """The words of a call, in small letters, and its numbers."""
    return {word.lower() for word in _WORD.findall(call)}


def _traits(call: str, outcome: str) -> frozenset[str]:
    """The kind of a call's result, or its exception, and what is special about its arguments."""
    begins = outcome if outcome in _ALONE or outcome.startswith(_RAISES) else _kind(outcome)
    special = (f"has {name}" for name, form in _SPECIAL.items() if form.search(call))
    return frozenset({f"gives {begins}", *special, *_places_of_nothing(call)})


def _places_of_nothing(call: str) -> set[str]:
    """Which arguments are ``None`` or empty, and which of those of the arguments, by their numbers or names: ``None as
    1``, ``empty as 0.key``; apart from them those of the object that has the method, and of calls before it."""
    found: list[tuple[int, str]] = []
    places: list[list[str]] = []
    calls = 0
    for token in _TOKEN.findall(call):
        if token in "([{":
            calls += not places
            places.append(["0", "0"])
        elif token in ")]}":
            del places[-1:]
        elif token == ",":
            places[-1:] = [[number := str(int(count) + 1), number] for count, _ in places[-1:]]
        elif token.endswith("=") and places:
            places[-1][1] = token[:-1]
        elif (token == "None" or token in _EMPTY) and 0 < len(places) <= MAX_DEPTH:
            kind = "None" if token == "None" else "empty"
            found.append((calls, f"{kind} as {'.'.join(label for _, label in places)}"))
    return {place if number == calls else f"before: {place}" for number, place in found}


def _kind(outcome: str) -> str:
    """The kind of a literal, by its first character: a number, a text, a list."""
    return "number" if outcome[:1].isdigit() or outcome[:1] == "-" else outcome[:1].replace('"', "'")


def _covering(examples: Sequence[Example], covered: frozenset[str] = frozenset()) -> list[Example]:
    """Few examples that reach together what all of them do: each time the one that adds most to what is ``covered``."""
    chosen: list[Example] = []
    while examples:
        best = max(examples, key=lambda each: len(each.reached - covered))
        if not best.reached - covered:
            break
        chosen.append(best)
        covered |= best.reached
    return chosen


def _different_first(examples: Sequence[Example]) -> list[Example]:
    """All examples: one of each result, then a second one of each, and so on."""
    by_result: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        by_result[each.outcome].append(each)
    turns = max(map(len, by_result.values()), default=0)
    return [same[turn] for turn in range(turns) for same in by_result.values() if turn < len(same)]
