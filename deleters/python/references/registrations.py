"""Where removed code was registered: calls, and entries of tables, that were removed with it.

``handlers.add(parse)`` and ``PARSERS = {"json": parse}`` go with ``parse``, since they would fail without it. Nothing
in the tree says afterwards that they were there, so the problem statement does.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator

from tree_sitter import Node

from excise.deleters.deletion_record import PLACE
from excise.deleters.python.edits.file_plan import FilePlan, Span
from excise.deleters.python.edits.list_elements import elements_of
from excise.deleters.python.references.name_positions import is_main_block

MAX_MAIN_LINES = 4
"""Number of lines up to which what runs where a file is run as a program is shown."""
_EXPORTS = "__all__"
"""List of exported names; statements name these elsewhere."""
MAX_NEIGHBOUR = 40
"""Number of characters that are shown of the entry before."""


def registrations(plans: Iterable[FilePlan]) -> list[tuple[str, str]]:
    """(path, source text) of each removed call, and (path, ``TABLE: entry``) of each removed entry, file by file."""
    return [(plan.path, text) for plan in plans if not plan.deleted for text in dict.fromkeys(_in_file(plan))]


def _in_file(plan: FilePlan) -> Iterator[str]:
    for start, end in sorted(plan.statements):
        node = plan.node_at(start, end)
        inner = node.child_by_field_name("consequence")
        if inner is not None and is_main_block(inner) and node.end_point[0] - node.start_point[0] < MAX_MAIN_LINES:
            yield plan.source[start:end].decode(errors="replace")
        elif node.type in {"call", "await"} and not _in_main_or_function(node):
            yield _text(plan, start, end)
    for container, elements in sorted(plan.elements.items()):
        statement = _statement(plan.node_at(*container))
        table = _target(statement)
        if table == _EXPORTS or plan.is_removed(statement.start_byte, statement.end_byte) or "import" in statement.type:
            continue
        places = dict(_places(plan, container, elements))
        for start, end in sorted(elements):
            yield f"{table}: {_text(plan, start, end)}{places.get((start, end), '')}"


def _places(plan: FilePlan, container: Span, gone: Collection[Span]) -> Iterator[tuple[Span, str]]:
    """Where removed entries stood that were not the last ones of their table: order may be behaviour."""
    all_of_it = [(each.start_byte, each.end_byte) for each in elements_of(plan.node_at(*container))]
    last = max((number for number, each in enumerate(all_of_it) if each not in gone), default=-1)
    for number, each in enumerate(all_of_it[:last]):
        if each in gone:
            before = next((other for other in reversed(all_of_it[:number]) if other not in gone), None)
            text = _text(plan, *before).partition("\n")[0] if before is not None else ""
            shown = text if len(text) <= MAX_NEIGHBOUR else f"{text[: MAX_NEIGHBOUR - 1]}…"
            yield each, f"{PLACE}after {shown}" if shown else f"{PLACE}the first one"


def _text(plan: FilePlan, start: int, end: int) -> str:
    """The source text, its lines after the first without their common indentation."""
    first, *rest = plan.source[start:end].decode(errors="replace").split("\n", 1)
    return "\n".join([first, *map(textwrap.dedent, rest)])


def _statement(node: Node) -> Node:
    """The simple statement around a node."""
    while node.parent is not None and node.parent.type not in {"block", "module"}:
        node = node.parent
    return node


def _target(statement: Node) -> str:
    """What a statement assigns to; else its first line, up to an opening bracket."""
    inner = statement.children[0] if statement.children else statement
    left = inner.child_by_field_name("left")
    text = (left or statement).text or b""
    return text.decode(errors="replace").partition("\n")[0].partition("(")[0].strip()


def _in_main_or_function(node: Node) -> bool:
    """Whether a statement runs only where its file is run as a program, or when a function is called."""
    around = node.parent
    while around is not None and not is_main_block(around) and around.type != "function_definition":
        around = around.parent
    return around is not None
