"""Parse one Python file with tree-sitter: definitions, imports, ``__all__`` and references.

Accepts any bytes: for Python 2 code, other encodings and syntax errors, the module has ``has_error`` set.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import chain_of, field, parse_tree
from excise.extractors.python.analysis.parsed_file import Export, Phase, PythonModule
from excise.extractors.python.analysis.symbols import DefinitionFacts, definition_symbol, module_symbol
from excise.extractors.python.analysis.syntax_walk import Scope, SyntaxWalker
from excise.types import SymbolKind

_TYPE_CHECKING = re.compile(rb"^\(?\s*([\w.]+\.)?TYPE_CHECKING\s*\)?$")
_MAIN = re.compile(rb"^\(?\s*(__name__\s*==\s*u?(['\"])__main__\2|u?(['\"])__main__\3\s*==\s*__name__)\s*\)?$")
_LONE_CR = re.compile(rb"\r(?!\n)")
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)


def parse_module(path: str, source: bytes) -> PythonModule:
    """Parse the bytes of a file. Never raises: a file with syntax errors gives a module with ``has_error`` set."""
    return _Parser(path, source).run()


@lru_cache(maxsize=64)
def parse_text(source: bytes) -> PythonModule:
    """Like :func:`parse_module` for a file whose path does not matter; what it gives is shared."""
    return parse_module("", source)


class _Parser(SyntaxWalker):
    def __init__(self, path: str, source: bytes) -> None:
        super().__init__(path, source)
        self.handlers = {
            "identifier": self._name,
            "attribute": self._attribute,
            "delete_statement": self._delete,
            "decorated_definition": self._definition,
            "function_definition": self._definition,
            "class_definition": self._definition,
            "lambda": self._lambda,
            **dict.fromkeys(_COMPREHENSIONS, self._comprehension),
            "import_statement": self._import,
            "import_from_statement": self._import,
            "future_import_statement": self._future,
            "assignment": self._assignment,
            "augmented_assignment": self._assignment,
            "named_expression": self._walrus,
            "for_statement": self._for,
            "as_pattern": self._as_pattern,
            "keyword_argument": lambda n: self.visit(field(n, "value")),
            "global_statement": self._global,
            "nonlocal_statement": self._global,
            "type": self._annotation,
            "type_alias_statement": self._type_alias,
            "try_statement": self._try,
            "if_statement": self._if,
            "case_pattern": self._case_pattern,
            "call": self._call,
            "yield": self._yield,
        }

    # ---------------------------------------------------------------------------------- module
    def run(self) -> PythonModule:
        root = parse_tree(self.source).root_node
        self.visit_all(root.children)
        module = module_symbol(root, self.source, self.lines, path=self.path, decisions=self.decisions)
        self.symbols.sort(key=lambda s: (s.start, -s.end))
        refs = (p._replace(root=p.root.lstrip("\0")).to_reference() for p in self.scope.pending)
        return PythonModule(
            path=self.path,
            source=self.source,
            symbols=(module, *self.symbols),
            has_error=root.has_error or _LONE_CR.search(self.source) is not None or b"\0" in self.source,
            imports=tuple(self.imports),
            references=tuple(sorted(refs, key=lambda r: (r.start, r.end))),
            bindings=tuple(self.bindings),
            exports=tuple(self.exports),
            has_all=self.has_all,
            one_liners=frozenset(self.one_liners),
        )

    def _call(self, node: Node) -> None:
        if not self.in_function and self.source.startswith(b"__all__.", node.start_byte):
            self.has_all = True
            self._export_entries(field(node, "arguments"))
        self.visit_all(node.named_children)

    # ---------------------------------------------------------------------------- definitions
    def _definition(self, node: Node) -> None:
        inner = node
        if node.type == "decorated_definition":
            inner = field(node, "definition")
        if inner is node and node.type == "decorated_definition":
            self.visit_all(node.named_children)
            return
        name = self._text(field(inner, "name"))
        self._bind(name)
        is_class = inner.type == "class_definition"
        if self.in_function:
            self._nested(node, inner, is_class)
        else:
            self._symbol(node, inner, name, is_class)

    def _symbol(self, node: Node, inner: Node, name: str, is_class: bool) -> None:
        qualname = self._unique(f"{self.klass}.{name}" if self.klass else name)
        before = self.decisions
        with self._state(owner=qualname):
            self._visit_header(node, inner)
            scope = self._body(inner, is_class, qualname)
        kind = SymbolKind.CLASS if is_class else SymbolKind.METHOD if self.klass else SymbolKind.FUNCTION
        facts = DefinitionFacts(
            path=self.path,
            qualname=qualname,
            kind=kind,
            decisions=self.decisions - before,
            is_generator=scope.is_generator,
        )
        symbol = definition_symbol(node, self.source, self.lines, facts)
        if not is_class and symbol.body_line == inner.start_point[0] + 1:
            self.one_liners.add(symbol.symbol_id)
        self.symbols.append(symbol)

    def _nested(self, node: Node, inner: Node, is_class: bool) -> None:
        self._visit_header(node, inner)
        self._body(inner, is_class, "")

    def _unique(self, qualname: str) -> str:
        self.name_counts[qualname] = count = self.name_counts.get(qualname, 0) + 1
        return qualname if count == 1 else f"{qualname}#{count}"

    def _visit_header(self, node: Node, inner: Node) -> None:
        """Visit decorators, defaults, annotations and bases, which are evaluated outside the new scope."""
        if node is not inner:
            self.visit_all(c for c in node.named_children if c.type == "decorator")
        if inner.type == "class_definition":
            self._bases(inner.child_by_field_name("superclasses"))
            return
        for parameter in field(inner, "parameters").named_children:
            if parameter.type not in {"identifier", "tuple_pattern"}:
                for name in ("type", "value"):
                    part = parameter.child_by_field_name(name)
                    if part is not None:
                        self.visit(part)
        returns = inner.child_by_field_name("return_type")
        if returns is not None:
            self.visit(returns)

    def _bases(self, bases: Node | None) -> None:
        for base in bases.named_children if bases is not None else ():
            chain = chain_of(base, self.source)
            if chain:
                root, _, rest = chain.partition(".")
                self._refer(root, rest, base.start_byte, base.end_byte, is_base=True)
            else:
                self.visit(base)

    def _body(self, inner: Node, is_class: bool, qualname: str) -> Scope:
        scope = Scope("class" if is_class else "function")
        for parameter in inner.named_children:
            if parameter.type == "type_parameter":
                scope.bound.update(self._leading_names(parameter))
        body = inner.child_by_field_name("body")
        if is_class:
            klass = qualname if not self.in_function else ""
            with self._state(scope, klass=klass):
                self._class_body(body, scope)
            return scope
        names = self._parameter_names(field(inner, "parameters"))
        scope.bound.update(names)
        if self.scope.kind == "class" and names:
            scope.self_name = names[0]
        phase = self.phase if self.phase in {Phase.MAIN, Phase.TYPING} else Phase.LAZY
        with self._state(scope, klass="", in_function=True, in_try=False, phase=phase):
            self.visit_all(body.children if body is not None else ())
        return scope

    def _class_body(self, body: Node | None, scope: Scope) -> None:
        """Visit the body of a class, whose names are not visible from its methods: they stay out of ``bound``."""
        self.visit_all(body.children if body is not None else ())
        if not self.in_function:
            scope.bound.clear()

    def _leading_names(self, node: Node) -> list[str]:
        names: list[str] = []
        for child in node.named_children:
            first = child
            while first.type != "identifier" and first.named_child_count:
                first = first.named_children[0]
            names.append(self._text(first))
        return names

    def _parameter_names(self, parameters: Node) -> list[str]:
        names: list[str] = []
        for child in parameters.named_children:
            if child.type == "identifier":
                names.append(self._text(child))
            elif child.type in {"tuple_pattern", "list_splat_pattern", "dictionary_splat_pattern"}:
                names.extend(self._text(n) for n in _identifiers(child))
            elif child.type.endswith("parameter"):
                name = child.child_by_field_name("name") or child.named_children[0]
                names.extend(self._text(n) for n in _identifiers(name))
        return names

    def _lambda(self, node: Node) -> None:
        parameters = node.child_by_field_name("parameters")
        scope = Scope("function")
        if parameters is not None:
            for parameter in parameters.named_children:
                value = parameter.child_by_field_name("value")
                if value is not None:
                    self.visit(value)
            scope.bound.update(self._parameter_names(parameters))
        phase = Phase.LAZY if self.phase is Phase.IMPORT else self.phase
        with self._state(scope, phase=phase):
            self.visit(field(node, "body"))

    def _comprehension(self, node: Node) -> None:
        scope = Scope("comprehension")
        with self._state(scope):
            for child in node.named_children:
                if child.type == "for_in_clause":
                    self.decisions += 1
                    self._bind_targets(field(child, "left"), into=scope)
                    self.visit_all(child.children_by_field_name("right"))
                else:
                    self.visit(child)
        if scope.is_generator:
            self.scope.is_generator = True

    def _yield(self, node: Node) -> None:
        self.scope.is_generator = True
        self.visit_all(node.named_children)

    def _assignment(self, node: Node) -> None:
        left, right = field(node, "left"), node.child_by_field_name("right")
        annotation = node.child_by_field_name("type")
        if left.type == "identifier" and self._text(left) == "__all__" and not self.in_function:
            self.has_all = True
            if right is not None:
                self._export_entries(right)
        if left.type == "identifier" and (right is not None or annotation is not None):
            name = self._text(left)
            self._bind(name)
            self._add_binding(name, node, chain_of(right, self.source) if right is not None else "")
            if node.type == "augmented_assignment":
                self._name(left)
        else:
            self._bind_targets(left, statement=node)
        if annotation is not None:
            self.visit(annotation)
        if right is not None:
            self.visit(right)

    def _export_entries(self, node: Node) -> None:
        for child in [node] if node.type == "string" else _strings(node):
            value = self._text(child).strip("uUrRbB")
            self.exports.append(Export(value.strip("\"'"), child.start_byte, child.end_byte))

    def _walrus(self, node: Node) -> None:
        self._bind(self._text(field(node, "name")))
        if self.scope.kind == "module":
            self._add_binding(self._text(field(node, "name")), node)
        self.visit(field(node, "value"))

    def _for(self, node: Node) -> None:
        self._bind_targets(field(node, "left"), statement=node)
        left = node.child_by_field_name("left")
        self.visit_all(c for c in node.named_children if c != left)

    def _as_pattern(self, node: Node) -> None:
        for child in node.named_children[:-1]:
            self.visit(child)
        last = node.named_children[-1] if node.named_children else node
        if last is not node:
            self._bind_targets(last, statement=node)

    def _case_pattern(self, node: Node) -> None:
        queue = [node]
        while queue:
            current = queue.pop()
            names = current.named_children if current.type in {"dotted_name", "splat_pattern"} else []
            in_class = current.parent is not None and current.parent.type == "class_pattern"
            if current.type == "dotted_name" and (len(names) > 1 or in_class):
                root, _, rest = self._text(current).partition(".")
                self._refer(root, rest, current.start_byte, current.end_byte)
            elif names:
                self._bind_targets(names[0])
            elif current.type == "identifier":
                self._bind_targets(current)
            elif current.type == "keyword_pattern":
                queue.extend(current.named_children[1:])
            else:
                queue.extend(current.named_children)

    def _global(self, node: Node) -> None:
        self.scope.outer.update(self._text(c) for c in node.named_children)

    # ------------------------------------------------------------------- code that runs at other times
    def _annotation(self, node: Node) -> None:
        lazy = self.future_annotations and self.phase is Phase.IMPORT
        with self._state(phase=Phase.LAZY if lazy else self.phase):
            self.visit_all(node.named_children)

    def _type_alias(self, node: Node) -> None:
        names = node.named_children
        if names:
            for name in self._leading_names(node)[:1]:
                self._bind(name)
                self._add_binding(name, node)
            with self._state(phase=Phase.LAZY):
                self.visit_all(names[1:])

    def _try(self, node: Node) -> None:
        with self._state(in_try=True):
            self.visit_all(node.named_children)

    def _if(self, node: Node) -> None:
        phase = self.phase if self.in_function else self._phase_under(field(node, "condition"))
        if phase is self.phase:
            self.visit_all(node.named_children)
            return
        consequence = node.child_by_field_name("consequence")
        for child in node.named_children:
            with self._state(phase=phase if child == consequence else self.phase):
                self.visit(child)

    def _phase_under(self, condition: Node) -> Phase:
        raw = self.source[condition.start_byte : condition.end_byte]
        if self.phase is Phase.IMPORT and _MAIN.match(raw):
            return Phase.MAIN
        if self.phase is Phase.IMPORT and _TYPE_CHECKING.match(raw):
            return Phase.TYPING
        return self.phase


def _identifiers(node: Node) -> list[Node]:
    if node.type == "identifier":
        return [node]
    return [found for child in node.named_children for found in _identifiers(child)]


def _strings(node: Node) -> list[Node]:
    """String elements of a list, a tuple, or a sum of them."""
    found: list[Node] = []
    for child in node.named_children:
        if child.type == "string":
            found.append(child)
        elif child.type in {"list", "tuple", "set", "binary_operator", "parenthesized_expression"}:
            found.extend(_strings(child))
    return found
