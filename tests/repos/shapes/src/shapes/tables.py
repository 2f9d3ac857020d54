"""Tables of areas, made when the module is loaded."""

from .round import Circle


def make_table(size):
    """Areas of the circles with radius 0, 1, … ``size - 1``, rounded."""
    table = []
    for radius in range(size):
        table.append(round(Circle(radius).area(), 3))
    return table


SMALL = make_table(4)


class Ruler:
    """Measures in the unit of a figure class."""

    def default_length(self):
        """Length of a new ruler."""
        base = 10
        length = base * 3
        return length

    length = property(default_length)

    def marks(self, step):
        """Places of the marks, first and last included."""
        places = []
        place = 0
        while place <= self.length:
            places.append(place)
            place += step
        return places
