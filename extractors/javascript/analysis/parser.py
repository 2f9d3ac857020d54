"""Parse one JavaScript file with tree-sitter: definitions with their documentation, and what :mod:`name_uses` finds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath

from tree_sitter import Node

from excise.extractors.javascript.analysis.comments import comments_before, doc_comment
from excise.extractors.javascript.analysis.grammar import (
    CLASSES,
    DECLARED,
    FUNCTIONS,
    VARIABLES,
    chain_of,
    children,
    descendants,
    parse_tree,
    text,
    unwrapped,
)
from excise.extractors.javascript.analysis.module_functions import module_functions, module_statements
from excise.extractors.javascript.analysis.name_uses import find_uses
from excise.extractors.javascript.analysis.parsed_file import FunctionSpan, JavaScriptModule
from excise.types import Symbol, SymbolKind

_DECISIONS = frozenset(
    {"if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement", "switch_case",
     "catch_clause", "ternary_expression"}
)  # fmt: skip
_SHORT_CIRCUITS = frozenset({"&&", "||", "??"})
_SIGNATURES = frozenset({"function_signature", "method_signature"})
_ON_EXPORT = re.compile(r"(?:module |public )?(?:exports?|expose[sd]?)\b|(?s:.*?)@(?:typedef|module)\b", re.IGNORECASE)
"""JSDoc above an export that says nothing of a function."""
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


def parse_module(path: str, source: bytes) -> JavaScriptModule:
    """Parse the bytes of a file. Never raises: a file with syntax errors gives a module with ``has_error`` set."""
    return _Parser(path, source).run()


@dataclass(slots=True)
class _Definition:
    """A definition: the node of the function or class, and the nodes around it."""

    qualname: str
    kind: SymbolKind
    node: Node
    """The function or class."""
    outer: Node
    """What is deleted with it: its statement, or its element of a list."""
    is_element: bool
    prefix: str = ""
    """Words before the name in its signature, such as ``static``."""
    overloads: tuple[Node, ...] = ()
    """The statements with signatures of overloads before it."""


class _Parser:
    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.found: dict[str, _Definition] = {}
        self.on_exports: dict[str, str] = {}
        """Name of a definition to the documentation above what exports it: ``exports.x = x``."""
        stripped = (line.strip() for line in source.split(b"\n"))
        self.code_lines = [0, *accumulate(int(bool(s) and not s.startswith((b"//", b"*", b"/*"))) for s in stripped)]
        self.line_starts = [0, *(i + 1 for i, byte in enumerate(source) if byte == 10)]

    def run(self) -> JavaScriptModule:
        root = parse_tree(self.source).root_node
        wrappers = module_functions(root)
        for statement in module_statements(root, wrappers):
            self._statement(statement)
        owners = {(d.node.start_byte, d.node.end_byte): name for name, d in self.found.items()}
        uses = find_uses(root, self.source, owners, frozenset((f.start_byte, f.end_byte) for f in wrappers))
        symbols = [self._symbol(definition) for definition in self.found.values()]
        symbols.sort(key=lambda s: (s.start, -s.end))
        functions = {n: s for n, d in self.found.items() if (s := _function_span(d)) is not None}
        return JavaScriptModule(
            path=self.path,
            source=self.source,
            symbols=(self._module_symbol(root), *symbols),
            has_error=root.has_error or b"\0" in self.source,
            imports=uses.imports,
            exports=uses.exports,
            references=uses.references,
            functions=functions,
            statements={n: (d.outer.start_byte, d.outer.end_byte) for n, d in self.found.items()},
            elements=frozenset(n for n, d in self.found.items() if d.is_element),
            overloads={
                n: tuple((each.start_byte, each.end_byte) for each in d.overloads)
                for n, d in self.found.items()
                if d.overloads
            },
            is_esm=uses.is_esm,
        )

    # ---------------------------------------------------------------------------- definitions
    def _statement(self, outer: Node) -> None:
        node = outer
        if outer.type == "export_statement":
            node = outer.child_by_field_name("declaration") or outer.child_by_field_name("value") or outer
        if node.type in DECLARED | CLASSES | {"function_expression", "arrow_function"}:
            named = node.child_by_field_name("name")
            prefix = "export default " if any(child.type == "default" for child in outer.children) else ""
            self._define(text(named, self.source) if named else self._stem(), node, outer, prefix=prefix)
        elif node.type in VARIABLES:
            declarators = [child for child in children(node) if child.type == "variable_declarator"]
            for declarator in declarators:
                self._declarator(declarator, outer if len(declarators) == 1 else declarator, len(declarators) > 1)
        elif node.type == "expression_statement" and children(node):
            self._assignment(children(node)[0], outer)
        elif node.type == "return_statement" and children(node):  # of a function that holds the code of the module
            value = unwrapped(children(node)[0])
            if value.type == "object":
                self._object("", value)
            elif value.type in FUNCTIONS | CLASSES:
                named = value.child_by_field_name("name")
                self._define(text(named, self.source) if named else self._stem(), value, outer, prefix="return ")

    def _declarator(self, declarator: Node, outer: Node, is_element: bool) -> None:
        name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
        if name is None or value is None or name.type != "identifier":
            return
        value = unwrapped(value)
        if value.type in FUNCTIONS | CLASSES:
            self._define(text(name, self.source), value, outer, is_element=is_element)
        elif value.type == "object":
            self._object(text(name, self.source), value)

    def _assignment(self, node: Node, outer: Node) -> None:
        if node.type != "assignment_expression":
            return
        targets: list[tuple[str, ...]] = []
        value = node
        while value.type == "assignment_expression":
            left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
            if left is None or right is None:
                return
            targets.append(chain_of(left, self.source))
            value = unwrapped(right)
        target = next((_exported_name(chain) for chain in targets if _exported_name(chain) is not None), None)
        chain = targets[0]
        if value.type in FUNCTIONS | CLASSES:
            named = value.child_by_field_name("name")
            own = text(named, self.source) if named else ""
            if target is not None:
                self._define(target or own or self._stem(), value, outer, prefix="" if target else "module.exports = ")
            elif len(chain) == 3 and chain[1] == "prototype":
                self._define(f"{chain[0]}.{chain[2]}", value, outer, kind=SymbolKind.METHOD)
            elif len(chain) == 2 and chain[0] != "this":
                self._define(f"{chain[0]}.{chain[1]}", value, outer, kind=SymbolKind.METHOD)
        elif value.type == "identifier" and target:
            self._note_export(value, outer)
        elif value.type == "object" and target is not None:
            self._object(target, value)
        elif value.type == "object" and len(chain) == 2 and chain[1] == "prototype":
            self._object(chain[0], value)

    def _object(self, owner: str, node: Node) -> None:
        """The functions in an object; those of ``module.exports = {…}`` (no ``owner``) are functions of the module."""
        kind = SymbolKind.METHOD if owner else SymbolKind.FUNCTION
        for child in children(node):
            if not owner and child.type == "shorthand_property_identifier":
                self._note_export(child, child)
            key = child.child_by_field_name("key" if child.type == "pair" else "name")
            value = child.child_by_field_name("value") if child.type == "pair" else child
            if key is None or value is None or not _IDENTIFIER.fullmatch(text(key, self.source)):
                continue
            value = unwrapped(value)
            if not owner and value.type == "identifier":
                self._note_export(value, child)
            if value.type in FUNCTIONS:
                name = text(key, self.source)
                self._define(f"{owner}.{name}" if owner else name, value, child, is_element=True, kind=kind)

    def _note_export(self, value: Node, outer: Node) -> None:
        """Note what JSDoc above an export of a definition by its name says."""
        comments = comments_before(outer, self.source)
        said = doc_comment(outer, self.source)
        if any(text(each, self.source).startswith("/**") for each in comments) and not _ON_EXPORT.match(said):
            self.on_exports.setdefault(text(value, self.source), said)

    def _define(
        self,
        name: str,
        node: Node,
        outer: Node,
        *,
        is_element: bool = False,
        kind: SymbolKind | None = None,
        prefix: str = "",
    ) -> None:
        if not all(map(_IDENTIFIER.fullmatch, name.split("."))):
            return
        is_class = node.type in CLASSES
        kind = SymbolKind.CLASS if is_class else kind or SymbolKind.FUNCTION
        if node.type == "method_definition":
            words = (text(c, self.source) for c in node.children if c.type in {"static", "get", "set"})
            prefix = "".join(f"{word} " for word in words)
        qualname = self._unique(name)
        overloads = () if is_element or is_class else self._overloads(node, outer)
        self.found[qualname] = _Definition(qualname, kind, node, outer, is_element, prefix, overloads)
        body = node.child_by_field_name("body")
        if body is None:
            return
        if is_class:
            self._members(qualname, body)
        elif kind is SymbolKind.FUNCTION and "." not in qualname and body.type == "statement_block":
            for statement in children(body):
                inner = statement.child_by_field_name("name") if statement.type in DECLARED else None
                if inner is not None:
                    self._define(f"{qualname}.{text(inner, self.source)}", statement, statement)

    def _members(self, owner: str, body: Node) -> None:
        for member in children(body):
            name = member.child_by_field_name("name") or member.child_by_field_name("property")
            if name is None or name.type != "property_identifier":
                continue
            value = member if member.type == "method_definition" else member.child_by_field_name("value")
            if value is not None and value.type in FUNCTIONS:
                self._define(f"{owner}.{text(name, self.source)}", value, member, kind=SymbolKind.METHOD)

    def _overloads(self, node: Node, outer: Node) -> tuple[Node, ...]:
        """The signatures of the same name directly before a function or method."""
        named = node.child_by_field_name("name")
        found: list[Node] = []
        above = outer.prev_named_sibling
        while named is not None and above is not None:
            signature = above
            if above.type == "export_statement":
                signature = above.child_by_field_name("declaration") or above
            own = signature.child_by_field_name("name") if signature.type in _SIGNATURES else None
            if above.type != "comment" and (own is None or text(own, self.source) != text(named, self.source)):
                break
            if own is not None:
                found.append(above)
            above = above.prev_named_sibling
        return tuple(reversed(found))

    def _unique(self, name: str) -> str:
        number, unique = 1, name
        while unique in self.found:
            number += 1
            unique = f"{name}#{number}"
        return unique

    def _stem(self) -> str:
        """A name for what a file exports as a whole without naming it: that of the file."""
        path = PurePosixPath(self.path)
        stem = path.name.partition(".")[0]
        if stem == "index" and path.parent.name:
            stem = path.parent.name
        words = re.findall(r"[A-Za-z0-9_$]+", stem)
        name = "".join(word if n == 0 else word[:1].upper() + word[1:] for n, word in enumerate(words))
        return name if _IDENTIFIER.fullmatch(name) else "exported"

    # -------------------------------------------------------------------------------- records
    def _symbol(self, definition: _Definition) -> Symbol:
        node, outer = definition.node, definition.outer
        body = node.child_by_field_name("body")
        first = _first_of_body(body)
        end = outer.end_byte
        start_line, end_line = self._line(outer.start_byte), self._line(max(outer.start_byte, end - 1))
        code_start = first.start_byte if first is not None else end
        own = list(_own_nodes(node))
        return Symbol(
            path=self.path,
            qualname=definition.qualname,
            kind=definition.kind,
            start=outer.start_byte,
            end=end,
            body_start=code_start,
            code_start=code_start,
            start_line=start_line,
            end_line=end_line,
            body_line=self._line(first.start_byte) if first is not None else 0,
            signature="; ".join((*self._heads(definition), self._signature(definition))),
            docstring=next(
                (found for each in (outer, *definition.overloads) if (found := doc_comment(each, self.source))),
                self.on_exports.get(definition.qualname, ""),
            ),
            is_public=not any(part.startswith(("_", "#")) for part in definition.qualname.split(".")),
            is_async=any(child.type == "async" for child in node.children),
            is_generator="generator" in node.type or any(child.type == "*" for child in node.children),
            loc=self._count(start_line, end_line),
            complexity=1 + sum(map(_is_decision, own)),
        )

    def _heads(self, definition: _Definition) -> list[str]:
        """The signatures of overloads, each on one line."""
        found = (" ".join(text(each, self.source).split()).rstrip(";") for each in definition.overloads)
        return [each.removeprefix("export ") for each in found]

    def _signature(self, definition: _Definition) -> str:
        node, name = definition.node, definition.qualname.rpartition(".")[2].partition("#")[0]
        if definition.kind is SymbolKind.CLASS:
            heritage = next((text(c, self.source) for c in node.children if c.type == "class_heritage"), "")
            return definition.prefix + " ".join(f"class {name} {heritage}".split())
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        listed = " ".join(text(parameters, self.source).split()) if parameters is not None else "()"
        listed = listed if listed.startswith("(") else f"({listed})"
        listed = listed.replace("( ", "(").replace(" )", ")")
        generic, result = node.child_by_field_name("type_parameters"), node.child_by_field_name("return_type")
        if generic is not None:
            listed = " ".join(text(generic, self.source).split()) + listed
        if result is not None:
            listed += " ".join(text(result, self.source).split())
        word = "async " if any(child.type == "async" for child in node.children) else ""
        star = "*" if "generator" in node.type or any(child.type == "*" for child in node.children) else ""
        if definition.kind is SymbolKind.METHOD:
            return f"{definition.prefix}{word}{star}{name}{listed}"
        return f"{definition.prefix}{word}function{star} {name}{listed}"

    def _module_symbol(self, root: Node) -> Symbol:
        last = self._line(max(0, len(self.source) - 1))
        first = next(iter(children(root)), None)
        start = first.start_byte if first is not None else len(self.source)
        return Symbol(
            path=self.path,
            qualname="",
            kind=SymbolKind.MODULE,
            start=0,
            end=len(self.source),
            body_start=start,
            code_start=start,
            start_line=1,
            end_line=last,
            body_line=self._line(start),
            loc=self._count(1, last),
            complexity=1 + sum(map(_is_decision, descendants(root))),
        )

    def _line(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def _count(self, first: int, last: int) -> int:
        top = len(self.code_lines) - 1
        return self.code_lines[min(last, top)] - self.code_lines[min(max(first - 1, 0), top)]


def _exported_name(chain: tuple[str, ...]) -> str | None:
    """The name that an assignment exports: empty for ``module.exports``; ``None`` if it exports nothing."""
    if chain[:2] == ("module", "exports"):
        return ".".join(chain[2:]) if len(chain) < 4 else None
    if chain[:1] == ("exports",):
        return ".".join(chain[1:]) if len(chain) < 3 else None
    return None


def _first_of_body(body: Node | None) -> Node | None:
    if body is None:
        return None
    if body.type in {"statement_block", "class_body"}:
        return next(iter(children(body)), None)
    return body


def _function_span(definition: _Definition) -> FunctionSpan | None:
    node, body = definition.node, definition.node.child_by_field_name("body")
    if node.type not in FUNCTIONS or body is None:
        return None
    is_block = body.type == "statement_block"
    heritage = node.parent is not None and node.parent.parent is not None and node.type == "method_definition"
    derived = heritage and any(
        c.type == "class_heritage" and b"extends" in (c.text or b"")[:7]
        for c in node.parent.parent.children  # type: ignore[union-attr]
    )
    return FunctionSpan(
        start=node.start_byte,
        end=node.end_byte,
        body_start=body.start_byte + is_block,
        body_end=body.end_byte - is_block,
        is_expression=not is_block,
        constructs=derived and definition.qualname.endswith(".constructor"),
        result_at=_result_at(node, definition.prefix),
        result=_any_result(node),
    )


def _result_at(node: Node, prefix: str) -> int:
    parameters, name = node.child_by_field_name("parameters"), node.child_by_field_name("name")
    is_fixed = "set " in prefix or (name is not None and name.text == b"constructor")
    if parameters is None or node.child_by_field_name("return_type") is not None or is_fixed:
        return -1
    return parameters.end_byte


def _any_result(node: Node) -> str:
    is_async = any(child.type == "async" for child in node.children)
    if "generator" in node.type or any(child.type == "*" for child in node.children):
        return "AsyncGenerator<any>" if is_async else "Generator<any>"
    return "Promise<any>" if is_async else "any"


def _own_nodes(node: Node) -> Iterator[Node]:
    return descendants(node)


def _is_decision(node: Node) -> bool:
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in _SHORT_CIRCUITS
    return node.type in _DECISIONS
