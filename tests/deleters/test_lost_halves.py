"""Removals that would leave half of something."""

from __future__ import annotations

import pytest

from .test_leftovers import left


@pytest.mark.parametrize(
    ("gone", "other", "is_half"),
    [
        ("def add_item(x):\n    return x + 1", "def remove_item(x):\n    return x - 1", True),
        ("class SplitParts:\n    def run(self):\n        return 1", "class MergeParts:\n    pass", True),
        ("def get_rows(x):\n    return x + 1", "def set_rows(x):\n    return x", True),
        ("def split_text(x):\n    return x + 1", "def merge_texts(x):\n    return x", False),
        ("def together(x):\n    return x + 1", "def fromgether(x):\n    return x", False),
        ("class Tool:\n    def run(self):\n        return 1", "class Fromol:\n    pass", False),
    ],
)
def test_halves_of_pairs_stay_together(gone: str, other: str, *, is_half: bool) -> None:
    name = gone.partition(" ")[2].partition("(")[0].partition(":")[0]
    found = left(f"{gone}\n\n\n{other}\n", name)
    assert any("would be half of a pair" in text for text in found) is is_half, found
