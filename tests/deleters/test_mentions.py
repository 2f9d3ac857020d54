"""Comments and docstrings that stay do not name what is gone."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

GONE = "def gone_by(x):\n    return x\n\n\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("# Calls gone_by() last.\nx = 1\n", "x = 1\n"),
        ("# Sorted. Calls gone_by() last. And more\n# of it.\nx = 1\n", "# Sorted. And more of it.\nx = 1\n"),
        ("x = 1  # as for gone_by\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1  # noqa: gone_by\n", "x = 1  # noqa: gone_by\n"),
        ("# - one\n# - gone_by\n# - two\nx = 1\n", "# - one\n# - gone_by\n# - two\nx = 1\n"),
        ("x = 1  # bygone_by\n", "x = 1  # bygone_by\n"),
        ('def f():\n    """As gone_by."""\n', 'def f():\n    """As gone_by."""\n'),
        ('def f():\n    """First.\n\n    See :func:`gone_by`. It stays\n    here.\n    """\n',
         'def f():\n    """First.\n\n    It stays here.\n    """\n'),
        ('def f():\n    """First.\n\n    See :func:`gone_by`.\n\n    Last.\n    """\n',
         'def f():\n    """First.\n\n    Last.\n    """\n'),
        ('def f():\n    """First.\n\n    See :func:`gone_by`.\n    """\n', 'def f():\n    """First.\n    """\n'),
        ('"""First.\n\n>>> a = 1\n>>> a.gone_by(\n...     2)\n3\n>>> a\n1\n"""\n',
         '"""First.\n\n>>> a = 1\n>>> a\n1\n"""\n'),
        ('"""First.\n\nSo::\n\n    gone_by(1)\n\nSee gone_by().\n"""\n', '"""First.\n"""\n'),
        ('"""First.\n\nSo::\n\n    f(1)\n\n    gone_by(1)\n\nSee f().\n"""\n',
         '"""First.\n\nSo::\n\n    f(1)\n\nSee f().\n"""\n'),
        ('"""First.\n\n* one\n* `gone_by`: with\n  more\n* two\n"""\n', '"""First.\n\n* one\n* two\n"""\n'),
        ('"""First.\n\nSee Also\n--------\ngone_by : x\nother : y\n"""\n',
         '"""First.\n\nSee Also\n--------\nother : y\n"""\n'),
        ('"""First.\n\nSee Also\n--------\ngone_by : x\n\nNotes\n-----\nA\n"""\n',
         '"""First.\n\nNotes\n-----\nA\n"""\n'),
    ],
)  # fmt: skip
def test_a_sentence_or_an_item_that_names_it_goes(before: str, expected: str) -> None:
    files = {"m.py": GONE, "n.py": before}
    assert after(files, delete(files, "m.py::gone_by"))["n.py"] == expected


def test_names_that_something_else_has_and_plain_words_stay() -> None:
    files = {
        "m.py": "def gone_by(x):\n    return x\n\n\ndef total(x):\n    return x\n",
        "n.py": "# gone_by may be slow\nclass A:\n    def gone_by(self):\n        # The total.\n        return 1\n",
        "o.py": "# as :func:`total` does\nx = 1\n",
        "p.py": "# as ``total``\nx = 1\n# as m.total\ny = 2\n",
    }
    left = after(files, delete(files, "m.py"))
    assert left["n.py"] == files["n.py"]
    assert left["o.py"] == "x = 1\n"
    assert left["p.py"] == "# as ``total``\nx = 1\ny = 2\n"
