"""Edits that remove whole statements of a file and leave its layout tidy.

With a definition, its decorators and the comment lines directly above it are removed, with an assignment the string
directly below it, which describes it. The larger of the numbers of
blank lines above and below the removed lines is kept. A block that loses its last statement gets ``pass``; an ``else``
goes, and so does an ``if`` or ``try`` that loses all its statements, and a ``with catch_warnings()``.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from functools import lru_cache

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.extractors.python.analysis.grammar import COMPOUND, comments, inner_definition, parse_tree, statements

Span = tuple[int, int]

_RULER = re.compile(rb"^#+\s*[-=#*~_]{3,}|^#{3,}|^#\s*(region|endregion|%%)")
_DIRECTIVE = re.compile(rb"^#\s*(fmt|isort|yapf|mypy|ruff|flake8|pylint|pyright|type|noqa|pragma|coding|!|-\*-)\b|^#!")
_PLURAL = re.compile(rb"#+[ \t]*((?:[A-Z][\w-]*[^\Ws][ \t])?[A-Z]?[\w-]*[a-z]s)")
"""A comment of one or two words that say what several definitions are; ``# Handles errors`` says what one does."""
_REMOVED_WHEN_EMPTY = frozenset({"if_statement", "try_statement", "with_statement"})
_WITHOUT_EFFECT = re.compile(
    rb"with\s+(?:warnings\s*\.\s*catch_warnings\s*\([^()]*\)|(?:contextlib\s*\.\s*)?suppress\s*\([^()]*\))\s*:"
)
"""A ``with`` statement that is there only for what its block does."""
_OF_WARNINGS = re.compile(rb"(?:warnings\s*\.\s*)?(?:simplefilter|filterwarnings|resetwarnings)\s*\(")
"""A statement that matters only to others of the block."""


