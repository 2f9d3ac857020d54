"""Parts of code, without one of which tests show whether they check it, in languages with braces.

A part is a branch of a condition, a case of a choice among several or one of its values, an operand of ``&&`` or
``||``, all rounds but the first of a loop, or of a call for each item, or a call or an assignment that is a statement;
or what tells apart whether a function returns ``true`` or ``false``. In JavaScript, it is also the kind of an error,
and, where there are several functions without types, all that one does with its first argument. What stands in its
place keeps what a compiler asks for: ``if (x)`` becomes ``if (x && false)``, and ``f(x);`` becomes ``if (false) { f(x);
}``, so that no variable is unused. Where there is none of these, it is what is done to an argument of a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from tree_sitter import Node, Tree

from excise.deleters.only_effects import is_only_effect, statements_of
from excise.deleters.single_rounds import BLOCKS, round_of_call, round_of_loop
from excise.protocols import Codebase, LackingPart
from excise.types import Symbol, content_id

MAX_PARTS = 60
"""Maximum number of parts that are looked at."""
MAX_BYTES = 1_000_000
"""Number of bytes of a file from which on it has none."""
MAX_SHOWN = 60
"""Number of characters of an operand that are shown."""
MANY_VALUES = 4
"""Number of values of one case from which on all but the first are a part; of literals, tests have to try some."""
_LITERAL = re.compile(r"""b?["'\d]""")
_SAID = re.compile(
    r"(?:[\w$]+\s*(?:\.|::)\s*)*"
    r"(?:(?:log(?:ger|f|ln)?|console|debug(?:f|ln|_assert\w*)?|tracef?|warn(?:f|ing)?|slog|assert\w*)\s*(?:!|\(|\.|::)"
    r"|(?:info|error)!|panic\()",
    re.IGNORECASE,
)
"""What begins a statement for people who read a log, a check that right code passes, or one that ends a function."""
_ANY = re.compile(r"[a-z_]\w*")
"""A pattern that all values fit."""
_COMPARISONS = frozenset({"==", "!=", "===", "!==", "<", "<=", ">", ">=", "instanceof", "in"})
"""Operators whose results are ``true`` or ``false``."""
_ERROR = re.compile(r"\w+Error")
"""The name of an error that is of a kind."""
_FAILS = re.compile(r"(?:\{\s*)?(?:(?:core|std)::)?(?:panic|unreachable|unimplemented|todo)!")
"""The beginning of a value that is none."""
_CALLS = frozenset({"call_expression", "method_invocation"})
_ARGUMENTS = frozenset({"arguments", "argument_list"})
_AS_IT_IS = re.compile(r"\b(?:clone|to_owned|into|as_\w+|borrow|iter|valueOf|requireNonNull|Error|(?<=\.)String)\s*$")
"""The end of a function whose result another one mostly takes as what it is given."""


