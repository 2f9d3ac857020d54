"""The deterministic problem statement."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace

import pytest

from excise.deleters.statement.details import lines_by_symbol, locate
from excise.deleters.statement.problem_statement import Statement, write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import GateOutcome, GivenBy, Need, NeedKind, Verdict, Visibility
from excise.verifiers.candidate import Candidate, DeletionTrees
from excise.verifiers.gates.statement_complete import StatementComplete

from .planned_deletions import REPO, delete_symbol

FILES = {
    "pkg/__init__.py": "from .core import Box, halve\n\n__all__ = ['Box', 'halve']\n",
    "pkg/core.py": (
        "def halve(number, *, exact=False):\n"
        '    """Half of ``number``.\n\n    >>> halve(4)\n    2\n\n    Exact halves are fractions.\n    """\n'
        "    return secret_recipe(number, exact)\n\n\n"
        "def secret_recipe(number, exact):\n    return number / 2 if exact else number // 2\n\n\n"
        "def quarter(number):\n    return halve(halve(number))\n\n\n"
        "class Box:\n"
        '    """Holds one thing."""\n\n'
        "    def __init__(self, thing):\n        self._thing = thing\n\n"
        "    def open(self):\n"
        '        """What is inside."""\n        return self._thing\n\n'
        "    def _shake(self):\n        return 'rattle'\n"
    ),
    "tests/test_core.py": (
        "from pkg.core import Box, halve\n\n\n"
        "def test_halve():\n    assert halve(4) == 2\n\n\n"
        "def test_box():\n    assert Box(1).open() == 1\n    assert Box(1)._shake()\n"
    ),
}
LONG_BOX = (
    "class Box:\n"
    "    def open(self):\n"
    '        """What is inside.\n\n        counted = sum(len(layer) for layer in self.layers)\n        """\n'
    "        counted = sum(len(layer) for layer in self.layers)\n"
    "        expected = self.capacity - self.reserved_space\n"
    "        wrapped = [layer.unwrap() for layer in self.layers]\n"
    "        return wrapped if counted == expected else None\n\n"
    "    def _shake(self):\n        return 'rattle'\n"
)


HALVE, HALVE_TESTS = "pkg/core.py::halve", ("tests/test_core.py::test_halve",)
BOX, BOX_TESTS = "pkg/core.py::Box", ("tests/test_core.py::test_box",)
DOCS = {"docs/use.md": "Numbers are halved by `halve(number, *, exact=False)`, which rounds towards zero.\n"}


def statement(
    symbol: str,
    tests: tuple[str, ...],
    deleter: str = "remove",
    files: dict[str, str] = FILES,
    **options: object,
) -> tuple[str, str]:
    codebase = PythonCodebase.from_texts(files)
    deletion = delete_symbol(codebase, symbol, tests, deleter)
    found = write_statement(codebase, deletion, REPO, tests, **options)  # type: ignore[arg-type]
    return found.text, found.interface


def gate_verdict(
    symbol: str, tests: tuple[str, ...], text: str, files: Mapping[str, str] = MappingProxyType(FILES)
) -> Verdict:
    """The verdict of gate 10 on a statement."""
    codebase = PythonCodebase.from_texts(files)
    bench = SimpleNamespace(codebase=codebase, language=Python())
    candidate = Candidate(
        trees=DeletionTrees(bench=bench, deletion=delete_symbol(codebase, symbol, tests)),  # type: ignore[arg-type]
        trusted=frozenset(tests),
        fail_to_pass=tests,
        pass_to_pass=(),
        task=SimpleNamespace(instance_id="x", problem_statement=text, needs={}),  # type: ignore[arg-type]
    )
    (verdict,) = StatementComplete().check(candidate).verdicts
    return verdict


def test_a_function_has_signature_file_docstring_and_callers() -> None:
    text, interface = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",))
    assert text.startswith("# Bring back `halve`\n\npkg 1.2 used to offer")
    assert "### `pkg/core.py`" in text
    assert "def halve(number, *, exact=False)" in text
    assert "> Half of ``number``." in text
    assert "- `pkg/core.py::quarter`: `return halve(halve(number))`" in text
    assert "- `pkg/__init__.py` offered `halve` as well." in text
    assert "One test that is not in this checkout (from `tests/test_core.py`)" in text
    assert interface == "pkg/core.py: def halve(number, *, exact=False)"


def test_only_files_that_import_a_name_offered_it() -> None:
    files = {
        "setup.py": "from setuptools import setup\n\nsetup(entry_points={'all': ['cut = pkg.core:cut', 'b = c:d']})\n",
        "pkg/__init__.py": "",
        "pkg/core.py": 'def cut(text):\n    """The text without its ends."""\n    return text[1:-1]\n',
        "pkg/tools.py": "from pkg import core\n\nTOOLS = [core.cut, print]\n",
        "pkg/api.py": "from pkg.core import cut as cut_ends\n\n__all__ = ['cut_ends']\n",
        "tests/test_core.py": "from pkg.core import cut\n\n\ndef test_cut():\n    assert cut('abc') == 'b'\n",
    }
    text, _ = statement("pkg/core.py::cut", ("tests/test_core.py::test_cut",), files=files)
    assert "cut = pkg.core:cut" in text, "an entry point is no import"
    assert "TOOLS: core.cut" in text, "nor is an entry of a list"
    offered = text.partition("## Also importable from\n\n")[2].partition("\n\n")[0]
    assert offered == "- `pkg/api.py` offered `cut` as `cut_ends` as well."


@pytest.mark.parametrize(
    ("visibility", "shown", "described"),
    [
        (Visibility.DOCSTRING, "```python\ntrim = cut\n```\n> The old name of\n> :func:`cut`.", True),
        (Visibility.SIGNATURE, "```python\ntrim = cut\nchop = cut\n```", False),
        (Visibility.BEHAVIOUR, "the name `trim`\n> The old name of\n> :func:`cut`.", True),
    ],
)
def test_strings_below_assignments_describe_them(visibility: Visibility, shown: str, described: bool) -> None:
    files = {
        "pkg/core.py": (
            'def cut(text):\n    """The text without its ends."""\n    return text[1:-1]\n\n\n'
            'trim = cut\n"""The old name of\n:func:`cut`."""\nchop = cut\n'
        ),
        "tests/test_core.py": "from pkg.core import cut\n\n\ndef test_cut():\n    assert cut('abc') == 'b'\n",
    }
    text, _ = statement("pkg/core.py::cut", ("tests/test_core.py::test_cut",), files=files, visibility=visibility)
    assert shown in text
    assert ("The old name of" in text) == described


def test_a_statement_does_not_contain_the_code() -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",))
    assert "secret_recipe" not in text


def test_a_class_comes_with_its_public_members_and_private_ones_that_tests_use() -> None:
    text, interface = statement("pkg/core.py::Box", ("tests/test_core.py::test_box",))
    assert "class Box" in text
    assert "def open(self)" in text
    assert "def _shake(self)" in interface


def test_the_title_says_that_code_is_a_stub() -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",), deleter="stub")
    assert text.startswith("# Implement `halve`")


# -------------------------------------------------------------------------------------- visibility
@pytest.mark.parametrize(
    ("visibility", "signature", "prose"),
    [
        (Visibility.TESTS, True, True),
        (Visibility.DOCSTRING, True, True),
        (Visibility.SIGNATURE, True, False),
        (Visibility.BEHAVIOUR, False, True),
    ],
)
@pytest.mark.parametrize("deleter", ["remove", "stub"])
def test_visibility_decides_about_signatures_docstrings_and_docs(
    visibility: Visibility, signature: bool, prose: bool, deleter: str
) -> None:
    text, interface = statement(HALVE, HALVE_TESTS, deleter, visibility=visibility, documents=DOCS)
    assert ("exact=False" in text) is signature
    assert ("exact=False" in interface) is signature
    assert ("Half of" in text) is prose
    assert ("rounds towards zero" in text) is prose
    assert ("## What the documentation says" in text) is prose
    assert "`halve`" in text
    assert "### `pkg/core.py`" in text
    assert "One test that is not in this checkout" in text or deleter == "stub"


def test_levels_differ() -> None:
    texts = {statement(HALVE, HALVE_TESTS, visibility=level, documents=DOCS)[0] for level in Visibility}
    assert len(texts) == 3, "what the statement says with tests in sight is what it says without"
    assert len(Visibility) == 5


def test_behaviour_gives_bare_names() -> None:
    text, interface = statement(BOX, BOX_TESTS, visibility=Visibility.BEHAVIOUR)
    assert interface.splitlines() == [
        "pkg/core.py: class `Box`",
        "pkg/core.py: method `Box.__init__`",
        "pkg/core.py: method `Box.open`",
        "pkg/core.py: method `Box._shake`",
    ]
    assert "\n\nclass `Box`\n> Holds one thing.\n\n" in text
    assert "\n\nmethod `Box.open`\n> What is inside.\n\n" in text
    assert "(self" not in text
    assert "```" not in text


def test_behaviour_says_what_kind_of_thing_it_is() -> None:
    source = (
        "import functools\n\n\nclass e(ValueError):\n"
        "    @property\n    def f(self):\n        return self._f\n\n"
        "    @f.setter\n    def f(self, value):\n        self._f = value\n\n"
        "    @classmethod\n    async def d(cls, a: str = ' -> (') -> dict[str, tuple[()]]:\n"
        '        """d(a) -> dict\n\n        Make one; see d(a: str = \' -> (\').\n        """\n        return {}\n'
    )
    files = {"pkg/core.py": source, "tests/test_core.py": "from pkg.core import e\n\n\ndef test_e():\n    e.d\n"}
    text, interface = statement(
        "pkg/core.py::e", ("tests/test_core.py::test_e",), files=files, visibility=Visibility.BEHAVIOUR
    )
    assert interface.splitlines() == [
        "pkg/core.py: class `e` (of `ValueError`)",
        "pkg/core.py: property `e.f`",
        "pkg/core.py: setter of property `e.f`",
        "pkg/core.py: async class method `e.d`",
    ]
    assert text.count("\nproperty `e.f`") == 1
    assert "> Make one; see d." in text
    assert "str" not in text


