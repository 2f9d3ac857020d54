"""Worked examples of the deleter ``remove``."""

from __future__ import annotations

from .example import Example

_MODULE = '''\
"""Text tools."""

import re
from collections import Counter

__all__ = ["shout", "words", "most_common"]

WORD = re.compile(r"\\w+")


def shout(text):
    return text.upper() + "!"


# How often words occur matters more
# than where they stand.
def most_common(text):
    """The most frequent word."""
    return Counter(words(text)).most_common(1)[0][0]


def words(text):
    return WORD.findall(text)
'''

_WITHOUT_COUNTER = '''\
"""Text tools."""

import re

__all__ = ["shout", "words"]

WORD = re.compile(r"\\w+")


def shout(text):
    return text.upper() + "!"


def words(text):
    return WORD.findall(text)
'''

_FUNCTION = Example(
    name="a function, its comment, its __all__ entry, its re-export and the import that only it used",
    before={
        "pkg/__init__.py": "from .text import (\n    most_common,\n    shout,\n    words,\n)\n",
        "pkg/text.py": _MODULE,
    },
    delete=("pkg/text.py::most_common",),
    after={
        "pkg/__init__.py": "from .text import (\n    shout,\n    words,\n)\n",
        "pkg/text.py": _WITHOUT_COUNTER,
    },
)

_STARS = Example(
    name="star imports: a name goes where it came from the removed code alone",
    before={
        "pkg/a.py": "from pkg.b import other\n\n__all__ = ['f']\n\n\ndef f(x):\n    return other(x)\n",
        "pkg/b.py": "def other(x):\n    return x\n",
        "pkg/middle.py": "from pkg.a import *\n",
        "pkg/__init__.py": "from pkg.b import *\nfrom pkg.middle import *\n",
        "pkg/curried.py": "import pkg\n\nf = pkg.f\nother = pkg.other\n",
    },
    delete=("pkg/a.py",),
    after={
        "pkg/a.py": None,
        "pkg/middle.py": "",
        "pkg/curried.py": "import pkg\n\nother = pkg.other\n",
    },
)

_ALIAS = Example(
    name="aliases and what is made of them go too, across files",
    before={
        "pkg/a.py": "import functools\n\n\ndef f(x):\n    return x\n\n\ng = f\nh = functools.partial(g, 1)\nk = 2\n",
        "pkg/b.py": "from pkg.a import g as gg, k\n\nTABLE = {'g': gg, 'k': k}\n",
        "pkg/__init__.py": "",
    },
    delete=("pkg/a.py::f",),
    after={
        "pkg/a.py": "k = 2\n",
        "pkg/b.py": "from pkg.a import k\n\nTABLE = {'k': k}\n",
    },
)

_DESCRIBED_ALIAS = Example(
    name="the string below an assignment goes with it; one below a blank line, or one that stays, does not",
    before={
        "m.py": (
            'def f(x):\n    return x\n\n\n"""Section: what is made of it."""\n\n'
            'g = f\n"""The old name."""\n\nh: object = f  # a third one\n"""\nA name\nwith a type.\n"""\n\n'
            'class A:\n    k = f\n    """Inside."""\n\n\ni = f\n\n"""Section: other things."""\n\n'
            'n = 1\n"""A number."""\n'
        ),
    },
    delete=("m.py::f",),
    after={
        "m.py": (
            '"""Section: what is made of it."""\n\nclass A:\n    pass\n\n\n"""Section: other things."""\n\n'
            'n = 1\n"""A number."""\n'
        ),
    },
)

_REGISTRATION = Example(
    name="registrations, attributes and tables; a tuple inside a list is a record",
    before={
        "m.py": (
            "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\n"
            'f.short = True\nregister("f", f)\nregister("g", g)\nREGISTRY["f"] = f\n'
            'ALL = [("f", f), ("g", g)]\nPAIR = (f, g)\nKNOWN = {\n    "f": f,  # the first\n    "g": g,\n}\n'
        ),
        "test_m.py": (
            "from m import f, g\n\n\ndef test_f():\n    assert f() == 1\n\n\ndef test_g():\n    assert g() == 2\n"
        ),
    },
    delete=("m.py::f",),
    after={
        "m.py": (
            'def g():\n    return 2\n\n\nregister("g", g)\nALL = [("g", g)]\nPAIR = (g,)\nKNOWN = {\n    "g": g,\n}\n'
        ),
        "test_m.py": "from m import g\n\n\ndef test_g():\n    assert g() == 2\n",
    },
    hide=("test_m.py::test_f",),
)