class PartGrammar(NamedTuple):
    """How a language writes what parts are made of, as types of nodes."""

    parse_tree: Callable[[bytes], Tree]
    """The syntax tree of a file."""
    conditions: frozenset[str]
    """Nodes with a ``condition`` and a ``consequence``, and maybe an ``alternative``."""
    loops: frozenset[str]
    """Loops that end after any of their rounds, with a ``body``."""
    endless: frozenset[str]
    """Loops that might not end without a part of them."""
    statements: Mapping[str, frozenset[str]]
    """Statements that can go alone, to the types of the node in them; empty if that does not matter."""
    parentheses: bool
    """Whether conditions stand in parentheses."""
    joining: frozenset[str] = frozenset({"&&", "||"})
    """Operators one side of which may go."""
    any_value: bool = False
    """Whether operands of these may be of any type, and nothing asks for a use of variables."""
    passes_on: Callable[[str], object] = lambda _: False
    """Whether a condition only asks for an error; where that is handed on, tests seldom cause it."""
    hands_on: Callable[[str], object] = lambda _: True
    """Whether the last statement of the branch for an error hands it on."""
    keeps: Callable[[Node, bytes], bool] = lambda _node, _source: False
    """Whether a statement has to stay for the compiler."""
    binds: Callable[[Node], bool] = lambda _condition: False
    """Whether a condition gives names to values."""
    cases: frozenset[str] = frozenset()
    """Cases of a choice (``switch``, ``match``), but for those that say so by their type that they are for all else."""
    values: frozenset[str] = frozenset()
    """Nodes in cases with the values that they are for, if there are several."""
    exhaustive: frozenset[str] = frozenset()
    """Cases of which none may be missing unless there is one for all else."""
    failing_arm: bytes = b""
    """What stands in the place of the value ``%s`` of a case, where none of the cases may be missing."""
    returns: frozenset[str] = frozenset({"return_statement"})
    """What ends a function with a result."""
    has_tail: bool = False
    """Whether the last expression of a function is its result; then ``!`` is also for numbers."""
    rounds: Mapping[str, bytes] = {}
    """Methods that do something for each item, to what stands before the dot so that they do it for one."""
    typed: tuple[str, ...] = ()
    """Suffixes of files whose types are checked, where not all files are compiled."""


def syntax_parts(
    codebase: Codebase, removed: Mapping[str, frozenset[int]], grammar: PartGrammar
) -> Iterator[LackingPart]:
    """The parts of functions that lines were ``removed`` from (path to their numbers), ordered by names alone.

    Operands come last: they are many, and say less of what tests check than the branches that they choose.
    """
    found = [*_found(codebase, removed, grammar)] or [*_found(codebase, removed, grammar, of_arguments=True)]
    for _, part in sorted(found, key=itemgetter(0))[:MAX_PARTS]:
        source = codebase.modules[part.path].source
        if not grammar.parse_tree(source[: part.start] + part.replacement + source[part.end :]).root_node.has_error:
            yield part


def _found(
    codebase: Codebase, removed: Mapping[str, frozenset[int]], grammar: PartGrammar, *, of_arguments: bool = False
) -> Iterator[tuple[tuple[bool, str], LackingPart]]:
    """The parts with what orders them; with ``of_arguments``, only what is done to arguments of calls."""
    num_functions = sum(
        symbol.is_callable and removed[path].issuperset(range(symbol.start_line, symbol.end_line + 1))
        for path in removed if path in codebase.modules
        for symbol in codebase.modules[path].symbols
    )  # fmt: skip
    for path, lines in sorted(removed.items()):
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path) or len(module.source) > MAX_BYTES:
            continue
        root = grammar.parse_tree(module.source).root_node
        functions = [symbol for symbol in module.symbols if symbol.is_callable]
        is_compiled = not grammar.any_value or path.endswith(grammar.typed)
        if root.has_error:
            continue
        source = module.source
        parts = [*(_conversions(root, source, lines) if of_arguments else _parts_of(root, source, lines, grammar))]
        if num_functions > 1 and grammar.any_value and not is_compiled and not of_arguments:
            parts += _arguments(root, source, lines, functions)
        for each in parts:
            if (owner := _innermost(functions, each.start, each.end)) is not None:
                part = LackingPart(
                    owner.symbol_id, path, *each[:4], is_compiled=is_compiled, fails=each.fails,
                    is_essential=each.is_essential, may_be_idle=each.may_be_idle,
                )  # fmt: skip
                yield (each.is_operand, content_id("part", owner.symbol_id, each.what)), part


def declared_before(node: Node, declarations: frozenset[str]) -> Iterator[Node]:
    """The declarations whose names a statement may see: those in the blocks around it, up to the function's."""
    around = node.parent
    while around is not None and around.child_by_field_name("parameters") is None:
        yield from (child for child in around.named_children if child.type in declarations)
        around = around.parent


def _innermost(functions: list[Symbol], start: int, end: int) -> Symbol | None:
    around = [each for each in functions if each.start <= start and end <= each.end]
    return min(around, key=lambda each: each.end - each.start, default=None)


