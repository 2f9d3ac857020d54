"""Classes whose tests another file defines keep no expected values where these tests are observed."""

from __future__ import annotations

import pytest

from excise.extractors.python.lifting.lifted_tests import lifted


@pytest.mark.parametrize(
    "code",
    [
        "class TestA(Base):\n    x, y = 3, 4242\n",
        "class TestA(Base):\n    x: int = 3\n    y: int = 4242\n",
        "Y = 4242\n\n\nclass TestA(Base):\n    x = 3\n    y = Y\n",
        "if Base:\n\n    class TestA(Base):\n        x = 3\n        y = 4242\n",
    ],
    ids=["several", "with types", "of the file", "in a condition"],
)
def test_constants_that_only_expectations_use_go(code: str) -> None:
    found = lifted(b"from base import Base\n\n\n" + code.encode(), (), ["f"], {"TestA": ["f", "self", "x"]})
    assert found is not None
    assert b"4242" in found.judging
    assert b"4242" not in found.observing
    assert b"x = 3" in found.observing


def test_constants_of_other_classes_stay() -> None:
    code = b"class TestA(Base):\n    x = 3\n\n    class Form:\n        kind = 4242\n"
    found = lifted(code, (), ["f"], {"TestA": ["f", "self", "x"]})
    assert found is not None
    assert b"kind = 4242" in found.observing
