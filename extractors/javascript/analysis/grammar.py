"""The tree-sitter grammars of JavaScript and TypeScript, and functions on its nodes that several modules use."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser, Tree

FUNCTIONS = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
    }
)
"""Nodes that are functions."""
DECLARED = frozenset({"function_declaration", "generator_function_declaration"})
"""Function nodes that are statements."""
VARIABLES = frozenset({"lexical_declaration", "variable_declaration"})
"""Statements that declare variables."""
WRAPPERS = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"})
"""Nodes that only surround another: the first in them."""
CLASSES = frozenset({"class_declaration", "class", "abstract_class_declaration"})
"""Nodes that are classes."""
TYPES = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
"""Statements that declare types."""
TYPED = (".ts", ".tsx", ".mts", ".cts")
"""Suffixes of files in TypeScript."""


@cache
def _languages() -> tuple[Language, ...]:
    return (
        Language(tree_sitter_javascript.language()),
        Language(tree_sitter_typescript.language_typescript()),
        Language(tree_sitter_typescript.language_tsx()),
    )


def parse_tree(source: bytes) -> Tree:
    """The syntax tree, by the first grammar without errors of JavaScript, TypeScript, and TypeScript with JSX.

    What two of them accept has the same nodes in both. Never raises: syntax errors are nodes of the tree, which is then
    that of the grammar with the fewest of them in bytes.
    """
    trees = []
    for language in _languages():
        tree = Parser(language).parse(source)
        if not tree.root_node.has_error:
            return tree
        trees.append(tree)
    return min(trees, key=lambda tree: sum(node.end_byte - node.start_byte for node in _errors(tree.root_node)))


def _errors(root: Node) -> Iterator[Node]:
    queue = [root]
    while queue:
        node = queue.pop()
        if node.type == "ERROR":
            yield node
        elif node.has_error:
            queue += node.children


def text(node: Node, source: bytes) -> str:
    """Source text of a node; bytes that are not UTF-8 become replacement characters."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def children(node: Node) -> list[Node]:
    """The named children of a node without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def descendants(node: Node) -> Iterator[Node]:
    """The node and all named nodes below it, each before its children."""
    queue = [node]
    while queue:
        current = queue.pop()
        yield current
        queue += reversed(current.named_children)


def unwrapped(node: Node) -> Node:
    """The expression inside parentheses or assertions of types; other nodes unchanged."""
    while node.type in WRAPPERS and node.named_child_count:
        node = node.named_children[0]
    return node


def chain_of(node: Node, source: bytes) -> tuple[str, ...]:
    """The names of ``a.b.c`` or ``this.b``; empty for anything else."""
    parts: list[str] = []
    while node.type == "member_expression":
        last = node.child_by_field_name("property")
        first = node.child_by_field_name("object")
        if first is None or last is None:
            return ()
        parts.append(text(last, source))
        node = first
    if node.type not in {"identifier", "this"}:
        return ()
    return (text(node, source), *reversed(parts))


def string_value(node: Node | None, source: bytes) -> str | None:
    """The value of a string literal without escapes, or of a template without expressions; else ``None``."""
    if node is None or node.type not in {"string", "template_string"}:
        return None
    if any(child.type == "template_substitution" for child in node.named_children):
        return None
    raw = text(node, source)[1:-1]
    return _ESCAPE.sub(_unescape, raw)


_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.|\n)", re.DOTALL)
_SINGLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "ux" and len(code) > 1:
        return chr(min(int(code[1:].strip("{}"), 16), 0x10FFFF))
    return _SINGLE.get(code, code)


def required(node: Node, source: bytes) -> str | None:
    """The module of a call ``require('module')`` or ``import('module')``; ``None`` for other nodes."""
    node = unwrapped(node)
    if node.type != "call_expression":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or text(function, source) not in {"require", "import"}:
        return None
    inner = children(arguments)
    return string_value(inner[0], source) if len(inner) == 1 else None


class Offsets:
    """Converts offsets in UTF-16 units, as V8 counts them, to offsets in bytes of the UTF-8 file."""

    def __init__(self, source: bytes) -> None:
        self._bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        self._size = len(source)
        self._bytes: list[int] = []
        self._units: list[int] = []
        if not source.isascii():
            self._index(source[self._bom :].decode("utf-8", "replace"))

    def _index(self, content: str) -> None:
        position = units = 0
        for character in content:
            size, width = len(character.encode("utf-8", "surrogatepass")), 2 if ord(character) > 0xFFFF else 1
            position, units = position + size, units + width
            if size != width:
                self._bytes.append(position)
                self._units.append(units)

    def to_byte(self, units: int) -> int:
        """The offset in bytes of an offset in UTF-16 units, at most the size of the file."""
        at = bisect_right(self._units, units) - 1
        offset = units if at < 0 else self._bytes[at] + units - self._units[at]
        return min(self._size, offset + self._bom)