class _Part(NamedTuple):
    """A part of a file."""

    what: str
    """What goes."""
    start: int
    """Its first byte."""
    end: int
    """The byte behind it."""
    text: bytes
    """What stands in its place."""
    is_operand: bool = False
    """Whether it is an operand."""
    fails: bool = False
    """Whether an error stands in its place."""
    is_essential: bool = False
    """See :class:`~excise.protocols.LackingPart`."""
    may_be_idle: bool = False
    """See there."""


def _parts_of(root: Node, source: bytes, lines: frozenset[int], grammar: PartGrammar) -> Iterator[_Part]:
    """The parts all lines of which are among those given."""
    pending = [root]
    while pending:
        node = pending.pop()
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        if node.type in grammar.endless or _is_endless(node, grammar) or lines.isdisjoint(range(first, last + 1)):
            continue
        pending += reversed(node.children)
        if not lines.issuperset(range(first, last + 1)):
            continue
        if node.type in grammar.conditions:
            yield from _branches(node, source, grammar)
        elif node.type == "binary_expression":
            yield from _operands(node, source, grammar)
        elif node.type in grammar.cases:
            yield from _case(node, source, grammar)
        elif node.type in grammar.loops:
            yield from _rounds(node, round_of_loop(node, source))
        elif node.type in _CALLS and (found := round_of_call(node, source, grammar.rounds)) is not None:
            yield from _rounds(node, found)
        elif node.type in grammar.returns or (grammar.has_tail and node.type == "block"):
            yield from _results(node, source, grammar)
        elif node.type == "throw_statement" and grammar.any_value:
            yield from _kind_of_error(node, source)
        elif node.type in grammar.statements and _may_go(node, source, grammar):
            text = source[node.start_byte : node.end_byte]
            opened, closed = (b"if (false) { ", b" }") if grammar.parentheses else (b"if false { ", b" }")
            part = opened + text + closed
            is_only, place = is_only_effect(node), (node.start_byte, node.end_byte)
            yield _Part(f"line {first}", *place, part, may_be_idle=not is_only, is_essential=is_only)


def _is_endless(node: Node, grammar: PartGrammar) -> bool:
    """Whether a loop, of a type that may end, has nothing that ends it but its body."""
    if node.type not in grammar.loops:
        return False
    head = [child for child in node.named_children if child.type not in BLOCKS]
    return not head or (node.type == "for_statement" and not _has_clause(node))


def _has_clause(loop: Node) -> bool:
    """Whether a ``for`` goes through items, or counts and says when it ends: ``for x < 3 {`` of Go does not."""
    inner = {child.type: child for child in loop.named_children}
    head = inner.get("for_clause", loop)
    counts = head is not loop or any(loop.child_by_field_name(name) is not None for name in ("update", "increment"))
    return "range_clause" in inner or (counts and head.child_by_field_name("condition") is not None)


def _branches(node: Node, source: bytes, grammar: PartGrammar) -> Iterator[_Part]:
    """The branches of a condition: the first one, and the other, if there is one."""
    condition = node.child_by_field_name("condition")
    if condition is None or grammar.binds(condition):
        return
    text = _text(condition, source)
    line = node.start_point[0] + 1
    then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    if then is None or (other is None and _is_no_part(text, then, source, grammar)):
        return
    shown = " ".join(text.split())[:MAX_SHOWN]
    start, end = condition.start_byte, condition.end_byte
    yield _Part(f"line {line}: if {shown}", start, end, _joined(condition, source, b"&& false"))
    if other is not None:
        yield _Part(f"line {line}: else", start, end, _joined(condition, source, b"|| true"))


