"""What removed code supplies besides names and signatures: attributes, texts, numbers, exceptions, and what it uses."""

from __future__ import annotations

import ast
import dis
import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType

from excise.extractors.expected_texts import shown_placeholder
from excise.extractors.python.analysis.ast_walk import first_line, last_name, last_names, texts_of
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.needs.chained_raises import note_chained
from excise.extractors.python.needs.supplied_words import Format, Piece, Role, Words
from excise.extractors.python.needs.test_uses import Function, is_none, parsed
from excise.types import FILLED_IN, Symbol, SymbolKind

_PLACEHOLDER = re.compile(r"%(?:\([^)]*\))?[-+ #0-9.*]*[a-zA-Z%]|\{[^{}]*\}")
_EXCEPTION = re.compile(r"(?:Error|Exception|Warning|Exit|Interrupt)$")
_MAKERS = {"list": ("list",), "sorted": ("list",), "tuple": ("tuple",), "dict": ("dict",)}
"""Functions to the types of what they make."""
MAX_CHAIN = 40
"""Number of characters of a name with its attributes up to which a statement shows it in a text."""
MAX_GROUP = 8
"""Number of texts in one condition above which they are data."""
_USUAL = frozenset({"utf-8", "utf8"})
"""Texts that are no data: an encoding that everybody tries first."""
_RECEIVERS = frozenset({"self", "cls"})
_EXITS = frozenset({"exit", "SystemExit"})
_PRINTERS = frozenset({"print", "echo", "secho"})
"""Functions that write their first argument to the standard output."""
_WRITERS = frozenset(
    {"dumps", "dump", "safe_dump", "to_json", "to_csv", "to_xml", "tostring", "toprettyxml", "pformat", "pprint"}
)
"""Functions that write a value as a text with a layout."""
_LOOK_UP = frozenset({"get", "pop", "setdefault", "getlist"})
"""Methods whose first argument is a key."""


def words_of(codebase: PythonCodebase, removed: Sequence[str]) -> Sequence[Words]:
    """What the removed symbols and all definitions inside them supply, one record for each definition with code."""
    return _words_of(codebase, tuple(removed))


@lru_cache(maxsize=4)
def _words_of(codebase: PythonCodebase, removed: tuple[str, ...]) -> Sequence[Words]:
    """Kept, since one candidate asks for the same again and again."""
    symbols = codebase.symbols()
    by_path: dict[str, list[Symbol]] = {}
    for symbol_id in removed:
        if symbol_id in symbols:
            by_path.setdefault(symbols[symbol_id].path, []).append(symbols[symbol_id])
    found: list[Words] = []
    for path, outer in sorted(by_path.items()):
        module = codebase.modules[path]
        tree = parsed(module.source)
        inner = [s for s in module.symbols if any(_contains(o, s) for o in outer)]
        if tree is not None:
            found += _Reader(inner).read(tree)
    raised = set[str]().union(*(words.exceptions for words in found))
    classes = [s for s in symbols.values() if s.name in raised and s.kind is SymbolKind.CLASS]
    for each in (each for each in classes if not codebase.is_test(each.path)):
        bases = codebase.resolver.with_bases([Entity(each.path, each.qualname)])
        names = {base.qualname.rpartition(".")[2] for base in bases} - {each.name}
        for words in (words for words in found if each.name in words.exceptions):
            words.bases.setdefault(each.name, set()).update(names)
    return tuple(found)


def _contains(outer: Symbol, inner: Symbol) -> bool:
    return outer.kind is SymbolKind.MODULE or (outer.start <= inner.start and inner.end <= outer.end)


