import pytest

from shapes import Circle, Rectangle, Square, register, registered
from shapes.base import lookup


def test_registered():
    assert registered() == ["circle", "rectangle", "square"]


def test_taken_name():
    with pytest.raises(ValueError):
        register("circle")(object)


def test_lookup():
    assert lookup("square") is Square


def test_lookup_unknown():
    with pytest.raises(KeyError, match="known: circle"):
        lookup("blob")


def test_scaled_area(frame):
    assert frame.scaled_area(2) == 48


def test_scaled_by_nothing(frame):
    with pytest.raises(ValueError):
        frame.scaled_area(0)


@pytest.mark.parametrize("side,expected", [(1, 1), (4, -1), (2, 0)])
def test_compare(side, expected):
    assert Rectangle(1, 4).compare(Square(side)) == expected


def test_circles_have_units():
    assert Circle(1).unit == "cm"