def _is_no_part(condition: str, branch: Node, source: bytes, grammar: PartGrammar) -> bool:
    """Whether a branch only hands on the error that a condition asks for, or only writes into a log."""
    inner = statements_of(branch)
    last = _text(inner[-1], source) if inner else ""
    if not grammar.passes_on(condition):
        return _only_logs(branch, source)
    return not inner or bool(grammar.hands_on(last)) or (_only_logs(branch, source) and not last.startswith("panic("))


def _case(node: Node, source: bytes, grammar: PartGrammar) -> Iterator[_Part]:
    """A case of a choice that may be missing; the first and the last one of its values, and all but one of many."""
    others = [each for each in node.parent.named_children if each != node] if node.parent is not None else []
    if _is_for_else(node, source):
        return
    if node.type in grammar.exhaustive and not any(_is_for_else(each, source) for each in others):
        yield from _arm(node, source, grammar)
        return
    line, head = node.start_point[0] + 1, node.named_children[0]
    shown = " ".join(_text(head, source).split()).removeprefix("case ")[:MAX_SHOWN]
    has_body = len(node.named_children) > 1
    yield _Part(f"line {line}: case {shown}", node.start_byte, node.end_byte, b"", is_operand=not has_body)
    values = _values(head, grammar)
    if len(values) >= MANY_VALUES:
        what = f"line {line}: all values but {_text(values[0], source)[:MAX_SHOWN]}"
        are_literals = all(_LITERAL.match(_text(value, source)) for value in values)
        yield _Part(what, values[0].end_byte, values[-1].end_byte, b"", is_essential=are_literals)
    if len(values) > 1:
        for value, start, end in (
            (values[0], values[0].start_byte, values[1].start_byte),
            (values[-1], values[-2].end_byte, values[-1].end_byte),
        ):
            yield _Part(f"line {line}: {_text(value, source)[:MAX_SHOWN]}", start, end, b"", is_operand=True)


def _arm(node: Node, source: bytes, grammar: PartGrammar) -> Iterator[_Part]:
    """A case of a choice that must have all of its cases: what it gives, but for an error that is handed on."""
    pattern, value = node.child_by_field_name("pattern"), node.child_by_field_name("value")
    text = _text(value, source) if value is not None else ""
    shown = " ".join(_text(pattern, source).split()) if pattern is not None else ""
    hands_on = shown.startswith("Err(") and "Err(" in text
    if value is None or not grammar.failing_arm or hands_on or _FAILS.match(text):
        return
    what = f"line {node.start_point[0] + 1}: case {shown[:MAX_SHOWN]}"
    yield _Part(what, value.start_byte, value.end_byte, grammar.failing_arm % text.encode(), fails=True)


def _is_for_else(case: Node, source: bytes) -> bool:
    """Whether a case is for all that no other one is for."""
    head = _text(case.named_children[0], source) if case.named_children else ""
    is_any = case.type == "match_arm" and _ANY.fullmatch(head) is not None
    return is_any or "default" in case.type or head == "default"


def _values(node: Node, grammar: PartGrammar) -> list[Node]:
    """The values in the head of a case."""
    if node.type not in grammar.values:
        inner = node.named_children
        return _values(inner[0], grammar) if len(inner) == 1 and inner[0].type in grammar.values else [node]
    nested = [_values(each, grammar) if each.type == node.type else [each] for each in node.named_children]
    return [value for listed in nested for value in listed]


def _joined(condition: Node, source: bytes, rest: bytes) -> bytes:
    text = source[condition.start_byte : condition.end_byte]
    if condition.type == "parenthesized_expression":
        return b"(" + text + b" " + rest + b")"
    return b"(" + text + b") " + rest


