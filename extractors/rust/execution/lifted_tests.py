"""Lifted tests: a form of a test that reports what it would check, and contains nothing of what it expects.

``assert_eq!(f(2), 4)`` becomes a report of ``f(2)``. For the sake of types, it is compared with a neutral value of the
same form in a closure that is never called, and so is in no program. A test is divided if each of its checks compares
with a value that is written out, or asks for the truth of what a function returns, and nothing else in it can fail
but what the code itself does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable, edited
from excise.extractors.rust.analysis.grammar import LITERALS, before_item, descendants, field_text, parse_tree, text
from excise.extractors.rust.execution.checks import argument_places
from excise.extractors.rust.execution.expected_places import ExpectedPlaces
from excise.extractors.rust.execution.lifted_module import MODULE, NAME
from excise.extractors.rust.execution.mirrored_tests import TestFunction, checking_helpers, functions_of, names_in
from excise.extractors.rust.execution.neutral_values import neutral_value, parsed, place_in
from excise.protocols import LiftedTests

_EQUAL = frozenset({"assert_eq", "debug_assert_eq"})
_TRUE = frozenset({"assert", "debug_assert"})
_HARMLESS = frozenset({
    "vec", "format", "print", "println", "eprint", "eprintln", "dbg", "write", "writeln", "concat", "stringify",
    "line", "file", "column", "module_path", "cfg", "env",
})  # fmt: skip
"""Macros that check nothing."""
_CHECKING = re.compile(
    r"(?:^|_)(?:assert|check|verify|ensure|compare|must|should|test|quickcheck|same|equal|eq)s?(?:_|$)"
)
"""Names of functions that may check something."""
_COMPARING = frozenset({
    "starts_with", "ends_with", "contains", "contains_key", "eq", "ne", "lt", "le", "gt", "ge", "all", "any",
    "is_match", "eq_ignore_ascii_case", "is_some_and", "is_ok_and", "is_err_and", "cmp", "partial_cmp",
})  # fmt: skip
"""Methods whose arguments may be what a test expects, and not what it gives to the code."""
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_ENDS = frozenset({"return_expression", "break_expression", "continue_expression", "try_expression"})
_UNCERTAIN = frozenset({"while_expression", "loop_expression", "closure_expression"})
"""What makes a check as often as the code says."""
_ITERATING = frozenset({"iter", "into_iter", "enumerate", "rev", "copied", "cloned", "zip"})
_OUTSIDE = frozenset({"spawn", "scope", "thread", "par_iter", "catch_unwind", "set_hook", "rayon"})
"""Names of what runs code elsewhere, so that the order of reports is not certain, or what fails is not seen."""


class _Report(NamedTuple):
    """A value that is reported in the place of a check."""

    value: str
    """The code that makes it."""
    expected: str
    """The neutral form of what it is compared with; empty for a truth."""
    variables: frozenset[str]
    """Variables in what is expected."""


def lifted(source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:
    """Divide the test ``functions`` of a file; ``None`` if the file cannot be parsed.

    ``depending``: names of the code under test and of what calls it, which are no helpers of tests. All other tests of
    the file are emptied.
    """
    root = parse_tree(source).root_node
    if root.has_error:
        return None
    found = list(functions_of(root, source, (), NAME))
    helpers = checking_helpers(found, source) | _comparing_helpers(found, depending)
    tests = {function.name: function for function in found if function.is_test}
    edits, refused, divided = list[Edit](), dict[str, str](), list[str]()
    elsewhere = _declared_elsewhere(root, source)
    for name in sorted(functions):
        try:
            if name not in tests:
                raise Undividable("test of a macro")
            edits += _Division(root, tests[name], source, helpers | elsewhere, depending).edits()
            divided.append(name)
        except Undividable as reason:
            refused[name] = str(reason)
    if not divided:
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)
    emptied = [function.body for name, function in tests.items() if name not in divided]
    edits += [Edit(body.start_byte, body.end_byte, b"{ unimplemented!() }") for body in emptied]
    observing = edited(source, edits) + MODULE.encode()
    return LiftedTests(observing=observing, judging=b"", functions=tuple(divided), refused=refused)


def _compares(node: Node) -> bool:
    is_operator = node.type in _COMPARISONS and node.parent is not None and node.parent.type == "binary_expression"
    return is_operator or node.type == "match_expression"


def _comparing_helpers(functions: Sequence[TestFunction], depending: Collection[str]) -> frozenset[str]:
    """Plain names of the helpers of tests that compare something, and so may be told what is expected."""
    helpers = [f for f in functions if not f.is_test and any(map(_compares, descendants(f.body)))]
    return frozenset(f.name.rpartition("::")[2] for f in helpers) - set(depending)


def _declared_elsewhere(root: Node, source: bytes) -> frozenset[str]:
    """Names of modules of tests in other files, and what is imported from them; ``*`` stands for everything."""
    modules = {
        field_text(node, "name", source)
        for node in root.named_children
        if node.type == "mod_item" and node.child_by_field_name("body") is None
    }
    found = set(modules)
    for node in root.named_children if modules else ():
        if node.type == "use_declaration":
            words = re.findall(r"\w+|\*", text(node, source))
            if modules & set(words):
                found |= {*words} - {"use", "pub", "crate", "self", "super"}
    return frozenset(found)


class _Division:
    """Divides one test."""

    def __init__(
        self, root: Node, function: TestFunction, source: bytes, helpers: frozenset[str], depending: Collection[str]
    ) -> None:
        self.function, self.body, self.source = function, function.body, source
        self.helpers, self.depending = helpers, frozenset(depending)
        self.places = ExpectedPlaces(root, function.body, source)
        self.module = function.module
        self.number = 0

    def edits(self) -> list[Edit]:
        """The edits that make the observing form. Raises :class:`Undividable`."""
        self._require_no_other_failure()
        checks = [node for node in descendants(self.body) if node.type == "macro_invocation" and self._is_check(node)]
        if not checks:
            raise Undividable("test without a check")
        if any(map(self._is_conditional, checks)):
            raise Undividable("check under a condition")
        reports = [(node, self._reports(node)) for node in checks]
        found = []
        for node, made in reports:
            variables = frozenset[str]().union(*(report.variables for report in made))
            declared = self.places.declarations(variables)
            if declared is None:
                raise Undividable("expected value that is computed")
            found.append(Edit(node.start_byte, node.end_byte, self._text(made, declared).encode()))
        return [*found, *self.places.edits()]

    def _is_check(self, node: Node) -> bool:
        return self._macro(node) in _EQUAL | _TRUE | {"assert_ne", "debug_assert_ne"}

    def _macro(self, node: Node) -> str:
        return field_text(node, "macro", self.source).rpartition("::")[2]

    def _is_conditional(self, check: Node) -> bool:
        """Whether it may depend on the code that a check is made: right solutions would report different values."""
        around = check.parent
        while around is not None and around != self.body:
            if around.type in _UNCERTAIN or (around.type == "for_expression" and not self._is_over_table(around)):
                return True
            condition = around.child_by_field_name("condition" if around.type == "if_expression" else "value")
            if around.type in {"if_expression", "match_expression"} and (
                condition is None or not self.places.is_independent(condition)
            ):
                return True
            around = around.parent
        return False

    def _is_over_table(self, loop: Node) -> bool:
        """Whether a loop has the same rounds for all solutions: it goes over what is written out, or counts."""
        value = loop.child_by_field_name("value")
        while value is not None and value.type == "call_expression":
            called = value.child_by_field_name("function")
            is_method = called is not None and called.type == "field_expression"
            name = field_text(called, "field", self.source) if called is not None and is_method else ""
            value = called.child_by_field_name("value") if called is not None and name in _ITERATING else None
        while value is not None and value.type == "reference_expression" and value.named_children:
            value = value.named_children[-1]
        return value is not None and (value.type == "array_expression" or self.places.is_independent(value))

    def _called_macro(self, mark: Node) -> str:
        """The name of the macro that is called where a ``!`` is, also within what other macros get."""
        before, after = mark.prev_sibling, mark.next_sibling
        if mark.type != "!" or before is None or after is None or after.type != "token_tree":
            return ""
        is_name = before.type in {"identifier", "scoped_identifier"}
        return text(before, self.source).rpartition("::")[2] if is_name else ""

    def _require_no_other_failure(self) -> None:
        """Raise :class:`Undividable` for a test that something else but its checks and the code can fail."""
        if any("should_panic" in text(each, self.source) for each in before_item(self.function.node)):
            raise Undividable("expected panic")
        has_result = self.function.node.child_by_field_name("return_type") is not None
        if has_result and text(self.body.named_children[-1], self.source) != "Ok(())":
            raise Undividable("test with a result")
        for node in descendants(self.body):
            if node.type in _ENDS:
                raise Undividable("test that may end early")
            if _compares(node) or _is_telling_pattern(node):
                raise Undividable("comparison outside a check")
        names = names_in(self.body, self.source)
        if names & _OUTSIDE:
            raise Undividable("threads or caught panics")
        if "*" in self.helpers or names & self.helpers:
            raise Undividable("helper that checks")
        for node in descendants(self.body):
            name = self._called_macro(node)
            if name and name not in _HARMLESS:
                if node.parent is None or node.parent.type != "macro_invocation" or not self._is_check(node.parent):
                    raise Undividable("macro that may check or fail")
            elif _is_called(node) and _CHECKING.search(name := text(node, self.source)) and name not in self.depending:
                raise Undividable("helper that checks")

    def _reports(self, node: Node) -> list[_Report]:
        """What is reported in the place of a check. Raises :class:`Undividable`."""
        tree = next(child for child in node.children if child.type == "token_tree")
        places = list(argument_places(tree, self.source))
        macro = self._macro(node)
        count = 2 if macro in _EQUAL else 1
        if macro not in _EQUAL | _TRUE or len(places) < count:
            raise Undividable("check of an inequality")
        self.places.dropped += places[count:]
        if macro in _TRUE:
            return list(self._truths(places[0], is_negated=False))
        return self._equal(*places[:2])

    def _equal(self, left: tuple[int, int], right: tuple[int, int]) -> list[_Report]:
        for observed, expected in ((left, right), (right, left)):
            word = self._code(expected)
            if word in {"true", "false"}:
                return list(self._truths(observed, is_negated=word == "false"))
            value = neutral_value(word)
            if value is not None and all(map(self.places.is_plain, value.variables)):
                self._require_no_comparison(observed)
                self.places.dropped.append(expected)
                return [_Report(self._code(observed), value.text, value.variables)]
        raise Undividable("expected value that is computed")

    def _require_no_comparison(self, place: tuple[int, int]) -> None:
        """Raise :class:`Undividable` if a value that is reported may compare with what is expected."""
        node, source = parsed(self._code(place))
        if node is None:
            raise Undividable("expected value that is computed")
        for each in descendants(node):
            is_macro = each.type == "macro_invocation" and not text(each, source).startswith("vec!")
            if _compares(each) or is_macro:
                raise Undividable("comparison within an operand")
            if _called(each, source) in _COMPARING - self.depending:
                raise Undividable("comparison within an operand")

    def _code(self, place: tuple[int, int]) -> str:
        return self.source[place[0] : place[1]].decode("utf-8", "replace")

    def _truths(self, place: tuple[int, int], *, is_negated: bool) -> Iterator[_Report]:
        """What is reported of a condition: the values that it compares, or its truth without negations."""
        node, source = parsed(self._code(place))
        if node is None:
            raise Undividable("condition that cannot be divided")
        if node.type in {"parenthesized_expression", "unary_expression"} and len(node.named_children) == 1:
            is_not = node.type == "unary_expression" and node.children[0].type == "!"
            if is_not or node.type == "parenthesized_expression":
                inner = place_in(place[0], node.named_children[0])
                yield from self._truths(inner, is_negated=is_negated != is_not)
                return
        if node.type == "binary_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = text(node.child_by_field_name("operator") or node, source)
            assert left is not None
            assert right is not None
            sides = place_in(place[0], left), place_in(place[0], right)
            if operator == "&&" and not is_negated:
                for side in sides:
                    yield from self._truths(side, is_negated=False)
            elif operator == ("!=" if is_negated else "=="):
                yield from self._equal(*sides)
            else:
                raise Undividable("condition that cannot be divided")
            return
        self._require_input_only(node, source)
        yield _Report(self._code(place), "", frozenset())

    def _require_input_only(self, node: Node, source: bytes) -> None:
        """Raise :class:`Undividable` if a condition may hold what is expected, as in ``text.starts_with("a")``."""
        below = list(descendants(node))
        if node.type not in {"call_expression", "field_expression", "index_expression"}:
            raise Undividable("condition that cannot be divided")
        if any(each.type in _COMPARISONS and each.parent.type == "binary_expression" for each in below if each.parent):
            raise Undividable("condition that cannot be divided")
        if any(each.type in {"macro_invocation", "closure_expression", "match_expression"} for each in below):
            raise Undividable("condition that cannot be divided")
        for each in below:
            given = each.child_by_field_name("arguments")
            name = _called(each, source) if given is not None else ""
            is_own = name == "contains" and given is not None and all(map(_is_number, given.named_children))
            if name in _COMPARING - self.depending and not is_own:
                raise Undividable("condition that cannot be divided")

    def _text(self, reports: Sequence[_Report], declared: str) -> str:
        """The code in the place of a check."""
        parts = []
        for report in reports:
            compared = ""
            if report.expected:
                compared = f"let _ = || {{ {declared}let _ = *lifted_seen == {report.expected}; }}; "
            self.number += 1
            shown = f"(&{self.module}::Seen(lifted_seen)).show({self.number})"
            parts.append(f"match &({report.value}) {{ lifted_seen => {{ {compared}{shown} }} }}")
        return f"{{ use {self.module}::{{Hidden as _, Shown as _}}; {'; '.join(parts)} }}"


def _is_telling_pattern(node: Node) -> bool:
    """Whether a pattern has a value in it, as in ``if let Some(44) = f(2)``."""
    pattern = node.child_by_field_name("pattern") if node.type in {"let_condition", "let_declaration"} else None
    return pattern is not None and any(each.type in LITERALS for each in descendants(pattern))


def _called(node: Node, source: bytes) -> str:
    """The plain name of the function or method that a node calls; empty if it calls none."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    return text(called.child_by_field_name("field") or called, source).rpartition("::")[2] if called is not None else ""


def _is_number(node: Node) -> bool:
    """Whether an argument is a number or a plain variable: methods of the standard library take references."""
    below = [each for each in descendants(node) if each.is_named]
    return all(each.type in {"integer_literal", "identifier", "binary_expression"} for each in below)


def _is_called(node: Node) -> bool:
    """Whether a leaf is the name of what a call calls."""
    if node.type not in {"identifier", "field_identifier"}:
        return False
    after, parent = node.next_sibling, node.parent
    if after is not None and after.type == "token_tree" and after.children[0].type == "(":
        return True
    while parent is not None and parent.type in {"scoped_identifier", "field_expression", "generic_function"}:
        if parent.end_byte != node.end_byte and parent.type != "generic_function":
            return False
        called, parent = parent, parent.parent
        if parent is not None and parent.type == "call_expression":
            return parent.child_by_field_name("function") == called
    return parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == node
