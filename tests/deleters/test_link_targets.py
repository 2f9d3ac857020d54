"""Addresses of links go with the last text that refers to them."""

from __future__ import annotations

import re

import pytest

from excise.deleters.documents.link_targets import without_unused_targets
from excise.deleters.documents.running_text import shortened

from .test_documents import left_of


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("See `a b`_.\n\nEnd.\n\n.. _a b: http://x\n", "End.\n\n.. _a b: http://x\n", "End.\n"),
        ("See `A b`_.\n\n.. _`a b`: http://x\n", ".. _`a b`: http://x\n", ""),
        ("See a_ and b_.\n\n.. _a: http://x\n.. _b: http://y\n", "See b_.\n\n.. _a: http://x\n.. _b: http://y\n",
         "See b_.\n\n.. _b: http://y\n"),
        ("See `this <a_>`_.\n\n.. _a: http://x\n\nEnd.\n", "It.\n\n.. _a: http://x\n\nEnd.\n", "It.\n\nEnd.\n"),
        ("End.\n\n.. _a: http://x\n", "End.\n\n.. _a: http://x\n", "End.\n\n.. _a: http://x\n"),  # never used
        ("See a_b.\n\n.. _a: http://x\n", "It.\n\n.. _a: http://x\n", "It.\n\n.. _a: http://x\n"),
        ("A [b][c].\n\n[c]: http://x\n", "A.\n\n[c]: http://x\n", "A.\n"),
        ("A [c] and [c].\n\n[c]: http://x\n", "A [c].\n\n[c]: http://x\n", "A [c].\n\n[c]: http://x\n"),
    ],
)  # fmt: skip
def test_addresses_that_nothing_refers_to_any_more_go(before: str, after: str, expected: str) -> None:
    assert without_unused_targets(before, after) == expected


def test_an_address_goes_from_a_document_with_the_text_about_what_is_gone() -> None:
    text = "pkg\n===\n\nIt counts.\n\nCall ``gone_by`` as `they say`_ there.\n\nIt is fast.\n\n.. _they say: http://x\n"
    assert left_of(text, path="README.rst") == "pkg\n===\n\nIt counts.\n\nIt is fast.\n"


def test_addresses_of_links_are_no_running_text() -> None:
    """One goes, and not the ones around it, which might be sentences in one line."""
    links = ["[`first_of`]: crate::first_of", "[`gone_by_name`]: crate::gone_by_name", "[`last`]: crate::last"]
    assert shortened(links, re.compile(r"\bgone_by_name\b")) == [links[0], links[2]]
