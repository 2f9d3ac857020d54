"""Rows of tables in tests of Go that a statement shows: with an error, with something empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from tree_sitter import Node

from excise.deleters.statement.chosen_rows import MAX_LINE, Row, chosen_rows, shown_table
from excise.extractors.go.analysis.grammar import descendants, names_in, parse_tree, statements, text
from excise.extractors.go.execution.expected_values import element_type, fields_of

MAX_DECLARATIONS = 6
"""Number of declarations above a table."""
_TABLES = frozenset({"slice_type", "array_type", "implicit_length_array_type", "map_type"})
_ERROR = re.compile(r"(?i)err|fail|panic|invalid")
"""Names of fields that say that a call fails."""
_SUCCESS = re.compile(r"(?i)(?:is|want)?_?(?:ok|valid|success)")
_NO_ERROR = frozenset({"nil", "false", '""'})
"""Values of such fields where it does not."""
_EMPTY = re.compile(r'(?<![\w"\\])""(?!")|``|^nil$|\(nil\)|\{\s*\}$')
_REPORTED = re.compile(r"\b[tbf]\w?\.(?:Fatal|Error|Log|Skip)f?\(")
"""What a test says of a failure."""
_IF_BLANK = re.compile(r'== ""')
"""Where a test takes an empty text in a row for another value."""
_DECLARATIONS = frozenset({"short_var_declaration", "var_declaration", "const_declaration"})


def table_rows(source: bytes, start: int, end: int, names: Set[str]) -> str:
    """Some rows of the first table that a test function goes through, with the declarations that these need and the
    line that uses each; empty if there is none, or if neither the rows nor what is done with them has some of
    ``names``. The function is that from ``start`` to ``end``.

    At most every second row is shown; which ones of several alike depends on their texts alone.
    """
    root = parse_tree(source).root_node
    functions = (each for each in root.children if each.type == "function_declaration")
    function = next((each for each in functions if start <= each.start_byte < end), None)
    body = function.child_by_field_name("body") if function is not None else None
    if function is None or body is None or names.isdisjoint(names_in(function, source)):
        return ""
    for loop in (each for each in descendants(body) if each.type == "range_clause"):
        name, table = _table_of(loop, body, root, source)
        use = _use(loop, source, names)
        wanted = names if names.isdisjoint(re.findall(r"\w+", use)) else frozenset[str]()
        is_default = loop.parent is not None and _IF_BLANK.search(text(loop.parent, source)) is not None
        if table is not None and (shown := _chosen(table, root, source, wanted, with_blanks=not is_default)):
            return _written(function, source, (name, table, use), shown)
    return ""


def _table_of(loop: Node, body: Node, root: Node, source: bytes) -> tuple[str, Node | None]:
    """The name of the variable that a loop goes through, and the table in it; no name if the loop itself has it."""
    ranged = loop.child_by_field_name("right")
    if ranged is None or ranged.type == "composite_literal":
        return "", ranged
    name = text(ranged, source)
    files = [part for each in root.children if each.type == "var_declaration" for part in descendants(each)]
    for node in (*descendants(body), *files):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "var_spec":
            left, right = node.child_by_field_name("name"), node.child_by_field_name("value")
        if left is not None and right is not None and text(left, source) == name:
            value = right.named_children[0] if right.type == "expression_list" and right.named_children else right
            return name, value if value.type == "composite_literal" else None
    return name, None


def _chosen(table: Node, root: Node, source: bytes, wanted: Set[str], *, with_blanks: bool) -> list[Row]:
    """The rows that are shown: one with an error, one with something empty, one of each form of many; only those that
    have some of the names ``wanted``, if there are any, and ``with_blanks`` also those with empty texts."""
    kind, body = table.child_by_field_name("type"), table.child_by_field_name("body")
    if kind is None or body is None or kind.type not in _TABLES:
        return []
    held = element_type(kind, root, source)
    fields = [name for name, _ in fields_of(held, root, source)] if held is not None else []
    number = sum(each.type != "comment" for each in body.named_children)
    rows = [row for row in _rows(body, fields, source) if not wanted or not wanted.isdisjoint(row.names)]
    return chosen_rows([row for row in rows if with_blanks or '""' not in row.text], number)


def _rows(body: Node, fields: list[str], source: bytes) -> Iterator[Row]:
    """The rows of a table that are written out; ``fields`` are the names of their parts, where these are known."""
    for node in body.named_children:
        inner = node.named_children[-1] if node.named_children else None
        while inner is not None and inner.type == "literal_element" and inner.named_children:
            inner = inner.named_children[-1]
        if inner is None or inner.type not in {"literal_value", "composite_literal", "unary_expression"}:
            continue
        if any(each.type == "raw_string_literal" and "\n" in text(each, source) for each in descendants(node)):
            continue  # it would lose the tabs that its lines begin with
        value = next((each for each in descendants(inner) if each.type == "literal_value"), inner)
        cells = list(_cells(value, fields, source))
        failing = [name for name, _ in cells if _ERROR.search(name)]
        is_error = any(name in failing and cell not in _NO_ERROR for name, cell in cells)
        is_error = is_error or any(_SUCCESS.fullmatch(name) and cell == "false" for name, cell in cells)
        is_empty = any(name not in failing and _EMPTY.search(cell) for name, cell in cells)
        text_shown = _moved(node, source, "\t")
        yield Row(node.start_byte, text_shown, is_error, is_empty, frozenset(names_in(node, source)))


def _cells(row: Node, fields: list[str], source: bytes) -> Iterator[tuple[str, str]]:
    """The names of a row's fields, where they are known, and their values."""
    cells = [each for each in row.named_children if each.type != "comment"]
    for number, cell in enumerate(cells):
        if cell.type == "keyed_element":
            yield text(cell.named_children[0], source), text(cell.named_children[-1], source)
        else:
            yield (fields[number] if number < len(fields) else ""), text(cell, source)


