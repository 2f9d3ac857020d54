"""A source file with stubbed methods, and tasks about one of them."""

from __future__ import annotations

from dataclasses import replace

from excise.types import Task

SOURCE = '''"""Figures."""

class Square:
    @property
    def side(self):
        """How long it is."""
        raise NotImplementedError

    def area(self, unit: str = "m") -> float:
        raise NotImplementedError


def area(x):
    return x
'''
PATCH = """--- a/figures.py
+++ b/figures.py
@@ -9,2 +9,2 @@
     def area(self, unit: str = "m") -> float:
-        raise NotImplementedError
+        return self.side ** 2
"""


def one_line(task: Task, qualname: str = "Square.area") -> Task:
    return replace(task, removed=(f"figures.py::{qualname}",), patch=PATCH)
