"""Removes imports, constants and types of a file that only removed code used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tree_sitter import Node

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import Range, removals
from excise.extractors.javascript.analysis.grammar import (
    DECLARED,
    FUNCTIONS,
    TYPES,
    VARIABLES,
    children,
    descendants,
    parse_tree,
    required,
    text,
    unwrapped,
)

_USES = frozenset(
    {"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern", "type_identifier"}
)
_PLAIN = frozenset(
    {"number", "string", "regex", "true", "false", "null", "undefined", "identifier", "member_expression",
     "property_identifier", "array", "object", "pair", "unary_expression", "binary_expression", "template_string",
     "string_fragment", "escape_sequence", "regex_pattern", "regex_flags", "computed_property_name",
     "shorthand_property_identifier", "parenthesized_expression", "spread_element", "subscript_expression",
     "as_expression", "satisfies_expression", "type_annotation", "predefined_type", "type_identifier", "literal_type",
     "union_type", "array_type", "tuple_type", "readonly_type", "generic_type", "type_arguments"}
)  # fmt: skip
"""Nodes of values that are computed without effects."""
_PARTS = frozenset({"member_expression", "subscript_expression", "call_expression"})
_VALUES = frozenset({"string", "template_string", "number", "regex", "array", "object", "binary_expression"})
_COLLECTIONS = frozenset({"Map", "Set", "WeakMap", "WeakSet", "RegExp"})
_MAX_ROUNDS = 10


def without_unused(before: bytes, after: bytes, *, nested: bool = False, kept: Collection[str] = frozenset()) -> bytes:
    """The file ``after`` without the imports, constants, functions and types of its top level that only ``before``
    uses; with ``nested``, without such variables of blocks as well.

    What only these used goes, too; functions with the names ``kept`` stay.
    """
    used_before = _counts(before)
    for _ in range(_MAX_ROUNDS):
        statements, elements = _unused(after, used_before, nested=nested, kept=kept)
        statements |= _unused_functions(after, used_before, kept)
        if not statements and not elements:
            return after
        after = apply_edits(after, removals(after, statements, elements))
    return after


def _counts(source: bytes) -> Counter[str]:
    root = parse_tree(source).root_node
    return Counter(text(node, source) for node in descendants(root) if node.type in _USES)


def _unused(
    source: bytes, used_before: Counter[str], *, nested: bool, kept: Collection[str]
) -> tuple[set[Range], set[Range]]:
    """The statements and the elements of lists that bind names that are used nowhere else in a file.

    Those of its top level; with ``nested``, variables of blocks as well.
    """
    counts, root = _counts(source), parse_tree(source).root_node
    blocks = [node for node in descendants(root) if nested and node.type == "statement_block"]
    inner = [child for block in blocks for child in children(block) if child.type in VARIABLES]
    statements: set[Range] = set()
    elements: set[Range] = set()
    for statement in (*children(root), *inner):
        if statement.type == "import_statement":
            _unused_import(statement, source, counts, used_before, statements, elements)
        elif statement.type in TYPES:
            named = statement.child_by_field_name("name")
            name = text(named, source) if named is not None else ""
            if counts[name] == 1 and used_before[name] > 1:
                statements.add((statement.start_byte, statement.end_byte))
        elif statement.type in VARIABLES:
            declarators = [child for child in children(statement) if child.type == "variable_declarator"]
            for declarator in declarators:
                for node, names in _bindings(declarator, source, kept):
                    if all(counts[name] == own and used_before[name] > own for name, own in names):
                        alone = len(declarators) == 1 and node.id == declarator.id
                        span = statement if alone else node
                        (statements if alone else elements).add((span.start_byte, span.end_byte))
    return statements, elements


def _unused_functions(source: bytes, used_before: Counter[str], kept: Collection[str]) -> set[Range]:
    """The functions of the top level that nothing else in a file uses, but for those ``kept``."""
    counts, found = _counts(source), set[Range]()
    for statement in children(parse_tree(source).root_node):
        named = statement.child_by_field_name("name") if statement.type in DECLARED else None
        name = text(named, source) if named is not None else ""
        own = _own_uses(statement, name, source)
        if name and name not in kept and counts[name] == own and used_before[name] > own:
            found.add((statement.start_byte, statement.end_byte))
    return found


def _own_uses(node: Node, name: str, source: bytes) -> int:
    return sum(each.type in _USES and text(each, source) == name for each in descendants(node))


def _bindings(declarator: Node, source: bytes, kept: Collection[str]) -> list[tuple[Node, list[tuple[str, int]]]]:
    """What of a declarator can go: a node, and the names that it binds with the number of their uses in it."""
    target, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
    if target is None or value is None:
        return []
    is_import = _is_required(value, source)
    if target.type == "identifier":
        name = text(target, source)
        if unwrapped(value).type in FUNCTIONS:
            return [(declarator, [(name, _own_uses(declarator, name, source))])] if name not in kept else []
        is_plain = is_import or all(_is_plain(node, source) for node in descendants(value))
        return [(declarator, [(name, 1)])] if is_plain or _is_computed(value, source) else []
    if target.type == "object_pattern" and is_import:
        found = []
        for element in children(target):
            if element.type == "shorthand_property_identifier_pattern":
                found.append((element, [(text(element, source), 1)]))
            elif element.type == "pair_pattern":
                bound = element.child_by_field_name("value")
                if bound is not None and bound.type == "identifier":
                    found.append((element, [(text(bound, source), 1)]))
        return found
    return []


def _is_plain(node: Node, source: bytes) -> bool:
    """Whether a node of a value has no effects: parts of literals, and new collections."""
    if node.type == "new_expression":
        made = node.child_by_field_name("constructor")
        return made is not None and text(made, source) in _COLLECTIONS
    return node.type in _PLAIN or node.type == "arguments"


def _is_computed(value: Node, source: bytes) -> bool:
    """Whether a value is made by a function that is called at once, and that changes only variables of its own."""
    value = unwrapped(value)
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    if function is None or unwrapped(function).type not in FUNCTIONS:
        return False
    function = unwrapped(function)
    inside = list(descendants(function))
    own: set[str] = set()
    for node in sorted(inside, key=lambda node: node.start_byte):
        name = node.child_by_field_name("name") if node.type == "variable_declarator" else None
        first = node.child_by_field_name("value") if name is not None else None
        # a variable for what another one holds, such as `document.body`, is not all that changes with it
        is_new = first is None or unwrapped(first).type == "new_expression" or _root(first, source) in {"", *own}
        if name is not None and name.type == "identifier" and is_new:
            own.add(text(name, source))
    arguments = value.child_by_field_name("arguments")
    return (
        arguments is not None and not arguments.named_children and all(_is_local(node, own, source) for node in inside)
    )


def _is_local(node: Node, own: Collection[str], source: bytes) -> bool:
    """Whether a node in a function has no effect but on its ``own`` variables."""
    if node.type in {"assignment_expression", "augmented_assignment_expression"}:
        return _root(node.child_by_field_name("left"), source) in own
    if node.type == "update_expression":
        return _root(node.child_by_field_name("argument"), source) in own
    if node.type == "call_expression":
        called = node.child_by_field_name("function")
        is_method = called is not None and called.type in {"member_expression", "subscript_expression"}
        return is_method and _root(called, source) in {"", *own}
    if node.type == "new_expression":
        return _is_plain(node, source)
    return node.type not in {"this", "await_expression", "yield_expression", "throw_statement"} and not (
        node.type == "unary_expression" and text(node, source).startswith("delete")
    )


def _root(target: Node | None, source: bytes) -> str:
    """The variable that the parts of an object are taken from; empty for a value that no variable holds."""
    while target is not None and (target := unwrapped(target)).type in _PARTS:
        target = target.child_by_field_name("function" if target.type == "call_expression" else "object")
    return text(target, source) if target is not None and target.type not in _VALUES else ""


def _is_required(value: Node, source: bytes) -> bool:
    value = unwrapped(value)
    while value.type == "member_expression":
        inner = value.child_by_field_name("object")
        if inner is None:
            return False
        value = unwrapped(inner)
    if value.type == "call_expression":
        if required(value, source) is not None:
            return True
        function = value.child_by_field_name("function")
        return function is not None and required(function, source) is not None
    return False


def _unused_import(
    statement: Node,
    source: bytes,
    counts: Counter[str],
    used_before: Counter[str],
    statements: set[Range],
    elements: set[Range],
) -> None:
    clause = next((child for child in statement.named_children if child.type == "import_clause"), None)
    if clause is None:
        return

    def is_unused(name: str, own: int) -> bool:
        return counts[name] == own and used_before[name] > own

    for child in children(clause):
        alone = child.type == "namespace_import" or (child.type == "identifier" and len(children(clause)) == 1)
        bound_name = text(children(child)[0] if child.type == "namespace_import" else child, source)
        if alone and is_unused(bound_name, 1):
            statements.add((statement.start_byte, statement.end_byte))
        elif child.type == "named_imports":
            for one in children(child):
                name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                bound = alias if alias is not None else name
                if bound is not None and is_unused(text(bound, source), 1):
                    elements.add((one.start_byte, one.end_byte))
