"""Remove all code that would fail at import because it depends on deleted code.

Starting from lost bindings, it removes import clauses, re-exports, ``__all__`` entries, aliases, elements of tables and
registrations. It refuses the deletion if code that must stay could no longer be imported. Uses inside function bodies
are not removed: the test runs show whether they matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.name_positions import Use, UseKind, is_main_block, use_at
from excise.deleters.python.references.name_uses import LostBinding, use_index
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase, is_accessor
from excise.extractors.python.analysis.grammar import inner_definition, statements
from excise.extractors.python.analysis.parsed_file import Import, Phase, Reference
from excise.types import Symbol, SymbolKind

_IMPORTS = frozenset({"import_statement", "import_from_statement"})
_BELONGING = frozenset({"register", "setter", "getter", "deleter"})
"""Attributes in decorators such as ``@f.register``; the decorated functions are part of ``f``."""
MAX_ROWS = 2
"""Number of rows of tables, tuples or lists in a display, that may go with a name which is not the first in them: a
converter that many rows share is not what they are about, and rows may count by position."""


@dataclass(slots=True)
class RemovedDependents:
    """Code that was removed in addition to the requested symbols."""

    symbols: list[Symbol] = field(default_factory=list)
    """Definitions that depend on a lost binding."""
    aliases: list[tuple[str, str]] = field(default_factory=list)
    """Ids and source texts of removed assignments."""
    helpers: list[Symbol] = field(default_factory=list)
    """Private definitions that only removed code used, and no test names: how the code worked, not what it is."""


class DependentRemover:
    """Removes symbols, and then repeatedly all code that depends on lost bindings.

    ``on_test`` is called with every test definition that is removed because it depends on deleted code.
    """

    def __init__(self, codebase: PythonCodebase, on_test: Callable[[Symbol], None]) -> None:
        self.codebase = codebase
        self.uses = use_index(codebase)
        self.plans: dict[str, FilePlan] = {}
        self.other_files: dict[str, bytes] = {}
        """Path to content of the files that are no Python and are removed, too."""
        self.accessors: list[Symbol] = []
        """Setters and deleters that were removed, of properties that may stay."""
        self.removed = RemovedDependents()
        self._on_test = on_test
        self._seen: set[LostBinding] = set()
        self._defining: set[str] = set()
        self._queue: list[LostBinding] = []
        self._rows: dict[LostBinding | None, set[tuple[str, int]]] = defaultdict(set)
        self._current: LostBinding | None = None
        self._because_of: dict[LostBinding, LostBinding] = {}

    def plan(self, path: str) -> FilePlan:
        """The plan of a file. Raises :class:`DeletionRefused` for files with syntax errors."""
        if path not in self.plans:
            module = self.codebase.modules[path]
            if module.has_error:
                raise DeletionRefused(f"{path}: has syntax errors, so nothing is deleted there", reason="syntax_error")
            self.plans[path] = FilePlan(module)
        return self.plans[path]

    def is_removed(self, path: str, start: int, end: int) -> bool:
        """Whether a span of a file is inside a planned removal."""
        plan = self.plans.get(path)
        return plan is not None and plan.is_removed(start, end)

    def is_imported(self, path: str) -> bool:
        """Whether an import that stays is one of this file, or of something in it."""
        if path not in self.uses.imported:
            return False
        resolver = self.uses.resolver
        for other, module in self.codebase.modules.items():
            plan = self.plans.get(other)
            for record in module.imports:
                if plan is not None and plan.drops(record):
                    continue
                target = resolver.imported(other, record) if record.name != "*" else None
                if any(each is not None and each.path == path for each in (resolver.module_of(other, record), target)):
                    return True
        return False

    def is_script(self, path: str) -> bool:
        """Whether a file is a script that defines no removed code; like documentation, it is not changed."""
        return path not in self._defining and self.uses.is_script(path)

    # ------------------------------------------------------------------------------ lost bindings
    @property
    def lost(self) -> frozenset[LostBinding]:
        """All bindings that are lost so far."""
        return frozenset(self._seen)

    def lose(self, path: str, qualname: str) -> None:
        """Queue a lost binding; :meth:`run` removes its dependents."""
        lost = LostBinding(path, qualname)
        if lost not in self._seen:
            self._seen.add(lost)
            self._queue.append(lost)
            if self._current is not None:
                self._because_of[lost] = self._current

    def imported_from(self, lost: LostBinding) -> LostBinding:
        """The binding that a lost import of the same name comes from, through all files; or the binding itself."""
        while (cause := self._because_of.get(lost)) is not None and cause.name == lost.name:
            lost = cause
        return lost

    def remove_symbol(self, symbol: Symbol) -> None:
        """Remove a definition with all definitions that go with it, or a whole file."""
        self._defining.add(symbol.path)
        for symbol_id in self.codebase.group(symbol.symbol_id):
            part = self.codebase.symbols()[symbol_id]
            plan = self.plan(part.path)
            if part.kind is SymbolKind.MODULE:
                self._remove_module(plan)
                return
            plan.remove_span(part.start, part.end)
        if is_accessor(symbol):
            self.accessors.append(symbol)
        else:
            self.lose(symbol.path, without_numbers(symbol.qualname))

    def _remove_module(self, plan: FilePlan) -> None:
        plan.deleted = True
        scope = self.uses.resolver.scope(plan.path)
        names = {n for n in scope.symbols if "." not in n} | set(scope.imports)
        names |= {name for klass, name in scope.bindings if not klass}
        for name in sorted(n.partition("#")[0] for n in names):
            self.lose(plan.path, name)
        self.lose(plan.path, "")

    def run(self) -> None:
        """Remove the dependents of all lost bindings. Raises :class:`DeletionRefused`."""
        while self._queue:
            self._current = lost = self._queue.pop(0)
            if lost.qualname and "." not in lost.qualname and lost.path in self.plans:
                self.plans[lost.path].lost_names.add(lost.qualname)
            self._other_bindings(lost)
            for path, record in list(self.uses.importers_of(lost)):
                self._drop_import(path, record)
            for path in list(self.uses.star_importers(lost.path)) if lost.qualname else ():
                self._lost_through_star(path, lost)
            self._exports(lost)
            for path, ref in list(self.uses.references_to(lost)):
                self._reference(path, ref)

    def _other_bindings(self, lost: LostBinding) -> None:
        """Remove other bindings of a lost name, such as ``try: from ._c import f`` beside ``def f``."""
        if not lost.qualname or "." in lost.qualname or lost.path not in self.codebase.modules:
            return
        for record in self.uses.resolver.scope(lost.path).imports.get(lost.qualname, ()):
            if record.in_try and not self.plan(lost.path).is_removed(record.start, record.end):
                self.plan(lost.path).remove_clause(record)

    def _lost_through_star(self, path: str, lost: LostBinding) -> None:
        name = lost.qualname
        if "." in name or not self._is_exported(lost.path, name) or self.is_script(path):
            return
        scope = self.uses.resolver.scope(path)
        if name in scope.symbols or name in scope.imports or ("", name) in scope.bindings:
            return
        others = (r for r in self.codebase.modules[path].imports if r.name == "*" and r not in self.plan(path).clauses)
        sources = (self.uses.resolver.module_of(path, record) for record in others)
        if not any(source is not None and self._still_offers(source.path, name) for source in sources):
            self.lose(path, name)

    def _is_exported(self, path: str, name: str) -> bool:
        """Whether ``from module import *`` takes a name that the file binds."""
        exports = {entry.name for entry in self.codebase.modules[path].exports}
        return name in exports if exports else not name.startswith("_")

    def _still_offers(self, path: str, name: str) -> bool:
        """Whether ``from module import *`` binds a name that is not lost."""
        found = self.uses.resolver.name(path, name)
        lost = {LostBinding(path, name), LostBinding(found.path, found.qualname)} & self._seen if found else True
        return not lost and self._is_exported(path, name)

    def _exports(self, lost: LostBinding) -> None:
        module = self.codebase.modules.get(lost.path)
        if module is None or not lost.qualname:
            return
        for entry in module.exports:
            if entry.name == lost.qualname:
                self._drop_export(self.plan(lost.path), entry.start, entry.end)

    # ------------------------------------------------------------------------------------ imports
    def _drop_import(self, path: str, record: Import) -> None:
        if self.is_script(path):
            return
        plan = self.plan(path)
        if plan.drops(record):
            return
        if self._shorten(plan, record):
            return
        plan.remove_clause(record)
        if record.name == "*":
            self._lost_star(path, record)
        elif record.bound and not self._still_bound(plan, record):
            self.lose(path, record.bound)

    def _lost_star(self, path: str, record: Import) -> None:
        source = self.uses.resolver.module_of(path, record)
        if source is not None and source.path in self.codebase.modules:
            scope = self.uses.resolver.scope(source.path)
            own = {n for n in scope.symbols if "." not in n} | set(scope.imports)
            for name in sorted(own | {name for klass, name in scope.bindings if not klass}):
                self._lost_through_star(path, LostBinding(source.path, name))

    def _still_bound(self, plan: FilePlan, record: Import) -> bool:
        """Whether another import or definition in the file binds the name."""
        scope = self.uses.resolver.scope(plan.path)
        name = record.bound
        symbol_id = f"{plan.path}::{name}"
        if name in scope.symbols and not plan.is_removed(*self._span(symbol_id)):
            return True
        others = [r for r in scope.imports.get(name, ()) if r not in plan.clauses]
        if not record.name and not record.alias and others:
            return True
        return any(not r.in_try or self.uses.resolver.imported(plan.path, r) for r in others)

    def _span(self, symbol_id: str) -> tuple[int, int]:
        symbol = self.codebase.symbols()[symbol_id]
        return symbol.start, symbol.end

    def _shorten(self, plan: FilePlan, record: Import) -> bool:
        """Replace ``import a.b`` of a lost module by ``import a`` if ``a`` has other uses; return whether it has."""
        top, dot, _ = record.module.partition(".")
        if record.name or record.alias or not dot or (found := self.uses.resolver.name(plan.path, top)) is None:
            return False
        others = [r for r in self.uses.resolver.scope(plan.path).imports.get(top, ()) if r is not record]
        if others or LostBinding(found.path, "") in self._seen:
            return False
        used = any(
            ref.chain.partition(".")[0] == top and not ref.chain.startswith(record.module)
            for ref in plan.module.references
        )
        if used:
            plan.replacements.append(Edit(record.start, record.end, top.encode()))
        return used

    def _drop_export(self, plan: FilePlan, start: int, end: int) -> None:
        if plan.is_removed(start, end):
            return
        node = plan.node_at(start, end)
        parent = node.parent
        if parent is not None and parent.type in {"list", "tuple", "set", "expression_list"}:
            plan.remove_element(parent, node)
        else:
            use = use_at(plan.root, start, end)
            if use.kind is UseKind.STATEMENT:
                plan.remove_statement(use.node)

    # --------------------------------------------------------------------------------- references
    def _reference(self, path: str, ref: Reference) -> None:
        if self.is_script(path):
            return
        plan = self.plan(path)
        if plan.is_removed(ref.start, ref.end):
            return
        if ref.phase is Phase.MAIN:
            self._main_statement(plan, ref)
            return
        use = use_at(plan.root, ref.start, ref.end)
        match use.kind:
            case UseKind.ELEMENT if use.container is not None:
                self._element(plan, ref, use, use.container)
            case UseKind.OPERAND if use.container is not None:
                _drop_operand(plan, use.node, use.container)
            case UseKind.STATEMENT:
                plan.remove_statement(use.node)
            case UseKind.ASSIGNMENT:
                self._assignment(plan, ref, use.node)
            case UseKind.DECORATOR:
                self._decorated(plan, ref, use.node)
            case _:
                self._dependent(plan, ref, use.node)

    def _element(self, plan: FilePlan, ref: Reference, use: Use, container: Node) -> None:
        if (
            use.node.type in {"tuple", "list"}
            and not self.codebase.is_test(plan.path)
            and not _begins_with(use.node, ref)
        ):
            rows = self._rows[self.imported_from(self._current) if self._current is not None else None]
            rows.add((plan.path, use.node.start_byte))
            if len(rows) > MAX_ROWS:
                self._refuse(
                    plan, ref, f"stands in more than {MAX_ROWS} rows of tables, as a value of what they are about"
                )
        plan.remove_element(container, use.node)
        decorated = _enclosing_decorated(container)
        if decorated is not None and self.codebase.is_test(plan.path) and plan.is_emptied(container):
            self._dependent(plan, ref, decorated)

    def _assignment(self, plan: FilePlan, ref: Reference, statement: Node) -> None:
        names = [b for b in plan.module.bindings if statement.start_byte <= b.start and b.end <= statement.end_byte]
        plan.remove_statement(statement)
        text = plan.source[statement.start_byte : statement.end_byte].decode("utf-8", "replace")
        for binding in names:
            qualname = f"{binding.klass}.{binding.name}" if binding.klass else binding.name
            if binding.name == "__all__":
                continue
            if binding.name != ref.chain:
                self.removed.aliases.append((f"{plan.path}::{qualname}", text))
            self.lose(plan.path, qualname)

    def _decorated(self, plan: FilePlan, ref: Reference, definition: Node) -> None:
        symbol = self._symbol_at(plan, definition)
        belongs = ref.chain.rpartition(".")[2] in _BELONGING and "." in ref.chain
        if symbol is not None and (belongs or self.codebase.is_test(plan.path)):
            self._remove_dependent(symbol)
        else:
            self._refuse(plan, ref, "decorates a definition that stays")

    def _dependent(self, plan: FilePlan, ref: Reference, node: Node) -> None:
        if ref.phase is Phase.TYPING:
            return
        symbol = self._symbol_at(plan, node)
        if symbol is None or not self.codebase.is_test(plan.path):
            self._refuse(plan, ref, "is used while the module is imported")
        else:
            self._remove_dependent(symbol)

    def _remove_dependent(self, symbol: Symbol) -> None:
        self.removed.symbols.append(symbol)
        if self.codebase.is_test(symbol.path):
            self._on_test(symbol)
        self.remove_symbol(symbol)

    def _symbol_at(self, plan: FilePlan, node: Node) -> Symbol | None:
        inner = inner_definition(node)
        for symbol in plan.module.symbols:
            if symbol.qualname and symbol.start == node.start_byte and symbol.end == inner.end_byte:
                return symbol
        return None

    def _main_statement(self, plan: FilePlan, ref: Reference) -> None:
        """Remove the statement of a use under ``if __name__ == "__main__":``, and the names that it binds."""
        node = plan.root.descendant_for_byte_range(ref.start, ref.end) or plan.root
        node = _statement_around(node)
        while node.parent is not None and not is_main_block(node.parent) and self._is_last(plan, node, node.parent):
            node = _statement_around(node.parent)
        plan.remove_statement(node)
        block = node.parent
        left = [s for s in statements(block) if not plan.is_removed(s.start_byte, s.end_byte)] if block else []
        owner = block.parent if block is not None else None
        is_plain = owner is not None and not owner.children_by_field_name("alternative")
        if owner is not None and is_plain and all(s.type in _IMPORTS for s in left):
            plan.remove_statement(owner)
        for binding in plan.module.bindings:
            if node.start_byte <= binding.start and binding.end <= node.end_byte and not binding.klass:
                self.lose(plan.path, binding.name)

    def _is_last(self, plan: FilePlan, statement: Node, block: Node) -> bool:
        """Whether all other statements of a block are removed."""
        others = (each for each in statements(block) if each != statement)
        return all(plan.is_removed(each.start_byte, each.end_byte) for each in others)

    def _refuse(self, plan: FilePlan, ref: Reference, why: str) -> None:
        if self.uses.is_loose_test_file(plan.path):
            return
        line = plan.source.count(b"\n", 0, ref.start) + 1
        is_test = self.codebase.is_test(plan.path)
        raise DeletionRefused(
            f"{plan.path}:{line}: `{ref.chain}` {why}",
            reason="test_import_time_reference" if is_test else "import_time_reference",
        )


def _statement_around(node: Node) -> Node:
    """The statement of a block that a node is, or is a part of."""
    while node.parent is not None and node.parent.type != "block":
        node = node.parent
    return node


def _drop_operand(plan: FilePlan, operand: Node, total: Node) -> None:
    left, right = total.child_by_field_name("left"), total.child_by_field_name("right")
    if left == operand and right is not None:
        plan.replacements.append(Edit(operand.start_byte, right.start_byte))
    elif left is not None:
        plan.replacements.append(Edit(left.end_byte, operand.end_byte))


def _begins_with(row: Node, ref: Reference) -> bool:
    """Whether a name is the first element of a row, or in it."""
    first = next(iter(row.named_children), None)
    return first is not None and first.start_byte <= ref.start and ref.end <= first.end_byte


def _enclosing_decorated(node: Node) -> Node | None:
    parent = node.parent
    while parent is not None and parent.type not in {"block", "module"}:
        if parent.type == "decorator":
            return parent.parent
        parent = parent.parent
    return None


def without_numbers(qualname: str) -> str:
    """A dotted name without the numbers of definitions that share their names."""
    return ".".join(part.partition("#")[0] for part in qualname.split("."))