class StatementRemover:
    """Plans the edits that remove the statements with the given spans from one parsed file."""

    def __init__(self, source: bytes, root: Node, removed: Collection[Span], lost_names: Collection[str]) -> None:
        self.source = source
        self.root = root
        self.removed = set(removed)
        self._sorted = sorted(removed)
        self.lost_names = frozenset(lost_names)
        self.line_starts = _line_starts(source)
        self.comments = _comment_rows(source)
        self.edits: list[Edit] = []
        self.gaps: list[tuple[int, int, bool, bool]] = []

    def plan(self) -> list[Edit]:
        """All edits of the file."""
        self._prune(self.root)
        self._close_gaps()
        return self.edits

    # ------------------------------------------------------------------------------------ blocks
    def _touches(self, node: Node) -> bool:
        """Whether a removed statement is in a node, which may be that statement."""
        end = node.end_byte
        first = bisect_left(self._sorted, (node.start_byte, 0))
        inside = itertools.takewhile(lambda span: span[0] <= end, itertools.islice(self._sorted, first, None))
        return any(span[1] <= end for span in inside)

    def _prune(self, block: Node) -> None:
        body = statements(block)
        gone = [s for s in body if self._is_removed(s)]
        if not gone:
            for statement in body:
                self._descend(statement)
            return
        clause = block.parent
        if len(gone) == len(body) and clause is not None and clause.type == "else_clause" and self._begins_line(clause):
            last = self._row(end_of_comments_in(self.source, clause.end_byte, clause.start_point[1]) - 1)
            self.gaps.append((clause.start_point[0], last + 1, False, True))
            return
        if len(gone) == len(body) and block.type != "module":
            first, last = self._start_with_comments(body[0], body), self._end_with_comment(body[-1])
            self.edits.append(Edit(first, last, b"pass"))
            return
        going = {s.id for s in gone}
        for statement in body:
            if statement.id in going:
                self._remove(statement, body, block)
            else:
                self._descend(statement)

    def _descend(self, statement: Node) -> None:
        if self._touches(statement):
            for block in _blocks(statement):
                self._prune(block)

    def _is_removed(self, statement: Node) -> bool:
        """Whether a statement is removed, or all its parts are, or the assignment is that a string describes."""
        if (statement.start_byte, statement.end_byte) in self.removed:
            return True
        if _is_string(statement):
            described = _assignment_above(statement)
            return described is not None and (described.start_byte, described.end_byte) in self.removed
        if statement.type not in _REMOVED_WHEN_EMPTY or not self._touches(statement):
            return False
        bodies = [statements(b) for b in _blocks(statement)]
        main = bodies[0] if bodies else []
        if statement.type == "with_statement":
            text = self.source[statement.start_byte : statement.end_byte]
            return bool(_WITHOUT_EFFECT.match(text)) and all(self._is_removed(s) or self._sets_filter(s) for s in main)
        if not main or not all(self._is_removed(s) for s in main):
            return False
        return all(self._is_removed(s) or self._only_binds_removed_name(s) for body in bodies[1:] for s in body)

    def _sets_filter(self, statement: Node) -> bool:
        """Whether a statement says which warnings are shown."""
        return bool(_OF_WARNINGS.match(self.source[statement.start_byte : statement.end_byte]))

    def _only_binds_removed_name(self, statement: Node) -> bool:
        """Whether a statement is ``pass``, or only binds a removed name, such as the fallback ``f = None``."""
        if statement.type == "pass_statement":
            return True
        inner = statement.named_children[0] if statement.named_child_count == 1 else statement
        left = inner.child_by_field_name("left") if inner.type == "assignment" else None
        if left is None and inner.type in {"function_definition", "class_definition"}:
            left = inner.child_by_field_name("name")
        if left is None and statement.type in {"function_definition", "class_definition"}:
            left = statement.child_by_field_name("name")
        return left is not None and self.source[left.start_byte : left.end_byte].decode() in self.lost_names

    # ---------------------------------------------------------------------------------- one statement
    def _row(self, byte: int) -> int:
        return bisect_right(self.line_starts, byte) - 1

    def _line(self, row: int) -> bytes:
        if row + 1 < len(self.line_starts):
            return self.source[self.line_starts[row] : self.line_starts[row + 1]]
        return self.source[self.line_starts[row] :]

    def _begins_line(self, node: Node) -> bool:
        return not self.source[self.line_starts[node.start_point[0]] : node.start_byte].strip()

    def _is_blank(self, row: int) -> bool:
        return not self._line(row).strip(b" \t\r\n")

    def _remove(self, statement: Node, body: list[Node], block: Node) -> None:
        start, end = statement.start_byte, statement.end_byte
        first, last = self._row(start), self._row(max(end - 1, start))
        before = self.source[self.line_starts[first] : start].strip()
        line_end = self.line_starts[last] + len(self._line(last))
        after = self.source[end:line_end].strip()
        if before or (after and not after.startswith(b"#") and after != b";"):
            self.edits.append(self._inline(start, end, line_end))
            return
        index = body.index(statement)
        lead_row = self._row(self._start_with_comments(statement, body))
        heading = self._heading_above(statement)
        if heading is not None and self._is_whole_section(statement, body):
            lead_row = min(lead_row, heading)
        column = start - self.line_starts[first]
        last = self._row(end_of_comments_in(self.source, end, column) - 1)
        last = self._last_comment_below(statement, last)
        at_head = (index == 0 and block.type != "module") or self._heads_others(statement, body)
        at_tail = index == len(body) - 1 and block.type != "module"
        self.gaps.append((lead_row, last + 1, at_head, at_tail))

    def _last_comment_below(self, statement: Node, last: int) -> int:
        """Last row of the comment directly below a statement that ends at row ``last``, if it names what the statement
        gives a value to, and a blank line is below it; else ``last``."""
        inner = statement.named_children[0] if statement.named_child_count == 1 else None
        name = inner.child_by_field_name("left") if inner is not None and inner.type == "assignment" else None
        column = statement.start_byte - self.line_starts[statement.start_point[0]]
        row = last + 1
        while row < len(self.line_starts) and self._is_attached(row, column):
            row += 1
        is_separate = row >= len(self.line_starts) or self._is_blank(row)
        if name is None or name.type != "identifier" or not is_separate or self._is_heading(last + 1, row):
            return last
        word = re.compile(rb"(?<!\w)%s(?!\w)" % re.escape(name.text or b""))
        return row - 1 if any(word.search(self._line(r)) for r in range(last + 1, row)) else last

    def _end_with_comment(self, statement: Node) -> int:
        rest = re.compile(rb"[ \t]*#[^\r\n]*").match(self.source, statement.end_byte)
        return rest.end() if rest else statement.end_byte

    def _inline(self, start: int, end: int, line_end: int) -> Edit:
        """The edit that removes one of several statements on a line, with one of the semicolons beside it."""
        following = re.compile(rb"\s*;[ \t]*").match(self.source, end, line_end)
        if following:
            return Edit(start, following.end())
        head = self.source[:start].rstrip(b" \t")
        return Edit(len(head) - 1 if head.endswith(b";") else start, end)

    def _start_with_comments(self, statement: Node, body: list[Node]) -> int:
        """First byte of the statement, or of the comment lines that belong to it."""
        row = statement.start_point[0]
        column = statement.start_byte - self.line_starts[row]
        first = row
        while first > 0 and self._is_attached(first - 1, column):
            first -= 1
        if first == row or self._is_heading(first, row) or self._heads_others(statement, body):
            return statement.start_byte
        is_block = _is_definition(statement) or statement.type in COMPOUND
        if not is_block and not self._stands_alone(statement, body):
            return statement.start_byte
        return self.line_starts[first] + column

    def _is_attached(self, row: int, column: int) -> bool:
        comment = self.comments.get(row)
        if comment is None or comment - self.line_starts[row] != column:
            return False
        return not _DIRECTIVE.match(self._line(row).strip())

    def _is_heading(self, first: int, row: int) -> bool:
        """Whether a comment is a heading of a section or of the file, not about one definition."""
        tops_the_file = all(r in self.comments for r in range(first))
        return tops_the_file or any(_RULER.match(self._line(r).strip()) for r in range(first, row))

    def _heads_others(self, statement: Node, body: list[Node]) -> bool:
        """Whether the comment above a statement names what is below it, and does not go with what is removed of that:
        something of the same sort stays before the next heading."""
        heading = self._short_heading(statement)
        if heading is None:
            return False
        word = heading.split()[-1].lower().removesuffix(b"s")
        going: list[Node] = []
        for each in body[body.index(statement) :]:
            if going and (self._short_heading(each) is not None or self._heading_above(each) is not None):
                return False
            if not self._is_removed(each):
                return any(_is_definition(each) == _is_definition(other) for other in going)
            if word in self.source[inner_definition(each).start_byte : each.end_byte].partition(b"\n")[0].lower():
                return False
            going.append(each)
        return False

    def _short_heading(self, statement: Node) -> bytes | None:
        """The words of a comment on one line above a statement, below a blank one, that say what several ones are."""
        row, column = statement.start_point[0] - 1, statement.start_point[1]
        if row < 1 or not self._is_attached(row, column) or not self._is_blank(row - 1):
            return None
        found = _PLURAL.fullmatch(self._line(row).strip())
        return found[1] if found is not None else None

    def _heading_above(self, statement: Node) -> int | None:
        """First row of the heading of a section directly above a statement, or above the blank lines there."""
        row, column = statement.start_point[0] - 1, statement.start_byte - self.line_starts[statement.start_point[0]]
        while row > 0 and self._is_blank(row):
            row -= 1
        last = row
        while row >= 0 and self._is_attached(row, column):
            row -= 1
        is_ruled = any(_RULER.match(self._line(r).strip()) for r in range(row + 1, last + 1))
        return row + 1 if is_ruled and row >= 0 else None

    def _is_whole_section(self, statement: Node, body: list[Node]) -> bool:
        """Whether all statements from this one to the next heading are removed; there must be one, or this one ends."""
        for following in body[body.index(statement) + 1 :]:
            if self._heading_above(following) is not None:
                return True
            if not self._is_removed(following):
                return False
        return True

    def _stands_alone(self, statement: Node, body: list[Node]) -> bool:
        """Whether all statements between the comment above this one and the next blank line or comment are removed."""
        last = statement
        for following in body[body.index(statement) :]:
            if following.start_point[0] > self._row(max(last.end_byte - 1, last.start_byte)) + 1:
                return True
            if not self._is_removed(following):
                return False
            last = following
        return True

    # ----------------------------------------------------------------------------------- blank lines
    def _close_gaps(self) -> None:
        merged: list[tuple[int, int, bool, bool]] = []
        for gap in sorted(self.gaps):
            if merged and all(self._is_blank(r) for r in range(merged[-1][1], gap[0])):
                merged[-1] = (merged[-1][0], gap[1], merged[-1][2], gap[3])
            else:
                merged.append(gap)
        self.edits.extend(self._gap_edit(*gap) for gap in merged)

    def _gap_edit(self, first: int, after: int, at_head: bool, at_tail: bool) -> Edit:
        num_rows = len(self.line_starts) - (self.line_starts[-1] == len(self.source))
        top, bottom = first, after
        while top > 0 and self._is_blank(top - 1):
            top -= 1
        while bottom < num_rows and self._is_blank(bottom):
            bottom += 1
        above, below = first - top, bottom - after
        if bottom >= num_rows:
            start_row, end_row = top, num_rows
        elif top == 0 or at_head:
            start_row, end_row = first, bottom
        elif at_tail or below >= above:
            start_row, end_row = top, after
        else:
            start_row, end_row = first, bottom
        end = self.line_starts[end_row] if end_row < len(self.line_starts) else len(self.source)
        return Edit(self.line_starts[start_row], end)


