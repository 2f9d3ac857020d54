"""Data of a module that only removed code read goes with it, however it was made."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete


@pytest.mark.parametrize(
    ("loader", "is_gone"), [("_load_table()", True), ("_register()", False), ("load_table()", False)]
)
def test_a_constant_that_a_private_loader_makes_goes_with_what_used_it(loader: str, *, is_gone: bool) -> None:
    name = loader.removesuffix("()")
    source = (
        f"def {name}():\n    print(1)\n    return [1]\n\n\nTABLE = {loader}\n\n\ndef f():\n    return TABLE\n\n\n"
        "def other():\n    return 1\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    left = after(files, delete(files, "pkg/m.py::f"))["pkg/m.py"]
    assert ("TABLE" not in left and name not in left) is is_gone


@pytest.mark.parametrize(
    ("body", "filled", "is_gone"),
    [
        ("return {v: k for k, v in d.items()}", "_NAMES['a'] = 'b'", True),
        ("return {v: k for k, v in d.items()}", "_NAMES['a'] = other()", False),
        ("return register(d)", "_NAMES['a'] = 'b'", False),
        ("d['x'] = 1\n    return d", "_NAMES['a'] = 'b'", False),
        ("return {v: k for k, v in d.items()}", "_NAMES[print('a')] = 'b'", False),
        ("return {v: k for k, v in d.items()}\n\n\ndef _reversed(d):\n    return [d]", "_NAMES['a'] = 'b'", False),
    ],
)
def test_a_table_that_is_made_and_filled_goes_with_what_used_it(body: str, filled: str, *, is_gone: bool) -> None:
    source = (
        f"def _reversed(d):\n    'Turn it round.'\n    {body}\n\n\nCODES = {{'b': 'a'}}\n\n"
        f"_NAMES = _reversed(CODES)\n\n{filled}\n{filled}\n\n_all = {{'x': _NAMES}}\n\n\n"
        "def f():\n    return _all\n\n\n"
        "def other():\n    return CODES\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    left = after(files, delete(files, "pkg/m.py::f"))["pkg/m.py"]
    assert "_all" not in left
    assert ("_NAMES" not in left and "_reversed" not in left) is is_gone


def test_what_fills_an_object_of_another_name_stays() -> None:
    source = (
        "TABLE = {}\n_NAMES = TABLE\n_NAMES['y'] = 1\n\n\ndef f():\n    return _NAMES\n\n\n"
        "def other():\n    return TABLE['y']\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    assert "_NAMES['y'] = 1" in after(files, delete(files, "pkg/m.py::f"))["pkg/m.py"]
