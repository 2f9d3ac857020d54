"""Source files in which a removal leaves nothing go as a whole."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

GONE = "def gone_by(x):\n    return x\n"


@pytest.mark.parametrize(
    ("before", "path", "is_left"),
    [
        ('"""Text."""\n\nfrom __future__ import annotations\n\nimport re\n\n', "pkg/m.py", False),
        (
            "from typing import TypeVar\n\nKind = TypeVar('Kind', int, str)\n\n__all__ = ['gone_by']\n\n",
            "pkg/m.py",
            False,
        ),
        ("import logging\n\nLOG = logging.getLogger(__name__)\n\n", "pkg/m.py", False),
        (
            "import os\nfrom typing import TYPE_CHECKING, Union\n\nif TYPE_CHECKING:\n    from io import BytesIO\n"
            "else:\n    _Path = Union[str, os.PathLike]\n\n",
            "pkg/m.py",
            False,
        ),
        ("from .other import thing\n\nassert thing  # for docstrings\n\n", "pkg/m.py", False),
        ("from .other import thing\n\nassert thing.is_ready\n\n", "pkg/m.py", True),
        ("import os\n\n_HOOK = os.register_at_fork(before=print)\n\n", "pkg/m.py", True),
        ("LIMIT = 1\n\n", "pkg/m.py", True),
        ("__version__ = '1.0'\n\n", "pkg/m.py", True),
        ("_LIMIT = LIMIT = 1\n\n", "pkg/m.py", True),
        ("from typing import TYPE_CHECKING\n\nif not TYPE_CHECKING:\n    import readline\n\n", "pkg/m.py", True),
        ("from pkg.other import thing\n\n\ndef other():\n    return thing\n\n\n", "pkg/m.py", True),
        ('"""Text."""\n\n', "pkg/__init__.py", True),
    ],
)
def test_a_file_without_definitions_goes(before: str, path: str, *, is_left: bool) -> None:
    source = before + GONE.replace(
        "(x)", "(x: Kind)" if "Kind" in before else "(x: re.Pattern)" if "re\n" in before else "(x)", 1
    )
    files = {"pkg/__init__.py": "", "pkg/other.py": "thing = 1\n", path: source}
    assert (path in after(files, delete(files, f"{path}::gone_by"))) is is_left


def test_a_file_that_something_imports_stays() -> None:
    files = {"pkg/__init__.py": "from . import m\n", "pkg/m.py": GONE}
    assert after(files, delete(files, "pkg/m.py::gone_by"))["pkg/m.py"] == ""


@pytest.mark.parametrize(
    ("code", "is_left"),
    [
        ("PLUGINS = ['pkg.m', 'pkg.other']\n", True),
        ("import importlib\n\nm = importlib.import_module('.m', __package__)\n", True),
        ("SUFFIXES = ['.m']\n", False),
        ("# See 'pkg.m'.\nPLUGINS = ['other.m', 'pkg.m.x', 'the pkg.m']\n", False),
        ('"""Loads \'pkg.m\'."""\n', False),
    ],
)
def test_a_file_whose_dotted_name_is_a_string_stays(code: str, *, is_left: bool) -> None:
    files = {"pkg/__init__.py": code, "pkg/m.py": GONE}
    assert ("pkg/m.py" in after(files, delete(files, "pkg/m.py::gone_by"))) is is_left


def test_a_string_that_goes_does_not_keep_a_file() -> None:
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE, "pkg/n.py": "def load():\n    return 'pkg.m'\n\n\nLIMIT = 1\n"}
    assert "pkg/m.py" not in after(files, delete(files, "pkg/m.py::gone_by", "pkg/n.py::load"))
