"""Where in a statement a name stands, and so what has to go if the name goes."""

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


class Kind(Enum):
    """What a use is part of."""

    ELEMENT = auto()
    """An element of a display: the element can go."""
    OPERAND = auto()
    """An operand of ``+``: it can go with its sign."""
    STATEMENT = auto()
    """A simple statement that can go."""
    ASSIGNMENT = auto()
    """The value of an assignment: the statement can go, and the assigned names with it."""
    DECORATOR = auto()
    """A decorator of a definition."""
    DEPENDENT = auto()
    """A base class, default or annotation of a definition."""
    HEADER = auto()
    """The condition or subject of a compound statement, or something else that cannot go alone."""


class Use(NamedTuple):
    """A use of a name and its surroundings."""

    kind: Kind
    node: Node
    """The element, operand, statement or (decorated) definition."""
    container: Node | None = None
    """The display or sum that holds an element or operand."""


def use_at(root: Node, start: int, end: int) -> Use:
    """What the name or attribute chain at a span is part of."""
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
    return Use(Kind.HEADER, child)


def _use_in(parent: Node, child: Node) -> Use | None:
    """What the surrounding node makes of a part of it; ``None`` to look further out."""
    kind = parent.type
    use: Use | None = None
    if kind == "binary_operator" and _is_sum_of_names(parent, child):
        use = Use(Kind.OPERAND, child, parent)
    elif kind == "decorator":
        use = Use(Kind.DECORATOR, parent.parent or parent)
    elif kind in {"function_definition", "class_definition"}:
        around = parent.parent
        use = Use(Kind.DEPENDENT, around if around is not None and around.type == "decorated_definition" else parent)
    elif kind in {"assignment", "augmented_assignment"}:
        use = _assignment_use(parent, child)
    elif kind == "expression_statement" or kind in _SIMPLE:
        use = Use(Kind.STATEMENT, parent)
    elif kind in _HEADERS or kind in {"block", "module"}:
        use = Use(Kind.HEADER, parent)
    return use


def _assignment_use(assignment: Node, child: Node) -> Use:
    statement = assignment
    while statement.parent is not None and statement.type != "expression_statement":
        statement = statement.parent
    if assignment.child_by_field_name("type") == child:
        return Use(Kind.DEPENDENT, statement)
    if assignment.type == "augmented_assignment" or assignment.child_by_field_name("left") == child:
        return Use(Kind.STATEMENT, statement)
    return Use(Kind.ASSIGNMENT, statement)


def _is_sum_of_names(parent: Node, child: Node) -> bool:
    """``a.__all__ + b.__all__`` and ``xs + m.HANDLERS``: the name itself is an operand of a sum."""
    operator = parent.child_by_field_name("operator")
    return child.type in {"identifier", "attribute"} and operator is not None and operator.type == "+"


def _element(node: Node, root: Node) -> Use | None:
    """The element that holds the node, if the nearest enclosing construct that matters is a display."""
    child, parent = node, node.parent
    while parent is not None and parent != root:
        if parent.type in _DISPLAYS:
            return Use(Kind.HEADER, parent) if _is_unpacked(parent) else _outermost(parent, child)
        if _use_in(parent, child) is not None or parent.type.endswith("_comprehension") or parent.type == "lambda":
            return None
        child, parent = parent, parent.parent
    return None


def _is_unpacked(display: Node) -> bool:
    """``a, b = f, g`` and targets of assignments: elements have partners elsewhere."""
    parent = display.parent
    if parent is None or parent.type not in {"assignment", "for_statement"}:
        return False
    left = parent.child_by_field_name("left")
    if left == display:
        return True
    return parent.type == "assignment" and left is not None and left.type in {"pattern_list", "tuple_pattern"}


def _outermost(container: Node, element: Node) -> Use:
    """``[(f, 1), (g, 2)]``: a tuple inside a display is a record, so it goes as a whole."""
    current, child = container, element
    while current.type in _TUPLES:
        outer, inner = current.parent, current
        while outer is not None and outer.type in {"pair", "parenthesized_expression"}:
            inner, outer = outer, outer.parent
        if outer is None or outer.type not in _DISPLAYS or _is_unpacked(outer):
            break
        current, child = outer, inner
    return Use(Kind.ELEMENT, child, current)