def test_a_setter_alone_is_named_as_one() -> None:
    source = (
        "class Box:\n    @property\n    def f(self):\n        return self._f\n\n"
        '    @f.setter\n    def f(self, value):\n        """Keep half of it."""\n        self._f = value / 2\n'
    )
    test = "from pkg.core import Box\n\n\ndef test_f():\n    box = Box()\n    box.f = 2\n    assert box.f == 1\n"
    files = {"pkg/core.py": source, "tests/test_core.py": test}
    symbol, tests = "pkg/core.py::Box.f#2", ("tests/test_core.py::test_f",)
    text, _ = statement(symbol, tests, files=files)
    assert text.startswith("# Bring back the setter of `Box.f`\n")
    assert "@f.setter\ndef f(self, value)\n" in text
    assert "property\n" not in text
    text, interface = statement(symbol, tests, files=files, visibility=Visibility.BEHAVIOUR)
    assert interface == "pkg/core.py: setter of property `Box.f`"
    assert "\n\nsetter of property `Box.f`\n> Keep half of it.\n" in text


@pytest.mark.parametrize("visibility", list(Visibility))
@pytest.mark.parametrize(("symbol", "tests"), [(HALVE, HALVE_TESTS), (BOX, BOX_TESTS)])
def test_every_level_passes_gate_10(visibility: Visibility, symbol: str, tests: tuple[str, ...]) -> None:
    text, _ = statement(symbol, tests, visibility=visibility, documents=DOCS)
    assert gate_verdict(symbol, tests, text).outcome is GateOutcome.PASSED


