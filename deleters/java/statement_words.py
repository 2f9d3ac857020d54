"""How problem statements write about Java code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

from excise.deleters.assertions import AssertionGrammar, assertions_of_function
from excise.deleters.java.bodies import PLACEHOLDER
from excise.deleters.java.table_rows import table_rows
from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.extractors.java.analysis.grammar import parse_tree, text
from excise.extractors.java.analysis.parsed_file import JavaModule
from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol, SymbolKind

_VALUE = re.compile(r"(?s)\s*=\s*(?=.*(?:\{|->|\bnew\b)).*;$")
"""The value of a field that is more than data."""

_ASSERTIONS = AssertionGrammar(
    parse_tree=parse_tree,
    statements=frozenset({"expression_statement"}),
    checks=re.compile(r"(?:[A-Z]\w*\s*\.\s*)?(?:assert|verify)\w*\s*\("),
    literals=frozenset(
        {"string_literal", "character_literal", "decimal_integer_literal", "decimal_floating_point_literal",
         "hex_integer_literal", "octal_integer_literal", "true", "false", "null_literal"}
    ),
    known=frozenset({"is", "equalTo", "asList", "nullValue", "containsString"}),
    wrapped=lambda written: f"class A {{ void f() {{ {written} }} }}",
)  # fmt: skip


class JavaWords(StatementWordsDefaults):
    """The words of Java."""

    fence = "java"
    placeholder = PLACEHOLDER
    imports = r"import\s"
    heads = (
        r"(?:(?:public|protected|private|static|final|abstract|synchronized|native|strictfp|default)\s+)*"
        r"(?:(?:class|interface|enum|record)\s+|(?:<[^>]*>\s*)?[\w.<>\[\], ?]+?\s+)?(\w+)"
    )

    exports = "(?!)"

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """Of a type, its constants, and its fields and abstract methods that others can use."""
        if symbol.kind is not SymbolKind.CLASS or not isinstance(module, JavaModule):
            return ""
        with_code = {each.qualname for each in module.symbols}
        constants = ",\n".join(_constants(module, symbol))
        parts = [textwrap.indent(f"{constants};", "    ")] if constants else []
        for member in module.definitions:
            is_shown = member.holder == symbol.qualname and member.names and not member.is_of_file
            if is_shown and member.qualname not in with_code:
                text = module.source[member.start : member.end].decode("utf-8", "replace").rstrip()
                parts.append(textwrap.indent(textwrap.dedent(_without_code(text)), "    "))
        return "\n".join([f"{symbol.signature} {{", *parts, "}"]) if parts else ""

    def table_rows(self, module: Module, test: Symbol, names: Collection[str]) -> str:
        """Those with an error, or with something empty."""
        return table_rows(module.source, test.start, test.end, set(names))

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:
        """``assertEquals("b", A.f("a"))``."""
        return assertions_of_function(_ASSERTIONS, codebase, test, symbol)

    def module_of(self, path: str) -> str:
        """The name of the type that the file is named after, with its package as far as the path tells."""
        inside = path.removesuffix(".java")
        for root in ("src/main/java/", "src/java/", "src/", "java/"):
            _, found, rest = inside.rpartition(root)
            if found:
                return rest.replace("/", ".")
        return inside.replace("/", ".")

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a type that is not there."""
        return [f"error: cannot find symbol: class {path.rpartition('/')[2].removesuffix('.java')}"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """What the compiler says of a name that is missing, or a call of a method that lacks its code."""
        if deleter == "remove":
            return [f"{path.rpartition('/')[2]}: error: cannot find symbol: {name.rpartition('.')[2]}"]
        return [f"{name}(...) // java.lang.UnsupportedOperationException: not implemented"]


def _constants(module: JavaModule, symbol: Symbol) -> list[str]:
    """The constants of an enumeration, without their bodies."""
    node = parse_tree(module.source).root_node.descendant_for_byte_range(symbol.start, symbol.end - 1)
    body = node.child_by_field_name("body") if node is not None and node.type == "enum_declaration" else None
    found = []
    for constant in body.named_children if body is not None else ():
        if constant.type == "enum_constant":
            inner = constant.child_by_field_name("body")
            shown = [leaf for leaf in constant.children if leaf != inner and leaf.type != "modifiers"]
            found.append("".join(text(leaf, module.source) for leaf in shown))
    return found


def _without_code(declared: str) -> str:
    """A declaration of fields or of an abstract method without the value that is code."""
    return _VALUE.sub(";", declared)