def _operands(node: Node, source: bytes, grammar: PartGrammar) -> Iterator[_Part]:
    """The operands of ``&&``, ``||`` or ``??``, but for those that are joined by the same operator themselves."""
    operator, sides = _operator(node), (node.child_by_field_name("left"), node.child_by_field_name("right"))
    left, right = sides
    if operator not in grammar.joining or left is None or right is None or grammar.passes_on(_text(node, source)):
        return
    neutral = b"|| true" if operator == "&&" else b"&& false"
    for side in (left, right):
        if _operator(side) == operator or grammar.binds(side):
            continue
        what = f"line {side.start_point[0] + 1}: {' '.join(_text(side, source).split())[:MAX_SHOWN]}"
        if not grammar.any_value:
            text = b"((" + source[side.start_byte : side.end_byte] + b") " + neutral + b")"
            yield _Part(what, side.start_byte, side.end_byte, text, is_operand=True)
        elif side == left:
            yield _Part(what, left.start_byte, right.start_byte, b"", is_operand=True)
        else:
            yield _Part(what, left.end_byte, right.end_byte, b"", is_operand=True)


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator") if node.type == "binary_expression" else None
    return operator.type if operator is not None else ""


def _rounds(node: Node, found: tuple[int, bytes] | None) -> Iterator[_Part]:
    """The rounds of a loop, or of a call that does something for each item, but for the first one."""
    if found is not None:
        place, text = found
        yield _Part(f"line {node.start_point[0] + 1}: all rounds but one", place, place, text)


def _results(node: Node, source: bytes, grammar: PartGrammar) -> Iterator[_Part]:
    """What tells apart whether a statement, or the body of a function, gives ``true`` or ``false``."""
    is_body = node.parent is not None and node.parent.type == "function_item"
    values = [each for each in node.named_children if "comment" not in each.type]
    values = values[-1:] if node.type == "block" and is_body else values
    value = values[0] if len(values) == 1 and (node.type != "block" or is_body) else None
    if value is not None and value.type == "expression_list" and len(value.named_children) == 1:
        value = value.named_children[0]
    if value is None or not _is_truth(value, grammar):
        return
    text = source[value.start_byte : value.end_byte]
    for result, rest in ((b"true", b" || true"), (b"false", b" && false")):
        what = f"line {value.start_point[0] + 1}: all but {result.decode()}"
        yield _Part(what, value.start_byte, value.end_byte, b"(" + text + b")" + rest)


def _is_truth(value: Node, grammar: PartGrammar) -> bool:
    """Whether an expression is ``true`` or ``false``, and nothing else."""
    operator = value.child_by_field_name("operator")
    sides = [value.child_by_field_name(name) for name in ("left", "right")]
    if value.type == "parenthesized_expression":
        return len(value.named_children) == 1 and _is_truth(value.named_children[0], grammar)
    if value.type == "unary_expression":
        return value.children[0].type == "!" and (not grammar.has_tail or _is_truth(value.children[-1], grammar))
    if value.type != "binary_expression" or operator is None:
        return value.type == "instanceof_expression"
    if operator.type in {"&&", "||"}:
        return not grammar.any_value or all(side is not None and _is_truth(side, grammar) for side in sides)
    return operator.type in _COMPARISONS


def _kind_of_error(node: Node, source: bytes) -> Iterator[_Part]:
    """The kind of an error: ``throw new RangeError()``."""
    created = node.named_children[0] if node.named_children else node
    named = created.child_by_field_name("constructor") if created.type == "new_expression" else None
    if named is not None and named.type == "identifier" and _ERROR.fullmatch(_text(named, source)):
        what = f"line {node.start_point[0] + 1}: {_text(named, source)}"
        yield _Part(what, named.start_byte, named.end_byte, b"Error")


def _arguments(root: Node, source: bytes, lines: frozenset[int], functions: list[Symbol]) -> Iterator[_Part]:
    """All that a function does with its first argument, which it returns as it is."""
    for function in functions:
        if not lines.issuperset(range(function.start_line, function.end_line + 1)):
            continue
        node = root.descendant_for_byte_range(function.start, function.end - 1)
        pending, found = [node] if node is not None else [], None
        while pending and found is None:  # a symbol may be a whole declaration
            each = pending.pop()
            found = each if _is_function(each) else None
            pending += reversed(each.named_children)
        body = found.child_by_field_name("body") if found is not None else None
        if found is None or body is None or body.type != "statement_block" or not _returns_value(body):
            continue
        name = _first_parameter(found, source)
        done = [_text(each, source) for each in body.named_children if "comment" not in each.type]
        if name and any(text.rstrip("; ") != f"return {name}" for text in done):
            place = body.start_byte + 1
            what = f"line {found.start_point[0] + 1}: all but {name}"
            yield _Part(what, place, place, f" return {name};".encode())


