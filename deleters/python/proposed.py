"""The deleter ``proposed``: deletes definitions like ``remove``, and parts of functions that stay, as proposed."""

from __future__ import annotations

from collections.abc import Mapping

from excise.deleters.edits.removed_parts import texts_of_parts
from excise.deleters.python.remove import Remove
from excise.deleters.source_texts import source_text
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parser import parse_module


class Proposed(Remove):
    """Deletes definitions, and gives functions that lose a part the text that ``Feature.changed`` has for them."""

    name = "proposed"
    version = 1


def deleted_texts(
    codebase: PythonCodebase, removed: tuple[str, ...], edits: Mapping[str, bytes | None]
) -> list[tuple[str, str]]:
    """(id, deleted text) of the symbols that ``edits`` remove, or parts of which they remove."""
    texts: list[tuple[str, str]] = []
    for symbol_id in removed:
        symbol = codebase.symbols().get(symbol_id)
        if symbol is None:
            continue
        before, data = source_text(codebase, symbol), edits.get(symbol.path)
        module = parse_module(symbol.path, data) if data is not None and symbol.is_callable else None
        left = next((s for s in module.symbols if s.qualname == symbol.qualname), None) if module else None
        if module is None or left is None:
            texts.append((symbol_id, before))
        else:
            after = module.source[left.start : left.end].decode("utf-8", "replace")
            texts += texts_of_parts(symbol_id, before, after)
    return texts
