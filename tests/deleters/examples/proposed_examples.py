"""Worked examples of the deleter ``proposed``."""

from __future__ import annotations

from .example import Example

_BRANCH = Example(
    name="a branch goes with the import that only it used",
    before={
        "m.py": (
            "import json\nimport os\n\n\ndef show(x, form):\n    if form == 'json':\n        return json.dumps(x)\n"
            "    return os.fspath(x)\n\n\nLAST = 1\n"
        ),
    },
    delete=("m.py::show",),
    changed=(("m.py::show", "def show(x, form):\n    return os.fspath(x)"),),
    after={"m.py": "import os\n\n\ndef show(x, form):\n    return os.fspath(x)\n\n\nLAST = 1\n"},
)

_BOTH = Example(
    name="a definition goes as a whole, with its import elsewhere, and its call as a part",
    before={
        "a.py": "def fancy(x):\n    return x * 2\n\n\ndef plain(x):\n    return x\n",
        "b.py": (
            "from a import fancy, plain\n\n\nclass Show:\n    def run(self, x, wanted):\n        if wanted:\n"
            "            return fancy(x)\n        return plain(x)\n"
        ),
        "test_b.py": (
            "from a import fancy\nfrom b import Show\n\n\ndef test_fancy():\n    assert fancy(1) == Show().run(1, True)"
            "\n\n\ndef test_plain():\n    assert Show().run(1, False) == 1\n"
        ),
    },
    delete=("a.py::fancy", "b.py::Show.run"),
    changed=(("b.py::Show.run", "def run(self, x, wanted):\n        return plain(x)"),),
    after={
        "a.py": "def plain(x):\n    return x\n",
        "b.py": "from a import plain\n\n\nclass Show:\n    def run(self, x, wanted):\n        return plain(x)\n",
        "test_b.py": "from b import Show\n\n\ndef test_plain():\n    assert Show().run(1, False) == 1\n",
    },
    hide=("test_b.py::test_fancy",),
)

_IN_COMMENTS = Example(
    name="the code of a branch in comments of its function goes, above and below the last statement",
    before={
        "m.py": (
            "def show(x, form):\n    if form == 'json':\n        return x.dumped(2)\n"
            "    # return x.dumped(2) if form == 'json' else x.text\n    return x.text\n"
            "    # match form:\n    #     case 'json':\n    #         return x.dumped(2)\n    #     case _:\n"
            "    #         return x.text\n\n\n# show(x, 'json').dumped(2)\nLAST = 1\n"
        ),
    },
    delete=("m.py::show",),
    changed=(
        (
            "m.py::show",
            "def show(x, form):\n    # return x.dumped(2) if form == 'json' else x.text\n    return x.text\n"
            "    # match form:\n    #     case 'json':\n    #         return x.dumped(2)\n    #     case _:\n"
            "    #         return x.text",
        ),
    ),
    after={
        "m.py": (
            "def show(x, form):\n    return x.text\n    # match form:\n    #     case _:\n    #         return x.text\n"
            "\n\n# show(x, 'json').dumped(2)\nLAST = 1\n"
        ),
    },
)

_BROKEN = Example(
    name="a text that is no Python is refused",
    before={"m.py": "def f(x):\n    return x\n"},
    delete=("m.py::f",),
    changed=(("m.py::f", "def f(x:\n    return"),),
    after={},
)

EXAMPLES = (_BRANCH, _BOTH, _IN_COMMENTS, _BROKEN)