_METHOD = Example(
    name="a method with its property accessors and its alias in the class; the class keeps its shape",
    before={
        "m.py": (
            "class Box:\n    size = 1\n\n    def __init__(self, w):\n        self.w = w\n\n"
            "    @property\n    def width(self):\n        return self.w\n\n"
            "    @width.setter\n    def width(self, value):\n        self.w = value\n\n"
            "    breadth = width\n\n    def area(self):\n        return self.w**2\n"
        )
    },
    delete=("m.py::Box.width",),
    after={
        "m.py": (
            "class Box:\n    size = 1\n\n    def __init__(self, w):\n        self.w = w\n\n"
            "    def area(self):\n        return self.w**2\n"
        )
    },
)

_LAST_METHOD = Example(
    name="the last statement of a block leaves pass behind",
    before={"m.py": "class A(Base):\n    # says hello\n    def hello(self):\n        print('hello')\n\n\nx = A\n"},
    delete=("m.py::A.hello",),
    after={"m.py": "class A(Base):\n    pass\n\n\nx = A\n"},
)

_FALLBACK = Example(
    name="an optional accelerator with its fallback: nothing is left of the try statement",
    before={
        "pkg/__init__.py": "",
        "pkg/fast.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
        "pkg/api.py": "try:\n    from .fast import f\nexcept ImportError:\n    f = None\n\nfrom .fast import g\n",
    },
    delete=("pkg/fast.py::f",),
    after={"pkg/fast.py": "def g():\n    return 2\n", "pkg/api.py": "from .fast import g\n"},
)

_CLASS = Example(
    name="a class, its instance, uses under TYPE_CHECKING and __main__",
    before={
        "pkg/__init__.py": "from pkg.core import Engine, run\n\n__all__ = ('Engine', 'run')\n",
        "pkg/core.py": (
            "import sys\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Engine:\n    n: int = 0\n\n"
            "    def go(self):\n        return self.n\n\n\ndef run(argv):\n    return argv\n\n\n"
            'if __name__ == "__main__":\n    engine = Engine()\n    engine.go()\n    run(sys.argv)\n'
        ),
        "pkg/types.py": (
            "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
            "    from pkg.core import Engine\n\n\ndef start(e: Engine):\n    return e\n"
        ),
    },
    delete=("pkg/core.py::Engine",),
    after={
        "pkg/__init__.py": "from pkg.core import run\n\n__all__ = ('run',)\n",
        "pkg/core.py": (
            'import sys\n\n\ndef run(argv):\n    return argv\n\n\nif __name__ == "__main__":\n    run(sys.argv)\n'
        ),
        "pkg/types.py": ("from __future__ import annotations\n\n\ndef start(e: Engine):\n    return e\n"),
    },
)

_MODULE_FILE = Example(
    name="a whole module: star import, submodule import, sum of __all__ and entry point",
    before={
        "pyproject.toml": (
            '[project]\nname = "pkg"\n\n[project.scripts]\ncolours = "pkg.colours:main"\npkg = "pkg.cli:main"\n'
        ),
        "src/pkg/__init__.py": (
            "from . import colours, shapes\nfrom .colours import *\nfrom .shapes import *\n\n"
            "__all__ = colours.__all__ + shapes.__all__\n"
        ),
        "src/pkg/colours.py": "__all__ = ['red']\n\n\ndef red():\n    return 1\n\n\ndef main():\n    red()\n",
        "src/pkg/shapes.py": "__all__ = ['cube']\n\n\ndef cube():\n    return 3\n",
        "src/pkg/cli.py": "import pkg.colours\nimport pkg\n\n\ndef main():\n    return pkg.cube()\n",
    },
    delete=("src/pkg/colours.py",),
    after={
        "pyproject.toml": '[project]\nname = "pkg"\n\n[project.scripts]\npkg = "pkg.cli:main"\n',
        "src/pkg/__init__.py": "from . import shapes\nfrom .shapes import *\n\n__all__ = shapes.__all__\n",
        "src/pkg/colours.py": None,
        "src/pkg/cli.py": "import pkg\n\n\ndef main():\n    return pkg.cube()\n",
    },
)

