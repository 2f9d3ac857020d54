"""The blocks of tests in a test file, and which tests each of them defines, as far as titles tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, parse_tree, string_value, text
from excise.extractors.javascript.analysis.suite_helpers import SuiteHelper, suite_helpers
from excise.types import TestId

CALLED = frozenset({"test", "it", "describe", "suite", "context", "specify", "tape", "tap"})
"""Names of functions that define tests or blocks of them, alone or as a property: ``t.test``."""
_SUITES = frozenset({"describe", "suite", "context"})
"""Those that define blocks alone."""
_VALUES = re.compile(r"%[a-zA-Z#$%]|\$[\w.#]+")
"""Where titles of tables of tests show values."""
_ANYTHING = re.compile(r".*", re.DOTALL)
_STATEMENTS = frozenset({"expression_statement"})


@dataclass(slots=True)
class TestBlock:
    """One call that defines a test or a block of tests."""

    __test__ = False

    start: int
    """First byte of its statement."""
    end: int
    """One past its last byte."""
    title: re.Pattern[str]
    """What matches the titles of its tests, cleaned as in ids."""
    is_fixed: bool
    """Whether the title is a literal text."""
    blocks: list[TestBlock] = field(default_factory=list)
    """The blocks in it."""
    tests: set[str] = field(default_factory=set)
    """Ids of the tests that it defines itself."""

    def without_tests(self) -> TestBlock:
        """A copy to which no tests are assigned."""
        inner = [block.without_tests() for block in self.blocks]
        return TestBlock(self.start, self.end, self.title, self.is_fixed, inner)

    def every_test(self) -> frozenset[str]:
        """Ids of all tests in it."""
        return frozenset(self.tests).union(*(block.every_test() for block in self.blocks))


@dataclass(frozen=True, slots=True)
class TestFileBlocks:
    """The blocks of one file, and the tests that belong to none of them."""

    __test__ = False

    blocks: tuple[TestBlock, ...]
    """The outermost blocks."""
    others: frozenset[str]
    """Ids of tests that no block is known of: they cannot be hidden without the whole file."""


def clean_title(title: str) -> str:
    """A title as it stands in ids: one line, without the brackets and colons that ids are made of."""
    line = " ".join(title.split())
    return line.replace("[", "(").replace("]", ")").replace("::", ":").strip()[:300] or "(anonymous)"


def blocks_of(source: bytes, tests: Iterable[str]) -> TestFileBlocks:
    """The blocks of a test file and the tests of each; ``tests`` are the known ids of its tests."""
    found = [block.without_tests() for block in _known_blocks(source)]
    others = {test for test in tests if not _assign(found, TestId.parse(test).names, test)}
    return TestFileBlocks(tuple(found), frozenset(others))


@lru_cache(maxsize=16)
def _known_blocks(source: bytes) -> tuple[TestBlock, ...]:
    root = parse_tree(source).root_node
    return tuple(_blocks(root, source, suite_helpers(root, source, _SUITES)))


def _assign(blocks: list[TestBlock], names: tuple[str, ...], test: str) -> bool:
    """Note a test at every block that may define it; whether there is one."""
    if not names:
        return False
    title, *rest = names
    title = title.partition("[")[0]
    fitting = [block for block in blocks if block.is_fixed and block.title.fullmatch(title)]
    fitting = fitting or [block for block in blocks if not block.is_fixed and block.title.fullmatch(title)]
    found = False
    for block in fitting:
        if not rest:
            block.tests.add(test)
            found = True
        elif _assign(block.blocks, tuple(rest), test):
            found = True
        elif not block.blocks:  # its tests are defined by something that it calls
            block.tests.add(test)
            found = True
    return found


def _blocks(node: Node, source: bytes, helpers: Mapping[str, SuiteHelper]) -> Iterator[TestBlock]:
    inside = {helper.function.id for helper in helpers.values()}
    for child in node.named_children:
        block = _block_of(child, source, helpers) if child.type in _STATEMENTS else None
        if block is not None:
            yield block
        elif child.id not in inside:
            yield from _blocks(child, source, helpers)


def _block_of(statement: Node, source: bytes, helpers: Mapping[str, SuiteHelper]) -> TestBlock | None:
    call = children(statement)[0] if children(statement) else None
    if call is not None and call.type in {"await_expression", "binary_expression"} and children(call):
        call = children(call)[-1]  # ``isNode && test(…)``
    if call is None or call.type != "call_expression":
        return None
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    helper = helpers.get(text(function, source)) if function is not None else None
    if helper is not None and arguments is not None:
        return _block_of_helper(statement, helper, children(arguments), source, helpers)
    is_table = function is not None and function.type == "call_expression"  # it.each(…)(title, …)
    if function is not None and is_table:
        function = function.child_by_field_name("function")
    if function is None or arguments is None or CALLED.isdisjoint(re.findall(r"[\w$]+", text(function, source))[-2:]):
        return None
    given = children(arguments)
    bodies = [each for each in given if each.type in FUNCTIONS]
    if not given or not (bodies or given[-1].type == "identifier"):
        return None
    title, is_fixed = _title(given[0], source)
    literal = string_value(given[0], source) if is_table else None
    if literal is not None:
        title, is_fixed = _table_title(literal), False
    found = TestBlock(statement.start_byte, statement.end_byte, title, is_fixed)
    for body in bodies:
        found.blocks += _blocks(body, source, helpers)
    return found


def _block_of_helper(
    statement: Node,
    helper: SuiteHelper,
    arguments: Sequence[Node],
    source: bytes,
    helpers: Mapping[str, SuiteHelper],
) -> TestBlock | None:
    """The block of tests that a call of a function of the file makes."""
    body = arguments[helper.given] if helper.given < len(arguments) else None
    if body is None or body.type not in FUNCTIONS:
        return None
    titles = helper.titles_of(arguments, source)
    is_fixed = all(part is not None for parts in titles for part in parts)
    pattern = "|".join(_pattern(parts) for parts in titles)
    inner = list(_blocks(body, source, helpers))
    return TestBlock(statement.start_byte, statement.end_byte, re.compile(pattern), is_fixed, inner)


def _pattern(parts: Iterable[str | None]) -> str:
    """What matches a title of these parts."""
    known = list(parts)
    if None not in known:
        return re.escape(clean_title("".join(part or "" for part in known)))
    return "".join(r"[\s\S]*" if part is None else re.escape(_clean_part(part)) for part in known)


def _title(node: Node, source: bytes) -> tuple[re.Pattern[str], bool]:
    literal = string_value(node, source)
    if literal is not None:
        return re.compile(re.escape(clean_title(literal))), True
    parts = list(_parts(node, source))
    if all(part is None for part in parts):
        return _ANYTHING, False
    return re.compile(_pattern(parts)), False


def _table_title(literal: str) -> re.Pattern[str]:
    """What matches the titles of a table of tests, with values in the place of ``%d`` and ``$name``."""
    parts = _VALUES.split(clean_title(literal))
    return re.compile(r"[\s\S]*".join(re.escape(part).replace(r"\ ", r"\s*") for part in parts))


def _parts(node: Node, source: bytes) -> Iterator[str | None]:
    """The texts that a title is joined from; ``None`` for what is computed."""
    literal = string_value(node, source)
    if literal is not None:
        yield literal
    elif node.type == "binary_expression" and node.child_by_field_name("operator") is not None:
        for name in ("left", "right"):
            side = node.child_by_field_name(name)
            if side is not None:
                yield from _parts(side, source)
    elif node.type == "template_string":
        position = node.start_byte + 1
        for inner in node.named_children:
            if inner.type == "template_substitution":
                yield source[position : inner.start_byte].decode("utf-8", "replace")
                yield None
                position = inner.end_byte
        yield source[position : node.end_byte - 1].decode("utf-8", "replace")
    else:
        yield None


def _clean_part(part: str) -> str:
    return re.sub(r"\s+", " ", part).replace("[", "(").replace("]", ")").replace("::", ":")