def _conversions(root: Node, source: bytes, lines: frozenset[int]) -> Iterator[_Part]:
    """Calls that are arguments of others, in whose place what they are given may stand."""
    pending = [root]
    while pending:
        node = pending.pop()
        pending += reversed(node.named_children)
        is_argument = node.type in _CALLS and node.parent is not None and node.parent.type in _ARGUMENTS
        arguments, function = node.child_by_field_name("arguments"), node.child_by_field_name("function") or node
        own = range(node.start_point[0] + 1, node.end_point[0] + 2)
        if not is_argument or arguments is None or not lines.issuperset(own):
            continue
        if _AS_IT_IS.search(source[node.start_byte : arguments.start_byte].decode(errors="replace")):
            continue
        fields = [function.child_by_field_name(name) for name in ("object", "operand", "value")]
        values = arguments.named_children or [each for each in fields if each is not None]
        if len(values) == 1 and "spread" not in values[0].type:
            shown = " ".join(_text(node, source).split())[:MAX_SHOWN]
            what = f"line {node.start_point[0] + 1}: {shown}"
            yield _Part(what, node.start_byte, node.end_byte, _text(values[0], source).encode())


def _is_function(node: Node) -> bool:
    return any(node.child_by_field_name(name) is not None for name in ("parameters", "parameter"))


def _first_parameter(function: Node, source: bytes) -> str:
    """The name of a function's first parameter; empty if it has none, or takes it apart."""
    first, listed = function.child_by_field_name("parameter"), function.child_by_field_name("parameters")
    if listed is not None:
        first = next((child for child in listed.named_children if "comment" not in child.type), None)
    if first is not None and first.type == "assignment_pattern":
        first = first.child_by_field_name("left")
    return _text(first, source) if first is not None and first.type == "identifier" else ""


def _returns_value(body: Node) -> bool:
    """Whether a function returns a value, and yields none."""
    pending, is_found = list(body.named_children), False
    while pending:
        node = pending.pop()
        if node.type == "yield_expression":
            return False
        is_found |= node.type == "return_statement" and bool(node.named_children)
        pending += [] if _is_function(node) else node.named_children
    return is_found


def _may_go(node: Node, source: bytes, grammar: PartGrammar) -> bool:
    inner = grammar.statements[node.type]
    first = node.named_children[0] if node.named_children else None
    if node.parent is None or node.parent.type not in BLOCKS:
        return False  # the head of a loop, or a branch without braces
    if len(node.parent.named_children) == 1 and _is_only_branch(node.parent, grammar):
        return False
    is_other = bool(inner) and (first is None or first.type not in inner)
    return not (is_other or _is_said(node, source) or grammar.keeps(node, source))


def _is_only_branch(block: Node, grammar: PartGrammar) -> bool:
    """Whether a block is what a condition without another branch decides, which is a part itself."""
    around = block.parent.parent if block.type == "statement_list" and block.parent is not None else block.parent
    return (
        around is not None and around.type in grammar.conditions and around.child_by_field_name("alternative") is None
    )


def _is_said(node: Node, source: bytes) -> bool:
    """Whether a statement only writes into a log, or checks what right code is sure of."""
    return _SAID.match(_text(node, source)) is not None


def _only_logs(block: Node, source: bytes) -> bool:
    """Whether there is nothing in a block but statements for a log."""
    inner = statements_of(block)
    return bool(inner) and all(child.type.endswith("statement") and _is_said(child, source) for child in inner)


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")
