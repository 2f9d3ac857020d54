"""Mentions of removed code in comments and docstrings that stay.

A sentence that names what is gone goes, and so does an item of a list that begins with the name. Nothing else of the
text changes but its line breaks. The first paragraph of a docstring stays: it says what the code that stays does.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, words_of
from excise.extractors.python.analysis.grammar import comments, descendants, docstring_node, parse_tree
from excise.types import Symbol, SymbolKind

_DISTINCT = re.compile(r"[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What tells a name from an ordinary word."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`:*\"'(])")
"""What is between two sentences of running text."""
_SPECIAL = re.compile(
    r"\s*([-*+•]\s|\d+[.)]\s|>>>|\.\.\s|:\w[\w ]*:(?!`)|[-=~^#]{3,}|\||@|#\s|```|\$\s)|.*::$"
    r"|\s*(Args|Returns|Yields|Raises|Parameters|Attributes|Notes?|Examples?|See Also|References|Usage)\s*:?$"
)
"""Lines that belong to no running text."""
_DIRECTIVE = re.compile(
    r"#\s*(fmt|isort|yapf|mypy|ruff|flake8|pylint|pyright|type|noqa|pragma|coding|nosec|!|-\*-)\b|#!|#:"
)
_ITEM = r"^(\s*)(?:[-*+•]\s+|\.\.\s+\w+::\s*)(?::\w+(?::\w+)?:)?[`*]{{0,2}}[~.]?(?:[\w.]+\.)?(?:{names})\b"
_EXAMPLE = re.compile(r"\s*>>> ")
"""The beginning of an example, whose further lines and result stand below."""
_RELATED = re.compile(r"\s*(?:See Also|See also|Related)\s*:?$")
"""The head of a list of related names."""


@dataclass(frozen=True, slots=True)
class GoneNames:
    """Names that nothing in the code that stays binds or uses."""

    names: tuple[str, ...]
    """The names, without classes and modules."""
    dotted: frozenset[str]
    """The same with their modules and classes."""
    modules: frozenset[str]
    """Dotted names of modules."""

    def pattern(self) -> re.Pattern[str]:
        """What finds a mention: a name that is no ordinary word, one in a role or a call, or behind its owner's."""
        distinct = [name for name in self.names if _DISTINCT.search(name)]
        plain = [name for name in self.names if name not in distinct]
        parts = [rf"(?<![\w./-])(?:[\w.]+\.)?(?:{_any(distinct)})(?![\w/-])"] if distinct else []
        if plain:
            parts += [rf":`[~.!]?(?:[\w.]+\.)?(?:{_any(plain)})(?:\(\))?`", rf"(?<![\w.])(?:{_any(plain)})\(\)"]
            dotted = [".".join(each.split(".")[-2:]) for each in self.dotted]
            parts.append(rf"(?<![\w/-])(?:[\w.]+\.)?(?:{_any(dotted)})(?![\w/-])")
        return re.compile("|".join(parts))


def item_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """What finds an item of a list that begins with one of the names."""
    return re.compile(_ITEM.format(names=_any(names)))


def _any(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names))


def gone_names(remover: DependentRemover, gone: Iterable[Symbol]) -> GoneNames:
    """The names of removed definitions, and of those in them, that nothing else has."""
    names: dict[str, set[str]] = {}
    modules: set[str] = set()
    for symbol in gone:
        module = remover.codebase.names.name_of(symbol.path)
        if symbol.kind is SymbolKind.MODULE:
            modules.add(module)
        for inner in remover.codebase.modules[symbol.path].symbols:
            is_inside = symbol.start <= inner.start and inner.end <= symbol.end and bool(inner.qualname)
            if is_inside and not (inner.name.startswith("__") and inner.name.endswith("__")):
                dotted = f"{module}.{inner.qualname.partition('#')[0]}"
                names.setdefault(inner.name.partition("#")[0], set()).add(dotted)
    found = {name: dotted for name, dotted in names.items() if len(name) > 2 and not _is_left(remover, name)}
    dotted_names = frozenset(dotted for each in found.values() for dotted in each)
    return GoneNames(tuple(sorted(found)), dotted_names, frozenset(modules))


def _is_left(remover: DependentRemover, name: str) -> bool:
    """Whether code that stays binds or uses a name, of whatever it is: a parameter, too."""
    for path in paths_of_words(remover.codebase).get(name, ()):
        plan = remover.plans.get(path)
        after = remover.codebase.modules[path].source if plan is None else words_of(plan).after
        if name.encode() in after and name in _identifiers(after):
            return True
    return False


