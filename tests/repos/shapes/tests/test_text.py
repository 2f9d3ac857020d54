import pytest

import shapes
from shapes import Circle, Square


class TestDescribe:
    def test_circle(self):
        assert shapes.describe(Circle(1)) == "a Circle of 3.14 square cm"

    def test_square(self):
        assert shapes.describe(Square(2)) == "a Square of 4.00 square cm"


class TestParse:
    def test_square(self):
        assert shapes.parse("square: 3").area() == 9

    def test_rectangle(self):
        assert shapes.parse("rectangle:2,3").area() == 6

    def test_nothing(self):
        with pytest.raises(ValueError):
            shapes.parse("square")

    def test_unknown(self):
        with pytest.raises(KeyError):
            shapes.parse("blob:1")
