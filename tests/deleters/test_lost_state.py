"""Which variables of a function have lost their sense when a part of it is gone."""

from __future__ import annotations

import pytest

from excise.deleters.python.lost_state import has_lost_sense


@pytest.mark.parametrize(
    ("part", "rest", "is_lost"),
    [
        ("    x = b\n", "    return a, x\n", True),
        ("    x = b\n", "    return a, b, x\n", False),
        ("    flag = True\n", "    if flag:\n        return 1\n    return x, a, b\n", True),
        ("    flag = a\n", "    flag = b\n    return flag, x, a\n", False),
        ("    flag = False\n", "    return flag, x, a, b\n", False),
        ("    seen.append(a)\n", "    for each in seen:\n        x += each\n    return x, a, b\n", True),
        ("    seen[a] = 1\n", "    return sorted(seen), x, a, b\n", True),
        ("    seen.append(a)\n", "    fill(seen)\n    return seen, x, a, b\n", False),
        ("    seen.append(a)\n", "    seen.append(b)\n    return seen, x, a\n", False),
        ("    x += two\n", "    return x, one, a, b\n", True),
        ("    x += two\n", "    return x, one, two, a, b\n", False),
        ("    x += _rest\n", "    return x, one, two, a, b\n", False),
        ("    x = a\n", "    return x, b, lambda: a\n", False),
        ("    if a:\n        x += 1\n", "    if b:\n        x -= 1\n    if x:\n        a = 1\n    return x, a\n", True),
        (
            "    if a:\n        x -= 1\n",
            "    if b:\n        x += 1\n    while x > a:\n        a = 1\n    return x\n",
            True,
        ),
        (
            "    x += 1\n",
            "    if b:\n        x -= 1\n    x += 1\n    if not x:\n        a = 1\n    return x, a\n",
            False,
        ),
        ("    x += 1\n", "    if b:\n        x -= 1\n    return x, a\n", False),
        ("    x -= a\n", "    if b:\n        x += a\n    if x:\n        b = 1\n    return x\n", False),
        ("    x -= 2\n", "    if b:\n        x += 1\n    if x:\n        b = 1\n    return x, a\n", False),
    ],
)
def test_names_are_read_have_several_values_and_content(part: str, rest: str, is_lost: bool) -> None:
    head = "def f(self, a, b):\n    x = start()\n    flag = False\n    seen = []\n    one, two, _rest = start()\n"
    use = "    use(one, two)\n" if "one" not in rest else ""
    known = "" if "flag" in rest else "    use2(flag)\n"
    more = "" if "seen" in rest else "    use3(len(seen))\n"
    text = head + "{}" + use + known + more + rest
    assert has_lost_sense(text.format(part), text.format("")) is is_lost


def test_text_that_is_no_code_says_nothing() -> None:
    assert not has_lost_sense("def f(:\n", "def f(a):\n    pass\n")


def test_the_option_that_a_path_is_for_may_stay_unread() -> None:
    before = (
        "@wraps\n    def f(self, a, b):\n        if a:\n            b = a + b\n            b += 1\n        return b\n"
    )
    after = "@wraps\n    def f(self, a, b):\n        return b\n"
    assert has_lost_sense(f"    {before}", f"    {after}")
    assert not has_lost_sense(f"    {before}", f"    {after}", ["a"])


def test_deep_text_says_nothing() -> None:
    assert not has_lost_sense("def f(a):\n    return " + "-" * 50_000 + "a\n", "def f(a):\n    pass\n")
