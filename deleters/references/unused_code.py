"""Removal of code that only removed code used: imports in sources, helpers and constants in test files."""

from __future__ import annotations

import re
from functools import cached_property

from excise.deleters.edits.byte_edits import Edit, apply_edits, merged
from excise.deleters.edits.file_plan import FilePlan
from excise.deleters.references.name_uses import UseIndex
from excise.extractors.python.analysis.grammar import comments, parse_tree
from excise.extractors.python.analysis.parsed_file import Import, Phase
from excise.types import Symbol, SymbolKind

_WORD = re.compile(r"[^\W\d]\w*")
_SPECIAL = re.compile(r"^(pytest_|pytestmark$|pytest_plugins$|setup|teardown|setUp|tearDown|load_tests$|__)")


class WordCounts:
    """The words of a file before and after its planned edits, without comments."""

    def __init__(self, plan: FilePlan) -> None:
        self._module, self._edits = plan.module, merged(plan.edits())
        removed = b"\n".join(plan.source[e.start : e.end] for e in self._edits)
        self._removed = frozenset(_WORD.findall(removed.decode("utf-8", "replace")))

    @cached_property
    def _kept(self) -> dict[str, int]:
        return _count(_without_comments(apply_edits(self._module.source, self._edits)))

    @cached_property
    def _kept_outside_imports(self) -> dict[str, int]:
        imports = {Edit(record.stmt_start, record.stmt_end) for record in self._module.imports}
        return _count(_without_comments(apply_edits(self._module.source, merged([*self._edits, *imports]))))

    def only_removed(self, name: str) -> bool:
        """Whether a name occurs in the removed code, and elsewhere only once, in its own definition."""
        return name in self._removed and self._kept.get(name, 0) <= 1

    def is_unused_import(self, name: str) -> bool:
        """Whether an imported name occurs in the removed code, and elsewhere only in imports."""
        return name in self._removed and not self._kept_outside_imports.get(name, 0)


def _without_comments(source: bytes) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for comment in sorted(comments(parse_tree(source).root_node), key=lambda n: n.start_byte):
        pieces.append(source[position : comment.start_byte])
        position = comment.end_byte
    return b"".join([*pieces, source[position:]])


def _count(source: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in _WORD.findall(source.decode("utf-8", "replace")):
        counts[word] = counts.get(word, 0) + 1
    return counts


# ------------------------------------------------------------------------------------------- imports
def drop_unused_imports(plan: FilePlan, uses: UseIndex) -> None:
    """Remove the imports of a file that only the removed code used.

    Not removed are names in ``__all__`` or imported from here by other files, imports in ``try`` or ``if`` statements,
    star and ``__future__`` imports, lines with ``noqa``, and plain imports of submodules.
    """
    if plan.deleted or not plan.is_changed:
        return
    words = WordCounts(plan)
    exported = {e.name for e in plan.module.exports}
    for record in plan.module.imports:
        name = record.bound
        if record.owner or record in plan.clauses or record.in_try or record.phase is not Phase.IMPORT:
            continue
        if not name or name in exported or record.module == "__future__" or _is_special_import(plan, record):
            continue
        if words.is_unused_import(name) and not _reached_from_elsewhere(plan.path, name, uses):
            plan.remove_clause(record)


def _is_special_import(plan: FilePlan, record: Import) -> bool:
    line_start = plan.source.rfind(b"\n", 0, record.stmt_start) + 1
    line_end = plan.source.find(b"\n", record.end)
    line = plan.source[record.start : line_end if line_end >= 0 else None]
    reexport = bool(record.alias) and record.alias == record.name
    submodule = not record.name and not record.alias and "." in record.module
    return b"noqa" in line or reexport or submodule or line_start != record.stmt_start


def _reached_from_elsewhere(path: str, name: str, uses: UseIndex) -> bool:
    """Whether another file imports the name from ``path``, by name or star, or uses it as an attribute of the
    module."""
    if any(True for _ in uses.star_importers(path)) or uses.is_named_from(path, name):
        return True
    return any(True for _ in uses.attribute_reads(path, name))


# ------------------------------------------------------------------------------------------- helpers
def drop_unused_helpers(plan: FilePlan, uses: UseIndex) -> tuple[Symbol, ...]:
    """Remove helpers, fixtures and constants of a test file that only hidden tests used, until there are no more.

    Only names that occur nowhere else in the file, and that no other file imports, are removed.
    """
    if plan.deleted or not plan.is_changed or plan.path.rpartition("/")[2] in {"conftest.py", "__init__.py"}:
        return ()
    gone: list[Symbol] = []
    while True:
        words = WordCounts(plan)
        before = len(gone), len(plan.statements)
        for symbol in plan.module.symbols:
            if _is_helper(symbol, plan) and words.only_removed(symbol.name) and _is_private(plan, symbol.name, uses):
                plan.remove_span(symbol.start, symbol.end)
                gone.append(symbol)
        _drop_constants(plan, words, uses)
        if (len(gone), len(plan.statements)) == before:
            return tuple(gone)


def _drop_constants(plan: FilePlan, words: WordCounts, uses: UseIndex) -> None:
    names = [b.name for b in plan.module.bindings if not b.klass]
    for binding in plan.module.bindings:
        statement = plan.source[binding.start : binding.end].lstrip()
        simple = not binding.klass and names.count(binding.name) == 1 and statement.startswith(binding.name.encode())
        if not simple or _SPECIAL.match(binding.name) or plan.is_removed(binding.start, binding.end):
            continue
        node = plan.node_at(binding.start, binding.end)
        at_top = node.parent is not None and node.parent.type == "expression_statement"
        top = node.parent.parent if at_top and node.parent is not None else None
        if top is None or top.type != "module":
            continue
        if words.only_removed(binding.name) and _is_private(plan, binding.name, uses):
            plan.remove_span(binding.start, binding.end)


def _is_helper(symbol: Symbol, plan: FilePlan) -> bool:
    if symbol.kind not in {SymbolKind.FUNCTION, SymbolKind.CLASS} or "." in symbol.qualname or "#" in symbol.qualname:
        return False
    if plan.is_removed(symbol.start, symbol.end) or _SPECIAL.match(symbol.name):
        return False
    automatic = any("autouse" in d or "hookimpl" in d or "register" in d for d in symbol.decorators)
    return not automatic and not symbol.name.startswith(("test", "Test"))


def _is_private(plan: FilePlan, name: str, uses: UseIndex) -> bool:
    return not uses.is_named_from(plan.path, name) and not any(True for _ in uses.star_importers(plan.path))
