"""Expressions and statements of a module that do nothing but to make data, and those that only fill a container."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.loop_ends import is_bound
from excise.extractors.python.analysis.grammar import descendants, field, of_types, statements, text_of

_FILLING = frozenset({"append", "appendleft", "add", "extend", "insert", "setdefault", "update"})
"""Methods that put something into a container, and need not be asked for what they return."""
_SMALL = frozenset({"pass_statement", "return_statement"})
"""Statements that alone make no sense of a block."""


def fillers(plan: FilePlan, name: str) -> list[Node]:
    """The statements of a file that put data into what the module binds a name to, ``NAMES["a"] = "b"`` or
    ``NAMES.insert(0, "b")``; none if a block would be left without statements."""
    found: list[Node] = []
    local_makers = _local_makers(plan.root)
    for statement in of_types(plan.root, "expression_statement"):
        functions = [each for each in _around(statement) if each.type == "function_definition"]
        if (
            _fills(statement.named_children[0], name, local_makers, in_function=bool(functions))
            and not plan.is_removed(statement.start_byte, statement.end_byte)
            and not any(_binds(each, name) for each in functions)
        ):
            found.append(statement)
    return [] if any(_is_emptied(plan, each, found) for each in found) else found


def _fills(expression: Node, name: str, makers: Collection[bytes], *, in_function: bool) -> bool:
    """Whether what a statement consists of puts data into a container of this name, and does nothing else."""
    if expression.type == "call":
        function = field(expression, "function")
        return (
            function.type == "attribute"
            and text_of(field(function, "object")) == name
            and text_of(field(function, "attribute")) in _FILLING
            and makes_data(field(expression, "arguments"), makers)
        )
    if expression.type == "augmented_assignment" and not in_function:
        is_it = text_of(field(expression, "left")) == name and text_of(field(expression, "operator")) in {"+=", "|="}
        return is_it and makes_data(field(expression, "right"), makers)
    if not is_constant(expression, "subscript", makers):
        return False
    target = field(expression, "left")
    return text_of(field(target, "value")) == name and makes_data(target, makers)


def _around(node: Node) -> Iterator[Node]:
    """The nodes around one, from the inside out."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _binds(function: Node, name: str) -> bool:
    """Whether a function has a parameter or a variable of this name."""
    named = [each for each in of_types(function, "identifier") if text_of(each) == name]
    parameters = field(function, "parameters")
    return any(is_bound(each) or parameters in _around(each) for each in named)


def _is_emptied(plan: FilePlan, statement: Node, gone: Collection[Node]) -> bool:
    """Whether nothing that makes sense is left of the block around a statement of those that are ``gone``."""
    block = statement.parent
    if block is None or block.type == "module":
        return False
    left = [each for each in statements(block) if each not in gone and not (_is_text(each) or each.type in _SMALL)]
    return all(plan.is_removed(each.start_byte, each.end_byte) for each in left)


def _local_makers(root: Node) -> frozenset[bytes]:
    """Names of functions in functions of a file, each defined once, that only return what they make of their
    arguments."""
    every = of_types(root, "function_definition")
    names = [text_of(field(each, "name")).encode() for each in every]
    inner = (each for each in every if any(outer.type == "function_definition" for outer in _around(each)))
    return frozenset(
        name for each in inner if names.count(name := text_of(field(each, "name")).encode()) == 1 and _only_makes(each)
    )


def pure_functions(root: Node) -> frozenset[bytes]:
    """Names of private functions of a module, defined once, that only return what they make of their arguments."""
    every = [text_of(field(each, "name")).encode() for each in of_types(root, "function_definition")]
    found = set[bytes]()
    for function in root.named_children:
        if function.type == "function_definition" and _only_makes(function):
            name = text_of(field(function, "name")).encode()
            found |= {name} if name.startswith(b"_") and every.count(name) == 1 else set()
    return frozenset(found)


def _only_makes(function: Node) -> bool:
    """Whether a function only returns what it makes of its arguments, none of which has the name of a maker."""
    body = [each for each in statements(field(function, "body")) if not _is_text(each)]
    arguments = field(function, "parameters")
    types = {each.id for node in of_types(arguments, "type") for each in descendants(node)}
    parameters = {each.text for each in of_types(arguments, "identifier") if each.id not in types}
    is_expression = len(body) == 1 and body[0].type == "return_statement" and parameters.isdisjoint(MAKERS)
    return is_expression and makes_data(body[0])


def _is_text(statement: Node) -> bool:
    """Whether a statement is a docstring."""
    return statement.type == "expression_statement" and statement.named_children[0].type == "string"


def is_constant(assignment: Node, target: str = "identifier", makers: Collection[bytes] = ()) -> bool:
    """Whether an assignment binds one name to data: literals, names, and calls of :data:`MAKERS`, or of ``makers``.

    ``target`` is the type of the node that names what it binds.
    """
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if assignment.type != "assignment" or left is None or left.type != target or right is None:
        return False
    return makes_data(right, makers)


def makes_data(expression: Node, makers: Collection[bytes] = ()) -> bool:
    """Whether an expression does nothing but to make data."""
    for node in descendants(expression):
        if node.type in {"assignment", "named_expression", "await", "yield"}:
            return False
        if node.type == "call":
            function = node.child_by_field_name("function")
            whole = (function.text or b"") if function is not None else b""
            name = whole.rpartition(b".")[2]
            if name not in MAKERS and whole not in makers and not _LOADER.fullmatch(name):
                return False
    return True


_LOADER = re.compile(rb"_(?:load|read|build|make|create|compile|parse|collect|generate)\w*")
"""Names of private functions that make data, and nothing happens but that."""
MAKERS = frozenset(
    b"compile frozenset set dict tuple list object maketrans split join format strip encode decode sorted "
    b"range timedelta Decimal Fraction namedtuple NamedTuple TypedDict TypeVar ParamSpec TypeVarTuple NewType escape "
    b"zip str int float bytes chr ord len items keys values union Struct attrgetter itemgetter methodcaller "
    b"partial MappingProxyType dedent replace count defaultdict OrderedDict deque Counter Lock RLock Event "
    b"WeakKeyDictionary WeakValueDictionary cast capitalize lower title upper".split()
)
"""Functions and methods that make data of data, and do nothing else."""
