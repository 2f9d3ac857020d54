"""Which bytes are deleted with a statement or with an element of a list: comments, commas, lines left empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.extractors.javascript.analysis.comments import comments_before
from excise.extractors.javascript.analysis.grammar import children, parse_tree

Range = tuple[int, int]


def removals(source: bytes, statements: Collection[Range], elements: Collection[Range]) -> list[Edit]:
    """The edits that delete statements, and elements of lists, by their bytes.

    A list that loses all its elements is deleted with its statement if that is an import, an export or a declaration.
    """
    nodes = _nodes_at(parse_tree(source).root_node, {*statements, *elements})
    edits = [_statement(nodes[span], source) for span in statements if span in nodes]
    by_list: dict[int, list[Node]] = defaultdict(list)
    for span in elements:
        node = nodes.get(span)
        if node is not None and node.parent is not None:
            by_list[node.parent.id].append(node)
    for gone in by_list.values():
        edits += _elements(gone, source)
    return edits


def _nodes_at(root: Node, spans: set[Range]) -> dict[Range, Node]:
    """The outermost named node of each span."""
    found: dict[Range, Node] = {}
    queue = [root]
    while queue:
        node = queue.pop()
        span = (node.start_byte, node.end_byte)
        if span in spans and span not in found and node.parent is not None:
            found[span] = node
        queue += reversed(node.named_children)
    return found


def _statement(node: Node, source: bytes) -> Edit:
    """The edit that deletes a statement or a member of a class, with the comments and the empty line above it."""
    comments = comments_before(node, source)
    start, end = (comments[0] if comments else node).start_byte, node.end_byte
    if source[end : end + 1] in {b";", b","}:
        end += 1
    line_start = source.rfind(b"\n", 0, start) + 1
    line_end = source.find(b"\n", end)
    line_end = len(source) if line_end < 0 else line_end
    if source[line_start:start].strip() or not _is_rest(source[end:line_end]):
        return Edit(start, end)
    start, end = line_start, min(len(source), line_end + 1)
    above = source[:start]
    is_first = not above.strip() or above.rstrip(b" \t\r\n").endswith(b"{")
    below_end = source.find(b"\n", end)
    below = source[end : below_end + 1] if below_end >= 0 else source[end:]
    if above.endswith(b"\n\n") and not source[end:].strip():
        start -= 1
    elif not below.strip() and (is_first or above.endswith((b"\n\n", b"\n\r\n"))):
        end += len(below)
    elif above.endswith(b"\n\n") and source[end:].lstrip().startswith(b"}"):
        start -= 1
    return Edit(start, end)


def _is_rest(after: bytes) -> bool:
    """Whether only white space or a comment follows on the line."""
    return not after.strip() or after.strip().startswith(b"//")


def _elements(gone: list[Node], source: bytes) -> Iterable[Edit]:
    parent = gone[0].parent
    assert parent is not None
    ids = {node.id for node in gone}
    every = [child for child in children(parent) if child.type != "comment"]
    if parent.type in {"lexical_declaration", "variable_declaration"}:
        every = [child for child in every if child.type == "variable_declarator"]
    kept = [child for child in every if child.id not in ids]
    if not kept:
        holder = _droppable(parent)
        return [_statement(holder, source)] if holder is not None else [_between(parent)]
    return [edit for node in gone for edit in _element(node, every, ids, source)]


def _droppable(node: Node) -> Node | None:
    """The statement that is only there for a list: a declaration, ``import {…}``, ``export {…}``, ``{…} = require()``.

    ``None`` for objects such as that of ``module.exports``.
    """
    found: Node | None = node
    while found is not None and found.type in {"named_imports", "import_clause", "export_clause", "object_pattern",
                                               "variable_declarator"}:  # fmt: skip
        if found.type == "import_clause" and len(found.named_children) > 1:
            return None
        parent = found.parent
        if parent is not None and found.type == "variable_declarator":
            others = [child for child in children(parent) if child.type == "variable_declarator"]
            if len(others) > 1:
                return None
        found = parent
    kinds = {"import_statement", "export_statement", "lexical_declaration", "variable_declaration"}
    return found if found is not None and found.type in kinds else None


def _between(parent: Node) -> Edit:
    """The edit that empties a list."""
    return Edit(parent.start_byte + 1, parent.end_byte - 1)


def _element(node: Node, every: list[Node], gone: set[int], source: bytes) -> Iterable[Edit]:
    """The edit that deletes one element and one comma; the whole line if nothing else is on it."""
    place = [child.id for child in every].index(node.id)
    comments = comments_before(node, source)
    start, end = (comments[0] if comments else node).start_byte, node.end_byte
    is_last = all(child.id in gone for child in every[place + 1 :])
    comma = source.find(b",", end)
    following = every[place + 1].start_byte if place + 1 < len(every) else _end_of(node)
    if 0 <= comma < following and not source[end:comma].strip():
        end = comma + 1
    if is_last:
        before = [child for child in every[:place] if child.id not in gone]
        if before and end == node.end_byte:  # no comma after the last element: that of the one before goes
            previous = before[-1]
            first_comma = source.find(b",", previous.end_byte, start)
            if first_comma >= 0:
                yield Edit(first_comma, first_comma + 1)
    line_start = source.rfind(b"\n", 0, start) + 1
    line_end = source.find(b"\n", end)
    if not source[line_start:start].strip() and line_end >= 0 and _is_rest(source[end:line_end]):
        yield Edit(line_start, line_end + 1)
    else:
        while source[end : end + 1] == b" " and not is_last:
            end += 1
        while is_last and source[start - 1 : start] == b" ":
            start -= 1
        yield Edit(start, end)


def _end_of(node: Node) -> int:
    return node.parent.end_byte if node.parent is not None else node.end_byte
