"""Lifted tests: a form of a test that reports what it would check, and contains nothing of what it expects.

``assert.deepEqual(f(2), [4])`` reports ``f(2)`` instead. A test is divided if each of its assertions compares with a
value that the test file knows by itself: in the assertion, a variable, a table's column or a helper's argument; and if
nothing else in it compares. Of its file, the observing form has no other test, and of the rest what the divided ones
need; titles and comments say nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.javascript.analysis.bindings import Binding, bindings_of, parameters_of
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, descendants, text, unwrapped
from excise.extractors.javascript.analysis.suite_files import runner_kind
from excise.extractors.javascript.analysis.test_blocks import TestBlock, blocks_of
from excise.extractors.javascript.execution.assertions import Assertions, Undividable
from excise.extractors.javascript.execution.certain_checks import CertainChecks
from excise.extractors.javascript.execution.divided_function import DividedFunction, Edit, FunctionDivider
from excise.extractors.javascript.execution.expected_places import ExpectedPlaces, Spans
from excise.extractors.javascript.execution.known_values import KnownValues
from excise.extractors.javascript.execution.observed_names import MAX_DEPTH, observed_titles
from excise.extractors.javascript.execution.observing_form import observing_form
from excise.protocols import LiftedTests
from excise.types import TestId, joined

_DECLARING = frozenset({"lexical_declaration", "variable_declaration", "function_declaration", "class_declaration",
                        "generator_function_declaration", "import_statement"})  # fmt: skip
_AROUND = frozenset({"expression_statement", "await_expression"})
_HOLDING = frozenset({"function", "class", "variable"})
HELPER_NUMBERS = 1000
"""The values that a helper reports have numbers from a multiple of this one on."""


def lifted(source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:
    """Divide the tests ``functions`` (titles as in ids) of a file; ``None`` if it cannot be parsed.

    ``depending``: names of the code under test and of what calls it.
    """
    return _lifted(source, tuple(sorted(functions)), frozenset(depending))


@lru_cache(maxsize=32)
def _lifted(source: bytes, functions: tuple[str, ...], depending: frozenset[str]) -> LiftedTests | None:
    if bindings_of(source).root.has_error:
        return None
    try:
        return _LiftedFile(source, functions, depending).made()
    except RecursionError:
        refused = dict.fromkeys(functions, "file that is nested too deeply")
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)


class _Unit:
    """A block that defines tests, with its function."""

    def __init__(self, block: TestBlock, way: Sequence[TestBlock], call: Node | None, function: Node | None) -> None:
        self.block, self.way, self.call, self.function = block, (*way, block), call, function
        self.tests = {"::".join(TestId.parse(test).names) for test in block.tests}
        self.divided = DividedFunction()
        self.dropped: list[Node] = []
        """Statements that check beside the blocks in it, and cannot be divided."""
        self.why = ""

    @property
    def inner(self) -> list[tuple[int, int]]:
        """Where the blocks in it are."""
        return [(block.start, block.end) for block in self.block.blocks]


class _LiftedFile:
    """Chooses and divides the tests of one file."""

    def __init__(self, source: bytes, functions: Collection[str], depending: Collection[str]) -> None:
        self.source, self.functions = source, sorted(functions)
        self.bindings = bindings_of(source)
        self.root = self.bindings.root
        self.kind = runner_kind(source)
        self.values = KnownValues(self.bindings)
        certain = CertainChecks(self.values, frozenset(depending))
        self.divider = FunctionDivider(self.values, Assertions(self.bindings, self.kind, self._is_context), certain)
        self.places = ExpectedPlaces(self.values, self._is_helper_call)
        file = blocks_of(source, [joined("file", name) for name in self.functions])
        self.blocks = file.blocks
        self.around = {id(block): self._unit(block, way) for block, way in _every_way(file.blocks) if block.blocks}
        self.units = [self._unit(block, way) for block, way in _every_way(file.blocks) if block.tests]
        self._starts = {block.start: block for block, _ in _every_way(file.blocks)}
        self.helpers: dict[int, DividedFunction | str] = {}
        self._contexts: dict[int, bool] = {}

    def made(self) -> LiftedTests:
        """The observing form, and what is refused."""
        for unit in self.units:
            self._divide(unit)
        refused = self._refused()
        while True:
            chosen = [unit for unit in self.units if not unit.why]
            if not chosen:
                return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)
            removed = self._removed(chosen)
            blamed = self._blamed(chosen, removed)
            if not blamed:
                break
            for unit, why in blamed:
                unit.why = why
            refused = self._refused()
        lifted_functions = tuple(name for name in self.functions if name not in refused)
        observing = self._form(chosen, removed, lifted_functions)
        judging = self._patterns(chosen)
        return LiftedTests(observing=observing, judging=judging, functions=lifted_functions, refused=refused)

    # ------------------------------------------------------------------------------------------- tests
    def _unit(self, block: TestBlock, way: Sequence[TestBlock]) -> _Unit:
        call = self.root.descendant_for_byte_range(block.start, block.end)
        while call is not None and call.type != "call_expression":
            call = next(iter(children(call)), None) if call.type in _AROUND else None
        arguments = call.child_by_field_name("arguments") if call is not None else None
        found = [each for each in children(arguments) if each.type in FUNCTIONS] if arguments is not None else []
        return _Unit(block, way, call, found[0] if len(found) == 1 else None)

    def _divide(self, unit: _Unit) -> None:
        """Divide a test and the helpers that it calls."""
        try:
            if unit.function is None or len(unit.way) > MAX_DEPTH or not unit.tests:
                raise Undividable("test of another kind")
            self._require_title(unit)
            for block in unit.way[:-1]:
                self._divide_around(self.around[id(block)])
            if self._is_disturbed(unit):
                raise Undividable("test in a test that cannot be divided")
            self._divide_own(unit)
            self._require_plain_helpers(unit)
        except Undividable as reason:
            unit.why = str(reason)

    def _require_plain_helpers(self, unit: _Unit) -> None:
        """Raise :class:`Undividable` if something of the file that a test needs compares, but in assertions."""
        queue = [unit.function, *(each for each in unit.divided.helpers)]
        known = set[int]()
        while queue:
            for _, binding in self.bindings.uses_in(queue.pop() or self.root):
                owner = binding.owner
                is_own = any(_holds(each.function or self.root, owner) for each in [unit])
                if owner.id in known or is_own or binding.module or binding.kind not in _HOLDING:
                    continue
                known.add(owner.id)
                queue.append(owner)
                if owner.id not in self.helpers:
                    self.divider.certain.require_no_comparison(list(descendants(owner)))

    def _divide_around(self, unit: _Unit) -> None:
        """Divide what a block checks beside the blocks in it."""
        if unit.function is None:
            raise Undividable("test of another kind")
        if unit.divided.edits or unit.dropped or not self.divider.checks(unit.function, unit.inner):
            return
        try:
            self._divide_own(unit)
        except Undividable:
            unit.divided = DividedFunction()
            unit.dropped = self._checking_statements(unit)

    def _own_texts(self, unit: _Unit) -> Iterator[str]:
        """The texts of the statements of a block that are no blocks."""
        body = unit.function.child_by_field_name("body") if unit.function is not None else None
        for statement in children(body) if body is not None else []:
            if (statement.start_byte, statement.end_byte) not in unit.inner:
                yield text(statement, self.source)

    def _checking_statements(self, unit: _Unit) -> list[Node]:
        """The statements of a block that check and hold no block. Raises :class:`Undividable`."""
        assert unit.function is not None
        body = unit.function.child_by_field_name("body")
        found = []
        for statement in children(body) if body is not None else []:
            if statement.type in _DECLARING or not self.divider.checks(statement, unit.inner):
                continue
            if self._holds_block(statement) or any(".plan(" in each for each in self._own_texts(unit)):
                raise Undividable("test in a test that cannot be divided")
            found.append(statement)
        return found

    def _divide_own(self, unit: _Unit) -> None:
        assert unit.function is not None
        unit.divided = self.divider.divide(unit.function, 0, unit.inner)
        for helper in unit.divided.helpers:
            self._divide_helper(helper)

    def _divide_helper(self, helper: Node) -> None:
        if helper.id not in self.helpers:
            self.helpers[helper.id] = "helper that calls itself"
            number = HELPER_NUMBERS * (1 + len(self._functions_before(helper)))
            try:
                made = self.divider.divide(helper, number)
                self.helpers[helper.id] = made
                for other in made.helpers:
                    self._divide_helper(other)
            except Undividable as reason:
                self.helpers[helper.id] = str(reason)
        found = self.helpers[helper.id]
        if isinstance(found, str):
            raise Undividable(found)

    def _functions_before(self, node: Node) -> list[Node]:
        return [each for each in descendants(self.root) if each.type in FUNCTIONS and each.start_byte < node.start_byte]

    def _require_title(self, unit: _Unit) -> None:
        """Raise :class:`Undividable` if a function of the file gives a test its title."""
        for block in unit.way:
            title = None if block.is_fixed else self._title(block)
            for _, binding in self.bindings.uses_in(title) if title is not None else ():
                if binding.kind == "parameter" and self.values.rows_given_to(binding.owner) is None:
                    raise Undividable("test that a function of the file defines")

    def _title(self, block: TestBlock) -> Node | None:
        call = self.root.descendant_for_byte_range(block.start, block.end)
        while call is not None and call.type != "call_expression":
            call = next(iter(children(call)), None)
        arguments = call.child_by_field_name("arguments") if call is not None else None
        return next(iter(children(arguments)), None) if arguments is not None else None

    def _refused(self) -> dict[str, str]:
        """Why functions are not divided; a function may have several blocks."""
        refused = dict[str, str]()
        for unit in self.units:
            for name in unit.tests if unit.why else ():
                refused[name] = unit.why
        known = {name for unit in self.units for name in unit.tests}
        refused |= dict.fromkeys(set(self.functions) - known, "test whose code is not found")
        for unit in self.units:
            if not unit.why and unit.tests & refused.keys():
                unit.why = refused[next(iter(sorted(unit.tests & refused.keys())))]
                for name in unit.tests:
                    refused.setdefault(name, unit.why)
        return {name: refused[name] for name in self.functions if name in refused}

    # ---------------------------------------------------------------------------------------- contexts
    def _is_context(self, binding: Binding) -> bool:
        """Whether a parameter is the test that tape, tap or node:test gives to its function."""
        if self.kind == "other" or binding.kind != "parameter" or binding.number != 0:
            return binding.kind == "parameter" and self.kind != "other" and self._is_passed_context(binding)
        if binding.node.id not in self._contexts:
            arguments = binding.owner.parent
            call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
            callee = call.child_by_field_name("function") if call is not None else None
            words = re.findall(r"[\w$]+", text(callee, self.source)) if callee is not None else []
            is_test = bool({"test", "it", "tape", "tap", "suite", "describe"} & set(words[-2:]))
            self._contexts[binding.node.id] = is_test
        return self._contexts[binding.node.id] or self._is_passed_context(binding)

    def _is_passed_context(self, binding: Binding) -> bool:
        """Whether a helper's parameter gets a test."""
        if self._contexts.get(-binding.node.id) is not None:
            return self._contexts[-binding.node.id]
        self._contexts[-binding.node.id] = False
        sources = self.values.sources(binding) if self.values.rows_given_to(binding.owner) is None else None
        given = [self.bindings.of(each.node) for each in sources or ()]
        found = bool(given) and all(each is not None and self._is_context(each) for each in given)
        self._contexts[-binding.node.id] = found
        return found

    def _is_helper_call(self, call: Node) -> bool:
        callee = call.child_by_field_name("function")
        helper = self.divider.function_of(callee) if callee is not None else None
        return helper is not None and self.divider.checks(helper)

    # ---------------------------------------------------------------------------------------- what goes
    def _divided(self, chosen: Sequence[_Unit]) -> Iterator[DividedFunction]:
        """The divided tests, what is around them, and the helpers that they call."""
        blocks = {id(block): block for unit in chosen for block in unit.way[:-1]}
        queue, known = [unit.divided for unit in chosen], set[int]()
        queue += [self.around[each].divided for each in blocks if all(unit.block != blocks[each] for unit in chosen)]
        while queue:
            made = queue.pop()
            yield made
            for helper in made.helpers:
                found = self.helpers[helper.id]
                if helper.id not in known and not isinstance(found, str):
                    known.add(helper.id)
                    queue.append(found)

    def _removed(self, chosen: Sequence[_Unit]) -> list[Edit]:
        """The edits for everything that goes but cells: gaps of assertions, other tests, what nobody needs."""
        kept_blocks = {id(block) for unit in chosen for block in unit.way}
        edits = [edit for made in self._divided(chosen) for edit in made.edits]
        edits += [Edit(node.start_byte, node.end_byte, b";") for node in self._dropped(chosen)]
        optional: list[Node] = []
        self._scan(self.root, kept_blocks, edits, optional)
        spans = Spans((edit.start, edit.end) for edit in edits)
        needed, known = set[int](), set[int]()
        queue = [each for each in self.root.children if each.id not in {node.id for node in optional}]
        skipped = {node.id for node in optional}
        while queue:
            node = queue.pop()
            for use, binding in self._uses(node, skipped):
                if binding.node.id in known or spans.hold(use):
                    continue
                known.add(binding.node.id)
                owner = next((each for each in optional if _holds(each, binding.node)), None)
                if owner is not None and owner.id not in needed:
                    needed.add(owner.id)
                    queue.append(owner)
        for node in optional:
            if node.id not in needed:
                edits.append(Edit(node.start_byte, node.end_byte, b""))
        return edits

    def _dropped(self, chosen: Sequence[_Unit]) -> list[Node]:
        """Statements beside tests that go, since they check and cannot be divided."""
        blocks = {id(block) for unit in chosen for block in unit.way[:-1]}
        return [node for each in sorted(blocks) for node in self.around[each].dropped]

    def _is_disturbed(self, unit: _Unit) -> bool:
        """Whether a test uses a variable of the blocks around it that statements use which go."""
        dropped = [node for block in unit.way[:-1] for node in self.around[id(block)].dropped]
        used = {binding.node.id for node in dropped for _, binding in self.bindings.uses_in(node)}
        call = unit.call
        inside = self.bindings.uses_in(call) if call is not None and dropped else ()
        return any(
            binding.node.id in used
            and binding.kind == "variable"
            and not binding.module
            and binding.owner.start_byte < unit.block.start
            and binding.source is not None
            and unwrapped(binding.source.node).type not in FUNCTIONS
            for _, binding in inside
        )

    def _uses(self, node: Node, skipped: set[int]) -> Iterator[tuple[Node, Binding]]:
        """The uses of variables in a node, without those in declarations that may go."""
        queue = [node]
        while queue:
            each = queue.pop()
            binding = self.bindings.of(each)
            if binding is not None:
                yield each, binding
            queue += [child for child in each.named_children if child.id not in skipped]

    def _scan(self, node: Node, kept: set[int], edits: list[Edit], optional: list[Node]) -> None:
        """Find what goes of the statements in a node: blocks without a lifted test; declarations may go."""
        for child in node.named_children:
            block = self._starts.get(child.start_byte)
            is_block = block is not None and block.end == child.end_byte and child.type == "expression_statement"
            if is_block and id(block) not in kept:
                edits.append(Edit(child.start_byte, child.end_byte, b";"))
            elif is_block and block is not None and block.blocks:
                self._scan(child, kept, edits, optional)
            elif is_block:
                continue
            elif child.type in _DECLARING and self._is_scope(node):
                if child.type != "import_statement" or self._may_go(child):
                    optional.append(child)
            elif child.type not in FUNCTIONS or self._holds_block(child):
                self._scan(child, kept, edits, optional)

    def _is_scope(self, node: Node) -> bool:
        """Whether declarations of a node are those of the file or of a block of tests."""
        return node.type == "program" or self._holds_block(node)

    def _holds_block(self, node: Node) -> bool:
        return any(node.start_byte <= start and block.end <= node.end_byte for start, block in self._starts.items())

    def _may_go(self, statement: Node) -> bool:
        """Whether an import is one of names of a file."""
        module = next((each.module for each in self.bindings.every() if each.owner == statement), "")
        return module.startswith(".")

    # -------------------------------------------------------------------------------------- what is expected
    def _blamed(self, chosen: Sequence[_Unit], removed: list[Edit]) -> list[tuple[_Unit, str]]:
        """The tests that cannot be divided beside the others; for the rest, edits of cells are added."""
        units = {id(unit.divided): unit for unit in chosen}
        spans = [(edit.start, edit.end) for edit in removed]
        expected = [(node, made) for made in self._divided(chosen) for node in made.expected]
        messages = [node for made in self._divided(chosen) for node in made.messages]
        found = self.places.find(self.root, [node for node, _ in expected], spans, messages)
        if self._check_outside(chosen, Spans(spans)):
            return [(unit, "check outside of tests") for unit in chosen]
        if not found.conflicts:
            why_title = self._told_by_titles(chosen, found.cells)
            removed += [Edit(node.start_byte, node.end_byte, self._cell(node)) for node in found.cells]
            return [(unit, "title that tells what is expected") for unit in why_title]
        blamed = list[tuple[_Unit, str]]()
        why = "expected value that the test uses otherwise"
        for node, made in expected:
            if any(node.start_byte <= each.start_byte < node.end_byte for each in found.conflicts):
                using = [units[id(made)]] if id(made) in units else self._using(chosen, made)
                blamed += [(unit, why) for unit in using]
        return blamed or [(unit, why) for unit in chosen]

    def _using(self, chosen: Sequence[_Unit], helper: DividedFunction) -> list[_Unit]:
        return [unit for unit in chosen if helper in list(self._divided([unit]))]

    def _cell(self, node: Node) -> bytes:
        is_short = node.type == "shorthand_property_identifier"
        return f"{text(node, self.source)}: undefined".encode() if is_short else b"undefined"

    def _check_outside(self, chosen: Sequence[_Unit], spans: Spans) -> bool:
        """Whether something that stays checks, and is in no lifted test and no helper."""
        inside = [block for unit in chosen for block in unit.way]
        helpers = [node for node in descendants(self.root) if node.id in self.helpers]
        for node in descendants(self.root):
            if node.type != "call_expression" or spans.hold(node):
                continue
            if any(block.start <= node.start_byte < block.end for block in inside):
                continue
            if not any(_holds(helper, node) for helper in helpers) and self.divider.is_check(node):
                return True
        return False

    def _told_by_titles(self, chosen: Sequence[_Unit], cells: Sequence[Node]) -> list[_Unit]:
        """The tests whose titles are computed, with something that is expected beside it in its row."""
        found = []
        for unit in chosen:
            titles = [self._title(block) for block in unit.way if not block.is_fixed]
            shown = [use for title in titles if title is not None for use in self.bindings.uses_in(title)]
            texts = [text(cell, self.source) for use, binding in shown for cell in self.places.cells_of(use, binding)]
            words = {word for cell in cells if (word := text(cell, self.source).strip("'\"`"))}
            if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", each) for word in words for each in texts):
                found.append(unit)
        return found

    def _patterns(self, chosen: Sequence[_Unit]) -> bytes:
        """What texts must match, as JSON: test to number of a value to pattern; empty if there is none."""
        found: dict[str, dict[int, dict[str, str]]] = {}
        for unit in chosen:
            for made in self._divided([unit]):
                for name in unit.tests if made.patterns else ():
                    found.setdefault(name, {}).update(made.patterns)
        return json.dumps(found).encode() if found else b""

    # ------------------------------------------------------------------------------------------- the form
    def _form(self, chosen: Sequence[_Unit], removed: Sequence[Edit], functions: Sequence[str]) -> bytes:
        titles = observed_titles(functions)
        edits = list(removed)
        for block in {id(block): block for unit in chosen for block in unit.way}.values():
            title = self._title(block) if block.is_fixed else None
            if title is not None:
                edits.append(Edit(title.start_byte, title.end_byte, f"'{_observed(block, titles)}'".encode()))
        edits += self._plans(chosen)
        return observing_form(self.source, self.root, edits)

    def _plans(self, chosen: Sequence[_Unit]) -> Iterator[Edit]:
        """Something in the place of removed subtests that a plan counts."""
        for block in {id(block): block for unit in chosen for block in unit.way[:-1]}.values():
            kept = {id(each) for unit in chosen for each in unit.way}
            function = self._unit(block, ()).function
            parameters = parameters_of(function) if function is not None else []
            context = text(parameters[0], self.source) if parameters else ""
            code = self.source[block.start : block.end].decode("utf-8", "replace")
            if self.kind in {"tape", "tap"} and re.search(rf"\b{re.escape(context)}\.plan\(", code):
                for inner in block.blocks:
                    if id(inner) not in kept:
                        yield Edit(inner.start, inner.end + 0, f"{context}.pass();".encode())


def _observed(block: TestBlock, titles: dict[str, str]) -> str:
    return next((made for title, made in titles.items() if block.title.fullmatch(title)), "t")


def _every_way(
    blocks: Collection[TestBlock], way: Sequence[TestBlock] = ()
) -> Iterator[tuple[TestBlock, tuple[TestBlock, ...]]]:
    """All blocks, each with those around it."""
    for block in blocks:
        yield block, tuple(way)
        yield from _every_way(block.blocks, (*way, block))


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
