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
        ('def f():\n    """First.\n\n    :returns: x\n\n    Example::\n\n        >>> a = gone_by(1)\n        >>> a\n'
         '        1\n'
         '    """\n',
         'def f():\n    """First.\n\n    :returns: x\n    """\n'),
        ('"""First.\n\nSo::\n\n    f(1)\n\n    gone_by(1)\n\nSee f().\n"""\n',
         '"""First.\n\nSo::\n\n    f(1)\n\nSee f().\n"""\n'),
        ('"""First.\n\n>>> y = gone_by(1)\n>>> y + 1\n2\n>>> f()\n3"""\n', '"""First.\n\n>>> f()\n3"""\n'),
        ('"""First.\n\n```python\nx = gone_by(1)\nprint(x)\n```"""\n', '"""First."""\n'),
        ('"""First.\n\nArgs:\n    x: such as gone_by makes\n    y: more\n"""\n',
         '"""First.\n\nArgs:\n    x: such as gone_by makes\n    y: more\n"""\n'),
        ('"""First.\n\nNames:\n\n    other\n    gone_by\n    third\n"""\n',
         '"""First.\n\nNames:\n\n    other\n    third\n"""\n'),
        ("####\n# A box, as gone_by\n####\nx = 1\n", "x = 1\n"),
        ("# y = gone_by(1)\n# z = 3\nx = 1\n", "# y = gone_by(1)\n# z = 3\nx = 1\n"),
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


def test_examples_of_a_file_lose_the_names_of_its_module() -> None:
    """Other code has the name ``take``, too; in the docstrings of its own file, an example calls the function."""
    source = (
        'def take(x):\n    return x\n\n\ndef f():\n    """First.\n\n    >>> take(1)\n    1\n    >>> m.take(2)\n    2\n'
        '    >>> f()\n    3\n    """\n'
    )
    files = {"m.py": source, "n.py": 'def g(take):\n    """As f.\n\n    >>> take(1)\n    """\n    return take\n'}
    left = after(files, delete(files, "m.py::take"))
    assert left["m.py"] == 'def f():\n    """First.\n\n    >>> f()\n    3\n    """\n'
    assert left["n.py"] == files["n.py"]


def test_a_docstring_of_a_class_speaks_of_its_own_members() -> None:
    """Another class has a method ``free``, too."""
    doc = (
        '    """A lock.\n\n    >>> lock.take()\n    >>> lock.free()\n    1\n\n'
        '    Checked by `.free` calls. Locks are slow.\n    """\n'
    )
    source = f"class Lock:\n{doc}\n    def take(self):\n        return 0\n\n    def free(self):\n        return 1\n"
    files = {"m.py": source, "n.py": source.replace("Lock", "Bar")}
    left = after(files, delete(files, "m.py::Lock.free"))
    rest = '    """A lock.\n\n    >>> lock.take()\n\n    Locks are slow.\n    """\n'
    assert left["m.py"] == f"class Lock:\n{rest}\n    def take(self):\n        return 0\n"
    assert left["n.py"] == files["n.py"]


def test_docstrings_keep_more_examples_than_a_few() -> None:
    example = '    """First.\n\n    >>> take("a long text of an example")\n    """\n'
    others = "".join(f"\n\ndef f{n}():\n{example}" for n in range(300))
    files = {"m.py": f"def take(x):\n    return x\n{others}", "n.py": "def g(take):\n    return take\n"}
    assert after(files, delete(files, "m.py::take"))["m.py"].count("take(") == 300


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
    assert left["p.py"] == "x = 1\ny = 2\n"


def test_the_first_paragraph_of_a_docstring_keeps_its_first_sentence_only() -> None:
    source = 'def f():\n    """\n    Like gone_by. It is low level, use `gone_by` instead.\n    Slow.\n    """\n'
    files = {"m.py": GONE, "n.py": source}
    left = after(files, delete(files, "m.py::gone_by"))
    assert left["n.py"] == 'def f():\n    """\n    Like gone_by. Slow.\n    """\n'


def test_text_about_a_text_of_the_same_name_stays() -> None:
    files = {"m.py": GONE, "n.py": "# Skip all but 'gone_by'.\ndef f(x):\n    return x == 'gone_by'\n"}
    assert after(files, delete(files, "m.py::gone_by"))["n.py"] == files["n.py"]
