"""Operations of a test on a value of the code and one that is written out: ``f(2) - 44``, ``TABLE.get(f(2))``.

Like a comparison, such an operation may say what is expected, though no check does.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import descendants, name_of, text
from excise.extractors.java.execution.certain_tests import is_call_of, is_given, may_compare
from excise.extractors.java.execution.checks import arguments
from excise.extractors.java.execution.expected_values import LITERALS, is_written_out
from excise.extractors.java.execution.test_class import TestClass
from excise.extractors.java.execution.written_names import WrittenNames

_SMALL = re.compile(r"-?[012][lL]?(?:\.0)?")
_BYTE = re.compile(r"0[xX][fF]{2}[lL]?")
_NUMBER = re.compile(r"-?[\d.]\S*")
_ARITHMETIC = frozenset({"-", "*", "/", "%", "^", "&", "|"})
_COMPOUND = frozenset({"-=", "*=", "/=", "%=", "^=", "&=", "|="})
_STATIC = frozenset({"Collections", "Arrays", "Objects", "Math", "StrictMath", "Integer", "Long", "Short", "Byte",
                     "Double", "Float", "Character", "Boolean"})  # fmt: skip
_CONVERTING = re.compile(
    r"to\w*String|parse\w*|copyOf\w*|asList|valueOf|sort|pow|require\w*|addAll|unmodifiable\w*|digit|forDigit|toArray"
)
_REDUCING = re.compile(
    r"minus\w*|subtract\w*|mod|remainder|divide\w*|until|x?or|andNot|(?:remove|retain)(?:All|If)|replace\w*|split|search"
    r"|count\w+|relativize|getOrDefault|truncatedTo"
)
"""Methods that leave little of a value, or nothing, where it is like another one."""
_JOINING = frozenset({"formatted", "concat", "append", "format", "toArray"})
_KEYED = re.compile(r"(?:new\s+)?(?:java\.util\.)?\w*(?:Set|Map)\b")


class HiddenComparisons:
    """Finds such operations in a method."""

    def __init__(self, names: WrittenNames, *, is_helper: bool) -> None:
        """``is_helper``: the parameters may be what the code gives."""
        self.is_helper = is_helper
        self.names, self.source, self.depending = names, names.source, names.depending

    def why(self, node: Node) -> str:
        """Why a node may compare; empty if it does not."""
        found = ""
        if node.type == "binary_expression":
            found = self._of_arithmetic(node, node.children[1].type, _ARITHMETIC)
        elif node.type == "assignment_expression":
            found = self._of_arithmetic(node, node.children[1].type, _COMPOUND) or self._of_item(node)
        elif node.type == "array_access":
            parts = node.named_children
            found = "comparing function" if self._is_written(parts[0]) and not self._is_written(parts[-1]) else ""
        elif node.type == "method_reference":
            name = text(node.named_children[-1], self.source)
            found = "comparing function" if may_compare(name, self.depending) else ""
        elif node.type == "method_invocation" and name_of(node, self.source) not in self.depending:
            found = "comparing function" if self._is_comparing(node) else ""
        return "" if found and self._is_input(node) else found

    def is_of_code(self, call: Node) -> bool:
        """Whether a call gets what the code gives, and the code does not get what it returns."""
        return not self._is_input(call) and not all(map(self._is_written, arguments(call)))

    def _of_arithmetic(self, node: Node, operator: str, operators: frozenset[str]) -> str:
        left, right = node.named_children[0], node.named_children[-1]
        written = [self._is_written(left), self._is_written(right)]
        sides = {text(left, self.source), text(right, self.source)}
        if self.is_helper and operator in operators and len(sides) == 2 and sides <= set(self.names.parameters):
            return "arithmetic with a written value"
        if written[0] == written[1]:
            return ""
        value = text(left if written[0] else right, self.source).strip("() ")
        is_number = _NUMBER.fullmatch(value) is not None
        is_small = _SMALL.fullmatch(value) is not None
        if operator in {"+", "+="} and not (is_number and not is_small):
            return ""
        is_mask = operator == "&" and _BYTE.fullmatch(value) is not None
        if is_mask or operator not in {*operators, "+", "+="}:
            return ""
        around = node.parent
        is_place = (
            around is not None and around.type in {"argument_list", "array_access"} and not self._is_checked(around)
        )
        return "" if is_small and (is_place or operator in _COMPOUND) else "arithmetic with a written value"

    def _is_checked(self, around: Node) -> bool:
        """Whether these are the arguments of a check."""
        call = around.parent
        return (
            call is not None and self.names.holder.reader.read(call) is not None
            if around.type == "argument_list"
            else False
        )

    def _of_item(self, node: Node) -> str:
        """Whether an item of an array is set whose place the code decides."""
        target = node.named_children[0]
        is_item = target.type == "array_access" and not self._is_written(target.named_children[-1])
        return "comparing function" if is_item else ""

    def _is_comparing(self, call: Node) -> bool:
        name, target, given = name_of(call, self.source), call.child_by_field_name("object"), arguments(call)
        written = [each for each in given if self._is_written(each)]
        mixed = 0 < len(written) < len(given)
        if target is None:
            return False
        holder = text(target, self.source).rpartition(".")[2]
        if holder[:1].isupper() and target.type in {"identifier", "field_access"} and not holder.isupper():
            return holder in _STATIC and mixed and _CONVERTING.fullmatch(name) is None
        if self._is_empty(target):
            return self._is_keyed(target) and len(written) < len(given[:1]) and self._has_written_keys(target)
        if self._is_written(target):
            return len(written) < len(given) and name not in _JOINING
        is_telling = any(self._tells(each) for each in written)
        is_asked = name == "remove" and (call.parent is None or call.parent.type != "expression_statement")
        return is_telling and (_REDUCING.fullmatch(name) is not None or is_asked)

    def _is_empty(self, target: Node) -> bool:
        """Whether a value is a container that is made without items."""
        value = self.names.initial_value(text(target, self.source)) if target.type == "identifier" else target
        return value is not None and value.type == "object_creation_expression" and not arguments(value)

    def _is_keyed(self, target: Node) -> bool:
        value = self.names.initial_value(text(target, self.source)) if target.type == "identifier" else None
        return value is not None and _KEYED.match(text(value, self.source)) is not None

    def _has_written_keys(self, target: Node) -> bool:
        """Whether a container is also asked for, or gets, keys that are written out."""
        for use in self.names.uses(text(target, self.source)):
            call = use.parent
            if call is not None and call.type == "method_invocation" and call.child_by_field_name("object") == use:
                first = arguments(call)[:1]
                if first and self._is_written(first[0]) and name_of(call, self.source) != "forEach":
                    return True
        return False

    def _tells(self, node: Node) -> bool:
        leaves = [text(each, self.source) for each in descendants(node) if each.type in LITERALS]
        plain = [re.sub(r"\\[rnt0fbs]|\W", "", leaf) for leaf in leaves]
        return any(each and not _SMALL.fullmatch(each) and each != "null" for each in plain) or not leaves

    def _is_written(self, node: Node) -> bool:
        """Whether the code has no part in a value."""

        def is_known(each: Node) -> bool:
            name = text(each, self.source)
            if self.is_helper and name in self.names.parameters:
                return False
            return self.names.is_known(each, is_expected=True) or self.names.is_counter(name)

        return is_written_out(node, self.source, self.depending, is_known)

    def _is_input(self, node: Node) -> bool:
        """Whether the code gets what an operation gives."""
        if is_given(node, self.source, self.depending, self.names.body):
            return True
        child, around = node, node.parent
        while around is not None and around != self.names.body:
            if is_call_of(around, self.source, self.depending) and child == around.child_by_field_name("arguments"):
                return True
            child, around = around, around.parent
        return False


def mixes(holder: TestClass, helper: Node) -> bool:
    """Whether a helper of the class does such an operation with a parameter."""
    body = helper.child_by_field_name("body")
    if body is None:
        return False
    found = HiddenComparisons(WrittenNames(holder, helper, body), is_helper=True)
    return any(found.why(node) for node in descendants(body))