class _Reader:
    """Reads the definitions among ``symbols`` in a syntax tree."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.classes = {(s.path, s.qualname) for s in symbols if s.kind is SymbolKind.CLASS}
        self.by_line = {(s.start_line, s.end_line): Words(s) for s in symbols if s.kind is not SymbolKind.MODULE}
        self.first_lines = sorted(first for first, _ in self.by_line)
        self.within: set[int] = set()
        """Identities of the nodes that are parts of a text."""
        self.module = next((Words(s) for s in symbols if s.kind is SymbolKind.MODULE), None)

    def read(self, tree: ast.Module) -> list[Words]:
        """Fill in the records of all definitions."""
        self._visit(tree, self.module, None)
        return [*([self.module] if self.module else ()), *self.by_line.values()]

    def _visit(self, node: ast.AST, words: Words | None, scope: ast.AST | None) -> None:
        """Visit the children of a node. ``scope`` is the innermost class or function around them."""
        for child in _without_docstring(node):
            if words is None and not self._has_definitions(child):
                continue
            if isinstance(child, Function | ast.ClassDef):
                own = self.by_line.get((first_line(child), child.end_lineno or child.lineno), words)
                if own is not None and own is not words and isinstance(child, Function):
                    self._note_whole_code(child, own)
                    own.parameters = _parameters(child)
                    own.gives_none = _gives_none(child)
                    own.gives_truth = _gives_truth(child)
                    own.gives_self = _gives_self(child)
                self._visit(child, own, child)
            else:
                if words is not None:
                    if id(child) not in self.within:
                        self._note_formats(child, words)
                    _note(child, words, scope)
                    _note_exits(child, words)
                    _note_handled(child, words)
                    note_chained(child, words)
                    _note_called(child, words)
                    _note_choice(child, words)
                    _note_group(child, words)
                    if isinstance(child, ast.Attribute) and self._is_elsewhere(child, words.symbol):
                        words.elsewhere.add(child.attr)
                self._visit(child, words, scope)

    def _has_definitions(self, node: ast.AST) -> bool:
        """Whether a node may have any of the definitions in it, by its lines."""
        if isinstance(node, ast.expr):
            return False
        place = bisect_left(self.first_lines, first_line(node))
        return place < len(self.first_lines) and self.first_lines[place] <= getattr(node, "end_lineno", math.inf)

    def _note_formats(self, node: ast.AST, words: Words) -> None:
        """Note the formats of a text that is no part of another one."""
        is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        if is_sum or isinstance(node, ast.JoinedStr | ast.Constant):
            words.formats.update(_formats_of(node))
            if not isinstance(node, ast.Constant):
                self.within.update(id(part) for part in ast.walk(node) if part is not node)

    def _is_elsewhere(self, node: ast.Attribute, symbol: Symbol) -> bool:
        """Whether an attribute is set on something else than an object of a class that is removed with its method."""
        if not isinstance(node.ctx, ast.Store):
            return False
        is_own = isinstance(node.value, ast.Name) and node.value.id in _RECEIVERS
        return not (is_own and (symbol.path, symbol.qualname.rpartition(".")[0]) in self.classes)

    def _note_whole_code(self, function: Function, words: Words) -> None:
        """Note the constants of a function that does nothing but return them."""
        body = list(_without_docstring(function, of=function.body))
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        parts = list(ast.walk(returned)) if returned is not None else []
        if not any(isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in parts):
            texts = (text for part in parts for text in texts_of(part))
            words.pieces.update(Piece(text, Role.TEXT, is_whole_code=True) for text in texts)
            numbers = (part.value for part in parts if isinstance(part, ast.Constant))
            words.numbers.update({repr(number): True for number in numbers if type(number) in (int, float)})


def _parameters(function: Function) -> frozenset[str]:
    arguments = function.args
    return frozenset(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _gives_none(function: Function) -> bool:
    """Whether a function returns ``None`` in some cases, also at its end, and something else in others."""
    parts = [part for child in function.body for part in _own_parts(child)]
    values = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
    is_generator = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts)
    if is_generator or all(map(is_none, values)):
        return False
    try:
        module = compile(ast.Module([function], []), "function", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    codes = [each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == function.name]
    instructions = list(dis.get_instructions(codes[0])) if codes else []
    return any(
        one.argval is None and (one.opname == "RETURN_CONST" or (one.opname, after) == ("LOAD_CONST", "RETURN_VALUE"))
        for one, after in zip(instructions, [*(each.opname for each in instructions[1:]), ""], strict=True)
    )


def _is_plain(value: ast.expr | None) -> bool:
    """Whether a value is a constant, or an empty container."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return not value.elts
    return value is None or isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _note_handled(node: ast.AST, words: Words) -> None:
    """Note a handler that returns a constant."""
    match node:
        case ast.ExceptHandler(type=ast.expr() as caught, body=[*_, ast.Return(value=value)]) if _is_plain(value):
            words.handled.add(f"{ast.unparse(caught)}: {ast.unparse(value) if value is not None else None}")


