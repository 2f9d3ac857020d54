"""Imports, exports and uses of names in the syntax tree of one file.

Names that are bound within a function (parameters, its own variables) are no uses of the module's names. Scopes are
those of functions: a ``let`` in a block counts as a variable of the whole function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import (
    CLASSES,
    FUNCTIONS,
    TYPES,
    VARIABLES,
    chain_of,
    children,
    descendants,
    required,
    string_value,
    text,
    unwrapped,
)
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export, Import, Reference

REQUIRE = "require:"
"""Prefix of the first name of a chain that begins at a call ``require('module')``, before the module."""
_PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern", "assignment_pattern", "pair_pattern",
                       "object_assignment_pattern", "required_parameter", "optional_parameter"})  # fmt: skip

_IDENTIFIERS = frozenset({"identifier", "shorthand_property_identifier"})


class Uses(NamedTuple):
    """What a file imports, exports and uses."""

    imports: tuple[Import, ...]
    exports: tuple[Export, ...]
    references: tuple[Reference, ...]
    is_esm: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is."""

    owner: str = ""
    """Qualified name of the innermost symbol around it."""
    bound: frozenset[str] = frozenset()
    """Names that the functions around it bind."""
    at_load: bool = True


def find_uses(
    root: Node,
    source: bytes,
    owners: Mapping[tuple[int, int], str],
    module_functions: Collection[tuple[int, int]] = (),
) -> Uses:
    """The uses in a file; ``owners`` are the qualified names of functions and classes by their first and last byte.

    What ``module_functions`` bind, besides their parameters, are names of the module, and what they return is exported.
    """
    walk = _Walk(source, owners, module_functions, _exported_objects(root, source))
    for statement in root.named_children:
        walk.visit(statement, _Place())
    return Uses(tuple(walk.imports), tuple(walk.exports), tuple(walk.references), walk.is_esm)


