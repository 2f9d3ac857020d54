"""Fingerprints: hashes that a decoded fragment has in common with the source code that it was made from.

Every fingerprint is a 64-bit hash, of one of five channels:

==========  =========================================  =================================================
channel     what is hashed                             catalogue
==========  =========================================  =================================================
window      five consecutive words                     F1 body lines, F3 docstrings and strings (L4, L2)
word        one word                                   F2 rare identifiers, F6 names of binaries (L3, L1)
signature   name of a definition and a parameter       signatures (L2)
code        name of a code object and a word in it     F4 shape of code objects (L3)
member      the same, with the enclosing scope's name  F4, for names that several classes have (L3)
==========  =========================================  =================================================

Words are identifiers, keywords and numbers; punctuation, layout and line ends are ignored, so that
copies in other formats, in diffs, quotes, comments or coloured HTML have the same windows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from excise.verifiers.leaks.fragments import CodeShape

FORMAT = 19
"""Version of the fingerprints and decoders; part of the name of every cached index."""
WINDOW = 5
Hashes = NDArray[np.uint64]
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_NUMBERED = re.compile(rb"\n[ \t>#|!*+-]*\d{1,6}(?:[ \t]*[:|.)\]>!-]+|[ \t])[ \t]*(?=\S)")
"""Line numbers, as in listings, tracebacks and coverage reports."""
_HEADERS = tuple(
    re.compile(keyword + rb"(?<!\w" + keyword + rb")\s+(\w+)\s*\(([^)]{0,600})") for keyword in (b"def", b"class")
)
"""Heads of definitions. A pattern that begins with a text is searched ten times as fast as one with a choice."""
_BLOCK = 1 << 18
_LONGEST = 100
"""Number of bytes of a word that count."""
_MEMO = 500_000
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SALTS = {
    name: np.uint64(n * 0xD6E8FEB86659FD93 % 2**64) for n, name in enumerate(("word", "signature", "code", "member"), 1)
}
EMPTY: Hashes = np.zeros(0, dtype=np.uint64)


_LETTERS = np.zeros(256, dtype=bool)
_LETTERS[[byte for byte in range(256) if _WORD.match(bytes([byte]))]] = True
_TABLE = np.frombuffer(hashlib.shake_256(b"words").digest((_LONGEST + 1) * 256 * 8), dtype=np.uint64).copy()
_TABLE[-256:] = 0
"""A random number for each byte at each place in a word; those that do not count have 0."""
_ROWS = [row.tolist() for row in _TABLE.reshape(-1, 256)[:_LONGEST]]


class _Memo(dict[bytes, int]):
    """A cache of words and their hashes, for the names in byte code, which are the same again and again.

    It is emptied when it is full.
    """

    def __missing__(self, word: bytes) -> int:
        value: int = sum(row[byte] for row, byte in zip(_ROWS, word, strict=False)) & 0xFFFFFFFFFFFFFFFF
        if len(word) <= _LONGEST:
            if len(self) >= _MEMO:
                self.clear()
            self[word] = value
        return value


_memo = _Memo()


def unique(hashes: Hashes) -> Hashes:
    """The hashes sorted, without duplicates. numpy's own ``unique`` builds a hash table since 2.3: ten times slower."""
    ordered = np.sort(hashes)
    if not len(ordered):
        return ordered
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def words_of(text: bytes) -> list[bytes]:
    """The words of a text, line numbers left out."""
    return _WORD.findall(_without_numbers(text))


def _without_numbers(text: bytes) -> bytes:
    return _NUMBERED.sub(b"\n", b"\n" + text)


def hashes_of(words: Iterable[bytes]) -> Hashes:
    """The 64-bit hash of each word, in order."""
    return np.fromiter(map(_memo.__getitem__, words), dtype=np.uint64)


def hashes_in(text: bytes) -> Hashes:
    """The hashes of :func:`words_of` a text, in order."""
    letters = np.frombuffer(_without_numbers(text), dtype=np.uint8)
    is_inside = _LETTERS[letters]
    edges = np.flatnonzero(np.diff(is_inside, prepend=False, append=False))
    return _hashes(letters[is_inside], edges[1::2] - edges[::2])


