"""Parts of removed code, without one of which tests show whether they check it.

A part is a statement, all rounds of a loop but the first, an operand of ``and`` or ``or``, the last side of ``a < x <
b``, one of the two values of a conditional expression, an argument that a call gets by name, ``*args`` or ``**kwargs``
that a function hands on, a parameter, which has one constant then, or one of a few elements of a table. It may also be
all that tells two results apart, where a function returns whether something is so; what a function does when it calls
itself, at all or more than once; and, where there are several functions, all that one does with its first argument.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import NamedTuple

from excise.deleters.python.log_statements import is_log, only_logs
from excise.deleters.python.parameter_values import RECEIVERS, parameter_values, required_parameters
from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import Function, parsed
from excise.protocols import LackingPart
from excise.types import Symbol, content_id

MAX_LINES = 20_000
"""Number of lines of a file from which on none of it is looked at."""
MAX_PARTS = 60
"""Maximum number of parts that are looked at."""
MAX_SORTED = 2000
"""Maximum number of parts that are put in order."""
MAX_BYTES = 40_000
"""Number of bytes of a function from which on it has none."""
MIN_ELEMENTS = 5
"""Number of elements from which on a list of constants is a table; its first one, middle one and last one are parts."""
_SILENT = (
    ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Assert, ast.Delete, ast.Continue
)  # fmt: skip
"""Statements that tests need not notice."""
_ENDING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
"""Statements behind which nothing is done."""
_KINDS = (
    "result", "recursion", "parameter", "argument", "step", "rounds", "function", "operand", "choice", "element",
    "statement",
)  # fmt: skip
"""Kinds of parts, those that a lesser answer is likely to lack first."""
_TRUTH = re.compile(r"(?:is|has|can|should)_\w+|is(?:instance|subclass|[a-z]{5})|callable|hasattr|any|all|bool"
                    r"|startswith|endswith|(?:full)?match")  # fmt: skip
"""Names of functions that tell whether something is so."""
_ONCE = b"(%b if __import__('sys')._getframe(1).f_code is __import__('sys')._getframe().f_code else %b)"
"""A value, where a function was called by itself, and the call that stands there otherwise."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WHOLE = (ast.While, ast.Assert, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""Statements whose conditions and defaults stay: a loop might not end, and annotations do nothing."""
MAX_SHOWN = 60
"""Number of characters of an operand that are shown."""
OTHER_CODING = re.compile(rb"(?:[^\n]*\n)?[ \t\f]*#[^\n]*coding[:=](?![ \t]*utf-?8)", re.IGNORECASE)
"""What says that a file is in another encoding than UTF-8, in which places of nodes are no places of bytes."""


