"""How problem statements write about JavaScript code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

from collections.abc import Sequence

from excise.deleters.statement_words_defaults import StatementWordsDefaults
from excise.protocols import Module
from excise.types import Symbol


class JavaScriptWords(StatementWordsDefaults):
    """The words of JavaScript."""

    fence = "js"
    placeholder = "throw new Error('not implemented')"
    imports = r"(?:import\s|(?:const|let|var)\s.*=\s*require\()"
    heads = r"(?:module\.exports = |export default |static |async |get |set )*(?:function\*? |class |\*)?([\w$]+)"
    values = r"(?:const|let|var)\s+([\w$]+)\s*=(?!\s*require\()"
    exports = ""

    def declaration(self, module: Module, symbol: Symbol) -> str:  # noqa: ARG002
        """Its signature says all."""
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
