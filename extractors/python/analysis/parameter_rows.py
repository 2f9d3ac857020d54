"""The rows of ``@pytest.mark.parametrize``: which element of a list makes which parameter id.

The ids are those of pytest's documentation ("parametrize", "Different options for test IDs"): texts as they are,
numbers and ``None`` written out, names of functions and classes, and for all else the argument's name with the row's
number. Ids with a number change when an earlier row goes.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import (
    field,
    inner_definition,
    parse_tree,
    statements,
    text_of,
)
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.types import Symbol

Span = tuple[int, int]

MAX_IDS = 4000
"""Number of ids of one function up to which they are told apart."""
MAX_NAMES = 6
"""Number of values of a row up to which these may be names, of which it is not known what they stand for."""
_NAMES = frozenset({"identifier", "attribute"})
MAX_TEXT = 100
"""Number of characters of a text from which pytest 9.2 and later take the row's number for its id."""
_LISTS = frozenset({"list", "tuple"})
_PARAMETRIZE = re.compile(r"(?:^|\.)parametrize$")
_PARAM = re.compile(r"(?:^|\.)param$")


class RowElement(NamedTuple):
    """An element that goes with a row: of the list of values, or of the list of ids."""

    container: Span
    """Bytes of the list."""
    element: Span
    """Bytes of the element."""


class _Row(NamedTuple):
    """One row of a decorator."""

    elements: tuple[RowElement, ...]
    values: tuple[Node, ...]
    """Its values; empty if their number is not that of the arguments."""
    name: str | None
    """Its id, if it is written down."""


class _Table(NamedTuple):
    """The rows of one decorator."""

    arguments: tuple[str, ...]
    rows: list[_Row]


class RowsApart(NamedTuple):
    """What it takes to remove some rows of a test function's parameters."""

    elements: list[RowElement]
    """What goes."""
    renamed: frozenset[str]
    """Parameter ids that other rows have no longer, or may have no longer, since their numbers are others."""
    constants: frozenset[str]
    """Names of the module that stand for lists which lose elements."""


def rows_apart(module: PythonModule, function: Symbol, parameters: Collection[str]) -> RowsApart | None:
    """How a test function loses the rows with the parameter ids ``parameters``, and no others.

    ``None`` if it cannot: ids are not known for sure, another row would get the id of one that was there, or no row
    would be left. Which of two ids a long text has is known if one of ``parameters`` shows it.
    """
    tables = _tables(module, function)
    if not tables or not parameters or any(_has_too_many(row) for table in tables for row in table.rows):
        return None
    ways: list[RowsApart | None] = []
    for are_numbered in (False, True):
        before = [_ids(table.arguments, list(enumerate(table.rows)), are_numbered) for table in tables]
        known = _ids_of_combinations(before)
        if known is None or known.keys() >= set(parameters):
            ways.append(_apart(module, function, parameters, tables, before, known, are_numbered))
    found = [each for each in ways if each is not None]
    if not found or len(found) < len(ways) or any(each.elements != found[0].elements for each in found):
        return None
    return found[0]._replace(renamed=frozenset().union(*(each.renamed for each in found)))


def _apart(
    module: PythonModule,
    function: Symbol,
    parameters: Collection[str],
    tables: Sequence[_Table],
    before: Sequence[Mapping[int, frozenset[str]]],
    known: Mapping[str, tuple[int, ...]] | None,
    are_numbered: bool,
) -> RowsApart | None:
    """See :func:`rows_apart`; ``before`` and ``known`` are the ids if long texts have numbers, or have none."""
    if known is None:
        return None
    found, combinations = {known[each] for each in parameters}, set(known.values())
    gone: list[set[int]] = []
    for number, table in enumerate(tables):
        with_row = [{c for c in combinations if c[number] == row} for row in range(len(table.rows))]
        gone.append({row for row, each in enumerate(with_row) if each <= found})
    if found != {c for c in combinations if any(row in gone[number] for number, row in enumerate(c))}:
        return None
    after = [
        _ids(table.arguments, [(n, row) for n, row in enumerate(table.rows) if n not in rows], are_numbered)
        for table, rows in zip(tables, gone, strict=True)
    ]
    later = _ids_of_combinations(after) if all(after) else None
    if later is None or any(known.get(each, combination) != combination for each, combination in later.items()):
        return None
    changed = [{n for n in new if new[n] != old[n]} for old, new in zip(before, after, strict=True)]
    elements = [
        element
        for table, rows in zip(tables, gone, strict=True)
        for n in sorted(rows)
        for element in table.rows[n].elements
    ]
    staying = ((each, combination) for each, combination in known.items() if combination not in found)
    renamed = (each for each, c in staying if any(n in new for n, new in zip(c, changed, strict=True)))
    outside = [e.container[0] for e in elements if not function.start <= e.container[0] < function.end]
    constants = {b.name for b in module.bindings if any(b.start <= place < b.end for place in outside)}
    return RowsApart(elements, frozenset(renamed), frozenset(constants))


