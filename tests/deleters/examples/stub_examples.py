"""Worked examples of the deleter ``stub``."""

from __future__ import annotations

from .example import Example

_FUNCTION = Example(
    name="a function keeps its decorators, signature and docstring; comments of the body go",
    before={
        "m.py": (
            'import functools\n\n\n@functools.cache\ndef f(x: int = 1) -> int:\n    """Twice x."""\n'
            "    # double it\n    y = 2 * x\n    return y  # done\n\n\nprint(1)\n"
        )
    },
    delete=("m.py::f",),
    after={
        "m.py": (
            'import functools\n\n\n@functools.cache\ndef f(x: int = 1) -> int:\n    """Twice x."""\n'
            "    raise NotImplementedError\n\n\nprint(1)\n"
        )
    },
)

_IMPORTS = Example(
    name="imports that only emptied bodies and hidden tests used go, also in __init__",
    before={
        "pkg/__init__.py": "import math\nimport os\n\n\ndef f(x):\n    return math.sqrt(x)\n\n\nHERE = os.getcwd()\n",
        "test_m.py": (
            "import pkg\nfrom pkg import f\n\n\n"
            "def test_f():\n    assert f(4) == pkg.f(4)\n\n\ndef test_x():\n    pass\n"
        ),
    },
    delete=("pkg/__init__.py::f",),
    after={
        "pkg/__init__.py": "import os\n\n\ndef f(x):\n    raise NotImplementedError\n\n\nHERE = os.getcwd()\n",
        "test_m.py": "def test_x():\n    pass\n",
    },
    hide=("test_m.py::test_f",),
)

_ONE_LINER = Example(
    name="one-liners stay one line",
    before={"m.py": "def f(x): return x\ndef g(x): y = x; return y\n"},
    delete=("m.py::f", "m.py::g"),
    after={"m.py": "def f(x): raise NotImplementedError\ndef g(x): raise NotImplementedError\n"},
)

_DOCSTRING_ONLY = Example(
    name="a function that is only a docstring",
    before={"m.py": 'class A:\n    def f(self):\n        """Nothing yet."""\n\n    x = 1\n'},
    delete=("m.py::A.f",),
    after={
        "m.py": (
            'class A:\n    def f(self):\n        """Nothing yet."""\n        raise NotImplementedError\n\n    x = 1\n'
        )
    },
)

_GENERATORS = Example(
    name="generators and coroutines",
    before={"m.py": "def f(xs):\n    for x in xs:\n        yield x\n\n\nasync def g():\n    await h()\n    return 1\n"},
    delete=("m.py::f", "m.py::g"),
    after={"m.py": "def f(xs):\n    raise NotImplementedError\n\n\nasync def g():\n    raise NotImplementedError\n"},
)

_PROPERTY = Example(
    name="a property with its setter",
    before={
        "m.py": (
            "class A:\n    @property\n    def w(self):\n        return self._w\n\n"
            "    @w.setter\n    def w(self, value):\n        self._w = value\n"
        )
    },
    delete=("m.py::A.w",),
    after={
        "m.py": (
            "class A:\n    @property\n    def w(self):\n        raise NotImplementedError\n\n"
            "    @w.setter\n    def w(self, value):\n        raise NotImplementedError\n"
        )
    },
)

_CLASS = Example(
    name="a class: every method, also of nested classes; what is abstract stays",
    before={
        "m.py": (
            "class A:\n    n = 1\n\n    def f(self):\n        return self.n\n\n    class B:\n        def g(self):\n"
            "            return 2\n\n    @abstractmethod\n    def h(self):\n        ...\n"
        )
    },
    delete=("m.py::A",),
    after={
        "m.py": (
            "class A:\n    n = 1\n\n    def f(self):\n        raise NotImplementedError\n\n"
            "    class B:\n        def g(self):\n"
            "            raise NotImplementedError\n\n    @abstractmethod\n    def h(self):\n        ...\n"
        )
    },
)

_MODULE = Example(
    name="a whole module, with tabs and carriage returns, and its test file",
    before={
        "m.py": "X = 1\r\n\r\ndef f():\r\n\tif X:\r\n\t\treturn 1\r\n\treturn 2",
        "test_m.py": "import m\n\n\ndef test_f():\n    assert m.f() == 1\n\n\ndef test_x():\n    assert m.X == 1\n",
    },
    delete=("m.py",),
    after={
        "m.py": "X = 1\r\n\r\ndef f():\r\n\traise NotImplementedError",
        "test_m.py": "import m\n\n\ndef test_x():\n    assert m.X == 1\n",
    },
    hide=("test_m.py::test_f",),
)

_NESTED = Example(
    name="a function with functions inside it",
    before={"m.py": "def deco(f):\n    def inner(*args):\n        return f(*args)\n\n    return inner\n\n\ny = 1\n"},
    delete=("m.py::deco",),
    after={"m.py": "def deco(f):\n    raise NotImplementedError\n\n\ny = 1\n"},
)

_CONSTANTS = Example(
    name="refused: a module without functions",
    before={"m.py": "X = 1\n"},
    delete=("m.py",),
    after={},
)

EXAMPLES: tuple[Example, ...] = (
    _FUNCTION, _IMPORTS, _ONE_LINER, _DOCSTRING_ONLY, _GENERATORS, _PROPERTY, _CLASS, _MODULE, _NESTED, _CONSTANTS,
)  # fmt: skip
