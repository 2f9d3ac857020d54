"""Where expected values are that stand outside of assertions: in variables, columns of tables, arguments of helpers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tree_sitter import Node

from excise.extractors.javascript.analysis.bindings import Binding
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, text
from excise.extractors.javascript.analysis.test_blocks import CALLED
from excise.extractors.javascript.execution.known_values import KnownValues, Path, calls_around

_HOLDING = frozenset({"variable", "loop", "parameter"})
_SHOWING = frozenset({"console", "process"})

Span = tuple[int, int]


@dataclass(slots=True)
class Places:
    """What :meth:`ExpectedPlaces.find` finds."""

    cells: list[Node] = field(default_factory=list)
    """Expressions that only assertions need: they go."""
    conflicts: list[Node] = field(default_factory=list)
    """Uses in expected operands of what the test also uses otherwise, and does not give to the code."""


class ExpectedPlaces:
    """Finds them in one file. ``is_helper_call`` tells of a call whether it is one of a helper that checks."""

    def __init__(self, values: KnownValues, is_helper_call: Callable[[Node], bool]) -> None:
        self.values, self.bindings, self.source = values, values.bindings, values.source
        self._is_helper_call = is_helper_call
        self._cells: dict[tuple[int, Path], list[Node]] = {}

    def find(
        self, root: Node, expected: Sequence[Node], removed: Sequence[Span], messages: Sequence[Node] = ()
    ) -> Places:
        """Where the values of ``expected`` operands are; ``removed`` is what goes of the file anyway.

        What only ``messages`` of assertions need goes, too.
        """
        found, queue, gone = Places(), list(expected), Spans(removed)
        wanted: list[tuple[Node, Node]] = []
        known = set[Span]()
        while queue:
            for use, binding in self.bindings.uses_in(queue.pop()):
                for cell in self.cells_of(use, binding):
                    wanted.append((use, cell))
                    if _span(cell) not in known and not gone.hold(cell):
                        known.add(_span(cell))
                        queue.append(cell)
        told = {_span(cell): cell for cell in self._told(messages) if not gone.hold(cell)}
        cells = told | {_span(cell): cell for _, cell in wanted if not gone.hold(cell)}
        given = set[Span]()
        while True:  # what is in a cell that stays is needed
            left = [span for span in cells if span not in given]
            more = self._others(root, left, Spans([*removed, *left])) if left else {}
            if not more:
                break
            for span, uses in more.items():
                given.add(span)
                if not all(map(self.is_given, uses)):
                    found.conflicts += [use for use, cell in wanted if _span(cell) == span]
        found.cells = [cell for span, cell in cells.items() if span not in given]
        if found.conflicts:
            found.conflicts += self._reached_by(found.conflicts, expected)
        return found

    def _told(self, messages: Sequence[Node]) -> Iterator[Node]:
        """The known expressions that messages name by way of variables."""
        for message in messages:
            for use, binding in self.bindings.uses_in(message):
                yield from (cell for cell in self.cells_of(use, binding) if self.values.is_known(cell))

    def cells_of(self, use: Node, binding: Binding) -> list[Node]:
        """The expressions that a use of a variable reads."""
        if binding.kind not in _HOLDING or binding.module:
            return []
        path = self.values.place_of(use)
        key = binding.node.id, path
        if key not in self._cells:
            self._cells[key] = self.values.cells(binding, path) or []
        return self._cells[key]

    def _others(self, root: Node, cells: Sequence[Span], removed: Spans) -> dict[Span, list[Node]]:
        """Cell to the uses, in what stays, of what it holds or is part of."""
        found: dict[Span, list[Node]] = {}
        overlapping = Overlapping(cells)
        for use, binding in self.bindings.uses_in(root):
            if binding.kind not in _HOLDING or removed.hold(use) or self._is_table(use):
                continue
            read = dict.fromkeys(span for cell in self.cells_of(use, binding) for span in overlapping.of(_span(cell)))
            for span in read:
                found.setdefault(span, []).append(use)
        return found

    def _is_table(self, use: Node) -> bool:
        """Whether a use is that of a table over whose rows the test loops."""
        around = use.parent
        if around is None:
            return False
        if around.type == "for_in_statement":
            return around.child_by_field_name("right") == use
        if around.type == "member_expression" and around.parent is not None:
            return any(self.values.rows_given_to(each) == (use, False) for each in self._functions_given(around.parent))
        if around.type == "arguments" and around.parent is not None and around.parent.parent is not None:
            callee = around.parent.child_by_field_name("function")
            word = text(callee, self.source) if callee is not None else ""
            if word in {"Object.entries", "Object.values"}:
                return self._is_table(around.parent)
            outer = around.parent.parent
            return word.endswith(".each") and any(
                self.values.rows_given_to(each) == (use, True) for each in self._functions_given(outer)
            )
        return False

    def _functions_given(self, call: Node) -> Iterable[Node]:
        arguments = call.child_by_field_name("arguments")
        return [each for each in arguments.named_children if each.type in FUNCTIONS] if arguments is not None else []

    def is_given(self, use: Node) -> bool:
        """Whether a use gives a value to the code under test, as an argument."""
        for call in calls_around(use):
            callee = call.child_by_field_name("function") or call.child_by_field_name("constructor")
            if callee is None or self._is_helper_call(call) or self._defines(callee):
                return False
            if text(callee, self.source).partition(".")[0] in _SHOWING:
                return False
            if not self.values.is_known(callee):
                return True
        return False

    def _defines(self, callee: Node) -> bool:
        """Whether a called function defines tests: what it gets is shown in their titles."""
        words = re.findall(r"[\w$]+", text(callee, self.source))
        return not CALLED.isdisjoint(words[-2:])

    def _reached_by(self, conflicts: Sequence[Node], expected: Sequence[Node]) -> list[Node]:
        """The expected operands by way of which cells with conflicts are found: their tests are to blame."""
        blamed = []
        for node in expected:
            queue, known = [node], set[Span]()
            while queue:
                each = queue.pop()
                if any(Spans([_span(each)]).hold(use) for use in conflicts):
                    blamed.append(node)
                    break
                for use, binding in self.bindings.uses_in(each):
                    more = [cell for cell in self.cells_of(use, binding) if _span(cell) not in known]
                    known.update(map(_span, more))
                    queue += more
        return blamed


class Spans:
    """Ranges of bytes, merged where one holds another."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
            if not self._ends or end > self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)

    def hold(self, node: Node) -> bool:
        """Whether a node lies in one of them."""
        at = bisect_right(self._starts, node.start_byte) - 1
        return at >= 0 and node.end_byte <= self._ends[at]


def _span(node: Node) -> Span:
    return node.start_byte, node.end_byte


class Overlapping:
    """Finds those of many ranges that overlap with one."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans)
        self._reach = list(accumulate((end for _, end in self._spans), max))
        """The furthest end of each range and those before it."""

    def of(self, span: Span) -> Iterator[Span]:
        """The ranges that share a byte with one."""
        at = bisect_left(self._spans, (span[1], 0)) - 1
        while at >= 0 and self._reach[at] > span[0]:
            if self._spans[at][1] > span[0]:
                yield self._spans[at]
            at -= 1