def _note_called(node: ast.AST, words: Words) -> None:
    """Note a call of a parameter or an attribute, by position, that gives several arguments, or one that is no name."""
    match node:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name), args=args, keywords=[]
        ) if len(args) > 1 or any(not isinstance(each, ast.Name | ast.Constant) for each in args):
            if isinstance(node.func, ast.Attribute) or name in words.parameters:
                words.called.setdefault(name, f"{name}({', '.join(map(ast.unparse, args))})")


def _note_group(node: ast.AST, words: Words) -> None:
    """Note the texts of one condition, if it has several."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [part for each in values for part in _compared_with(each)]
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple() | ast.List() | ast.Set() as table]):
            parts = table.elts
        case _:
            parts = []
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if 1 < len(texts) <= MAX_GROUP:
        words.groups.add(tuple(texts))


def _compared_with(condition: ast.expr) -> Sequence[ast.expr]:
    """What a condition compares, or looks for at the beginning or end of a text."""
    match condition:
        case ast.Compare(left=left, comparators=others):
            return left, *others
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=[wanted, *_]):
            return wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    return ()


def _note_choice(node: ast.AST, words: Words) -> None:
    """Note two texts of which a name decides."""
    match node:
        case ast.IfExp(test=ast.Name(), body=ast.Constant(value=str() as one), orelse=ast.Constant(value=str() as two)):
            choice = ast.unparse(node)
            words.pieces.update(Piece(text, Role.TEXT, template=choice) for text in (one, two) if len(text) > 1)


def _gives_truth(function: Function) -> bool:
    """Whether all that a function returns is ``True`` or ``False``, as it says."""
    parts = [part for child in function.body for part in _own_parts(child)]
    values = [part.value for part in parts if isinstance(part, ast.Return)]
    return bool(values) and all(isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in values)


def _gives_self(function: Function) -> bool:
    """Whether a method returns its object, and nothing else."""
    parts = [part for child in function.body for part in _own_parts(child)]
    values = [part.value for part in parts if isinstance(part, ast.Return)]
    return bool(values) and all(isinstance(each, ast.Name) and each.id == "self" for each in values)


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, without the insides of functions and classes."""
    yield node
    if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _own_parts(child)


def _without_docstring(node: ast.AST, of: Sequence[ast.AST] | None = None) -> Iterator[ast.AST]:
    """The children of a node (or ``of``) without texts that stand alone."""
    for child in ast.iter_child_nodes(node) if of is None else of:
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield child


def _made_by(node: ast.AST) -> tuple[str, ...]:
    """The type of the container that an expression makes."""
    if isinstance(node, ast.Dict | ast.DictComp):
        return ("dict",)
    if isinstance(node, ast.ListComp):
        return ("list",)
    is_read = isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load)
    return (("tuple",) if isinstance(node, ast.Tuple) else ("list",)) if is_read else ()


def _note(node: ast.AST, words: Words, scope: ast.AST | None) -> None:
    words.made.update(_made_by(node))
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()):
            words.attributes.add(name)
        case ast.Attribute(attr=name, value=owner):
            words.identifiers.add(name)
            words.owners.setdefault(name, set()).add(last_name(owner.func if isinstance(owner, ast.Call) else owner))
        case ast.Name(id=name, ctx=ast.Store()) if not isinstance(scope, Function):
            (words.names if scope is None else words.attributes).add(name)
        case ast.Name(id=name):
            words.identifiers.add(name)
            words.owners.setdefault(name, set()).add("")
        case ast.Raise(exc=ast.expr() as raised):
            _note_raised(raised, words)
        case ast.Assert():
            _note_asserted(node.msg, words)
        case ast.Call():
            _note_call(node, words)
        case ast.Dict() | ast.Subscript():
            keys = node.keys if isinstance(node, ast.Dict) else [node.slice]
            words.pieces.update(Piece(text, Role.KEY) for key in keys for text in texts_of(key))
        case ast.Constant() | ast.JoinedStr() | ast.BinOp():
            words.pieces.update(piece for piece in pieces_of(node, Role.TEXT) if piece.text.lower() not in _USUAL)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            stored = isinstance(node, ast.Return) or not isinstance(scope, Function)
            if stored or any(isinstance(target, ast.Attribute) for target in targets):
                _note_numbers(value, words)
                _note_stored(value, targets, words)