# ------------------------------------------------------------------------------------------- docs
def test_docs_are_quoted_with_their_path() -> None:
    text, _ = statement(HALVE, HALVE_TESTS, documents=DOCS)
    assert (
        "## What the documentation says\n\nFrom `docs/use.md`:\n\n"
        "> Numbers are halved by `halve(number, *, exact=False)`, which rounds towards zero.\n"
    ) in text


def test_docs_that_repeat_the_code_are_not_quoted() -> None:
    line = "return secret_recipe(number, exact)"
    documents = {"README.md": f"The function `halve` is no more than {line} and nothing else.\n"}
    assert "documentation" not in statement(HALVE, HALVE_TESTS, documents=documents)[0]
    wrapped = {"README.md": "The function `halve` is no more than return\nsecret_recipe(number, exact) and no less.\n"}
    assert "documentation" not in statement(HALVE, HALVE_TESTS, documents=wrapped)[0]


# ---------------------------------------------------------------------------------------- gate 10
def test_gate_10_looks_at_members_of_classes() -> None:
    text, _ = statement(BOX, BOX_TESTS)
    verdict = gate_verdict(BOX, BOX_TESTS, text.replace("_shake", "_other").replace("open", "close"))
    assert verdict.reason == "statement_incomplete"
    assert "_shake" in verdict.detail
    assert "open" in verdict.detail


