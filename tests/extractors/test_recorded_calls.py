"""Recorded calls: outcomes are compared by the behaviour that callers can observe."""

from __future__ import annotations

import array
import collections
import contextlib
import functools
import itertools
import json
import operator
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution import compared_outcomes, recorded_calls
from excise.extractors.python.execution.pytest_runner import INSIDE
from excise.types import RecordedCall

from .inside_programs import Plain, load, outcomes, values


class AlwaysEqual(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def outcome(result: object, after: tuple[object, ...] = ()) -> str:
    found = outcomes.outcome_of(lambda: result, after, lambda cls: False)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        ([1], (1,), False),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, {1, 3}, False),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1), False),
        (5, AlwaysEqual(5), False),
        (iter([1, 2]), (x for x in (1, 2)), True),
        (iter([1, 2]), [1, 2], False),
        (iter([1, 2]), iter([1]), False),
        (Plain(1), Plain(2), False),
        (Plain(1), Plain(1), True),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value))[:30],
)
def test_outcomes_are_compared_by_observable_behaviour(first: Any, second: Any, same: bool) -> None:
    assert compared_outcomes.same_outcome(outcome(first), outcome(second)) is same


@pytest.mark.parametrize(("changed", "same"), [("usage", True), ("prog", True), ("prefix_chars", False)])
def test_what_command_lines_say_to_people_is_not_compared(changed: str, same: bool) -> None:
    attributes = [[key, ["s", "-"]] for key in ("prog", "prefix_chars", "usage")]
    first = json.dumps({"result": ["seen", ["argparse:ArgumentParser"], None, attributes]})
    second = first.replace(f'"{changed}", ["s", "-"]', f'"{changed}", ["s", "+"]')
    assert first != second
    assert compared_outcomes.same_outcome(first, second) is same


def test_changed_arguments_are_part_of_the_outcome() -> None:
    assert not compared_outcomes.same_outcome(outcome(None, ([1, 2],)), outcome(None, ([2, 1],)))


def raising(error: BaseException) -> str:
    def call() -> None:
        raise error

    return json.dumps(outcomes.outcome_of(call, (), lambda cls: False))


def test_exceptions_are_compared_by_type() -> None:
    assert compared_outcomes.same_outcome(raising(ValueError("a")), raising(ValueError("b")))
    assert not compared_outcomes.same_outcome(raising(ValueError("a")), raising(KeyError("a")))
    assert not compared_outcomes.same_outcome(raising(ValueError("a")), outcome(None))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"result": ' + "[" * 5000, '{"x": 1}', '{"result": ["f", 3]}']
)
def test_a_malformed_answer_is_wrong_and_raises_nothing(text: str) -> None:
    assert not compared_outcomes.same_outcome(outcome(1.5), text)
    assert not compared_outcomes.same_outcome("", text)


@contextlib.contextmanager
def block(value: object, error: type[Exception] | None = None) -> Iterator[object]:
    """A context manager written with ``contextlib``, which may raise at its end."""
    yield value
    if error is not None:
        raise error


