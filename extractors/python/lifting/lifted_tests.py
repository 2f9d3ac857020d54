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
import copy
from collections.abc import Collection
from functools import lru_cache

from excise.extractors.python.lifting.checked_file import TestFile
from excise.extractors.python.lifting.divided_function import DividedFunction
from excise.extractors.python.lifting.expected_values import Function, NotLifted, definitions_of
from excise.extractors.python.lifting.inlined_helpers import inline_helpers
from excise.extractors.python.lifting.unused_values import keep_only
from excise.extractors.python.lifting.written_loops import name_columns
from excise.protocols import LiftedTests


def lifted(source: bytes, functions: Collection[str], depending: Collection[str] = ()) -> LiftedTests | None:
    """See :meth:`excise.protocols.Grading.lifted`."""
    return _lifted(source, frozenset(functions), frozenset(depending))


@lru_cache(maxsize=32)
def _lifted(source: bytes, functions: frozenset[str], depending: frozenset[str]) -> LiftedTests | None:
    """The forms of a file; kept, since a kit divides the same files twice."""
    try:
        observing, judging = ast.parse(source), ast.parse(source)  # a fifth of the time of a copy
    except (SyntaxError, ValueError, RecursionError):
        return None
    file = _test_file(source, depending)
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
    for definition, inheriting in names.items():
        try:
            _divide(mine[definition][1], theirs[definition][1], file)
        except NotLifted as error:
            refused.update(dict.fromkeys(inheriting, str(error)))
            continue
        divided.add(definition)
        done += inheriting
    classes = {name.rpartition("::")[0] for name in done}
    for each in (observing, judging):
        keep_only(each, divided, classes)
    return LiftedTests(
        observing=_text(observing).encode(),
        judging=_text(judging).encode(),
        functions=tuple(sorted(done)),
        refused=refused,
    )


@lru_cache(maxsize=8)
def _test_file(source: bytes, depending: frozenset[str]) -> TestFile:
    """What the functions of a file that can be parsed are divided by."""
    return TestFile.of(ast.parse(source), depending)


def _divide(mine: Function, theirs: Function, file: TestFile) -> None:
    """Divide a test in its two forms. Raises :class:`NotLifted`, and leaves them as they are.

    Places are numbered within each test: what it reports must not depend on which other tests are lifted.
    """
    form = copy.deepcopy(mine)
    inline_helpers(form, file.inlined)
    name_columns(form)
    forms = form, copy.deepcopy(form)
    DividedFunction(form, file).divide(*forms)
    for form, made in zip((mine, theirs), forms, strict=True):
        vars(form).update(vars(made))


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