@pytest.mark.parametrize("mark", ["", "> ", "    # ", "+"])
def test_gate_10_finds_quoted_code_of_members(mark: str) -> None:
    files = {**FILES, "pkg/core.py": LONG_BOX}
    text = statement(BOX, BOX_TESTS, files=files)[0]
    verdict = gate_verdict(BOX, BOX_TESTS, text, files)
    assert verdict.outcome is GateOutcome.PASSED, verdict.detail
    text += "".join(f"{mark}{line.strip()}\n" for line in LONG_BOX.splitlines())
    verdict = gate_verdict(BOX, BOX_TESTS, text, files)
    assert verdict.reason == "statement_gives_code"


# --------------------------------------------------------------------------------------- examples
def test_examples_are_part_of_what_a_docstring_says() -> None:
    text, _ = statement(HALVE, HALVE_TESTS)
    assert "> >>> halve(4)\n> 2\n" in text
    assert "Exact halves are fractions." in text


# --------------------------------------------------------------------------------------------- details
DETAILED = {
    "pkg/__init__.py": "",
    "pkg/core.py": (
        "class Base:\n    def describe(self):\n        return self.size\n\n\n"
        "class Heap(Base):\n"
        '    """Items by weight; `weight` says how heavy all are. Raises `LookupError`."""\n\n'
        "    def __init__(self):\n        self.total = self.weight = self.size = 0\n\n"
        "    def take(self, lowest):\n"
        "        if not self.total:\n            raise LookupError('the heap is empty: %s' % self)\n"
        "        if lowest < 0:\n            raise ArithmeticError('too low')\n"
        "        return {'item': 1, 'cost': 2}\n\n\n"
        "def code():\n    return 'Q-17'\n\n\ndef twin():\n    return 'Q-18'\n"
    ),
    "tests/test_core.py": (
        "import pytest\nfrom pkg.core import Heap, code\n\n\n"
        "def test_heap():\n    heap = Heap()\n    assert heap.total == heap.weight == heap.size\n"
        "    with pytest.raises(LookupError, match='the heap is empty'):\n        heap.take(1)\n"
        "    with pytest.raises(ArithmeticError):\n        heap.take(-1)\n"
        "    assert heap.take(2)['item']\n\n\n"
        "def test_code():\n    assert code() == 'Q-17'\n"
    ),
}
HEAP, HEAP_TESTS = "pkg/core.py::Heap", ("tests/test_core.py::test_heap",)


def detailed(symbol: str, tests: tuple[str, ...]) -> Statement:
    codebase = PythonCodebase.from_texts(DETAILED)
    deletion = delete_symbol(codebase, symbol, tests)
    needs = Python().find_needs(codebase, [symbol], tests)
    return write_statement(codebase, deletion, REPO, tests, needs=needs)


def test_details_that_nothing_gives_stand_below_their_definition() -> None:
    found = detailed(HEAP, HEAP_TESTS)
    text = found.text
    assert "def __init__(self)\n```\n(in `Heap`)\n\n- Attributes: `total`." in text
    assert "- Raises `ArithmeticError`; the message contains `'too low'`.\n" in text
    assert "\n- Raises `LookupError`; the message contains `'the heap is empty: %s'`." in text
    assert "In texts and messages, `%s` stands for what is filled in." in text
    assert "- Keys that it reads or makes, as far as tests name them: `'item'`." in text
    assert "cost" not in text
    assert {need.label: str(need.given) for need in found.needs} == {
        "attribute size": "tree",  # the base class reads it
        "attribute total": "details",
        "attribute weight": "statement",
        "exception ArithmeticError": "details",
        "exception LookupError": "statement",
        "key item": "details",
        "message the heap is empty": "details",
        "message too low": "details",
    }


def test_data_that_went_with_a_whole_file_or_class_is_shown() -> None:
    files = {
        "pkg/core.py": "x = 1\n",
        "pkg/text.py": (
            '"""Texts."""\n\nLIMIT = 500\n_PAD = " "\n_SEEN = {}\nTABLE = {n: n for n in range(3)}\n\n\n'
            'class Box:\n    """A box."""\n\n    width = 7\n    depth = 8\n\n'
            '    def cut(self, text, at=LIMIT, pad=_PAD, width=width):\n        """Cut it."""\n'
            "        return text[:at]\n"
        ),
        "tests/test_text.py": "from pkg.text import Box\n\n\ndef test_cut():\n    assert Box().cut('a') == 'a'\n",
    }
    codebase, tests = PythonCodebase.from_texts(files), ("tests/test_text.py::test_cut",)
    whole = write_statement(codebase, delete_symbol(codebase, "pkg/text.py", tests), REPO, tests).text
    assert '```python\nLIMIT = 500\n_PAD = " "\n```' in whole
    assert "width = 7\ndepth = 8\n```\n(in `Box`)" in whole
    assert "the name `TABLE`" in whole
    assert "_SEEN" not in whole


