"""How problem statements write about Python code; see :class:`excise.protocols.StatementWords`."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from excise.deleters.deletion_record import KEPT_DEFINITIONS, PARTLY_KEPT
from excise.deleters.python.deletion_builder import require_python
from excise.deleters.python.foreign_uses import is_foreign_use
from excise.deleters.python.function_data import function_data
from excise.deleters.python.test_excerpt import excerpt
from excise.extractors.python.analysis.ast_walk import first_line
from excise.extractors.python.analysis.grammar import of_types, parse_tree, text_of
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.extractors.python.needs.test_uses import Function, parsed
from excise.protocols import Assertion, Codebase, Module
from excise.types import Symbol, SymbolKind

_SOURCE_FOLDERS = ("src/", "lib/")
MAX_CONDITION = 100
"""Number of characters of a condition that is told."""
MIN_VARIANTS = 2
"""Number of definitions of one name from which on their conditions are told."""


class PythonWords:
    """The words of Python."""

    fence = "python"
    placeholder = "raise NotImplementedError"
    separator = "."
    imports = r"(?:from|import)\s"
    heads = r"(?:async )?(?:def|class) (\w+)"
    values = "(?!)"
    exports = ""

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """Its signature, with that of the function in it that it returns, if that has parameters of its own."""
        source = module.source[symbol.start : symbol.end] if symbol.is_callable else b""
        inner = _returned_function(source.decode("utf-8", "replace")) if source.count(b"def ") > 1 else ""
        return f"{symbol.signature}:\n    {inner}  # it returns this function" if inner else ""

    def unnamed(self, module: Module) -> str:  # noqa: ARG002
        """None: every function has a name."""
        return ""

    def condition(self, module: Module, symbol: Symbol) -> str:
        """The head of the block that it is in."""
        name = symbol.qualname.partition("#")[0]
        if sum(each.qualname.partition("#")[0] == name for each in module.symbols) < MIN_VARIANTS:
            return ""
        tree = parsed(module.source)
        try:
            found = _head_above(tree, symbol.start_line) if tree is not None else ""
        except RecursionError:
            return ""
        return found if len(found) <= MAX_CONDITION and "`" not in found else ""

    def assignments(self, module: Module, holder: Symbol) -> Mapping[str, str]:
        """The first assignment of each name."""
        if not isinstance(module, PythonModule):
            return {}
        owner = "" if holder.kind is SymbolKind.MODULE else holder.qualname
        found: dict[str, str] = {}
        for binding in module.bindings:
            if not owner or binding.klass == owner or binding.klass.startswith(f"{owner}."):
                name = f"{binding.klass}.{binding.name}" if binding.klass else binding.name
                text = module.source[binding.start : binding.end].decode("utf-8", "replace")
                found.setdefault(name, text)
        return found

    def data(self, module: Module, symbol: Symbol) -> Sequence[str]:
        """Tables, alphabets and lists of numbers."""
        return function_data(module, symbol)

    def lost_imports(self, before: bytes, after: bytes) -> Sequence[str]:
        """One statement for each module, with the names that are gone."""
        left = set(_imports(after))
        by_module: dict[str, list[str]] = {}
        for module, name in _imports(before):
            if (module, name) not in left:
                by_module.setdefault(module, []).append(name)
        return [f"{module} {', '.join(dict.fromkeys(names))}" for module, names in by_module.items()]

    def excerpt(self, test: str, name: str, *, whole: bool) -> str:
        """See :func:`excise.deleters.python.test_excerpt.excerpt`."""
        return excerpt(test, name, whole=whole)

    def table_rows(self, module: Module, test: Symbol, names: Collection[str]) -> str:  # noqa: ARG002
        """None: examples show calls, and parts of tests."""
        return ""

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:  # noqa: ARG002
        """None: examples show calls, and parts of tests."""
        return ()

    def is_other(self, codebase: Codebase, path: str, name: str, own: Collection[str]) -> bool:
        """Where the imports of the file lead to."""
        found = require_python(codebase).resolver.name(path, name)
        return found is not None and found.path not in own

    def is_foreign_use(self, codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:
        """Whether a method that is called is one of a built-in type, or of an object of another project."""
        return is_foreign_use(codebase, symbol, caller, line)

    def module_of(self, path: str) -> str:
        """The dotted name by which a file is imported, as far as its path tells."""
        for folder in _SOURCE_FOLDERS:
            path = path.removeprefix(folder)
        return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def missing_file(self, path: str) -> Sequence[str]:
        """An interactive session that imports a file that is not there."""
        module = self.module_of(path)
        return [f">>> import {module}", f"ModuleNotFoundError: No module named {module!r}"]

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """An interactive session in which one definition is missing, or lacks its code."""
        module = self.module_of(path)
        first, _, rest = name.partition(".")
        if deleter in KEPT_DEFINITIONS:
            return [f">>> from {module} import {first}", f">>> {name}(...)", "NotImplementedError"]
        if deleter in PARTLY_KEPT:
            return [f">>> from {module} import {first}", f">>> {name}(...)  # missing, or does less than it did"]
        if not rest:
            return [f">>> from {module} import {name}", f"ImportError: cannot import name {name!r} from {module!r}"]
        owner, _, attribute = name.rpartition(".")
        last = owner.rpartition(".")[2]
        return [
            f">>> from {module} import {first}",
            f">>> {name}",
            f"AttributeError: type object {last!r} has no attribute {attribute!r}",
        ]


def _head_above(node: ast.AST, line: int, head: str = "") -> str:
    """The head of the innermost block around a definition that begins on a line: ``if x``, ``else of if x``."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.stmt | ast.ExceptHandler) or not (
                first_line(child) <= line <= (child.end_lineno or 0)
            ):
                continue
            if isinstance(child, Function | ast.ClassDef):
                return _head_above(child, line) if first_line(child) != line else _head_of(node, field) or head
            return _head_above(child, line, _head_of(node, field) or head)
    return head