def _is_definition(statement: Node) -> bool:
    return inner_definition(statement).type in {"function_definition", "class_definition"}


def _is_string(statement: Node) -> bool:
    """Whether a statement is nothing but a string."""
    return statement.type == "expression_statement" and [n.type for n in statement.named_children] == ["string"]


def _assignment_above(statement: Node) -> Node | None:
    """The assignment that ends on the line above a statement."""
    above = statement.prev_named_sibling
    if above is not None and above.type == "comment" and above.prev_named_sibling is not None:
        line = above.start_point[0]
        above = above.prev_named_sibling if above.prev_named_sibling.end_point[0] == line else above
    if above is None or above.type != "expression_statement" or above.end_point[0] + 1 != statement.start_point[0]:
        return None
    return above if [n.type for n in above.named_children] == ["assignment"] else None


def end_of_comments_in(source: bytes, end: int, indent: int) -> int:
    """One past the line of byte ``end``, and past the comment lines directly below it that are indented more."""
    while True:
        line_end = source.find(b"\n", end)
        if line_end < 0:
            return len(source)
        end = line_end + 1
        below = source[end : (source.find(b"\n", end) + 1) or len(source)]
        if not below.lstrip().startswith(b"#") or len(below) - len(below.lstrip()) <= indent:
            return end


def _blocks(statement: Node) -> list[Node]:
    """The blocks of a compound statement or definition, in order."""
    inner = inner_definition(statement)
    if inner.type not in COMPOUND and inner.type != "case_clause" and not _is_definition(inner):
        return []
    found: list[Node] = []
    queue = list(inner.named_children)
    while queue:
        node = queue.pop(0)
        if node.type == "block":
            found.append(node)
        elif node.type.endswith("_clause"):
            queue = [*node.named_children, *queue]
    return found


@lru_cache(maxsize=64)
def _line_starts(source: bytes) -> list[int]:
    """Row to its first byte."""
    return [0, *(m.end() for m in re.finditer(rb"\n", source))]


@lru_cache(maxsize=64)
def _comment_rows(source: bytes) -> dict[int, int]:
    """Row to first byte of every comment that is alone on its line."""
    rows: dict[int, int] = {}
    for comment in comments(parse_tree(source).root_node):
        start = comment.start_byte
        line_start = source.rfind(b"\n", 0, start) + 1
        if not source[line_start:start].strip():
            rows[comment.start_point[0]] = start
    return rows