def test_messages_are_told_though_other_code_of_the_class_has_them() -> None:
    method = (
        "    def {}(self):\n        if self.x:\n            raise ValueError('too low')\n"
        "        self.x = 1\n        return 2\n"
    )
    files = {
        "pkg/core.py": f"class A:\n    x = 0\n\n{method.format('gone')}\n{method.format('stays')}",
        "tests/test_core.py": (
            "import pytest\nfrom pkg.core import A\n\n\ndef test_gone():\n"
            "    with pytest.raises(ValueError, match='too low'):\n        A().gone()\n"
        ),
    }
    codebase, tests = PythonCodebase.from_texts(files), ("tests/test_core.py::test_gone",)
    needs = Python().find_needs(codebase, ["pkg/core.py::A.gone"], tests)
    deletion = delete_symbol(codebase, "pkg/core.py::A.gone", tests)
    text = write_statement(codebase, deletion, REPO, tests, needs=needs).text
    assert "- Raises `ValueError`; the message contains `'too low'`." in text


def test_gate_10_wants_every_detail() -> None:
    text = detailed(HEAP, HEAP_TESTS).text
    assert gate_verdict(HEAP, HEAP_TESTS, text, DETAILED).outcome is GateOutcome.PASSED
    missing = gate_verdict(HEAP, HEAP_TESTS, text.replace("`total`", "`sum`"), DETAILED)
    assert (missing.outcome, missing.reason) == (GateOutcome.FAILED, "statement_incomplete")
    assert "attribute total" in missing.detail


def test_what_only_the_code_could_tell_is_not_told() -> None:
    found = detailed("pkg/core.py::code", ("tests/test_core.py::test_code",))
    assert "Q-17" not in found.text
    assert found.untold_tests == {"tests/test_core.py::test_code"}


def test_long_docstrings_end_with_a_whole_line() -> None:
    source = 'def f():\n    """' + "A line of words.\n    " * 900 + '"""\n    return 1\n'
    files = {"pkg/core.py": source, "tests/test_core.py": "from pkg.core import f\n\n\ndef test_f():\n    assert f()\n"}
    codebase = PythonCodebase.from_texts(files)
    deletion = delete_symbol(codebase, "pkg/core.py::f", ("tests/test_core.py::test_f",))
    lines = write_statement(codebase, deletion, REPO, ("tests/test_core.py::test_f",)).text.splitlines()
    quoted = [line for line in lines if line.startswith("> ")]
    assert (quoted[-1], {line.strip("> ") for line in quoted[:-1]}) == ("> […]", {"A line of words."})


@pytest.mark.parametrize(
    ("signature", "docstring", "text", "given"),
    [
        ("def f(x)", "", "", GivenBy.DETAILS),
        ("def f(x)", "Split.", "Split.", GivenBy.DETAILS),
        ("def f(x)", "Make a list.", "Make a list.", GivenBy.STATEMENT),
        ("def f(x)", "Make a list.", "", GivenBy.DETAILS),
        ("def f(x) -> Names", "", "def f(x) -> Names", GivenBy.STATEMENT),
        ("def f(x)", "", ">>> f(1)\n[1]", GivenBy.STATEMENT),
        ("def f(x)", "", "f(1)  # [1]", GivenBy.STATEMENT),
        ("def f(x)", "", "f(1)  # (1,)", GivenBy.DETAILS),
        ("def f(x)", "", "- Returns a `list`.", GivenBy.STATEMENT),
        ("def f(x)", "Make a Row of a list.", "Make a Row of a list.", GivenBy.STATEMENT),
        ("def f(x)", "", "f(1)  # Row(1)", GivenBy.STATEMENT),
    ],
)
def test_the_type_of_a_result_is_told_once(signature: str, docstring: str, text: str, given: GivenBy) -> None:
    kind = "Row" if "Row" in text else "list"
    body = f'    """{docstring}"""\n    return [x]\n' if docstring else "    return [x]\n"
    codebase = PythonCodebase.from_texts({"m.py": f"{signature}:\n{body}"})
    need = Need(kind=NeedKind.RESULT, word=f"f {kind}", owner="m.py::f", tests=("t",))
    found = locate([need], text, "", codebase)
    assert [each.given for each in found] == [given]
    expected = {"m.py::f": [f"- Returns a `{kind}`."]} if given is GivenBy.DETAILS else {}
    assert lines_by_symbol(found, list(codebase.symbols().values()), codebase) == expected


