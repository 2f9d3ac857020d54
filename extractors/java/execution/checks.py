"""The checks of Java tests: which calls of JUnit, AssertJ, Hamcrest and Truth compare what with what."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import COMMENTS, descendants, name_of, text


class Kind(Enum):
    """What a check asks of a value."""

    EQUAL = "equal"
    ITEMS = "items"
    """Whether its items are equal to others."""
    SAME = "same"
    TRUE = "true"
    """A truth, be it ``true`` or ``false``."""
    NULL = "null"
    """Whether it is ``null``, or is not."""
    THROWS = "throws"
    FAIL = "fail"
    ALL = "all"
    """Other checks, in functions that are called one after the other."""
    HARMLESS = "harmless"
    """Nothing that would be expected."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Check:
    """A call that checks something."""

    node: Node
    kind: Kind
    actual: Node | None = None
    """What is checked."""
    expected: Node | None = None
    delta: Node | None = None
    """How much numbers may differ."""
    is_negated: bool = False
    """Whether the truth should be ``false``."""


@dataclass(frozen=True, slots=True)
class Imports:
    """The names that a file imports."""

    classes: Mapping[str, str]
    """Simple names of types to their full names."""
    functions: Mapping[str, str]
    """Names that are imported statically to the types that have them."""
    open_types: tuple[str, ...]
    """Types of which all static members are imported."""


_IMPORT = re.compile(rb"(?m)^\s*import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;")
_ASSERTION = re.compile(r"(?:assert|fail|verify|check|expect|require|ensure|must|should|assume|soft)(?![a-z])\w*")
_JUNIT = re.compile(r"(?:org\.junit\.|junit\.framework\.)?\b(?:Assert|Assertions|TestCase)$")
_TRUTHS = {"assertTrue": False, "assertFalse": True, "isTrue": False, "isFalse": True}
_NULLS = frozenset({"assertNull", "assertNotNull", "isNull", "isNotNull"})
_COMPARED = {
    "assertEquals": Kind.EQUAL, "assertArrayEquals": Kind.EQUAL, "assertIterableEquals": Kind.ITEMS,
    "assertSame": Kind.SAME,
}  # fmt: skip
_SPECIAL = {"fail": Kind.FAIL, "assertAll": Kind.ALL, "assertDoesNotThrow": Kind.HARMLESS}
_NUMBER = frozenset({
    "decimal_floating_point_literal", "hex_floating_point_literal", "decimal_integer_literal",
})  # fmt: skip


def imports_of(source: bytes) -> Imports:
    """The imports of a file."""
    classes, functions, open_types = {}, {}, []
    for is_static, name, star in _IMPORT.findall(source):
        full = name.decode()
        before, _, last = full.rpartition(".")
        if is_static and star:
            open_types.append(full)
        elif is_static:
            functions[last] = before
        elif not star:
            classes[last] = full
    return Imports(classes, functions, tuple(open_types))


def is_assertion_name(name: str) -> bool:
    """Whether a method has the name of a check."""
    return _ASSERTION.fullmatch(name) is not None


def arguments(call: Node) -> list[Node]:
    """The arguments of a call."""
    found = call.child_by_field_name("arguments")
    return [child for child in found.named_children if child.type not in COMMENTS] if found is not None else []


