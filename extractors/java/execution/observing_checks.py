"""The code in the place of a check: it reports that operand which comes from the code, and nothing else.

Of an expected error and of numbers that may differ, what is right is kept apart: nothing of it is in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tree_sitter import Node

from excise.extractors.divided_tests import Undividable
from excise.extractors.java.analysis.grammar import descendants, name_of, text
from excise.extractors.java.execution.certain_tests import is_comparison, may_compare
from excise.extractors.java.execution.checks import Check, Kind, arguments
from excise.extractors.java.execution.expected_values import is_written_out
from excise.extractors.java.execution.written_names import WrittenNames

REPORTER = "excise.Observed"
_COMPUTED = frozenset({"switch_expression", "assignment_expression", "update_expression"})

_ASKED = frozenset({"method_invocation", "field_access", "array_access"})


def report(function: str, site: int, value: str) -> str:
    """The code that reports a value. ``site``: the place of its check in the file."""
    return f"{REPORTER}.{function}({site}, {value})"


class ObservingCheck:
    """The observing form of one check. Raises :class:`Undividable`."""

    def __init__(self, check: Check, names: WrittenNames, is_expected: Callable[[Node], bool]) -> None:
        """``is_expected`` tells whether a value is written out, and notes where."""
        self.check, self.names, self.is_expected = check, names, is_expected
        self.source, self.depending = names.source, names.depending
        self.observed: list[Node] = []
        """What is reported, in the words of the test."""
        self.sites: dict[str, dict[str, Any]] = {}
        """Places of values that have no certain text, to what is right there."""
        self.code = self._form()

    def _form(self) -> str:
        check, site = self.check, self.check.node.start_byte
        actual, expected = check.actual, check.expected
        assert actual is not None
        if check.kind is Kind.TRUE:
            return "; ".join(self._truths(actual, is_negated=check.is_negated))
        if check.kind is Kind.NULL:
            return report("isNull", site, self._value(actual))
        assert expected is not None
        if check.kind is Kind.THROWS:
            return self._error(expected, actual, site)
        if check.kind is Kind.SAME and not self._has_identity(expected):
            raise Undividable("check of identity")
        return self._equal(expected, actual, site)

    def _error(self, expected: Node, actual: Node, site: int) -> str:
        if actual.type not in {"lambda_expression", "method_reference"}:
            raise Undividable("expected error of a variable")
        name = text(expected, self.source).removesuffix(".class").strip()
        self.sites[str(site)] = {"thrown": [self.names.file.full_name(name)]}
        self.observed.append(actual)
        return report("caught", site, text(actual, self.source))

    def _has_identity(self, node: Node) -> bool:
        is_named = node.type == "field_access" and text(node, self.source).rpartition(".")[2].isupper()
        return is_named or node.type in {"null_literal", "true", "false", "class_literal"}

    def _equal(self, expected: Node, actual: Node, site: int) -> str:
        """The code that reports that side of a comparison which is not written out."""
        if not self.is_expected(expected):
            expected, actual = actual, expected
            if not self.is_expected(expected):
                raise Undividable("expected value that is computed")
        if is_written_out(actual, self.source, self.depending):
            raise Undividable("check of two values that are written out")
        if expected.type == "null_literal":
            return report("isNull", site, self._value(actual))
        if self.check.kind is Kind.ITEMS:
            return report("items", site, self._value(actual))
        delta = self.names.number(self.check.delta) if self.check.delta is not None else 0.0
        if delta == 0:
            return report("report", site, self._value(actual))
        number = self.names.number(expected)
        if delta is None or number is None:
            raise Undividable("numbers that may differ")
        self.sites[str(site)] = {"near": [number, delta]}
        return report("near", site, self._value(actual))

    def _value(self, node: Node) -> str:
        """The code of a value that is reported."""
        for each in descendants(node):
            if is_comparison(each) or each.type in _COMPUTED:
                raise Undividable("comparison within a check")
            if each.type == "method_invocation" and may_compare(name_of(each, self.source), self.depending):
                raise Undividable("comparing function")
        self.observed.append(node)
        return text(node, self.source)

    def _truths(self, node: Node, *, is_negated: bool) -> Iterator[str]:
        """The code that reports a truth, or what is compared for it."""
        site = node.start_byte
        operator = node.children[1].type if node.type == "binary_expression" else ""
        parts = [part for part in node.named_children if "comment" not in part.type]
        if node.type == "parenthesized_expression":
            yield from self._truths(parts[0], is_negated=is_negated)
        elif node.type == "unary_expression":
            yield from self._truths(parts[-1], is_negated=not is_negated)
        elif operator == ("||" if is_negated else "&&"):
            statement = self.check.node.parent
            if statement is None or statement.parent is None or statement.parent.type != "block":
                raise Undividable("check under a condition")
            for part in parts:
                yield from self._truths(part, is_negated=is_negated)
        elif operator:
            yield self._compared(parts, site, is_equal=operator == ("!=" if is_negated else "=="))
        elif node.type == "method_invocation" and not is_negated and (sides := self._compared_by(node)):
            yield self._equal(*sides, site)
        elif node.type in _ASKED or (node.type == "identifier" and self.names.is_of_call(text(node, self.source))):
            yield report("report", site, self._value(node))
        else:
            raise Undividable("condition that cannot be divided")

    def _compared(self, parts: list[Node], site: int, *, is_equal: bool) -> str:
        """The code for a comparison by an operator."""
        values = [part for part in parts if part.type != "null_literal"]
        if len(values) == 1:
            return report("isNull", site, self._value(values[0]))
        if not is_equal:
            raise Undividable("check of an inequality")
        if any(part.type in {"string_literal", "binary_expression"} for part in parts):
            raise Undividable("check of identity")
        return self._equal(parts[0], parts[-1], site)

    def _compared_by(self, call: Node) -> tuple[Node, Node] | None:
        """The two values that a call of ``equals`` compares, if one of them is written out."""
        target, given = call.child_by_field_name("object"), arguments(call)
        if target is None or name_of(call, self.source) != "equals":
            return None
        if text(target, self.source) in {"Arrays", "Objects"} and len(given) == 2:
            return given[0], given[1]
        if len(given) != 1 or not (self.names.is_fixed(target) or self.names.is_fixed(given[0])):
            return None
        return target, given[0]