class Places:
    """Where lines of a file begin: nodes say where they are by line and byte."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def line(self, number: int) -> int:
        """The first byte of a line."""
        return self._starts[number - 1]

    def start(self, node: ast.stmt | ast.expr | ast.keyword) -> int:
        """The first byte of a node."""
        return self.line(node.lineno) + node.col_offset

    def end(self, node: ast.stmt | ast.expr | ast.keyword) -> int:
        """The byte behind a node."""
        return self.line(node.end_lineno or node.lineno) + (node.end_col_offset or 0)


class _Function(NamedTuple):
    """A function some lines of which were removed."""

    node: Function
    symbol: Symbol
    path: str
    places: Places

    @property
    def symbol_id(self) -> str:
        """The id of its symbol."""
        return self.symbol.symbol_id

    def can_lack(self, start: int, end: int, text: bytes) -> bool:
        """Whether the function can be parsed with a text in place of some of its bytes."""
        first, last = self.places.line(self.node.lineno), self.places.end(self.node)
        head, source = b"if 1:\n" if self.node.col_offset else b"", self.places.source
        try:
            ast.parse(head + source[first:start] + text + source[end:last])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return True


def lacking_parts(codebase: PythonCodebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
    """The parts of functions that lines were ``removed`` from (path to their numbers), ordered by names alone."""
    functions = list(_changed_functions(codebase, removed))
    found: list[tuple[_Function, _Part]] = []
    for each in functions:
        with suppress(RecursionError):  # a chain of a thousand ``elif``
            values = parameter_values(codebase, each.node, each.symbol)
            parts = _parts_of(each.node, each.places, removed[each.path], values, is_alone=len(functions) == 1)
            found += [(each, part) for part in parts]
    for function, part in islice(_spread(found), MAX_PARTS):
        if function.can_lack(part.start, part.end, part.text):
            name = part.what if part.kind == "parameter" else ""
            lacking = LackingPart(function.symbol_id, function.path, part.what, part.start, part.end, part.text)
            is_required = name in required_parameters(function.node)
            yield lacking._replace(parameter=name, is_required=is_required, is_essential=part.is_essential)


def _spread(parts: list[tuple[_Function, _Part]]) -> Iterator[tuple[_Function, _Part]]:
    """The parts in an order in which each kind comes before a second one of any kind, and functions take turns.

    In a function, lines do: what goes from one of them is often noticed together.
    """
    counts = Counter[object]()
    left = [((p.rank, content_id("part", f.symbol_id, p.what)), (f.symbol_id, p.what.partition(":")[0]), f, p)
            for f, p in parts]  # fmt: skip
    left = sorted(left, key=lambda each: each[0])[:MAX_SORTED]
    while left:
        rank, line, function, part = min(
            left,
            key=lambda e: (counts[e[3].kind], _KINDS.index(e[3].kind), counts[e[2].symbol_id], counts[e[1]], *e[0]),
        )
        left.remove((rank, line, function, part))
        counts.update([part.kind, function.symbol_id, line])
        yield function, part


def _changed_functions(codebase: PythonCodebase, removed: Mapping[str, frozenset[int]]) -> Iterator[_Function]:
    for path, lines in sorted(removed.items()):
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path) or module.has_error or module.source.count(b"\n") > MAX_LINES:
            continue
        tree = parsed(module.source)
        if tree is None or OTHER_CODING.match(module.source):
            continue
        functions = list(_functions(tree.body))
        places, named = Places(module.source), defaultdict[str, list[Symbol]](list)
        for symbol in module.symbols:
            named[symbol.name.partition("#")[0]].append(symbol)
        for function in functions:
            if lines.isdisjoint(_lines_of(function)) or places.end(function) - places.start(function) > MAX_BYTES:
                continue
            owner = next((symbol for symbol in named[function.name] if _is_definition(symbol, function)), None)
            if owner is not None:
                yield _Function(function, owner, path, places)


def _functions(body: Iterable[ast.stmt]) -> Iterator[Function]:
    """The functions and methods of a file, but for those inside others."""
    for statement in body:
        if isinstance(statement, Function):
            yield statement
        else:
            yield from _functions(_inside(statement))


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements directly inside another one."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for inner in getattr(statement, name, []):
            yield from inner.body if isinstance(inner, ast.ExceptHandler | ast.match_case) else [inner]


def _is_definition(symbol: Symbol, function: Function) -> bool:
    return symbol.is_callable and symbol.start_line <= function.lineno <= symbol.body_line


def _lines_of(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


class _Part(NamedTuple):
    """A part of a function."""

    kind: str
    """One of the kinds."""
    what: str
    """What goes."""
    start: int
    """Its first byte."""
    end: int
    """The byte behind it."""
    text: bytes
    """What stands in its place."""
    rank: int = 0
    """How late it comes among those of its kind in a function."""
    is_essential: bool = False
    """Whether tests have to notice it."""


_DOCUMENTED = r"(?m)[`'\"*]NAME[`'\"*=]|:param[^:\n]*\bNAME:|^\s*[-*]*\s*NAME\s*(?:\(|:)|\w[\[(][^\s\])]*\bNAME\b"
"""How a docstring documents a parameter; a word in a sentence may be just that, but not in ``search(text[:end])``."""


def _parts_of(
    function: Function, places: Places, removed: frozenset[int], values: Mapping[str, str], *, is_alone: bool
) -> Iterator[_Part]:
    """The parts of a function of which all lines are removed; of one that ``is_alone``, stand-ins are tried before.

    ``values`` are those that its parameters always have in a lesser answer.
    """
    statements = [each for each in _statements(function.body) if removed.issuperset(_lines_of(each))]
    is_only = sum(isinstance(node, _LOOPS) for node in walk(function)) == 1
    for each in statements:
        if not _is_idle(each) and not getattr(each, "decorator_list", []) and not only_logs(each):
            kind = "step" if _is_step(each) else "statement"
            yield _Part(kind, f"line {each.lineno}", places.start(each), places.end(each), b"pass")
        yield from _rounds(each, places, is_only=is_only)
        if not isinstance(each, _WHOLE) and not only_logs(each):
            yield from _operands(each, places)
            yield from _elements(each, places)
    described = ast.get_docstring(function, clean=False) or ""
    if not is_alone or len(function.body) > 1 + bool(described):
        yield from _results(function, statements, places)
    yield from _recursion(function, statements, places)
    rank = {name: 0 if re.search(rf"\b{re.escape(name)}\b", described) else 1 for name in _parameters(function)}
    for call in (call for each in statements for call in _calls(each)):
        yield from _arguments(function, call, places, rank)
    first = statements[0] if statements else None
    if first is None or first not in function.body or getattr(first, "decorator_list", []):
        return
    start = places.start(first)
    if (indent := places.source[places.line(first.lineno) : start]).strip():
        return
    named = (node for node in walk(function) if isinstance(node, ast.Name) and node.lineno in removed)
    names = {node.id for node in named if isinstance(node.ctx, ast.Load)}
    for name in (each for each in values if each in names):
        line = f"{name} = {values[name]}\n".encode() + indent
        is_told = re.search(_DOCUMENTED.replace("NAME", re.escape(name)), described) is not None
        yield _Part("parameter", name, start, start, line, rank[name], is_told or (not rank[name] and "_" in name))
    argument = _returned_argument(function)
    if argument and not is_alone:
        yield _Part("function", f"all but {argument}", start, start, f"return {argument}\n".encode() + indent)


def _arguments(function: Function, call: ast.Call, places: Places, rank: Mapping[str, int]) -> Iterator[_Part]:
    """The arguments that a call gets by name, and those of ``*args`` and ``**kwargs`` that a function hands on."""
    handed = {each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None}
    given: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=places.start)
    for number, each in enumerate(given):
        value = each.value if isinstance(each, ast.keyword | ast.Starred) else each
        name = each.arg if isinstance(each, ast.keyword) else None
        is_handed = name is None and each is not value and isinstance(value, ast.Name) and value.id in handed
        if name is None and not is_handed:
            continue
        before, after = given[number - 1] if number else None, given[number + 1 :]
        start = places.end(before) if before is not None and not after else places.start(each)
        end = places.start(after[0]) if after else places.end(each)
        passed = 0 if is_handed else rank.get(value.id, 2) if isinstance(value, ast.Name) else 2
        kind = "statement" if isinstance(value, ast.Constant) else "argument"  # it may be the default
        shown = name or places.source[places.start(each) : places.end(each)].decode(errors="replace")
        yield _Part(kind, f"line {each.lineno}: {shown}", start, end, b"", passed)


def _parameters(function: Function) -> list[str]:
    """The names of the parameters but for ``*args`` and ``**kwargs``."""
    listed = function.args
    return [each.arg for each in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)]


def own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in a function but for those of functions and classes inside it."""
    for statement in body:
        yield statement
        if not isinstance(statement, Function | ast.ClassDef):
            yield from own_statements(_inside(statement))


