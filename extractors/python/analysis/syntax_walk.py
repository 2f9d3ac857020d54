"""The walk over a syntax tree: lexical scopes, references, bindings and imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import field
from excise.extractors.python.analysis.parsed_file import SELF, SUPER, Binding, Export, Import, Phase, Reference
from excise.extractors.python.analysis.symbols import CodeLines
from excise.types import Symbol

_DECISIONS = frozenset(
    {
        "if_statement", "elif_clause", "for_statement", "while_statement", "except_clause", "case_clause",
        "conditional_expression", "boolean_operator", "for_in_clause", "if_clause",
    }
)  # fmt: skip


class PendingReference(NamedTuple):
    """A reference that may still be local to an enclosing scope; fields as in :class:`Reference`."""

    root: str
    rest: str
    start: int
    end: int
    owner: str
    klass: str
    phase: Phase
    is_base: bool
    via: int
    is_assigned: bool

    def to_reference(self) -> Reference:
        """The record of the reference, once its scopes are closed."""
        chain = f"{self.root}.{self.rest}" if self.rest else self.root
        place = self.start, self.end, self.owner, self.klass
        return Reference(chain, *place, self.phase, self.is_base, self.via, self.is_assigned)


@dataclass(slots=True)
class Scope:
    """One lexical scope: the module, a class, a function, a lambda or a comprehension."""

    kind: str
    """``module``, ``class``, ``function`` (also for lambdas) or ``comprehension``."""
    bound: set[str] = dataclass_field(default_factory=set)
    """Names that the scope binds."""
    imports: dict[str, int] = dataclass_field(default_factory=dict)
    """Names that an import in this scope binds, to the index of the import."""
    outer: set[str] = dataclass_field(default_factory=set)
    """Names that the scope declares ``global`` or ``nonlocal``."""
    pending: list[PendingReference] = dataclass_field(default_factory=list)
    """References of this scope and its inner scopes that no inner scope binds."""
    self_name: str = ""
    """Name of a method's first parameter."""
    is_generator: bool = False
    """Whether the scope has a ``yield`` of its own."""

    def close(self, parent: Scope) -> None:
        """Pass the references that are not local to this scope on to the enclosing scope ``parent``."""
        keep = parent.pending.append
        for ref in self.pending:
            root = ref.root
            if root in self.outer or root not in self.bound:
                keep(ref)
            elif root in self.imports:
                keep(ref._replace(root=f"\0{root}", via=self.imports[root]))
            elif ref.rest and root == self.self_name:
                keep(ref._replace(root=SELF))
            elif ref.rest:
                keep(ref._replace(root=""))


