"""How problem statements write about Rust code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from excise.deleters.assertions import AssertionGrammar, assertions_of_function
from excise.deleters.rust.bodies import PLACEHOLDER
from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.extractors.rust.analysis.grammar import LITERALS, attributes_of, before_item, parse_tree, text
from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol

_MACRO = re.compile(r"\bvec!\s*(?=\[)|(?<=\w)!(?=\s*[(\[])")
_ASSERTIONS = AssertionGrammar(
    parse_tree=parse_tree,
    statements=frozenset({"expression_statement", "macro_invocation"}),
    checks=re.compile(r"(?:debug_)?assert(?:_\w+)?!?\s*\("),
    literals=LITERALS,
    known=frozenset({"vec", "matches"}),
    wrapped=lambda written: f"fn f() {{ {_MACRO.sub('', written).rstrip(';')}; }}",
)


class RustWords(StatementWordsDefaults):
    """The words of Rust."""

    fence = "rust"
    placeholder = PLACEHOLDER
    separator = "::"
    imports = r"(?:pub(?:\([^)]*\))? )?(?:use|extern crate|mod)\s"
    heads = (
        r"(?:pub(?:\([^)]*\))? )?(?:(?:const|unsafe|async|default|extern(?: \"[^\"]*\")?) )*"
        r"(?:fn|struct|enum|union|trait) (\w+)"
    )
    exports = r"pub(?:\([^)]*\))? use\s"

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """Of a type, all of it with its attributes, without bodies of functions; of a method, its block's head, too."""
        found = parse_tree(module.source).root_node.descendant_for_byte_range(symbol.start, symbol.end - 1)
        while found is not None and (found.start_byte, found.end_byte) != (symbol.start, symbol.end):
            found = found.parent
        if found is None:
            return ""
        if symbol.is_callable:
            return _in_block(found, module.source, symbol)
        marks = [f"#[{each}]" for each in attributes_of(found, module.source)]
        return "\n".join([*marks, _without_bodies(found, module.source)])

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:
        """``assert_eq!(f("a"), "b")``."""
        return assertions_of_function(_ASSERTIONS, codebase, test, symbol)

    def module_of(self, path: str) -> str:
        """The path of a module in its crate."""
        parts = path.removesuffix(".rs").removeprefix("src/").split("/")
        inside = [part for part in parts if part not in {"lib", "main", "mod"}]
        return "::".join(["crate", *inside])

    def missing_file(self, path: str) -> Sequence[str]:
        """What the compiler says of a file that is not there."""
        return [f"// error[E0583]: file not found for module: {path}"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """What the compiler says of a name that is missing, or a call of a function that lacks its code."""
        spelled = name.replace(".", self.separator)
        if deleter == "remove":
            return [f"error[E0425]: cannot find `{spelled}` // {path}"]
        return [f"{spelled}(...) // panics: not implemented"]


def _in_block(function: Node, source: bytes, symbol: Symbol) -> str:
    """The signature of a function below the head of its ``impl``, with the types in it; empty for a plain one.

    The block's documentation, which goes with its last function, stands above the first.
    """
    block = function.parent.parent if function.parent is not None else None
    body = block.child_by_field_name("body") if block is not None and block.type == "impl_item" else None
    if block is None or body is None:
        return ""
    head = " ".join(source[block.start_byte : body.start_byte].decode("utf-8", "replace").split())
    if head == f"impl {symbol.qualname.split('.')[-2]}":
        return ""
    types = [f"    {text(each, source)}" for each in body.named_children if each.type == "type_item"]
    first = next((each for each in body.named_children if each.type == "function_item"), None)
    told = before_item(block) if first is not None and first.id == function.id else []
    words = [text(each, source).rstrip() for each in told if text(each, source).startswith(("///", "/**"))]
    return "\n".join([*words, head, *types, symbol.signature])


def _without_bodies(declared: Node, source: bytes) -> str:
    """The text of a type or trait; bodies of functions in it are left out."""
    body = declared.child_by_field_name("body")
    functions = [each for each in (body.named_children if body is not None else ()) if each.type == "function_item"]
    parts, place = [], declared.start_byte
    for block in (each.child_by_field_name("body") for each in functions):
        if block is not None:
            parts += [source[place : block.start_byte].decode("utf-8", "replace"), "{ … }"]
            place = block.end_byte
    return "".join([*parts, source[place : declared.end_byte].decode("utf-8", "replace")])