class Block:
    """A context manager written as a class."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __enter__(self) -> object:
        return self.value

    def __exit__(self, *_: object) -> None:
        return None


def test_context_managers_are_entered() -> None:
    """A solution may write them as a class or with ``contextlib``."""
    made = outcomes.ResultEncoder(lambda cls: False).encode(block([1]))
    assert made == outcomes.ResultEncoder(lambda cls: cls is Block).encode(Block([1]))
    assert made != outcomes.ResultEncoder(lambda cls: False).encode(block([2]))
    assert made != outcomes.ResultEncoder(lambda cls: False).encode(block([1], KeyError))


def test_output_is_compared_only_if_the_original_prints() -> None:
    def printing(text: str) -> str:
        return json.dumps(outcomes.outcome_of(lambda: print(text, end=""), (), lambda cls: False))

    assert compared_outcomes.same_outcome(printing("a"), printing("a"))
    assert not compared_outcomes.same_outcome(printing("a"), printing("b"))
    assert not compared_outcomes.same_outcome(printing("a"), printing(""))
    assert compared_outcomes.same_outcome(printing(""), printing("debugging"))
    assert compared_outcomes.same_outcome(printing("usage: it [-h] {a,b}"), printing("usage: it [-h] {b,a}"))
    assert not compared_outcomes.same_outcome(printing("usage: it [-h] {a,b}"), printing("usage: it [-h] {a,c}"))
    assert not compared_outcomes.same_outcome(printing("a b"), printing("b a"))


def test_an_exit_is_an_outcome() -> None:
    def leave() -> None:
        raise SystemExit(2)

    assert outcomes.outcome_of(leave, (), lambda cls: False)["raised"][0] == "builtins:SystemExit"
    for same, different in ([(), (None,), (0,), (False,)], (1,)), ([(1,), (True,), ("no",), ("never",)], (2,)):
        known = raising(SystemExit(*same[0]))
        assert all(compared_outcomes.same_outcome(known, raising(SystemExit(*other))) for other in same)
        assert not compared_outcomes.same_outcome(known, raising(SystemExit(*different)))


class _PrivateLookupError(LookupError):
    pass


class SpecificKeyError(KeyError):
    pass


def test_a_subclass_of_the_exception_is_equal_and_a_private_one_counts_as_its_base() -> None:
    assert compared_outcomes.same_outcome(raising(KeyError("a")), raising(SpecificKeyError("a")))
    assert not compared_outcomes.same_outcome(raising(SpecificKeyError("a")), raising(KeyError("a")))
    assert compared_outcomes.same_outcome(raising(_PrivateLookupError("a")), raising(KeyError("a")))
    assert not compared_outcomes.same_outcome(raising(_PrivateLookupError("a")), raising(ValueError("a")))


class ProjectError(Exception):
    pass


class UsageProblem(ProjectError):
    pass


def test_a_base_class_of_the_project_will_do_as_a_docstring_may_promise_no_more() -> None:
    assert compared_outcomes.same_outcome(raising(UsageProblem("a")), raising(ProjectError("a")))
    assert not compared_outcomes.same_outcome(raising(UsageProblem("a")), raising(Exception("a")))
    assert not compared_outcomes.same_outcome(raising(ProjectError("a")), raising(LookupError("a")))


def test_an_iterator_that_fails_at_once_is_like_a_call_that_does() -> None:
    def failing(after: int) -> Iterator[int]:
        yield from range(after)
        raise KeyError("a")

    assert compared_outcomes.same_outcome(outcome(failing(0)), raising(KeyError("a")))
    assert compared_outcomes.same_outcome(raising(KeyError("a")), outcome(failing(0)))
    assert not compared_outcomes.same_outcome(outcome(failing(0)), raising(ValueError("a")))
    assert not compared_outcomes.same_outcome(outcome(failing(1)), raising(KeyError("a")))
    assert not compared_outcomes.same_outcome(outcome(failing(0)), outcome(iter([])))


def test_special_methods_are_called_through_their_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """``==`` is False whether ``__eq__`` returns False or NotImplemented."""
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    called = load("excise_replay").called

    class NotImplementedOperators:
        def __eq__(self, other: object) -> Any:
            return NotImplemented

        __hash__ = None  # type: ignore[assignment]

        def __radd__(self, other: object) -> Any:
            return NotImplemented

        def __len__(self) -> int:
            return 3

        def __call__(self, *args: int, by: int = 1) -> int:
            return sum(args) * by

        def __repr__(self) -> str:
            return "it"

    assert called("__repr__", [NotImplementedOperators()], {}) == called("__str__", [NotImplementedOperators()], {})
    assert called("__str__", [NotImplementedOperators()], {}) == "it"
    assert called("__eq__", [NotImplementedOperators(), 1], {}) is False
    assert called("__call__", [NotImplementedOperators(), 1, 2], {"by": 2}) == 6
    assert called("__len__", [NotImplementedOperators()], {}) == 3
    with pytest.raises(TypeError):
        called("__radd__", [NotImplementedOperators(), 1], {})
    items = {"a": 1}
    called("__setitem__", [items, "b", 2], {})
    assert items == {"a": 1, "b": 2}
    assert called("__pow__", [2, 5, 7], {}) == pow(2, 5, 7)


class Derived(Plain):
    pass


class Boxed:
    """A collection of one item, whose private storage may be of any type."""

    def __init__(self, value: object, *, kind: type = list) -> None:
        self._value = kind([value])

    def __iter__(self) -> Iterator[object]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)


MOVED_CLOCK_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import datetime as before, time
import excise_clock, excise_decode as decoding, excise_values as values
long_ago, now = decoding.decode(values.Encoder().encode(before.date(2020, 1, 2))), time.time()
excise_clock.move(500 * 86400)
from datetime import date, datetime, timedelta, timezone
assert isinstance(long_ago, date) and not isinstance(long_ago, datetime) and issubclass(datetime, date)
assert 499 < (date.today() - date.fromtimestamp(now)).days < 502
for moment in (datetime.now(), datetime.today(), datetime.now(timezone.utc), datetime.utcnow()):
    assert 499 < (moment.timestamp() - now) / 86400 < 501.6, moment
    assert isinstance(moment, date) and isinstance(moment + timedelta(1), datetime)
assert time.localtime().tm_year > time.localtime(now).tm_year
for value in (long_ago, date(2020, 1, 2), datetime(2020, 1, 2, 3), datetime.strptime("2020", "%Y") + timedelta(1)):
    again = decoding.decode(values.Encoder().encode(value))
    assert again == value and again.isoformat() == value.isoformat()
    assert values.Encoder().encode(again) == values.Encoder().encode(value)
"""