class CheckReader:
    """Finds checks in a file."""

    def __init__(self, source: bytes, imports: Imports, own: Collection[str], *, is_junit3: bool) -> None:
        """``own``: names of the methods of the class, which hide imported ones."""
        self.source, self.imports, self.own, self.is_junit3 = source, imports, own, is_junit3
        self._types: dict[str, str] = {}

    def read(self, call: Node) -> Check | None:
        """The check that a call makes; ``None`` if it makes none by itself."""
        name = name_of(call, self.source)
        holder = self._holder(call, name)
        if holder is None:
            return self._of_subject(call, name)
        if not _JUNIT.search(holder):
            is_hamcrest = holder.endswith(("MatcherAssert", "CoreMatchers", "Matchers")) or name == "assertThat"
            return self._of_matcher(call, name) if is_hamcrest else None
        return self._of_junit(call, name, is_jupiter="jupiter" in holder)

    def _holder(self, call: Node, name: str) -> str | None:
        """The type whose static method is called; ``None`` for other calls."""
        target = call.child_by_field_name("object")
        if target is not None:
            found = text(target, self.source) if target.type in {"identifier", "field_access"} else ""
            return self.imports.classes.get(found, found) if found.rpartition(".")[2][:1].isupper() else None
        if name in self.own:
            return None
        if name in self.imports.functions or not is_assertion_name(name):
            return self.imports.functions.get(name)
        types = ("junit.framework.TestCase",) if self.is_junit3 else sorted(self.imports.open_types)
        return next((each for each in types if _JUNIT.search(each)), None)

    def _of_junit(self, call: Node, name: str, *, is_jupiter: bool) -> Check | None:
        given = arguments(call)
        if name == "assertThat":
            return self._of_matcher(call, name)
        if name in _SPECIAL:
            return Check(call, _SPECIAL[name])
        if name in {"assertThrows", "assertThrowsExactly"}:
            return self._throws(call, given, is_jupiter=is_jupiter)
        size = 1 if name in _TRUTHS or name in _NULLS else 2
        values, delta = self._without_message(given, size, is_jupiter=is_jupiter)
        if len(values) != size:
            return Check(call, Kind.OTHER)
        return self._asking(call, name, values[0]) or Check(
            call, _COMPARED.get(name, Kind.OTHER), values[-1], values[0], delta
        )

    def _asking(self, call: Node, name: str, value: Node) -> Check | None:
        """A check for a truth or ``null``."""
        if name in _TRUTHS:
            return Check(call, Kind.TRUE, value, is_negated=_TRUTHS[name])
        return Check(call, Kind.NULL, value) if name in _NULLS else None

    def _without_message(self, given: list[Node], size: int, *, is_jupiter: bool) -> tuple[list[Node], Node | None]:
        """The values of a check, of which there should be ``size``, and how much numbers may differ."""
        values, delta = list(given), None
        if len(values) > size and self._is_message(values[-1 if is_jupiter else 0]):
            values.pop(-1 if is_jupiter else 0)
        if len(values) == 3 and size == 2 and self._is_number(values[2]):
            delta = values.pop()
        return values, delta

    def _throws(self, call: Node, given: list[Node], *, is_jupiter: bool) -> Check:
        if not is_jupiter and given and given[0].type != "class_literal":
            given = given[1:]
        if len(given) < 2 or given[0].type != "class_literal":
            return Check(call, Kind.OTHER)
        return Check(call, Kind.THROWS, given[1], given[0])

    def _of_matcher(self, call: Node, name: str) -> Check | None:
        """``assertThat(value, is(4))``."""
        given = arguments(call)
        if name != "assertThat" or len(given) < 2:
            return None
        value, matcher = given[-2:]
        while matcher.type == "method_invocation" and name_of(matcher, self.source) in {"is", "equalTo"}:
            inner = arguments(matcher)
            if len(inner) != 1:
                break
            if inner[0].type != "method_invocation" or name_of(inner[0], self.source) not in {
                "is", "equalTo", "nullValue", "notNullValue", "not",
            }:  # fmt: skip
                is_class = inner[0].type == "class_literal"
                return Check(call, Kind.OTHER if is_class else Kind.EQUAL, value, inner[0])
            matcher = inner[0]
        is_null = name_of(matcher, self.source) in {"nullValue", "notNullValue"} and not arguments(matcher)
        return Check(call, Kind.NULL if is_null else Kind.OTHER, value)

    def _of_subject(self, call: Node, name: str) -> Check | None:
        """``assertThat(value).isEqualTo(4)``."""
        subject = call.child_by_field_name("object")
        inner = subject
        while inner is not None and inner.type == "method_invocation":
            if name_of(inner, self.source) in {"assertThat", "assertThatThrownBy", "assertThatCode", "expect"}:
                break
            inner = inner.child_by_field_name("object")
        if inner is None or inner.type != "method_invocation":
            return None
        given, values = arguments(call), arguments(inner)
        if inner != subject or name_of(inner, self.source) != "assertThat" or len(values) != 1:
            return Check(call, Kind.OTHER)
        if name == "isEqualTo" and len(given) == 1:
            return Check(call, Kind.EQUAL, values[0], given[0])
        return (self._asking(call, name, values[0]) if not given else None) or Check(call, Kind.OTHER)

    def _is_message(self, node: Node) -> bool:
        """Whether an argument is a text, or a function that makes one."""
        if node.type in {"string_literal", "lambda_expression"}:
            return True
        if node.type == "binary_expression":
            return any(child.type == "string_literal" for child in descendants(node))
        if node.type == "method_invocation":
            return text(node, self.source).startswith(("String.format(", "String.valueOf("))
        return node.type == "identifier" and self._type_of(node) == "String"

    def _is_number(self, node: Node) -> bool:
        while node.type in {"unary_expression", "parenthesized_expression"}:
            node = node.named_children[-1]
        is_limit = node.type == "field_access" and text(node, self.source) in {"Double.MIN_VALUE", "Float.MIN_VALUE"}
        is_named = node.type == "identifier" and self._type_of(node) in {"double", "float", "int"}
        return node.type in _NUMBER or is_limit or is_named

    def _type_of(self, node: Node) -> str:
        """The type of a variable or field, if all that the file declares by that name have it."""
        name = text(node, self.source)
        if name not in self._types:
            pattern = rb"\b([\w.]+)\s+%s\s*[=;,):]" % re.escape(name.encode())
            found = {kind.decode() for kind in re.findall(pattern, self.source)}
            found -= {"return", "case", "throw", "else", "new", "instanceof"}
            self._types[name] = found.pop() if len(found) == 1 else ""
        return self._types[name]
