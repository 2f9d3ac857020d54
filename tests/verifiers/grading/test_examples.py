"""Examples in statements: which calls are shown, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from excise.extractors.python.execution.python_grading import PythonGrading
from excise.protocols import MAX_EXAMPLE_CHARS, CallRecording
from excise.types import RecordedCall
from excise.verifiers.grading.examples import MAX_EXAMPLES, Examples, examples_of
from excise.verifiers.grading.kit import RecordedBehaviour, Replayed, answered_alike, record_behaviour, replay_twice
from excise.verifiers.workbench import Workbench


def asked(name: str, text: str, found: bool, after: int = 0) -> RecordedCall:
    call = {"name": f"m:{name}", "kind": "function", "args": [["s", text]], "kwargs": []}
    outcome = {"result": ["c", found], "after": [["i", str(after)]]}
    return RecordedCall(call=json.dumps(call), outcome=json.dumps(outcome))


def behaviour_of(calls: Sequence[RecordedCall]) -> RecordedBehaviour:
    recording = CallRecording(calls=(), modules=(), removed=(), watched=0, refused={})
    return RecordedBehaviour((), recording, Replayed([], tuple(calls)))


def test_results_of_their_own_come_first() -> None:
    calls = [asked("f", "a", True), asked("f", "b", True, 1), asked("f", "c", False), asked("g", "d", True)]
    calls += [asked("f", "x" * MAX_EXAMPLE_CHARS, False)]
    found = examples_of(behaviour_of(calls), PythonGrading())
    assert found == {
        "f": Examples(["f('a')  # True", "f('c')  # False", "f('b')  # True"], [], 0, 3),
        "g": Examples(["g('d')  # True"], [], 0, 1),
    }


def test_exceptions_that_the_statement_names_are_shown_once() -> None:
    texts = {"a": "builtins:ValueError", "b": "builtins:ValueError", "c": "m:Odd", "d": "builtins:TypeError"}
    calls = [
        replace(asked("f", text, True), outcome=json.dumps({"raised": [error, "builtins:Exception"], "after": []}))
        for text, error in texts.items()
    ]
    behaviour = behaviour_of([asked("f", "e", True)])
    behaviour = behaviour._replace(replayed=behaviour.replayed._replace(raising=tuple(calls)))
    found = examples_of(behaviour, PythonGrading(), {"ValueError": ["g"], "Odd": ["g"], "TypeError": ["g"]})
    raising = ["f('a')  # raises ValueError", "f('c')  # raises Odd"]
    assert found == {"f": Examples(["f('e')  # True"], raising, 0, 1)}
    its_own = examples_of(behaviour, PythonGrading(), {"TypeError": ["f"]})
    assert its_own["f"].raising == ["f('d')  # raises TypeError"]


def test_a_function_that_returns_nothing_has_no_examples() -> None:
    nothing = [replace(asked("f", text, True), outcome=json.dumps({"result": ["c", None]})) for text in "ab"]
    assert examples_of(behaviour_of(nothing), PythonGrading()) == {"f": Examples([], [], 0, 0)}
    one = examples_of(behaviour_of([*nothing, asked("f", "c", True)]), PythonGrading())["f"]
    assert one.shown == ["f('a')  # None", "f('c')  # True"]


def test_an_argument_that_no_test_gives_is_shown_where_it_makes_a_difference() -> None:
    tested = asked("f", "a", True)
    more = json.loads(tested.call) | {"kwargs": [["deep", ["c", True]]], "added": "deep"}
    other = json.loads(tested.call) | {"kwargs": [["wide", ["c", True]]], "added": "wide"}
    same = json.dumps(json.loads(tested.outcome) | {"after": [["i", "0"], ["c", True]]})
    made = (
        RecordedCall(call=json.dumps(more), outcome=asked("f", "a", False).outcome),
        RecordedCall(call=json.dumps(other), outcome=same),
    )
    replayed = Replayed([(tested.call, tested.outcome, tested.outcome)], made)
    found = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["f"]
    assert found.parameters == ("f('a', deep=True)  # False",)


def test_two_calls_that_execute_what_no_test_does_are_shown() -> None:
    tested, *new = (asked("f", text, text < "d") for text in "abcde")
    lines = {tested: "12", new[0]: "12", new[1]: "123", new[2]: "1345", new[3]: "16"}
    reached = {each.call: frozenset(f"/testbed/m.py:{line}" for line in own) for each, own in lines.items()}
    reached[new[1].call] |= {"text of code"}
    replayed = Replayed([(tested.call, tested.outcome, tested.outcome)], tuple(new), reached=reached)
    behaviour = behaviour_of([])._replace(replayed=replayed)
    assert examples_of(behaviour, PythonGrading())["f"].beyond == ("f('d')  # False", "f('e')  # False")
    part = examples_of(behaviour, PythonGrading(), parts={"f": ["m.py:2", "m.py:3"]})["f"]
    assert part.beyond == ("f('c')  # True",)


@pytest.mark.parametrize(("raising", "lines"), [({"ValueError": ["f"]}, 1), ({"ValueError": ["g"]}, 0), ({}, 0)])
def test_an_argument_that_no_test_gives_may_raise_what_its_function_tells(
    raising: dict[str, list[str]], lines: int
) -> None:
    more = json.loads(asked("f", "a", True).call) | {"kwargs": [["deep", ["c", True]]], "added": "deep"}
    outcome = json.dumps({"raised": ["builtins:ValueError", "builtins:Exception"], "after": []})
    made = (RecordedCall(call=json.dumps(more), outcome=outcome),)
    behaviour = behaviour_of([asked("f", "b", True)])
    behaviour = behaviour._replace(replayed=behaviour.replayed._replace(raising=made))
    assert (
        examples_of(behaviour, PythonGrading(), raising)["f"].raising
        == ["f('a', deep=True)  # raises ValueError"][:lines]
    )


def test_a_line_is_shown_once() -> None:
    receivers = [["made", "m:Box", [], [], history] for history in ([], [["__repr__", [], []]])]
    made = [{"name": "m:Box.__str__", "kind": "method", "args": [receiver], "kwargs": []} for receiver in receivers]
    calls = [replace(asked("f", "a", True), call=json.dumps(each)) for each in made]
    found = examples_of(behaviour_of(calls), PythonGrading())["Box.__str__"]
    assert (found.shown, found.num_results) == (["str(Box())  # True"], 1)


def test_calls_with_paths_of_the_sandbox_are_no_examples() -> None:
    paths = ("/testbed/tests/a.png", "/TESTBED/TESTS/A.PNG", "/tmp/x", "a.png")
    found = examples_of(behaviour_of([asked("f", path, True) for path in paths]), PythonGrading())
    assert found["f"].shown == ["f('a.png')  # True"]


@pytest.mark.parametrize(("said", "is_shown"), [([["i", "0"]], False), ([], False), ([["i", "2"]], True)])
def test_a_program_that_ends_well_is_no_example(said: list[list[str]], *, is_shown: bool) -> None:
    outcome = {"raised": ["builtins:SystemExit", "builtins:BaseException"], "said": said, "after": []}
    ended = replace(asked("f", "a", True), outcome=json.dumps(outcome))
    assert bool(PythonGrading().example(ended.call, ended.outcome)) is is_shown


def test_a_function_has_few_examples() -> None:
    found = examples_of(behaviour_of([asked("f", str(n), True) for n in range(50)]), PythonGrading())
    assert len(found["f"].shown) == MAX_EXAMPLES
    assert found["f"].num_results == 50


def test_calls_with_words_of_the_tests_are_shown_before_others() -> None:
    tested = asked("f", "web service", True)
    made = [asked("f", text, True) for text in ("eb service", "web", "web rvice", "Service web")]
    replayed = Replayed([(tested.call, "", "")], tuple(made))
    shown = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["f"].shown
    assert [line.partition("  #")[0] for line in shown] == [
        "f('web')",
        "f('Service web')",
        "f('eb service')",
        "f('web rvice')",
    ]


def test_examples_that_differ_in_words_alone_are_few() -> None:
    calls = [asked("f", f"{letter}ook", True) for letter in "abcde"]
    results = ["<Aook>", "<book>", "<cook>", "<dook>", "eook <twice>"]
    calls = [
        replace(each, outcome=json.dumps({"result": ["s", text], "after": []}))
        for each, text in zip(calls, results, strict=True)
    ]
    found = examples_of(behaviour_of(calls), PythonGrading())["f"]
    assert found.shown == ["f('aook')  # '<Aook>'", "f('book')  # '<book>'", "f('eook')  # 'eook <twice>'"]
    assert found.num_results == 5


def test_one_example_without_a_result_is_enough() -> None:
    calls = [asked("f", "a", True), asked("f", "b", True), asked("f", "c", False), asked("f", "d", False)]
    for number, text in ((2, "c"), (3, "d")):
        calls[number] = replace(calls[number], outcome=json.dumps({"result": ["c", None], "after": [["s", text]]}))
    shown = examples_of(behaviour_of(calls), PythonGrading())["f"].shown
    assert shown == ["f('a')  # True", "f('c')  # None", "f('b')  # True"]


def test_each_path_that_the_tests_take_is_shown_first() -> None:
    made = {"a": {1, 2}, "b": {1, 2}, "c": {1, 3, 4, 5}, "d": {1, 6}, "e": {1, 9}}
    calls = [asked("f", text, text == "b") for text in made]
    raised = {"raised": ["builtins:KeyError", "builtins:Exception"], "after": []}
    calls[3] = replace(calls[3], outcome=json.dumps(raised))
    lines = {call.call: frozenset(map(str, made[text])) for call, text in zip(calls, made, strict=True)}
    tested = asked("f", "tested", True).call
    lines[tested] = frozenset("123456")
    results = tuple(call for call in calls if call is not calls[3])
    replayed = Replayed([(tested, "", "")], results, (calls[3],), lines)
    behaviour = behaviour_of([])._replace(replayed=replayed)
    shown = ["f('c')  # False", "f('a')  # False", "f('d')  # raises KeyError", "f('b')  # True", "f('e')  # False"]
    assert examples_of(behaviour, PythonGrading(), {"KeyError": ["f"]}) == {"f": Examples(shown, [], 3, 4)}


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("e", ["f('e')  # 'E'", "f('a')  # 'A'", "f('b')  # 'B'"]),
        ("cde", ["f('d')  # 'D'", "f('e')  # 'E'", "f('c')  # None"]),
        ("c", ["f('a')  # 'A'", "f('b')  # 'B'", "f('d')  # 'D'", "f('e')  # 'E'", "f('c')  # None"]),
        ("", ["f('a')  # 'A'", "f('b')  # 'B'", "f('d')  # 'D'", "f('e')  # 'E'", "f('c')  # None"]),
    ],
)
def test_calls_that_execute_the_part_that_is_gone_come_first(inside: str, shown: list[str]) -> None:
    calls = {text: asked("f", text, True) for text in "abcde"}
    results = {text: ["c", None] if text == "c" else ["s", text.upper()] for text in calls}
    made = tuple(
        replace(call, outcome=json.dumps({"result": results[text], "after": [["s", text]]}))
        for text, call in calls.items()
    )
    reached = {
        call.call: frozenset({f"/testbed/m.py:{4 if text in inside else 2}", f"text {text}"})
        for text, call in calls.items()
    }
    tested = [asked("f", "tested", True)]
    reached[tested[0].call] = frozenset({f"/testbed/m.py:{line}" for line in (2, 4)} | {f"text {t}" for t in "abde"})
    behaviour = behaviour_of([])._replace(replayed=Replayed([(tested[0].call, "", "")], made, (), reached))
    found = examples_of(behaviour, PythonGrading(), parts={"f": {"m.py:4", "m.py:5"}})["f"]
    assert found.shown == shown
    assert found.num_results == 5


def test_a_call_of_a_test_alone_in_the_part_that_is_gone_is_not_shown() -> None:
    """It would be all that the part does."""
    tested = [asked("f", text, True) for text in "abc"]
    reached = {call.call: frozenset({f"/testbed/m.py:{n}"}) for n, call in enumerate(tested, 1)}
    replayed = Replayed([(call.call, call.outcome, call.outcome) for call in tested], (), (), reached)
    behaviour = behaviour_of([])._replace(replayed=replayed)
    whole = examples_of(behaviour, PythonGrading())
    assert examples_of(behaviour, PythonGrading(), parts={"f": {"m.py:3"}}) == whole
    assert len(whole["f"].shown) == 1


@pytest.mark.parametrize(("returns", "num_shown"), [(set(), 1), ({"m.py:1", "m.py:2", "m.py:3"}, 2)])
def test_each_return_of_the_part_that_is_gone_has_an_example(returns: set[str], num_shown: int) -> None:
    """Where several calls of tests execute it: one alone, here in line 3, would be all that the part does."""
    tested = [asked("f", text, True) for text in "abcde"]
    reached = {call.call: frozenset({f"/testbed/m.py:{1 + n // 2}"}) for n, call in enumerate(tested)}
    replayed = Replayed([(call.call, call.outcome, call.outcome) for call in tested], (), (), reached)
    behaviour, lines = behaviour_of([])._replace(replayed=replayed), {"m.py:1", "m.py:2", "m.py:3"}
    shown = examples_of(behaviour, PythonGrading(), parts={"f": lines}, returns=returns)["f"].shown
    assert len(shown) == num_shown
    assert "f('e')" not in "".join(shown)


def test_the_first_replay_tells_which_lines_a_call_executes(bench: Workbench) -> None:
    symbol = bench.codebase.symbols()["src/shapes/text.py::parse"]
    tests = sorted(test for test in bench.trusted if test.startswith("tests/test_text.py::"))
    recording = record_behaviour(bench, (symbol.symbol_id,), tests).recording
    replayed = replay_twice(bench, recording, (symbol.symbol_id,), {})
    first = bench.codebase.modules[symbol.path].source.count(b"\n", 0, symbol.start) + 1
    inside = {f"/testbed/{symbol.path}:{line}" for line in range(first + 1, first + symbol.loc + 20)}
    paths = {lines for call, lines in replayed.reached.items() if '"shapes.text:parse"' in call}
    assert len(paths) > 1, "calls take different paths"
    assert all(lines and lines <= inside for lines in paths)


def test_a_call_that_does_not_end_as_in_its_test_has_no_outcome(bench: Workbench) -> None:
    """A test may have made a folder that is not there when its call is repeated."""
    symbol = bench.codebase.symbols()["src/shapes/text.py::parse"]
    tests = sorted(test for test in bench.trusted if test.startswith("tests/test_text.py::"))
    recording = record_behaviour(bench, (symbol.symbol_id,), tests).recording
    first, second, *others = recording.calls
    assert recording.returned[first]
    few = replace(recording, calls=(first, second), returned={first: False, second: recording.returned[second]})
    outcomes = {call: found for call, found, _ in replay_twice(bench, few, (symbol.symbol_id,), {}).recorded}
    assert outcomes[first] == ""
    assert outcomes[second]
    assert set(recording.returned) <= {first, second, *others}


def test_calls_of_tests_are_shown_only_where_no_other_reaches_the_same() -> None:
    """One of three, or of two: here two words are reached by calls of tests alone."""
    texts = ["for", "klass", "name", "other", "plain", "short", "width"]
    tested = [asked("f", text, text in {"for", "klass"}) for text in texts]
    reached = {call.call: frozenset({"1"}) for call in tested} | {
        tested[0].call: frozenset({"1", "text for"}),
        tested[1].call: frozenset({"2", "text klass"}),
    }
    made = asked("f", "new", False)
    reached[made.call] = frozenset({"1", "text elsewhere"})
    replayed = Replayed([(call.call, call.outcome, call.outcome) for call in tested], (made,), (), reached)
    found = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())
    assert found["f"].shown == ["f('new')  # False", "f('klass')  # True", "f('for')  # True"]
    for number, shown in ((2, ["f('new')  # False", "f('klass')  # True"]), (1, ["f('new')  # False"])):
        few = replayed._replace(recorded=replayed.recorded[2 - number : 2])
        assert examples_of(behaviour_of([])._replace(replayed=few), PythonGrading())["f"].shown == shown


def test_each_exception_and_each_number_of_arguments_of_the_tests_is_shown() -> None:
    def failing(text: str, name: str) -> RecordedCall:
        raised = {"raised": [f"builtins:{name}", "builtins:Exception"], "after": []}
        return replace(asked("f", text, False), outcome=json.dumps(raised))

    def plain(*texts: str) -> RecordedCall:
        found = json.loads(asked("f", texts[0], False).call)
        found["args"] = [["s", text] for text in texts]
        return replace(asked("f", texts[0], False), call=json.dumps(found))

    tested = [failing("key", "KeyError"), failing("name", "NameError"), plain("one"), plain("one", "two")]
    made = [plain("same"), plain("same", "more"), plain("other", "more")]
    raising = [failing("near", "KeyError"), failing("far", "NameError"), failing("odd", "OSError")]
    recorded = [(call.call, call.outcome, call.outcome) for call in tested]
    replayed = Replayed(recorded, tuple(made), tuple(raising))
    found = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["f"]
    assert set(found.shown[: found.num_paths]) == {
        "f('near')  # raises KeyError", "f('far')  # raises NameError", "f('same')  # False",
        "f('same', 'more')  # False",
    }  # fmt: skip


def test_what_a_call_gives_is_shown_before_what_it_refuses() -> None:
    """All that the tests reach is reached by calls that raise."""
    refused = [
        replace(asked("f", text, True), outcome=json.dumps({"raised": ["builtins:ValueError"], "after": []}))
        for text in ("a", "b")
    ]
    given = replace(asked("f", "c", True), outcome=json.dumps({"result": ["i", "7"], "after": []}))
    reached = {refused[0].call: frozenset({"1"}), refused[1].call: frozenset({"2"})}
    replayed = Replayed(
        [(each.call, each.outcome, each.outcome) for each in refused], (given,), tuple(refused), reached=reached
    )
    shown = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading(), {"ValueError": ["f"]})["f"]
    assert shown.shown[0] == "f('c')  # 7"
    assert sorted(shown.shown[1:]) == ["f('a')  # raises ValueError", "f('b')  # raises ValueError"]
    assert shown.num_paths == 3


PURGING = """
import pathlib


