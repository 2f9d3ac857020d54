"""Which removed code the words of a statement describe."""

from __future__ import annotations

import pytest

from excise.deleters.python.statement_words import PythonWords
from excise.deleters.statement.descriptions import BY_COMMENTS_INSIDE, described, description, undescribed
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.types import Visibility

from .planned_deletions import REPO, delete_symbol

TOLD = ("test_m.py::test_m",)
SILENT = {
    "m.py": (
        "class Base:\n    def turn(self):\n        '''Turn it around, slowly.'''\n\n\n"
        "class Wheel(Base):\n    def turn(self):\n        return 1\n\n    def stop(self):\n        return 2\n\n"
        "    def __len__(self):\n        return 3\n\n    def __lt__(self, other):\n        return 4\n\n\n"
        "class Stack(list):\n    def insert(self, index, item):\n        self += [item]\n\n\n"
        "# Rounds a number, halves away from zero.\ndef near(x):\n    return x\n\n\n"
        "def far(x):\n    # x = near(x)\n    return x\n\n\n"
        "def deep(x):\n    # Digs as deep as the rock allows.\n    return x\n\n\n"
        "def used(x):\n    return x\n\n\ndef user(x):\n    return used(x)\n"
    ),
    "test_m.py": "import m\n\n\ndef test_m():\n    assert m\n",
}


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("Wheel.turn", 1.0), ("Wheel.stop", 0.0), ("Wheel.__len__", 1.0), ("Wheel.__lt__", 0.0), ("Stack.insert", 1.0),
        ("near", 1.0), ("far", 0.0), ("deep", 1.0), ("used", 1.0), ("Wheel", 1 / 2),
    ],
)  # fmt: skip
def test_what_is_described_in_words(name: str, share: float) -> None:
    codebase = PythonCodebase.from_texts(SILENT)
    tests = ("test_m.py::test_m",)
    found = write_statement(codebase, delete_symbol(codebase, f"m.py::{name}", tests), REPO, tests)
    assert found.described_share == pytest.approx(share)


def test_a_comment_stands_in_for_a_docstring_and_examples_are_code() -> None:
    codebase = PythonCodebase.from_texts(SILENT)
    tests = ("test_m.py::test_m",)
    deletion = delete_symbol(codebase, "m.py::near", tests)
    text = write_statement(codebase, deletion, REPO, tests, examples=["near(1.5)  # 2"]).text
    assert "> Rounds a number, halves away from zero." in text
    assert "## Examples" in text
    assert "```python\nnear(1.5)  # 2\n```" in text
    hidden = write_statement(codebase, deletion, REPO, tests, Visibility.SIGNATURE).text
    assert "Rounds a number" not in hidden


@pytest.mark.parametrize(
    ("inside", "shown", "share"),
    [
        ("    # Looks each word up once\n    # and keeps the longest one.\n    return x\n",
         "Looks each word up once\n> and keeps the longest one.", 1),
        ("    y = 1\n    # Looks each word up once and keeps the longest.\n    return x\n",
         "own words; where the tests differ, the tests decide):\n> Looks each word up once and keeps the longest.", 1),
        ("    y = 1\n    # Type by type, the longest of all is looked up.\n    return x\n", "> Type by type, the", 1),
        ("    y = 1\n    # Each word counts.\n    return x\n", "> Each word counts.", 0),
        ("    y = 1\n    # TODO: look each word up once and keep the longest\n    return x\n", "", 0),
        ("    y = 1\n    # y = look(each, word, up, once, keeps, longest)\n    return x\n", "", 0),
        ("    y = 1\n    # y = look(each, word, up,\n    #     once, keeps, longest)\n    return x\n", "", 0),
        ("    # docstr-coverage: looks each word up once and keeps the longest\n    return x\n", "", 0),
        ("    y = 1\n    # noqa: look each word up once and keep the longest\n    return x\n", "", 0),
        ("    # https://example.org/look-each-word-up-once/keep-the-longest\n    return x\n", "> https://", 0),
    ],
    ids=["first", "inside", "type", "few", "plan", "code", "lines", "tool", "directive", "address"],
)  # fmt: skip
def test_comments_in_code_describe_it(inside: str, shown: str, share: float) -> None:
    codebase = PythonCodebase.from_texts({**SILENT, "m.py": f"def longest(x):\n{inside}\n\ndef other():\n    pass\n"})
    tests = ("test_m.py::test_m",)
    found = write_statement(codebase, delete_symbol(codebase, "m.py::longest", tests), REPO, tests)
    assert shown in found.text
    assert ("> " in found.text) == bool(shown)
    assert found.described_share == share


