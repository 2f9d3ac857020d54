"""Calls that docstrings show are recorded like those of tests, as far as the docstrings are right."""

from __future__ import annotations

from typing import Any

import pytest

from .inside_programs import doctests, recorded_module

CODE = '''
class Scale:
    """A scale.

    >>> Scale(2).of(21)
    42
    """

    def __init__(self, factor):
        self.factor = factor

    def of(self, value):
        return self.factor * value


def half(number):
    """Halve a number.

    >>> half(8)
    4
    >>> half("8")
    Traceback (most recent call last):
    TypeError: texts have no half
    """
    return number // 2


def ends(number):
    """End.

    >>> import os
    >>> ends(1) or os._exit(3)
    """
    return number // 3


def third(number):
    """The third of a number.

    >>> third(9)
    3
    >>> third(10)
    3.3
    """
    return number // 3


def silent(number):
    """Close the output.

    >>> import sys
    >>> silent(1)
    1
    >>> sys.stdout.close()
    """
    return number


def stubborn(number):
    """Go on once.

    >>> stubborn(1)
    """
    while number:
        try:
            while number:
                pass
        except BaseException:
            number -= 0.5


def forever(number):
    """Never.

    >>> forever(1)
    """
    while number:
        pass
'''


@pytest.fixture
def scales(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A module whose functions have docstrings with examples, and a recorder of their calls."""
    return recorded_module(monkeypatch, "recorded_scales", CODE)


def recorded(recorder: Any) -> list[tuple[str, object]]:
    return [(call["name"].partition(":")[2], call["args"][-1][1]) for call in recorder.calls]


def test_calls_of_docstrings_are_recorded_if_all_of_a_docstring_is_right(scales: tuple[Any, Any]) -> None:
    module, recorder = scales
    for name in ("Scale.of", "half", "ends", "third"):
        assert recorder.watch(f"recorded_scales:{name}")
    module.third(9)
    doctests.record_examples(recorder)
    assert recorded(recorder) == [("third", "9"), ("Scale.of", "21"), ("half", "8"), ("half", "8")]
    assert [call["args"][-1][0] for call in recorder.calls[2:]] == ["i", "s"]
    assert recorder.ends == {0: {True}, 1: {True}, 2: {True}, 3: {False}}


def test_examples_that_do_not_end_are_left_out(scales: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    _, recorder = scales
    monkeypatch.setattr(doctests, "MAX_SECONDS", 0.1)
    recorder.watch("recorded_scales:forever")
    doctests.record_examples(recorder)
    assert recorder.calls == []
    recorder.watch("recorded_scales:half")
    recorder.originals = dict(reversed(recorder.originals.items()))
    doctests.record_examples(recorder)
    assert [name for name, _ in recorded(recorder)] == ["half", "half"]


@pytest.mark.parametrize("name", ["silent", "stubborn"])
def test_examples_that_harm_their_run_are_left_out(
    scales: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _, recorder = scales
    monkeypatch.setattr(doctests, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(doctests, "AGAIN_SECONDS", 0.1)
    recorder.watch(f"recorded_scales:{name}")
    doctests.record_examples(recorder)
    assert recorder.calls == []
