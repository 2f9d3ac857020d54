"""What the functions of a test file are divided by: names with expected values, functions that check, constants."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.lifting.expected_values import (
    ExpectedNames,
    called,
    functions_of,
    module_names,
    test_helpers,
)
from excise.extractors.python.lifting.inlined_helpers import Helper, find_helpers
from excise.extractors.python.lifting.unused_values import constants_of

_CHECKS = ("assert", "check", "verify", "expect", "fail")
"""Beginnings of the names of functions that check something themselves."""
_NO_CHECKS = frozenset({"check_call", "check_output"})


@dataclass(frozen=True, slots=True)
class TestFile:
    """What the functions of a test file are divided by."""

    __test__ = False

    names: ExpectedNames
    """Names of the file that hold expected values."""
    constants: Mapping[str, ast.expr]
    """Names that the file assigns, to what it assigns to them."""
    checking: Collection[str]
    """Names of functions of the file that check something and are no tests: what they expect stays in them."""
    helpers: Collection[str]
    """Names that the file imports from modules of tests."""
    inlined: Mapping[str, Helper]
    """Those of ``checking`` whose bodies can stand in place of their calls."""
    code: Collection[str]
    """Names of the code under test and of what calls it: no check, whatever they are called."""

    @classmethod
    def of(cls, tree: ast.Module, depending: Collection[str]) -> TestFile:
        """What there is to know of a file; ``depending``: names of the code under test and of what calls it."""
        checking = set()
        for name, function in functions_of(tree):
            short = name.rpartition("::")[2]
            if not short.startswith("test") and has_checks(walk(function), depending):
                checking.add(short)
        inlined = find_helpers(tree, checking)
        names = module_names(tree, depending)
        return cls(names, constants_of(tree), checking, test_helpers(tree), inlined, depending)


def is_check(node: ast.AST, code: Collection[str]) -> bool:
    """Whether a node calls something that checks, by its name, and is none of the code under test."""
    name = called(node) if isinstance(node, ast.Call) else ""
    return name.lstrip("_").startswith(_CHECKS) and name not in _NO_CHECKS and name not in code


def has_checks(nodes: Iterable[ast.AST], code: Collection[str]) -> bool:
    """Whether any of the nodes is an assertion or calls something that checks."""
    return any(isinstance(node, ast.Assert) or is_check(node, code) for node in nodes)