def test_long_functions_that_nothing_describes_are_named() -> None:
    body = "    y = x + 1\n    return y * 2\n"
    short, told = "def short(x):\n    return x\n", f"def told(x):\n    'Doubles and adds two.'\n{body}"
    files = {**SILENT, "m.py": f"def long(x):\n{body}\n\n{short}\n\n{told}"}
    codebase = PythonCodebase.from_texts(files)
    tests = ("test_m.py::test_m",)
    found = write_statement(codebase, delete_symbol(codebase, "m.py", tests), REPO, tests)
    assert found.undescribed == ("m.py::long",)
    assert found.described_share == pytest.approx(3 / 8)


@pytest.mark.parametrize("name", ["_part", "part"])
@pytest.mark.parametrize(("tests", "is_silent"), [("m.told(1)", False), ("m.{name}(1)", True)])
def test_functions_that_only_removed_code_needs_are_told_by_it(name: str, tests: str, is_silent: bool) -> None:
    source = (
        f"def told(x):\n    'Doubles and adds two.'\n    return {name}(x)\n\n\n"
        f"def {name}(x):\n    y = x + 1\n    return _more(y)\n\n\ndef _more(y):\n    z = y * 2\n    return z\n"
    )
    tests, silent = tests.format(name=name), (f"m.py::{name}",) if is_silent else ()
    files = {"m.py": source, "test_m.py": f"import m\n\n\ndef test_m():\n    assert {tests}\n"}
    codebase = PythonCodebase.from_texts(files)
    found = write_statement(codebase, delete_symbol(codebase, "m.py", TOLD), REPO, TOLD)
    assert found.undescribed == silent
    assert found.described_share == pytest.approx(1.0 if not silent else 2 / 5)


@pytest.mark.parametrize(
    ("body", "is_data"),
    [
        ("    x.edge = '|'\n    x.corner = \"+\"\n    x.width: int = 3\n    x.rules = Rule.ALL\n    x.draw()\n", True),
        ("    x.edge = '|'\n    x.corner = '+'\n    x.width = 3\n", False),
        (
            "    x.edge = x.a(1)\n    x.corner = x.edge + '+'\n    x.width = 3\n    x.rules = None\n    x.draw()\n",
            False,
        ),
    ],
)
def test_private_functions_that_are_data_need_words(body: str, is_data: bool) -> None:
    source = f"def told(x):\n    'Sets the style.'\n    return _style(x)\n\n\ndef _style(x):\n{body}"
    files = {"m.py": source, "test_m.py": "import m\n\n\ndef test_m():\n    assert m.told(1)\n"}
    codebase = PythonCodebase.from_texts(files)
    found = write_statement(codebase, delete_symbol(codebase, "m.py", TOLD), REPO, TOLD)
    assert found.undescribed == (("m.py::_style",) if is_data else ())


