"""Which statements of a test fail without removed code: variants of tests that go on after a failure tell it.

In such a variant each statement of a test function, and of the blocks in it, catches what it raises, and so does each
check of the functions in it. At its end the function fails with a message that says which did, and which loops had
nothing to do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from excise.deleters.python.deletion_builder import require_python
from excise.deleters.python.references.hide_tests import id_of_test, is_defined_again
from excise.deleters.python.references.shortened_tests import (
    BLOCKS,
    Span,
    can_lose_a_part,
    is_check,
    statements_to_remove,
)
from excise.deleters.python.references.statement_names import DEFINITIONS
from excise.extractors.python.analysis.ast_walk import last_name, statements_below, walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parsed_file import Reference
from excise.extractors.python.needs.test_uses import Function, function_of
from excise.protocols import Codebase
from excise.types import Symbol, path_of, symbol_of_test, without_parameter

_FAILED, _RAN = "_excise_failed", "_excise_ran"
"""Names of a variant's numbers: a bit for each statement that has raised something, and for each loop whose body was
run."""
_NOTED = (
    "if 'ran for more than' in str(_excise_error) or isinstance(_excise_error, (KeyboardInterrupt, GeneratorExit)):\n"
    "    raise\n"
    f"{_FAILED}[0] |= {{bit}}\n"
)
"""What a statement that has raised something does, unless a time limit has."""
_ELEMENTS = "_excise_elements"
"""Name of the elements of a tuple or list of a variant that could be made."""
_NO_MESSAGES = "PYTEST_DONT_REWRITE"
"""The docstring of a file whose assertions pytest does not rewrite: that takes longer than to run it."""
_MESSAGE = re.compile(r"excise:([0-9a-f]+):([0-9a-f]+):")
_EXPECTING = re.compile(r"raise|warn|throw|suppress|deprecat|error|fail|exit|logs?\b", re.IGNORECASE)
"""A context manager of this name needs what its block raises."""
_UNCHANGED = (ast.Global, ast.Nonlocal, ast.Pass)
"""Statements of test functions that are not watched."""


@dataclass(frozen=True, slots=True)
class PartsOfTests:
    """What is known of tests that may lose a part."""

    whole: frozenset[str] = frozenset()
    """Ids of tests of which no part may stay."""
    failing: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Id of a test function to the first lines of its statements that fail without the code."""

    def of(
        self, codebase: PythonCodebase, test: Symbol, uses: Collection[Reference], names: Collection[str]
    ) -> Sequence[Span]:
        """The bytes of the statements that a test function loses, if it may and can; see
        :func:`~excise.deleters.python.references.shortened_tests.statements_to_remove`."""
        test_id = id_of_test(test)
        if test_id in self.whole:
            return ()
        failing = self.failing.get(test_id, frozenset())
        source = codebase.modules[test.path].source
        return statements_to_remove(source, test, tuple(uses), frozenset(names), failing)


NOTHING_KNOWN = PartsOfTests()


class ShorteningTests:
    """What deleters that leave parts of tests have in common; see :class:`excise.protocols.ShorteningDeleter`."""

    def __init__(self, parts: PartsOfTests = NOTHING_KNOWN) -> None:
        self.parts = parts

    def hiding_whole(self, tests: Iterable[str]) -> ShorteningTests:
        """See :meth:`excise.protocols.ShorteningDeleter.hiding_whole`."""
        return type(self)(replace(self.parts, whole=self.parts.whole.union(map(without_parameter, tests))))

    def probing(self, codebase: Codebase, tests: Collection[str]) -> dict[str, bytes]:
        """See :meth:`excise.protocols.ShorteningDeleter.probing`."""
        python = require_python(codebase)
        found: dict[str, bytes] = {}
        for path in sorted(set(map(path_of, tests))):
            functions = dict.fromkeys(without_parameter(test) for test in tests if path_of(test) == path)
            symbols = [symbol for test in functions for symbol in _test_functions(python, test)]
            symbols = [each for each in symbols if can_lose_a_part(python.modules[path], each)]
            if symbols and (variant := _variant(python, path, symbols)):
                found[path] = variant
        return found

    def losing(self, codebase: Codebase, messages: Mapping[str, str]) -> ShorteningTests:
        """See :meth:`excise.protocols.ShorteningDeleter.losing`."""
        python, told = require_python(codebase), dict[str, list[re.Match[str] | None]]()
        for test, message in messages.items():
            found = told.setdefault(without_parameter(test), [])
            found += [_MESSAGE.search(message)] if message else []
        passing = {without_parameter(test) for test, message in messages.items() if not message}
        failing = dict(self.parts.failing)
        for test, found in told.items():
            for symbol in _test_functions(python, test) if found and all(found) else ():
                function = function_of(python.modules[symbol.path].source, symbol)
                numbered = list(enumerate(_watched(function.body))) if function is not None else []
                pairs = [(int(each[1], 16), int(each[2], 16)) for each in found if each is not None]
                failed, ran = (reduce(or_, bits) for bits in zip(*pairs, strict=True))
                loops = set(_loops(function.body)) if function is not None and test not in passing else set()
                idle = sum(1 << number for number, each in numbered if each in loops) & ~ran
                failing[test] = frozenset(each.lineno for number, each in numbered if (failed | idle) >> number & 1)
        return type(self)(replace(self.parts, failing=failing))