class _Walk:
    def __init__(
        self,
        source: bytes,
        owners: Mapping[tuple[int, int], str],
        module_functions: Collection[tuple[int, int]],
        exported_objects: Collection[str],
    ) -> None:
        self.source, self.owners, self.module_functions = source, owners, module_functions
        self.exported_objects = exported_objects
        self.imports: list[Import] = []
        self.exports: list[Export] = []
        self.references: list[Reference] = []
        self.is_esm = False
        self.handlers: dict[str, Callable[[Node, _Place], None]] = {
            "import_statement": self._import,
            "export_statement": self._export,
            "variable_declarator": self._declarator,
            "expression_statement": self._expression_statement,
            "member_expression": self._member,
            "identifier": self._identifier,
            "shorthand_property_identifier": self._identifier,
            "type_identifier": self._identifier,
            "call_expression": self._call,
            "comment": self._nothing,
            "required_parameter": self._parameter,
            "optional_parameter": self._parameter,
            **dict.fromkeys((*TYPES, "function_signature", "type_parameter"), self._declared_type),
        }

    def _text(self, node: Node) -> str:
        return text(node, self.source)

    def visit(self, node: Node, place: _Place) -> None:
        if node.type in FUNCTIONS or node.type in CLASSES:
            self._definition(node, place)
            return
        handler = self.handlers.get(node.type)
        if handler is not None:
            handler(node, place)
        else:
            self._inside(node, place)

    def _inside(self, node: Node, place: _Place) -> None:
        for child in node.named_children:
            self.visit(child, place)

    def _definition(self, node: Node, place: _Place, *, called: bool = False) -> None:
        owner = self.owners.get((node.start_byte, node.end_byte), place.owner)
        if node.type in CLASSES:
            name = node.child_by_field_name("name")
            for child in node.named_children:
                if name is None or child.id != name.id:
                    self.visit(child, _Place(owner, place.bound, place.at_load))
            return
        if (node.start_byte, node.end_byte) in self.module_functions:
            self._module_function(node, place)
            return
        inner = _Place(owner, place.bound | self._bound_in(node), place.at_load and called)
        name = node.child_by_field_name("name")
        for child in node.named_children:
            if name is None or child.id != name.id or name.type == "computed_property_name":
                self.visit(child, inner)

    def _module_function(self, node: Node, place: _Place) -> None:
        """A function that holds code of the module: only its parameters are names of its own."""
        parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        own = frozenset(self._names_of(parameters)) if parameters is not None else frozenset()
        inner = _Place(place.owner, place.bound | own - {"require", "exports", "module"}, place.at_load)
        for statement in body.named_children if body is not None else ():
            values = children(statement)
            if statement.type != "return_statement" or not values:
                self.visit(statement, inner)
                continue
            self._exported_value(WHOLE, unwrapped(values[0]), statement, inner)

    def _bound_in(self, function: Node) -> frozenset[str]:
        """Names that a function binds, without those that are bound to required modules."""
        found: set[str] = set()
        for name in ("parameters", "parameter"):
            parameters = function.child_by_field_name(name)
            if parameters is not None:
                found.update(self._names_of(parameters))
        own = function.child_by_field_name("name")
        if own is not None and function.type in {"function_expression", "generator_function"}:
            found.add(self._text(own))
        body = function.child_by_field_name("body")
        queue = [body] if body is not None else []
        while queue:
            node = queue.pop()
            if node.type == "variable_declarator":
                value = node.child_by_field_name("value")
                target = node.child_by_field_name("name")
                if target is not None and (value is None or self._module_of(value) is None):
                    found.update(self._names_of(target))
            elif node.type in {"for_in_statement", "catch_clause"}:
                for field in ("left", "parameter"):
                    target = node.child_by_field_name(field)
                    if target is not None and (field == "parameter" or node.child_by_field_name("kind") is not None):
                        found.update(self._names_of(target))
            elif node.type in {"function_declaration", "generator_function_declaration", *CLASSES}:
                named = node.child_by_field_name("name")
                if named is not None and (node.start_byte, node.end_byte) not in self.owners:
                    found.add(self._text(named))
            if node is body or node.type not in FUNCTIONS:
                queue += node.named_children
        return frozenset(found)

    def _names_of(self, pattern: Node) -> Iterator[str]:
        """Names that a pattern binds; defaults in it count too, which hides few uses."""
        if pattern.type in {"identifier", "shorthand_property_identifier_pattern"}:
            yield self._text(pattern)
            return
        if pattern.type in {"required_parameter", "optional_parameter"}:
            inner = pattern.child_by_field_name("pattern")
            if inner is not None:
                yield from self._names_of(inner)
            return
        for child in children(pattern):
            if pattern.type in {"assignment_pattern", "object_assignment_pattern"}:
                left = pattern.child_by_field_name("left")
                if left is None or child.id != left.id:
                    continue
            if child.type in _PATTERNS | {"identifier", "shorthand_property_identifier_pattern"}:
                yield from self._names_of(child)

    def _nothing(self, node: Node, place: _Place) -> None:
        """Comments name nothing."""

    def _declared_type(self, node: Node, place: _Place) -> None:
        """The name of a type, or of a function's signature, is no use of it."""
        name = node.child_by_field_name("name")
        for child in node.named_children:
            if name is None or child.id != name.id:
                self.visit(child, place)

    def _parameter(self, node: Node, place: _Place) -> None:
        """A parameter in TypeScript; those of types of functions are bound nowhere."""
        pattern = node.child_by_field_name("pattern")
        for child in node.named_children:
            if pattern is None or child.id != pattern.id or pattern.type not in {"identifier", "this"}:
                self.visit(child, place)

    # ----------------------------------------------------------------------------- references
    def _add(self, chain: tuple[str, ...], node: Node, place: _Place) -> None:
        self.references.append(Reference(chain, node.start_byte, node.end_byte, place.owner, place.at_load))

    def _identifier(self, node: Node, place: _Place) -> None:
        name = self._text(node)
        if name not in place.bound:
            self._add((name,), node, place)

    def _member(self, node: Node, place: _Place) -> None:
        chain = chain_of(node, self.source)
        if chain and chain[0] not in place.bound:
            self._add(chain, node, place)
            return
        last = node.child_by_field_name("property")
        first = node.child_by_field_name("object")
        if first is not None:
            module = required(first, self.source)
            if module is not None and last is not None:
                self._add((f"{REQUIRE}{module}", self._text(last)), node, place)
                return
            self.visit(first, place)
        if last is not None and last.type == "property_identifier":
            self._add(("", self._text(last)), node, place)

    def _call(self, node: Node, place: _Place) -> None:
        module = required(node, self.source)
        if module is not None:
            self._add((f"{REQUIRE}{module}",), node, place)
            return
        function = node.child_by_field_name("function")
        for child in node.named_children:
            inner = unwrapped(child)
            if function is not None and child.id == function.id and inner.type in FUNCTIONS:
                self._definition(inner, place, called=True)
            else:
                self.visit(child, place)

    # -------------------------------------------------------------------------------- imports
    def _module_of(self, value: Node) -> tuple[str, str] | None:
        """(module, name) of ``require('m')`` and ``require('m').name``; ``None`` for other expressions."""
        value = unwrapped(value)
        module = required(value, self.source)
        if module is not None:
            return module, WHOLE
        if value.type == "member_expression":
            first, last = value.child_by_field_name("object"), value.child_by_field_name("property")
            module = required(first, self.source) if first is not None else None
            if module is not None and last is not None:
                return module, self._text(last)
        return None

    def _declarator(self, node: Node, place: _Place) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        is_exported = place.at_load and target is not None and self._text(target) in self.exported_objects
        if is_exported and value is not None and value.type == "object":
            for element in children(value):
                self._exported_element(element, place)
            return
        found = self._module_of(value) if value is not None else None
        if target is None or found is None:
            if target is not None and target.type in _PATTERNS:
                self._inside(target, place)
            if value is not None:
                self.visit(value, place)
                self._properties_taken(target, value, place)
            return
        module, name = found
        statement = node.parent if node.parent is not None else node
        alone = len([child for child in children(statement) if child.type == "variable_declarator"]) == 1
        whole = statement if alone else node
        span = (whole.start_byte, whole.end_byte)
        if target.type == "identifier":
            self.imports.append(
                Import(module, name, self._text(target), node.start_byte, node.end_byte, *span, place.owner)
            )
            return
        for element in children(target):
            key, bound = element, element
            if element.type == "pair_pattern":
                key = element.child_by_field_name("key") or element
                bound = element.child_by_field_name("value") or element
            bound_name = next(self._names_of(bound), "")
            self.imports.append(
                Import(module, self._text(key), bound_name, element.start_byte, element.end_byte, *span, place.owner)
            )

    def _properties_taken(self, target: Node | None, value: Node, place: _Place) -> None:
        """References to what ``const { open, shut: close } = box`` takes."""
        chain = chain_of(value, self.source) if value.type in {"identifier", "member_expression"} else ()
        if target is None or target.type != "object_pattern" or not chain or chain[0] in place.bound:
            return
        for element in children(target):
            key = element.child_by_field_name("key") or element.child_by_field_name("left") or element
            if key.type in {"property_identifier", "shorthand_property_identifier_pattern"}:
                self._add((*chain, self._text(key)), key, place)

    def _import(self, node: Node, place: _Place) -> None:
        self.is_esm = True
        module = string_value(node.child_by_field_name("source"), self.source) or ""
        span = (node.start_byte, node.end_byte)
        clause = next((child for child in node.named_children if child.type == "import_clause"), None)
        if clause is None:
            self.imports.append(Import(module, "", "", *span, *span, place.owner))
            return
        for child in children(clause):
            where = (child.start_byte, child.end_byte)
            if child.type == "identifier":
                self.imports.append(Import(module, DEFAULT, self._text(child), *where, *span, place.owner))
            elif child.type == "namespace_import" and children(child):
                self.imports.append(Import(module, WHOLE, self._text(children(child)[0]), *where, *span, place.owner))
            elif child.type == "named_imports":
                for one in children(child):
                    name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                    if name is not None:
                        bound = self._text(alias if alias is not None else name)
                        self.imports.append(
                            Import(module, self._text(name), bound, one.start_byte, one.end_byte, *span, place.owner)
                        )

    # -------------------------------------------------------------------------------- exports
    def _export(self, node: Node, place: _Place) -> None:
        self.is_esm = True
        module = string_value(node.child_by_field_name("source"), self.source) or ""
        span = (node.start_byte, node.end_byte)
        declaration, value = node.child_by_field_name("declaration"), node.child_by_field_name("value")
        is_default = any(child.type == "default" for child in node.children)
        clause = next((child for child in node.named_children if child.type == "export_clause"), None)
        if clause is not None:
            for one in children(clause):
                name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                if name is not None:
                    exported = self._text(alias if alias is not None else name)
                    local = (self._text(name),)
                    self.exports.append(Export(exported, local, module, one.start_byte, one.end_byte, True))
        elif module:
            star = next((c for c in node.named_children if c.type == "namespace_export"), None)
            bound = self._text(children(star)[0]) if star is not None and children(star) else WHOLE
            self.exports.append(Export(bound, (), module, *span, False))
        elif is_default:
            inner = declaration or value
            named = inner.child_by_field_name("name") if inner is not None else None
            chain = chain_of(inner, self.source) if inner is not None else ()
            shown = (self._text(named),) if named is not None else chain
            self.exports.append(Export(DEFAULT, shown, "", *span, False))
            if inner is not None and not chain:
                self.visit(inner, place)
        elif declaration is not None:
            for each in self._declared(declaration):
                self.exports.append(Export(each, (each,), "", *span, False))
            self.visit(declaration, place)

    def _declared(self, declaration: Node) -> list[str]:
        if declaration.type in VARIABLES:
            targets = (child.child_by_field_name("name") for child in children(declaration))
            return [name for target in targets if target is not None for name in self._names_of(target)]
        named = declaration.child_by_field_name("name")
        return [self._text(named)] if named is not None else []

    def _expression_statement(self, node: Node, place: _Place) -> None:
        inner = children(node)[0] if children(node) else None
        if inner is None or inner.type != "assignment_expression" or not place.at_load:
            self._inside(node, place)
            return
        names: list[str] = []
        value = inner
        while value.type == "assignment_expression":
            left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
            if left is None or right is None:
                return
            name = exported_name(chain_of(left, self.source))
            if name is not None:
                names.append(name)
            elif left.type != "identifier":
                self.visit(left, place)
            value = unwrapped(right)
        if not names:
            self.visit(value, place)
        for name in names:
            self._exported_value(name, value, node, place)

    def _exported_value(self, name: str, value: Node, statement: Node, place: _Place) -> None:
        """An export ``module.exports = value`` (``name`` is :data:`WHOLE`) or ``exports.name = value``."""
        if name == WHOLE and value.type == "object":
            for element in children(value):
                self._exported_element(element, place)
            return
        chain = chain_of(value, self.source)
        module = self._module_of(value)
        local: tuple[str, ...] = chain
        if module is not None:
            local = () if module[1] == WHOLE else (module[1],)
        elif not chain:
            owner = self.owners.get((value.start_byte, value.end_byte))
            local = (owner,) if owner else ()
        span = (statement.start_byte, statement.end_byte)
        self.exports.append(Export(name, local, module[0] if module else "", *span, False))
        if not chain and module is None:
            self.visit(value, place)

    def _exported_element(self, element: Node, place: _Place) -> None:
        span = (element.start_byte, element.end_byte)
        if element.type == "shorthand_property_identifier":
            name = self._text(element)
            self.exports.append(Export(name, (name,), "", *span, True))
            return
        key = element.child_by_field_name("key") or element.child_by_field_name("name")
        value = element.child_by_field_name("value") if element.type == "pair" else element
        if key is None or value is None:
            self._inside(element, place)
            return
        name = string_value(key, self.source) or self._text(key)
        chain, module = chain_of(value, self.source), self._module_of(value)
        owner = self.owners.get((unwrapped(value).start_byte, unwrapped(value).end_byte))
        local = chain if chain else (owner,) if owner else ()
        if module is not None:
            local = () if module[1] == WHOLE else (module[1],)
        self.exports.append(Export(name, local, module[0] if module else "", *span, True))
        if not chain and module is None:
            self.visit(value, place)


