"""Bodies of imported functions are replaced exactly where a fresh import would give the same functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from .inside_programs import load

load("excise_imports")
swap = load("excise_swap")

SOURCE = '''"""A module."""
from __future__ import absolute_import, annotations, division, print_function, unicode_literals

import functools
import os.path as places


def noted(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


\x0c
class Base:
    def name(self):
        return "base\x85"[:4]


class Derived(Base):
    def name(self):
        """Docstring.

            Indented.
        """
        return super().name() + self.__secret()

    def __secret(self):
        return places.join("a", "b")

    @property
    def size(self):
        # a comment
        return len([i for i in range(3)])

    @property
    def place(self):
        """A place."""
        return 1

    @place.setter
    def place(self, value):
        """Set the place."""

    @classmethod
    def make(cls):
        """Make one."""
        return cls()

    @staticmethod
    def plain(y):
        """Nothing."""
        return y

    @noted
    def noted(self, x=1):
        """Noted."""
        return x


def ran():
    return 1


VALUE = ran()


def numbers(limit):
    """Count."""
    for number in range(limit):
        yield number


started = numbers(1)
try:
    def attempted():
        return 1
except Exception:
    attempted = None


def outer(a, b=2):
    def inner():
        return a

    return inner() + b


def last(x): return x
'''
Adapt = Callable[..., ModuleType]


@pytest.fixture
def adapt(tmp_path: Path) -> Iterator[Adapt]:
    """Imports the module while it is watched, replaces parts of its source, and adapts the imported functions."""
    root = tmp_path.resolve()
    name = "swapped_module"
    path = root / f"{name}.py"
    path.write_text(SOURCE)
    sys.path.insert(0, str(root))
    executed = swap.Executed()
    executed.TOOL = 5  # coverage may use the others
    executed.start()
    module = importlib.import_module(name)
    executed.stop()
    code = swap.LoadedCode(str(root), executed.keys)

    def change(*replacements: tuple[str, str]) -> ModuleType:
        text = SOURCE
        for old, new in replacements:
            assert text.count(old) == 1
            text = text.replace(old, new)
        path.write_text(text)
        code.adapt(str(path))
        return module

    yield change
    sys.path.remove(str(root))
    del sys.modules[name]


def test_bodies_are_replaced(adapt: Adapt) -> None:
    module = adapt(
        ("return super().name() + self.__secret()", "return self.__secret() * 2"),
        ("        # a comment\n        return len([i for i in range(3)])", "        x = 4\n        return x"),
        ("    def inner():\n        return a\n\n    return inner() + b", "    return (lambda: a * b)()"),
        ("def last(x): return x\n", "def last(x): return -x\n"),
        ("    def attempted():\n        return 1", "    def attempted():\n        raise KeyError"),
    )
    made = module.Derived()
    assert (made.name(), made.size, module.outer(3), module.last(2)) == ("a/ba/b", 4, 6, -2)
    with pytest.raises(KeyError):
        module.attempted()
    assert module.outer.__code__.co_firstlineno == SOURCE[: SOURCE.index("def outer")].count("\n") + 1


def test_docstrings_go_with_the_bodies(adapt: Adapt) -> None:
    body = SOURCE[SOURCE.index('        """Docstring.') : SOURCE.index("        return super()")]
    module = adapt((body, ""))
    assert module.Derived.name.__doc__ is None
    assert module.Derived().name() == "basea/b"


def test_plain_decorators_do_not_keep_an_old_docstring(adapt: Adapt) -> None:
    module = adapt(
        ('"""A place."""\n        return 1', '"""Another place."""\n        return 2'),
        ('        """Make one."""\n        return cls()', "        return cls"),
        ('        """Nothing."""\n        return y', '        """All."""\n        return -y'),
    )
    kind = module.Derived
    changed = {name: (vars(kind)[name].__doc__, getattr(kind, name).__doc__) for name in ("place", "make", "plain")}
    sys.path_importer_cache.clear()
    del sys.modules[module.__name__]
    again = importlib.import_module(module.__name__).Derived
    assert changed == {name: (vars(again)[name].__doc__, getattr(again, name).__doc__) for name in changed}
    assert (kind().place, kind.make(), kind.plain(3)) == (2, kind, -3)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("def outer(a, b=2)", "def outer(a, b=3)", "header"),
        ("def outer(a, b=2)", "def other(a, b=2)", "header"),
        ("def last(x): return x\n", "", "no function|more than"),
        ("    @property\n    def size", "    def size", "header"),
        ("VALUE = ran()", "VALUE = 2", "no function"),
        ("    return 1\n\n\nVALUE", "    return 2\n\n\nVALUE", "has run"),
        ("        yield number", "        yield number + 1", "has run"),
        ('        """Set the place."""', '        """Set it."""', "docstring"),
        ('        """Noted."""\n        return x', "        return x", "docstring"),
        ("        return x\n", "        return x\n\n    def more(self):\n        return 1\n", "no function|more than"),
        ("        return function(*args)", "        return None", "has run"),
        ("    @noted\n    def noted(self, x=1):\n        \"\"\"Noted.\"\"\"\n        return x",
         "    @noted\n    def noted(self, x=1):\n        \"\"\"Noted.\"\"\"\n        yield x", "another kind"),
        ("    for number in range(limit):\n        yield number", "    return limit", "has run"),
        ("        return x\n", "        return 2\nBase.more = 1\n", "more than|no function|header|parsed alone"),
    ],
)  # fmt: skip
def test_what_an_import_would_show_is_refused(adapt: Adapt, old: str, new: str, reason: str) -> None:
    with pytest.raises(swap.NeedsImport, match=reason):
        adapt((old, new))


def test_code_that_something_has_changed_is_refused(adapt: Adapt) -> None:
    module = adapt()
    module.last.__code__ = (lambda x: x + 1).__code__
    with pytest.raises(swap.NeedsImport, match="not what its source says"):
        adapt(("def last(x): return x\n", "def last(x): return 5\n"))


def test_a_file_that_is_gone_is_refused(adapt: Adapt, tmp_path: Path) -> None:
    adapt()
    code = swap.LoadedCode(str(tmp_path), set())
    with pytest.raises(swap.NeedsImport, match="no module"):
        code.adapt(str(tmp_path / "missing.py"))


def test_a_module_that_was_not_imported_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("def f(): return 1\n")
    swap.LoadedCode(str(tmp_path), set()).adapt(str(tmp_path / "later.py"))