def _hashes(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> Hashes:
    """The hash of each word; ``letters`` are those of all words, ``lengths`` are at least 1.

    Simple tabulation hashing (Zobrist 1970), with sums: each byte at each place has a random number. It takes a few
    nanoseconds a byte, a call of a hash function for each new word took twenty times as long.
    """
    if not len(lengths):
        return EMPTY
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(letters)) - np.repeat(starts, lengths)
    return np.add.reduceat(_TABLE[np.minimum(places, _LONGEST) * 256 + letters], starts)


def windows(hashes: Hashes) -> Hashes:
    """Hash of every run of :data:`WINDOW` words; of all words together if there are only two to four."""
    size = min(WINDOW, len(hashes))
    if size < 2:
        return EMPTY
    count = len(hashes) - size + 1
    found = np.zeros(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place in range(size):
            found = (found * _MIX) ^ (hashes[place : place + count] + np.uint64(place))
            found ^= found >> np.uint64(29)
    return found


def salted(channel: str, hashes: Hashes) -> Hashes:
    """Mix the hashes of words with the channel's salt, so that channels have different fingerprints."""
    with np.errstate(over="ignore"):
        mixed = (hashes ^ _SALTS[channel]) * _MIX
    return mixed ^ (mixed >> np.uint64(31))


def pairs(channel: str, name: bytes, words: Iterable[bytes]) -> Hashes:
    """The fingerprints of a channel for the pairs of ``name`` with each of the words."""
    return _paired(channel, hashes_of([name]), hashes_of(words))


def text_fingerprints(text: bytes) -> Hashes:
    """All fingerprints of a text, sorted, without duplicates."""
    return unique(np.concatenate([_block_fingerprints(block) for block in _blocks(text)]))


def _block_fingerprints(block: bytes) -> Hashes:
    hashes = hashes_in(block)
    found = (head for header in _HEADERS for head in header.findall(block))
    heads = [(name, set(_WORD.findall(parameters))) for name, parameters in found]
    names = np.repeat(hashes_of(name for name, _ in heads), [len(parameters) for _, parameters in heads])
    signatures = _paired("signature", names, hashes_of(chain.from_iterable(parameters for _, parameters in heads)))
    return np.concatenate([windows(hashes), salted("word", unique(hashes)), signatures])


def code_fingerprints(codes: Sequence[CodeShape]) -> Hashes:
    """All fingerprints of some code objects, sorted, without duplicates.

    All code objects of a file are passed in one call: a call of numpy costs as much as hashing hundreds of words, and
    most code objects have few words.
    """
    names = hashes_of(_encoded(code.name for code in codes))
    qualified = hashes_of(_encoded(f"{code.enclosing}.{code.name}" for code in codes))
    lengths = [len(code.words) for code in codes]
    words = hashes_of(_encoded(chain.from_iterable(code.words for code in codes)))
    parameters = hashes_of(_encoded(chain.from_iterable(code.parameters for code in codes)))
    has_scope = np.repeat([bool(code.enclosing) for code in codes], lengths)
    return unique(
        np.concatenate(
            [
                _paired("code", np.repeat(names, lengths), words),
                _paired("signature", np.repeat(names, [len(code.parameters) for code in codes]), parameters),
                _paired("member", np.repeat(qualified, lengths)[has_scope], words[has_scope]),
                salted("word", np.concatenate([words, names])),
            ]
        )
    )


def _encoded(words: Iterable[str]) -> Iterator[bytes]:
    return (word.encode(errors="replace") for word in words)


def _paired(channel: str, names: Hashes, words: Hashes) -> Hashes:
    """The fingerprints of a channel for the pairs of each name with the word at the same index."""
    with np.errstate(over="ignore"):
        return salted(channel, words + names * _MIX)


def _blocks(text: bytes) -> Sequence[bytes]:
    """Split a large text into blocks, to limit memory. They overlap by 200 bytes, so that no window is lost."""
    if len(text) <= _BLOCK:
        return [text]
    starts = range(0, len(text), _BLOCK)
    return [text[max(0, start - 200) : start + _BLOCK] for start in starts]
