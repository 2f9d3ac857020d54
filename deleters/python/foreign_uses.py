"""Calls of Python code that only have the name of a removed method: of built-in types, or other projects' objects."""

from __future__ import annotations

import builtins
import io
import re
from pathlib import PurePosixPath

from excise.deleters.statement.place_names import places_of_name
from excise.protocols import Codebase
from excise.types import Symbol, SymbolKind

_MAKERS = frozenset(
    {"open", "io.open", "sorted", "input", "repr", "re.compile", "re.match", "re.search", "re.fullmatch"}
    | {name for name, made in vars(builtins).items() if isinstance(made, type)} - {"object", "super", "type"}
)
"""Functions of Python that return values of its own types, files, and what regular expressions are and find."""
_OWN_TYPES = (
    bytearray, bytes, dict, frozenset, list, set, str, tuple, io.TextIOWrapper, io.BufferedReader, re.Pattern, re.Match,
)  # fmt: skip
_METHODS = frozenset(name for made in _OWN_TYPES for name in dir(made) if not name.startswith("_"))
"""Names of methods of Python's own types, of files, and of regular expressions and what they find."""
_GIVING_ANY = frozenset(
    {"asyncio", "attr", "attrs", "collections", "concurrent", "contextlib", "copy", "dataclasses", "functools", "heapq"}
    | {"importlib", "inspect", "itertools", "joblib", "json", "operator", "pickle", "pydantic", "random", "shelve"}
    | {"types", "typing", "unittest", "weakref", "yaml"}
)
"""Modules whose functions may return objects of any class."""


def is_foreign_use(codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:
    """Whether the method that a line calls has only the name: it is one of a built-in type or a file, as a
    variable of the caller holds it, or as the caller's file names neither the class nor its module; or it is one of
    what a function of another project returned, as an attribute of the class or module holds it."""
    if symbol.kind is not SymbolKind.METHOD:
        return False
    name = symbol.name.partition("#")[0]
    receivers = set(re.findall(rf"([\w.\])]+)\.{re.escape(name)}\b", line))
    if not receivers or not receivers.isdisjoint({"self", "cls"}):
        return False
    where = codebase.symbols()[caller]
    source = codebase.modules[where.path].source
    text = source[where.start : where.end].decode(errors="replace")
    if all(map(str.isidentifier, receivers)) and all(_holds_builtin(receiver, text) for receiver in receivers):
        return True
    if all(_is_foreign_attribute(codebase, symbol, receiver, where.path) for receiver in receivers):
        return True
    own = places_of_name(codebase, symbol)[0] | {PurePosixPath(symbol.path.removesuffix("/__init__.py")).stem}
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, own))})\b".encode())
    return where.path != symbol.path and name in _METHODS and named.search(source) is None


def _holds_builtin(variable: str, code: str) -> bool:
    """Whether code binds a variable, and to nothing but what :data:`_MAKERS` return."""
    name = re.escape(variable)
    bound = _bound_calls(rf"(?<![\w.]){name}", code)
    bound += re.findall(rf"\bwith\b[^\n]*?([\w.]+\()[^\n]*\bas\s+{name}\b", code)
    others = re.search(rf"\b(?:for\s[^\n:]*\b{name}\b[^\n:]*\bin\b|def\s[^:]*[(,]\s*\**{name}\b)", code)
    return bool(bound) and others is None and all(call[:-1] in _MAKERS for call in bound)


def _bound_calls(target: str, code: str) -> list[str]:
    """What code assigns to places that match a pattern: the beginning of a call, ``re.compile(``, or another text."""
    found = re.finditer(rf"{target}\s*(?::[^=\n]*)?=(?!=)\s*([\w.]*\(?)", code)
    return [match[1] if _is_whole_call(code, match.end()) else "" for match in found]


def _is_foreign_attribute(codebase: Codebase, symbol: Symbol, receiver: str, path: str) -> bool:
    """Whether a file binds ``self.name`` or ``cls.name``, or a module of the project binds ``module.name``, to nothing
    but what functions of other projects return, and no such line names the class of a method."""
    owner, _, name = receiver.rpartition(".")
    files = [path] if owner in {"self", "cls"} else [p for p in codebase.modules if PurePosixPath(p).stem == owner]
    if not owner.isidentifier() or not name:
        return False
    calls, name, klass = [], re.escape(name), re.escape(symbol.qualname.rpartition(".")[0].rpartition(".")[2])
    other = re.compile(
        rf"\b{name}\b[^=\n]{{0,200}}=[^\n]{{0,200}}\b{klass}\b|\b{name}\s*:[^=\n]{{0,200}}\b{klass}\b"
        rf"|\b{name}\s*(?:,[^=\n()]{{0,200}}|\)\s*|[^\w\s=!<>:,.()\[\]{{}}]{{1,3}})=(?!=)"
        rf"|\b(?:as|for)\s+(?:self|cls)\.{name}\b|\bsetattr\([^\n]{{0,200}}['\"]{name}['\"]"
    )
    for file in files:
        code = codebase.modules[file].source.decode(errors="replace")
        if other.search(code):
            return False
        calls += [(call, code) for call in _bound_calls(rf"(?<!\w){name}", code)]
    return bool(calls) and all(call.endswith("(") and _is_foreign(codebase, call[:-1], code) for call, code in calls)


def _is_foreign(codebase: Codebase, function: str, code: str) -> bool:
    """Whether code imports a function from a module that is not the project's, or it is one of :data:`_MAKERS`."""
    name = re.escape(function.partition(".")[0])
    member = re.search(rf"(?m)^[ \t]*from\s+([\w.]+)\s+import\b[^#\n]*\b{name}\b", code)
    whole = re.search(rf"(?m)^[ \t]*import\s+(?:[^#\n]*,\s*)?(?:([\w.]+)\s+as\s+)?({name})\b", code)
    if member is None and whole is None:
        return function in _MAKERS
    module = member[1] if member is not None else whole[1] or whole[2] if whole is not None else ""
    root = module.partition(".")[0]
    is_own = not root or any(root in PurePosixPath(path).with_suffix("").parts for path in codebase.modules)
    return not is_own and root not in _GIVING_ANY


def _is_whole_call(code: str, start: int) -> bool:
    """Whether nothing is done to what a call returns whose arguments start there: ``list(x)``, not ``list(x)[0]``."""
    depth = 1
    for bracket in re.finditer(r"[()]", code[start:]):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return re.match(r"[ \t]*(?:[#;,:)\]}]|\r?\n|$)", code[start + bracket.end() :]) is not None
    return False