def spiral(n):
    return n


def count(n):
    return n + len(list(pathlib.Path("data").glob("*.txt")))


def purge(n, dry_run=True):
    for path in pathlib.Path("data").glob("*.txt"):
        if not dry_run:
            path.unlink()
    return n if dry_run else n + 1
"""


def test_what_an_added_argument_does_to_files_changes_no_example(vary: Callable[..., Workbench]) -> None:
    tests = "from shapes.walk import count, purge\n\n" + "".join(
        f"def {name}():\n    assert count({n}) and purge({n})\n\n"
        for n, name in enumerate(("test_first_turn", "test_no_field_twice", "test_start"), 1)
    )
    files = {"src/shapes/walk.py": PURGING, "tests/test_walk.py": tests, "data/a.txt": "", "data/b.txt": ""}
    bench = vary(files, baseline=True)
    removed = ("src/shapes/walk.py::count", "src/shapes/walk.py::purge")
    ids = ("tests/test_walk.py::test_first_turn", "tests/test_walk.py::test_start")
    behaviour = record_behaviour(bench, removed, ids)
    replayed = replay_twice(bench, behaviour.recording, removed, {})
    lines = examples_of(behaviour._replace(replayed=replayed), bench.language.grading)
    shown = [line for own in lines.values() for line in (*own.shown, *own.parameters)]
    assert any(line.startswith("purge") for line in shown)
    for line in shown:
        call, _, result = line.partition("  # ")
        number = int(call.partition("(")[2].rstrip(")").partition(",")[0])
        assert int(result) == number + 2 * call.startswith("count") + ("dry_run" in call), line
    right = next(each for each in replayed.varied if "purge" in each.call)
    wrong = replace(right, outcome=json.dumps({**json.loads(right.outcome), "result": ["i", "999"]}))
    assert answered_alike(bench, behaviour.recording, {}, [wrong, right]) == [right]


def test_each_argument_that_may_be_none_is_so_in_an_example() -> None:
    """All calls take the same path, and all but the first three have ``None`` somewhere."""

    def given(*args: str | None) -> RecordedCall:
        nodes = [["c", None] if each is None else ["s", each] for each in args]
        call = {"name": "m:f", "kind": "function", "args": [["l", nodes], ["s", "None, or ("]], "kwargs": []}
        return RecordedCall(call=json.dumps(call), outcome=json.dumps({"result": ["s", "".join(filter(None, args))]}))

    made = [given("a", "b"), given("c", "b"), given("a", "c"), given("a", None), given(None, "b"), given("d", "e")]
    tested = [given("x", None), given(None, "y")]
    reached = {call.call: frozenset({"1"}) for call in (*made, *tested)}
    replayed = Replayed([(call.call, call.outcome, call.outcome) for call in tested], tuple(made), (), reached)
    shown = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["f"]
    assert shown.num_paths == 2
    assert {line.partition("]")[0] for line in shown.shown[:2]} == {"f(['a', None", "f([None, 'b'"}


@pytest.mark.parametrize("nothing", [["l", []], ["s", ""], ["d", []], ["c", None]])
def test_what_is_nothing_in_the_object_is_not_taken_for_an_argument(nothing: list[object]) -> None:
    """Of the calls that are not of tests, the shortest way to an empty argument is one of an empty object."""
    full: list[object] = ["l", [["i", "1"]]]

    def updated(start: list[object], items: list[object], result: int) -> RecordedCall:
        made = ["made", "m:Bag", [start], [], []]
        call = {"name": "m:Bag.update", "kind": "method", "args": [made, items], "kwargs": []}
        return RecordedCall(call=json.dumps(call), outcome=json.dumps({"result": ["i", str(result)]}))

    made = [updated(nothing, full, 1), updated(full, full, 2), updated(full, nothing, 3)]
    reached = {call.call: frozenset({"1"}) for call in made}
    replayed = Replayed([(made[2].call, made[2].outcome, made[2].outcome)], tuple(made), (), reached)
    found = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["Bag.update"]
    assert (found.num_paths, found.shown[0].rpartition("  # ")[2]) == (1, "3")
    replayed = replayed._replace(varied=(made[0], made[1]))
    shown = examples_of(behaviour_of([])._replace(replayed=replayed), PythonGrading())["Bag.update"].shown
    assert len(shown) == 2


LOCAL = """
import time