def _note_exits(node: ast.AST, words: Words) -> None:
    """Note how a call ends the process, and how those in a handler of exceptions do."""
    found = list(ast.walk(node)) if isinstance(node, ast.ExceptHandler) else [node]
    handled = sorted(last_names(node.type)) if isinstance(node, ast.ExceptHandler) and node.type is not None else [""]
    for call in found:
        if isinstance(call, ast.Call) and last_name(call.func) in _EXITS and (call.args or call.keywords):
            given = [*call.args, *(each.value for each in call.keywords if each.arg in {"status", "code"})]
            code = ast.unparse(given[0]) if given else ""
            if re.fullmatch(r"-?\d+", code):
                words.exits.update(f"SystemExit({code})" + (f" for {name}" if name else "") for name in handled)


def _note_stored(value: ast.expr, targets: Sequence[ast.expr | None], words: Words) -> None:
    """Note the attributes of the object itself that get a number."""
    for target in targets if isinstance(value, ast.Constant) and type(value.value) in (int, float) else ():
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in _RECEIVERS:
            words.stored.setdefault(ast.unparse(value), set()).add(target.attr)


def _note_numbers(node: ast.expr, words: Words) -> None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        words.numbers.setdefault(repr(node.value), False)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.UnaryOp | ast.IfExp):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                _note_numbers(child, words)


def _note_asserted(message: ast.expr | None, words: Words) -> None:
    words.exceptions.add("AssertionError")
    for part in _without_parts_of_texts(message) if message is not None else ():
        words.pieces.update(pieces_of(part, Role.MESSAGE, "AssertionError"))


def _note_raised(raised: ast.expr, words: Words) -> None:
    name = last_name(raised.func if isinstance(raised, ast.Call) else raised)
    if name[:1].isupper() or _EXCEPTION.search(name):
        words.exceptions.add(name)
    if isinstance(raised, ast.Call):
        _note_message(raised, name, words)


def _note_call(node: ast.Call, words: Words) -> None:
    name = last_name(node.func)
    words.made.update(_MAKERS.get(name, (name,) if name[:1].isupper() else ()))
    if name in {"sorted", "sort"}:
        words.sorts.add(_sorting(node))
    if name in _WRITERS:
        given = [f"{key.arg}={key.value.value!r}" for key in node.keywords if isinstance(key.value, ast.Constant)]
        words.writers.add(f"{name}({', '.join([FILLED_IN, *given])})")
    words.passed.update(keyword.arg for keyword in node.keywords if keyword.arg)
    if name in _PRINTERS and not any(keyword.arg in {"file", "err"} for keyword in node.keywords):
        written = ("".join(text for text, _ in parts) for arg in node.args[:1] if (parts := _parts_of(_format_in(arg))))
        words.printed.update(text for text in written if any(map(str.isalpha, text)))
    if name in {"dict", "update"}:
        words.pieces.update(Piece(keyword.arg, Role.KEY) for keyword in node.keywords if keyword.arg)
    if _EXCEPTION.search(name) and name[:1].isupper():
        words.exceptions.add(name)
        _note_message(node, name, words)
    elif name == "warn":
        category = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "category")]
        kind = last_name(category[0]) if category else "UserWarning"
        words.exceptions.add(kind)
        _note_message(node, kind, words)
    elif name in _LOOK_UP:
        words.pieces.update(Piece(text, Role.KEY) for arg in node.args[:1] for text in texts_of(arg))
    elif name in {"setattr", "namedtuple"}:
        texts = [text for arg in node.args[1:2] for text in texts_of(arg)]
        words.attributes.update(word for text in texts for word in re.findall(r"\w+", text))


def _sorting(call: ast.Call) -> str:
    """A call that sorts, without what it sorts, and with keys only where they are names."""
    given = {each.arg: each.value for each in call.keywords}
    key, reverse = given.get("key"), given.get("reverse")
    by = f", key={_chain(key) or FILLED_IN}" if key is not None else ""
    is_reverse = isinstance(reverse, ast.Constant) and reverse.value is True
    down = ", reverse=True" if is_reverse else f", reverse={FILLED_IN}" if reverse is not None else ""
    return f"sorted({FILLED_IN}{by}{down})"