def _has_too_many(row: _Row) -> bool:
    """Whether the values of a row are so many names that its id may be one of thousands."""
    return row.name is None and sum(value.type in _NAMES for value in row.values) > MAX_NAMES


def _ids_of_combinations(per_table: Sequence[Mapping[int, frozenset[str]]]) -> dict[str, tuple[int, ...]] | None:
    """Each id that a combination of rows may have, to the numbers of these rows; ``None`` if one may be that of two.

    The decorator next to the function comes first in an id.
    """
    found: dict[str, tuple[int, ...]] = {}
    for combination in itertools.product(*per_table):
        pieces = [ids[row] for ids, row in zip(per_table, combination, strict=True)]
        for parts in itertools.product(*reversed(pieces)):
            if found.setdefault("-".join(parts), combination) != combination or len(found) > MAX_IDS:
                return None
    return found


def _ids(arguments: Sequence[str], rows: Sequence[tuple[int, _Row]], are_numbered: bool) -> dict[int, frozenset[str]]:
    """The ids that pytest may give each of these rows of a decorator, if there are no others; by their first numbers.

    Equal ids of several rows get numbers of their own. ``are_numbered``: long texts have the row's number for an id.
    """
    plain = {n: _ids_of_row(arguments, row, place, are_numbered) for place, (n, row) in enumerate(rows)}
    shared, seen = Counter(plain.values()), Counter[frozenset[str]]()
    found: dict[int, frozenset[str]] = {}
    for n, ids in plain.items():
        endings = (f"{seen[ids]}", f"_{seen[ids]}") if shared[ids] > 1 else ("",)
        seen[ids] += 1
        found[n] = frozenset(each + ending for each in ids for ending in endings)
    return found


def _ids_of_row(arguments: Sequence[str], row: _Row, place: int, are_numbered: bool) -> frozenset[str]:
    """The ids that pytest may give the row at this place, if no other one has the same."""
    if row.name is not None:
        return frozenset({row.name})
    values = zip(arguments, row.values, strict=True)
    pieces = [_ids_of_value(name, value, place, are_numbered) for name, value in values]
    return frozenset("-".join(parts) for parts in itertools.product(*pieces))


def _ids_of_value(argument: str, node: Node, number: int, are_numbered: bool) -> frozenset[str]:
    numbered = f"{argument}{number}"
    written = text_of(node)
    if node.type in _NAMES:
        return frozenset({numbered, written, written.rpartition(".")[2]})
    try:
        value = ast.literal_eval(f"({written})")  # texts one below the other are one
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return frozenset({"<lambda>" if node.type == "lambda" else numbered})
    if isinstance(value, str | bytes):
        return frozenset({numbered if are_numbered and len(value) > MAX_TEXT else _escaped(value)})
    is_written = value is None or (isinstance(value, (int, float, complex)) and len(written) <= MAX_TEXT)
    return frozenset({str(value) if is_written else numbered})


def _escaped(value: str | bytes) -> str:
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    plain = value.decode("ascii", "backslashreplace")
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in plain)


def _tables(module: PythonModule, function: Symbol) -> list[_Table] | None:
    """The tables of a test function's decorators, from above; ``None`` if one of them cannot be read."""
    node = parse_tree(module.source).root_node.descendant_for_byte_range(function.start, function.end)
    while node is not None and node.type != "decorated_definition":
        node = node.parent
    if node is None or node.start_byte != function.start or inner_definition(node).end_byte != function.end:
        return None
    found: list[_Table] = []
    for decorator in (each for each in node.named_children if each.type == "decorator"):
        call = next(iter(decorator.named_children), None)
        if call is None or call.type != "call" or not _PARAMETRIZE.search(text_of(field(call, "function"))):
            continue
        table = _table(module, call)
        if table is None or any(len(row.values) != len(table.arguments) for row in table.rows if row.name is None):
            return None
        found.append(table)
    return found


