"""Statements of functions that do nothing but give a value to one name: without the name, they mean nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.compiled_codebase import Assignment
from excise.extractors.go.analysis.grammar import descendants, names_in, text

_PURE = frozenset({"bytes", "errors", "filepath", "math", "path", "regexp", "strconv", "strings", "unicode"})
"""Packages of the standard library whose functions change nothing."""
_BUILTIN = frozenset({"append", "cap", "complex", "len", "make", "max", "min", "new"})
"""Functions of the language that change nothing."""


def assignments_in(function: Node, source: bytes) -> Iterator[Assignment]:
    """The statements ``name = value`` of a function, of names that it does not use otherwise.

    Their values use nothing that is the function's own, and call only functions that change nothing.
    """
    counts = Counter(names_in(function, source))
    local = set(_local_names(function, source))
    found: dict[str, list[Node]] = {}
    for node in descendants(function):
        target = _target(node, source) if node.type == "assignment_statement" else ""
        if target and _is_plain(node, source) and local.isdisjoint(names_in(node, source)):
            found.setdefault(target, []).append(node)
    for name, nodes in found.items():
        if counts[name] == len(nodes):
            for node in nodes:
                inner = Counter(names_in(node, source))
                own = frozenset(each for each, count in inner.items() if counts[each] == count and each != name)
                yield Assignment(name, *_lines_of(node, source), own)


def _lines_of(node: Node, source: bytes) -> tuple[int, int]:
    """First byte and end of a statement, with the rest of its lines if nothing else stands on them."""
    start, end = source.rfind(b"\n", 0, node.start_byte) + 1, source.find(b"\n", node.end_byte) + 1 or len(source)
    is_alone = not source[start : node.start_byte].strip() and not source[node.end_byte : end].strip()
    return (start, end) if is_alone else (node.start_byte, node.end_byte)


def _local_names(function: Node, source: bytes) -> Iterator[str]:
    """The names that a function gives to values of its own."""
    for node in descendants(function):
        if node.type in {"short_var_declaration", "range_clause"}:
            left = node.child_by_field_name("left")
            yield from names_in(left, source) if left is not None else ()
        elif node.type in {"var_spec", "const_spec", "parameter_declaration", "variadic_parameter_declaration"}:
            yield from (text(name, source) for name in node.children_by_field_name("name"))


def _target(assignment: Node, source: bytes) -> str:
    """The only name to which an assignment gives a value; empty if there are others, or it is no plain one."""
    left, operator = assignment.child_by_field_name("left"), assignment.child_by_field_name("operator")
    targets = left.named_children if left is not None else []
    is_plain = operator is not None and text(operator, source) == "=" and len(targets) == 1
    return text(targets[0], source) if is_plain and targets[0].type == "identifier" else ""


def _is_plain(assignment: Node, source: bytes) -> bool:
    """Whether an assignment stands in a block, and its value calls nothing that may change something else."""
    if assignment.parent is None or assignment.parent.type not in {"block", "statement_list"}:
        return False
    return all(changes_nothing(node, source) for node in descendants(assignment))


def changes_nothing(node: Node, source: bytes) -> bool:
    """Whether a node is no call, or one of a function that changes nothing."""
    if node.type == "unary_expression":
        return not text(node, source).startswith("<-")
    if node.type != "call_expression":
        return True
    function = node.child_by_field_name("function")
    if function is None or function.type not in {"identifier", "selector_expression"}:
        return False
    if function.type == "identifier":
        return text(function, source) in _BUILTIN
    operand = function.child_by_field_name("operand")
    return operand is not None and operand.type == "identifier" and text(operand, source) in _PURE