@pytest.mark.parametrize(
    ("docstring", "shown", "share"),
    [
        ("Description omitted.\n\n    @param x description omitted.\n    @return description omitted.", "", 0),
        ("No documentation available yet.", "", 0),
        pytest.param(" " * 20_000 + "x", "", 0, id="blanks"),
        (":param x: TODO\n    :return: todo: say what", "", 0),
        ("Turns it until it fits.\n\n    @param x description omitted.", "> Turns it until it fits.\n\n", 1),
        (":return:\n    :rtype:", "", 0),
        (
            "Turns it until it fits.\n\n    :param x: how\n    :type x:\n    :return:\n        the rest\n    :rtype:",
            "> Turns it until it fits.\n> \n> :param x: how\n> :return:\n>     the rest\n\n",
            1,
        ),
        ("Adds one more.\n\n    :raises ValueError:", "> Adds one more.\n> \n> :raises ValueError:", 1),
        ("Adds one.\n\n    :returns:\n\n        The number.", "> Adds one.\n> \n> :returns:\n> \n>     The number.", 1),
        ("Adds one.\n\n    :param x:\n    The number.", "> Adds one.\n> \n> :param x:\n> The number.", 1),
        ("Says whether the documentation is missing.", "> Says whether the documentation is missing.", 1),
    ],
)
def test_placeholders_describe_nothing(docstring: str, shown: str, share: float) -> None:
    files = {"m.py": f'def odd(x):\n    """{docstring}\n    """\n    return x\n', "test_m.py": SILENT["test_m.py"]}
    codebase = PythonCodebase.from_texts(files)
    found = write_statement(codebase, delete_symbol(codebase, "m.py::odd", TOLD), REPO, TOLD)
    assert found.described_share == share
    assert shown in found.text
    assert "omitted" not in found.text
    assert "TODO" not in found.text


@pytest.mark.parametrize(
    ("base", "name", "expected"),
    [
        ("list", "insert", "Implements or overrides `list.insert`."),
        ("list", "put", ""),
        ("list", "__repr__", ""),
        ("object", "insert", ""),
    ],
)
def test_the_method_of_python_that_one_overrides_is_named(base: str, name: str, expected: str) -> None:
    source = f"class Rows({base}):\n    def {name}(self, *args):\n        return self.rows[args]\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    assert description(codebase, codebase.symbols()[f"m.py::Rows.{name}"]) == (expected, "", "")


