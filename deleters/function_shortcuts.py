"""Shorter ways to pass tests than to write a function again, in languages with braces: each is tried as its body.

One takes a documented parameter as the literal that every call gives it; another one is the body of the function of the
same parameters and result, beside it, whose name is most alike; others return a constant, or the first parameter, which
JavaScript's trivial programs do.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from operator import itemgetter

from tree_sitter import Node

from excise.deleters.syntax_parts import MAX_BYTES, PartGrammar
from excise.protocols import Codebase, LackingPart
from excise.types import Symbol

ALIKE = 0.5
"""Minimum similarity of two names, from 0 to 1, for the body of one to be tried in place of the other's."""
MAX_CALL = 2_000
"""Number of characters within which the arguments of a call end."""
_STRING = r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'" + r"|`[^`$]*`"
_LITERAL = re.compile(rf"{_STRING}|-?\d[\w.]*|true|false")
_TOKEN = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/|[()\[\]{{}},]", re.DOTALL)
"""What tells where an argument ends."""
_COMMENT = re.compile(rb"[ \t]*(?://|/?\*)")
"""The beginning of a line that is a comment, as a rule."""
_INTEGER = re.compile(r"u?int(?:8|16|32|64)?|[ui](?:8|16|32|64|128|size)|byte|short|long")
_TEXTS = frozenset({"string", "String", "&str", "&'static str"})
_SELF = frozenset({"self_parameter", "receiver_parameter"})
"""Parameters that stand for the object."""
_MODIFIERS = frozenset({"async", "*", "function_modifiers"})
"""What says which statements a body may have."""
_NAMED = frozenset(
    {"parameter_declaration", "formal_parameter", "parameter", "required_parameter", "optional_parameter",
     "assignment_pattern", "identifier"}
)  # fmt: skip
"""Parameters that may have one name."""


def function_shortcuts(
    codebase: Codebase, removed: Mapping[str, frozenset[int]], grammar: PartGrammar
) -> Iterator[LackingPart]:
    """Those of the functions that were ``removed`` whole (path to their lines), in the order of the source.

    Constants and parameters that are returned come last: of each function one, then of each another.
    """
    plain: list[tuple[int, LackingPart]] = []
    for path, lines in sorted(removed.items()):
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path) or len(module.source) > MAX_BYTES:
            continue
        root = grammar.parse_tree(module.source).root_node
        functions = {each: node for each in module.symbols if each.is_callable and (node := _node_of(root, each))}
        gone = [each for each in functions if lines.issuperset(range(each.start_line, each.end_line + 1))]
        for function in gone:
            others = {each: node for each, node in functions.items() if each != function}
            found = [*_constant_parameters(codebase, function, functions[function], grammar)]
            found += _bodies_beside(module.source, function, functions[function], others)
            is_compiled = not grammar.any_value or path.endswith(grammar.typed)
            for change in found:
                yield LackingPart(function.symbol_id, path, *change, is_compiled=is_compiled)
            results = [] if grammar.any_value else _plain_results(codebase, function, functions[function], grammar)
            for rank, change in enumerate(results):
                part = LackingPart(function.symbol_id, path, *change, is_compiled=True)
                plain.append((rank, part))
    yield from (part for _, part in sorted(plain, key=itemgetter(0)))


_Change = tuple[str, int, int, bytes]
"""What goes, its first byte, the byte behind it, and what stands in its place."""


def _node_of(root: Node, function: Symbol) -> Node | None:
    """The node of a function with a block; a symbol may be a whole declaration."""
    pending = [root.descendant_for_byte_range(function.start, max(function.start, function.end - 1))]
    while pending:
        node = pending.pop()
        if node is None:
            continue
        body = node.child_by_field_name("body")
        if node.child_by_field_name("parameters") is not None and body is not None:
            return node if _is_block(body) and function.start <= node.start_byte < function.end else None
        pending += reversed(node.named_children)
    return None


def _is_block(body: Node) -> bool:
    return body.type in {"block", "statement_block", "constructor_body"}


def _constant_parameters(codebase: Codebase, function: Symbol, node: Node, grammar: PartGrammar) -> Iterator[_Change]:
    """The documented parameters of a function, of which each is always given one literal; all if nothing is said."""
    body, names, said = node.child_by_field_name("body"), _parameters(node), function.docstring
    documented = [name for name in names if len(name) > 1 and re.search(rf"\b{re.escape(name)}\b", said)]
    documented = documented if said else list(filter(None, names))
    if not documented or body is None:
        return
    calls = [*_calls(codebase, function, None if grammar.any_value else len(names))]
    for name in documented:
        place = names.index(name)
        values = {call[place] if place < len(call) else "" for call in calls}
        value = next(iter(values)) if len(values) == 1 else ""
        if _LITERAL.fullmatch(value):
            declared = "let " if grammar.has_tail else ""
            at = body.start_byte + 1
            yield f"what `{name}` is, if not {value}", at, at, f" {declared}{name} = {value};".encode()


def _parameters(function: Node) -> list[str]:
    """The names of a function's parameters; empty ones for those that have none, or take several arguments."""
    listed = function.child_by_field_name("parameters")
    names: list[str] = []
    for node in listed.named_children if listed is not None else ():
        if node.type in _SELF or "comment" in node.type:
            continue
        fields = ("name", "pattern", "left")
        inner = [each for field in fields for each in node.children_by_field_name(field)] or [node]
        inner = inner if node.type in _NAMED else []
        names += [_text(each) if each.type == "identifier" else "" for each in inner] or [""]
    return names