def test_dates_are_encoded_alike_under_a_moved_clock() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", MOVED_CLOCK_PROGRAM, str(INSIDE)], check=True, timeout=60)


def test_calls_are_recorded_with_the_garbage_collector_on(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("import gc\nassert gc.isenabled()\ndef f(x):\n    return x + gc.isenabled()\n")
    (tmp_path / "test_code.py").write_text("import code\ndef test_f():\n    assert code.f(1) == 2\n")
    report, test = tmp_path / "calls.json", "test_code.py::test_f"
    record = {"root": str(tmp_path), "report": str(report), "names": ["code:f"], "modules": ["code"], "spans": []}
    run = {"root": str(tmp_path), "report": str(tmp_path / "run.jsonl"), "ids": [test], "record": record}
    subprocess.run(
        [sys.executable, INSIDE / "excise_run.py"], cwd=tmp_path, input=json.dumps(run), text=True, check=True,
        timeout=60,
    )  # fmt: skip
    found = json.loads(report.read_text())
    assert (found["watched"], found["tests"]) == (1, {test: [0]})
    assert '"status": "PASSED"' in (tmp_path / "run.jsonl").read_text()


def test_objects_in_results_are_compared_by_public_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    assert compared_outcomes.same_outcome(outcome([Boxed(1)]), outcome([Boxed(1, kind=tuple)]))
    assert not compared_outcomes.same_outcome(outcome(Boxed(1)), outcome(Boxed(2)))
    assert compared_outcomes.same_outcome(outcome(Plain(1)), outcome(Derived(1)))
    assert not compared_outcomes.same_outcome(outcome(Derived(1)), outcome(Plain(1)))
    private = [Plain(1), Plain(1)]
    for value, hidden in zip(private, (1, 2), strict=True):
        value._hidden = hidden  # type: ignore[attr-defined]
    assert compared_outcomes.same_outcome(*map(outcome, private))
    for value in private:
        del value.x  # type: ignore[attr-defined]
    assert not compared_outcomes.same_outcome(*map(outcome, private)), "private attributes are all that can be compared"


def test_bytes_may_be_printed() -> None:
    def write() -> None:
        sys.stdout.buffer.write(b"hi ")
        print("there")

    assert outcomes.outcome_of(write, (), lambda cls: False)["printed"] == "hi there\n"
    assert outcomes.outcome_of(lambda: sys.stdout.close(), (), lambda cls: False)["printed"] == ""


def test_all_unnamed_callables_are_equal() -> None:
    """A solution may return a closure, a partial or a bound method."""
    encode = outcomes.ResultEncoder(lambda cls: False).encode
    assert encode(lambda: 1) == encode(functools.partial(len)) == encode("a".join) == ["fn"]
    assert encode(len) == ["ref", "builtins:len"]
    assert encode(Plain)[0] == "ref"


def test_private_attributes_that_cannot_be_encoded_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    with_lock = Plain(1)
    with_lock._lock = threading.Lock()  # type: ignore[attr-defined]
    assert compared_outcomes.same_outcome(outcome(None, ([Plain(1)],)), outcome(None, ([with_lock],)))
    assert compared_outcomes.same_outcome(outcome(None, ([iter([1])],)), outcome(None, ([iter([])],)))


def test_objects_with_state_in_c_are_refused() -> None:
    for value in (array.array("i", [1]), operator.itemgetter(1), random.Random(1)):
        with pytest.raises(values.Unserialisable):
            values.Encoder().encode(value)


class _Result:
    pass


def test_objects_of_a_removed_private_class_are_refused() -> None:
    with pytest.raises(values.Unserialisable, match="private class"):
        outcomes.ResultEncoder(lambda cls: cls is _Result).encode(_Result())
    assert outcomes.ResultEncoder(lambda cls: cls is Plain).encode(Plain(1))[0] == "o"


def test_functions_without_a_module_are_refused() -> None:
    names: dict[str, Any] = {}
    exec("f = lambda: 1", names)
    names["f"].__module__ = None
    with pytest.raises(values.Unserialisable, match="no module"):
        values.Encoder(carried=lambda function: True).encode(names["f"])


def test_a_context_manager_with_a_value_that_cannot_be_encoded_is_refused() -> None:
    @contextlib.contextmanager
    def converting() -> Iterator[object]:
        try:
            yield threading.Lock()
        except Exception as error:
            raise KeyError from error

    with pytest.raises(values.Unserialisable):
        outcomes.ResultEncoder(lambda cls: False).encode(converting())


def recorded(given: list[object], result: object, after: list[object] | None = None) -> RecordedCall:
    encode = values.Encoder().encode
    call = {"name": "m:f", "kind": "function", "args": [encode(value) for value in given], "kwargs": []}
    found = {"result": encode(result), "after": [encode(value) for value in (given if after is None else after)]}
    return RecordedCall(call=json.dumps(call), outcome=json.dumps(found))


@pytest.mark.parametrize(
    ("made", "telling"),
    [
        ([], False),
        ([recorded([1], 2)], False),
        ([recorded([1], None), recorded([2], None)], False),
        ([recorded([1], 1), recorded([2], 2)], False),
        ([recorded([1], 1), recorded([2], 3)], True),
        ([recorded([[1]], None, [[1, 2]])], True),
    ],
)
def test_calls_are_telling_if_no_simple_stub_answers_them(made: list[RecordedCall], telling: bool) -> None:
    before = [json.dumps({"result": ["c", None], "after": json.loads(one.call)["args"]}) for one in made]
    assert compared_outcomes.distinguish_from_stub(made, before) is telling
    fits = compared_outcomes.fits_simple_stub(made)
    assert compared_outcomes.distinguish_from_stub(made, [""] * len(made)) is (telling and not fits)


class ChunkedCollection:
    """A collection whose private storage depends on how it was built."""

    def __init__(self, *parts: list[int]) -> None:
        self._parts = list(parts)

    def __iter__(self) -> Iterator[int]:
        return itertools.chain(*self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


def test_an_object_changed_by_a_call_is_compared_by_public_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    assert compared_outcomes.same_outcome(
        outcome(None, (ChunkedCollection([1, 2], [3]),)), outcome(None, (ChunkedCollection([1], [2, 3]),))
    )
    assert not compared_outcomes.same_outcome(
        outcome(None, (ChunkedCollection([1]),)), outcome(None, (ChunkedCollection([2]),))
    )
    first, second = Plain(1), Plain(1)
    second._seen = True  # type: ignore[attr-defined]
    assert compared_outcomes.same_outcome(outcome(None, (first,)), outcome(None, (second,)))
    assert not compared_outcomes.same_outcome(outcome(None, (first,)), outcome(None, (Plain(2),)))


def test_calls_are_spread_over_functions_and_bounded() -> None:
    many = [json.dumps({"name": "a", "n": n}) for n in range(1000)] + [json.dumps({"name": "b", "n": 0})]
    chosen = recorded_calls.spread([*many, *many])
    assert len(chosen) == recorded_calls.MAX_CALLS
    assert many[-1] in chosen
    assert chosen == [call for call in many if call in set(chosen)]


class IteratorClass:
    """An iterator written as a class."""

    def __init__(self, items: object) -> None:
        self.items = iter(items)  # type: ignore[call-overload]

    def __iter__(self) -> IteratorClass:
        return self

    def __next__(self) -> object:
        return next(self.items)


@pytest.mark.parametrize(
    "other", [IteratorClass([1, 2]), itertools.tee([1, 2], 1)[0], iter(collections.deque([1, 2])), iter({1: 0, 2: 0})]
)
def test_iterators_of_every_kind_are_equal_by_content(other: object) -> None:
    def opaque(cls: type) -> bool:
        return False

    assert outcomes.ResultEncoder(opaque).encode(other) == outcomes.ResultEncoder(opaque).encode(n for n in (1, 2))


def test_a_class_whose_init_is_removed_is_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solution may choose the names of the attributes that a removed ``__init__`` sets."""
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    monkeypatch.setitem(sys.modules, "excise_values", values)
    recorder = load("excise_recorder").Recorder()
    module = ModuleType("recorded_init")
    exec("class Box:\n    def __init__(self, x):\n        self._x = x\n    def get(self):\n        return self._x\n",
         module.__dict__)  # fmt: skip
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.Box.__module__ = module.__name__
    assert recorder.watch("recorded_init:Box.__init__") == 1
    assert module.Box in recorder.removed


@pytest.mark.parametrize("is_listed", [True, False])
def test_modules_of_the_standard_library_are_known_to_every_python(
    monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    """Python 3.9 has no list of them: methods of classes that stay were not recorded there at all."""
    recorder = load("excise_recorder")
    if not is_listed:
        monkeypatch.delattr(sys, "stdlib_module_names")
    found = {
        name for name in ("json.decoder", "sys", "pytest", "excise.types", "no_such") if recorder.is_standard(name)
    }
    assert found == {"json.decoder", "sys"}


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("from src.pkg import m\n", ["src.pkg.m:f"]),
        ("import src.pkg.m\n", ["src.pkg.m:f"]),
        ("from pkg import m\nfrom src.pkg import m as other\n", ["pkg.m:f"]),
        ("import pkg\n", ["pkg.m:f"]),
        ("", ["pkg.m:f"]),
    ],
)
def test_functions_are_recorded_by_the_names_that_tests_import(imports: str, expected: list[str]) -> None:
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/m.py": "def f():\n    pass\n",
        "tests/test_m.py": f"{imports}\ndef test_m():\n    pass\n",
    }
    codebase, symbols = PythonCodebase.from_texts(files), ["src/pkg/m.py::f"]
    roots = recorded_calls.roots_of_tests(codebase, symbols, ["src"])
    assert recorded_calls.public_names(codebase, symbols, roots) == expected