def _test_functions(codebase: PythonCodebase, test: str) -> Iterator[Symbol]:
    """The function of a test, if it has an id like it."""
    symbol = codebase.symbols().get(symbol_of_test(test))
    is_test = symbol is not None and symbol.is_callable and codebase.is_test(symbol.path)
    if symbol is not None and is_test and not is_defined_again(codebase, symbol):
        yield symbol


def _variant(codebase: PythonCodebase, path: str, tests: Collection[Symbol]) -> bytes:
    """The file with the variants of some of its test functions; empty if it cannot be parsed."""
    try:
        tree = ast.parse(codebase.modules[path].source)
    except (SyntaxError, ValueError, RecursionError):
        return b""
    names = {tuple(each.qualname.split(".")) for each in tests}
    for holder, function in _functions(tree, ()):
        is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in walk(function))
        is_given = any(re.search(r"\bgiven\b", ast.unparse(each)) for each in function.decorator_list)
        if (*holder, function.name) in names and not (is_generator or is_given):
            _watch(function)
    _leave_out_tests(tree, names)
    docstring = ast.get_docstring(tree, clean=False)
    kept = 0 if docstring is None else 1
    tree.body[kept:] = [each for statement in tree.body[kept:] for each in _attempted(statement)]
    if re.search(rb"__doc__|AssertionError|\bfailureException\b", codebase.modules[path].source) is None:
        told = _NO_MESSAGES if docstring is None else f"{docstring}\n\n{_NO_MESSAGES}"
        tree.body[:kept] = [ast.Expr(ast.Constant(told))]
    try:
        return ast.unparse(ast.fix_missing_locations(tree)).encode()
    except (ValueError, RecursionError):  # f-strings that cannot be written again, sums of hundreds of terms
        return b""


def _leave_out_tests(tree: ast.Module, names: Collection[tuple[str, ...]]) -> None:
    """Take the test functions out of a file that are not among ``names`` and that nothing in it names."""
    named = {word for each in walk(tree) for word in _words(each)}
    left_out = {
        id(function)
        for holder, function in _functions(tree, ())
        if function.name.startswith("test")
        and (*holder, function.name) not in names
        and function.name not in named
        and not any("fixture" in ast.unparse(each) for each in function.decorator_list)
    }
    classes = [each for each in statements_below(tree) if isinstance(each, ast.ClassDef)]
    holders: list[ast.Module | ast.ClassDef] = [tree, *classes]
    for node in holders:
        node.body = [each for each in node.body if id(each) not in left_out] or [ast.Pass()]


def _words(node: ast.AST) -> Iterator[str]:
    """The names that a node may mean: those of parameters are fixtures', and texts may name these, too."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.Constant(value=str(text)):
            yield from re.findall(r"\w+", text)


def _functions(node: ast.Module | ast.ClassDef, holder: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Function]]:
    for child in node.body:
        if isinstance(child, Function):
            yield holder, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*holder, child.name))


def _attempted(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement of a file, so that the others are run if it fails: it may import or use what is gone."""
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        yield statement
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            one = copy(statement)
            one.names = [alias]
            yield _caught(one, [ast.Pass()])
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple | ast.List):
        yield from _attempted_elements(statement, statement.value)
    else:
        yield _caught(statement, [ast.Pass()])