@pytest.mark.parametrize(
    ("signature", "docstring", "text", "is_told"),
    [
        ("def f(x=None)", "Find it.", "Find it.", False),
        ("def f(x)", "Find it, or None.", "Find it, or None.", True),
        ("def f(x) -> int | None", "", "def f(x) -> int | None", True),
        ("def f(x)", "", "f(0)  # None", True),
    ],
)
def test_none_in_some_cases_is_told_once(signature: str, docstring: str, text: str, *, is_told: bool) -> None:
    codebase = PythonCodebase.from_texts({"m.py": f'{signature}:\n    """{docstring}"""\n    return x or None\n'})
    need = Need(kind=NeedKind.RESULT, word="f None", owner="m.py::f", tests=("t",))
    lines = lines_by_symbol(locate([need], text, "", codebase), list(codebase.symbols().values()), codebase)
    assert lines == ({} if is_told else {"m.py::f": ["- Returns `None` in some cases."]})


def test_attributes_stand_in_the_order_of_the_code() -> None:
    codebase = PythonCodebase.from_texts({"m.py": "class C:\n    west = 1\n    east = 2\n"})
    needs = [Need(kind=NeedKind.ATTRIBUTE, word=word, owner="m.py::C", tests=("t",)) for word in ("east", "west")]
    found = locate(needs, "", "", codebase)
    assert lines_by_symbol(found, list(codebase.symbols().values()), codebase) == {
        "m.py::C": ["- Attributes: `west`, `east`."]
    }
    assert [each.given for each in locate(needs, "class C(namedtuple('C', 'west east'))", "", codebase)] == [
        GivenBy.STATEMENT, GivenBy.STATEMENT,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "word", "related", "given"),
    [
        (NeedKind.EXCEPTION, "ValueError", "def load(self):\n    raise ValueError\n", GivenBy.DETAILS),
        (NeedKind.EXCEPTION, "BoxError", "def load(self):\n    raise BoxError\n", GivenBy.DETAILS),
        (NeedKind.ATTRIBUTE, "memory", "# kept in memory\ndef load(self):\n    return 1\n", GivenBy.DETAILS),
        (NeedKind.ATTRIBUTE, "memory", 'def load(self):\n    """From (memory, disk)."""\n', GivenBy.DETAILS),
        (NeedKind.ATTRIBUTE, "memory", "def load(self):\n    return self.memory\n", GivenBy.TREE),
        (NeedKind.KEYWORD, "memory", "def load(self):\n    return Box(memory=1)\n", GivenBy.TREE),
    ],
)
def test_code_gives_a_detail_only_where_it_points_to_it(
    kind: NeedKind, word: str, related: str, given: GivenBy
) -> None:
    need = Need(kind=kind, word=word, owner=HALVE, tests=HALVE_TESTS)
    (found,) = locate([need], "", related, PythonCodebase.from_texts(FILES))
    assert found.given is given


def test_exit_codes_are_told_with_their_exceptions() -> None:
    words = ("SystemExit(2)", "SystemExit(-1) for KeyboardInterrupt", "UserWarning", "io.EOF", "ErrShut")
    needs = [Need(kind=NeedKind.EXCEPTION, word=word, owner=HALVE, tests=HALVE_TESTS) for word in words]
    codebase = PythonCodebase.from_texts(FILES)
    lines = lines_by_symbol(locate(needs, "", "", codebase), [codebase.symbols()[HALVE]], codebase)
    assert [each.given for each in locate(needs, "\n".join(lines[HALVE]), "", codebase)] == [GivenBy.STATEMENT] * 5
    exits = ["- Raises `SystemExit(-1)` for `KeyboardInterrupt`.", "- Raises `SystemExit(2)`."]
    exits += ["- Warns with `UserWarning`.", "- Returns the error `ErrShut`.", "- Returns the error `io.EOF`."]
    assert sorted(lines[HALVE]) == sorted(exits)
