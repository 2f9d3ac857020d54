"""Functions that may compare what a test finds with what it expects."""

from __future__ import annotations

import re
from collections.abc import Collection

EQUAL = frozenset({"reflect.DeepEqual", "bytes.Equal"})
"""Functions that a test may compare by."""
_COMPARING = frozenset({
    "diff", "compare", "cmp", "equal", "equals", "same", "match", "matches", "check", "assert", "expect", "verify",
    "require", "ensure",
})  # fmt: skip
"""Words in the names of functions that may compare something with what is expected."""
_SEARCHING = frozenset({"strings", "bytes", "errors", "slices", "sort", "regexp", "assert", "require", "filepath"})
"""Packages of functions that may do so, whatever their names are, but for some."""
_MAKING = frozenset({
    "Join", "Repeat", "NewReader", "NewBuffer", "NewBufferString", "New", "Split", "Fields", "Replace", "ReplaceAll",
    "ToUpper", "ToLower", "TrimSpace", "MustCompile", "Compile", "Strings", "Ints", "Sort", "Slice", "NewReplacer",
})  # fmt: skip
"""Functions of these that make values or sort them."""


def may_compare(called: str, depending: Collection[str]) -> bool:
    """Whether the function ``called`` (``f``, ``x.f``) may compare something; ``depending``: names of the code under
    test and of what calls it."""
    package, point, _ = called.partition(".")
    last = called.rpartition(".")[2]
    if point and package in _SEARCHING and last not in _MAKING:
        return True
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", last)}
    return bool(words & _COMPARING) and last not in depending
