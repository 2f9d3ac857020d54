"""Plane figures."""

from .base import Shape, registered, register
from .round import Circle, ring_area
from .squares import Rectangle, Square, diagonal
from .text import describe, parse
from .walk import spiral
from . import tables

__all__ = [
    "Circle",
    "Rectangle",
    "Shape",
    "Square",
    "describe",
    "diagonal",
    "parse",
    "register",
    "registered",
    "ring_area",
    "spiral",
    "tables",
]
