"""Stub files for type checkers lose what they declare of removed code."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

SOURCES = {
    "pkg/__init__.py": "from pkg.core import Box, gone, stays\n",
    "pkg/core.py": (
        "LIMIT = 1\n\n\ndef gone(x):\n    return x\n\n\ndef stays(x):\n    return x\n\n\n"
        "class Box:\n    def open(self):\n        return 1\n\n    def shut(self):\n        return 2\n"
    ),
}
CORE = """\
from collections.abc import Callable, Iterable
from typing import overload

__all__ = ["gone", "stays"]

LIMIT: int

@overload
def gone(x: Iterable[int]) -> int: ...
@overload
def gone(x: Callable[[], int]) -> str: ...
def stays(x: Iterable[str]) -> str: ...

class Box:
    def open(self) -> int: ...
    def shut(self) -> int: ...
"""


def test_declarations_go_with_imports_that_only_they_used() -> None:
    files = {
        **SOURCES,
        "pkg/core.pyi": CORE,
        "pkg/__init__.pyi": "from .core import Box as Box\nfrom .core import gone as gone, stays as stays\n",
    }
    left = after(files, delete(files, "pkg/core.py::gone", "pkg/core.py::Box.open"))
    assert left["pkg/core.pyi"] == (
        "from collections.abc import Iterable\n\n"
        '__all__ = ["stays"]\n\nLIMIT: int\n\n'
        "def stays(x: Iterable[str]) -> str: ...\n\nclass Box:\n    def shut(self) -> int: ...\n"
    )
    assert left["pkg/__init__.pyi"] == "from .core import Box as Box\nfrom .core import stays as stays\n"


def test_a_type_of_the_same_name_is_not_offered_in_place_of_a_lost_class() -> None:
    sources = {
        "pkg/__init__.py": "from pkg.core import Box, gone\n",
        "pkg/core.py": "class Box:\n    pass\n\n\ndef gone(x):\n    return x\n",
        "pkg/typing.py": "class Box:\n    pass\n",
        "pkg/typing.pyi": "class Box: ...\n",
        "pkg/__init__.pyi": "from .typing import Box as Box\n\ndef gone(x: int) -> int: ...\n",
    }
    left = after(sources, delete(sources, "pkg/core.py::Box"))
    assert left["pkg/__init__.pyi"] == "def gone(x: int) -> int: ...\n"
    assert left["pkg/typing.pyi"] == sources["pkg/typing.pyi"]


@pytest.mark.parametrize(
    "stub",
    [
        "def gone(x: int) -> int: ...\ndef other(x: gone) -> int: ...\n",
        "def gone(x: int -> int: ...\n",
        "def gone_too(x: int) -> int: ...\n",
    ],
    ids=["needed", "syntax error", "other name"],
)
def test_other_files_stay(stub: str) -> None:
    files = {**SOURCES, "pkg/core.pyi": stub}
    assert after(files, delete(files, "pkg/core.py::gone")).get("pkg/core.pyi", stub) == stub


def test_other_names_of_what_is_gone_go() -> None:
    gone = "_T = TypeVar('_T')\n\nclass Gone:\n    def f(self, x: _T) -> _T: ...\n\n"
    stub = f"{gone}class Kept: ...\n\nOldGone = Gone\nOldKept = Kept\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/core.py": "class Gone:\n    def f(self):\n        return 1\n\n\nclass Kept:\n    x = 1\n",
        "pkg/core.pyi": stub,
    }
    left = after(files, delete(files, "pkg/core.py::Gone"))["pkg/core.pyi"]
    assert left == "class Kept: ...\n\nOldKept = Kept\n"


def test_what_a_declaration_that_stays_needs_is_a_stub() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/core.py": "class Gone:\n    x = 1\n\n\ndef make():\n    return 1\n",
        "pkg/core.pyi": "class Gone:\n    x: int\n\ndef make() -> Gone: ...\n",
    }
    deletion = delete(files, "pkg/core.py::Gone")
    assert deletion.uses_left == (("pkg/core.pyi", "declarations that stay need what would be gone"),)


def test_functions_of_a_stub_file_that_use_what_a_package_loses() -> None:
    chain = """\
import pkg as p
from typing import overload

class All:
    def stays(self) -> int:
        return self.wrap(p.stays)()
    @overload
    def gone(self, x: int) -> int: ...
    @overload
    def gone(self, x: str) -> str: ...
    def gone(self, x):
        return self.wrap(p.gone)(x)
    gone_on = stays
"""
    left = after({**SOURCES, "pkg/chain.pyi": chain}, delete({**SOURCES, "pkg/chain.pyi": chain}, "pkg/core.py::gone"))
    assert left["pkg/chain.pyi"] == (
        "import pkg as p\n\nclass All:\n    def stays(self) -> int:\n"
        "        return self.wrap(p.stays)()\n    gone_on = stays\n"
    )