def _table(module: PythonModule, call: Node) -> _Table | None:
    positional, named = _arguments(call)
    names, values = (
        named.get(key) or (positional[place] if place < len(positional) else None)
        for place, key in enumerate(("argnames", "argvalues"))
    )
    if (
        names is None
        or values is None
        or len(positional) > 2
        or not named.keys() <= {"argnames", "argvalues", "ids", "indirect"}
    ):
        return None
    arguments = _names(names)
    container = _list_of(module, values)
    ids = _list_of(module, named["ids"]) if "ids" in named else None
    if not arguments or container is None or ("ids" in named and ids is None):
        return None
    elements = _elements(container)
    written = _elements(ids) if ids is not None else None
    if elements is None or (ids is not None and (written is None or len(written) != len(elements))):
        return None
    rows: list[_Row] = []
    for number, element in enumerate(elements):
        gone = [RowElement(_span(container), _span(element))]
        values_of_row, name = _values(element, is_single=len(arguments) == 1)
        if written is not None and ids is not None:
            gone.append(RowElement(_span(ids), _span(written[number])))
            name = _text_of(written[number]) if name is None else name
            if name is None:
                return None
        rows.append(_Row(tuple(gone), values_of_row, name))
    return _Table(arguments, rows)


def _arguments(call: Node) -> tuple[list[Node], dict[str, Node]]:
    """The positional and the named arguments of a call."""
    positional: list[Node] = []
    named: dict[str, Node] = {}
    for each in statements(field(call, "arguments")):
        if each.type == "keyword_argument":
            named[text_of(field(each, "name"))] = field(each, "value")
        else:
            positional.append(each)
    return positional, named


def _values(element: Node, *, is_single: bool) -> tuple[tuple[Node, ...], str | None]:
    """The values of a row, and the id that ``pytest.param`` gives it."""
    if element.type == "call" and _PARAM.search(text_of(field(element, "function"))):
        positional, named = _arguments(element)
        name = _text_of(named["id"]) if "id" in named else None
        is_known = "id" not in named or name is not None
        return tuple(positional) if is_known else (), name
    if is_single:
        return (element,), None
    return tuple(_elements(element) or ()) if element.type in _LISTS else (), None


def _names(node: Node) -> tuple[str, ...]:
    """The names of the arguments: ``"a, b"`` or ``("a", "b")``."""
    if node.type in _LISTS:
        names = [_text_of(each) for each in _elements(node) or ()]
        return tuple(name for name in names if name) if all(names) else ()
    written = _text_of(node) or ""
    return tuple(name.strip() for name in written.split(",") if name.strip())


def _text_of(node: Node) -> str | None:
    """The value of a text; ``None`` if the node is no text that stands there."""
    if node.type not in {"string", "concatenated_string"}:
        return None
    try:
        value = ast.literal_eval(f"({text_of(node)})")  # texts one below the other are one
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else None


def _list_of(module: PythonModule, node: Node) -> Node | None:
    """The list that a node is, or that the module assigns to the name that it is, if nothing else uses that name."""
    if node.type in _LISTS:
        return node
    if node.type != "identifier":
        return None
    name = text_of(node)
    values = [value for target, value in _assigned(parse_tree(module.source).root_node) if target == name]
    uses = [ref for ref in module.references if ref.chain.partition(".")[0] == name]
    bound = [each for each in module.bindings if each.name == name]
    is_alone = len(values) == len(bound) == 1 and len(uses) == 1
    return values[0] if is_alone and values[0].type in _LISTS else None


def _assigned(root: Node) -> Iterator[tuple[str, Node]]:
    """(name, value) of each plain assignment of a module."""
    for statement in statements(root):
        for each in statement.named_children if statement.type == "expression_statement" else ():
            left, right = each.child_by_field_name("left"), each.child_by_field_name("right")
            if each.type == "assignment" and left is not None and right is not None and left.type == "identifier":
                yield text_of(left), right


def _elements(container: Node) -> list[Node] | None:
    """The elements of a list or tuple; ``None`` if their number is not known."""
    found = statements(container)
    return None if any(each.type == "list_splat" for each in found) else found


def _span(node: Node) -> Span:
    return node.start_byte, node.end_byte
