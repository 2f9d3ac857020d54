"""Data in the code of functions that nobody could know: tables, alphabets, weights."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from excise.deleters.python.number_data import formats_of, numbers_of
from excise.extractors.python.analysis.ast_walk import last_name
from excise.extractors.python.needs.test_uses import Function, function_of
from excise.protocols import Module
from excise.types import Symbol

MIN_LOC = 4
"""Number of lines of a function from which on its data is not its code."""
MAX_DATA = 300
"""Number of characters of a literal up to which it is told."""
MAX_LITERALS = 5
"""Maximum number of literals of one function."""
_CHANGES = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "capitalize"})
"""Methods of texts after which these are compared."""
MIN_ELEMENTS, MIN_PAIRS = 3, 2
"""Number of elements of a list, and of entries of a dictionary, from which on it is a table."""
MIN_ALPHABET = 8
"""Number of characters of a text from which on it may be an alphabet."""
MAX_OPTIONS = 24
"""Maximum number of options of a command line."""
_TOLD_OF_OPTIONS = ("action", "nargs", "const", "default", "type", "choices", "required", "dest", "is_flag", "multiple")
"""What is told of an option, or of an argument: what a program does with it, not what its help says."""
_TEXT_CALLS = frozenset({"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer", "format"})
"""Functions whose arguments are patterns and templates: how code works, not what it knows."""


def function_data(module: Module, symbol: Symbol) -> Sequence[str]:
    """The literals of a function's code that are data, as they could be written; without functions inside it."""
    function = function_of(module.source, symbol) if symbol.is_callable else None
    if function is None:
        return ()
    nodes = list(_own_nodes(function))
    lines = module.source.splitlines(keepends=True)
    numbers = _short([*numbers_of(nodes, lines), *formats_of(function, nodes)])
    if symbol.loc < MIN_LOC:
        return numbers
    told = _short(map(ast.unparse, _data_in(function)))[:MAX_LITERALS]
    written = " ".join(told)
    others = (text for text in numbers if re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.])", written) is None)
    return [*told, *_short(_options(function))[:MAX_OPTIONS], *others]


def _short(texts: Iterable[str]) -> list[str]:
    """Those of the texts that a statement can show as code, each once."""
    return [text for text in dict.fromkeys(texts) if len(text) <= MAX_DATA and "`" not in text]


def _options(function: Function) -> Iterator[str]:
    """The options that a function gives a parser of a command line, without what their help says."""
    calls = [node for node in _own_nodes(function) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
        if last_name(node.func) not in {"add_argument", "add_option"}:  # of argparse and of optparse
            continue
        told = [each for each in node.keywords if each.arg in _TOLD_OF_OPTIONS and _is_told(each.value)]
        is_named = bool(node.args) and all(map(_is_literal, node.args))
        if is_named and told and node.keywords:
            yield ast.unparse(ast.Call(ast.Name(last_name(node.func), ast.Load()), node.args, told))


def _data_in(function: Function) -> Iterator[ast.AST]:
    """The tables of a function, in order; without its answers."""
    answers = {id(each) for each in _answers(function)}
    stack: list[ast.AST] = [*reversed(function.body)]
    while stack:
        node = stack.pop()
        is_text = isinstance(node, ast.Call) and last_name(node.func) in _TEXT_CALLS
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or is_docstring or isinstance(node, Function | ast.Raise | ast.Assert | ast.JoinedStr):
            continue
        if isinstance(node, ast.Call) and last_name(node.func) == "cast":
            stack += reversed(node.args[1:])  # the first one is a type
        elif id(node) not in answers and (membership := _of_plain_text(node)) is not None:
            yield membership
        elif not _is_table(node):
            stack += reversed([*ast.iter_child_nodes(node)])
        elif id(node) not in answers:
            yield node


def _is_told(value: ast.expr) -> bool:
    """Whether a value of an option is no code: literals, names, and what is put together of these."""
    plain = (ast.Constant, ast.Name, ast.Attribute, ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.UnaryOp)
    more = (ast.expr_context, ast.operator, ast.unaryop)
    return all(isinstance(node, (*plain, *more)) for node in ast.walk(value))


def _of_plain_text(node: ast.AST) -> ast.Compare | None:
    """Whether a table holds a text that is changed before, with ``…`` for the text: ``….lower() in ('a', 'b')``."""
    match node:
        case ast.Compare(left=ast.Call() as left, ops=[ast.In() | ast.NotIn() as asked], comparators=[table]):
            marked, changes = _with_mark(left)
            return ast.Compare(marked, [asked], [table]) if changes and _is_table(table) else None
    return None


def _with_mark(node: ast.expr) -> tuple[ast.expr, int]:
    """An expression with ``…`` in the place of what methods in :data:`_CHANGES` are called on, and their number."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]) if name in _CHANGES:
            marked, number = _with_mark(inner)
            return ast.Call(ast.Attribute(marked, name, ast.Load()), [], []), number + 1
    return ast.Name("…", ast.Load()), 0


def _answers(function: Function) -> Iterator[ast.expr]:
    """What a function returns or yields, and what it assigns to names that do nothing but to be returned or yielded."""
    values: dict[str, list[ast.expr]] = defaultdict(list)
    returned = Counter[str]()
    for node in _own_nodes(function):
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
            yield node.value
            if isinstance(node.value, ast.Name):
                returned[node.value.id] += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) == 1 and isinstance(targets[0], ast.Name):
                values[targets[0].id].append(node.value)
    uses = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name, given in values.items():
        if uses[name] == returned[name] > 0:
            yield from given


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, in no particular order; without those of functions inside it."""
    stack: list[ast.AST] = [*function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda):
            stack += ast.iter_child_nodes(node)


def _is_table(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            is_dense = len(set(text)) > 0.8 * len(text) and not any(map(str.isspace, text))
            is_long = len(text) > 2 * MIN_ALPHABET
            is_word = text.islower() or (text.isalpha() and len(set(text.lower())) < len(text))
            is_name = "." in text and all(part.isidentifier() for part in text.split("."))
            return len(text) >= MIN_ALPHABET and is_dense and (is_long or not is_word) and not is_name
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            is_told = any(not isinstance(each, ast.Constant) or each.value not in {0, 1, 2} for each in elements)
            return len(elements) >= MIN_ELEMENTS and is_told and all(map(_is_literal, elements))
        case ast.Dict(keys=keys, values=values):
            return len(keys) >= MIN_PAIRS and all(each is not None and _is_literal(each) for each in (*keys, *values))
    return False


def _is_literal(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_literal, node.elts))
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, str | int | float | bytes)
