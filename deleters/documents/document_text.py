"""Text and examples of documents that name what is gone.

Sentences and items of lists that name it go, as in docstrings, and statements of examples that use it, with what only
these need. What introduces an example goes with it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from excise.deleters.documents.code_examples import LANGUAGES as BRACED
from excise.deleters.documents.code_examples import GoneUses, looks_like_code, without_uses
from excise.deleters.documents.gone_commands import NO_COMMANDS, GoneCommands
from excise.deleters.documents.gone_names import GoneNames, item_pattern
from excise.deleters.documents.running_text import block_without, blocks, indent_of, without_introduction

MAX_REMOVED = 12_000
"""Number of characters of text up to which documents lose it: a statement shows all of it."""
MAX_PARTS = 10
"""Number of parts of a dotted name that are looked at."""
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})\s*\{?\.?(?P<language>[\w+-]*)")
_CODE = re.compile(r"\s*\.\.\s+(?:code-block|code|sourcecode|ipython|testcode|doctest)::\s*(?P<language>[\w+-]*)\s*$")
_DIRECTIVE = re.compile(r"\s*\.\.\s+[\w:-]+::\s*$")
"""A directive whose content stands below it."""
BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
"""The beginning of an item of a list."""
_OPTION = re.compile(r"\s*:[\w-]+:")
_SHELL = frozenset({"sh", "bash", "zsh", "fish", "shell", "console", "shell-session", "shellsession", "terminal"})
_LANGUAGES = frozenset({"", "python", "python3", "py", "pycon", "py3", "doctest", "ipython", "default"})


class _Kind(Enum):
    BLANK = "blank"
    PROSE = "prose"
    CODE = "code"


class _Chunk(NamedTuple):
    """Consecutive lines of a document: ``lines[start:end]``, of which those from ``code`` to ``stop`` are code."""

    kind: _Kind
    start: int
    end: int
    code: int = 0
    stop: int = 0
    language: str = ""
    """What the document says of the code; empty if nothing."""


@dataclass(frozen=True, slots=True)
class GoneCode:
    """What is gone, as code names it."""

    mentioned: GoneNames
    """The names that nothing else has."""
    dotted: frozenset[str]
    """All names, with their modules and classes: also those that something else has, too."""
    local: frozenset[str] = frozenset()
    """Names at module level that are gone from the file whose docstrings have the examples."""
    members: frozenset[str] = frozenset()
    """Names of members that are gone from the class whose docstrings have the examples."""
    commands: GoneCommands = NO_COMMANDS
    """Commands of a shell."""


def utf8_text(data: bytes) -> str | None:
    """The text of a file; ``None`` if it is not UTF-8, or no text: such files stay as they are."""
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def without_mentions(lines: Sequence[str], gone: GoneCode) -> list[str]:
    """The lines of a section without text and examples that name what is gone."""
    return _without(lines, gone, has_text=True)


def without_examples(lines: Sequence[str], gone: GoneCode) -> list[str]:
    """The lines of a section without examples that name what is gone."""
    return _without(lines, gone, has_text=False)


def _without(lines: Sequence[str], gone: GoneCode, *, has_text: bool) -> list[str]:
    if not (gone.mentioned or gone.dotted or gone.local or gone.members or gone.commands):
        return list(lines)
    chunks, lost = list(_chunks(lines)), _Lost(gone)
    left: list[list[str]] = []
    emptied: list[int] = []
    for number, chunk in enumerate(chunks):
        own = list(lines[chunk.start : chunk.end])
        if chunk.kind is _Kind.PROSE and (gone.mentioned or gone.commands) and has_text:
            own = _without_sentences(own, gone)
        elif chunk.kind is _Kind.CODE:
            kept = _without_uses(lines[chunk.code : chunk.stop], chunk.language, lost)
            if kept:
                own = [*lines[chunk.start : chunk.code], *kept, *lines[chunk.stop : chunk.end]]
            elif kept is not None:
                own = []
                emptied.append(number)
        left.append(own)
    for number, chunk in enumerate(chunks):
        if chunk.kind is _Kind.PROSE and len(left[number]) < chunk.end - chunk.start:
            _drop_rest_of_item(lines, chunks, left, number)
    for number in emptied:
        _drop_introduction(chunks, left, number)
    found = list(_without_double_blanks(chunks, left))
    return _with_end_of(lines, found) if found != list(lines) and found else found


def _with_end_of(lines: Sequence[str], found: list[str]) -> list[str]:
    """The lines that are left, with as many blank ones at their end as there were before: a heading may follow."""
    num_blank = next((number for number, line in enumerate(reversed(lines)) if line.strip()), 0)
    while len(found) > 1 and not found[-1].strip():
        found.pop()
    return [*found, *([""] * num_blank if found[-1].strip() else [])]


def _without_double_blanks(chunks: Sequence[_Chunk], left: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines that are left; of the blank ones around a chunk that is gone, those above it stay."""
    is_after_gone = False
    last_blank = True
    for chunk, own in zip(chunks, left, strict=True):
        if chunk.kind is not _Kind.BLANK and not own:
            is_after_gone = True
            continue
        if chunk.kind is _Kind.BLANK and is_after_gone and last_blank:
            continue
        is_after_gone = is_after_gone and chunk.kind is _Kind.BLANK
        last_blank = chunk.kind is _Kind.BLANK
        yield from own


