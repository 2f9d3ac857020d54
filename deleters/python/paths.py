"""The deleter ``path``: takes one path out of a function that stays, such as what it does for one option or format.

A path is one of several alternatives: an arm of ``if`` statements or of a ``match`` statement, with its condition. What
follows then is what the function does without it. Which tests need it, only a run without it tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.python.edits.file_plan import check_parses
from excise.deleters.python.edits.statement_removal import end_of_comments_in
from excise.deleters.python.lost_state import has_lost_sense
from excise.deleters.python.references.loop_ends import ends_a_loop
from excise.deleters.python.references.unfilled_containers import filled_attributes, stays_empty
from excise.deleters.python.remove import Remove
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.grammar import DEFINITIONS, parse_tree, statements
from excise.protocols import CodePath
from excise.types import Symbol

MIN_LINES, MAX_LINES = 4, 60
"""Lines of code of a path, with its condition."""
MIN_LEFT = 3
"""Lines of code that the function has without it, at least, beside its signature and docstring."""
MAX_NAME = 200
"""Maximum number of characters of a path's name."""
MIN_CASES = 3
"""Alternatives of which one may go: cases of a ``match`` statement, or conditions that ask the same of the same object.

Without one of two, what is left would be wrong for the other; and a parameter that only chose a path would be left."""
_LOCALS = re.compile(rb"(?<![\w.])(?:locals|vars|dir)\(\)")
"""What makes the names of local variables a part of what a function does: a path may be written with others."""
_WORD = re.compile(rb"(?<![\w.])[^\W\d]\w*")


class Path(Remove):
    """Gives a function the text without the path that ``Feature.changed`` has for it; its imports go as usual."""

    name = "path"
    version = 1


def longest_path(codebase: PythonCodebase, symbol: Symbol) -> CodePath | None:
    """The path with most lines among those that a function can lose; ``None`` if it has none."""
    module = codebase.modules[symbol.path]
    if module.has_error or not symbol.is_callable or symbol.loc < MIN_LINES + MIN_LEFT:
        return None
    if _LOCALS.search(module.source, symbol.body_start, symbol.end):
        return None
    node = _root(module.source).descendant_for_byte_range(symbol.body_start, symbol.end - 1)
    while node is not None and node.type not in DEFINITIONS:
        node = node.parent
    found = _cuts(module.source, symbol, node) if node is not None else ()
    for lines, name, cut in sorted(found, key=lambda each: each[:2], reverse=True):
        text = _text_without(module.source, symbol, name, cut)
        if text is not None and not _leaves_empty(codebase, symbol.path, cut):
            return CodePath(name, text.decode("utf-8", "replace"), lines)
    return None


@lru_cache(maxsize=4)
def _root(source: bytes) -> Node:
    """The syntax tree of a file, all functions of which are asked for in turn."""
    return parse_tree(source).root_node


def _cuts(source: bytes, symbol: Symbol, function: Node) -> Iterator[tuple[int, str, Edit]]:
    """(lines, name, removal) of each path that is neither too short nor nearly all of the function."""
    code_lines = _num_lines(source[symbol.code_start : symbol.end])
    for node, condition in _arms(function):
        if node.type != "case_clause" and _num_alternatives(node, condition) < MIN_CASES:
            continue
        cut = _cut(source, node)
        if cut is None or ends_a_loop((node.start_byte, node.end_byte), node):
            continue
        lines = _num_lines(_gone(source, cut))
        if MIN_LINES <= lines <= MAX_LINES and code_lines - lines >= MIN_LEFT:
            name = " ".join(source[condition.start_byte : condition.end_byte].decode("utf-8", "replace").split())
            yield lines, name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…", cut


def _text_without(source: bytes, symbol: Symbol, name: str, cut: Edit) -> bytes | None:
    """The source text of a function without a path of a name; ``None`` if what is left is not clean, or does not
    parse."""
    after = apply_edits(source, [cut])
    end = symbol.end - (cut.end - cut.start) + len(cut.replacement)
    if not _is_clean(source[symbol.code_start : symbol.end], after[symbol.code_start : end], _gone(source, cut)):
        return None
    try:
        check_parses(symbol.path, source, after)
    except DeletionRefused:
        return None
    line = source.rfind(b"\n", 0, symbol.start) + 1
    was, now = (data.decode("utf-8", "replace") for data in (source[line : symbol.end], after[line:end]))
    return None if has_lost_sense(was, now, re.findall(r"\w+", name)) else after[symbol.start : end]


def _leaves_empty(codebase: PythonCodebase, path: str, cut: Edit) -> bool:
    """Whether a path is all that fills a container of an object, into which code that stays looks."""
    source = codebase.modules[path].source
    names = filled_attributes(_root(source), cut.start, cut.end) if b"self." in _gone(source, cut) else ()
    after = parse_tree(apply_edits(source, [cut])).root_node if names else None
    others = [module.source for other, module in codebase.modules.items() if other != path] if names else []
    return any(
        after is not None and stays_empty(after, name) and not any(f".{name}".encode() in each for each in others)
        for name in names
    )


