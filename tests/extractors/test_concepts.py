"""Concepts: groups of symbols that belong together, nested, within limits, the same in every run."""

from __future__ import annotations

from collections.abc import Mapping

from excise.extractors.features.concepts import ConceptFinder, ConceptLimits
from excise.extractors.features.feature_names import name_of, summary_of
from excise.extractors.features.tiers import LARGE, SUBSYSTEM, tier_of
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Symbol

LIMITS = ConceptLimits(max_symbols=60, max_loc=800, max_tests=10)
TEXTS = {
    "shapes.py": '''\
def area(shape):
    """Area of a shape. In square metres."""
    return _width(shape) * _height(shape)


def _width(shape):
    low, high = shape.x
    return high - low


def _height(shape):
    low, high = shape.y
    return high - low


def describe(shape):
    return f"{area(shape)} square metres"
''',
    "text.py": '''\
class Table:
    """Rows of cells."""

    def add_row(self, row):
        self.rows = [*self.rows, row]

    def add_column(self, column):
        self.columns = [*self.columns, column]


def wrap(text):
    words = text.split()
    return "\\n".join(words)
''',
}
HITS = {
    "shapes.py::area": "0 1 2", "shapes.py::_width": "0 1 2", "shapes.py::_height": "0 1 2", "shapes.py::describe": "2",
    "text.py::Table.add_row": "4 5", "text.py::Table.add_column": "5", "text.py::wrap": "6",
}  # fmt: skip


def concepts(hits: Mapping[str, str] = HITS, limits: ConceptLimits = LIMITS) -> list[set[str]]:
    codebase = PythonCodebase.from_texts(TEXTS)
    symbols = [codebase.symbols()[symbol] for symbol in hits]
    tests = {symbol: frozenset(numbers.split()) for symbol, numbers in hits.items()}
    found = ConceptFinder(codebase, symbols, tests, limits).concepts()
    return [{symbol.rpartition("::")[2] for symbol in concept} for concept in found]


def test_callers_and_their_helpers_are_concepts_inside_each_other() -> None:
    found = concepts()
    shapes = [concept for concept in found if "area" in concept]
    assert {"area", "_width", "_height"} in shapes or {"area", "_width", "_height", "describe"} in shapes
    assert {"Table.add_row", "Table.add_column"} in found
    assert not any("wrap" in concept for concept in found), "nothing but the file relates it to the rest"
    for number, concept in enumerate(found):
        assert all(not concept & later or concept < later for later in found[number + 1 :])


def test_the_order_of_the_symbols_changes_nothing() -> None:
    found = concepts(dict(reversed(HITS.items())))
    assert {frozenset(concept) for concept in found} == {frozenset(concept) for concept in concepts()}


def test_no_concept_exceeds_a_limit() -> None:
    few = ConceptLimits(max_symbols=2, max_loc=800, max_tests=10)
    assert {len(concept) for concept in concepts(limits=few)} == {2}
    short = ConceptLimits(max_symbols=60, max_loc=6, max_tests=10)
    assert not any({"_width", "_height", "area"} <= concept for concept in concepts(limits=short))
    rare = ConceptLimits(max_symbols=60, max_loc=800, max_tests=2)
    assert concepts(limits=rare) == [{"Table.add_row", "Table.add_column"}]


def symbols_of(*ids: str) -> list[Symbol]:
    codebase = PythonCodebase.from_texts(TEXTS)
    return [codebase.symbols()[symbol] for symbol in ids]


def test_names_say_the_place_and_the_words_in_common() -> None:
    assert name_of(symbols_of("shapes.py::area")) == "area"
    assert name_of(symbols_of("text.py::Table.add_row", "text.py::Table.add_column")) == "Table: add"
    assert name_of(symbols_of("shapes.py::area", "shapes.py::describe")) == "shapes"
    assert name_of(symbols_of("text.py::wrap", "shapes.py::area", "shapes.py::describe")) == "shapes, text"
    assert name_of(symbols_of("text.py")) == "text"


def test_a_summary_is_the_first_sentence_of_the_longest_docstring() -> None:
    assert summary_of(symbols_of("shapes.py::area", "shapes.py::_width")) == "Area of a shape."
    assert summary_of(symbols_of("text.py::wrap")) == ""


def test_tiers_grow_with_what_is_gone() -> None:
    table = "text.py::Table"
    assert tier_of(symbols_of("shapes.py::area")) == 1
    assert tier_of(symbols_of(table, f"{table}.add_row", f"{table}.add_column")) == 2, "members do not count again"
    assert tier_of(symbols_of("shapes.py::area", "shapes.py::_width")) == 2
    assert tier_of(symbols_of("text.py", table)) == 4
    assert tier_of(symbols_of(table, "shapes.py::area")) == 4
    for size, paths, tier in ((LARGE, ("a.py",), 3), (SUBSYSTEM, ("a.py", "b.py"), 5)):
        lines = "".join(f"    x{n} = {n}\n" for n in range(size))
        codebase = PythonCodebase.from_texts(
            dict.fromkeys(("a.py", "b.py"), f"def f():\n{lines}\n\ndef g():\n    return 1\n")
        )
        chosen = [s for s in codebase.symbols().values() if s.path in paths and s.qualname]
        assert tier_of(chosen) == tier
