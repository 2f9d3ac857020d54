"""Whether a text gives a detail in a form that points to it."""

from __future__ import annotations

from excise.deleters.statement.details import is_named
from excise.types import Need, NeedKind


def test_a_text_that_looks_like_a_keyword_is_given_as_a_text_alone() -> None:
    need = Need(kind=NeedKind.TEXT, word="size=", template="Bag({…}, size={…})", owner="a.py::A", tests=())
    assert not is_named(need, "x = Bag(size=3); x.add(1)")
    assert is_named(need, "Texts that it reads or writes: 'Bag({…}, size={…})'")
    assert is_named(need, "It writes 'size=' first.")