def _written(function: Node, source: bytes, place: tuple[str, Node, str], rows: list[Row]) -> str:
    """What is shown of a test: declarations, the table with some of its rows, and the line that uses each."""
    name, table, use = place
    kind, body = table.child_by_field_name("type"), function.child_by_field_name("body")
    assert kind is not None
    assert body is not None
    wanted = frozenset[str]().union(*(row.names for row in rows)) | set(re.findall(r"\w+", use))
    before = [each for each in statements(body) if each.end_byte <= table.start_byte and each.type in _DECLARATIONS]
    declared: list[str] = []
    for each in reversed(before):
        head = set(names_in(each.child_by_field_name("left") or each, source))
        if wanted.isdisjoint(head):
            continue
        if len(text(each, source)) > MAX_LINE or len(declared) == MAX_DECLARATIONS:
            rows = [row for row in rows if head.isdisjoint(row.names)]
            continue
        wanted |= set(names_in(each, source))
        declared.insert(0, _moved(each, source, ""))
    if not rows:
        return ""
    opening = f"{f'{name} := ' if name else ''}{_moved(kind, source, '')}{{"
    lines = [f"// {text(function.child_by_field_name('name') or function, source)}", *declared]
    return shown_table([*lines, opening, *(f"\t{row.text}," for row in rows), "\t// …", "}"], use)


def _use(loop: Node, source: bytes, names: Set[str]) -> str:
    """The line of a loop that gives the row to code: one that names some of ``names`` if there is one, or else with the
    first line that does."""
    left, around = loop.child_by_field_name("left"), loop.parent
    if left is None or around is None:
        return ""
    row = text(left, source).rpartition(",")[2].strip()
    block = around.child_by_field_name("body")
    every = [line.strip() for line in text(block, source).splitlines()] if block is not None else []
    every = [line for line in every if len(line) <= MAX_LINE and not _REPORTED.search(line)]
    lines = [line for line in every if re.search(rf"\b{re.escape(row)}\b[^\n]*\)", line) and ".Run(" not in line]
    named = [line for line in every if "(" in line and not names.isdisjoint(re.findall(r"\w+", line))]
    of_row = [line for line in lines if line in named]
    found = of_row[:1] or [*lines[:1], *named[:1]]
    return "; ".join(line.removesuffix(" {") for line in found) if len("".join(found)) <= MAX_LINE else found[0]


def _moved(node: Node, source: bytes, indent: str) -> str:
    """The source of a node whose further lines have its own line's indentation replaced."""
    line = source.rfind(b"\n", 0, node.start_byte) + 1
    own = re.match(r"[ \t]*", source[line : node.start_byte].decode("utf-8", "replace"))
    return text(node, source).replace(f"\n{own[0] if own else ''}", f"\n{indent}")