def _note_message(call: ast.Call, exception: str, words: Words) -> None:
    for arg in (*call.args, *(keyword.value for keyword in call.keywords)):
        for part in _without_parts_of_texts(arg):
            words.pieces.update(pieces_of(part, Role.MESSAGE, exception))


def _without_parts_of_texts(node: ast.AST, *, is_part: bool = False) -> Iterator[ast.AST]:
    """A node and all below it, without the literal parts of f-strings and sums of texts, which are no messages."""
    if not is_part:
        yield node
    if isinstance(node, ast.JoinedStr):
        for value in (each.value for each in node.values if isinstance(each, ast.FormattedValue)):
            yield from _without_parts_of_texts(value)
        return
    is_sum = _is_sum(node) and (is_part or _parts_of(node) is not None)
    for child in ast.iter_child_nodes(node):
        is_summand = is_sum and (_is_sum(child) or isinstance(child, ast.Constant | ast.JoinedStr))
        yield from _without_parts_of_texts(child, is_part=is_summand)


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def pieces_of(node: ast.AST, role: Role, exception: str = "") -> Iterator[Piece]:
    """The parts between placeholders (``%s``, ``{}``, values) of a constant, an f-string, or a sum of texts."""
    parts = _parts_of(node) or []
    template = "".join(text for text, _ in parts)
    yield from (
        Piece(text, role, exception, template=template if text != template else "")
        for text, is_literal in parts
        if is_literal and text
    )


def _format_in(node: ast.expr) -> ast.expr:
    """The text that an expression fills in with ``%`` or ``format``; else the expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return node.left
    function = node.func if isinstance(node, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) and function.attr == "format" else node


def _formats_of(node: ast.AST) -> Iterator[Format]:
    """How a text puts several values together with nothing but punctuation, or several blanks, between them, or one
    value between two of them: ``[{rule}] ``."""
    parts = _parts_of(node) or []
    separators = [text for text, is_literal in parts if is_literal and text]
    joined = "".join(separators)
    is_telling = bool(joined.strip(" ")) or len(separators) > 1
    is_around = sum(bool(text.strip()) for text in separators) > 1
    if is_telling and (is_around or len(parts) - len(separators) > 1) and not any(map(str.isalnum, joined)):
        yield Format("".join(text for text, _ in parts), tuple(separators))


def _parts_of(node: ast.AST) -> list[tuple[str, bool]] | None:
    """A text as (text, whether it stands for itself) of its parts; ``None`` for an expression that is no text."""
    if isinstance(node, ast.JoinedStr):
        return [
            (str(value.value), True) if isinstance(value, ast.Constant) else (_filled_in(value), False)
            for value in node.values
        ]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        operands: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
            operands.append(left.right)
            left = left.left
        sides = [None if isinstance(each, ast.BinOp) else _parts_of(each) for each in (left, *reversed(operands))]
        found = [part for side in sides for part in side or [(FILLED_IN, False)]]
        return None if all(side is None for side in sides) else found
    text = next(iter(texts_of(node)), None)
    if text is None:
        return None
    parts, place = [], 0
    for match in _PLACEHOLDER.finditer(text):
        parts += [(text[place : match.start()], True), (shown_placeholder(match), False)]
        place = match.end()
    return [part for part in (*parts, (text[place:], True)) if part[0]]


def _chain(node: ast.expr) -> str:
    """``a.b.c`` for a name with attributes; empty for anything else, and for long ones."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    text = ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
    return text if len(text) <= MAX_CHAIN else ""


def _filled_in(node: ast.expr) -> str:
    """A value in an f-string as statements show it: its name, its conversion and its format, without other code."""
    if not isinstance(node, ast.FormattedValue):
        return FILLED_IN
    conversion = f"!{chr(node.conversion)}" if node.conversion != -1 else ""
    parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
    texts = [text for part in parts for text in texts_of(part)]
    spec = f":{''.join(texts)}" if any(texts) and len(texts) == len(parts) else ""
    name = _chain(node.value) or last_name(node.value)
    return f"{{{name or FILLED_IN}{conversion}{spec}}}" if name or conversion or spec else FILLED_IN