@lru_cache(maxsize=256)
def _identifiers(source: bytes) -> frozenset[str]:
    nodes = (node for node in descendants(parse_tree(source).root_node) if node.type == "identifier")
    return frozenset((node.text or b"").decode(errors="replace") for node in nodes)


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
        for edit in (*_in_comments(plan, pattern), *_in_docstrings(plan, pattern, gone.names)):
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
        left = _without_sentences(plain, pattern)
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


def _in_docstrings(plan: FilePlan, pattern: re.Pattern[str], names: Sequence[str]) -> Iterator[Edit]:
    """Edits of the docstrings outside removed code."""
    item = item_pattern(names)
    for node in descendants(plan.root):
        if node.type not in {"module", "function_definition", "class_definition"}:
            continue
        block = node if node.type == "module" else node.child_by_field_name("body")
        statement = docstring_node(block) if block is not None else None
        if statement is None:
            continue
        text = plan.source[statement.start_byte : statement.end_byte].decode("utf-8", "replace")
        if pattern.search(text):
            after = _without_mentions(text.split("\n"), pattern, item)
            if after is not None:
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
        if literal is not None and block[0].strip() and _indent(block[0]) <= literal:
            literal = None
        is_kept = number == 0 or is_last or literal is not None
        left = block if is_kept else block_without(block, pattern, item)
        if literal is None and block[-1].rstrip().endswith("::"):
            literal = _indent(block[0]) if number else _indent(next((b[0] for b in parts[1:] if b[0].strip()), ""))
        if not left:  # of the blank lines around it, those above stay
            while found and not found[-1].strip() and number + 1 < len(parts) and not parts[number + 1][0].strip():
                found.pop()
        found += left
    while closing and len(found) > 1 and not found[-1].strip() and parts[-1][0].strip():
        found.pop()
    found += closing
    return found if found != lines else None


def blocks(lines: Sequence[str], item: re.Pattern[str]) -> Iterator[list[str]]:
    """Paragraphs, examples, items that name what is gone, lists of related names, and single lines."""
    number = 0
    while number < len(lines):
        block = [lines[number]]
        number += 1
        while number < len(lines) and lines[number].strip() and _joins(block, lines[number], item, number):
            block.append(lines[number])
            number += 1
        yield block


def _joins(block: list[str], line: str, item: re.Pattern[str], number: int) -> bool:
    """Whether a line that is not blank belongs to the block above it; ``number`` is that of the line."""
    if _RELATED.match(block[0]):
        return True
    if _EXAMPLE.match(block[0]):
        return not _EXAMPLE.match(line)
    if item.match(block[0]):
        return _indent(line) > _indent(block[0])
    if not block[0].strip() or _SPECIAL.match(block[0]) or _SPECIAL.match(line) or item.match(line):
        return False
    return _indent(line) == _indent(block[-1]) or number == 1  # the first line stands behind the quotes


def block_without(block: list[str], pattern: re.Pattern[str], item: re.Pattern[str]) -> list[str]:
    """What is left of a block."""
    if item.match(block[0]) or (_EXAMPLE.match(block[0]) and pattern.search(block[0].replace(".", " "))):
        return []
    if not _RELATED.match(block[0]):
        return _shortened(block, pattern)
    head = 2 if len(block) > 1 and not block[1].strip().strip("-=~") else 1
    entries: list[list[str]] = []
    for line in block[head:]:
        if entries and _indent(line) > _indent(entries[0][0]):
            entries[-1].append(line)
        else:
            entries.append([line])
    left = [entry for entry in entries if not pattern.search(entry[0])]
    return [*block[:head], *(line for entry in left for line in entry)] if left or not entries else []


def _shortened(paragraph: list[str], pattern: re.Pattern[str]) -> list[str]:
    """A paragraph without the sentences that name what is gone."""
    left = _without_sentences(paragraph, pattern)
    if left is None:
        return paragraph
    indent, text = " " * _indent(paragraph[0]), " ".join(left)
    width = max(map(len, paragraph))
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _without_sentences(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str] | None:
    """The sentences of running text without those with a mention; ``None`` if there is none, or it is no such text."""
    text = " ".join(line.strip() for line in lines)
    sentences = SENTENCE_END.split(text)
    left = [each for each in sentences if not pattern.search(each)]
    if len(left) == len(sentences):
        return None
    is_running = not any(_SPECIAL.match(line) or line.startswith("  ") for line in _relative(lines))
    return left if is_running else None


def _relative(lines: Sequence[str]) -> Iterator[str]:
    """The lines without the indentation of the first."""
    indent = _indent(lines[0]) if lines else 0
    return (line[min(indent, _indent(line)) :] for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
