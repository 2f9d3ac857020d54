"""Figures with right angles."""

from functools import lru_cache

from .base import Shape, register


@lru_cache(maxsize=None)
def diagonal(width, height):
    """Length of a rectangle's diagonal; remembered, since it is asked for again and again."""
    square = width * width + height * height
    root = square ** 0.5
    return round(root, 6)


@register("rectangle")
class Rectangle(Shape):
    """A rectangle by its sides."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def fits_into(self, other):
        """Whether it can be laid into another rectangle, turned if need be."""
        mine = sorted((self.width, self.height))
        theirs = sorted((other.width, other.height))
        return mine[0] <= theirs[0] and mine[1] <= theirs[1]

    def corner_distance(self):
        """Distance of opposite corners."""
        return diagonal(self.width, self.height)


@register("square")
class Square(Rectangle):
    """A rectangle with equal sides."""

    def __init__(self, side):
        super().__init__(side, side)

    def grow(self, step):
        """A larger square."""
        side = self.width + step
        if side < 0:
            raise ValueError("nothing is left of it")
        return Square(side)
