"""Removal of code that only removed code used: imports in sources, helpers and constants in test files."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cached_property, lru_cache

from tree_sitter import Node

from excise.deleters.edits.byte_edits import apply_edits, merged
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.name_uses import UseIndex
from excise.extractors.python.analysis.grammar import comments, descendants, parse_tree
from excise.extractors.python.analysis.parsed_file import Import, Phase
from excise.extractors.python.analysis.parser import parse_module
from excise.types import Symbol, SymbolKind

_WORD = re.compile(r"[^\W\d]\w*")
_EXAMPLE = re.compile(rb"\s*(>>>|\.\.\.)")
_TYPING_CALLS = frozenset({b"cast", b"TypeVar", b"ForwardRef", b"NewType", b"NamedTuple", b"TypedDict"})
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
    def _used(self) -> frozenset[str]:
        return used_names(apply_edits(self._module.source, self._edits))

    def only_removed(self, name: str) -> bool:
        """Whether a name occurs in the removed code, and elsewhere only once, in its own definition."""
        return name in self._removed and self._kept.get(name, 0) <= 1

    def is_unused(self, name: str) -> bool:
        """Whether a name of the module occurs in the removed code, and nothing that stays uses it."""
        return name in self._removed and name not in self._used


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
def drop_unused_imports(plan: FilePlan, uses: UseIndex, plans: Mapping[str, FilePlan]) -> None:
    """Remove the imports of a file that only the removed code used; ``plans``: path to plan of all changed files.

    Not removed are names in ``__all__``, names that code which stays takes from here, names that tests replace here,
    imports in ``try`` statements, star and ``__future__`` imports, lines with ``noqa``, and plain imports of submodules
    of other packages.
    """
    if plan.deleted or not plan.is_changed:
        return
    words = WordCounts(plan)
    exported = {e.name for e in plan.module.exports}
    for record in plan.module.imports:
        name = record.bound
        if record.owner or record in plan.clauses or record.in_try or record.phase is Phase.MAIN:
            continue
        if not name or name in exported or record.module == "__future__" or _is_special_import(plan, record):
            continue
        if words.is_unused(name) and not _reached_from_elsewhere(plan.path, name, uses, plans):
            plan.remove_clause(record)


def _is_special_import(plan: FilePlan, record: Import) -> bool:
    line_start = plan.source.rfind(b"\n", 0, record.stmt_start) + 1
    line_end = plan.source.find(b"\n", record.end)
    line = plan.source[record.start : line_end if line_end >= 0 else None]
    reexport = bool(record.alias) and record.alias == record.name
    submodule = not record.name and not record.alias and "." in record.module
    foreign = record.module.partition(".")[0] not in sys.stdlib_module_names
    shares_line = plan.source[line_start : record.stmt_start].strip() != b""
    return b"noqa" in line or reexport or (submodule and foreign) or shares_line


def _reached_from_elsewhere(path: str, name: str, uses: UseIndex, plans: Mapping[str, FilePlan]) -> bool:
    """Whether code that stays in another file imports the name from ``path``, by name or star, uses it as an attribute
    of the module, or replaces it."""

    def stays(other: str, start: int, end: int) -> bool:
        return other not in plans or not plans[other].is_removed(start, end)

    if uses.gives_to_star_imports(path, name) or any(stays(*place) for place in uses.replacements_of(path, name)):
        return True
    if any(
        stays(other, r.start, r.end) and not _is_dropped(plans, other, r) for other, r in uses.named_from(path, name)
    ):
        return True
    return any(stays(other, ref.start, ref.end) for other, ref in uses.attribute_reads(path, name))


def _is_dropped(plans: Mapping[str, FilePlan], path: str, record: Import) -> bool:
    return path in plans and record in plans[path].clauses


@lru_cache(maxsize=256)
def used_names(source: bytes) -> frozenset[str]:
    """Names of the module that a file uses: in code, ``__all__``, annotations written as strings, and examples."""
    module = parse_module("", source)
    used = {ref.chain.partition(".")[0] for ref in module.references if ref.via < 0}
    used.update(entry.name for entry in module.exports)
    for node in descendants(parse_tree(source).root_node):
        if node.type == "string":
            text = source[node.start_byte : node.end_byte]
            lines = [line for line in text.splitlines() if _EXAMPLE.match(line)]
            used.update(_words(text if _is_annotation(node, source) else b"\n".join(lines)))
    return frozenset(used)


def _is_annotation(string: Node, source: bytes) -> bool:
    """Whether a string is, or is a part of, an annotation or an argument of a function of ``typing``."""
    node = string.parent
    while node is not None and not node.type.endswith(("_statement", "_definition", "block", "module")):
        if node.type == "type":
            return True
        head = node.child_by_field_name("function" if node.type == "call" else "value")
        text = source[head.start_byte : head.end_byte].rpartition(b".")[2] if head is not None else b""
        if node.type == "call" and text in _TYPING_CALLS:
            return True
        if node.type == "subscript" and text[:1].isupper():
            return True
        node = node.parent
    return False


def _words(text: bytes) -> list[str]:
    return _WORD.findall(text.decode("utf-8", "replace"))


# ----------------------------------------------------------------------------------------- constants
def drop_unused_constants(plan: FilePlan, uses: UseIndex, plans: Mapping[str, FilePlan]) -> tuple[tuple[str, str], ...]:
    """Remove private constants of a source file that only the removed code used: dead, they would tell how it worked.

    Returns (id, source text) of each. A constant is a name that one statement at module level binds to data, or to what
    such a function makes of it (:data:`_MAKERS`); it is private if its name says so, or ``__all__`` leaves it out.
    """
    if plan.deleted or not plan.is_changed:
        return ()
    words = WordCounts(plan)
    module = plan.module
    exported = {entry.name for entry in module.exports}
    names = [binding.name for binding in module.bindings if not binding.klass]
    found: list[tuple[str, str]] = []
    for binding in module.bindings:
        name = binding.name
        is_private = name.startswith("_") or (module.has_all and bool(exported) and name not in exported)
        if binding.klass or not is_private or names.count(name) != 1 or _SPECIAL.match(name):
            continue
        node = plan.node_at(binding.start, binding.end)
        statement = node.parent
        if statement is None or statement.parent is None or statement.parent.type != "module":
            continue
        if plan.is_removed(binding.start, binding.end) or not _is_constant(node):
            continue
        if words.is_unused(name) and not _reached_from_elsewhere(plan.path, name, uses, plans):
            plan.remove_statement(statement)
            found.append((f"{plan.path}::{name}", plan.source[binding.start : binding.end].decode("utf-8", "replace")))
    return tuple(found)


def _is_constant(assignment: Node) -> bool:
    """Whether an assignment binds one name to data: literals, names, and calls of :data:`_MAKERS`."""
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if assignment.type != "assignment" or left is None or left.type != "identifier" or right is None:
        return False
    for node in descendants(right):
        if node.type in {"assignment", "named_expression", "await", "yield"}:
            return False
        if node.type == "call":
            function = node.child_by_field_name("function")
            name = (function.text or b"").rpartition(b".")[2] if function is not None else b""
            if name not in _MAKERS:
                return False
    return True


_MAKERS = frozenset(
    b"compile frozenset set dict tuple list object maketrans split join format strip encode decode sorted range "
    b"timedelta Decimal Fraction namedtuple TypeVar escape zip str int float bytes chr ord len items keys values union "
    b"Struct attrgetter itemgetter methodcaller partial MappingProxyType dedent replace".split()
)
"""Functions and methods that make data of data, and do nothing else."""


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
