"""Names that lead through cycles of imports: what is found does not depend on what was asked for before."""

from __future__ import annotations

import random

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.module_names import ModuleNames
from excise.extractors.python.analysis.name_resolution import Entity, Resolver

PACKAGES = {
    "submodule of itself": {
        "pkg/__init__.py": "from . import _parse\n",
        "pkg/_parse.py": "def load(): ...\n",
    },
    "star of a module that imports its sibling": {
        "pkg/__init__.py": "from .core import *\n",
        "pkg/core.py": "from pkg import _parse\nfrom pkg import missing\n",
        "pkg/_parse.py": "from .core import *\ndef load(): ...\n",
    },
    "two that import each other": {
        "pkg/__init__.py": "from .core import load, other\n",
        "pkg/core.py": "from pkg._parse import load\nfrom pkg import other, gone\n",
        "pkg/_parse.py": "from pkg.core import other, gone\nfrom pkg import *\ndef load(): ...\n",
    },
}


@pytest.mark.parametrize("files", PACKAGES.values(), ids=PACKAGES.keys())
def test_the_order_of_questions_does_not_matter(files: dict[str, str]) -> None:
    modules = PythonCodebase.from_texts(files).modules
    asked = [(path, name) for path in files for name in ("_parse", "load", "other", "missing", "gone", "core")]
    kinds = [(kind, path, name) for path, name in asked for kind in ("name", "attribute")]
    answers = []
    for seed in range(30):
        resolver = Resolver(modules, ModuleNames(modules))
        found = {}
        for kind, path, name in random.Random(seed).sample(kinds, len(kinds)):
            found[kind, path, name] = (
                resolver.name(path, name) if kind == "name" else resolver.attribute(Entity(path, ""), name)
            )
        answers.append(found)
    assert all(found == answers[0] for found in answers)
    assert answers[0]["attribute", "pkg/__init__.py", "_parse"] == Entity("pkg/_parse.py", "")


def test_uses_through_the_package_itself_are_found_after_other_questions() -> None:
    codebase = PythonCodebase.from_texts(
        {
            "pkg/__init__.py": "from . import _parse\n\ndef load():\n    return _parse.read()\n",
            "pkg/_parse.py": "def read(): ...\n",
        }
    )
    codebase.resolver.attribute(Entity("pkg/__init__.py", ""), "_parse")
    assert codebase.callees("pkg/__init__.py::load") == {"pkg/_parse.py::read"}
