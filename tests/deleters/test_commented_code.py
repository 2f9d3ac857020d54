"""Commented-out code of a removed part of a function."""

from __future__ import annotations

import pytest

from excise.deleters.python.edits.commented_code import without_commented_parts

BEFORE = """\
def separator(self):
        \"\"\"As below.

        # return Kind.form, Kind.more, "&"
        \"\"\"
        if self == Kind.label:
            return "."
        if self in (Kind.form, Kind.more):
            return "&"
{comments}        return ","
"""
PART = '        if self in (Kind.form, Kind.more):\n            return "&"\n'


def left(comments: str) -> str:
    """What is left of comments above the last statement of the function without the part."""
    before = BEFORE.format(comments=comments)
    after = before.replace(PART, "")
    first, last = BEFORE.replace(PART, "").split("{comments}")
    found = without_commented_parts(before, after)
    assert found.startswith(first)
    assert found.endswith(last)
    return found[len(first) : len(found) - len(last)]


CASES = """\
        # TODO: when 3.9 is gone
        # match self:
        #     case Kind.label:
        #         return "."
        #     case (
        #         Kind.form |
        #         Kind.more
        #     ):
        #         return "&"
        #     case _:
        #         return ","
"""
GONE = CASES[CASES.index("        #     case (") : CASES.index("        #     case _")]


def test_a_case_in_comments_goes_with_the_part_that_it_says() -> None:
    assert left(CASES) == CASES.replace(GONE, "")


ARMS = """\
        # if self == Kind.label: return "."
        # elif self in (Kind.form, Kind.more):
        #     return "&"
        # else: return ","
"""


def test_an_arm_in_comments_goes_alone() -> None:
    lines = ARMS.splitlines(keepends=True)
    assert left(ARMS) == "".join([lines[0], lines[3]])
    assert left("".join(lines[1:]).replace("elif", "if")) == "".join(lines[1:]).replace("elif", "if")


@pytest.mark.parametrize(
    ("comment", "is_gone"),
    [
        ('        # return "&" if self in {Kind.form, Kind.more} else None\n', True),
        ('#       if self is Kind.form or self is Kind.more: return "&"\n', True),
        ("        # Kind.form, Kind.more\n", False),
        ("        # form and more have another one\n", False),
        ('        # if self == Kind.label: return "."\n', False),
        ('        # return "&"\n', False),
        ('        # return other(Kind.form, "&", "?", by=third, and_also=fourth)\n', False),
    ],
)
def test_only_code_that_says_most_of_the_part_goes(comment: str, *, is_gone: bool) -> None:
    assert left(comment) == ("" if is_gone else comment)


def test_decorators_do_not_matter_and_what_cannot_be_read_stays() -> None:
    before = "@one\n    @two\n    " + BEFORE.format(comments=CASES)
    after = before.replace(PART, "")
    assert without_commented_parts(before, after) == after.replace(GONE, "")
    assert without_commented_parts("def f(:", after) == after


def test_lines_are_those_of_python() -> None:
    """A form feed ends none, and what looks like a comment in a text stays."""
    kept = 's = "\u2028\u2028"\n    t = """\n# return alpha(beta)\n"""\n    # note\n    return s + t\n'
    before = f"def f(x):\n    if x:\n        return alpha(beta)\n    {kept}"
    after = f"def f(x):\n    {kept}"
    assert without_commented_parts(before, after) == after


@pytest.mark.parametrize("comment", ["# elif x == 1: y\n    " * 1000, f"# {'-' * 100_000}1\n    "])
def test_odd_comments_stay(comment: str) -> None:
    after = f"def f(x):\n    {comment}return 1\n"
    assert without_commented_parts("def f(x):\n    if x:\n        return alpha(beta)\n    return 1\n", after) == after