def _drop_introduction(chunks: Sequence[_Chunk], left: list[list[str]], example: int) -> None:
    """Take the sentence before an example that is gone out of what is left, if it ends with a colon and introduces
    nothing else."""
    before, after = example - 1, example + 1
    while before >= 0 and chunks[before].kind is _Kind.BLANK:
        before -= 1
    while after < len(chunks) and (chunks[after].kind is _Kind.BLANK or not left[after]):
        after += 1
    introduces_more = after < len(chunks) and chunks[after].kind is _Kind.CODE
    if before >= 0 and chunks[before].kind is _Kind.PROSE and left[before] and not introduces_more:
        left[before] = without_introduction(left[before])


def _drop_rest_of_item(lines: Sequence[str], chunks: Sequence[_Chunk], left: list[list[str]], number: int) -> None:
    """Take the paragraphs of the last item of a list, which are indented below it, out of what is left if its beginning
    is gone."""
    own = chunks[number]
    head = next((each for each in reversed(lines[own.start : own.end]) if BULLET.match(each)), None)
    if head is None or head in left[number]:
        return
    for after in range(number + 1, len(chunks)):
        chunk = chunks[after]
        if chunk.kind is not _Kind.BLANK:
            if indent_of(lines[chunk.start]) <= indent_of(head):
                return
            left[after] = []


# ------------------------------------------------------------------------------------------- chunks
def _chunks(lines: Sequence[str]) -> Iterator[_Chunk]:
    number = 0
    while number < len(lines):
        chunk = _chunk_at(lines, number)
        yield chunk
        number = chunk.end
        last = lines[number - 1]
        if chunk.kind is _Kind.PROSE and last.rstrip().endswith("::") and not _DIRECTIVE.match(last):
            first = _first_text(lines, number)
            indent = indent_of(lines[number - 1])
            if number < first < len(lines) and indent_of(lines[first]) > indent:
                yield _Chunk(_Kind.BLANK, number, first)
                number = _end_of_indented(lines, first, indent)
                yield _Chunk(_Kind.CODE, first, number, first, number)


def _chunk_at(lines: Sequence[str], number: int) -> _Chunk:
    line = lines[number]
    if not line.strip():
        return _Chunk(_Kind.BLANK, number, number + 1)
    if fence := _FENCE.match(line):
        stop = end_of_fence(lines, number)
        return _Chunk(_Kind.CODE, number, min(stop + 1, len(lines)), number + 1, stop, fence["language"].lower())
    if directive := _CODE.match(line):
        end = _end_of_indented(lines, number + 1, indent_of(line))
        code = _first_text(lines, number + 1)
        while code < end and _OPTION.match(lines[code]):
            code = _first_text(lines, code + 1)
        return _Chunk(_Kind.CODE, number, end, min(code, end), end, directive["language"].lower())
    is_session = line.lstrip().startswith(">>>")
    end = number + 1
    while end < len(lines) and lines[end].strip() and not _FENCE.match(lines[end]) and not _CODE.match(lines[end]):
        end += 1
    return _Chunk(_Kind.CODE, number, end, number, end) if is_session else _Chunk(_Kind.PROSE, number, end)


