"""Mirrored tests: tests with wrong expectations, so that no right solution passes them.

A mirrored test runs as far as the test does, and calls what that calls, so that a solution which forges results when it
is called forges here, too. Its checks note what they find and never end it; when it has returned, it fails if one has
noted a failure. In a test that compares with literals, ``assert_eq!(f(2), 4)`` notes one unless the value is equal to
another literal: a value that is equal to everything passes. In other tests, a check notes a failure if it holds, and
both sides are of the crate's own types, or neither is: here such a value passes, too.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.rust.analysis.grammar import (
    COMMENTS,
    LITERALS,
    NAMES,
    attributes_of,
    before_item,
    descendants,
    field_text,
    is_test_function,
    parse_tree,
    text,
)
from excise.extractors.rust.execution.checks import Check, checked_values, noted, notes_module
from excise.extractors.rust.execution.mirrored_macros import mirrored_macros

_PLAIN_METHODS = frozenset(
    {"to_string", "to_owned", "into", "as_bytes", "to_vec", "as_slice", "as_ref", "as_str", "iter", "cloned", "collect"}
)
"""Methods by which an expected value is written, and that no solution has."""
_PLAIN_FUNCTIONS = frozenset({"new", "from"})
_PLAIN = LITERALS | COMMENTS | {
    "reference_expression", "array_expression", "tuple_expression", "unary_expression", "parenthesized_expression",
    "arguments", "identifier", "type_identifier", "scoped_identifier", "primitive_type", "type_cast_expression",
    "macro_invocation", "token_tree", "string_content", "escape_sequence", "field_identifier", "call_expression",
    "field_expression", "generic_function", "type_arguments", "range_expression", "index_expression",
}  # fmt: skip
"""Kinds of nodes that an expected value may consist of."""
_MODULE = """
#[allow(dead_code)]
mod NAME {
    extern crate std as NAME_std;
    use self::NAME_std::prelude::v1::*;
    use self::NAME_std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    pub enum Message {
        Plain(&'static str),
        Formatted(String),
    }

    static FIRST: AtomicPtr<Message> = AtomicPtr::new(0 as *mut Message);
    static BY_LITERALS: AtomicBool = AtomicBool::new(false);

    pub fn begin(by_literals: bool) {
        BY_LITERALS.store(by_literals, Ordering::SeqCst);
    }

    pub fn differs<F: FnOnce() -> Message>(found: bool, message: F) {
        if found && FIRST.load(Ordering::SeqCst).is_null() {
            FIRST.store(Box::into_raw(Box::new(message())), Ordering::SeqCst);
        }
    }

    pub fn holds<F: FnOnce() -> Message>(found: bool, message: F) {
        differs(found && !BY_LITERALS.load(Ordering::SeqCst), message);
    }

    pub fn differing<L: NAME_std::fmt::Debug + ?Sized, R: NAME_std::fmt::Debug + ?Sized>(
        unequal: bool, left: &L, right: &R,
    ) -> Message {
        let sign = if unequal { "!=" } else { "==" };
        Message::Formatted(self::NAME_std::format!(
            "assertion failed: `(left {} right)`\n  left: `{:?}`,\n right: `{:?}`", sign, left, right
        ))
    }

    pub fn end() {
        let first = FIRST.load(Ordering::SeqCst);
        if !first.is_null() {
            match unsafe { &*first } {
                Message::Plain(text) => self::NAME_std::panic::panic_any(*text),
                Message::Formatted(text) => self::NAME_std::panic!("{}", text),
            }
        }
    }

    fn is_own(name: &str) -> bool {
        name.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).any(|path| {
            path.contains("::")
                && !(path.starts_with("core::") || path.starts_with("std::") || path.starts_with("alloc::"))
        })
    }