@pytest.mark.parametrize(
    ("docstring", "inside"),
    [("Turns it once, to the left.", "Never a second time."), ("Turns it. Never a second time.", "")],
)
def test_comments_say_more_than_the_docstring(docstring: str, inside: str) -> None:
    source = f'def turn(x):\n    """{docstring}"""\n    y = x\n    # Never a second time.\n    return y\n'
    codebase = PythonCodebase.from_texts({"m.py": source})
    assert description(codebase, codebase.symbols()["m.py::turn"]) == ("", docstring, inside)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ("A comment on it says:", "Turn it to the left.", "")),
        ("    # Never a second time.\n", (BY_COMMENTS_INSIDE, "Turn it to the left.\n\nNever a second time.", "")),
        (
            "    # Never a second time.\n    z = y\n    # Never a second time.\n",
            (BY_COMMENTS_INSIDE, "Turn it to the left.\n\nNever a second time.", ""),
        ),
        (
            "    # Never a second time.\n    z = y\n    # Coverage.py cannot tell\n    # that this is executed.\n",
            (BY_COMMENTS_INSIDE, "Turn it to the left.\n\nNever a second time.", ""),
        ),
    ],
)
def test_a_comment_on_the_first_of_several_steps_is_none_on_the_function(more: str, expected: tuple[str, ...]) -> None:
    codebase = PythonCodebase.from_texts(
        {"m.py": f"def turn(x):\n    # Turn it to the left.\n    y = x\n{more}    return y\n"}
    )
    assert description(codebase, codebase.symbols()["m.py::turn"]) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Args:\n            val: The value that is paid.", ("As `Base.pay` says:", "Pays a value in coins.")),
        ("Args:\n            coins (int): How many at most.", ("Implements or overrides `Base.pay`.", "")),
        (":param coins: How many at most.", ("Implements or overrides `Base.pay`.", "")),
        ("It takes few coins.", ("As `Base.pay` says:", "Pays a value in coins.")),
    ],
)
def test_a_description_of_other_parameters_is_not_inherited(words: str, expected: tuple[str, str]) -> None:
    source = (
        "class Base:\n    def pay(self, val, coins=1):\n"
        f'        """Pays a value in coins.\n\n        {words}\n        """\n\n\n'
        "class Own(Base):\n    def pay(self, val, old=False):\n        return val\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = description(codebase, codebase.symbols()["m.py::Own.pay"])
    assert (found[0], found[1].partition("\n")[0]) == expected


def test_all_steps_of_a_long_function_are_quoted() -> None:
    steps = [
        f"{n}. Take the word of place {n}, turn it round, and go on to the next; else return (it) {n};"
        for n in range(20)
    ]
    body = "".join(f"    # {step}\n    x = turn(x)\n    x = more(x)\n" for step in steps)
    codebase = PythonCodebase.from_texts({"m.py": f"def f(x):\n    y = 1\n{body}    return x\n"})
    assert description(codebase, codebase.symbols()["m.py::f"])[1] == "\n\n".join(steps)


def test_comments_of_the_part_that_is_gone() -> None:
    source = "def f(x):\n    y = x\n    # The first way is for small ones.\n"
    source += "    if y:\n        # The second way is for large ones.\n        x = 1\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    symbol = codebase.symbols()["m.py::f"]
    part = source[source.index("    if y") :]
    assert description(codebase, symbol, part) == (BY_COMMENTS_INSIDE, "The second way is for large ones.", "")
    assert "first" in description(codebase, symbol)[1]


@pytest.mark.parametrize(
    ("code", "is_quoted"),
    [
        ("if (text.length < 2) return text;", False),
        ("if (text.length < 2) {\n    throw new Error();\n  }", False),
        ("if (\n    !text ||\n    done(text)\n  ) {\n    return 1;\n  }", False),
        ("if (text.length < 2) {\n    text += 1;\n    return text;\n  }", True),
        ("text += 1;\n  if (!text) return text;", True),
        ("\n  if (!text) return text;", True),
    ],
)
def test_comments_on_guards_of_documented_code_are_not_quoted(code: str, *, is_quoted: bool) -> None:
    body = f"(text) {{\n  const n = 2;\n  // A name has one character at least.\n  {code}\n  return n;\n}}\n"
    for docstring in ("/** Cuts a text where its words end. */\n", ""):
        codebase = JavaScriptCodebase.from_texts({"index.js": f"{docstring}exports.cut = function cut{body}"})
        found = description(codebase, codebase.symbols()["index.js::cut"])
        assert ("A name has" in "".join(found)) is (is_quoted or not docstring)


@pytest.mark.parametrize(
    ("said", "is_described"),
    [
        ("@type {(ps: PropertyKey[]) => boolean}", False),
        ("@param {string} text\n@returns {Promise<string>}", False),
        ("@param {string} text what is to be cut\n@returns {string}", True),
        ("@returns {string} the first half", True),
        ("@returns {string} the first half of it, see {@link cut}", True),
        ("@param {{from: number}} options", False),
    ],
)
def test_types_alone_describe_nothing(said: str, *, is_described: bool) -> None:
    comment = "".join(f" * {line}\n" for line in said.splitlines())
    source = f"/**\n{comment} */\nfunction halve(text) {{\n  const n = 2;\n  return text.slice(n);\n}}\n"
    codebase = JavaScriptCodebase.from_texts({"index.js": f"{source}module.exports = halve;\n"})
    silent, _ = described(codebase, [codebase.symbols()["index.js::halve"]], [], set(), {})
    assert (not silent) is is_described


@pytest.mark.parametrize(
    ("lines", "words", "is_described"),
    [(3, "", True), (12, "", False), (12, "// Cuts a text where the words end.\n", True)],
)
def test_a_mere_call_describes_a_short_function(lines: int, words: str, *, is_described: bool) -> None:
    body = "  text += 1;\n" * lines
    source = f"function halve(text) {{\n{body}}}\n{words}exports.cut = (text) => halve(text);\n"
    codebase = JavaScriptCodebase.from_texts({"index.js": source})
    callers = {"index.js::halve": ["index.js::cut"]}
    silent, _ = described(codebase, [codebase.symbols()["index.js::halve"]], [], set(), callers)
    assert (not silent) is is_described


@pytest.mark.parametrize(
    "comment",
    [
        'case (\n    Kind.wide |\n    Kind.very_wide\n):\n    return "a b c"',
        'elif kind in (Kind.wide,\n        Kind.very_wide):\n    return "and so on"',
        "if kind is wide:\n    return very_wide",
    ],
)
def test_a_block_of_code_in_comments_is_no_description(comment: str) -> None:
    said = "".join(f"    # {line}\n" for line in comment.splitlines())
    rest = "\n    # The second way: is for large ones,\n    # and what else.\n    return 2\n"
    source = f"def turn(kind):\n    kind += 1\n{said}{rest}"
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = description(codebase, codebase.symbols()["m.py::turn"])
    assert "\n".join(found) == f"{BY_COMMENTS_INSIDE}\nThe second way: is for large ones,\nand what else.\n"


def test_a_method_of_the_project_stands_between_one_and_that_of_python() -> None:
    source = (
        "class A(dict):\n    def copy(self):\n        return deep(self)\n\n\n"
        "class B(A):\n    def copy(self):\n        return B(deep(self))\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    symbols = codebase.symbols()
    assert description(codebase, symbols["m.py::B.copy"]).lead == "Implements or overrides `A.copy`."
    assert description(codebase, symbols["m.py::A.copy"]).lead == "Implements or overrides `dict.copy`."


def test_definitions_of_one_name_are_told_apart_by_their_conditions() -> None:
    body = "        @classmethod\n        def read(cls, text):\n            return {}\n"
    source = (
        "try:\n    import toml\nexcept ImportError:\n    toml = None\n\n\nclass Box:\n    if toml is not None:\n\n"
        f"{body.format('toml.loads(text)')}\n    else:\n\n{body.format('None')}\n\ndef one():\n    return 1\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    symbols = [each for each in codebase.modules["m.py"].symbols if each.name.startswith(("read", "one"))]
    words = PythonWords()
    found = [words.condition(codebase.modules["m.py"], each) for each in symbols]
    assert found == ["if toml is not None", "else of if toml is not None", ""]


@pytest.mark.parametrize(
    ("make", "path", "source"),
    [
        (GoCodebase, "m.go", "package m\n\nfunc turn(s []byte) int {{\n\t// {}\n\treturn len(s) + 1\n}}\n"),
        (RustCodebase, "m.rs", "fn turn(s: &[u8]) -> usize {{\n    // {}\n    s.len() + 1\n}}\n"),
        (JavaScriptCodebase, "m.js", "const turn = (s) => {{\n    // {}\n\n    return s.length;\n}};\n"),
        (PythonCodebase, "m.py", 'def turn(s):\n    """Turn."""\n    # {}\n    return s\n'),
    ],
)
def test_comments_before_the_first_statement_are_quoted(
    make: type[GoCodebase | RustCodebase | JavaScriptCodebase | PythonCodebase], path: str, source: str
) -> None:
    said = "An empty slice gives nothing at all."
    codebase = make.from_texts({path: source.format(said)})
    found = description(codebase, codebase.symbols()[f"{path}::turn"])
    assert said in (found.text, found.inside)


@pytest.mark.parametrize(
    ("said", "lead"),
    [
        ("Writes a train case in [`fmt::Display`].", "As `AsTrain` says:"),
        ("A wrapper with a text in it.", ""),
    ],
)
def test_words_of_a_type_on_a_trait_are_quoted_for_the_methods_of_the_trait(said: str, lead: str) -> None:
    source = (
        f"/// {said}\npub struct AsTrain(pub String);\n\nimpl fmt::Display for AsTrain {{\n"
        "    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {\n        f.write_str(&self.0)\n    }\n}\n"
    )
    codebase = RustCodebase.from_texts({"src/lib.rs": source})
    method = codebase.symbols()["src/lib.rs::AsTrain.fmt"]
    assert description(codebase, method)[:2] == (lead, said if lead else "")
    assert undescribed(codebase, [method], []) == [method], "what a type says of it does not tell all that it does"
