"""Lifted tests: test functions divided into what they do with the code and what they expect.

Of each file two are made. In the *observing* file an assertion reports the value of its operand (``see(place, value)``)
and knows nothing of what is expected: expected operands are gone, and so are the names, table columns and constants
that only they used, and the ids of parametrised tests. In the *judging* file the same assertion asks for the reported
value (``seen(place)``) in place of the operand. The first runs with the solution, the second with the original code.

A test is lifted if each of its checks is an assertion that can be divided, and at least half of them compare with
something expected. The others compare two values of the code, and a solution could report that they are equal.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Mapping, Sequence

from excise.extractors.python.lifting.expected_values import (
    ExpectedNames,
    Function,
    NotLifted,
    called,
    functions_of,
    has_mutable_rows,
    in_order,
    is_literal,
    is_mutable,
    iterated,
    loads_of,
    module_names,
    parts_of,
    targets_of,
)
from excise.extractors.python.lifting.unused_values import constants_of, drop_unused, keep_only, tables_of
from excise.protocols import LiftedTests

SEE, SEEN, RAISING, RAISE = "__excise_see__", "__excise_seen__", "__excise_raising__", "__excise_raise__"
"""Names of the builtins that observing and judging files call (``inside/excise_lifted.py``)."""
_CHECKS = ("assert", "check", "verify", "expect", "fail")
"""Beginnings of the names of functions that check something themselves."""
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


def lifted(source: bytes, functions: Collection[str]) -> LiftedTests | None:
    """See :meth:`excise.protocols.Grading.lifted`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    known = module_names(tree)
    checking = _checking_helpers(tree)
    observing, judging = copy.deepcopy(tree), copy.deepcopy(tree)
    places = iter(range(1 << 30))
    done: list[str] = []
    refused: dict[str, str] = {}
    for (name, observer), (_, judge) in zip(functions_of(observing), functions_of(judging), strict=True):
        if name not in functions:
            continue
        try:
            _Divide(observer, observing, known, checking, places).function(observer, judge)
            drop_unused(observer, judge, observing)
            done.append(name)
        except NotLifted as error:
            refused[name] = str(error)
    for name in set(functions).difference(done, refused):
        refused[name] = "not written in this file"
    for each in (observing, judging):
        keep_only(each, set(done))
    return LiftedTests(
        observing=_text(observing).encode(), judging=_text(judging).encode(), functions=tuple(done), refused=refused
    )


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _checking_helpers(tree: ast.Module) -> set[str]:
    """Names of functions of the file that check something and are no tests: what they expect stays in them."""
    found = set()
    for name, function in functions_of(tree):
        short = name.rpartition("::")[2]
        if not short.startswith("test") and any(
            isinstance(part, ast.Assert) or _is_check(part) for part in ast.walk(function)
        ):
            found.add(short)
    return found


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node).lstrip("_").startswith(_CHECKS)


