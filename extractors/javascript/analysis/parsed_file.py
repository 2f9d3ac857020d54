"""Records of a parsed JavaScript file: imports, exports, references, functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from excise.protocols import Module

WHOLE = "*"
"""Name of an import or export that is a whole module: ``require('x')``, ``module.exports = …``, ``import * as x``."""
DEFAULT = "default"
"""Name of the default export of an ECMAScript module."""


class Import(NamedTuple):
    """One name that a file binds to something of another module."""

    module: str
    """The module as it is written, such as ``./utils``."""
    name: str
    """The imported name, :data:`DEFAULT`, or :data:`WHOLE`."""
    bound: str
    """The local name."""
    start: int
    """First byte of the clause: the specifier, the declarator or the element of a pattern."""
    end: int
    """One past its last byte."""
    stmt_start: int
    """First byte of the statement."""
    stmt_end: int
    """One past its last byte."""
    owner: str
    """Qualified name of the innermost symbol around it; empty at module level."""


class Export(NamedTuple):
    """One name that a file exports."""

    name: str
    """The exported name, :data:`DEFAULT`, or :data:`WHOLE`."""
    local: tuple[str, ...]
    """The chain of names that is exported, such as ``("parse",)``; empty if it is a value without a name."""
    module: str
    """The module that it is exported from again (``export … from``, ``a: require('./a')``); empty for the own one."""
    start: int
    """First byte of the clause: the pair, the specifier or the statement."""
    end: int
    """One past its last byte."""
    is_element: bool
    """Whether the clause is one of a list, from which it is removed with its comma; else it is a statement."""


class Reference(NamedTuple):
    """One use of a name of the module, with the properties that follow it."""

    chain: tuple[str, ...]
    """Names; the first is ``this``, a name of the module, or empty for a property of an unknown object."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""
    owner: str
    """Qualified name of the innermost symbol around it; empty at module level."""
    at_load: bool
    """Whether it is evaluated when the module is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpan:
    """The function of a symbol as V8 reports it, in bytes."""

    start: int
    """First byte of the function itself, not of the statement that it is in."""
    end: int
    """One past its last byte."""
    body_start: int
    """First byte after the opening brace; of an arrow function with an expression, that of the expression."""
    body_end: int
    """The closing brace; of an arrow function with an expression, the end of the expression."""
    is_expression: bool = False
    """Whether the body is an expression without braces."""
    constructs: bool = False
    """Whether it is the constructor of a class that extends another."""
    result_at: int = -1
    """Where the type of its result may be written in TypeScript; -1 where it is written, or none is allowed."""
    result: str = ""
    """The type of any result of it: ``any``, of a promise, or of a generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaScriptModule(Module):
    """One parsed JavaScript file."""

    imports: tuple[Import, ...] = ()
    """Names bound to other modules, and imports for effects alone (without a bound name)."""
    exports: tuple[Export, ...] = ()
    """Exported names."""
    references: tuple[Reference, ...] = ()
    """Uses of names, those that are bound within functions left out."""
    functions: Mapping[str, FunctionSpan] = field(default_factory=dict)
    """Qualified name to the function of a symbol; classes are not in it."""
    statements: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Qualified name to the bytes that are deleted with a symbol: its statement, or its element of a list."""
    elements: frozenset[str] = frozenset()
    """Qualified names of the symbols that are elements of a list (of an object, of a declaration of several names)."""
    overloads: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Qualified name to the bytes of the signatures of overloads before a function's implementation."""
    is_esm: bool = False
    """Whether the file has ``import`` or ``export`` statements."""
