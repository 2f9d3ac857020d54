"""Figures as text."""

from .base import lookup


def _article(word):
    vowels = "aeiou"
    first = word[:1].lower()
    return "an" if first in vowels else "a"


def describe(shape):
    """One line for people: ``a Circle of 3.14 square cm``."""
    name = type(shape).__name__
    area = f"{shape.area():.2f}"
    return f"{_article(name)} {name} of {area} square {shape.unit}"


def parse(text):
    """A figure from ``name:number,number``.

    Raises ``ValueError`` if there are no numbers, ``KeyError`` for an unknown name.
    """
    name, _, numbers = text.partition(":")
    values = [float(number) for number in numbers.split(",") if number.strip()]
    if not values:
        raise ValueError(f"no numbers in {text!r}")
    return lookup(name.strip())(*values)