def returned_values(function: Function) -> list[ast.expr]:
    """What a function returns; nothing if it yields."""
    own = list(own_statements(function.body))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for each in own for node in _own_nodes(each)):
        return []
    return [each.value for each in own if isinstance(each, ast.Return) and each.value is not None]


def _returned_argument(function: Function) -> str:
    """The first argument of a function, if a lesser one may return it as it is; empty if not."""
    given = [each for each in (*function.args.posonlyargs, *function.args.args) if each.arg not in RECEIVERS]
    values = [each for each in returned_values(function) if not (isinstance(each, ast.Constant) and each.value is None)]
    if not given or not values or function.name.startswith("__") or all(map(_is_truth, values)):
        return ""
    types, name = [each for each in (given[0].annotation, function.returns) if each is not None], given[0].arg
    is_other = len(types) > 1 and ast.dump(types[0]) != ast.dump(types[1])
    done = [each for each in _statements(function.body) if not _is_idle(each) and not only_logs(each)]
    is_all = all(isinstance(e, ast.Return) and isinstance(e.value, ast.Name) and e.value.id == name for e in done)
    return "" if is_other or is_all else name


def _results(function: Function, statements: Sequence[ast.stmt], places: Places) -> Iterator[_Part]:
    """Each result that tells whether something is so, which is always ``True`` then, or always ``False``."""
    values = returned_values(function)
    returns = ast.unparse(function.returns) if function.returns is not None else ""
    is_truth = returns in {"bool", "'bool'"} or any(
        isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in values
    )
    for each in statements:
        value = each.value if isinstance(each, ast.Return) else None
        if value is None or value not in values or isinstance(value, ast.Constant):
            continue
        if is_truth or _is_truth(value):
            for text in ("True", "False"):
                what = f"line {each.lineno}: all but {text}"
                start = places.start(value)
                blank = b" " if places.source[start - 1 : start].isalpha() else b""  # ``return"a" in x``
                yield _Part("result", what, start, places.end(value), blank + text.encode())