def _attempted_elements(statement: ast.Assign, made: ast.Tuple | ast.List) -> Iterator[ast.stmt]:
    """An assignment of a tuple or list, without the elements that fail: a deletion takes these out of it, too."""
    if len(made.elts) < 2 or not all(isinstance(each, ast.Name | ast.Attribute) for each in made.elts):
        yield _caught(statement, [ast.Pass()])
        return
    kind, name = type(made).__name__.lower(), ast.Name(_ELEMENTS, ast.Store())
    yield ast.Assign([name], ast.List([], ast.Load()))
    for element in made.elts:
        added = ast.parse(f"{_ELEMENTS}.append({ast.unparse(element)})").body
        yield _caught(added[0], [ast.Pass()])
    value = ast.parse(f"{kind}({_ELEMENTS})", mode="eval").body
    yield _caught(ast.Assign(statement.targets, value), [ast.Pass()])


def _watch(function: Function) -> None:
    """Change a test function into its variant."""
    kept = 1 if ast.get_docstring(function) is not None else 0
    numbers = {id(each): number for number, each in enumerate(_watched(function.body))}
    body = _watching(function.body[kept:], numbers)
    told = ast.parse(
        f"{_FAILED} = [0]\n{_RAN} = [0]\n"
        f"if {_FAILED}[0]:\n    raise AssertionError('excise:%x:%x:' % ({_FAILED}[0], {_RAN}[0]))"
    ).body
    function.body = [*function.body[:kept], *told[:2], *body, told[2]]


def _watched(body: Iterable[ast.stmt], *, checks: bool = False) -> Iterator[ast.stmt]:
    """The statements that are watched, in the order of their numbers; with ``checks`` only those that check."""
    for statement in body:
        if isinstance(statement, DEFINITIONS):
            yield from _watched(statement.body, checks=True)
        elif not isinstance(statement, _UNCHANGED):
            if not checks or is_check(statement):
                yield statement
            yield from _watched(_inner(statement), checks=checks)


def _inner(statement: ast.stmt) -> list[ast.stmt]:
    """The statements in a block that are watched, too."""
    if not isinstance(statement, BLOCKS) or getattr(statement, "orelse", []):
        return []
    items = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else []
    calls = (each.context_expr for each in items)
    expecting = (_EXPECTING.search(last_name(call.func if isinstance(call, ast.Call) else call)) for call in calls)
    return [] if any(expecting) else statement.body


def _loops(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The loops of a test that are run whatever the platform is, and over something."""
    for statement in body:
        if isinstance(statement, ast.With | ast.AsyncWith):
            yield from _loops(statement.body)
        elif isinstance(statement, ast.For | ast.AsyncFor) and _is_loop(statement) and not _is_empty(statement.iter):
            yield statement


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) and not value.elts


def _is_loop(statement: ast.stmt) -> bool:
    """Whether a statement is a loop of which nothing is checked any more if its body is not run."""
    return isinstance(statement, ast.For | ast.AsyncFor) and any(map(is_check, _inner(statement)))


def _watching(body: Iterable[ast.stmt], numbers: Mapping[int, int]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, DEFINITIONS):
            statement.body = _watching(statement.body, numbers)
        elif (inner := _inner(statement)) and isinstance(statement, BLOCKS):
            noted = _is_loop(statement) and id(statement) in numbers
            begun = ast.parse(f"{_RAN}[0] |= {1 << numbers[id(statement)]}").body if noted else []
            statement.body = [*begun, *_watching(inner, numbers)]
        number = numbers.get(id(statement))
        if number is None:
            found.append(statement)
        else:
            found.append(_caught(statement, ast.parse(_NOTED.format(bit=1 << number)).body))
    return found


def _caught(statement: ast.stmt, instead: list[ast.stmt]) -> ast.stmt:
    handler = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), "_excise_error", instead)
    return ast.Try([statement], [handler], [], [])
