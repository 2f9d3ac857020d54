"""The walk over a syntax tree: its state, references, names that are bound, imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import field
from excise.extractors.python.analysis.parsed_file import SUPER, Binding, Export, Import, Place
from excise.extractors.python.analysis.scopes import Pending, Scope
from excise.extractors.python.analysis.symbols import CodeLines
from excise.types import Symbol

_DECISIONS = frozenset(
    {
        "if_statement", "elif_clause", "for_statement", "while_statement", "except_clause", "case_clause",
        "conditional_expression", "boolean_operator", "for_in_clause", "if_clause",
    }
)  # fmt: skip


class Walker:
    """Visits nodes without recursion through expressions; ``handlers`` say what a node type means.

    ``owner``, ``klass``, ``place`` … describe where the walk is; :meth:`_inside` changes them for a while.
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
        self.place = Place.IMPORT
        self.in_try = False
        self.in_function = False
        self.scope = Scope("module")
        self.taken: dict[str, int] = {}
        self.handlers: dict[str, Callable[[Node], object]] = {}

    def visit(self, node: Node) -> None:
        """Walk below one node."""
        self.visit_all((node,))

    def visit_all(self, nodes: Iterable[Node]) -> None:
        """Walk below nodes, in order."""
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
    def _inside(self, scope: Scope | None = None, **state: object) -> Iterator[None]:
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
    def _refer(self, root: str, rest: str, start: int, end: int, *, is_base: bool = False) -> None:
        self.scope.pending.append(Pending(root, rest, start, end, self.owner, self.klass, self.place, is_base, -1))

    def _name(self, node: Node) -> None:
        self._refer(self._text(node), "", node.start_byte, node.end_byte)

    def _attribute(self, node: Node) -> None:
        end = node.end_byte
        parts: list[str] = []
        while node.type == "attribute" and node.child_count:
            children = node.children
            parts.append(self._text(children[-1]))
            node = children[0]
        rest = ".".join(reversed(parts))
        if node.type == "identifier":
            self._refer(self._text(node), rest, node.start_byte, end)
        elif _is_super(node, self.source):
            self._refer(SUPER, rest, node.start_byte, end)
            self._refer("super", "", node.start_byte, node.start_byte + len("super"))
        else:
            self._refer("", rest, node.end_byte, end)
            self.visit(node)

    # ------------------------------------------------------------------------------- bindings
    def _bind(self, name: str, into: Scope | None = None) -> None:
        (into or self.scope).bound.add(name)

    def _record(self, name: str, node: Node, target: str = "") -> None:
        if not self.in_function and self.scope.kind != "comprehension":
            self.bindings.append(Binding(name, self.klass, target, node.start_byte, node.end_byte))

    def _bind_targets(self, target: Node, into: Scope | None = None, statement: Node | None = None) -> None:
        kind = target.type
        if kind == "identifier":
            name = self._text(target)
            self._bind(name, into)
            if into is None:
                self._record(name, statement or target)
        elif kind in {"attribute", "subscript", "call"}:
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
        record = Import(*what, *spans, self.owner, self.place, self.in_try)
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