def end_of_fence(lines: Sequence[str], number: int) -> int:
    """The number of the line that closes the fence of a line, or of all lines; the line's own if it opens none."""
    fence = _FENCE.match(lines[number])
    if fence is None:
        return number
    closing = re.compile(rf"\s*{fence['fence']}{fence['fence'][0]}*\s*$")
    return next((at for at in range(number + 1, len(lines)) if closing.match(lines[at])), len(lines))


def _first_text(lines: Sequence[str], number: int) -> int:
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number


def _end_of_indented(lines: Sequence[str], number: int, indent: int) -> int:
    """Where the lines end that are indented by more than ``indent``; blank ones at the end do not count."""
    end = number
    while number < len(lines) and (not lines[number].strip() or indent_of(lines[number]) > indent):
        number += 1
        end = number if lines[number - 1].strip() else end
    return end


# --------------------------------------------------------------------------------------------- text
def _without_sentences(lines: list[str], gone: GoneCode) -> list[str]:
    names = [gone.mentioned.pattern().pattern] if gone.mentioned else []
    pattern, item = re.compile("|".join([*names, gone.commands.mention()])), item_pattern(gone.mentioned.names)
    if not pattern.search("\n".join(lines)):
        return lines
    return [line for block in blocks(lines, item) for line in block_without(block, pattern, item)]


# --------------------------------------------------------------------------------------------- code
class _Statement(NamedTuple):
    """A statement of an example, with the comments above it and the results below it: ``lines[start:end]``."""

    node: ast.stmt
    start: int
    end: int


def _without_uses(lines: Sequence[str], language: str, lost: _Lost) -> list[str] | None:
    """The lines of an example in a language that do not use what is gone; see :func:`_without_statements`."""
    kept = _without_statements(lines, lost) if language in _LANGUAGES else None
    if language in BRACED or (kept is None and not language and looks_like_code(lines)):
        return without_uses(lines, lost.uses())
    if kept is None and lost.commands and (language in _SHELL or not language):
        return lost.commands.left_of(lines, is_shell=language in _SHELL)
    return kept


def _without_statements(lines: Sequence[str], lost: _Lost) -> list[str] | None:
    """The lines of an example that do not use what is gone; ``None`` if none does, or it is no code that can be read.

    Nothing is left if there is nothing but imports and assignments for what is gone.
    """
    lost.begin()
    kept: list[str] = []
    nodes: list[ast.stmt] = []
    end = 0
    is_after_lost = False
    for statement in _statements(lines):
        kept += _between(lines[end : statement.start], kept, is_after_lost=is_after_lost)
        end = statement.end
        left = lost.rest_of(statement.node, list(lines[statement.start : statement.end]))
        is_after_lost = not left
        nodes += [statement.node] if left else []
        kept += left
    if not lost.has_lost:
        return None
    kept += _between(lines[end:], kept, is_after_lost=is_after_lost)
    if (lost.is_coherent and not _is_session(lines)) or all(map(lost.only_prepares, nodes)):
        return []
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _between(lines: Sequence[str], above: Sequence[str], *, is_after_lost: bool) -> list[str]:
    """The lines between two statements; of the blank ones around a statement that is gone, those above it stay."""
    first = _first_text(lines, 0) if is_after_lost and (not above or not above[-1].strip()) else 0
    return list(lines[first:])


def _statements(lines: Sequence[str]) -> Iterator[_Statement]:
    """The statements of an example; none if it cannot be read."""
    if _is_session(lines):
        yield from _examples(lines)
        return
    tree = _parsed("\n".join(lines)) if not any("\r" in line or "\f" in line for line in lines) else None
    found: list[_Statement] = []
    end = 0
    for node in tree.body if tree is not None else ():
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) - 1
        if first < end:
            return  # two statements on one line
        while first > end and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        end = node.end_lineno or node.lineno
        found.append(_Statement(node, first, end))
    yield from found