def _is_truth(value: ast.expr) -> bool:
    """Whether an expression tells whether something is so."""
    match value:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=constant):
            return isinstance(constant, bool)
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return _TRUTH.fullmatch(name) is not None
    return False


def _recursion(function: Function, statements: Sequence[ast.stmt], places: Places) -> Iterator[_Part]:
    """What a function does when it calls itself: all of it, but for statements, and all behind the first time."""
    inner = [each for each in statements if isinstance(each, ast.FunctionDef)]
    imports = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
    others = {alias.asname or alias.name for each in imports for alias in each.names}  # of the file: it is in a class
    others |= {function.name} if function.col_offset and RECEIVERS.isdisjoint(_parameters(function)[:1]) else set()
    for each in [function, *inner]:
        if isinstance(each, ast.AsyncFunctionDef) or each.decorator_list or each.name in others:
            continue  # what calls it may be a function around it
        own = set(own_statements(each.body))
        for statement in (one for one in statements if one in own):
            yield from _calls_of(each, statement, places)


def _calls_of(function: Function, statement: ast.stmt, places: Places) -> Iterator[_Part]:
    """The parts about the calls of a function that are in a statement of its own."""
    iterated: list[ast.AST] = [statement.iter] if isinstance(statement, ast.For) else []
    nodes = list(_own_nodes(statement))
    iterated += [node.value for node in nodes if isinstance(node, ast.YieldFrom)]
    iterated += [node.iter for node in nodes if isinstance(node, ast.comprehension)]
    frames = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    apart = {inner for node in nodes if isinstance(node, frames) for inner in ast.walk(node)}
    for node in nodes:
        if not isinstance(node, ast.Call) or not _is_own_call(function, node.func):
            continue
        is_alone = isinstance(statement, ast.Expr) and statement.value is node
        start, end = places.start(node), places.end(node)
        first = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
        value = b"(%b)" % places.source[places.start(first) : places.end(first)] if first is not None else b"None"
        value = b"None" if is_alone else b"()" if node in iterated else value
        if not is_alone:
            yield _Part("recursion", f"line {node.lineno}: {function.name}", start, end, value)
        if node not in apart:
            text = _ONCE % (value, places.source[start:end])
            yield _Part("recursion", f"line {node.lineno}: all of {function.name} but once", start, end, text)


def _is_own_call(function: Function, called: ast.expr) -> bool:
    """Whether a function calls itself by its name, as a method on the object that it was called on."""
    receiver = next(iter(_parameters(function)), "")
    if receiver not in RECEIVERS:
        return isinstance(called, ast.Name) and called.id == function.name
    match called:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name == receiver and attribute == function.name
    return False


def _is_step(statement: ast.stmt) -> bool:
    """Whether a statement gives a variable another value, which is made from its value: ``x = f(x)``."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))
    return False


def _rounds(loop: ast.stmt, places: Places, *, is_only: bool) -> Iterator[_Part]:
    """The rounds of a loop but for its first one, if they may do something; of the only one in a function, tests have
    to notice them."""
    if not isinstance(loop, _LOOPS) or loop.orelse or _is_end(loop.body) or all(map(only_logs, loop.body)):
        return
    first, end = loop.body[0], places.source.find(b"\n", places.end(loop.body[-1]))
    indent = places.source[places.line(first.lineno) : places.start(first)]
    if end >= 0 and not indent.strip():
        what, text = f"line {loop.lineno}: all rounds but one", b"\n" + indent + b"break"
        yield _Part("rounds", what, end, end, text, is_essential=is_only and not isinstance(loop, ast.While))


def _is_end(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing behind some statements would be done, as far as it can be told."""
    match body[-1] if body else None:
        case ast.If(body=one, orelse=other):
            return _is_end(one) and _is_end(other)
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            return _is_end(inner)
        case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
            is_tried = _is_end(inner) or _is_end(other)
            return _is_end(last) or (is_tried and all(_is_end(each.body) for each in handlers))
        case statement:
            return isinstance(statement, _ENDING)


