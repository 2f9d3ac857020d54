"""Removal of elements of lists, with the comments that head them."""

from __future__ import annotations

import pytest

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.python.edits.list_elements import elements_of, remove_elements
from excise.extractors.python.analysis.grammar import descendants, parse_tree


@pytest.mark.parametrize(
    ("before", "gone", "expected"),
    [
        ("# ...\na,\n# more\nb,\n", "a", "# more\nb,\n"),
        ("# one\n# and two\na,\nc,\n# more\nb,\n", "ac", "# more\nb,\n"),
        ("# one\na,\nc,\n", "a", "# one\nc,\n"),
        ("b,\n# one\na,\n", "a", "b,\n"),
        ("# x\na,\n# y\nc,\nd,\n", "ac", "# y\nd,\n"),
        ("# x\na,\n\nb,\n", "a", "\nb,\n"),
        ("# fmt: off\na,\n# more\nb,\n", "a", "# fmt: off\n# more\nb,\n"),
        ("# x\n\na,\n# more\nb,\n", "a", "# x\n\n# more\nb,\n"),
    ],
)
def test_a_comment_goes_with_all_that_it_heads(before: str, gone: str, expected: str) -> None:
    source = f"[\n{before}]\n".encode()
    container = next(node for node in descendants(parse_tree(source).root_node) if node.type == "list")
    spans = {(e.start_byte, e.end_byte) for e in elements_of(container) if (e.text or b"").decode() in gone}
    assert apply_edits(source, remove_elements(source, container, spans)).decode() == f"[\n{expected}]\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("'''\n# text''',\n    a,\n", "'''\n# text''',\n"),
        ("'''x\n# text\n''' '''\n# more''',  # tail\n# head\na,\n",
         "'''x\n# text\n''' '''\n# more''',  # tail\n"),
        ("'''\n# text''',  # tail\na,\nb,\n", "'''\n# text''',  # tail\nb,\n"),
    ],
)  # fmt: skip
def test_a_line_of_a_string_is_no_comment(before: str, expected: str) -> None:
    source = f"[\n{before}]\n".encode()
    container = next(node for node in descendants(parse_tree(source).root_node) if node.type == "list")
    spans = {(e.start_byte, e.end_byte) for e in elements_of(container) if e.text == b"a"}
    assert apply_edits(source, remove_elements(source, container, spans)).decode() == f"[\n{expected}]\n"
