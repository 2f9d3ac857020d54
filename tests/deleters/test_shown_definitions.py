"""Code that an example of a document defines is no stub."""

from __future__ import annotations

import pytest

from excise.deleters.python.stub import Stub
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Feature, FeatureKind

CODE = """def between(x):
    low, high = x
    return low < high


class Between:
    def __init__(self, x):
        self.x = x

    def help(self):
        return "between"
"""


def stub(symbol: str, document: str) -> None:
    files = {"kit/__init__.py": "", "kit/m.py": CODE, "docs/use.rst": document}
    codebase = PythonCodebase.from_texts(files)
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=())
    Stub().delete(codebase, feature)


@pytest.mark.parametrize(
    ("symbol", "document"),
    [
        (
            "kit/m.py::between",
            "Use\n===\n\n.. code-block:: python\n\n    def between(x):\n        a, b = x\n        return a < b\n",
        ),
        (
            "kit/m.py::Between.help",
            "Use\n===\n\n.. code-block:: python\n\n"
            "    class Between(Base):\n        def help(self):\n            return 'b'\n",
        ),
    ],
)
def test_what_a_document_defines_is_refused(symbol: str, document: str) -> None:
    with pytest.raises(DeletionRefused, match=r"docs/use\.rst shows how to write") as caught:
        stub(symbol, document)
    assert caught.value.reason == "shown_in_documents"


@pytest.mark.parametrize(
    "document",
    [
        "Use\n===\n\n.. code-block:: python\n\n    def between(x): ...\n",
        "Use\n===\n\n.. code-block:: python\n\n    def between(x):\n        pass\n\n    class Other:\n"
        "        def between(self):\n            a = 1\n            return a\n",
        "def between(x):\n",
    ],
)
def test_what_it_only_names_is_a_stub(document: str) -> None:
    stub("kit/m.py::between", document)
