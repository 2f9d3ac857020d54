"""Lifted tests: test functions divided into what they do with the code and what they expect.

Of each file two are made. In the *observing* file an assertion reports the value of its operand (``see(place, value)``)
and knows nothing of what is expected: expected operands are gone, and so are the names, table columns and constants
that only they used, and the ids of parametrised tests. In the *judging* file the same assertion asks for the reported
value (``seen(place)``) in place of the operand. The first runs with the solution, the second with the original code.

A test is lifted if each of its checks is an assertion that compares an observed value with something expected: a value
that the test file has, or a *reference*, which the judging form computes without the code under test. A test that
checks nothing reports that it came to its end.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from functools import lru_cache

from excise.extractors.python.analysis.ast_walk import copied
from excise.extractors.python.lifting.checked_file import TestFile
from excise.extractors.python.lifting.divided_function import DividedFunction
from excise.extractors.python.lifting.expected_values import Function, NotLifted, definitions_of
from excise.extractors.python.lifting.inlined_helpers import inline_helpers
from excise.extractors.python.lifting.unused_values import keep_only
from excise.extractors.python.lifting.written_loops import name_columns
from excise.protocols import NOTHING_INHERITED, LiftedTests


def lifted(
    source: bytes,
    functions: Collection[str],
    depending: Collection[str] = (),
    inheriting: Mapping[str, Collection[str]] = NOTHING_INHERITED,
) -> LiftedTests | None:
    """See :meth:`excise.protocols.Grading.lifted`."""
    used = frozenset(name for names in inheriting.values() for name in names)
    return _lifted(source, frozenset(functions), frozenset(depending), frozenset(inheriting), used)


@lru_cache(maxsize=32)
def _lifted(
    source: bytes,
    functions: frozenset[str],
    depending: frozenset[str],
    inheriting: frozenset[str],
    used: frozenset[str],
) -> LiftedTests | None:
    """The forms of a file; kept, since a kit divides the same files twice."""
    try:
        observing, judging = ast.parse(source), ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    file = _dividable(source, depending)
    mine, theirs = definitions_of(observing), definitions_of(judging)
    names: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    for name in sorted(functions):
        if name in mine:
            names.setdefault(mine[name][0], []).append(name)
        else:
            refused[name] = "not written in this file"
    done: list[str] = []
    divided: set[str] = set()
    for definition, tests in names.items():
        try:
            forms = file.divided(definition)
        except NotLifted as error:
            refused.update(dict.fromkeys(tests, str(error)))
            continue
        for function, form in zip((mine[definition][1], theirs[definition][1]), forms, strict=True):
            vars(function).update(vars(form))
        divided.add(definition)
        done += tests
    classes = {*inheriting, *(name.rpartition("::")[0] for name in done)}
    keep_only(observing, divided, classes, used)
    keep_only(judging, divided, classes, None if inheriting else ())
    return LiftedTests(
        observing=_text(observing).encode(),
        judging=_text(judging).encode(),
        functions=tuple(sorted(done)),
        refused=refused,
    )


@lru_cache(maxsize=8)
def _dividable(source: bytes, depending: frozenset[str]) -> _Dividable:
    """A file that can be parsed; kept, since a kit asks for several sets of its functions."""
    return _Dividable(source, depending)


class _Dividable:
    """A test file whose functions are divided when they are asked for, each once."""

    def __init__(self, source: bytes, depending: frozenset[str]) -> None:
        tree = ast.parse(source)
        self.file = TestFile.of(tree, depending)
        self.functions = definitions_of(tree)
        self._forms: dict[str, tuple[Function, Function] | str] = {}

    def divided(self, name: str) -> tuple[Function, Function]:
        """The two forms of a test, which are not changed any more. Raises :class:`NotLifted`.

        Places are numbered within each test: what it reports must not depend on which other tests are lifted.
        """
        if name not in self._forms:
            try:
                self._forms[name] = self._divide(self.functions[name][1])
            except NotLifted as error:
                self._forms[name] = str(error)
        forms = self._forms[name]
        if isinstance(forms, str):
            raise NotLifted(forms)
        return forms

    def _divide(self, function: Function) -> tuple[Function, Function]:
        form = copied(function)
        inline_helpers(form, self.file.inlined)
        name_columns(form)
        forms = form, copied(form)
        DividedFunction(form, self.file).divide(*forms)
        return forms


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
