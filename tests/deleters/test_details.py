"""Whether a text gives a detail in a form that points to it, and what is told of what the code writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.statement.details import (
    PLACEHOLDERS,
    TIME_FORMAT,
    is_named,
    lines_by_symbol,
    locate,
    locate_all,
)
from excise.deleters.statement.problem_statement import write_statement
from excise.deleters.statement.related_code import known_from_rest
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import Deletion, Feature, FeatureKind, GivenBy, Need, NeedKind

from .planned_deletions import REPO, delete_symbol


def test_a_text_that_looks_like_a_keyword_is_given_as_a_text_alone() -> None:
    need = Need(kind=NeedKind.TEXT, word="size=", template="Bag({…}, size={…})", owner="a.py::A", tests=())
    assert not is_named(need, "x = Bag(size=3); x.add(1)")
    assert is_named(need, "Texts that it reads or writes: 'Bag({…}, size={…})'")
    assert is_named(need, "It writes 'size=' first.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(string_type='toon')  # {}", False),
        ("It reads 'toon' and 'json'.", False),
        ("Raises `BoxError`; the message contains 'toon'.", True),
        ("Where there is no 'toon' it raises BoxError.", True),
    ],
)
def test_a_word_of_a_message_is_given_by_what_is_said_of_the_message(text: str, expected: bool) -> None:
    message = "toon is unavailable, install it"
    need = Need(kind=NeedKind.MESSAGE, word="toon", template=message, owner="a.py::A", tests=())
    assert is_named(need, text) is expected
    assert is_named(replace(need, word="is unavailable"), "It says that toon is unavailable.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Implement `Checker.add`", False),
        ("Since version 2, Checker.add is deprecated without replacement.", False),
        ("Checker.add raises an error.", False),
        ("Call `Checker.add(x, by=1)`.", False),
        ("It says 'Checker.add is deprecated.' first.", True),
        ("- Warns with `UserWarning`; the message contains 'Checker.add'.", True),
    ],
)
def test_the_name_of_the_code_says_nothing_of_a_message_with_it(text: str, *, expected: bool) -> None:
    message = "Checker.add is deprecated. Call another one."
    need = Need(kind=NeedKind.MESSAGE, word="Checker.add", template=message, owner="a.py::Checker.add", tests=())
    assert is_named(need, text) is expected
    assert is_named(replace(need, word="add"), text) is expected


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("total", "The total number of items.", False),
        ("total", "Its `total` is the sum.", True),
        ("total", "As in `sum(total, unit)`: `total` is a number.", False),
        ("total", "As in `sum(count, unit)`: `total` is a number.", True),
        ("total", "Reads self.total first.", True),
        ("total", "def add(self, total)", False),
        ("total_size", "def add(self, total_size=3)", False),
        ("total", "class Heap:\n    total: int = 0", True),
        ("total_size", "The total_size of items.", True),
    ],
)
def test_neither_a_word_of_prose_nor_a_parameter_is_an_attribute(word: str, text: str, expected: bool) -> None:
    need = Need(kind=NeedKind.ATTRIBUTE, word=word, owner="a.py::A", tests=())
    assert is_named(need, text) is expected


SOURCE = (
    "import sys\n\n\ndef correct(parser, short, old=False):\n    name = 'corona' if old else 'corona nova'\n"
    "    print(f'NB: corrected {short} to {name}')\n    print('lost', file=sys.stderr)\n"
    "    if not short:\n        parser.exit(1, 'nothing')\n    return name\n"
)
TESTS = (
    "import m\nimport pytest\n\n\ndef test_a():\n"
    "    with pytest.raises(SystemExit) as exit:\n        m.correct(p, '')\n"
    "    assert exit.value.code == 1\n    assert m.correct(p, 'x', True) == 'corona'\n"
)


def test_what_decides_between_texts_what_is_printed_and_the_exit_status_are_told() -> None:
    codebase = PythonCodebase.from_texts({"m.py": SOURCE, "test_m.py": TESTS})
    needs = Python().find_needs(codebase, ("m.py::correct",), ["test_m.py::test_a"])
    symbol = codebase.symbols()["m.py::correct"]
    lines = "\n".join(lines_by_symbol(locate(needs, "", "", codebase), [symbol], codebase)[symbol.symbol_id])
    assert "- Raises `SystemExit(1)`" in lines
    assert "`'corona' if old else 'corona nova'`" in lines
    assert "`'NB: corrected {short} to {name}'`" in lines
    assert "lost" not in lines


RETURNING = """\
def _plain(x):
    return x