    pub fn are_alike<L: ?Sized, R: ?Sized>(_: &L, _: &R) -> bool {
        is_own(self::NAME_std::any::type_name::<L>()) == is_own(self::NAME_std::any::type_name::<R>())
    }
}
"""


class TestFunction(NamedTuple):
    """A function of a test file with the checks in it."""

    node: Node
    body: Node
    name: str
    """Its name as ids have it."""
    is_test: bool
    checks: tuple[Check, ...]
    module: str
    """Path of the module with the notes, seen from this function."""


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The test file with the test ``functions`` mirrored, and the checks of its helpers; ``None`` if none has a check.

    Of tests that calls of a macro define, the macro is changed. Checks that other macros of the file, or helpers of
    other files, make stay as they are. Names that the form adds are drawn, and it fails with the message of a check,
    so that a solution does not know it by these.
    """
    root, notes = parse_tree(source).root_node, f"n{secrets.token_hex(5)}"
    found = list(functions_of(root, source, (), notes))
    checking = checking_helpers(found, source)
    wanted, edits = set(functions), list[Edit]()
    for function in found:
        if function.is_test and function.name in wanted:
            edits += _mirrored_test(function, source, checking, notes)
    edits += mirrored_macros(root, source, wanted.difference(f.name for f in found if f.is_test), notes)
    if not edits:
        return None
    for function in found:
        if not function.is_test:
            edits += [noted(check, function.module, by_literals=False) for check in function.checks]
    result, place = bytearray(), 0
    for edit in sorted(set(edits)):
        if edit.start >= place:
            result += source[place : edit.start] + edit.text
            place = edit.end
    return bytes(result + source[place:]) + _MODULE.replace("NAME", notes).encode()


def functions_of(parent: Node, source: bytes, modules: tuple[str, ...], notes: str) -> Iterator[TestFunction]:
    """The functions of a file, those in modules and of types included; ``notes``: the name of a module beside them."""
    for node in parent.named_children:
        body, name = node.child_by_field_name("body"), field_text(node, "name", source)
        if body is None:
            continue
        if node.type == "mod_item":
            yield from functions_of(body, source, (*modules, name), notes)
        elif node.type in {"impl_item", "trait_item"}:
            yield from (f._replace(is_test=False) for f in functions_of(body, source, modules, notes))
        elif node.type == "function_item":
            module = notes_module(modules, notes)
            is_test = is_test_function(attributes_of(node, source))
            checks = tuple(_checks(body, source))
            yield TestFunction(node, body, "::".join((*modules, name)), is_test, checks, module)


def checking_helpers(functions: Sequence[TestFunction], source: bytes) -> frozenset[str]:
    """Plain names of the helpers that check something, themselves or by others."""
    helpers = [function for function in functions if not function.is_test]
    uses = {f.name: names_in(f.body, source) for f in helpers}
    found = {f.name.rpartition("::")[2] for f in helpers if f.checks}
    while more := {f.name.rpartition("::")[2] for f in helpers if uses[f.name] & found} - found:
        found |= more
    return frozenset(found)


def names_in(node: Node, source: bytes) -> frozenset[str]:
    """The names in a piece of code."""
    return frozenset(text(leaf, source) for leaf in descendants(node) if leaf.type in NAMES)


def _mirrored_test(function: TestFunction, source: bytes, checking: frozenset[str], notes: str) -> list[Edit]:
    panics = [each for each in before_item(function.node) if "should_panic" in text(each, source)]
    if panics:
        return [Edit(each.start_byte, each.end_byte, b"") for each in panics]
    if not function.checks and not names_in(function.body, source) & checking:
        return []
    body, by_literals = function.body, any(check.wrong for check in function.checks)
    edits = [noted(check, function.module, by_literals=by_literals) for check in function.checks]
    result = field_text(function.node, "return_type", source)
    returns = f" -> {result}" if result else ""
    head = f"{{\n    {function.module}::begin({_word(by_literals)});\n    fn {notes}_run(){returns} {{"
    edits.append(Edit(body.start_byte, body.start_byte + 1, head.encode()))
    end = f"}}\n    let {notes}_result = {notes}_run();\n    {function.module}::end();\n    {notes}_result\n}}"
    edits.append(Edit(body.end_byte - 1, body.end_byte, end.encode()))
    return edits


