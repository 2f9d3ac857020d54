"""Fields of types in Java, and their uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from excise.extractors.field_uses import (
    FILLING,
    Field,
    FieldUse,
    LocalNames,
    UseKind,
    around,
    is_only_statement,
    names_in_text,
    remembered,
    whole_lines,
)
from excise.extractors.java.analysis.grammar import (
    FUNCTIONS,
    TYPES,
    annotations_of,
    comments_above,
    descendants,
    has_modifier,
    line_end,
    name_of,
    parse_tree,
    text,
)

_FUNCTIONS = FUNCTIONS | {"lambda_expression", "static_initializer"}
_TYPES = TYPES | {"object_creation_expression"}
_HARMLESS = frozenset({"Deprecated", "FunctionalInterface", "Override", "SafeVarargs", "SuppressWarnings"})
"""Annotations that no other program reads."""
_EFFECTS = frozenset(
    {"method_invocation", "lambda_expression", "assignment_expression", "update_expression", "method_reference",
     "switch_expression"}
)  # fmt: skip
_COLLECTIONS = frozenset(
    {"ArrayDeque", "ArrayList", "ConcurrentHashMap", "HashMap", "HashSet", "LinkedHashMap", "LinkedHashSet",
     "LinkedList", "Object", "StringBuilder", "TreeMap", "TreeSet"}
)  # fmt: skip
_ZERO = frozenset({"null", "0", "0L", "false", '""', "-1"})


@remembered
def fields(source: bytes) -> Iterator[Field]:
    """The fields of the types that a file declares."""
    for node in descendants(parse_tree(source).root_node):
        if node.type != "field_declaration":
            continue
        declared = [each for each in node.named_children if each.type == "variable_declarator"]
        holder = around(node, TYPES)
        is_plain = not annotations_of(node, source) and holder is not None
        is_plain = is_plain and holder is not None and _HARMLESS.issuperset(annotations_of(holder, source))
        above = comments_above(node)
        start = source.rfind(b"\n", 0, (above[0] if above else node).start_byte) + 1
        for each in declared:
            value = each.child_by_field_name("value")
            yield Field(
                name=name_of(each, source),
                holder=name_of(holder, source) if holder is not None else "",
                start=start,
                end=line_end(node.end_byte, source),
                is_private=has_modifier(node, "private"),
                can_go=is_plain and len(declared) == 1 and (value is None or not _has_effects(value, source)),
                is_set=value is not None and not _is_zero(value, source),
            )


@remembered
def uses(source: bytes) -> Iterator[FieldUse]:
    """The uses of fields in a file; names of parameters and variables are none."""
    declared = {(each.holder, each.name) for each in fields(source)}
    locals_ = LocalNames(_FUNCTIONS, _is_variable, partial(text, source=source))
    bound: dict[int, frozenset[str]] = {}
    for node in descendants(parse_tree(source).root_node):
        parent = node.parent
        if node.type == "string_literal":
            yield from names_in_text(node, source)
        if node.type != "identifier" or parent is None or not _is_value(node):
            continue
        name = text(node, source)
        target, holder = node, ""
        if parent.type == "field_access" and parent.child_by_field_name("field") == node:
            first = parent.child_by_field_name("object")
            target = parent
            holder = _holder(node, name, declared, source) if first is not None and first.type == "this" else ""
        elif _is_bound(node, name, bound, source):
            continue
        else:
            holder = _holder(node, name, declared, source)
        yield _use(FieldUse(name, holder, node.start_byte, UseKind.READ), target, source, locals_)


def _is_value(leaf: Node) -> bool:
    """Whether a leaf stands for a value: it is no name of a definition, a method, a label or a package."""
    parent = leaf.parent
    if parent is None or parent.type in _NO_VALUES:
        return False
    return parent.child_by_field_name("name") != leaf or parent.type not in _NAMED


_NO_VALUES = frozenset(
    {"scoped_identifier", "package_declaration", "import_declaration", "labeled_statement", "break_statement",
     "continue_statement", "marker_annotation", "annotation", "element_value_pair", "inferred_parameters"}
)  # fmt: skip
_NAMED = FUNCTIONS | TYPES | {
    "method_invocation", "variable_declarator", "formal_parameter", "catch_formal_parameter", "enum_constant",
    "enhanced_for_statement", "resource", "spread_parameter",
}  # fmt: skip


def _holder(node: Node, name: str, declared: set[tuple[str, str]], source: bytes) -> str:
    """The innermost type around a node that declares a field; empty if none does."""
    found = around(node, _TYPES)
    while found is not None and (name_of(found, source), name) not in declared:
        if found.type not in TYPES or found.child_by_field_name("superclass") is not None:
            return ""  # it may be a field of a class above this one
        found = around(found, _TYPES)
    return name_of(found, source) if found is not None else ""


def _is_bound(node: Node, name: str, bound: dict[int, frozenset[str]], source: bytes) -> bool:
    """Whether a function around a node has a parameter or variable of a name."""
    function = around(node, _FUNCTIONS)
    while function is not None:
        if function.id not in bound:
            names = (each.child_by_field_name("name") for each in descendants(function) if each.type in _BINDING)
            plain = (each for each in descendants(function) if _is_plain_parameter(each))
            bound[function.id] = frozenset(text(each, source) for each in (*filter(None, names), *plain))
        if name in bound[function.id]:
            return True
        function = around(function, _FUNCTIONS)
    return False


_BINDING = frozenset(
    {"formal_parameter", "variable_declarator", "catch_formal_parameter", "enhanced_for_statement", "resource",
     "spread_parameter"}
)  # fmt: skip


def _is_plain_parameter(node: Node) -> bool:
    """Whether a node is the name of a parameter of a lambda."""
    parent = node.parent
    if node.type != "identifier" or parent is None:
        return False
    is_only = parent.type == "lambda_expression" and parent.child_by_field_name("parameters") == node
    return is_only or parent.type == "inferred_parameters"


def _use(use: FieldUse, target: Node, source: bytes, locals_: LocalNames) -> FieldUse:
    """A use with what it does to the field that ``target`` names."""
    parent, changed = target.parent, target
    is_filled = parent is not None and parent.type == "array_access"
    if is_filled and parent is not None and parent.child_by_field_name("array") == target:
        changed, parent = parent, parent.parent
    statement = parent.parent if parent is not None else None
    if parent is None or statement is None or statement.type != "expression_statement":
        return use
    kind = _kind(parent, changed, source, is_filled=is_filled)
    if kind is None:
        return use
    is_alone = statement.parent is None or statement.parent.type not in {"block", "constructor_body"}
    effects = [each for each in parent.named_children if each != changed and _has_effects(each, source)]
    is_alone = is_alone or is_only_statement(statement)
    lost = is_alone or effects or not use.holder or locals_.are_used_up(statement)
    return use._replace(kind=kind, span=None if lost else whole_lines(statement, source))


def _kind(parent: Node, changed: Node, source: bytes, *, is_filled: bool) -> UseKind | None:
    """What an expression does with a field that it changes; ``None`` if it may do more."""
    if parent.type == "update_expression":
        return UseKind.SET
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == changed:
        value = parent.child_by_field_name("right")
        is_zero = value is not None and not is_filled and _is_zero(value, source)
        return UseKind.EMPTY if is_zero else UseKind.SET
    if parent.type == "method_invocation" and parent.child_by_field_name("object") == changed:
        name = parent.child_by_field_name("name")
        return FILLING.get(text(name, source)) if name is not None else None
    return None


def _has_effects(node: Node, source: bytes) -> bool:
    """Whether computing a value may do more than that."""
    return any(
        each.type in _EFFECTS or (each.type == "object_creation_expression" and not _is_new_collection(each, source))
        for each in descendants(node)
    )


def _is_new_collection(node: Node, source: bytes) -> bool:
    made = node.child_by_field_name("type")
    return made is not None and text(made, source).partition("<")[0] in _COLLECTIONS


def _is_zero(value: Node, source: bytes) -> bool:
    arguments = value.child_by_field_name("arguments")
    is_empty = arguments is not None and not arguments.named_children
    return text(value, source) in _ZERO or (value.type == "object_creation_expression" and is_empty)


def _is_variable(leaf: Node) -> bool:
    parent = leaf.parent
    if leaf.type != "identifier" or parent is None:
        return False
    is_method = parent.type == "method_invocation" and parent.child_by_field_name("name") == leaf
    return not is_method and not (parent.type == "field_access" and parent.child_by_field_name("field") == leaf)