def hour(seconds):
    return time.gmtime(seconds).tm_hour * 100 + time.localtime(seconds).tm_hour


def minute(seconds):
    return time.localtime(seconds).tm_min
"""


def test_what_depends_on_the_time_zone_is_compared_and_no_example(vary: Callable[..., Workbench]) -> None:
    tests = "from shapes.local import hour, minute\n\n" + "".join(
        f"def test_{n}():\n    assert hour({n}) >= 0 and minute({n}) >= 0\n\n" for n in (7260, 91200, 95400)
    )
    bench = vary({"src/shapes/local.py": LOCAL, "tests/test_local.py": tests}, baseline=True)
    removed = ("src/shapes/local.py::hour", "src/shapes/local.py::minute")
    behaviour = record_behaviour(bench, removed, tuple(f"tests/test_local.py::test_{n}" for n in (7260, 91200)))
    replayed = replay_twice(bench, behaviour.recording, removed, {})
    assert {json.loads(call)["name"] for call in replayed.local} == {"shapes.local:hour"}
    assert len(replayed.local) == 2
    assert all(first and bench.language.grading.same_outcome(first, second) for _, first, second in replayed.recorded)
    found = examples_of(behaviour._replace(replayed=replayed), bench.language.grading)
    assert set(found) == {"minute"}
