"""Values that a Java test writes out: literals, and what the standard library makes of them alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import descendants, name_of, text
from excise.extractors.java.execution.checks import arguments

LITERALS = frozenset({
    "string_literal", "character_literal", "decimal_integer_literal", "hex_integer_literal", "octal_integer_literal",
    "binary_integer_literal", "decimal_floating_point_literal", "hex_floating_point_literal", "true", "false",
    "null_literal", "class_literal",
})  # fmt: skip
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", ">>>", "&", "|", "^"})
_LIBRARY = frozenset({
    "List", "Set", "Map", "Arrays", "Collections", "Optional", "OptionalInt", "OptionalLong", "OptionalDouble",
    "Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "Character", "String", "BigInteger", "BigDecimal",
    "Duration", "Period", "Instant", "LocalDate", "LocalTime", "LocalDateTime", "OffsetDateTime", "ZonedDateTime",
    "OffsetTime", "Year",
    "YearMonth", "MonthDay", "ZoneId", "ZoneOffset", "UUID", "URI", "Locale", "Currency", "Charset",
    "StandardCharsets", "Path", "Paths", "EnumSet", "Month", "DayOfWeek", "Math", "TimeUnit", "ChronoUnit", "Date",
    "File", "URL", "ArrayList", "LinkedList", "HashSet", "LinkedHashSet", "TreeSet", "HashMap", "LinkedHashMap",
    "TreeMap", "Object", "RoundingMode", "ImmutableList", "ImmutableSet", "ImmutableMap", "Lists", "Sets",
})  # fmt: skip
"""Types of the standard library, and of Guava, whose values are known from what makes them."""
_MAKING = re.compile(
    r"asList|of[A-Z]?\w*|valueOf|singleton\w*|empty\w*|nCopies|unmodifiable\w*|parse\w*|fromString|create|forName"
    r"|entry|join|format|get|repeat|copyOf|newArrayList|newHashSet|toHexString|toBinaryString|compare"
)
_CHANGING = frozenset({
    "length", "size", "getBytes", "toCharArray", "toUpperCase", "toLowerCase", "trim", "strip", "concat", "replace",
    "substring", "charAt", "intValue", "longValue", "doubleValue", "negate", "toString", "repeat", "toPath", "toFile",
})  # fmt: skip
"""Methods that make another value of one."""
_CONSTANT = re.compile(r"(?:\w+\.)+[A-Z][A-Z0-9_]*$|(?:Locale|Charset)\.[A-Z]\w+$")
_NUMBER = re.compile(r"(\d[\d_]*)?(?:\.(\d[\d_]*)?)?(?:[eE][-+]?\d+)?[fFdDlL]?")


def is_written_out(
    node: Node, source: bytes, depending: Collection[str], is_known: Callable[[Node], bool] = lambda _: False
) -> bool:
    """Whether a value is known from the test alone.

    ``depending``: names of the code under test and of what calls it. ``is_known`` tells whether a name (``x``) has such
    a value.
    """

    def is_plain(each: Node) -> bool:
        return is_written_out(each, source, depending, is_known)

    if node.type in LITERALS:
        return True
    if node.type in {"identifier", "field_access"}:
        return is_known(node) if node.type == "identifier" else _is_constant(node, source, depending, is_plain)
    if node.type in {"array_access", "unary_expression"}:
        return is_plain(node.named_children[0 if node.type == "array_access" else -1])
    makes = {"object_creation_expression": _is_made, "method_invocation": _is_library_call}
    if node.type in makes:
        is_made = makes[node.type](node, source, _LIBRARY.difference(depending), is_plain)
        return is_made and all(map(is_plain, arguments(node)))
    parts = _parts_of_value(node)
    return parts is not None and all(map(is_plain, parts))


def _parts_of_value(node: Node) -> list[Node] | None:
    """The values of which another one is made without calls; ``None`` if it is not."""
    parts = _parts(node)
    if node.type in {"parenthesized_expression", "array_initializer"}:
        return parts
    if node.type == "binary_expression":
        return parts if node.children[1].type in _ARITHMETIC else None
    value = node.child_by_field_name("value")
    if node.type == "cast_expression":
        return [value] if value is not None else None
    if node.type != "array_creation_expression":
        return None
    sizes = [_parts(child)[0] for child in parts if child.type == "dimensions_expr"]
    return [value] if value is not None else sizes


def _parts(node: Node) -> list[Node]:
    return [child for child in node.named_children if "comment" not in child.type]


def _is_constant(node: Node, source: bytes, depending: Collection[str], is_plain: Callable[[Node], bool]) -> bool:
    """Whether a field is one of another type, whose value no solution decides, or the length of an array."""
    found = text(node, source)
    if found.endswith(".length"):
        return is_plain(node.named_children[0])
    words = found.split(".")
    if any(part.type not in {"field_access", "identifier"} for part in descendants(node) if part.is_named):
        return False
    return bool(_CONSTANT.match(found)) and words[-2][:1].isupper() and not set(words).intersection(depending)


def _is_made(
    node: Node,
    source: bytes,
    library: Collection[str],
    is_plain: Callable[[Node], bool],  # noqa: ARG001
) -> bool:
    kind = node.child_by_field_name("type")
    has_body = any(child.type == "class_body" for child in node.named_children)
    if kind is None or has_body:
        return False
    name = re.sub(r"<.*>$", "", text(kind, source), flags=re.S)
    return name.rpartition(".")[2] in library and (name != "Date" or bool(arguments(node)))


def _is_library_call(node: Node, source: bytes, library: Collection[str], is_plain: Callable[[Node], bool]) -> bool:
    name, target = name_of(node, source), node.child_by_field_name("object")
    if target is None:
        return name in {"asList", "emptyList", "emptySet", "emptyMap", "singletonList", "singleton"}
    holder = text(target, source).rpartition(".")[2]
    if target.type in {"identifier", "field_access"} and holder in library:
        return _MAKING.fullmatch(name) is not None or name in _CHANGING
    return name in _CHANGING and is_plain(target)


def number_of(node: Node, source: bytes) -> float | None:
    """The number that a literal says, or a constant of the standard library."""
    known = {
        "Double.MIN_VALUE": 5e-324, "Float.MIN_VALUE": 1e-45, "Math.PI": 3.141592653589793,
        "Math.E": 2.718281828459045,
    }  # fmt: skip
    found = text(node, source)
    if found in known:
        return known[found]
    if node.type == "parenthesized_expression":
        return number_of(_parts(node)[0], source)
    if node.type == "unary_expression" and found[:1] in {"-", "+"}:
        inner = number_of(node.named_children[-1], source)
        return None if inner is None else -inner if found[0] == "-" else inner
    if node.type not in {"decimal_integer_literal", "decimal_floating_point_literal"} or not _NUMBER.fullmatch(found):
        return None
    return float(found.replace("_", "").rstrip("fFdDlL"))
