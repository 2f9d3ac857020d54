import pytest

from shapes import Rectangle


@pytest.fixture(scope="session")
def frame():
    return Rectangle(3, 4)
