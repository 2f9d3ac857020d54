"""What goes of a file in its observing form: the other tests, and declarations that no lifted test needs.

A declaration that does something when it is made stays, needed or not: ``const clock = useFakeTimers()``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.javascript.analysis.bindings import Binding
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, descendants, required, unwrapped
from excise.extractors.javascript.analysis.test_blocks import TestBlock
from excise.extractors.javascript.execution.expected_places import Spans
from excise.extractors.javascript.execution.known_values import MODULES, KnownValues

DECLARING = frozenset({"lexical_declaration", "variable_declaration", "function_declaration", "class_declaration",
                       "generator_function_declaration", "import_statement"})  # fmt: skip
_VARIABLES = frozenset({"lexical_declaration", "variable_declaration"})
_PLAIN = MODULES | {"assert", "assert/strict", "fs", "events", "stream", "test", "chai", "tape", "tap", "power-assert"}
"""Modules that do nothing when they are loaded."""
_DOING = frozenset({"call_expression", "new_expression", "await_expression", "yield_expression", "update_expression",
                    "assignment_expression", "augmented_assignment_expression", "class"})  # fmt: skip

_VALUES = frozenset({"number", "regex", "template_string", "array"})
_SHORT = 20


class KeptStatements:
    """Chooses the statements of one file; ``blocks``: all its blocks of tests, by their first bytes."""

    def __init__(self, values: KnownValues, root: Node, blocks: dict[int, TestBlock]) -> None:
        self.values, self.bindings, self.root, self._blocks = values, values.bindings, root, blocks
        self._starts = sorted(blocks)
        self._bound: list[Binding] = []

    def removed(self, kept: Collection[int], edits: Sequence[Edit]) -> tuple[list[Edit], bool]:
        """The edits that take out what goes, beside ``edits``; ``kept``: ids of the blocks that stay.

        The truth tells whether something that does something, with values of its own, is used by tests that go alone:
        it can neither stay nor go.
        """
        found, declared = list[Edit](), list[Node]()
        self._scan(self.root, kept, found, declared)
        doing = {node.id for node in declared if self._does_something(node)}
        telling = {node.id for node in declared if node.id in doing and self._is_used(node) and self._has_values(node)}
        optional = [node for node in declared if node.id not in doing or node.id in telling]
        needed = self._needed(optional, Spans((edit.start, edit.end) for edit in (*edits, *found)))
        found += [Edit(node.start_byte, node.end_byte, b"") for node in optional if node.id not in needed]
        return found, not telling <= needed

    def _needed(self, optional: Sequence[Node], gone: Spans) -> set[int]:
        """Those of the declarations that what stays uses, directly or not."""
        needed, known, skipped = set[int](), set[int](), {node.id for node in optional}
        places = sorted((node.start_byte, node.end_byte, node) for node in optional)
        starts = [start for start, _, _ in places]
        queue = [each for each in self.root.children if each.id not in skipped]
        while queue:
            for use, binding in self._uses(queue.pop(), skipped):
                if binding.node.id in known or gone.hold(use):
                    continue
                known.add(binding.node.id)
                at = bisect_right(starts, binding.node.start_byte) - 1
                owner = places[at] if at >= 0 and binding.node.end_byte <= places[at][1] else None
                if owner is not None and owner[2].id not in needed:
                    needed.add(owner[2].id)
                    queue.append(owner[2])
        return needed

    def _uses(self, node: Node, skipped: set[int]) -> Iterator[tuple[Node, Binding]]:
        """The uses of variables in a node, without those in declarations that may go."""
        queue = [node]
        while queue:
            each = queue.pop()
            binding = self.bindings.of(each)
            if binding is not None:
                yield each, binding
            queue += [child for child in each.named_children if child.id not in skipped]

    def _scan(self, node: Node, kept: Collection[int], edits: list[Edit], optional: list[Node]) -> None:
        """Find what goes of the statements in a node: blocks without a lifted test; declarations may go."""
        is_scope = node.type == "program" or self.holds_block(node)
        for child in node.named_children:
            block = self._blocks.get(child.start_byte)
            is_block = block is not None and block.end == child.end_byte and child.type == "expression_statement"
            if is_block and id(block) not in kept:
                edits.append(Edit(child.start_byte, child.end_byte, b";"))
            elif is_block and block is not None and block.blocks:
                self._scan(child, kept, edits, optional)
            elif is_block:
                continue
            elif child.type in DECLARING and is_scope:
                optional.append(child)
            elif child.type not in FUNCTIONS or self.holds_block(child):
                self._scan(child, kept, edits, optional)

    def holds_block(self, node: Node) -> bool:
        """Whether a block of tests lies in a node."""
        at = bisect_left(self._starts, node.start_byte)
        while at < len(self._starts) and self._starts[at] < node.end_byte:
            if self._blocks[self._starts[at]].end <= node.end_byte:
                return True
            at += 1
        return False

    # ----------------------------------------------------------------------------------------------- effects
    def _does_something(self, statement: Node) -> bool:
        """Whether a declaration may have an effect when it is made."""
        if statement.type == "import_statement":
            return not self._is_plain(next((each.module for each in self._bound_by(statement)), ""))
        if statement.type == "class_declaration":
            return any(each.type in {"class_static_block", "field_definition"} for each in descendants(statement))
        if statement.type not in _VARIABLES:
            return False
        for declarator in children(statement):
            value = declarator.child_by_field_name("value")
            module = required(unwrapped(value), self.bindings.source) if value is not None else None
            is_plain = self._is_plain(module) if module else value is None or self._is_still(value)
            if not is_plain:
                return True
        return False

    def _is_plain(self, module: str) -> bool:
        return module.removeprefix("node:") in _PLAIN

    def _is_still(self, value: Node) -> bool:
        """Whether an expression does nothing: it calls nothing but what is known."""
        queue = [value]
        while queue:
            node = queue.pop()
            if node.type in FUNCTIONS or self.values.is_known(node):
                continue
            module = required(node, self.bindings.source)
            if node.type in _DOING and not (module and self._is_plain(module)):
                return False
            queue += node.named_children
        return True

    def _is_used(self, statement: Node) -> bool:
        """Whether something uses what a declaration declares."""
        return any(not _holds(statement, use) for binding in self._bound_by(statement) for use in binding.uses)

    def _has_values(self, statement: Node) -> bool:
        """Whether a declaration has values that may be expected ones, and no mere options and names of modules."""
        queue = [statement]
        while queue:
            node = queue.pop()
            is_long = node.type == "string" and node.end_byte - node.start_byte > _SHORT
            if is_long or node.type in _VALUES:
                return True
            if node.type != "import_statement" and not required(node, self.bindings.source):
                queue += children(node)
        return False

    def _bound_by(self, statement: Node) -> list[Binding]:
        if not self._bound:
            self._bound = sorted(self.bindings.every(), key=lambda each: each.node.start_byte)
        first = bisect_left(self._bound, statement.start_byte, key=lambda each: each.node.start_byte)
        last = bisect_left(self._bound, statement.end_byte, key=lambda each: each.node.start_byte)
        return self._bound[first:last]


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