_TESTS = Example(
    name="hidden tests: parameters, classes, helpers, fixtures and data that only they used",
    before={
        "m.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return -x\n",
        "tests/test_m.py": (
            "import pytest\nimport m\nfrom m import f, g\n\nEXPECTED = {1: 1}\n\n\n@pytest.fixture\ndef table():\n"
            "    return EXPECTED\n\n\ndef check(x, table):\n    assert f(x) == table[x]\n\n\n"
            '@pytest.mark.parametrize("x", [1, 2])\ndef test_f(x, table):\n    check(x, table)\n\n\n'
            '@pytest.mark.parametrize("func", [f, g])\ndef test_call(func):\n    func(1)\n\n\n'
            '@pytest.mark.parametrize("func", [m.f])\ndef test_only(func):\n    func(1)\n\n\n'
            "class TestF:\n    def test_again(self):\n        assert f(3) == 3\n"
        ),
        "tests/test_f.py": "from m import f\n\n\ndef test_it():\n    assert f(0) == 0\n",
    },
    delete=("m.py::f",),
    after={
        "m.py": "def g(x):\n    return -x\n",
        "tests/test_m.py": (
            "import pytest\nfrom m import g\n\n\n"
            '@pytest.mark.parametrize("func", [g])\ndef test_call(func):\n    func(1)\n'
        ),
        "tests/test_f.py": None,
    },
    hide=(
        "tests/test_m.py::test_f[1]",
        "tests/test_m.py::test_f[2]",
        "tests/test_m.py::TestF::test_again",
        "tests/test_f.py::test_it",
    ),
)

_OVERLOADS = Example(
    name="overloads and singledispatch implementations belong to their function",
    before={
        "m.py": (
            "from functools import singledispatch\nfrom typing import overload\n\n\n"
            "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x\n\n\n"
            "@singledispatch\ndef show(x):\n    return 'x'\n\n\n@show.register(int)\n"
            "def _show_int(x):\n    return 'int'\n"
        )
    },
    delete=("m.py::f", "m.py::show"),
    after={"m.py": ""},
)

_BASE_CLASS = Example(
    name="refused: a base class of something that stays",
    before={"m.py": "class A:\n    pass\n\n\nclass B(A):\n    pass\n"},
    delete=("m.py::A",),
    after={},
)

_DECORATOR = Example(
    name="refused: a decorator of something that stays",
    before={"m.py": "def deco(f):\n    return f\n\n\n@deco\ndef g():\n    pass\n"},
    delete=("m.py::deco",),
    after={},
)

_SPECIAL_METHOD = Example(
    name="refused: Python itself calls the constructor",
    before={"m.py": "class A:\n    def __init__(self):\n        self.x = 1\n"},
    delete=("m.py::A.__init__",),
    after={},
)

_ODD_LAYOUT = Example(
    name="tabs, carriage returns, semicolons and no newline at the end",
    before={
        "m.py": "def f():\r\n\treturn 1\r\n\r\nx = 1; g = f; y = 2\r\nif x: h = f\r\n\r\ndef k():\r\n\treturn 2",
    },
    delete=("m.py::f",),
    after={"m.py": "x = 1; y = 2\r\n\r\ndef k():\r\n\treturn 2"},
)

EXAMPLES: tuple[Example, ...] = (
    _FUNCTION, _ALIAS, _DESCRIBED_ALIAS, _STARS, _REGISTRATION, _METHOD, _LAST_METHOD, _FALLBACK, _CLASS,
    _MODULE_FILE, _TESTS, _OVERLOADS, _BASE_CLASS, _DECORATOR, _SPECIAL_METHOD, _ODD_LAYOUT,
)  # fmt: skip