def _is_session(lines: Sequence[str]) -> bool:
    """Whether an example shows a session of the interpreter, and is no script."""
    return any(line.lstrip().startswith(">>>") for line in lines)


def _examples(lines: Sequence[str]) -> Iterator[_Statement]:
    starts = [at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        own = [lines[start], *(line for line in lines[start + 1 : end] if line.lstrip().startswith("..."))]
        tree = _parsed("\n".join(line.lstrip()[4:] for line in own))
        if tree is not None and len(tree.body) == 1:
            yield _Statement(tree.body[0], start, start + len("\n".join(lines[start:end]).rstrip().split("\n")))


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Lost:
    """The names of the examples of a section that stand for what is gone, or were made with it."""

    def __init__(self, gone: GoneCode) -> None:
        self.dotted = gone.dotted
        self.commands = gone.commands
        self.names = {*gone.mentioned.names, *gone.local}
        self.members = gone.mentioned.methods | gone.members
        self.functions = frozenset(gone.mentioned.names) - gone.mentioned.methods
        self.qualified = frozenset(gone.mentioned.qualified)
        self.roots = {name.partition(".")[0] for name in gone.dotted}
        self.bound: set[str] = set()
        """Names that lost statements of this example, or of one above, gave to something."""
        self.begin()

    def begin(self) -> None:
        """Forget what is known of the example before, but for the names that its lost statements gave."""
        self.needed: set[str] = set()
        """Names in statements that are gone."""
        self.own: set[str] = set()
        """Names that the example itself gives to something else."""
        self.has_lost = False
        self.changed: set[str] = set()
        """Names of objects of the example of which lost statements call methods."""
        self.is_coherent = False
        """Whether a statement that stays uses such an object later: the example makes no sense without the call."""

    def uses(self) -> GoneUses:
        """What examples in languages with braces cannot use."""
        return GoneUses(self.functions, self.members, self.qualified)

    def rest_of(self, node: ast.stmt, lines: list[str]) -> list[str]:
        """The lines of a statement that stay."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._imports(node, lines)
        binds = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        binds.update({node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else ())
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if not any(map(self._is_lost, ast.walk(node))):
            self.own |= binds
            self.bound -= binds
            self.is_coherent |= not self.changed.isdisjoint(used)
            return lines
        self.has_lost = True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.changed |= {_chain(node.value.func).partition(".")[0]} & self.own
        self.bound |= binds
        self.needed |= used
        return []

    def only_prepares(self, node: ast.stmt) -> bool:
        """Whether a statement that stays imports names, or makes what only lost statements use."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return node.name in self.needed
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return isinstance(node, ast.Assign | ast.AnnAssign) and names <= self.needed

    def _imports(self, node: ast.Import | ast.ImportFrom, lines: list[str]) -> list[str]:
        """An import without the names of what is gone."""
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
        is_own = module.partition(".")[0] in self.roots
        lost = [a for a in node.names if f"{module}{a.name}" in self.dotted or (is_own and a.name in self.names)]
        for alias in node.names:
            root = (module or alias.name).partition(".")[0]
            self.own.update({alias.asname or root} if alias not in lost and root not in self.roots else ())
        if not lost:
            return lines
        self.has_lost = True
        self.bound.update(alias.asname or alias.name for alias in lost)
        node.names = [alias for alias in node.names if alias not in lost]
        if not node.names:
            return []
        first = next((at for at, line in enumerate(lines) if not line.lstrip().startswith("#")), 0)
        head = lines[first][: indent_of(lines[first])] + (">>> " if lines[first].lstrip().startswith(">>>") else "")
        return [*lines[:first], f"{head}{ast.unparse(node)}"]

    def _is_lost(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and node.id in (self.names - self.own) | self.bound
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return node.target.id in self.bound
        if not isinstance(node, ast.Attribute):
            return False
        chain = _chain(node)
        is_function = node.attr in self.functions and bool(chain) and chain.partition(".")[0] not in self.own
        is_owned = ".".join(chain.split(".")[-2:]) in self.qualified
        return is_function or is_owned or node.attr in self.members or chain in self.dotted


def _chain(node: ast.expr) -> str:
    """``a.b.c`` for a name with attributes; else empty."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MAX_PARTS:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
