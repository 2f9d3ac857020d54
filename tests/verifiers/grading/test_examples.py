"""Examples in statements: which calls are shown, and in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from excise.extractors.python.execution.python_grading import PythonGrading
from excise.protocols import CallRecording
from excise.types import RecordedCall
from excise.verifiers.grading.examples import MAX_CHARS, MAX_EXAMPLES, Examples, examples_of
from excise.verifiers.grading.kit import RecordedBehaviour, Replayed


def asked(name: str, text: str, found: bool, after: int = 0) -> RecordedCall:
    call = {"name": f"m:{name}", "kind": "function", "args": [["s", text]], "kwargs": []}
    outcome = {"result": ["c", found], "after": [["i", str(after)]]}
    return RecordedCall(call=json.dumps(call), outcome=json.dumps(outcome))


def behaviour_of(calls: Sequence[RecordedCall]) -> RecordedBehaviour:
    recording = CallRecording(calls=(), modules=(), removed=(), watched=0, refused={})
    return RecordedBehaviour((), recording, Replayed([], tuple(calls)))


def test_results_of_their_own_come_first() -> None:
    calls = [asked("f", "a", True), asked("f", "b", True, 1), asked("f", "c", False), asked("g", "d", True)]
    calls += [asked("f", "x" * MAX_CHARS, False)]
    found = examples_of(behaviour_of(calls), PythonGrading())
    assert found == {
        "f": Examples(["f('a')  # True", "f('c')  # False", "f('b')  # True"], []),
        "g": Examples(["g('d')  # True"], []),
    }


def test_exceptions_that_the_statement_names_are_shown_once() -> None:
    texts = {"a": "builtins:ValueError", "b": "builtins:ValueError", "c": "m:Odd", "d": "builtins:TypeError"}
    calls = [
        replace(asked("f", text, True), outcome=json.dumps({"raised": [error, "builtins:Exception"], "after": []}))
        for text, error in texts.items()
    ]
    behaviour = behaviour_of([asked("f", "e", True)])
    behaviour = behaviour._replace(replayed=behaviour.replayed._replace(raising=tuple(calls)))
    found = examples_of(behaviour, PythonGrading(), frozenset({"ValueError", "Odd"}))
    assert found == {"f": Examples(["f('e')  # True"], ["f('a')  # raises ValueError", "f('c')  # raises Odd"])}


def test_a_function_has_few_examples() -> None:
    found = examples_of(behaviour_of([asked("f", str(n), True) for n in range(50)]), PythonGrading())
    assert len(found["f"].results) == MAX_EXAMPLES