def _calls(codebase: Codebase, function: Symbol, num_arguments: int | None) -> Iterator[list[str]]:
    """The arguments of all calls of functions of this name, if there are so many; also of those in macros."""
    name = function.name.encode()
    called = re.compile(rb"(?<![\w$])%s\s*(?:::<[^<>()]*>)?\(" % re.escape(name))
    for module in codebase.modules.values():
        if name not in module.source:
            continue
        own = (s for s in module.symbols if s.is_callable and s.name == function.name)
        heads = sorted((s.start, s.body_start) for s in own)
        source, line, seen = module.source, 0, 0
        for found in called.finditer(source):
            start, end = found.span()
            line, seen = max(line, source.rfind(b"\n", seen, start) + 1), start
            at = bisect(heads, (start, len(source))) - 1
            is_head = at >= 0 and start < heads[at][1]
            if is_head or _COMMENT.match(source, line, start):
                continue
            arguments = arguments_of(_decoded(source[end : end + MAX_CALL]))
            if num_arguments in {None, len(arguments)}:
                yield arguments


def arguments_of(text: str) -> list[str]:
    """The arguments that a text begins with, behind the parenthesis that opens."""
    depth, start = 0, 0
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        is_end = token[0] in {")", "]", "}"}
        if not depth and (is_end or token[0] == ","):
            found.append(text[start : token.start()].strip())
            start = token.end()
        if is_end and not depth:
            break
        depth += (token[0] in {"(", "[", "{"}) - is_end
    return found[:-1] if found and not found[-1] else found


def _bodies_beside(source: bytes, function: Symbol, node: Node, others: Mapping[Symbol, Node]) -> Iterator[_Change]:
    """The body of the function whose name is most alike, of the others with the same parameters and result.

    None of one that does the same: its own body is equal, or calls that function.
    """
    own = node.child_by_field_name("body")
    alike = {
        each.name: other
        for each, other in others.items()
        if each.holder_id == function.holder_id and _shape(other) == _shape(node)
    }
    for name in get_close_matches(function.name, sorted(alike), n=1, cutoff=ALIKE):
        body = alike[name].child_by_field_name("body")
        if own is None or body is None or re.search(rf"\b{re.escape(function.name)}\b", _text(body)):
            continue
        if _text(own).split() == _text(body).split() or re.search(rf"\b{re.escape(name)}\s*\(", _text(own)):
            continue
        text = source[body.start_byte : body.end_byte]
        yield f"all that `{name}` does not do", own.start_byte, own.end_byte, text


def _plain_results(codebase: Codebase, function: Symbol, node: Node, grammar: PartGrammar) -> Iterator[_Change]:
    """The first parameter of a function if that has its type, and constants of this type, returned before all else."""
    body = node.child_by_field_name("body")
    kind = next((_type_of(node, field) for field in ("result", "return_type", "type") if _type_of(node, field)), "")
    constants = _constants(codebase, function, kind, grammar)
    if body is None or not constants:
        return
    first = next(iter(_parameters(node)), "")
    listed = node.child_by_field_name("parameters")
    given = [each for each in listed.named_children if each.type in _NAMED] if listed is not None else []
    is_alike = first and given and _type_of(given[0], "type") == kind
    test, at = "(true)" if grammar.parentheses else "true", body.start_byte + 1
    for value in ([first] if is_alike else []) + constants:
        if re.fullmatch(rf"\{{\s*(?:return\s+)?{re.escape(value)}\s*;?\s*\}}", _text(body)) is None:
            yield f"all but `return {value}`", at, at, f" if {test} {{ return {value}; }}".encode()


def _constants(codebase: Codebase, function: Symbol, kind: str, grammar: PartGrammar) -> list[str]:
    """The constants of a type, with that truth first which the tests that name a function write more often."""
    if _INTEGER.fullmatch(kind):
        return ["1", "0"]
    if kind in _TEXTS:
        return ["String::new()"] if grammar.has_tail and kind == "String" else ['""']
    if kind not in {"bool", "boolean"}:
        return []
    name = function.name.encode()
    texts = [module.source for path, module in codebase.modules.items() if codebase.is_test(path)]
    texts = [text for text in texts if name in text]
    counts = {truth: sum(text.count(truth.encode()) for text in texts) for truth in ("true", "false")}
    return sorted(counts, key=lambda truth: -counts[truth])


def _type_of(node: Node, field: str) -> str:
    typed = node.child_by_field_name(field)
    return "" if typed is None else " ".join(_text(typed).split())


def _shape(function: Node) -> list[str]:
    """The kind of a function, its parameters and its result."""
    fields = ("receiver", "type_parameters", "parameters", "result", "return_type", "type")
    nodes = (function.child_by_field_name(field) for field in fields)
    kinds = [function.type, *(_text(each) for each in function.children if each.type in _MODIFIERS)]
    return kinds + ["" if node is None else " ".join(_text(node).split()) for node in nodes]


def _text(node: Node) -> str:
    return _decoded(node.text or b"")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
