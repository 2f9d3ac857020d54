"""Worked examples of the deleters ``line`` and ``expression``."""

from __future__ import annotations

from .example import Example

LINES: tuple[Example, ...] = (
    Example(
        name="the one statement behind a docstring goes, and its test",
        before={
            "m.py": 'def f(x):\n    """Twice."""\n    # doubles\n    return x * 2\n\n\ny = 1\n',
            "test_m.py": "from m import f, y\n\n\ndef test_f():\n    assert f\n\n\ndef test_y():\n    assert y\n",
        },
        delete=("m.py::f",),
        after={
            "m.py": 'def f(x):\n    """Twice."""\n    raise NotImplementedError\n\n\ny = 1\n',
            "test_m.py": "from m import y\n\n\ndef test_y():\n    assert y\n",
        },
        hide=("test_m.py::test_f",),
    ),
    Example(
        name="a method over several lines",
        before={"m.py": "class A:\n    def f(self):\n        return sum(\n            self.xs\n        )\n"},
        delete=("m.py::A.f",),
        after={"m.py": "class A:\n    def f(self):\n        raise NotImplementedError\n"},
    ),
    Example(
        name="refused: two statements",
        before={"m.py": "def f(x):\n    y = x\n    return y * 2\n"},
        delete=("m.py::f",),
        after={},
    ),
    Example(
        name="refused: one statement with others in it",
        before={"m.py": "def f(x):\n    if x:\n        return 1\n"},
        delete=("m.py::f",),
        after={},
    ),
    Example(
        name="refused: nothing in it",
        before={"m.py": 'def f(x):\n    """Nothing."""\n    raise NotImplementedError\n'},
        delete=("m.py::f",),
        after={},
    ),
)

EXPRESSIONS: tuple[Example, ...] = (
    Example(
        name="what a function returns, and its test",
        before={
            "m.py": "def f(x):\n    y = x + 1\n    return y * 2  # twice\n",
            "test_m.py": "import m\n\n\ndef test_f():\n    assert m.f(1) == 4\n\n\ndef test_m():\n    assert m\n",
        },
        delete=("m.py::f",),
        after={
            "m.py": "def f(x):\n    y = x + 1\n    raise NotImplementedError  # twice\n",
            "test_m.py": "import m\n\n\ndef test_m():\n    assert m\n",
        },
        hide=("test_m.py::test_f",),
    ),
    Example(
        name="of several the longest, over several lines",
        before={
            "m.py": (
                "def f(xs):\n    if not xs:\n        return {}\n    for x in xs:\n        return {\n"
                "            x: 1,\n        }\n    return xs[0]\n"
            )
        },
        delete=("m.py::f",),
        after={
            "m.py": (
                "def f(xs):\n    if not xs:\n        return {}\n    for x in xs:\n        raise NotImplementedError\n"
                "    return xs[0]\n"
            )
        },
    ),
    Example(
        name="functions inside keep theirs",
        before={"m.py": "def f(x):\n    def g(y):\n        return x * y + x * x * y\n\n    return g(x) + 1\n"},
        delete=("m.py::f",),
        after={"m.py": "def f(x):\n    def g(y):\n        return x * y + x * x * y\n\n    raise NotImplementedError\n"},
    ),
    Example(
        name="a body on the line of its def",
        before={"m.py": "class A:\n    def f(self, x): self.y = x; return self.y + x\n"},
        delete=("m.py::A.f",),
        after={"m.py": "class A:\n    def f(self, x): self.y = x; raise NotImplementedError\n"},
    ),
    Example(
        name="refused: nothing but names and constants",
        before={"m.py": "def f(x):\n    if x:\n        return None\n    return x\n"},
        delete=("m.py::f",),
        after={},
    ),
    Example(
        name="refused: nothing but a return",
        before={"m.py": "def f(x):\n    return x + 1\n"},
        delete=("m.py::f",),
        after={},
    ),
    Example(
        name="refused: a class",
        before={"m.py": "class A:\n    def f(self):\n        return 1 + 1\n"},
        delete=("m.py::A",),
        after={},
    ),
)
