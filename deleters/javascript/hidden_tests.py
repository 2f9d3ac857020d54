"""Hiding of tests: blocks of tests are taken out of their files; a file without tests goes as a whole."""

from __future__ import annotations

from collections.abc import Collection

from excise.deleters.deletion_record import Changed, hiding, patch_of
from excise.deleters.edits.blank_lines import without_odd
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import Range, removals
from excise.deleters.javascript.emptied_blocks import with_emptied
from excise.deleters.javascript.unused_code import without_unused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import parse_tree
from excise.extractors.javascript.analysis.test_blocks import TestBlock, TestFileBlocks, blocks_of
from excise.types import Deletion, path_of


def hide_tests(codebase: JavaScriptCodebase, tests: Collection[str]) -> tuple[Changed, frozenset[str]]:
    """Hide tests: (path to content before and after, ids of all tests that are no longer visible).

    Tests that one call defines (in a loop, or under one title) are hidden together; those of a call that is not found
    are hidden with their whole file.
    """
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    for path in sorted({path_of(test) for test in tests}):
        module = codebase.modules.get(path)
        if module is None or not codebase.is_test(path):
            continue
        known = codebase.tests_of(path)
        file = blocks_of(module.source, known)
        after, gone = _hide_in_file(module.source, file, frozenset(tests) & (known | frozenset(tests)))
        if after is None or known <= gone or module.has_error:
            changed[path] = (module.source, None)
            hidden |= known
        elif gone:
            changed[path] = (module.source, after)
            hidden |= gone
    return changed, frozenset(hidden)


def _hide_in_file(source: bytes, file: TestFileBlocks, tests: frozenset[str]) -> tuple[bytes | None, frozenset[str]]:
    """The file without the blocks of the tests, and the tests that are gone with them; ``None`` for the whole file."""
    if file.others & tests:
        return None, frozenset()
    gone: set[str] = set()
    while True:
        spans: dict[Range, TestBlock] = {}
        _choose(file.blocks, tests | gone, spans)
        found = frozenset().union(*(block.every_test() for block in spans.values()))
        if found <= gone:
            break
        gone |= found
    after = apply_edits(source, removals(source, with_emptied(source, spans), []))
    if parse_tree(after).root_node.has_error:
        return None, frozenset()
    return without_odd(source, without_unused(source, after, nested=True)), frozenset(gone)


def _choose(blocks: Collection[TestBlock], tests: frozenset[str], spans: dict[Range, TestBlock]) -> None:
    """The blocks to delete: whole ones where all their tests are to be hidden, else those in them."""
    for block in blocks:
        every = block.every_test()
        if block.tests & tests or (every and every <= tests):
            spans[block.start, block.end] = block
        else:
            _choose(block.blocks, tests, spans)


def hiding_only(codebase: JavaScriptCodebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
    """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
    changed, hidden = hide_tests(codebase, tests)
    return hiding(deletion, patch_of(codebase, changed), hidden)
