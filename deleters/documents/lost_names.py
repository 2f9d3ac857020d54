"""Comments and documents lose what they say of removed definitions, in languages whose names text has as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tree_sitter import Node, Tree

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.code_comments import comment_edits, defined_by_what_is_gone
from excise.deleters.documents.document_text import utf8_text
from excise.deleters.documents.gone_names import GoneCode, GoneNames
from excise.deleters.documents.loose_ends import loose_ends, mentions_left
from excise.deleters.documents.sections import shortened_documents, words_of
from excise.deleters.edits.byte_edits import apply_edits

MIN_NAME = 3
"""Number of characters of a name, or of its owner's before it, from which on text is searched for it."""
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_BODIES = frozenset({"block", "statement_block", "constructor_body"})
"""What comments inside of functions are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostName:
    """A name that a removed definition had."""

    name: str
    owners: frozenset[str]
    """What may stand before it: its type, package or module."""
    is_member: bool
    """Whether it stands behind an object."""
    is_common: bool
    """Whether text may mean others by the plain name: those of the language and its library."""
    is_word: bool = False
    """Whether prose may mean no name by it, since it is an ordinary word."""
    is_only: bool = False
    """Whether no definition that stays has the name: a heading ``.name()`` means it, whatever the language has."""


class LeftSources:
    """The sources that a removal leaves, without tests."""

    def __init__(
        self, files: Mapping[str, bytes], parse_tree: Callable[[bytes], Tree], *, documents_by_lines: bool = False
    ) -> None:
        """``files`` are path to content. ``documents_by_lines``: ``//`` above a definition is its documentation."""
        self.files = files
        self._parse_tree = parse_tree
        self._documents_by_lines = documents_by_lines
        self._code = lru_cache(maxsize=64)(self._without_comments)

    def comments(self, source: bytes) -> list[Node]:
        """The comments of a file, in order."""
        return list(_comments(self._parse_tree(source).root_node))

    def is_documentation(self, comment: Node) -> bool:
        """Whether a comment has the mark of documentation, or is a line outside of functions where these document."""
        text = comment.text or b""
        if not text.startswith(b"//") or text.startswith((b"///", b"//!")):
            return text.startswith((b"/**", b"/*!", b"///", b"//!"))
        node = comment.parent if self._documents_by_lines else None
        while node is not None and node.type not in _BODIES:
            node = node.parent
        return self._documents_by_lines and node is None

    def is_sound(self, source: bytes) -> bool:
        """Whether a file has no syntax error."""
        return not self._parse_tree(source).root_node.has_error

    def have(self, name: str) -> bool:
        """Whether a source has a name outside of comments."""
        return any(self.has(source, name) for source in self.files.values())

    def have_text(self, text: str) -> bool:
        """Whether a source has a text in quotes."""
        quoted = re.compile(rb"([`'\"])%s\1" % re.escape(text.encode()))
        return any(text.encode() in source and quoted.search(source) for source in self.files.values())

    def has(self, source: bytes, name: str) -> bool:
        """Whether a file has a name outside of comments."""
        return _has(source, name) and _has(self._code(source), name)

    def _without_comments(self, source: bytes) -> bytes:
        pieces, end = [], 0
        for node in self.comments(source):
            pieces.append(source[end : node.start_byte])
            end = node.end_byte
        return b" ".join([*pieces, source[end:]])


class WithoutNames(NamedTuple):
    """The files of a removal without text about what is gone."""

    changed: Changed
    """Path to (content before, content after)."""
    loose: tuple[tuple[str, str], ...] = ()
    """(path, text) of the documents that would still name it, or explain what they lost."""


def without_lost_names(
    left: LeftSources, lost: Iterable[LostName], documents: Mapping[str, bytes], changed: Changed
) -> WithoutNames:
    """The files that a removal has changed, with sources and documents without text about what is gone; ``left`` has
    the sources as the removal changed them."""
    code = _gone_code(left, list(lost))
    if not code.mentioned:
        return WithoutNames(changed)
    found = dict(shortened_documents(documents, code))
    loose = list(_loose(documents, found, code))
    names = {
        *code.mentioned.names,
        *code.mentioned.bare,
        *(each.rpartition(".")[2] for each in code.mentioned.qualified),
    }
    for path, source in left.files.items():
        if any(_has(source, name) for name in names):
            edits = comment_edits(source, left.comments(source), code, left.is_documentation)
            after = apply_edits(source, edits)
            if after != source and (left.is_sound(after) or not left.is_sound(source)):
                found[path] = (source, after)
            documentation = filter(left.is_documentation, left.comments(source))
            said = defined_by_what_is_gone(source, documentation, code)
            loose += [(path, f"a comment would say: {text}") for text in said]
    originals = {path: before for path, (before, _) in changed.items()}
    without = {path: (originals.get(path, before), after) for path, (before, after) in found.items()}
    return WithoutNames({**changed, **without}, tuple(loose))


def _loose(documents: Mapping[str, bytes], changed: Changed, code: GoneCode) -> Iterator[tuple[str, str]]:
    """(path, text) of the documents that would name what is gone, or explain what they lost."""
    words = words_of(code)
    for path, data in sorted(documents.items()):
        if not words.search(data):
            continue
        before, after = (utf8_text(each or b"") or "" for each in changed.get(path, (data, data)))
        yield from ((path, f"the document names it: {line}") for line, _ in mentions_left(after, code))
        if after:
            yield from ((path, f"the document would say: {line}") for line in loose_ends(before, after, code))


def _gone_code(left: LeftSources, lost: Collection[LostName]) -> GoneCode:
    """The names that no source has any more, and those of which text that names their owners means them."""
    found = [each for each in lost if len(each.name) >= MIN_NAME]
    last = [each for each in found if not left.have(each.name)]
    alone = {each.name for each in last if not (each.is_common or each.is_word)}
    called = sorted({each.name for each in last if each.is_word and not (each.is_common or each.is_member)})
    suffixes = {path.rpartition(".")[2] for path in left.files}
    named = [each for each in lost if len(each.name) >= MIN_NAME or each.name not in suffixes]
    dotted = {f"{o}.{each.name}" for each in named for o in each.owners if max(len(o), len(each.name)) >= MIN_NAME}
    methods = frozenset(each.name for each in found if each.is_member) & alone
    bare = sorted({each.name for each in last if (each.is_common or each.is_word) and not each.is_member})
    qualified = sorted({form for each in dotted if each.rpartition(".")[2] not in alone for form in _forms(each)})
    own = frozenset(each for each in dotted if each.rpartition(".")[2] in alone)
    texts = frozenset(name for name in alone if left.have_text(name))
    headed = sorted({each.name for each in found if each.is_only and each.is_member} - alone)
    names = GoneNames(
        tuple(sorted(alone)),
        own,
        methods,
        tuple(qualified),
        bare=tuple(bare),
        called=tuple(called),
        headed=tuple(headed),
        texts=texts,
    )
    return GoneCode(names, own)


def _forms(dotted: str) -> tuple[str, str]:
    """``Box.open`` and ``box.open``, as objects of the type are called."""
    owner, _, name = dotted.rpartition(".")
    return dotted, f"{owner[:1].lower()}{owner[1:]}.{name}"


def _comments(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in _COMMENTS:
            yield node
        else:
            stack.extend(reversed(node.children))


def _has(source: bytes, name: str) -> bool:
    word = name.encode()
    return word in source and re.search(rb"(?<![\w$])%s(?![\w$])" % re.escape(word), source) is not None
