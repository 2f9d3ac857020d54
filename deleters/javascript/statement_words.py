"""How problem statements write about JavaScript code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

from excise.deleters.assertions import AssertionGrammar, assertions_in
from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.extractors.javascript.analysis.grammar import parse_tree
from excise.extractors.javascript.analysis.test_code import span_of_test
from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol, path_of

_EXPORTED = re.compile(r"module\.exports = |export default ")

_BOUND = re.compile(
    r"""\bimport\s+([^;'"]+?)\s+from\s*['"]([^'"\n]*)['"]"""
    r"""|\b(?:const|let|var)\s+(\{[^{}]*\}|[\w$]+)\s*=\s*require\(\s*['"]([^'"\n]*)['"]\s*\)"""
)
"""What a file imports, and from where."""
_DEFAULT = re.compile(r"[\w$]+(?=\s*(?:,|$))")
"""The name by which a file imports what another one exports alone."""
_ASSERTIONS = AssertionGrammar(
    parse_tree=parse_tree,
    statements=frozenset({"expression_statement"}),
    checks=re.compile(r"(?:await\s+)?(?:assert|expect|tap|st|tt|sst|s\d*t|t)(?=[.(])"),
    literals=frozenset({"string", "template_string", "number", "regex", "true", "false", "null", "undefined"}),
    known=frozenset({"undefined", "NaN", "Infinity"}),
    wrapped=lambda written: written,
)


class JavaScriptWords(StatementWordsDefaults):
    """The words of JavaScript."""

    fence = "js"
    placeholder = "throw new Error('not implemented')"
    imports = r"(?:import\s|(?:const|let|var)\s.*=\s*require\()"
    heads = r"(?:module\.exports = |export default |static |async |get |set )*(?:function\*? |class |\*)?([\w$]+)"
    values = r"(?:const|let|var)\s+([\w$]+)\s*=(?!\s*require\()"
    exports = ""

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """The signature of a function without a name, without the one by which excise knows it."""
        is_unnamed = bool(symbol.qualname) and symbol.qualname == self.unnamed(module)
        name = rf"\b(function\*?|class) {re.escape(symbol.name)}\b"
        return re.sub(name, r"\1 ", symbol.signature) if is_unnamed else ""

    def unnamed(self, module: Module) -> str:
        """That of ``module.exports = function (…) {…}``."""
        for symbol in module.symbols:
            if "." in symbol.qualname or not _EXPORTED.match(symbol.signature):
                continue
            code = module.source[symbol.start : symbol.end].decode(errors="replace")
            if re.search(rf"\b(?:function\s*\*?|class)\s*{re.escape(symbol.name)}\b", code) is None:
                return symbol.qualname
        return ""

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:
        """``assert.equal(f('a'), 'b')``, in the block of a test."""
        path, names = path_of(test), {symbol.name.partition("#")[0]}
        module = codebase.modules.get(path)
        span = span_of_test(module.source, test) if module is not None else None
        if module is None or span is None:
            return ()
        imported = set[str]()
        for bound, source in _bound_names(module.source):
            imported |= set(re.findall(r"[\w$]+", bound)) - {"as", "type"}
            alone = _DEFAULT.match(bound)
            if alone is not None and _leads_to(path, source, symbol):
                names.add(alone[0])
        return tuple(assertions_in(_ASSERTIONS, module.source, (path, *span), symbol, names, imported - names))

    def module_of(self, path: str) -> str:
        """The path by which a file is required from the main folder."""
        return f"./{path}"

    def missing_file(self, path: str) -> Sequence[str]:
        """A session that requires a file that is not there."""
        return [f"> require('./{path}')", f"Error: Cannot find module './{path}'"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """A session in which one definition is missing, or lacks its code."""
        if deleter == "stub":
            return [f"> {name}(...)  // {path}", "Error: not implemented"]
        return [f"> {name}(...)  // {path}", f"TypeError: {name} is not a function"]


@lru_cache(maxsize=16)
def _bound_names(source: bytes) -> tuple[tuple[str, str], ...]:
    """(what a file imports, from where) of its imports."""
    found = _BOUND.findall(source.decode(errors="replace"))
    return tuple((first or second, of_first or of_second) for first, of_first, second, of_second in found)


def _leads_to(path: str, source: str, symbol: Symbol) -> bool:
    """Whether a file imports the file of a function that bears its name, or is all that it exports by default."""
    if not source.startswith(".") or not _EXPORTED.match(symbol.signature):
        return False
    there = posixpath.normpath(posixpath.join(posixpath.dirname(path), source))
    own = re.sub(r"\.\w+$", "", symbol.path)
    return re.sub(r"\.[cm]?[jt]sx?$", "", there) in {own, own.removesuffix("index").rstrip("/") or "."}
