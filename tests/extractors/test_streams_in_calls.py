"""Streams in memory as arguments of recorded calls: how they are encoded, and what of them is compared."""

from __future__ import annotations

import io
import itertools
import json

import pytest

from excise.extractors.python.execution import compared_outcomes

from .inside_programs import decoding, outcomes, values


@pytest.mark.parametrize("made", [io.StringIO("a\r\nb\n"), io.BytesIO(b"\0ab")], ids=["text", "bytes"])
def test_streams_in_memory_have_their_content_and_place(made: io.StringIO | io.BytesIO) -> None:
    made.seek(2)
    again = decoding.decode(json.loads(json.dumps(values.Encoder().encode(made))))
    assert (type(again), again.getvalue(), again.tell()) == (type(made), made.getvalue(), 2)
    assert made.tell() == 2
    made.close()
    with pytest.raises(values.Unserialisable):
        values.Encoder().encode(made)


def test_streams_have_their_attributes_and_counters_their_numbers() -> None:
    made = io.BytesIO(b"ab")
    made.mark = (1, "x")  # type: ignore[attr-defined]
    again = decoding.decode(json.loads(json.dumps(values.Encoder().encode([made, itertools.count(7, -2)]))))
    assert (again[0].getvalue(), again[0].mark) == (b"ab", (1, "x"))
    assert [next(again[1]), next(again[1])] == [7, 5]
    with pytest.raises(values.Unserialisable):
        values.Encoder().encode(itertools.count(0.5))


def test_a_stream_that_translates_ends_of_lines_is_refused() -> None:
    for newline in ("", "\r\n", None):
        with pytest.raises(values.Unserialisable):
            values.Encoder().encode(io.StringIO("a", newline=newline))


def test_what_is_written_to_a_stream_is_compared_and_not_how_it_is_read() -> None:
    written, other, read = io.StringIO(), io.StringIO(), io.StringIO("ab")
    written.write("ab")
    other.write("a")
    assert compared_outcomes.same_outcome(outcome((written,)), outcome((read,)))
    assert not compared_outcomes.same_outcome(outcome((written,)), outcome((other,)))
    found = [json.dumps({"result": values.Encoder().encode(each), "after": []}) for each in (written, read)]
    assert not compared_outcomes.same_outcome(*found), "what it gives is read"


def test_how_far_an_argument_was_counted_is_not_compared() -> None:
    first, second = itertools.count(), itertools.count(3)
    assert compared_outcomes.same_outcome(outcome((first, 1)), outcome((second, 1)))
    assert not compared_outcomes.same_outcome(outcome((first, [1])), outcome((second, [2])))


def outcome(arguments: tuple[object, ...]) -> str:
    """The outcome of a call that returns nothing."""
    return json.dumps(outcomes.outcome_of(lambda: None, arguments, lambda cls: False))
