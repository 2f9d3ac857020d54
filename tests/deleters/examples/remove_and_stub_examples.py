"""Worked examples of the deleter ``remove_and_stub``."""

from __future__ import annotations

from .example import Example

_STAYS = "def report(rows):\n    table = render(rows)\n    return table + '.'\n"

_CALLED = Example(
    name="what a function that stays calls keeps its name and its docstring, the rest goes with its import",
    before={
        "m.py": (
            "import json\n\n_WIDTH = 9\n\n\ndef quoted(x):\n    return json.dumps(x)\n\n\ndef render(rows):\n"
            '    """A table."""\n    rows = [quoted(row) for row in rows]\n    return _WIDTH * " ".join(rows)\n\n\n'
        )
        + _STAYS,
        "test_m.py": (
            "from m import quoted, report\n\n\ndef test_quoted():\n    assert quoted(1) == '1'\n\n\n"
            "def test_report():\n    assert report\n"
        ),
    },
    delete=("m.py::quoted", "m.py::render"),
    after={
        "m.py": 'def render(rows):\n    """A table."""\n    raise NotImplementedError\n\n\n' + _STAYS,
        "test_m.py": "from m import report\n\n\ndef test_report():\n    assert report\n",
    },
    hide=("test_m.py::test_quoted",),
)

_CLASS = Example(
    name="of a class that stays, the method goes that emptied ones need; of one that is used, bodies are emptied",
    before={
        "m.py": (
            "class Box:\n    size = 3\n\n    def fill(self):\n        return Seal(self).close()\n\n\n"
            "class Seal:\n    kind = 'wax'\n\n    def __init__(self, box):\n        self.box = box\n\n"
            "    def close(self):\n        return weigh(self.box)\n\n\n"
            "def weigh(box):\n    return box.size\n"
        ),
    },
    delete=("m.py::weigh", "m.py::Seal", "m.py::Seal.close"),
    after={
        "m.py": (
            "class Box:\n    size = 3\n\n    def fill(self):\n        return Seal(self).close()\n\n\n"
            "class Seal:\n    kind = 'wax'\n\n    def __init__(self, box):\n        raise NotImplementedError\n\n"
            "    def close(self):\n        raise NotImplementedError\n"
        ),
    },
)

_CHAIN = Example(
    name="nothing that an emptied body alone used keeps its name",
    before={
        "m.py": (
            "def stays():\n    x = first()\n    return x\n\n\ndef first():\n    return second() + 1\n\n\n"
            "def second():\n    return third() + 1\n\n\ndef third():\n    return 1\n"
        ),
    },
    delete=("m.py::first", "m.py::second", "m.py::third"),
    after={"m.py": "def stays():\n    x = first()\n    return x\n\n\ndef first():\n    raise NotImplementedError\n"},
)

_OTHER = Example(
    name="what has nothing to do with what becomes a stub is not deleted beside it",
    before={
        "m.py": (
            "def stays():\n    x = first()\n    return x\n\n\ndef first():\n    return 1\n\n\n"
            "def second():\n    return first() + 1\n"
        ),
    },
    delete=("m.py::first", "m.py::second"),
    after={},
)

_ALL = Example(
    name="a feature all of which is used is refused",
    before={"m.py": "def stays():\n    return a() + b()\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n"},
    delete=("m.py::a", "m.py::b"),
    after={},
)

_ALIAS = Example(
    name="a name that an assignment binds cannot be kept for its user",
    before={
        "m.py": (
            "class Zone:\n    def name(self):\n        return 'x'\n\n\nLOCAL = Zone()\n\n\n"
            "def other():\n    return 2\n\n\n"
            "def stays():\n    zone = LOCAL\n    return zone\n"
        ),
    },
    delete=("m.py::Zone", "m.py::Zone.name", "m.py::other"),
    after={},
)

_IMPORTED = Example(
    name="what another file imports for a function that stays keeps its name there, too",
    before={
        "p/__init__.py": "from p.a import first, second\n",
        "p/a.py": "def first():\n    return second() + 1\n\n\ndef second():\n    return 1\n",
        "p/b.py": "from p import first\n\n\ndef stays():\n    return [first()]\n",
    },
    delete=("p/a.py::first", "p/a.py::second"),
    after={
        "p/__init__.py": "from p.a import first\n",
        "p/a.py": "def first():\n    raise NotImplementedError\n",
    },
)

EXAMPLES = (_IMPORTED, _CALLED, _CLASS, _CHAIN, _OTHER, _ALL, _ALIAS)
