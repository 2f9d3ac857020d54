"""What all figures have in common, and the register of their names."""

_REGISTER = {}


def register(name):
    """Class decorator: make a figure known under a name."""

    def remember(cls):
        if name in _REGISTER:
            raise ValueError(f"{name} is taken")
        _REGISTER[name] = cls
        return cls

    return remember


def registered():
    """Names of all known figures, sorted.

    >>> "circle" in registered()
    True
    """
    return sorted(_REGISTER)


def lookup(name):
    """The figure of that name; raises ``KeyError`` with the names that there are."""
    try:
        return _REGISTER[name]
    except KeyError:
        known = ", ".join(registered())
        raise KeyError(f"no figure {name!r}; known: {known}") from None


class Shape:
    """A figure with an area."""

    unit = "cm"

    def area(self):
        """Area in square units."""
        raise NotImplementedError

    def scaled_area(self, factor):
        """Area after stretching every side by ``factor``.

        Raises ``ValueError`` for a factor that is not positive.
        """
        if factor <= 0:
            raise ValueError("the factor must be positive")
        return self.area() * factor * factor

    def compare(self, other):
        """-1, 0 or 1 as this figure is smaller than, as large as, or larger than the other."""
        mine, theirs = self.area(), other.area()
        if mine < theirs:
            return -1
        return int(mine > theirs)