def _exported_objects(root: Node, source: bytes) -> set[str]:
    """The names of the constants of a file of which nothing is used but that they are exported as a whole."""
    exported: Counter[str] = Counter()
    whole: set[str] = set()
    for statement in root.named_children:
        value = children(statement)[0] if statement.type == "expression_statement" and children(statement) else None
        names: list[str | None] = []
        while value is not None and value.type == "assignment_expression":
            left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
            names += [exported_name(chain_of(left, source))] if left is not None else []
            value = unwrapped(right) if right is not None else None
        if value is not None and value.type == "identifier" and any(name is not None for name in names):
            exported[text(value, source)] += 1
            whole.update([text(value, source)] if WHOLE in names else ())
    uses = Counter(text(node, source) for node in (descendants(root) if whole else ()) if node.type in _IDENTIFIERS)
    return {name for name in whole if uses[name] == exported[name] + 1}


def exported_name(chain: tuple[str, ...]) -> str | None:
    """The name that an assignment to a chain exports, :data:`WHOLE` for all; ``None`` if it exports nothing."""
    if chain[:2] == ("module", "exports") and len(chain) <= 3:
        return chain[2] if len(chain) == 3 else WHOLE
    if chain[:1] == ("exports",) and len(chain) <= 2:
        return chain[1] if len(chain) == 2 else WHOLE
    return None


def bound_names(root: Node, source: bytes) -> frozenset[str]:
    """All names of identifiers below a node, for checks that a name is used nowhere."""
    kinds = {"identifier", "shorthand_property_identifier", "type_identifier"}
    return frozenset(text(node, source) for node in descendants(root) if node.type in kinds)