def _head_of(node: ast.AST, field: str) -> str:
    """The head of a block that is a field of a statement; empty if it is no block under a condition."""
    match node:
        case ast.If(test=test):
            return f"else of if {ast.unparse(test)}" if field == "orelse" else f"if {ast.unparse(test)}"
        case ast.Try() if field != "handlers":
            return {"body": "try", "orelse": "else of try", "finalbody": "finally"}[field]
        case ast.ExceptHandler(type=ast.expr() as caught):
            return f"except {ast.unparse(caught)}"
        case ast.ExceptHandler():
            return "except"
    return ""


@lru_cache(maxsize=8)
def _imports(source: bytes) -> tuple[tuple[str, str], ...]:
    """See :func:`_imported`; kept, since titles and statements ask for the same files."""
    return tuple(_imported(source))


def _imported(source: bytes) -> Iterator[tuple[str, str]]:
    """For each imported name the beginning of its statement, and the name: ``from .a import``, ``b as c``.

    What is imported in place of something that is not there is left out.
    """
    root = parse_tree(source).root_node
    instead = [(each.start_byte, each.end_byte) for each in of_types(root, "except_clause")]
    for node in of_types(root, "import_statement", "import_from_statement"):
        if any(start <= node.start_byte < end for start, end in instead):
            continue
        module = node.child_by_field_name("module_name")
        beginning = f"from {text_of(module)} import" if module is not None else "import"
        for name in node.children_by_field_name("name"):
            yield beginning, " ".join(text_of(name).split())


def _returned_function(text: str) -> str:
    """The head of a function in another one (``text``) that returns it; empty without one, and if it takes anything."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    nodes = [node for outer in tree.body for node in ast.walk(outer)]
    returned = {n.value.id for n in nodes if isinstance(n, ast.Return) and isinstance(n.value, ast.Name)}
    for node in nodes:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node not in tree.body
            and node.name in returned
            and _takes_more(node.args)
        ):
            mark = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
            return f"{mark}def {node.name}({ast.unparse(node.args)})"
    return ""


def _takes_more(arguments: ast.arguments) -> bool:
    """Whether parameters are more than ``*args`` and ``**kwargs``."""
    return bool(arguments.args or arguments.posonlyargs or arguments.kwonlyargs)
