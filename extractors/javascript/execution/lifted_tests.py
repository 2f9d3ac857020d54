"""Lifted tests: a form of a test that reports what it would check, and contains nothing of what it expects.

``assert.deepEqual(f(2), [4])`` reports ``f(2)`` instead. A test is divided if each of its assertions compares with a
value that the test file knows by itself: in the assertion, a variable, a table's column or a helper's argument; and if
nothing else in it compares. Of its file, the observing form has no other test, and of the rest what the divided ones
need; titles and comments say nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable
from excise.extractors.javascript.analysis.bindings import Binding, bindings_of, parameters_of
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, descendants, string_value, text
from excise.extractors.javascript.analysis.suite_files import runner_kind
from excise.extractors.javascript.analysis.test_blocks import TestBlock, blocks_of, clean_title
from excise.extractors.javascript.execution.assertions import Assertions
from excise.extractors.javascript.execution.certain_checks import CertainChecks
from excise.extractors.javascript.execution.computed_titles import ComputedTitles
from excise.extractors.javascript.execution.divided_function import DividedFunction, FunctionDivider
from excise.extractors.javascript.execution.expected_places import ExpectedPlaces, Spans
from excise.extractors.javascript.execution.kept_statements import KeptStatements
from excise.extractors.javascript.execution.known_values import KnownValues
from excise.extractors.javascript.execution.observed_names import MAX_DEPTH, observed_titles
from excise.extractors.javascript.execution.observing_form import observing_form
from excise.protocols import LiftedTests
from excise.types import TestId, joined

_AROUND = frozenset({"expression_statement", "await_expression"})
_HOLDING = frozenset({"function", "class", "variable"})
_SAYING = frozenset({"pass", "fail", "comment", "diagnostic"})
_STUCK = "declaration with effects that other tests use"
MAX_BYTES = 1_000_000
MAX_TESTS = 2000
"""Larger files are not divided."""
HELPER_NUMBERS = 1000
"""The values that a helper reports have numbers from a multiple of this one on."""


def lifted(source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:
    """Divide the tests ``functions`` (titles as in ids) of a file; ``None`` if it cannot be parsed.

    ``depending``: names of the code under test and of what calls it.
    """
    return _lifted(source, tuple(sorted(functions)), frozenset(depending))


@lru_cache(maxsize=32)
def _lifted(source: bytes, functions: tuple[str, ...], depending: frozenset[str]) -> LiftedTests | None:
    why = _why_whole_file(source, functions)
    if why:
        refused = dict.fromkeys(functions, why)
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)
    if bindings_of(source).root.has_error:
        return None
    try:
        return _LiftedFile(source, functions, depending).made()
    except RecursionError:
        refused = dict.fromkeys(functions, "file that is nested too deeply")
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)


def _why_whole_file(source: bytes, functions: Collection[str]) -> str:
    """Why no test of a file is divided; empty if some may be."""
    try:
        source.decode()
    except UnicodeDecodeError:
        return "file that is not UTF-8"
    return "file that is too large" if len(source) > MAX_BYTES or len(functions) > MAX_TESTS else ""


class _Unit:
    """A block that defines tests, with its function."""

    def __init__(self, block: TestBlock, way: Sequence[TestBlock], call: Node | None, function: Node | None) -> None:
        self.block, self.way, self.call, self.function = block, (*way, block), call, function
        self.tests = {"::".join(TestId.parse(test).names) for test in block.tests}
        self.divided = DividedFunction()
        self.why = ""
        self.is_done = False
        """Whether what it has beside the blocks in it is known to be divided, or to check nothing."""
        self.inner = frozenset((inner.start, inner.end) for inner in block.blocks)
        """Where the blocks in it are."""


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
        self.kept = KeptStatements(self.values, self.root, {block.start: block for block, _ in _every_way(file.blocks)})
        functions_in_file = (node for node in descendants(self.root) if node.type in FUNCTIONS)
        self.titles = ComputedTitles(self.places, depending)
        self._places = {node.id: place for place, node in enumerate(functions_in_file)}
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
            removed, is_stuck = self._removed(chosen)
            blamed = [(unit, _STUCK) for unit in chosen] if is_stuck else self._blamed(chosen, removed)
            if not blamed:
                break
            for unit, why in blamed:
                unit.why = why
            refused = self._refused()
        lifted_functions = tuple(name for name in self.functions if name not in refused)
        observing = self._form(chosen, removed, lifted_functions)
        judging, whole = self._patterns(chosen), self._whole(chosen, lifted_functions)
        return LiftedTests(
            observing=observing, judging=judging, whole=whole, functions=lifted_functions, refused=refused
        )

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
        """Divide what a block checks beside the blocks in it. Raises :class:`Undividable`."""
        if unit.function is None:
            raise Undividable("test of another kind")
        if unit.divided.edits or unit.is_done:
            return
        unit.is_done = not unit.why
        if unit.is_done and self._checks_itself(unit):
            try:
                self._divide_own(unit)
            except Undividable:
                unit.why, unit.is_done = "check beside the test that cannot be divided", False
        if unit.why:
            raise Undividable(unit.why)

    def _checks_itself(self, unit: _Unit) -> bool:
        """Whether a block checks beside the blocks in it, but for functions that it declares."""
        queue = [unit.function]
        while queue:
            node = queue.pop()
            if node is None or (node.start_byte, node.end_byte) in unit.inner:
                continue
            is_function = node.type in FUNCTIONS and node != unit.function
            if is_function and self.values.binding_of_function(node) is not None:
                continue
            if self.divider.is_check(node) or (node.type == "call_expression" and self._is_helper_call(node)):
                return True
            queue += node.named_children
        return False

    def _divide_own(self, unit: _Unit) -> None:
        assert unit.function is not None
        unit.divided = self.divider.divide(unit.function, 0, unit.inner)
        for helper in unit.divided.helpers:
            self._divide_helper(helper)

    def _divide_helper(self, helper: Node) -> None:
        if helper.id not in self.helpers:
            self.helpers[helper.id] = "helper that calls itself"
            number = HELPER_NUMBERS * (1 + self._places[helper.id])
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

    def _require_title(self, unit: _Unit) -> None:
        """Raise :class:`Undividable` if a function of the file gives a test its title."""
        for block in unit.way:
            title = None if block.is_fixed else self._title(block)
            for _, binding in self.bindings.uses_in(title) if title is not None else ():
                if binding.kind == "parameter" and self.values.rows_given_to(binding.owner) is None:
                    raise Undividable("test that a function of the file defines")
            if title is not None:
                self.titles.require_silent(title, self._unit(block, ()).function)

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

    def _removed(self, chosen: Sequence[_Unit]) -> tuple[list[Edit], bool]:
        """The edits for everything that goes but cells; and whether something can neither stay nor go."""
        edits = [edit for made in self._divided(chosen) for edit in made.edits]
        more, is_stuck = self.kept.removed({id(block) for unit in chosen for block in unit.way}, edits)
        return [*edits, *more], is_stuck

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

    def _check_outside(self, chosen: Sequence[_Unit], gone: Spans) -> bool:
        """Whether something that stays checks, and is in no lifted test and no helper."""
        divided = [each.block for block in self._around(chosen) if (each := self.around[id(block)]).divided.edits]
        inside = Spans((block.start, block.end) for block in (*divided, *(unit.block for unit in chosen)))
        helpers = Spans((node.start_byte, node.end_byte) for node in descendants(self.root) if node.id in self.helpers)
        staying = [
            node
            for node in descendants(self.root)
            if not (gone.hold(node) or inside.hold(node) or helpers.hold(node) or self._is_around(node))
        ]
        try:
            self.divider.certain.require_no_comparison(staying, of_code=True)
        except Undividable:
            return True
        return any(
            node.type == "call_expression" and (self.divider.is_check(node) or self._is_helper_call(node))
            for node in staying
        )

    def _is_around(self, node: Node) -> bool:
        """Whether a node is one that defines tests, or holds them."""
        return node.type not in {"call_expression", "throw_statement"} and self.kept.holds_block(node)

    def _around(self, chosen: Sequence[_Unit]) -> Iterable[TestBlock]:
        """The blocks around some tests."""
        return {id(block): block for unit in chosen for block in unit.way[:-1]}.values()

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
        edits = [*removed, *self._titles(chosen, functions), *self._plans(chosen)]
        return observing_form(self.source, self.root, [*edits, *self._silenced()])

    def _silenced(self) -> Iterator[Edit]:
        """The edits that take what tests say out."""
        for node in descendants(self.root) if self.kind != "other" else ():
            callee = node.child_by_field_name("function") if node.type == "call_expression" else None
            name = callee.child_by_field_name("property") if callee is not None else None
            owner = callee.child_by_field_name("object") if callee is not None else None
            arguments, binding = node.child_by_field_name("arguments"), self.bindings.of(owner) if owner else None
            if arguments is None or name is None or binding is None or not children(arguments):
                continue
            if text(name, self.source) in _SAYING and self._is_context(binding):
                yield Edit(arguments.start_byte, arguments.end_byte, b"('')")

    def _whole(self, chosen: Sequence[_Unit], functions: Sequence[str]) -> bytes:
        """The whole file, in which the same tests report what they find and what they expect."""
        edits = [edit for made in self._divided(chosen) for edit in made.whole]
        return observing_form(self.source, self.root, [*edits, *self._titles(chosen, functions)])

    def _titles(self, chosen: Sequence[_Unit], functions: Sequence[str]) -> Iterator[Edit]:
        titles = observed_titles(functions)
        for block in {id(block): block for unit in chosen for block in unit.way}.values():
            title = self._title(block) if block.is_fixed else None
            if title is not None:
                literal = clean_title(string_value(title, self.source) or "")
                yield Edit(title.start_byte, title.end_byte, f"'{titles.get(literal, 't')}'".encode())

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


def _every_way(
    blocks: Collection[TestBlock], way: Sequence[TestBlock] = ()
) -> Iterator[tuple[TestBlock, tuple[TestBlock, ...]]]:
    """All blocks, each with those around it."""
    for block in blocks:
        yield block, tuple(way)
        yield from _every_way(block.blocks, (*way, block))


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
