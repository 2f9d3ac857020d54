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


@pytest.mark.parametrize(
    ("filling", "is_gone"),
    [
        ("    TABLE.insert(0, (small(a), a.upper()))\n", True),
        ("    if a:\n        NAMES.append(a)\n        TABLE.append(a)\n    TABLE[a] = 'x{}'.format(a)\n", True),
        ("    return TABLE.setdefault(a, 1)\n", False),
        ("    if a:\n        TABLE.append(a)\n", False),  # the condition would have no statement
        ("    TABLE.append(print(a))\n", False),
        ("    TABLE = []\n    TABLE.append(a)\n", True),  # another one
        ("    TABLE.append(a)\n    print(TABLE)\n", False),
    ],
)
def test_a_table_that_others_only_fill_goes_with_what_read_it(filling: str, *, is_gone: bool) -> None:
    source = (
        "NAMES = []\nTABLE = [('a', 'b')]\nTABLE += [('c', 'd')]\n\n\ndef fill(a):\n"
        "    def small(b: str) -> str:\n        return ''.join('[' + c + ']' for c in b)\n\n"
        f"    NAMES.append(small(a))\n{filling}\n\nfill('x')\n\n\ndef f():\n    return TABLE\n\n\n"
        "def other():\n    return NAMES\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    deletion = delete(files, "pkg/m.py::f")
    left = after(files, deletion)["pkg/m.py"]
    is_own = "TABLE = []" in filling
    assert ("TABLE" not in left.replace("    TABLE = []\n    TABLE.append(a)\n", "")) is is_gone
    assert [text for _, text in deletion.uses] == [
        f"in fill: {line.strip()}" for line in filling.splitlines() if "TABLE" in line and is_gone and not is_own
    ]
    assert "NAMES.append" in left


def test_what_gives_back_what_it_fills_with_stays() -> None:
    source = "KNOWN = []\n\n\ndef known(a):\n    KNOWN.append(a)\n    return a\n\n\ndef f():\n    return KNOWN\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    assert "KNOWN.append(a)" in after(files, delete(files, "pkg/m.py::f"))["pkg/m.py"]