def made(kind):
    def turn(x, *, by=None):
        return _plain(x), by

    return turn


def wrapped(f):
    def inner(*args, **kwargs):
        return f(*args)

    return inner


def copied(x):
    def plain():
        return x

    copied = plain()
    return copied
"""


def test_the_function_that_a_function_returns_is_shown() -> None:
    test = "import m\n\n\ndef test_m():\n    assert m.made\n"
    codebase = PythonCodebase.from_texts({"m.py": RETURNING, "test_m.py": test})
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py", tests), REPO, tests).text
    assert "```python\ndef made(kind):\n    def turn(x, *, by=None)  # it returns this function\n```" in text
    assert text.count("it returns this function") == 1  # ``copied`` returns what its variable of that name holds
    assert "```python\ndef wrapped(f)\n```" in text


def without_branch(symbol: str, gone: str) -> Deletion:
    """The deletion of a path through a function."""
    return Deletion(
        feature=Feature(
            feature_id="f", kind=FeatureKind.FUNCTION, tier=0, entry=(symbol,), symbols=(symbol,), tests=()
        ),
        deletion_id="d",
        deleter="path",
        deleter_version=1,
        source_patch="",
        hide_patch="",
        removed=(symbol,),
        hidden=(),
        text=((f"{symbol}#part1", gone),),
    )


def test_messages_in_two_texts_that_are_gone_are_not_known_from_the_rest() -> None:
    gone = 'if x > 1:\n    raise ValueError(\n        f"it is too"\n        f" large: {x}"\n    )\n'
    needs = [
        Need(kind=NeedKind.MESSAGE, word=word, owner="m.py::f", tests=("t",))
        for word in ("it is too large: ", "it is too small")
    ]
    known = known_from_rest(needs, without_branch("m.py::f", gone))
    assert [need.given for need in known] == [None, GivenBy.TREE]


def test_a_branch_that_stays_does_not_tell_texts_of_the_one_that_is_gone() -> None:
    gone = "    if unit == 'second':\n        return say('now')\n"
    rest = "    if unit == 'auto':\n        return say('now')\n    return say('later')\n"
    codebase = PythonCodebase.from_texts({"m.py": f"def f(unit):\n{gone}{rest}"})
    needs = [Need(kind=NeedKind.TEXT, word=word, owner="m.py::f", tests=("t",)) for word in ("now", "later")]
    found = locate_all(needs, without_branch("m.py::f", gone), "", codebase)
    assert {each.word: each.given for each in found} == {"now": GivenBy.DETAILS, "later": GivenBy.TREE}


@pytest.mark.parametrize(("word", "given"), [("rb", GivenBy.CONVENTION), ("w", GivenBy.DETAILS)])
def test_how_a_file_is_opened_is_known_from_python(word: str, given: GivenBy) -> None:
    source = "def load(path):\n    with open(path, 'rb') as file:\n        return file.read() + b'w', 'w'\n"
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": "def test_a():\n    assert 1\n"})
    need = Need(kind=NeedKind.TEXT, word=word, owner="m.py::load", tests=("test_m.py::test_a",))
    assert [each.given for each in locate([need], "", "", codebase)] == [given]


@pytest.mark.parametrize(
    ("line", "is_filled_in"),
    [
        ("'%s: %d'", True), ("'took %d ms at %p'", True), ("'bad %v in %q'", True), ("'%5d%%a done'", True),
        ("'%-d %b %Y'", False), ("'%d %B %Y'", False), ("'%Y-%m-%dT%H:%M:%S'", False), ("'100 %'", False),
    ],
)  # fmt: skip
def test_formats_of_times_are_not_filled_in(line: str, *, is_filled_in: bool) -> None:
    text = TIME_FORMAT.sub("", f"- Texts that it reads or writes: `{line}`.")
    assert (PLACEHOLDERS["`%s`"].search(text) is not None) is is_filled_in


def test_punctuation_of_a_message_is_not_listed_beside_it() -> None:
    codebase = PythonCodebase.from_texts({"m.py": SOURCE})
    symbol = codebase.symbols()["m.py::correct"]

    def message(word: str, template: str = "") -> Need:
        need = Need(kind=NeedKind.MESSAGE, word=word, template=template, owner="m.py::correct", tests=())
        return replace(need, exception="KeyError", given=GivenBy.DETAILS)

    needs = [message("has no name", '"{x}" has no name.'), message('"'), message("."), message("!!")]
    (line,) = lines_by_symbol(needs, [symbol], codebase)[symbol.symbol_id]
    assert line == "- Raises `KeyError`; messages contain `'\"{x}\" has no name.'`, `'!!'`."


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("The element and all of its descendants.", False), ("Cached in order\n> to save time.", False),
        ("Whether it has alphabetic characters.", False), ("They are some sort of key.", False),
        ("In descending order.", True), ('Gone as well (`"sort"`).', False),
        ("Sorts the rows.", True), ("Keeps the order in which they came.", True),
        ("In order to be found, they are sorted.", True),
    ],
)  # fmt: skip
def test_order_is_told_by_words_on_sorting_alone(said: str, *, is_told: bool) -> None:
    codebase = PythonCodebase.from_texts({"m.py": "def f(x):\n    return sorted(x, key=len)\n"})
    need = Need(kind=NeedKind.ORDER, word="sorted(…, key=len)", owner="m.py::f", tests=("test_m.py::test_a",))
    found = [each.given for each in locate([need], said, "", codebase)]
    assert found == [GivenBy.STATEMENT if is_told else GivenBy.DETAILS]


@pytest.mark.parametrize(("word", "is_told"), [('")', True), ('")"', False), ("]", False), (">>", False), ("(", False)])
def test_punctuation_at_the_end_of_a_shown_outcome_is_told(word: str, *, is_told: bool) -> None:
    need = Need(kind=NeedKind.TEXT, word=word, owner="m.py::f", tests=("t",))
    assert is_named(need, "f(1)  # 'Path(\"a\")'\nf('a>>b')  # [3]\n") is is_told
    assert not is_named(need, "f(1)  # 'Path(\"a\")'\n", is_code=True)


def test_it_is_said_that_a_method_sets_an_attribute() -> None:
    """Its name alone says nothing where the other code of the class has it, too."""
    source = (
        "class Link:\n    def __init__(self):\n        self.state = 1\n\n"
        "    def close(self, other):\n        self.state = 2\n        other.rest = 3\n\n"
        "    def fail(self):\n        self.state, self.why = 3, 4\n        print(self.end, end=1)\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    symbols = codebase.symbols()

    def lines(shown: str, *needs: tuple[str, str]) -> list[str]:
        found = [
            Need(kind=NeedKind.ATTRIBUTE, word=word, owner=f"m.py::Link.{owner}", tests=("t",)) for word, owner in needs
        ]
        (listed,) = lines_by_symbol(locate(found, "", source, codebase), [symbols[shown]], codebase).values()
        return listed

    assert lines("m.py::Link.close", ("state", "close")) == ["- Sets `self.state`."]
    assert lines("m.py::Link.fail", ("why", "fail"), ("state", "fail")) == ["- Sets `self.state`, `self.why`."]
    assert lines("m.py::Link", ("state", "close")) == ["- Attributes: `state`."]


@pytest.mark.parametrize(
    ("signature", "related", "given"),
    [
        ("self, **kwargs", "def other(self, whole=False):\n    return whole\n", GivenBy.DETAILS),
        ("self, **kwargs", "def other(self):\n    return self.run(f(1), whole=True)\n", GivenBy.TREE),
        ("self, **kwargs", "def other(self):\n    return self.go(whole=True)\n", GivenBy.DETAILS),
        ("self, **kwargs", "class Other:\n    def run(self, whole=False):\n        return whole\n", GivenBy.DETAILS),
        ("self, **kwargs", "def other(self):\n    return self.run(whole==True)\n", GivenBy.DETAILS),
        ("self, whole=False", "def other(self):\n    return self.go(whole=True)\n", GivenBy.TREE),
    ],
)
def test_a_keyword_of_another_function_is_not_one_that_code_takes_among_any(
    signature: str, related: str, given: GivenBy
) -> None:
    code = f"class Form:\n    def run({signature}):\n        return 1\n"
    need = Need(kind=NeedKind.KEYWORD, word="whole", owner="m.py::Form.run", tests=("t",))
    (found,) = locate([need], "", related, PythonCodebase.from_texts({"m.py": code}))
    assert found.given is given


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("trace([1])  # '/a/b'", GivenBy.STATEMENT),
        ("> >>> trace([1])\n> '/a/b'", GivenBy.STATEMENT),
        ("It begins with `/`.", GivenBy.STATEMENT),
        ("trace('a/b')  # 'a'", GivenBy.DETAILS),
        ("other([1])  # '/a/b'", GivenBy.DETAILS),
        ("'a'/'b'", GivenBy.DETAILS),
        ("[ '/' ]", GivenBy.STATEMENT),
    ],
)
def test_a_sign_is_given_by_an_example_of_the_code_with_it(said: str, given: GivenBy) -> None:
    need = Need(kind=NeedKind.TEXT, word="/", owner="m.py::trace", tests=())
    (found,) = locate([need], said, "x = '/'", PythonCodebase.from_texts({"m.py": "def trace(x):\n    return x\n"}))
    assert found.given is given


@pytest.mark.parametrize(("sign", "text"), [("`", "```python\n```"), ('"', '"""Reads."""'), (":", '{"a":"b"}')])
def test_fences_and_what_joins_two_texts_are_no_signs(sign: str, text: str) -> None:
    need = Need(kind=NeedKind.TEXT, word=sign, owner="m.py::trace", tests=())
    assert not is_named(need, text)
    assert is_named(need, f"{text}\nIt has {sign!r}.")


def test_the_name_of_a_class_says_nothing_of_a_message_of_its_making() -> None:
    need = Need(kind=NeedKind.MESSAGE, word="Box", template="Box is old", owner="a.py::Box.__init__", tests=())
    assert not is_named(need, "Box raises an error.")


@pytest.mark.parametrize(("docstring", "expected"), [("Adds.", GivenBy.DETAILS), ("Adds; panics.", GivenBy.STATEMENT)])
def test_a_panic_is_told_unless_the_docstring_does(docstring: str, expected: GivenBy) -> None:
    codebase = PythonCodebase.from_texts({"m.py": f'def add(x):\n    """{docstring}"""\n    return x\n'})
    panic = Need(kind=NeedKind.EXCEPTION, word="panic", owner="m.py::add", tests=())
    found = locate(
        [panic, replace(panic, kind=NeedKind.MESSAGE, word="too big", exception="panic")], docstring, "", codebase
    )
    assert [need.given for need in found] == [expected, GivenBy.DETAILS]
    if expected is GivenBy.DETAILS:
        lines = lines_by_symbol(found, [codebase.symbols()["m.py::add"]], codebase)
        assert lines == {"m.py::add": ["- Panics; the message contains `'too big'`."]}


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", ""), ("    # a 'b c'\n", ""), ("    x += ', '\n", ", among others"), ("    x += 'The'\n", "")],
)
def test_texts_are_listed_as_some_of_them_where_the_code_has_more(more: str, expected: str) -> None:
    source = f"def f(x):\n    'Does \"all\" of it.'\n{more}    return 'The end' + x\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    need = Need(kind=NeedKind.TEXT, word="The end", owner="m.py::f", tests=("t.py::t",), given=GivenBy.DETAILS)
    found = lines_by_symbol([need], [codebase.symbols()["m.py::f"]], codebase)
    assert found == {"m.py::f": [f"- Texts that it reads or writes{expected}: `'The end'`."]}
