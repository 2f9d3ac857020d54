"""Names that a test's function declares or mentions, and those that its file does."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.go.analysis.grammar import descendants, text


def loops_around(node: Node, function: Node) -> Iterator[Node]:
    """The clauses of the loops of a function around a statement that range over something, inner ones first."""
    around = node.parent
    while around is not None and around != function:
        if around.type == "for_statement":
            yield from (each for each in around.named_children if each.type == "range_clause")
        around = around.parent


def range_names(loop: Node, source: bytes) -> list[str]:
    """Names of the variables of a loop that ranges over something."""
    left = loop.child_by_field_name("left")
    return [text(each, source) for each in left.named_children] if left is not None else []


def parameters(function: Node, source: bytes) -> Iterator[tuple[str, Node | None]]:
    """(name, type) of a function's parameters."""
    declared = function.child_by_field_name("parameters")
    for each in declared.named_children if declared is not None else ():
        for name in each.children_by_field_name("name"):
            is_plain_parameter = each.type == "parameter_declaration"
            yield text(name, source), each.child_by_field_name("type") if is_plain_parameter else None


def all_parameters(function: Node, source: bytes) -> Iterator[tuple[str, str]]:
    """(name, type) of the parameters of a function and of those within it."""
    for node in descendants(function):
        if node.type == "parameter_declaration" and (kind := node.child_by_field_name("type")) is not None:
            for name in node.children_by_field_name("name"):
                yield text(name, source), text(kind, source)


def local_names(function: Node, source: bytes) -> Iterator[str]:
    """Names of the variables and parameters of a function."""
    yield from (name for name, _ in all_parameters(function, source))
    for node in descendants(function):
        if node.type in {"short_var_declaration", "range_clause", "var_spec", "const_spec"}:
            for each in node.named_children[:-1]:
                heads = each.named_children if each.type == "expression_list" else [each]
                yield from (text(head, source) for head in heads if head.type == "identifier")


def composites(where: Node, name: str, source: bytes) -> Iterator[Node]:
    """The composite literals that a variable of a function or a file is declared with."""
    for node in descendants(where) if where.type == "block" else _declarations(where):
        if node.type in {"short_var_declaration", "var_spec"} and len(node.named_children) >= 2:
            names = node.named_children[0]
            value = node.named_children[-1]
            if text(names, source) == name and value.type == "expression_list":
                yield from (each for each in value.named_children if each.type == "composite_literal")


def _declarations(root: Node) -> Iterator[Node]:
    for node in root.named_children:
        if node.type == "var_declaration":
            yield from descendants(node)


def imports(root: Node, source: bytes) -> set[str]:
    """Names of the packages that a file imports, as their paths tell."""
    found = set()
    for node in descendants(root):
        path = node.child_by_field_name("path") if node.type == "import_spec" else None
        if path is not None:
            alias = node.child_by_field_name("name")
            found.add(text(alias or path, source).strip('"`').rpartition("/")[2])
    return found


def packages_in(function: Node, source: bytes) -> set[str]:
    """Names of imported packages that a function mentions."""
    root = function.parent
    used = {
        text(node.named_children[0], source)
        for node in descendants(function)
        if node.type in {"selector_expression", "qualified_type"}
    }
    return used & imports(root, source) if root is not None else used


def has_comparison(node: Node) -> bool:
    """Whether a node compares two values for equality."""
    return node.type == "binary_expression" and node.children[1].type in {"==", "!="}


def is_within(node: Node, other: Node) -> bool:
    """Whether a node is a part of another one, or that itself."""
    return other.start_byte <= node.start_byte and node.end_byte <= other.end_byte
