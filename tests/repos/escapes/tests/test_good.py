import pytest

from escapes import double, half


@pytest.mark.parametrize("number", range(6))
def test_double(number):
    assert double(number) == number * 2


@pytest.mark.parametrize("number", range(0, 12, 2))
def test_half(number):
    assert half(number) * 2 == number


def test_odd():
    with pytest.raises(ValueError):
        half(3)
