"""Divides one function, that of a test or of a helper that checks, into what it does and what it expects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, descendants, string_value, text, unwrapped
from excise.extractors.javascript.execution.assertions import Assertions, Check, Part
from excise.extractors.javascript.execution.certain_checks import CertainChecks
from excise.extractors.javascript.execution.expected_places import Spans
from excise.extractors.javascript.execution.known_values import KnownValues

_CHECKING = re.compile(r"(?:assert|check|expect|verify|should|ensure)(?![a-z])\w*", re.ASCII)
"""Names of functions that may check, wherever they are declared."""
_NAMES = frozenset({"identifier", "shorthand_property_identifier"})
_LATE = frozenset({"rejects", "resolves"})
"""Calls of the reporter that give promises."""
MARK = "exciseReport"
"""Stands for the name of the reporter in edits."""


@dataclass(slots=True)
class DividedFunction:
    """A function with what makes its observing form."""

    edits: list[Edit] = field(default_factory=list)
    """What takes the place of assertions: the gaps between their found operands."""
    whole: list[Edit] = field(default_factory=list)
    """The same, but so that expected operands are reported beside what is found."""
    expected: list[Node] = field(default_factory=list)
    """The operands that go."""
    messages: list[Node] = field(default_factory=list)
    """What else goes with assertions."""
    patterns: dict[int, dict[str, str]] = field(default_factory=dict)
    """Number of a value to what it must match: ``source`` and ``flags``, or a ``text`` that it must hold."""
    helpers: list[Node] = field(default_factory=list)
    """The functions of the file that it calls and that check."""


class FunctionDivider:
    """Divides the functions of one file."""

    def __init__(self, values: KnownValues, assertions: Assertions, certain: CertainChecks) -> None:
        self.values, self.assertions, self.certain = values, assertions, certain
        self.bindings, self.source = values.bindings, values.source
        self._checking: dict[int, bool] = {}
        certain.is_assertion = self.is_check

    def checks(self, function: Node, without: Collection[tuple[int, int]] = ()) -> bool:
        """Whether a function has assertions in it, but for those in some spans."""
        if without:
            return any(map(self.is_check, _outside(function, without)))
        if function.id not in self._checking:
            self._checking[function.id] = any(self.is_check(node) for node in descendants(function))
        return self._checking[function.id]

    def is_check(self, node: Node) -> bool:
        """Whether a node is an assertion, of whatever kind."""
        try:
            return self.assertions.check_of(node) is not None
        except Undividable:
            return True

    def divide(self, function: Node, first: int, without: Collection[tuple[int, int]] = ()) -> DividedFunction:
        """The divided form; its values have numbers after ``first``. Raises :class:`Undividable`.

        ``without``: spans of blocks of tests in it, which are divided by themselves.
        """
        body = function.child_by_field_name("body")
        if body is None:
            raise Undividable("test of another kind")
        made, number = DividedFunction(), first
        checks = list(self._checks(body, without))
        calls = list(self._helper_calls(body, checks, without))
        if not checks and not calls:
            raise Undividable("test without a check")
        self.certain.require_no_early_end(body)
        for node in (*(check.node for check in checks), *(call for call, _ in calls)):
            self.certain.require_certain(node, function, is_helper=first > 0)
        for check in checks:
            if any(part.call in _LATE for part in check.parts):
                self.certain.require_waited(check.node, function, is_counted=bool(check.counted_by))
        for call, helper in calls:
            if helper.children[0].type == "async":
                self.certain.require_waited(call, function)
        self.certain.require_no_comparison(list(self._outside(body, checks, without)))
        for check in checks:
            number = self._divide_check(check, made, number)
        made.helpers = [helper for _, helper in calls]
        return made

    # ------------------------------------------------------------------------------------------- checks
    def _checks(self, node: Node, without: Collection[tuple[int, int]]) -> Iterator[Check]:
        """The assertions in a node, none of them in another."""
        if _is_one(node, without):
            return
        found = self.assertions.check_of(node)
        if found is not None:
            inner = [each for part in found.parts for each in descendants(part.found)]
            if any(map(self.is_check, inner)):
                raise Undividable("check within a check")
            yield found
            return
        for child in node.named_children:
            yield from self._checks(child, without)

    def _helper_calls(
        self, body: Node, checks: Sequence[Check], without: Collection[tuple[int, int]]
    ) -> Iterator[tuple[Node, Node]]:
        """The calls of functions of the file that check, and these."""
        inside = Spans((check.node.start_byte, check.node.end_byte) for check in checks)
        for node in _outside(body, without):
            callee = node.child_by_field_name("function") if node.type == "call_expression" else None
            if node.type == "identifier":
                self._require_called(node)
            if callee is None or inside.hold(node):
                continue
            helper = self.function_of(callee)
            if helper is not None and self.checks(helper):
                yield node, helper
            elif helper is None and not self.certain.is_code(node) and self._may_check(callee):
                raise Undividable("helper of another file")

    def _may_check(self, callee: Node) -> bool:
        return _CHECKING.fullmatch(text(callee, self.source).rpartition(".")[2]) is not None

    def _require_called(self, name: Node) -> None:
        helper = self.function_of(name)
        around = name.parent
        is_called = around is not None and around.child_by_field_name("function") == name
        if helper is not None and not is_called and self.checks(helper):
            raise Undividable("helper that is not only called")

    def function_of(self, callee: Node) -> Node | None:
        """The function of the file that a name stands for."""
        binding = self.bindings.of(callee) if callee.type == "identifier" else None
        if binding is None:
            return None
        if binding.kind == "function":
            return binding.owner
        value = unwrapped(binding.source.node) if binding.kind == "variable" and binding.source is not None else None
        return value if value is not None and value.type in FUNCTIONS else None

    def _outside(self, body: Node, checks: Sequence[Check], without: Collection[tuple[int, int]]) -> Iterator[Node]:
        """The nodes that stay: those outside of assertions, and those in found operands."""
        whole = {check.node.id for check in checks}
        queue = [*([] if body.id in whole else [body]), *(part.found for check in checks for part in check.parts)]
        while queue:
            node = queue.pop()
            if not _is_one(node, without):
                yield node
                queue += [child for child in node.named_children if child.id not in whole]

    def _divide_check(self, check: Check, made: DividedFunction, number: int) -> int:
        """Add the edits of an assertion; return the number of its last value."""
        texts = []
        if not check.parts:
            made.edits.append(Edit(check.node.start_byte, check.node.end_byte, b"undefined"))
            made.whole += made.edits[-1:]
            return number
        made.messages += check.dropped
        for part in map(self._sided, check.parts):
            number += bool(part.mode or part.keys)
            texts.append((part, *self._around(part, number)))
            if part.expected is not None:
                made.expected.append(part.expected)
            if part.pattern is not None:
                made.patterns[number] = self._pattern(part.pattern)
        made.edits += self._edits(check, texts, is_whole=False)
        made.whole += self._edits(check, texts, is_whole=True)
        return number

    def _edits(self, check: Check, texts: Sequence[tuple[Part, str, str]], *, is_whole: bool) -> Iterator[Edit]:
        """What takes the place of an assertion around its found operands; ``texts``: what is before and after each."""
        place, around = check.node.start_byte, check.node.parent
        is_late = any(part.call in _LATE for part, _, _ in texts)
        is_result = around is not None and around.type in {"arrow_function", "return_statement"}
        opening = f"{check.counted_by}(" if check.counted_by else "void (" if is_result and not is_late else ""
        text_before = opening + ("await " if check.counted_by and is_late else "")
        for n, (part, before, after) in enumerate(texts):
            yield Edit(place, part.found.start_byte, (text_before + before).encode())
            place = part.found.end_byte
            if is_whole and part.expected is not None:
                keys = "" if part.keys else ", undefined"
                text_before = f"{after[:-1]}{keys}, () => ({text(part.expected, self.source)}))"
            else:
                text_before = after
            text_before += " && " if n + 1 < len(texts) else ""
        closing = text_before + (")" if opening else "")
        yield Edit(place, check.node.end_byte, closing.encode())

    def _pattern(self, node: Node) -> dict[str, str]:
        if node.type != "regex":
            return {"text": string_value(node, self.source) or ""}
        source, _, flags = text(node, self.source)[1:].rpartition("/")
        return {"source": source, "flags": flags}

    def _around(self, part: Part, number: int) -> tuple[str, str]:
        """What stands before and after the found operand."""
        form_before, _, form_after = part.form.partition("%s")
        if not part.mode and not part.keys:
            return f"{MARK}.{'done' if part.call == 'rejects' else 'calls'}(", ")"
        keys = f", [{', '.join(map(repr, part.keys))}]" if part.keys else ""
        name = f"{MARK}.{part.call}" if part.call else MARK
        return f"{name}({number}, '{part.mode}', {form_before}", f"{form_after}{keys})"

    def _sided(self, part: Part) -> Part:
        """The part with what comes of the code as the found operand. Raises :class:`Undividable`."""
        found, expected = part.found, part.expected
        if part.mode == "truth":
            self._require_asked(found)
        if part.mode and not part.call:
            self.certain.require_no_choice(found)
        if expected is None or part.call in {"throws", "rejects"}:
            if expected is not None and not self.values.is_known(expected):
                raise Undividable("expected value that a call computes")
            if expected is not None and not self.values.are_found(expected):
                raise Undividable("expected value that is not found")
            if expected is not None and part.keys and not self._is_plain(expected):
                raise Undividable("error that is compared otherwise")
            return part
        if self.values.is_known(expected):
            if part.mode in {"strict", "loose"} and self._is_object(expected):
                raise Undividable("check that two objects are one")
            if not self.values.are_found(expected):
                raise Undividable("expected value that is not found")
            if self.values.is_known(found) and not self.values.is_written_out(expected):
                raise Undividable("check of two values of the test")
            return part
        if self.values.is_written_out(found) and not part.call:
            return Part(expected, part.mode, found, part.form)
        is_call = unwrapped(expected).type in {"call_expression", "new_expression", "await_expression"}
        raise Undividable("expected value that a call computes" if is_call else "check of two values of the code")

    def _is_plain(self, expected: Node) -> bool:
        """Whether what members of an error are compared with is nothing that may be a pattern or a function."""
        queue = [expected]
        while queue:
            node = queue.pop()
            if node.type in {"call_expression", "new_expression", "regex", *FUNCTIONS}:
                return False
            binding = self.bindings.of(node) if node.type in _NAMES else None
            queue += self.values.cells(binding, self.values.place_of(node)) or () if binding is not None else ()
            queue += node.named_children
        return True

    def _is_object(self, expected: Node) -> bool:
        """Whether a variable holds an object: two of these are only equal if they are one."""
        node = unwrapped(expected)
        binding = self.bindings.of(node) if node.type == "identifier" else None
        cells = self.values.cells(binding, ()) if binding is not None else None
        return any(unwrapped(cell).type in {"object", "array", "new_expression", *FUNCTIONS} for cell in cells or ())

    def _require_asked(self, node: Node) -> None:
        """Raise :class:`Undividable` if the truth is that of a comparison that a function makes."""
        inner = unwrapped(node)
        callee = inner.child_by_field_name("function") if inner.type == "call_expression" else None
        root = callee
        while root is not None and root.type == "member_expression":
            root = root.child_by_field_name("object")
        if callee is None or root is None or self.certain.is_code(inner):
            return
        if text(callee, self.source) == "Array.isArray":
            return
        if root.type == "identifier" and self.bindings.of(root) is None:
            raise Undividable("truth of what the language computes")


def _is_one(node: Node, spans: Collection[tuple[int, int]]) -> bool:
    return (node.start_byte, node.end_byte) in spans


def _outside(node: Node, without: Collection[tuple[int, int]]) -> Iterator[Node]:
    """The nodes in a node, but for those in some spans, which are those of statements."""
    if not _is_one(node, without):
        yield node
        for child in node.named_children:
            yield from _outside(child, without)
