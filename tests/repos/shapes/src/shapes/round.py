"""Round figures."""

import math

from .base import Shape, register


@register("circle")
class Circle(Shape):
    """A circle by its radius."""

    def __init__(self, radius):
        if radius < 0:
            raise ValueError("a radius is not negative")
        self.radius = radius

    def area(self):
        return math.pi * self.radius ** 2

    def circumference(self):
        """Length of the line around."""
        turns = 2
        length = turns * math.pi * self.radius
        return length


def ring_area(outer, inner):
    """Area between two circles around the same point.

    The order of the radii does not matter.
    """
    larger = max(outer, inner)
    smaller = min(outer, inner)
    return _disc(larger) - _disc(smaller)


def _disc(radius):
    square = radius * radius
    area = math.pi * square
    return area
