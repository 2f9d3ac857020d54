"""Mentions of removed code in comments and docstrings that stay.

A sentence that names what is gone goes, and so does an item of a list that begins with the name. Nothing else of the
text changes but its line breaks. The first paragraph of a docstring stays: it says what the code that stays does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from tree_sitter import Node

from excise.deleters.documents.code_comments import comment_edits
from excise.deleters.documents.document_text import MAX_REMOVED, utf8_text, without_examples
from excise.deleters.documents.gone_names import GoneCode, item_pattern
from excise.deleters.documents.running_text import (
    block_without,
    blocks,
    indent_of,
    shortened,
    with_shorter_lists,
)
from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words
from excise.extractors.python.analysis.codebase import BUILTIN_ATTRIBUTES
from excise.extractors.python.analysis.grammar import DEFINITIONS, comments, docstring_node, field, of_types, text_of

MAX_ANNOUNCED = 3
"""Number of words of a line that does no more than announce an example."""


# --------------------------------------------------------------------------------------------- code
def remove_mentions(remover: DependentRemover, code: GoneCode) -> None:
    """Plan the removal of mentions in comments and docstrings of the sources that stay, and in comments of tests.

    If docstrings lost more than :data:`MAX_REMOVED` characters of examples, those stay that have no unique name.
    """
    gone = code.mentioned
    pattern = gone.pattern() if gone else None
    known = paths_of_words(remover.codebase)
    local: dict[str, set[str]] = defaultdict(set)
    for lost in remover.lost:
        if lost.qualname and "." not in lost.qualname:
            local[lost.path].add(lost.qualname)
    words = {*gone.names, *(each.rpartition(".")[2] for each in gone.qualified)}
    named = {path for word in words for path in known.get(word, ())}
    readable = list(_readable_plans(remover, named.union(local, _with_examples(remover, code, known))))
    plans = [(path, plan) for path, plan in readable if not remover.codebase.is_test(path)]
    name_of = remover.codebase.names.name_of
    owners = {path: _members_by_class(name_of(path), code) for path, _ in plans}
    edits = [
        (plan, _in_docstrings(plan, pattern, replace(code, local=frozenset(local[path])), owners[path]))
        for path, plan in plans
    ]
    if sum(edit.end - edit.start - len(edit.replacement) for _, found in edits for edit in found) > MAX_REMOVED:
        own = GoneCode(gone, gone.dotted)
        edits = [(plan, _in_docstrings(plan, pattern, own, owners[path])) for path, plan in plans]
    if pattern is not None:
        edits += [(plan, list(comment_edits(plan.source, comments(plan.root), code))) for _, plan in readable]
    for plan, found in edits:
        plan.replacements += [edit for edit in found if not plan.is_removed(edit.start, edit.end)]


def _readable_plans(remover: DependentRemover, paths: Iterable[str]) -> Iterator[tuple[str, FilePlan]]:
    """The plans of those files that stay, can be read, and are UTF-8."""
    codebase = remover.codebase
    for path in sorted(paths):
        if codebase.is_vendored(path) or codebase.modules[path].has_error:
            continue
        plan = remover.plan(path)
        if not plan.deleted and utf8_text(plan.source) is not None:
            yield path, plan


def _with_examples(remover: DependentRemover, code: GoneCode, known: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Paths of files with prompts that have a dotted name of what is gone."""
    for name in code.dotted:
        for path in known.get(name.rpartition(".")[2], ()):
            source = remover.codebase.modules[path].source
            if b">>> " in source and name.encode() in source:
                yield path


def _members_by_class(module: str, code: GoneCode) -> dict[str, list[str]]:
    """Name of a class of a module to the names of its members that are gone."""
    found: dict[str, list[str]] = defaultdict(list)
    for dotted in sorted(code.dotted):
        owner, _, name = dotted.rpartition(".")
        if owner.startswith(f"{module}."):
            found[owner.removeprefix(f"{module}.")].append(name)
    return dict(found)


def _class_around(node: Node) -> str:
    """The dotted name of the innermost class that a node is, or is in; empty if there is none."""
    names: list[str] = []
    current: Node | None = node
    while current is not None:
        if current.type == "class_definition":
            names.append(text_of(field(current, "name")))
        current = current.parent
    return ".".join(reversed(names))


