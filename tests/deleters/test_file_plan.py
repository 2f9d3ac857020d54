"""What is planned for a file may grow and be taken back: contents are those of what is planned at the moment."""

from __future__ import annotations

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.remaining_words import words_of
from excise.extractors.python.analysis.parser import parse_module

SOURCE = b"one = 1\n\n\ndef two():\n    return one\n\n\nthree = [4, 5]\n"


def span(text: bytes) -> tuple[int, int]:
    return SOURCE.index(text), SOURCE.index(text) + len(text)


def test_contents_follow_what_is_planned() -> None:
    plan = FilePlan(parse_module("m.py", SOURCE))
    assert plan.result() == SOURCE
    plan.remove_span(*span(b"def two():\n    return one"))
    assert plan.result() == b"one = 1\n\n\nthree = [4, 5]\n"
    assert plan.result() == b"one = 1\n\n\nthree = [4, 5]\n"
    assert "two" in words_of(plan).removed
    items = plan.node_at(*span(b"[4, 5]"))
    plan.remove_element(items, items.named_children[0])
    assert plan.result() == b"one = 1\n\n\nthree = [5]\n"
    plan.replacements.append(Edit(*span(b"1"), b"2"))
    assert plan.result() == b"one = 2\n\n\nthree = [5]\n"
    plan.statements, plan.replacements = set(), []
    assert plan.result() == SOURCE.replace(b"4, ", b"")
    assert "two" in words_of(plan).kept
    plan.deleted = True
    assert plan.result() is None
    assert not words_of(plan).after
