"""Wrappers of one call that functions beside them give away."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.verifiers.leaks.renamed_twins import renamed_twins

WRAPPERS = {"title": "AsTitleCase(self).to_string()", "upper_camel": "AsUpperCamelCase(self).to_string()",
            "snake": "AsSnakeCase(self).to_string()", "kebab": "other(self).to_string()"}  # fmt: skip
ALIASES = {"pascal": "self.to_upper_camel_case()", "snek": "self.to_snake_case()"}
LINES = [
    f"pub fn to_{name}_case(self: &str) -> String {{\n    {body}\n}}\n"
    for name, body in {**WRAPPERS, **ALIASES}.items()
]
FILES = {"src/lib.rs": "\n".join(LINES)}


@pytest.mark.parametrize(
    ("names", "leaks"),
    [
        (["title"], True),
        (["title", "upper_camel"], True),
        (["title", "upper_camel", "pascal"], True),
        (["title", "pascal"], False),  # it calls what stays
        (["pascal"], False),
        (["title", "upper_camel", "snake"], False),
        (["kebab"], False),
        (["title", "kebab"], False),
    ],
)
def test_wrappers_are_given_away_by_those_beside_them(names: list[str], *, leaks: bool) -> None:
    codebase = RustCodebase.from_texts(FILES)
    removed = [f"src/lib.rs::to_{name}_case" for name in names]
    shipped = {"src/lib.rs": "\n".join(each for each in LINES if f"to_{names[0]}_case(self: " not in each).encode()}
    assert [leak.file for leak in renamed_twins(codebase, removed, shipped)] == ["/testbed/src/lib.rs"] * leaks
    assert not renamed_twins(codebase, removed, {"src/lib.rs": None})


@pytest.mark.parametrize(
    ("body", "leaks"),
    [
        ("return check(x, INT_KIND)", True),
        ("return check(x, LONG_KIND)", False),
        ("y = check(x, INT_KIND)\n    return y", False),
        ("return check(x, INT_KIND) + 1", False),
        ("return INT_KIND", False),
    ],
)
def test_only_single_calls_that_differ_as_the_names_do(body: str, *, leaks: bool) -> None:
    code = f"def is_int(x):\n    {body}\n\n\ndef is_text(x):\n    return check(x, TEXT_KIND)\n"
    found = renamed_twins(PythonCodebase.from_texts({"m.py": code}), ["m.py::is_int"], {})
    assert [leak.file for leak in found] == ["/testbed/m.py"] * leaks
