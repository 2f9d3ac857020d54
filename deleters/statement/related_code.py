"""The shipped code around removed code, and what it tells of details that a statement need not name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from excise.deleters.edits.removed_parts import lines_of_parts, symbol_of_part
from excise.deleters.statement.base_classes import base_classes, class_of
from excise.extractors.languages import scan_rules_of
from excise.protocols import Codebase
from excise.types import Deletion, GivenBy, Need, NeedKind, Symbol, is_whole_file

_JOINED = re.compile(r"""(["'])[ \t]*\\?\r?\n\s*[rbfuRBFU]{0,2}\1""")
"""What is between two texts of which one stands below the other: they are one."""

_LITERAL = re.compile(r"""(?<![\w'"])[A-Za-z$@]{0,2}(?:"((?:\\.|[^"\\\n])+)"|'((?:\\.|[^'\\\n])+)'|`([^`]+)`)""")
"""A text in code; in Go and Rust what stands between two apostrophes may also be something else."""
_FILLED_IN = re.compile(r"\$?\{[^{}]*\}|%[-+#\d.]*[a-zA-Z]")
"""What is filled in, in a text."""


def has_more_texts(codebase: Codebase, needs: Collection[Need]) -> bool:
    """Whether the code of the owners of ``needs`` has texts besides those that these are, are a part of, or hold."""
    told = [each for need in needs for each in (need.word, need.template) if each]
    for owner in {need.owner for need in needs if need.kind is NeedKind.TEXT}:
        if (symbol := codebase.symbols().get(owner)) is None or not symbol.is_callable:
            continue
        code = codebase.modules[symbol.path].source[symbol.code_start : symbol.end].decode(errors="replace")
        marks = tuple(mark.decode() for mark in scan_rules_of(symbol.path).comments)
        lines = (line for line in code.splitlines() if not line.strip().startswith((*marks, "*")))
        for found in _LITERAL.finditer("\n".join(lines)):
            written, is_apostrophe = next(filter(None, found.groups()), ""), found[2] is not None
            is_text = not (is_apostrophe and symbol.path.endswith((".rs", ".go", ".java")))
            parts = [part for part in _FILLED_IN.split(written) if part.strip()]
            if is_text and not all(any(part in each or each in part for each in told) for part in parts):
                return True
    return False


def known_from_rest(needs: Iterable[Need], deletion: Deletion) -> list[Need]:
    """The needs, with exceptions and messages in what stays of functions that lose parts as given by the tree."""
    is_small = deletion.deleter in {"line", "expression"}
    partly = {*lines_of_parts(deletion.text), *(deletion.removed if is_small else ())}
    written = "\n".join(text for _, text in deletion.text)
    lost = f"{written}\n{_JOINED.sub('', written)}"

    def is_left(need: Need) -> bool:
        word = need.word.partition(" ")[0] if need.kind is NeedKind.EXCEPTION else need.word
        return need.kind in {NeedKind.EXCEPTION, NeedKind.MESSAGE} and need.owner in partly and word not in lost

    return [need.given_by(GivenBy.TREE) if need.given is None and is_left(need) else need for need in needs]


def lost_branches(deletion: Deletion) -> dict[str, str]:
    """Ids of the functions of which a path was deleted, to the text of it."""
    found: dict[str, str] = {}
    for text_id, text in deletion.text if deletion.deleter == "path" else ():
        if (symbol := symbol_of_part(text_id)) != text_id:
            found[symbol] = found.get(symbol, "") + text
    return found


def related_code(codebase: Codebase, deletion: Deletion) -> str:
    """The shipped code that belongs to the removed code: the rest of its function or class, base classes, callers."""
    symbols = codebase.symbols()
    removed = [symbols[s] for s in deletion.removed if s in symbols]
    gone = {text for _, text in deletion.text}
    partly = lines_of_parts(deletion.text)
    around: dict[str, Symbol] = {}
    for symbol in removed:
        if deletion.deleter in {"line", "expression"} or symbol.symbol_id in partly:
            around[symbol.symbol_id] = symbol
        owner = class_of(codebase, symbol)
        if owner is not None:
            around[owner.symbol_id] = owner
        bases = (base for base in base_classes(codebase, symbol) if isinstance(base, Symbol))
        around.update({base.symbol_id: base for base in bases})
    callers = {c for s in removed for c in codebase.callers(s.symbol_id) if not is_whole_file(c)}
    around.update({c: symbols[c] for c in sorted(callers) if not codebase.is_test(symbols[c].path)})
    return "\n".join(_without(codebase, symbol, gone) for symbol in around.values() if not _is_inside(symbol, removed))


def _is_inside(symbol: Symbol, removed: Iterable[Symbol]) -> bool:
    return any(
        outer.path == symbol.path and outer.start <= symbol.start and symbol.end <= outer.end and outer is not symbol
        for outer in removed
    )


def _without(codebase: Codebase, symbol: Symbol, gone: Collection[str]) -> str:
    text = codebase.modules[symbol.path].source[symbol.start : symbol.end].decode(errors="replace")
    for part in sorted(gone, key=len, reverse=True):
        text = text.replace(part, "")
    return text


def passes_keyword(keyword: str, owner: Symbol, code: str) -> bool:
    """Whether code calls a function that takes any keyword with this one; that others have it tells nothing."""
    qualname = owner.qualname.partition("#")[0]
    name = (qualname.rpartition(".")[0] if owner.name.startswith("__") else qualname).rpartition(".")[2]
    call = rf"(?<!def )\b{re.escape(name)}\([^()]*(?:\([^()]*\)[^()]*)*\b{re.escape(keyword)}=(?!=)"
    return re.search(call, code) is not None
