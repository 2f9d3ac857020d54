"""Paths through functions that can go alone."""

from __future__ import annotations

import pytest

from excise.deleters.python.paths import longest_path
from excise.extractors.python.analysis.codebase import PythonCodebase

SHOW = """\
class Show:
    def run(self, rows, form):
        first = rows[0]
        text = str(form)
{arms}
        return text + first
"""
OTHERS = "        if form in 'bc':\n            text = 'b'\n        if form.startswith('d'):\n            text = 'd'\n"
"""Two alternatives to another one."""
BODY = "            a = 1\n            b = a + 2\n            text = str(b)\n"


def path(text: str, name: str = "Show.run") -> tuple[str, str, int] | None:
    codebase = PythonCodebase.from_texts({"m.py": text})
    found = longest_path(codebase, codebase.symbols()[f"m.py::{name}"])
    return None if found is None else (found.name, found.text, found.loc)


def run(arms: str) -> str:
    return SHOW.format(arms=arms.rstrip("\n"))


def method(arms: str) -> str:
    """The text of the method with these arms, as it begins: without indentation."""
    return run(arms).partition("    def")[2].rstrip("\n").join(("def", ""))


def test_the_longest_arm_goes_with_its_comment() -> None:
    first = "        if form == 'a':\n            text = 'a'\n            text += 'b'\n            text += 'c'\n"
    second = "        # for b\n        elif form == 'b':\n            # three steps\n"
    last = "        else:\n            text = 'z'\n"
    assert path(run(first + second + BODY + "            text += '!'\n" + last)) == (
        "form == 'b'",
        method(first + last),
        5,
    )


def test_the_next_arm_takes_the_place_of_the_first() -> None:
    rest = "if form == 'b':\n            text = 'b'\n        else:\n            text = 'z'\n"
    found = path(run(f"        if form == 'a':\n{BODY}        el{rest}"))
    assert found == ("form == 'a'", method(f"        {rest}"), 4)


def test_comments_above_and_inside_go_too() -> None:
    rest = "if form == 'b':\n            text = 'b'\n        else:\n            text = 'z'\n"
    above = "        # a comes first\n#   if form == 'c': text = 'c'\n"
    found = path(run(f"{above}        if form == 'a':\n{BODY}            # and no more\n        el{rest}"))
    assert found == ("form == 'a'", method(f"        {rest}"), 4)
    lines = f"{above}        if form == 'a':\n{BODY}            # and no more\n        # for all\n"
    found = path(run(lines + OTHERS))
    assert found == ("form == 'a'", method("        # for all\n" + OTHERS), 4)


def test_a_condition_that_nothing_else_follows_goes_as_a_statement() -> None:
    found = path(run(f"        if isinstance(form, str) and \\\n                rows:\n{BODY}{OTHERS}"))
    assert found is not None
    assert found[0] == "isinstance(form, str) and \\ rows"
    assert "a = 1" not in found[1]
    assert found[1].count("\n") == 7


def test_a_case_goes_but_not_the_last() -> None:
    body = BODY.replace("            ", "                ")
    cases = "".join(f"            case '{name}':\n{text}" for name, text in (("a", body), ("b", body + body)))
    wild = f"            case _:\n{body}{body}{body}"
    found = path(run(f"        match form:\n{cases}{wild}"))
    assert found is not None
    assert (found[0], found[2]) == ("'b'", 7)
    assert found[1].count("case") == 2


IF = f"        if form == 'a':\n{BODY}"
NO_PATHS = {
    "it is one of two": IF,
    "it is a flag": f"        if form:\n{BODY}{OTHERS}",
    "it is the rule": f"        if not form:\n{BODY}{OTHERS}",
    "one only asks whether there is one": (
        f"        if form is None:\n            form = 'b'\n{IF}        elif form == 'b':\n            form = 1\n"
    ),
    "it compares sizes": f"        if form < 'a':\n{BODY}{OTHERS}",
    "it is short": "        if form == 'a':\n            text = 'a'\n",
    "a variable is read nowhere else": f"        size = 3\n{IF}            text *= size\n{OTHERS}",
    "it is half of a choice": f"{IF}        else:\n            text = 'z'\n",
    "it is no arm": f"        for row in rows:\n{BODY}",
    "it ends a loop": (
        f"        while True:\n            rows.pop()\n    {IF.replace(' ' * 12, ' ' * 16)}                break\n"
    ),
    "it is in another function": f"        def inner():\n            c = 3\n    {IF.replace(' ' * 12, ' ' * 16)}",
}


@pytest.mark.parametrize("why", NO_PATHS)
def test_what_is_no_path(why: str) -> None:
    assert path(run(NO_PATHS[why])) is None, why


def test_a_function_whose_local_names_are_its_result_has_no_path() -> None:
    source = run(IF + OTHERS)
    assert path(source) is not None
    assert path(source.replace("\n        if form", "\n        rows.append(locals())\n        if form", 1)) is None


def test_a_generator_stays_one() -> None:
    arm = "    if x == 1:\n        yield first\n        yield second\n        yield 3\n"
    arm += "    if x == 2:\n        first = 2\n    if x == 3:\n        first = 3\n"
    text = f"def f(x):\n    first = 1\n    second = 2\n{arm}    return first + x\n"
    assert path(text, "f") is None
    assert path(text.replace("return first", "yield first + second"), "f") is not None


def test_a_function_keeps_some_code() -> None:
    others = "    if x == 2: return 2\n    if x == 3: return 3\n"
    text = f"def f(x):\n    if x == 1:\n{BODY.replace('            ', '        ')}{others}"
    assert path(text, "f") is None
    assert path(f"{text}    return 4\n", "f") is not None


def test_other_line_endings_and_bytes_stay() -> None:
    found = path(run(f"        if form == 'ä':\n{BODY}{OTHERS}").replace("\n", "\r\n"))
    assert found is not None
    assert found[1] == method(OTHERS).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("last", "more", "is_offered"),
    [
        ("return x in self.known", "", False),
        ("return x in self.known", "    def fill(self):\n        self.known.add(1)\n", True),
        ("return x in self.known", "    def give(self):\n        return use(self.known)\n", True),
        ("return self.all", "", True),
    ],
)
def test_what_alone_fills_a_container_is_no_path(last: str, more: str, *, is_offered: bool) -> None:
    arms = "".join(f"        if x == {n}:\n            y = {n}\n            return y\n" for n in (1, 2))
    filling = "        if x == 3:\n            z = x + 1\n            z *= 2\n            self.known.add(z)\n"
    source = (
        f"class Box:\n    def __init__(self):\n        self.known = set()\n        self.all = 1\n\n"
        f"    def find(self, x):\n{arms}{filling}        {last}\n\n{more}"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = longest_path(codebase, codebase.symbols()["m.py::Box.find"])
    assert (found is not None and "known.add" not in found.text) is is_offered