class _Divide:
    """Divides the checks of one test, in its observing and its judging form at once."""

    def __init__(
        self,
        function: Function,
        tree: ast.Module,
        known: ExpectedNames,
        checking: Collection[str],
        places: Iterator[int],
    ) -> None:
        self.places = places
        self.checking = checking
        self.names = known.copy()
        self.caught: set[str] = set()
        self.strong = self.weak = 0
        self._add_local_names(function, constants_of(tree))

    def function(self, observing: Function, judging: Function) -> None:
        """Divide a whole test. Raises :class:`NotLifted`."""
        self._block(observing.body, judging.body)
        if self.strong < max(self.weak, 1):
            raise NotLifted("nothing is expected" if not self.strong else "too little is expected")
        for node in ast.walk(observing):
            why = self._expectation_left(node)
            if why:
                raise NotLifted(why)

    def _expectation_left(self, node: ast.AST) -> str:
        """Why a node of a divided test may still check something; empty if it does not."""
        name = called(node) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Assert):
            return "assertion within an expression or function"
        if name not in {RAISING, SEE} and (_is_check(node) or name in {*self.checking, "raises", "warns"}):
            return f"checks by {name}"
        mentioned = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        if mentioned in self.checking:
            return "checks by a helper"
        if isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.dump(node.exc):
            return "raises AssertionError"
        return "assignment within an expression" if isinstance(node, ast.NamedExpr) else ""

    def _add_local_names(self, function: Function, constants: Mapping[str, ast.expr]) -> None:
        """Parameters with tables of expected values, and local names with expected values that nothing can change."""
        outside = _loaded_outside_checks(function)
        stores: dict[str, int] = {}
        for part in ast.walk(function):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                stores[part.id] = stores.get(part.id, 0) + 1
                self.names.values.discard(part.id)
                self.names.pure.discard(part.id)
        for argument in ast.walk(function.args):
            if isinstance(argument, ast.arg):
                self.names.values.discard(argument.arg)
                self.names.pure.discard(argument.arg)
        for table in tables_of(function, constants):
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

    def _block(self, observing: list[ast.stmt], judging: list[ast.stmt]) -> None:
        """Divide the checks among the statements of a block."""
        seen: list[ast.stmt] = []
        for mine, theirs in zip(observing, judging, strict=True):
            if isinstance(mine, ast.Assert) and isinstance(theirs, ast.Assert):
                theirs.msg = None
                seen += self._parts(mine, "test", theirs, "test")
            elif isinstance(mine, ast.Expr) and isinstance(mine.value, ast.Call) and self._is_method(mine.value):
                assert isinstance(theirs, ast.Expr)
                seen += self._method(mine.value, theirs)
            elif isinstance(mine, ast.With) and isinstance(theirs, ast.With) and _raises(mine):
                seen.append(self._raising(mine, theirs))
            elif isinstance(mine, ast.Expr) and (isinstance(mine.value, ast.Constant) or self._is_match(mine.value)):
                continue
            else:
                self._blocks_in(mine, theirs)
                seen.append(mine)
        observing[:] = seen or [ast.Pass()]

    def _blocks_in(self, mine: ast.stmt, theirs: ast.stmt) -> None:
        """Divide the checks within a compound statement; functions and classes are left as they are."""
        if isinstance(mine, Function | ast.ClassDef):
            return
        for name in ("body", "orelse", "finalbody"):
            if isinstance(getattr(mine, name, None), list):
                self._block(getattr(mine, name), getattr(theirs, name))
        for one, other in zip(getattr(mine, "handlers", ()), getattr(theirs, "handlers", ()), strict=True):
            self._block(one.body, other.body)

    def _is_match(self, node: ast.expr) -> bool:
        """Whether an expression compares the message of a caught exception with a pattern."""
        owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        return isinstance(owner, ast.Name) and owner.id in self.caught and called(node) == "match"  # type: ignore[arg-type]

    def _is_method(self, call: ast.Call) -> bool:
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        own = isinstance(receiver, ast.Name) and receiver.id in {"self", "cls"}
        known = called(call) in _ARGUMENTS or called(call) in {"assertRaises", "assertRaisesRegex"}
        return own and known

    def _method(self, call: ast.Call, judging: ast.Expr) -> list[ast.stmt]:
        """Divide a call of a method of ``unittest.TestCase``."""
        theirs = judging.value
        assert isinstance(theirs, ast.Call)
        if called(call).startswith("assertRaises"):
            first = 1 if called(call) == "assertRaises" else 2
            if len(call.args) <= first or any(isinstance(each, ast.Starred) for each in call.args[: first + 1]):
                raise NotLifted(f"{called(call)} without a function")
            place = next(self.places)
            body = ast.Expr(ast.Call(call.args[first], call.args[first + 1 :], call.keywords))
            theirs.args[first:] = [ast.Name(RAISE, ast.Load()), ast.Constant(place)]
            theirs.keywords = []
            self.strong += 1
            return [ast.With([ast.withitem(_call(RAISING, ast.Constant(place)))], [body])]
        count = 1 if called(call) == "assert_" else _ARGUMENTS[called(call)]
        if len(call.args) < count or any(isinstance(each, ast.Starred) for each in call.args):
            raise NotLifted("operands given by name")
        if any(not self.names.is_expected(keyword.value) for keyword in call.keywords):
            raise NotLifted("operands given by name")
        theirs.args[count:] = []
        theirs.keywords = [keyword for keyword in theirs.keywords if keyword.arg != "msg"]
        if called(call) in {"assertTrue", "assertFalse", "assert_"}:
            return self._truth(call, 0, theirs, 0)
        if called(call) in {"assertIsInstance", "assertNotIsInstance"} and self._is_first_observed(call):
            judged = _call("issubclass", theirs.args[0], theirs.args[1])
            name = "assertTrue" if called(call) == "assertIsInstance" else "assertFalse"
            judging.value = ast.Call(ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()), [judged], [])
            return [self._type(call.args[0], judged)]
        mine: list[tuple[ast.AST, object]] = [(call, n) for n in range(count)]
        return self._divided(mine, [(theirs, n) for n in range(count)])

    def _parts(self, owner: ast.AST, at: object, judge: ast.AST, there: object) -> list[ast.stmt]:
        """Divide a condition: the one at the place ``at`` of ``owner``, which the judging form has in ``judge``."""
        node, other = _get(owner, at), _get(judge, there)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._parts(node, "operand", other, "operand")
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            parts = [("values", n) for n in range(len(node.values))]
            return [seen for part in parts for seen in self._parts(node, part, other, part)]
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            if all(self._is_observed(each) for each in operands):
                return self._truth(owner, at, judge, there)
            places: list[object] = ["left", *(("comparators", n) for n in range(len(node.comparators)))]
            return self._divided([(node, place) for place in places], [(other, place) for place in places])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self._is_first_observed(node):
            assert isinstance(other, ast.Call)
            if called(node) == "isinstance":
                other.func = ast.Name("issubclass", ast.Load())
                return [self._type(node.args[0], other)]
        return self._truth(owner, at, judge, there)

    def _is_first_observed(self, call: ast.Call) -> bool:
        """Whether the first of two arguments depends on the code under test, and the second does not."""
        return len(call.args) >= 2 and [self._is_observed(each) for each in call.args[:2]] == [True, False]

    def _is_observed(self, node: ast.expr) -> bool:
        """Whether a value depends on the code under test."""
        return not self.names.is_expected(node)

    def _truth(self, owner: ast.AST, at: object, judge: ast.AST, there: object) -> list[ast.stmt]:
        """Observe whether a value is true. A condition within it may compare, in sight of the solution."""
        node = _get(owner, at)
        if self.names.is_expected(node) and is_literal(node):
            return []
        compares = (ast.Compare, ast.BoolOp, ast.IfExp, ast.comprehension)
        if any(isinstance(part, compares) for part in ast.walk(node)):
            self.weak += 1
        else:
            self.strong += 1
        truth = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node))
        return [self._see(truth, judge, there)]

    def _type(self, node: ast.expr, judge: ast.Call) -> ast.stmt:
        """Observe the type of a value, which ``judge``, a call of ``issubclass``, compares."""
        self.strong += 1
        return self._see(_call("type", node), judge, 0)

    def _see(self, value: ast.expr, judge: ast.AST, there: object) -> ast.stmt:
        """Observe a value; in the judging form it stands at the place ``there`` of ``judge``."""
        if isinstance(value, ast.Starred) or any(isinstance(part, ast.Yield) for part in ast.walk(value)):
            raise NotLifted("operand that is no value")
        number = next(self.places)
        _set(judge, there, _call(SEEN, ast.Constant(number)))
        return ast.Expr(_call(SEE, ast.Constant(number), value))

    def _divided(
        self, mine: Sequence[tuple[ast.AST, object]], theirs: Sequence[tuple[ast.AST, object]]
    ) -> list[ast.stmt]:
        """Observe those of the operands that are not expected."""
        nodes = [_get(owner, place) for owner, place in mine]
        observed = [self._is_observed(node) for node in nodes]
        if not any(observed):
            observed = [not is_literal(node) for node in nodes]
        if not any(observed):
            return []
        if sum(observed) < len(nodes) or len(nodes) == 1:
            self.strong += 1
        else:
            self.weak += 1
        operands = zip(nodes, theirs, observed, strict=True)
        return [self._see(node, judge, place) for node, (judge, place), is_observed in operands if is_observed]

    def _raising(self, mine: ast.With, theirs: ast.With) -> ast.stmt:
        """Divide a block that must raise: what it raises is observed."""
        if len(mine.items) != 1 or any(isinstance(part, ast.Assert) or _is_check(part) for part in parts_of(mine.body)):
            raise NotLifted("checks in a block that must raise")
        place = next(self.places)
        self.strong += 1
        self.caught.update(name for item in mine.items for name in targets_of(item.optional_vars or ast.Pass()))
        theirs.body = [ast.Expr(_call(RAISE, ast.Constant(place)))]
        return ast.With([ast.withitem(_call(RAISING, ast.Constant(place)), mine.items[0].optional_vars)], mine.body)


def _raises(block: ast.With) -> bool:
    call = block.items[0].context_expr
    return isinstance(call, ast.Call) and called(call) in {"raises", "assertRaises", "assertRaisesRegex"}


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _get(owner: ast.AST, place: object) -> ast.expr:
    if isinstance(place, int):
        return owner.args[place]  # type: ignore[attr-defined,no-any-return]
    name, index = place if isinstance(place, tuple) else (place, None)
    found: ast.expr = getattr(owner, str(name)) if index is None else getattr(owner, name)[index]
    return found


def _set(owner: ast.AST, place: object, value: ast.expr) -> None:
    if isinstance(place, int):
        owner.args[place] = value  # type: ignore[attr-defined]
    elif isinstance(place, tuple):
        getattr(owner, place[0])[place[1]] = value
    else:
        setattr(owner, str(place), value)


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
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.For) and child is node.iter and isinstance(iterated(node.iter), ast.Name):
                continue
            visit(child)

    for statement in function.body:
        visit(statement)
    return found