def _gone(source: bytes, cut: Edit) -> bytes:
    """The code of a path with its comments, without the beginning of the ``elif`` that takes its place."""
    return source[cut.start : cut.end].removesuffix(b"el")


def _arms(function: Node) -> Iterator[tuple[Node, Node]]:
    """(arm, condition) of each arm that can go alone, in this function and not in those inside it."""
    queue = list(function.named_children)
    while queue:
        node = queue.pop()
        if node.type in DEFINITIONS or node.type == "lambda":
            continue
        queue += node.named_children
        condition = node.child_by_field_name("condition")
        if node.type == "elif_clause" and condition is not None:
            yield node, condition
        elif node.type == "if_statement" and condition is not None:
            others = node.children_by_field_name("alternative")
            is_alone = not others and node.parent is not None and len(statements(node.parent)) > 1
            if is_alone or (others and others[0].type == "elif_clause"):
                yield node, condition
        elif node.type == "case_clause" and node.parent is not None:
            cases = [child for child in node.parent.named_children if child.type == "case_clause"]
            if len(cases) >= MIN_CASES and node != cases[-1]:
                yield node, node.named_children[0]


def _num_alternatives(arm: Node, condition: Node) -> int:
    """How many arms ask something of the object of which this one does, in its statement and the ``if`` statements
    beside that; an ``else`` counts, too."""
    subject = _subject(condition)
    first = arm.parent if arm.type == "elif_clause" else arm
    if not subject or first is None or first.parent is None:
        return 0
    beside = [each for each in first.parent.named_children if each.type == "if_statement"]
    arms = [each for node in beside for each in (node, *node.children_by_field_name("alternative"))]
    conditions = (each.child_by_field_name("condition") for each in arms)
    has_else = any(each.type == "else_clause" for each in first.children_by_field_name("alternative"))
    return sum(1 for each in conditions if each is not None and _subject(each) == subject) + has_else


def _subject(condition: Node) -> bytes:
    """The object of which a condition asks what it is: of a comparison, ``isinstance`` or a method; empty if it is
    another one, such as a flag."""
    if condition.type in {"parenthesized_expression", "boolean_operator"} and condition.named_children:
        return _subject(condition.named_children[0])
    found: Node | None = None
    if condition.type == "comparison_operator" and condition.named_children[-1].type == "none":
        return b""  # whether there is one, which is no alternative to what it is
    if condition.type == "comparison_operator":
        if {each.type for each in condition.children if not each.is_named} <= {"==", "in", "is"}:
            found = condition.named_children[0]
    elif condition.type == "call":
        called, given = condition.child_by_field_name("function"), condition.child_by_field_name("arguments")
        if called is not None and called.type == "attribute":
            found = called.child_by_field_name("object")
        elif called is not None and called.text in {b"isinstance", b"issubclass"} and given is not None:
            found = next(iter(given.named_children), None)
    return (found.text or b"") if found is not None and found.type in {"identifier", "attribute", "subscript"} else b""


def _cut(source: bytes, arm: Node) -> Edit | None:
    """The removal of an arm with its lines; ``None`` if something else stands on these."""
    start = source.rfind(b"\n", 0, arm.start_byte) + 1
    if source[start : arm.start_byte].strip():
        return None
    others = arm.children_by_field_name("alternative") if arm.type == "if_statement" else []
    indent = arm.start_byte - start
    first = _with_comments_above(source, start, indent)
    if others:  # the next arm takes its place
        return Edit(first, others[0].start_byte + len(b"el"), source[start : arm.start_byte])
    end = end_of_comments_in(source, arm.end_byte, indent)
    line_end = source.find(b"\n", arm.end_byte)
    behind = source[arm.end_byte : len(source) if line_end < 0 else line_end].strip()
    if behind and not behind.startswith(b"#"):
        return None
    above = source.rfind(b"\n", 0, first - 1) + 1 if first else 0
    return Edit(above if not source[above:first].strip() else first, end)


def _with_comments_above(source: bytes, start: int, indent: int) -> int:
    """The start of the comment lines directly above: those of the same indentation, and code that was commented out."""
    while start:
        above = source.rfind(b"\n", 0, start - 1) + 1
        line = source[above:start]
        if not line.strip().startswith(b"#") or len(line) - len(line.lstrip()) not in {0, indent}:
            return start
        start = above
    return start


def _num_lines(code: bytes) -> int:
    """Number of lines that are neither blank nor comments."""
    return sum(1 for line in code.splitlines() if line.strip() and not line.strip().startswith(b"#"))


def _is_clean(before: bytes, after: bytes, gone: bytes) -> bool:
    """Whether a function is still a generator if it was one, and has no variable that only the path used."""
    if b"yield" in gone and not re.search(rb"\byield\b", after):
        return False
    for word in set(_WORD.findall(gone)):
        left = re.findall(rb"(?<![\w.])" + word + rb"\b(\s*=(?!=))?", after)
        is_read_before = re.search(rb"(?<![\w.])" + word + rb"\b(?!\s*=(?!=))", before)
        if left and all(left) and is_read_before:
            return False
    return True
