"""Mentions of removed code in comments and docstrings that stay.

A sentence that names what is gone goes, and so does an item of a list that begins with the name. Nothing else of the
text changes but its line breaks. The first paragraph of a docstring stays: it says what the code that stays does.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.document_text import GoneCode, without_examples
from excise.deleters.python.references.gone_names import GoneNames, item_pattern
from excise.deleters.python.references.remaining_words import paths_of_words
from excise.deleters.python.references.running_text import block_without, blocks, indent_of, without_sentences
from excise.extractors.python.analysis.grammar import comments, descendants, docstring_node

_DIRECTIVE = re.compile(
    r"#\s*(fmt|isort|yapf|mypy|ruff|flake8|pylint|pyright|type|noqa|pragma|coding|nosec|!|-\*-)\b|#!|#:"
)


# --------------------------------------------------------------------------------------------- code
def remove_mentions(remover: DependentRemover, gone: GoneNames) -> None:
    """Plan the removal of mentions in comments and docstrings of the sources that stay."""
    if not gone.names:
        return
    pattern = gone.pattern()
    known = paths_of_words(remover.codebase)
    for path in sorted({path for name in gone.names for path in known.get(name, ())}):
        module = remover.codebase.modules[path]
        if remover.codebase.is_test(path) or remover.codebase.is_vendored(path) or module.has_error:
            continue
        plan = remover.plan(path)
        if plan.deleted:
            continue
        for edit in (*_in_comments(plan, pattern), *_in_docstrings(plan, pattern, gone)):
            if not plan.is_removed(edit.start, edit.end):
                plan.replacements.append(edit)


def _in_comments(plan: FilePlan, pattern: re.Pattern[str]) -> Iterator[Edit]:
    """Edits of the comments outside removed code."""
    lines = plan.source.decode("utf-8", "replace").split("\n")
    for block in _comment_blocks(plan):
        text = "\n".join((node.text or b"").decode(errors="replace") for node in block)
        if not pattern.search(text) or _DIRECTIVE.search(text):
            continue
        start = plan.source.rfind(b"\n", 0, block[0].start_byte) + 1
        indent = plan.source[start : block[0].start_byte]
        if indent.strip():  # behind code
            yield Edit(len(plan.source[: block[0].start_byte].rstrip()), block[0].end_byte)
            continue
        plain = [line.lstrip("#").removeprefix(" ") for line in text.split("\n")]
        left = without_sentences(plain, pattern)
        if left is None:
            continue
        end = min(block[-1].end_byte + 1, len(plan.source))
        width = max(len(lines[node.start_point[0]]) for node in block)
        mark = f"{indent.decode()}# "
        kept = textwrap.wrap(" ".join(left), width, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False)
        yield Edit(start, end, "".join(f"{line}\n" for line in kept).encode())


def _comment_blocks(plan: FilePlan) -> Iterator[list[Node]]:
    """Comments of one column on consecutive lines, and each comment behind code alone."""
    block: list[Node] = []
    for node in sorted(comments(plan.root), key=lambda each: each.start_byte):
        start = plan.source.rfind(b"\n", 0, node.start_byte) + 1
        is_alone = not plan.source[start : node.start_byte].strip()
        follows = bool(block) and node.start_point == (block[-1].start_point[0] + 1, block[-1].start_point[1])
        if block and not (is_alone and follows):
            yield block
            block = []
        block.append(node)
        if not is_alone:
            yield block
            block = []
    if block:
        yield block


def _in_docstrings(plan: FilePlan, pattern: re.Pattern[str], gone: GoneNames) -> Iterator[Edit]:
    """Edits of the docstrings outside removed code."""
    item, code = item_pattern(gone.names), GoneCode(gone, gone.dotted)
    for node in descendants(plan.root):
        if node.type not in {"module", "function_definition", "class_definition"}:
            continue
        block = node if node.type == "module" else node.child_by_field_name("body")
        statement = docstring_node(block) if block is not None else None
        if statement is None:
            continue
        text = plan.source[statement.start_byte : statement.end_byte].decode("utf-8", "replace")
        if pattern.search(text):
            before = text.split("\n")
            first, *inner = _without_mentions(before, pattern, item) or before
            after = [first, *without_examples(inner, code)]
            is_closed = len(after) > 2 and not after[-1].strip().strip("\"'") and before[-2].strip()
            while is_closed and not after[-2].strip():
                after.pop(-2)
            if after != before:
                yield Edit(statement.start_byte, statement.end_byte, "\n".join(after).encode())


# -------------------------------------------------------------------------------------------- text
def _without_mentions(lines: list[str], pattern: re.Pattern[str], item: re.Pattern[str]) -> list[str] | None:
    """The lines of a docstring without items and sentences that name what is gone; ``None`` if nothing changes."""
    closing = lines[-1:] if len(lines) > 1 and not lines[-1].strip().strip("\"'") else []
    parts = list(blocks(lines[: len(lines) - len(closing)], item))
    found: list[str] = []
    literal: int | None = None
    """Indentation of the text above a literal block, in one."""
    for number, block in enumerate(parts):
        is_last = not closing and number == len(parts) - 1  # the quotes stand behind its text
        if literal is not None and block[0].strip() and indent_of(block[0]) <= literal:
            literal = None
        is_kept = number == 0 or is_last or literal is not None
        left = block if is_kept else block_without(block, pattern, item)
        if literal is None and block[-1].rstrip().endswith("::"):
            literal = indent_of(block[0]) if number else indent_of(next((b[0] for b in parts[1:] if b[0].strip()), ""))
        if not left:  # of the blank lines around it, those above stay
            while found and not found[-1].strip() and number + 1 < len(parts) and not parts[number + 1][0].strip():
                found.pop()
        found += left
    while closing and len(found) > 1 and not found[-1].strip() and parts[-1][0].strip():
        found.pop()
    found += closing
    return found if found != lines else None