class SyntaxWalker:
    """Visits the nodes of a syntax tree, without recursion through expressions, and collects records.

    ``handlers`` maps node types to methods. ``owner``, ``klass``, ``phase`` and others describe the position of the
    walk; :meth:`_state` changes them for the duration of a block.
    """

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.lines = CodeLines(source)
        self.symbols: list[Symbol] = []
        self.imports: list[Import] = []
        self.bindings: list[Binding] = []
        self.exports: list[Export] = []
        self.one_liners: set[str] = set()
        self.has_all = False
        self.future_annotations = False
        self.decisions = 0
        self.owner = ""
        self.klass = ""
        self.phase = Phase.IMPORT
        self.in_try = False
        self.in_function = False
        self.scope = Scope("module")
        self.name_counts: dict[str, int] = {}
        self.handlers: dict[str, Callable[[Node], object]] = {}

    def visit(self, node: Node) -> None:
        """Visit a node and everything below it."""
        self.visit_all((node,))

    def visit_all(self, nodes: Iterable[Node]) -> None:
        """Visit nodes and everything below them, in order."""
        stack = list(nodes)
        stack.reverse()
        handlers = self.handlers
        while stack:
            node = stack.pop()
            kind = node.type
            if kind in _DECISIONS:
                self.decisions += 1
            handler = handlers.get(kind)
            if handler is not None:
                handler(node)
            elif node.named_child_count:
                stack.extend(reversed(node.named_children))

    @contextmanager
    def _state(self, scope: Scope | None = None, **state: object) -> Iterator[None]:
        before = {name: getattr(self, name) for name in state}
        for name, value in state.items():
            setattr(self, name, value)
        outer = self.scope
        self.scope = scope or outer
        try:
            yield
        finally:
            self.scope = outer
            for name, value in before.items():
                setattr(self, name, value)
            if scope is not None:
                scope.close(outer)

    def _text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    # ----------------------------------------------------------------------------- references
    def _refer(
        self, root: str, rest: str, start: int, end: int, *, is_base: bool = False, is_assigned: bool = False
    ) -> None:
        place = start, end, self.owner, self.klass
        self.scope.pending.append(PendingReference(root, rest, *place, self.phase, is_base, -1, is_assigned))

    def _name(self, node: Node) -> None:
        self._refer(self._text(node), "", node.start_byte, node.end_byte)

    def _attribute(self, node: Node, *, is_assigned: bool = False) -> None:
        end = node.end_byte
        parts: list[str] = []
        while node.type == "attribute" and node.child_count:
            children = node.children
            parts.append(self._text(children[-1]))
            node = children[0]
        rest = ".".join(reversed(parts))
        if node.type == "identifier":
            self._refer(self._text(node), rest, node.start_byte, end, is_assigned=is_assigned)
        elif _is_super(node, self.source):
            self._refer(SUPER, rest, node.start_byte, end, is_assigned=is_assigned)
            self._refer("super", "", node.start_byte, node.start_byte + len("super"))
        else:
            self._refer("", rest, node.end_byte, end, is_assigned=is_assigned)
            self.visit(node)

    def _delete(self, node: Node) -> None:
        """Visit what a ``del`` statement deletes."""
        for child in node.named_children:
            if child.type == "expression_list":
                self._delete(child)
            elif child.type == "attribute":
                self._attribute(child, is_assigned=True)
            else:
                self.visit(child)

    # ------------------------------------------------------------------------------- bindings
    def _bind(self, name: str, into: Scope | None = None) -> None:
        (into or self.scope).bound.add(name)

    def _add_binding(self, name: str, node: Node, target: str = "") -> None:
        if not self.in_function and self.scope.kind != "comprehension":
            self.bindings.append(Binding(name, self.klass, target, node.start_byte, node.end_byte))

    def _bind_targets(self, target: Node, into: Scope | None = None, statement: Node | None = None) -> None:
        kind = target.type
        if kind == "identifier":
            name = self._text(target)
            self._bind(name, into)
            if into is None:
                self._add_binding(name, statement or target)
        elif kind == "attribute":
            self._attribute(target, is_assigned=True)
        elif kind in {"subscript", "call"}:
            self.visit(target)
        else:
            for child in target.named_children:
                self._bind_targets(child, into, statement)

    # -------------------------------------------------------------------------------- imports
    def _future(self, node: Node) -> None:
        self.future_annotations = self.future_annotations or "annotations" in self._text(node)
        self._import(node)

    def _import(self, node: Node) -> None:
        source = node.child_by_field_name("module_name")
        spelled = "".join(self._text(source).split()) if source is not None else ""
        if node.type == "future_import_statement":
            spelled = "__future__"
        module = spelled.lstrip(".")
        level = len(spelled) - len(module)
        for clause in node.children_by_field_name("name"):
            target, alias = clause, ""
            if clause.type == "aliased_import":
                target, alias = field(clause, "name"), self._text(field(clause, "alias"))
            dotted = "".join(self._text(target).split())
            if node.type == "import_statement":
                self._add_import(node, clause, (dotted, 0, "", alias))
            else:
                self._add_import(node, clause, (module, level, dotted, alias))
        for clause in node.named_children:
            if clause.type == "wildcard_import":
                self._add_import(node, clause, (module, level, "*", ""))

    def _add_import(self, node: Node, clause: Node, what: tuple[str, int, str, str]) -> None:
        spans = (clause.start_byte, clause.end_byte, node.start_byte, node.end_byte)
        record = Import(*what, *spans, self.owner, self.phase, self.in_try)
        if record.bound:
            self._bind(record.bound)
            if self.in_function:
                self.scope.imports[record.bound] = len(self.imports)
        self.imports.append(record)


def _is_super(node: Node, source: bytes) -> bool:
    if node.type != "call":
        return False
    function = node.child_by_field_name("function")
    return function is not None and source[function.start_byte : function.end_byte] == b"super"