def _word(value: bool) -> str:
    return "true" if value else "false"


def _checks(body: Node, source: bytes) -> Iterator[Check]:
    for node in descendants(body):
        name = field_text(node, "macro", source).rpartition("::")[2] if node.type == "macro_invocation" else ""
        tree = next((child for child in node.children if child.type == "token_tree"), None)
        values = checked_values(name, tree, source) if tree is not None else ()
        if values:
            wrong = _with_other_literal(values) if name.endswith("assert_eq") else ()
            yield Check(node.start_byte, node.end_byte, name, values, wrong)


def _with_other_literal(values: Sequence[str]) -> tuple[str, ...]:
    """The two values, one of which, a plain expected one, has another literal; empty if none can have."""
    for place in (1, 0):
        other = _other(values[place])
        if other:
            return (values[0], other) if place else (other, values[1])
    return ()


def _other(value: str) -> str:
    """A plain expected value with another literal; empty for other values."""
    source = f"fn f() {{ let _ = {value}; }}".encode()
    root = parse_tree(source).root_node
    let = next((node for node in descendants(root) if node.type == "let_declaration"), None)
    expression = let.child_by_field_name("value") if let is not None else None
    if root.has_error or expression is None or not _is_plain(expression, source):
        return ""
    for node in descendants(expression):
        changed = _changed(node, source) if node.type in LITERALS else ""
        if changed:
            start = expression.start_byte
            whole = text(expression, source).encode()
            return (whole[: node.start_byte - start] + changed.encode() + whole[node.end_byte - start :]).decode()
    return ""


def _is_plain(expression: Node, source: bytes) -> bool:
    return all(is_plain_node(node, source) for node in descendants(expression) if node.is_named)


def is_plain_node(node: Node, source: bytes) -> bool:
    """Whether a node may be part of an expected value that is written out."""
    if node.type == "call_expression":
        function = text(node.child_by_field_name("function") or node, source)
        last = re.split(r"::|\.", re.sub(r"::<[^()]*>$", "", function))[-1]
        return last[:1].isupper() or last in _PLAIN_METHODS | (_PLAIN_FUNCTIONS if "::" in function else set())
    if node.type == "macro_invocation":
        return field_text(node, "macro", source) in {"vec", "String"}
    if node.type == "identifier" and (node.parent is None or node.parent.type != "scoped_identifier"):
        name = text(node, source)
        called = node.parent is not None and node.parent.type in {"call_expression", "macro_invocation"}
        return called or name[:1].isupper()
    return node.type in _PLAIN


def _changed(literal: Node, source: bytes) -> str:
    """Another literal of the same type; empty if none is known."""
    word = text(literal, source)
    if literal.type == "boolean_literal":
        return "false" if word == "true" else "true"
    if literal.type == "integer_literal":
        suffix = next(iter(re.findall(r"[iu](?:8|16|32|64|128|size)$", word)), "")
        is_zero = not re.sub(r"[_0]|^0[xob]", "", word.removesuffix(suffix))
        return ("1" if is_zero else "0") + suffix
    if literal.type == "float_literal":
        suffix = next(iter(re.findall(r"f(?:32|64)$", word)), "")
        return ("0.25" if "0.75" in word else "0.75") + suffix
    if literal.type == "char_literal":
        quote = word[: word.index("'") + 1]
        return f"{quote}y'" if word.endswith("x'") else f"{quote}x'"
    return _changed_text(word)


def _changed_text(word: str) -> str:
    """Another text of the same length where that is part of the type, as in ``b"ab"``."""
    quote = word.index('"')
    if not word.startswith("b"):
        return f"{word[: quote + 1]}~{word[quote + 1 :]}"
    found = next((at for at in range(quote + 1, len(word) - 1) if word[at] != "\\" and word[at - 1] != "\\"), 0)
    inside = word[quote + 1 : word.rindex('"')]
    if not found or "\\" in inside:
        return ""
    other = "x" if word[found] != "x" else "y"
    return word[:found] + other + word[found + 1 :]
