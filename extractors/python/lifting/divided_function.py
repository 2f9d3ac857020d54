"""One test function divided into its observing and its judging form."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from excise.extractors.python.analysis.ast_walk import child_nodes, walk
from excise.extractors.python.lifting.checked_file import TestFile, has_checks, is_check
from excise.extractors.python.lifting.effects import changed_by, drop_effects, drop_uses_of_caught
from excise.extractors.python.lifting.expected_values import (
    Function,
    NotLifted,
    called,
    calls_in,
    has_mutable_rows,
    in_order,
    is_literal,
    is_mutable,
    is_named_as_expected,
    is_written_out,
    iterated,
    loads_of,
    parts_of,
    root_of,
    targets_of,
    tells_little,
)
from excise.extractors.python.lifting.places import ALL_SEEN, RAISE, RAISING, SEE, SEEN, Operand, call_of
from excise.extractors.python.lifting.predicates import quantified_loop, searched_text
from excise.extractors.python.lifting.raising_checks import (
    accepts_failed_assertions,
    is_call_of_raises,
    is_raising_call,
    is_raising_method,
    must_raise,
    nested_blocks,
    without_assertions,
)
from excise.extractors.python.lifting.references import bindings_of, computed_names, refuse_visible_references
from excise.extractors.python.lifting.tables import tables_of
from excise.extractors.python.lifting.unused_values import drop_unused
from excise.extractors.python.lifting.written_loops import columns_of

_ARGUMENTS: Mapping[str, int] = {
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertNotEqual", "assertIs", "assertIsNot", "assertIn", "assertNotIn",
         "assertIsInstance", "assertNotIsInstance", "assertAlmostEqual", "assertNotAlmostEqual", "assertGreater",
         "assertGreaterEqual", "assertLess", "assertLessEqual", "assertRegex", "assertNotRegex", "assertCountEqual",
         "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertSequenceEqual",
         "assertMultiLineEqual", "assertAlmostEquals", "assertNotEquals", "assert_"), 2),
    **dict.fromkeys(("assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone"), 1),
}  # fmt: skip
"""Methods of ``unittest.TestCase`` to the number of their operands."""
_BY_IDENTITY = ("assertIs", "assertIsNot")
_BENCHMARK = "benchmark"
"""The fixture whose call runs the code, and checks nothing."""


class _Pair(NamedTuple):
    """A statement in both forms."""

    mine: ast.stmt
    theirs: ast.stmt


class DividedFunction:
    """Divides the checks of one test, in its observing and its judging form at once.

    Where no operand of a comparison is an expected value, one that does not depend on the code under test is a
    reference: it is computed only where the values are judged.
    """

    def __init__(self, function: Function, file: TestFile) -> None:
        self.places = itertools.count(1)
        self.file = file
        self.names = file.names.copy()
        self.caught: set[str] = set()
        self.dropped: list[ast.expr] = []
        self.judged_before: list[ast.stmt] = []
        self.effects: list[ast.Expr] = []
        self.depth = 0
        self.has_nested_places = False
        self.num_checks = 0
        self.num_truths = 0
        """How many of the checks report no more than a truth value or a type."""
        self.num_pairs = 0
        """Number of comparisons of two values of the code, both of which are reported: anybody can report two equal
        values, so that other checks are needed."""
        self.left_out = ""
        self._add_local_names(function, file.constants)
        self.computed = computed_names(function, self.names) | self.names.project

    @property
    def has_checks(self) -> bool:
        """Whether the test checks something, so that it reports more than that it came to its end."""
        return self.num_checks > 0

    def divide(self, observing: Function, judging: Function) -> None:
        """Divide the whole test. Raises :class:`NotLifted`."""
        self._block(observing.body, judging.body)
        if self.num_pairs and self.num_truths == self.num_checks:
            raise NotLifted("two values of the code")
        if self.left_out and not self.has_checks:
            raise NotLifted(self.left_out)
        if not self.has_checks:
            self._refuse_hidden_checks(observing)
        for node in walk(observing):
            why = self._expectation_left(node)
            if why:
                raise NotLifted(why)
        if not self.has_checks:
            self._report_end(observing, judging)
        elif self.has_nested_places:
            judging.body.append(ast.Expr(call_of(ALL_SEEN)))
        drop_effects(judging, self.effects)
        drop_uses_of_caught(judging, self.caught)
        drop_unused(observing, judging, self.file.constants, self.dropped)
        refuse_visible_references(observing, self.dropped, self.names)

    # ------------------------------------------------------------------------------ names
    def _add_local_names(self, function: Function, constants: Mapping[str, ast.expr]) -> None:
        """Parameters with tables of expected values, and local names with expected values that nothing can change."""
        outside = _loaded_outside_checks(function)
        stores: dict[str, int] = {}
        for part in walk(function):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                stores[part.id] = stores.get(part.id, 0) + 1
            elif isinstance(part, ast.arg):
                self.names.forget([part.arg])
            elif isinstance(part, Function | ast.ClassDef | ast.ExceptHandler) and part.name:
                self.names.forget([part.name])
        self.names.forget(stores)
        self.names.add_depending(bindings_of(function))
        for table in tables_of(function, constants):
            self.names.add_depending(([name], cell) for name in table.names for cell in table.column(name))
            for name in table.names:
                cells = table.column(name)
                fixed = name not in outside or not any(is_mutable(cell) for cell in cells)
                if fixed and all(self.names.is_expected(cell) for cell in cells):
                    self.names.values.add(name)
        self._add_assigned(function, outside, stores)

    def _add_assigned(self, function: Function, outside: Collection[str], stores: Mapping[str, int]) -> None:
        """Names that are assigned expected values only; ``stores``: how often each name is assigned."""
        plain: dict[str, int] = {}
        for part in in_order(function):
            if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                name, value = part.targets[0].id, part.value
                if (name not in outside or not is_mutable(value)) and self.names.is_expected(value):
                    plain[name] = plain.get(name, 0) + 1
                    self.names.values |= {name} if plain[name] == stores[name] else set()
            elif isinstance(part, ast.For) and self.names.is_expected(iterated(part.iter)):
                for name in targets_of(part.target):
                    if stores.get(name) == 1 and (name not in outside or not has_mutable_rows(part.iter)):
                        self.names.values.add(name)
            elif isinstance(part, ast.For):
                for name, cells in columns_of(part).items():
                    fixed = stores.get(name) == 1 and not (name in outside and any(map(is_mutable, cells)))
                    if fixed and all(map(self.names.is_expected, cells)):
                        self.names.values.add(name)

    # ------------------------------------------------------------------------------ statements
    def _block(self, observing: list[ast.stmt], judging: list[ast.stmt]) -> None:
        """Divide the checks among the statements of a block."""
        made: list[ast.stmt] = []
        judged: list[ast.stmt] = []
        for pair in map(_Pair._make, zip(observing, judging, strict=True)):
            divided = self._check(pair)
            if divided is None:
                self._blocks_in(*pair)
                divided = [pair.mine]
            made += divided
            judged += [*self.judged_before, pair.theirs]
            self.judged_before = []
        observing[:] = made or ([ast.Pass()] if observing else [])
        judging[:] = judged

    def _check(self, pair: _Pair) -> list[ast.stmt] | None:
        """Divide a statement that checks something; ``None`` if it does not."""
        mine, theirs = pair
        if isinstance(mine, ast.Assert) and isinstance(theirs, ast.Assert):
            theirs.msg = None
            return self._assertion(mine, theirs)
        if isinstance(mine, ast.With) and isinstance(theirs, ast.With) and must_raise(mine):
            return [self._raising(nested_blocks(mine), nested_blocks(theirs))]
        if isinstance(mine, ast.Assign | ast.Expr) and isinstance(theirs, ast.Assign | ast.Expr):
            if is_raising_call(mine.value) and isinstance(theirs.value, ast.Call):
                target = mine.targets[0] if isinstance(mine, ast.Assign) else None
                return [self._raising_call(mine.value, theirs.value, 1, target)]
            if isinstance(mine, ast.Expr) and isinstance(theirs, ast.Expr):
                return self._expression(mine.value, theirs)
        return None

    def _assertion(self, mine: ast.Assert, theirs: ast.Assert) -> list[ast.stmt]:
        """Divide an assertion, or leave it out if it cannot be divided and has nothing to do with the code under test.

        Special methods are called without being named: where one is removed, any assertion may have to do with it.
        """
        before = self.num_checks, self.num_truths, self.num_pairs, len(self.dropped)
        depends = self._depends(mine.test) or any(name.startswith("__") for name in self.names.depending)
        try:
            return self._parts(Operand(mine, "test"), Operand(theirs, "test"))
        except NotLifted as error:
            if depends:
                raise
            self.num_checks, self.num_truths, self.num_pairs, num_dropped = before
            del self.dropped[num_dropped:]
            self.left_out = self.left_out or str(error)
            theirs.test = ast.Constant(True)
            return []

    def _expression(self, mine: ast.expr, theirs: ast.Expr) -> list[ast.stmt] | None:
        """Divide a statement that is an expression."""
        if isinstance(mine, ast.Call) and self._is_method(mine):
            return self._method(mine, theirs)
        return [] if self._is_match(mine) else None

    def _blocks_in(self, mine: ast.stmt, theirs: ast.stmt) -> None:
        """Divide the checks within a compound statement. In functions within the test, places are negative."""
        self.depth += isinstance(mine, Function)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(getattr(mine, name, None), list):
                self._block(getattr(mine, name), getattr(theirs, name))
        for name in ("handlers", "cases"):
            for one, other in zip(getattr(mine, name, ()), getattr(theirs, name, ()), strict=True):
                self._block(one.body, other.body)
        self.depth -= isinstance(mine, Function)

    def _next_place(self) -> int:
        """The number of the next place."""
        number = next(self.places)
        self.has_nested_places |= self.depth > 0
        return -number if self.depth else number

    # ------------------------------------------------------------------------------ tests without checks
    def _refuse_hidden_checks(self, function: Function) -> None:
        """Raise :class:`NotLifted` for a test without checks of its own, if what it calls may check something."""
        arguments = {part.arg for part in walk(function.args) if isinstance(part, ast.arg)} - {_BENCHMARK}
        for part in parts_of(function.body):
            calls = [part.value] if isinstance(part, ast.Expr) else []
            calls = [item.context_expr for item in part.items] if isinstance(part, ast.With) else calls
            for call in calls:
                if isinstance(call, ast.Call) and root_of(call) in {*self.file.helpers, *arguments}:
                    raise NotLifted("nothing is expected but by a helper")

    def _report_end(self, observing: Function, judging: Function) -> None:
        """Report that a test without checks came to its end."""
        place = ast.Constant(self._next_place())
        observing.body.append(ast.Expr(call_of(SEE, place, ast.Constant(True))))
        judging.body.append(ast.Assert(call_of(SEEN, place)))

    def _expectation_left(self, node: ast.AST) -> str:
        """Why a node of a divided test may still check something; empty if it does not."""
        name = called(node) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Assert):
            return "assertion within an expression or function"
        if name not in {RAISING, SEE} and (
            is_check(node, self.file.code) or name in {*self.file.checking, "raises", "warns"}
        ):
            return f"checks by {name}"
        mentioned = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        if mentioned in self.file.checking:
            return "checks by a helper"
        return "assignment within an expression" if isinstance(node, ast.NamedExpr) else ""

    # ------------------------------------------------------------------------------ assertions
    def _is_match(self, node: ast.expr) -> bool:
        """Whether an expression compares the message of a caught exception with a pattern."""
        return isinstance(node, ast.Call) and root_of(node) in self.caught and called(node) == "match"

    def _is_method(self, call: ast.Call) -> bool:
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        own = isinstance(receiver, ast.Name) and receiver.id in {"self", "cls"}
        return own and (called(call) in _ARGUMENTS or is_raising_method(call))

    def _method(self, call: ast.Call, judging: ast.Expr) -> list[ast.stmt]:
        """Divide a call of a method of ``unittest.TestCase``."""
        theirs = judging.value
        assert isinstance(theirs, ast.Call)
        name = called(call)
        if is_raising_method(call):
            return [self._raising_call(call, theirs, 1 if name == "assertRaises" else 2)]
        count = 1 if name == "assert_" else _ARGUMENTS[name]
        if len(call.args) < count or any(isinstance(each, ast.Starred) for each in call.args):
            raise NotLifted("operands given by name")
        if any(not self.names.is_expected(keyword.value) for keyword in call.keywords):
            raise NotLifted("operands given by name")
        theirs.args[count:] = []
        theirs.keywords = [keyword for keyword in theirs.keywords if keyword.arg != "msg"]
        if name in {"assertTrue", "assertFalse", "assert_"}:
            return self._truth(Operand(call, 0), Operand(theirs, 0))
        if name in {"assertIsInstance", "assertNotIsInstance"} and self._is_first_observed(call):
            judged = call_of("issubclass", theirs.args[0], theirs.args[1])
            method = "assertTrue" if name == "assertIsInstance" else "assertFalse"
            judging.value = ast.Call(ast.Attribute(ast.Name("self", ast.Load()), method, ast.Load()), [judged], [])
            return [self._type(call.args[0], judged)]
        operands = [(Operand(call, n), Operand(theirs, n)) for n in range(count)]
        return self._divided(operands, by_identity=name in _BY_IDENTITY)

    def _parts(self, mine: Operand, theirs: Operand) -> list[ast.stmt]:
        """Divide a condition."""
        node, other = mine.get(), theirs.get()
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._parts(Operand(node, "operand"), Operand(other, "operand"))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            parts = [(Operand(node.values, n), Operand(other.values, n)) for n in range(len(node.values))]  # type: ignore[attr-defined]
            return [seen for pair in parts for seen in self._parts(*pair)]
        if isinstance(node, ast.Compare):
            assert isinstance(other, ast.Compare)
            return self._comparison(node, other)
        if isinstance(node, ast.Call) and is_call_of_raises(node) and isinstance(other, ast.Call):
            return [self._raising_call(node, other, 1)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self._is_first_observed(node):
            assert isinstance(other, ast.Call)
            if called(node) == "isinstance":
                other.func = ast.Name("issubclass", ast.Load())
                return [self._type(node.args[0], other)]
        return self._truth(mine, theirs)

    def _comparison(self, node: ast.Compare, other: ast.Compare) -> list[ast.stmt]:
        """Divide a comparison by operators."""
        by_identity = any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        operands = [(Operand(node, "left"), Operand(other, "left"))]
        operands += [
            (Operand(node.comparators, n), Operand(other.comparators, n)) for n in range(len(node.comparators))
        ]
        return self._divided(operands, by_identity=by_identity)

    def _is_first_observed(self, call: ast.Call) -> bool:
        """Whether the first of two arguments depends on the code under test, and the second does not."""
        return len(call.args) >= 2 and [self._is_observed(each) for each in call.args[:2]] == [True, False]

    def _is_observed(self, node: ast.expr) -> bool:
        """Whether a value depends on the code under test."""
        return not self.names.is_expected(node)

    def _truth(self, mine: Operand, theirs: Operand) -> list[ast.stmt]:
        """Observe whether a value is true; of a text that is searched, the text."""
        node = mine.get()
        if self.names.is_expected(node) and is_literal(node):
            return []
        searched = searched_text(node, self.names), searched_text(theirs.get(), self.names)
        if searched[0] is not None and searched[1] is not None and self._is_observed(searched[0].get()):
            self.num_checks += 1
            return [self._see(searched[0].get(), searched[1])]
        compares = (ast.Compare, ast.BoolOp, ast.IfExp, ast.comprehension)
        if any(isinstance(part, compares) for part in walk(node)):
            loop, judged = quantified_loop(node, self.names), quantified_loop(theirs.get(), self.names)
            if loop is None or judged is None:
                raise NotLifted("comparison within an operand")
            self.num_checks += 1
            return [self._see(call_of("list", loop.iter), Operand(judged, "iter"))]
        self.num_checks += 1
        self.num_truths += 1
        return [self._see(ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node)), theirs)]

    def _type(self, node: ast.expr, judge: ast.Call) -> ast.stmt:
        """Observe the type of a value, which ``judge``, a call of ``issubclass``, compares."""
        self.num_checks += 1
        self.num_truths += 1
        return self._see(call_of("type", node), Operand(judge, 0))

    def _see(self, value: ast.expr, theirs: Operand, *, by_identity: bool = False) -> ast.stmt:
        """Observe a value; in the judging form it stands in place of an operand."""
        if isinstance(value, ast.Starred) or any(isinstance(part, ast.Yield) for part in walk(value)):
            raise NotLifted("operand that is no value")
        place = ast.Constant(self._next_place())
        how = [ast.Constant(True)] if by_identity else []
        if not self.depth and any(changed_by(value)):
            self.judged_before.append(effect := ast.Expr(theirs.get()))
            self.effects.append(effect)
        theirs.set(call_of(SEEN, place, *how))
        return ast.Expr(call_of(SEE, place, value, *how))

    def _divided(self, operands: Sequence[tuple[Operand, Operand]], *, by_identity: bool) -> list[ast.stmt]:
        """Observe those of the operands that are not expected."""
        nodes = [mine.get() for mine, _ in operands]
        observed = [self._is_observed(node) for node in nodes]
        if not any(observed):
            observed = [self.names.is_of_project(node) for node in nodes]
        if not any(observed):
            observed = [not is_literal(node) for node in nodes]
        if not any(observed):
            return []
        if len(nodes) > 1 and all(observed):
            if by_identity or len(nodes) > 2 or _has_hash(nodes):
                raise NotLifted("two values of the code")
            first = self._signs(nodes[0]) >= self._signs(nodes[1])
            if self._is_reference(nodes[first], nodes[not first]):
                observed = [first, not first]
                self.dropped.append(nodes[first])
        self.num_pairs += all(observed) and len(nodes) > 1
        is_check = not all(observed) or len(nodes) == 1
        self.num_checks += is_check
        self.num_truths += is_check and (not any(map(self._depends, nodes)) or any(map(tells_little, nodes)))
        return [
            self._see(node, theirs, by_identity=by_identity)
            for node, (_, theirs), is_observed in zip(nodes, operands, observed, strict=True)
            if is_observed
        ]

    def _signs(self, node: ast.expr) -> tuple[bool, bool, bool, bool, int]:
        """How much an operand looks like a value of the code under test: by its names, origin, form, and calls."""
        names = not is_named_as_expected(node), self._is_from_code(node)
        return self._depends(node), *names, not is_written_out(node), len(calls_in(node))

    def _depends(self, node: ast.expr) -> bool:
        """Whether a value comes from the code under test, or was raised."""
        return self.names.depends(node) or not self.caught.isdisjoint(loads_of(node))

    def _is_from_code(self, node: ast.expr) -> bool:
        """Whether a value comes from imported code that is not the standard library's."""
        return not self.computed.isdisjoint(loads_of(node))

    def _is_reference(self, reference: ast.expr, observed: ast.expr) -> bool:
        """Whether an operand can be left to the judging form, since it does not depend on the code under test.

        A solution may give other values than the original, as long as they agree with each other.
        """
        return not self._depends(reference) and (not self._is_from_code(reference) or self._depends(observed))

    # ------------------------------------------------------------------------------ what must raise
    def _raising(self, mine: ast.With, theirs: ast.With) -> ast.stmt:
        """Divide a block that must raise: what it raises is observed.

        If it checks something, too, the judging form has the block twice: with its checks, and with what was raised.
        """
        without_assertions(mine)
        place = ast.Constant(self._next_place())
        before: list[ast.stmt] = []
        if has_checks(parts_of(mine.body), self.file.code):
            if accepts_failed_assertions(mine):
                raise NotLifted("checks in a block that must raise")
            self._block(mine.body, theirs.body)
            before = [ast.With(theirs.items, theirs.body)]
        self.num_checks += 1
        item = mine.items[0]
        self.caught.update(targets_of(item.optional_vars or ast.Pass()))
        theirs.body = [ast.Expr(call_of(RAISE, place))]
        self.judged_before = before
        return ast.With([ast.withitem(call_of(RAISING, place), item.optional_vars)], mine.body)

    def _raising_call(self, call: ast.Call, theirs: ast.Call, first: int, target: ast.expr | None = None) -> ast.stmt:
        """Divide a call that must raise: of the function that is the argument ``first``, with those that follow."""
        if len(call.args) <= first or any(isinstance(each, ast.Starred) for each in call.args[: first + 1]):
            raise NotLifted(f"{called(call)} without a function")
        place = ast.Constant(self._next_place())
        body = ast.Expr(ast.Call(call.args[first], call.args[first + 1 :], call.keywords))
        raising = ast.Lambda(_no_arguments(), call_of(RAISE, place))
        theirs.args[first:] = [raising]
        theirs.keywords = []
        self.num_checks += 1
        self.caught.update(targets_of(target or ast.Pass()))
        return ast.With([ast.withitem(call_of(RAISING, place), target)], [body])


def _has_hash(nodes: Sequence[ast.expr]) -> bool:
    """Whether a value is a hash or an identity, which other processes do not have."""
    return any(called(call) in {"hash", "id"} for node in nodes for call in calls_in(node))


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _loaded_outside_checks(function: Function) -> set[str]:
    """Names that a test uses elsewhere than in operands of its checks."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Assert):
            operands = [node.test.left, *node.test.comparators] if isinstance(node.test, ast.Compare) else [node.test]
            for operand in operands:
                if not isinstance(operand, ast.Name):
                    found.update(loads_of(operand))
            return
        if isinstance(node, ast.Call) and called(node) in _ARGUMENTS:
            for argument in node.args:
                if not isinstance(argument, ast.Name):
                    found.update(loads_of(argument))
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        for child in child_nodes(node):
            if isinstance(node, ast.For) and child is node.iter and isinstance(iterated(node.iter), ast.Name):
                continue
            visit(child)

    for statement in function.body:
        visit(statement)
    return found
