"""How problem statements write about JavaScript code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.protocols import Module
from excise.types import Symbol

_EXPORTED = re.compile(r"module\.exports = |export default ")


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