def _with_members(pattern: re.Pattern[str] | None, members: Collection[str]) -> re.Pattern[str] | None:
    """A pattern that also finds roles with the plain names of members, as docstrings of their class have them, and
    names behind a dot: `` `.open` ``."""
    if not members:
        return pattern
    names = "|".join(map(re.escape, members))
    own = rf":(?:py:)?(?:meth|attr|func|obj):`[~.!]?(?:{names})(?:\(\))?`|`\.(?:{names})(?:\([^()`]*\))?`"
    return re.compile(f"{pattern.pattern}|{own}" if pattern is not None else own)


def _in_docstrings(
    plan: FilePlan, pattern: re.Pattern[str] | None, code: GoneCode, members: Mapping[str, Collection[str]]
) -> list[Edit]:
    """Edits of the docstrings outside removed code; ``members`` are those of the file's classes that are gone."""
    item = item_pattern(code.mentioned.names)
    words = {*code.mentioned.names, *code.local, *(name.rpartition(".")[2] for name in code.dotted)}
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b".encode())
    newline = "\r\n" if b"\r\n" in plan.source else "\n"
    edits = []
    for node in of_types(plan.root, "module", *sorted(DEFINITIONS)) if used.search(plan.source) else ():
        block = node if node.type == "module" else node.child_by_field_name("body")
        statement = docstring_node(block) if block is not None else None
        if statement is None or not used.search(plan.source, statement.start_byte, statement.end_byte):
            continue
        before = plan.source[statement.start_byte : statement.end_byte].decode().replace("\r\n", "\n").split("\n")
        members_gone = members.get(_class_around(node), ()) if members else ()
        after = _without_examples(before, replace(code, members=frozenset(members_gone) - BUILTIN_ATTRIBUTES))
        own = _with_members(pattern, members_gone)
        if own is not None and own.search("\n".join(after)):
            after = _without_mentions(after, own, item) or after
        if after != before:
            edits.append(Edit(statement.start_byte, statement.end_byte, newline.join(after).encode()))
    return edits


# -------------------------------------------------------------------------------------------- text
def _without_examples(lines: list[str], code: GoneCode) -> list[str]:
    """The lines of a docstring without examples that use what is gone; its quotes stay."""
    *inner, last = lines
    quote = last[-3:] if last.endswith(('"""', "'''")) else last[-1:]
    is_apart = bool(inner) and not last.removesuffix(quote).strip()
    text = inner if is_apart else [*inner, last.removesuffix(quote)]
    after = [text[0], *without_examples(text[1:], code)]
    if after == text:
        return lines
    after = [after[0], *_without_announcements(text[1:], after[1:])]
    while len(after) > 1 and not after[-1].strip() and text[-1].strip():
        after.pop()
    return [*after, last] if is_apart else [*after[:-1], after[-1] + quote]


def _without_announcements(before: list[str], after: list[str]) -> list[str]:
    """Lines without those that announce an example which is gone (``Example::``) in a word or two."""
    announcing = _announcing(before)
    left = [line for line in after if line not in announcing or line in _announcing(after)]
    return left if len(left) < len(after) else after


def _announcing(lines: list[str]) -> set[str]:
    """The short lines that end with ``::`` and have an indented block below."""
    found = set()
    for number, line in enumerate(lines):
        if number and lines[number - 1].strip():
            continue  # it ends a sentence
        below = next((each for each in lines[number + 1 :] if each.strip()), "")
        if line.rstrip().endswith("::") and len(line.split()) <= MAX_ANNOUNCED and indent_of(below) > indent_of(line):
            found.add(line)
    return found


def _first_left(lines: list[str], pattern: re.Pattern[str]) -> list[str]:
    """The first paragraph of a docstring without mentions; its first sentence stays but for names in lists."""
    num_quotes = 1 if len(lines) > 1 and not lines[0].strip("rRbBuU\"' \t") else 0
    text = lines[num_quotes:]
    return [*lines[:num_quotes], *with_shorter_lists(shortened(text, pattern, num_kept=1), pattern)]


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
        if number == 0 and literal is None:
            left = _first_left(block, pattern)
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
