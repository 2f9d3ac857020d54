"""Uses of removed code which no reference shows, and helpers of tests: special methods, keys of tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.remaining_words import words_in
from excise.extractors.python.analysis.grammar import field
from excise.types import Symbol, name_in_file, path_of

MIN_KEY = 2
"""Number of characters of a key from which on the same text elsewhere means it."""


def special_methods(remover: DependentRemover, methods: Iterable[Symbol]) -> Iterator[tuple[str, str, str]]:
    """(path, text, id) of special methods of classes that stay: ``str(x)``, ``x + y`` and ``for … in x`` call them, and
    documents show these without a word of theirs. The id is that of the method to which one is assigned."""
    found = {symbol.symbol_id: symbol.symbol_id for symbol in methods}
    for alias, text in remover.removed.aliases:
        beside = (f"{alias.rpartition('.')[0]}.{word}" for word in words_in(text.encode()))
        found.update((alias, method) for method in beside if method in found)
    for symbol_id, method in found.items():
        name = without_numbers(symbol_id.rpartition(".")[2])
        if name.startswith("__") and name.endswith("__"):
            yield path_of(symbol_id), f"{name_in_file(symbol_id)} is used without its name", method


def keys_left(remover: DependentRemover) -> Iterator[tuple[str, str]]:
    """(path, text) of texts in sources that stay which were the key of a removed entry of a table."""
    codebase = remover.codebase
    for key in sorted(set(_lost_keys(remover))):
        word = re.compile(rf"""(["']){re.escape(key)}\1""".encode())
        for path, module in codebase.modules.items():
            if codebase.is_test(path) or codebase.is_vendored(path) or remover.is_script(path):
                continue
            if any(not remover.is_removed(path, *found.span()) for found in word.finditer(module.source)):
                yield path, f"{key!r} would be left, the key of an entry that is gone"
                break


def _lost_keys(remover: DependentRemover) -> Iterator[str]:
    """The texts that are keys of removed entries of tables in sources."""
    for path, plan in remover.plans.items():
        for container, elements in plan.elements.items() if not remover.codebase.is_test(path) else ():
            if plan.deleted or any(start <= container[0] and container[1] <= end for start, end in plan.statements):
                continue
            for span in elements:
                node = plan.node_at(*span)
                key = (field(node, "key").text or b"").decode(errors="replace") if node.type == "pair" else ""
                try:
                    value = ast.literal_eval(key) if key else None
                except (ValueError, SyntaxError):
                    continue
                if isinstance(value, str) and len(value) >= MIN_KEY:
                    yield value


def helpers_of_tests(remover: DependentRemover) -> Iterator[tuple[str, str]]:
    """(path, text) of functions of tests that stay, are no tests themselves, and use what is gone."""
    codebase = remover.codebase
    for lost in sorted(remover.lost):
        for path, ref in remover.uses.later_references_to(lost) if not codebase.is_test(lost.path) else ():
            owner = codebase.symbols().get(f"{path}::{ref.owner}")
            is_helper = owner is not None and not owner.name.startswith(("test", "runTest"))
            if is_helper and codebase.is_test(path) and not remover.is_removed(path, ref.start, ref.end):
                yield path, f"the helper {ref.owner} of tests uses {lost.qualname or lost.path}"
