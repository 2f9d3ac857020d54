"""The syntactic position of a name, which decides what must be removed together with the name."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from tree_sitter import Node

_DISPLAYS = frozenset({"list", "set", "dictionary", "tuple", "expression_list"})
_TUPLES = frozenset({"tuple", "expression_list"})
_SIMPLE = frozenset({"assert_statement", "delete_statement", "print_statement", "exec_statement", "raise_statement"})
_HEADERS = frozenset(
    {
        "if_statement", "elif_clause", "while_statement", "for_statement", "with_statement", "match_statement",
        "except_clause", "except_group_clause", "case_clause", "type_alias_statement",
    }
)  # fmt: skip


class UseKind(Enum):
    """The construct that a use is part of."""

    ELEMENT = auto()
    """An element of a display: the element can be removed."""
    OPERAND = auto()
    """An operand of ``+``: it can be removed with the sign."""
    STATEMENT = auto()
    """A simple statement that can be removed."""
    ASSIGNMENT = auto()
    """The value of an assignment: the statement can be removed, and the assigned names with it."""
    DECORATOR = auto()
    """A decorator of a definition."""
    DEPENDENT = auto()
    """A base class, default or annotation of a definition."""
    HEADER = auto()
    """The condition or subject of a compound statement, or another part that cannot be removed alone."""


class Use(NamedTuple):
    """A use of a name, and the construct around it."""

    kind: UseKind
    node: Node
    """The element, operand, statement or (decorated) definition."""
    container: Node | None = None
    """The display or sum that holds an element or operand."""


def use_at(root: Node, start: int, end: int) -> Use:
    """The use that the name or attribute chain at a span is part of."""
    node = root.descendant_for_byte_range(start, end) or root
    element = _element(node, root)
    if element is not None:
        return element
    child, parent = node, node.parent
    while parent is not None:
        use = _use_in(parent, child)
        if use is not None:
            return use
        child, parent = parent, parent.parent
    return Use(UseKind.HEADER, child)


def _use_in(parent: Node, child: Node) -> Use | None:
    """The use that ``child`` is part of, if ``parent`` decides it; ``None`` if a node further out does."""
    kind = parent.type
    use: Use | None = None
    if kind == "binary_operator" and _is_sum_of_names(parent, child):
        use = Use(UseKind.OPERAND, child, parent)
    elif kind == "decorator":
        use = Use(UseKind.DECORATOR, parent.parent or parent)
    elif kind in {"function_definition", "class_definition"}:
        around = parent.parent
        use = Use(UseKind.DEPENDENT, around if around is not None and around.type == "decorated_definition" else parent)
    elif kind in {"assignment", "augmented_assignment"}:
        use = _assignment_use(parent, child)
    elif kind == "expression_statement" or kind in _SIMPLE:
        use = Use(UseKind.STATEMENT, parent)
    elif kind in _HEADERS or kind in {"block", "module"}:
        use = Use(UseKind.HEADER, parent)
    return use


def _assignment_use(assignment: Node, child: Node) -> Use:
    statement = assignment
    while statement.parent is not None and statement.type != "expression_statement":
        statement = statement.parent
    if assignment.child_by_field_name("type") == child:
        return Use(UseKind.DEPENDENT, statement)
    if assignment.type == "augmented_assignment" or assignment.child_by_field_name("left") == child:
        return Use(UseKind.STATEMENT, statement)
    return Use(UseKind.ASSIGNMENT, statement)


def _is_sum_of_names(parent: Node, child: Node) -> bool:
    """Whether the name itself is an operand of a sum, as in ``a.__all__ + b.__all__`` and ``xs + m.HANDLERS``."""
    operator = parent.child_by_field_name("operator")
    return child.type in {"identifier", "attribute"} and operator is not None and operator.type == "+"


def _element(node: Node, root: Node) -> Use | None:
    """The display element that contains the node; ``None`` if an inner construct decides what to remove."""
    child, parent = node, node.parent
    while parent is not None and parent != root:
        if is_keyword_table(parent) and child.type == "keyword_argument":
            return Use(UseKind.ELEMENT, child, parent)
        if parent.type in _DISPLAYS:
            return Use(UseKind.HEADER, parent) if _is_unpacked(parent) else _outermost(parent, child)
        if _use_in(parent, child) is not None or parent.type.endswith("_comprehension") or parent.type == "lambda":
            return None
        child, parent = parent, parent.parent
    return None


def is_keyword_table(node: Node) -> bool:
    """Whether a node is the argument list of ``dict(key=value)``."""
    call = node.parent
    function = call.child_by_field_name("function") if call is not None and node.type == "argument_list" else None
    return function is not None and function.text in {b"dict", b"OrderedDict", b"collections.OrderedDict"}


def _is_unpacked(display: Node) -> bool:
    """Whether elements correspond to others by position: assignment targets, and ``f, g`` in ``a, b = f, g``."""
    parent = display.parent
    if parent is None or parent.type not in {"assignment", "for_statement"}:
        return False
    left = parent.child_by_field_name("left")
    if left == display:
        return True
    return parent.type == "assignment" and left is not None and left.type in {"pattern_list", "tuple_pattern"}


def _outermost(container: Node, element: Node) -> Use:
    """The element to remove: a tuple inside a display, as in ``[(f, 1), (g, 2)]``, is removed as a whole."""
    current, child = container, element
    while current.type in _TUPLES:
        outer, inner = current.parent, current
        while outer is not None and outer.type in {"pair", "parenthesized_expression"}:
            inner, outer = outer, outer.parent
        if outer is None or outer.type not in _DISPLAYS or _is_unpacked(outer):
            break
        current, child = outer, inner
    return Use(UseKind.ELEMENT, child, current)


def is_main_block(block: Node) -> bool:
    """Whether a block runs only where its file is run as a program: ``if __name__ == "__main__":``."""
    owner = block.parent
    if block.type != "block" or owner is None or owner.type != "if_statement":
        return False
    condition = owner.child_by_field_name("condition")
    return condition is not None and b"__name__" in (condition.text or b"")
