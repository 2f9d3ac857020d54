"""Blocks of tests that a function of the test file makes."""

from __future__ import annotations

import pytest

from excise.extractors.javascript.analysis.test_blocks import blocks_of

HELPER = """function whenSent (type, run) {
  var title = %s
  describe(title, function () {
    before(function () { this.type = type })
    run()
  })
}
"""
TITLE = "!type\n    ? 'when nothing is sent'\n    : 'when sent: ' + type"
CALLS = """describe('parse()', function () {
  whenSent(undefined, function () {
    it('returns', function () { assert.equal(parse(1), 1) })
  })

  whenSent('a, b', function () {
    it('returns', function () { assert.equal(parse(2), 2) })
    it('ends', function () { assert.equal(parse(3), 3) })
  })
})
"""


def owners(source: str, *tests: str) -> dict[str, list[str]]:
    """Each test to the texts of the innermost blocks that define it; an empty list if there is none."""
    ids = [f"file::{test}" for test in tests]
    found: dict[str, list[str]] = {test: [] for test in ids}
    pending = list(blocks_of(source.encode(), ids).blocks)
    while pending:
        block = pending.pop()
        pending += block.blocks
        for test in block.tests:
            found[test].append(source[block.start : block.end])
    return {test.removeprefix("file::"): texts for test, texts in found.items()}


def test_the_title_is_that_of_the_function_with_what_it_is_given() -> None:
    nothing, sent = "parse()::when nothing is sent::returns", "parse()::when sent: a, b::returns"
    ends, other = "parse()::when sent: a, b::ends", "parse()::when sent: c::returns"
    found = owners(CALLS + "\n" + HELPER % TITLE, nothing, sent, ends, other)
    assert ["parse(1)" in text for text in found[nothing]] == [True]
    assert ["parse(2)" in text for text in found[sent]] == [True]
    assert ["parse(3)" in text for text in found[ends]] == [True]
    assert found[other] == []


@pytest.mark.parametrize(
    ("title", "given", "expected"),
    [
        ("'sent ' + type", "'a'", "sent a"),
        ("`sent ${type}!`", "'a'", "sent a!"),
        ("`sent ${type}`", "3", "sent 3"),
        ("type === undefined ? 'none' : 'some'", "undefined", "none"),
        ("type === undefined ? 'none' : 'some'", "'undefined'", "some"),
        ("type ? 'some' : 'none'", "''", "none"),
        ("type", "'a::[b]'", "a:(b)"),
        ("'sent ' + name(type)", "'a'", "sent whatever"),
        ("'sent ' + type", "OTHER", "sent whatever"),
    ],
)
def test_titles_are_joined_of_texts_variables_and_choices(title: str, given: str, expected: str) -> None:
    source = f"whenSent({given}, () => {{\n  it('returns', () => {{ parse() }})\n}})\n{HELPER % title}"
    test = f"{expected}::returns"
    assert owners(source, test)[test] == ["it('returns', () => { parse() })"]
    assert owners(source, "is another::returns")["is another::returns"] == []


@pytest.mark.parametrize(
    "helper",
    [
        "const whenSent = (type, run) => describe('sent ' + type, run)\n",
        "function whenSent (type, run) {\n  return context('sent ' + type, () => { run.call(this) })\n}\n",
    ],
)
def test_the_function_may_be_handed_on_or_called(helper: str) -> None:
    source = f"{helper}whenSent('a', function () {{\n  it('returns', function () {{ parse() }})\n}})\n"
    assert owners(source, "sent a::returns")["sent a::returns"] == ["it('returns', function () { parse() })"]
