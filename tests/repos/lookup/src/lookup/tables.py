"""Reads the generated tables."""

import json
import pathlib

TABLES = json.loads((pathlib.Path(__file__).parent / "tables.json").read_text())


def names():
    """Names of the tables, sorted."""
    return sorted(TABLES)


def find(table, index):
    """A number of a table.

    Raises KeyError for an unknown table, IndexError for a negative or too large index.
    """
    if index < 0:
        raise IndexError(index)
    return TABLES[table][index]


def position(table, number):
    """Where a number stands in a table; -1 if it does not."""
    numbers = TABLES[table]
    return numbers.index(number) if number in numbers else -1


def total(table, count):
    """Sum of the first numbers of a table."""
    if count < 0:
        raise ValueError("count is negative")
    return sum(TABLES[table][:count])
