"""Fingerprints of texts: equal words have equal hashes, wherever they stand."""

from __future__ import annotations

import pytest

from excise.verifiers.leaks.decoders.base64_runs import Base64
from excise.verifiers.leaks.decoders.strings import affected_lines
from excise.verifiers.leaks.fingerprints import hashes_in, hashes_of, text_fingerprints, words_of
from excise.verifiers.leaks.fragments import DecodingLimits


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" \n",
        b"one",
        b"  12 | def f(a_1, *b):\n> 13: return a_1 + 'caf\xc3\xa9'\n-- 7) x\n8 9",
        b"short " + b"x" * 99 + b" " + b"x" * 100 + b" " + b"x" * 300_000 + b" end",
    ],
)
def test_the_words_of_a_text_have_the_hashes_of_these_words_alone(text: bytes) -> None:
    assert hashes_in(text).tolist() == hashes_of(words_of(text)).tolist()


def test_other_words_have_other_hashes() -> None:
    words = [b"ab", b"ba", b"a", b"b", b"aab", b"aba", b"", b"x" * 99, b"x" * 100]
    assert len(set(hashes_of(words).tolist())) == len(words)
    assert hashes_of([b"x" * 101]).tolist() == hashes_of([b"x" * 100]).tolist(), "what is beyond does not count"


def test_line_numbers_are_no_words() -> None:
    assert words_of(b"1 one\n 22: two 3\n#| 4) four\n5\n") == [b"one", b"two", b"3", b"four", b"5"]


@pytest.mark.parametrize(
    ("text", "has_head"),
    [(b"def f(a)", True), (b"x = 1\nclass f(a)", True), (b"undef f(a)", False), (b"undef f(def g(b)", True)],
)
def test_heads_of_definitions_have_fingerprints_of_their_own(text: bytes, has_head: bool) -> None:
    words = text_fingerprints(b" ".join(words_of(text)))
    assert (len(text_fingerprints(text)) > len(words)) is has_head


def test_base64_is_found_wherever_it_begins() -> None:
    run = b"QUI3" * 20
    found = list(Base64().parts(b"x = '" + run + b"'; y = " + run + b"\n# " + run + b"; " + run[:59], DecodingLimits()))
    assert found == [b"AB7" * 20, b"AB7" * 40], "the second run goes on in the next line, the last one is short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a\n" * 9 + b"<b>\n" + b"c\n", b"<b>\n"),
        (b"a\n" * 9 + b"&", b"&"),
        (b"<\n&\nc\n", b"<\n&\nc\n"),
        (b"", b""),
    ],
)
def test_lines_with_marks_are_decoded_alone_where_they_are_few(text: bytes, expected: bytes) -> None:
    assert affected_lines(text, b"<&") == expected