def _operands(statement: ast.stmt, places: Places) -> Iterator[_Part]:
    """The operands of ``and`` and ``or``, and the values of conditional expressions, in a statement."""
    for node in _own_nodes(statement):
        if isinstance(node, ast.BoolOp):
            values = node.values
            for number, (value, following) in enumerate(zip(values, [*values[1:], None], strict=True)):
                start = places.start(value) if following is not None else places.end(values[number - 1])
                end = places.start(following) if following is not None else places.end(value)
                shown = places.source[places.start(value) : places.end(value)].decode(errors="replace")
                yield _Part(
                    "operand", f"line {value.lineno}: {' '.join(shown.split())[:MAX_SHOWN]}", start, end, b" ", 1
                )
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            what = f"line {node.lineno}: last side"
            yield _Part("operand", what, places.end(node.comparators[-2]), places.end(node), b"")
        elif isinstance(node, ast.IfExp):
            yield _Part("choice", f"line {node.lineno}: else", places.end(node.body), places.end(node), b" ")
            yield _Part("choice", f"line {node.lineno}: if", places.start(node), places.start(node.orelse), b" ")


def _elements(statement: ast.stmt, places: Places) -> Iterator[_Part]:
    """Three elements of each table in a statement."""
    nodes = list(_own_nodes(statement))
    others = {n.slice for n in nodes if isinstance(n, ast.Subscript)}  # ``Literal['a', 'b']``
    others |= {n.value for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple | ast.List)}
    for node in nodes:
        if node in others:
            continue
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            spans = [(places.start(key), places.end(value), key) for key, value in pairs if key is not None]
            spans = spans if None not in node.keys else []
        elif isinstance(node, ast.List | ast.Set | ast.Tuple):
            spans = [(places.start(each), places.end(each), each) for each in node.elts]
        else:
            continue
        values = {each.value for *_, each in spans if isinstance(each, ast.Constant)}
        if len(values) < max(MIN_ELEMENTS, len(spans)):
            continue  # some are no constants, or equal
        for number in (0, len(spans) // 2, len(spans) - 1):
            start, end, element = spans[number]
            is_last = number == len(spans) - 1
            start, end = (spans[number - 1][1], end) if is_last else (start, spans[number + 1][0])
            yield _Part("element", f"line {element.lineno}: {ast.unparse(element)[:MAX_SHOWN]}", start, end, b"")


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in a function but for docstrings and what is in ``while``, which might not end without one."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        yield statement
        if not isinstance(statement, ast.While | ast.ClassDef):
            yield from _statements(_inside(statement))


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a function may do the same without a statement: at its end, it gives ``None`` in any case."""
    if isinstance(statement, ast.Return):
        return statement.value is None or (isinstance(statement.value, ast.Constant) and statement.value.value is None)
    return isinstance(statement, _SILENT) or (isinstance(statement, ast.AnnAssign) and statement.value is None)


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a statement, but for those in statements inside it, in texts, in other calls, and of logs."""
    for node in _own_nodes(statement, within=lambda node: not isinstance(node, ast.Call)):
        if isinstance(node, ast.Call) and not is_log(node.func):
            yield node


def _own_nodes(statement: ast.stmt, within: Callable[[ast.AST], bool] = lambda _: True) -> Iterator[ast.AST]:
    """A statement and its nodes, but for those in statements inside it and in texts; those below one that ``within`` is
    not true of are left out."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        if within(node) and not isinstance(node, ast.JoinedStr):
            inner = [node.target, node.value] if isinstance(node, ast.AnnAssign) else ast.iter_child_nodes(node)
            kinds = (ast.stmt, ast.excepthandler, ast.match_case, type(None))
            pending += [each for each in inner if not isinstance(each, kinds)]
