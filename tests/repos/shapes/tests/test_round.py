import math

import pytest

from shapes import Circle, ring_area


def test_area():
    assert Circle(1).area() == math.pi


def test_negative_radius():
    with pytest.raises(ValueError):
        Circle(-1)


def test_circumference():
    assert Circle(2).circumference() == pytest.approx(4 * math.pi)


@pytest.mark.parametrize("outer,inner,factor", [(2, 1, 3), (1, 2, 3), (1, 1, 0)])
def test_ring(outer, inner, factor):
    assert ring_area(outer, inner) == pytest.approx(factor * math.pi)


def test_ring_without_hole():
    assert ring_area(3, 0) == pytest.approx(Circle(3).area())
