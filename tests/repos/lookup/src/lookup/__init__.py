"""Numbers from tables that are generated."""

from lookup.tables import find, names, position, total

__all__ = ["find", "names", "position", "total"]
