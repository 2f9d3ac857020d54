"""Parsing one Python file."""

from __future__ import annotations

import ast
import pickle
import random
from pathlib import Path

import coverage
import packaging
import pytest

from excise.extractors.python.analysis.parsed_file import Phase, PythonModule
from excise.extractors.python.analysis.parser import parse_module
from excise.types import Symbol, SymbolKind


def parse(source: str | bytes) -> PythonModule:
    return parse_module("m.py", source.encode() if isinstance(source, str) else source)


def symbol(module: PythonModule, qualname: str) -> Symbol:
    return next(symbol for symbol in reversed(module.symbols) if symbol.qualname == qualname)


def text(module: PythonModule, s: Symbol) -> str:
    return module.source[s.start : s.end].decode()


SAMPLE = '''\
"""Docs."""
import os


@deco(1)
@other
async def f(a, *, b: int = 2,  # note
            c="x  y") -> str:
    """What f does.

    More.
    """
    # first
    if a and b:
        return [x for x in a if x]
    return c


class A(Base, metaclass=M):
    x = 1

    class B:
        def g(self):
            def inner():
                yield 1
            return inner

    def gen(self):
        yield self.x

    def __len__(self): return 1

    def _hidden(self):
        """Only words."""


if os.name == "nt":
    def k(): pass
else:
    def k():
        pass
'''


def test_symbols_have_exact_spans() -> None:
    module = parse(SAMPLE)
    names = [s.qualname for s in module.symbols]
    assert names == ["", "f", "A", "A.B", "A.B.g", "A.gen", "A.__len__", "A._hidden", "k", "k#2"]
    f = symbol(module, "f")
    assert text(module, f).startswith("@deco(1)\n@other\nasync def f")
    assert text(module, f).endswith("return c")
    assert (f.start_line, f.end_line, f.body_line) == (5, 16, 14)
    assert f.decorators == ("deco(1)", "other")
    assert f.is_async
    assert f.signature == 'async def f(a, *, b: int = 2, c="x  y") -> str'
    assert f.docstring == "What f does.\n\nMore."
    assert module.source[f.body_start :].startswith(b'"""What')
    assert module.source[f.code_start :].startswith(b"if a and b")
    assert f.loc == 7
    assert f.complexity == 5
    assert module.symbols[0].docstring == "Docs."


def test_kinds_flags_and_bodies() -> None:
    module = parse(SAMPLE)
    assert symbol(module, "A").kind is SymbolKind.CLASS
    assert symbol(module, "A").signature == "class A(Base, metaclass=M)"
    assert symbol(module, "A.gen").kind is SymbolKind.METHOD
    assert symbol(module, "A.gen").is_generator
    assert not symbol(module, "A.B.g").is_generator
    assert symbol(module, "A.__len__").is_public
    assert not symbol(module, "A._hidden").is_public
    hidden = symbol(module, "A._hidden")
    assert hidden.body_line == 0
    assert hidden.code_start == hidden.end
    assert module.one_liners == {"m.py::A.__len__", "m.py::k"}


def test_imports() -> None:
    module = parse(
        "import a.b, c as d\nfrom . import (e as f,\n  g,)\nfrom ..x.y import *\n"
        "try:\n    import q\nexcept ImportError:\n    pass\n"
        "if TYPE_CHECKING:\n    from t import T\n\ndef fn():\n    from z import w\n    return w.go\n"
    )
    found = [(i.module, i.level, i.name, i.bound, i.phase, i.in_try, i.owner) for i in module.imports]
    assert found == [
        ("a.b", 0, "", "a", Phase.IMPORT, False, ""),
        ("c", 0, "", "d", Phase.IMPORT, False, ""),
        ("", 1, "e", "f", Phase.IMPORT, False, ""),
        ("", 1, "g", "g", Phase.IMPORT, False, ""),
        ("x.y", 2, "*", "", Phase.IMPORT, False, ""),
        ("q", 0, "", "q", Phase.IMPORT, True, ""),
        ("t", 0, "T", "T", Phase.TYPING, False, ""),
        ("z", 0, "w", "w", Phase.LAZY, False, "fn"),
    ]
    clause = module.imports[2]
    assert module.source[clause.start : clause.end] == b"e as f"
    used = next(r for r in module.references if r.chain == "w.go")
    assert module.imports[used.via].name == "w"


@pytest.mark.parametrize(
    "source",
    [
        "__all__ = ['a', 'b']",
        "__all__ = ('a', 'b')",
        "__all__ = ['a']\n__all__ += ['b']",
        "__all__ = ['a']\n__all__.append('b')",
        "__all__ = []\n__all__.extend(['a', 'b'])",
        "__all__ = ['a'] + ['b']",
        "__all__: list[str] = ['a', 'b']",
    ],
)
def test_all_in_every_form(source: str) -> None:
    module = parse(source)
    assert module.has_all
    assert [e.name for e in module.exports] == ["a", "b"]
    assert [module.source[e.start : e.end] for e in module.exports] == [b"'a'", b"'b'"]


def test_references_know_when_they_run() -> None:
    module = parse(
        "@deco\ndef f(a=default, b: Note = 1):\n    local = a\n"
        "    return outer(local.method, a.x) + (lambda q: q + r)(1)\n"
        "class C(Base):\n    y = used\n    def m(self):\n        return self.z + super().m()\n"
        "z = [i + j for i in seq]\nif __name__ == '__main__':\n    start()\n"
    )
    places = {(r.chain, r.phase.value, r.owner) for r in module.references}
    assert {
        ("deco", "import", "f"),
        ("default", "import", "f"),
        ("Note", "import", "f"),
        ("outer", "lazy", "f"),
        (".method", "lazy", "f"),
        (".x", "lazy", "f"),
        ("r", "lazy", "f"),
        ("Base", "import", "C"),
        ("used", "import", "C"),
        ("<self>.z", "lazy", "C.m"),
        ("<super>.m", "lazy", "C.m"),
        ("j", "import", ""),
        ("seq", "import", ""),
        ("start", "main", ""),
    } <= places
    assert not {c for c, _, _ in places} & {"local", "a", "q", "i", "local.method"}


def test_annotations_are_lazy_with_the_future_import() -> None:
    module = parse("from __future__ import annotations\ndef f(a: N) -> M: pass\nx: K = 1\n")
    assert {r.phase for r in module.references if r.chain in "NMK"} == {Phase.LAZY}


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"\n",
        b"x",
        b"\xef\xbb\xbfdef f():\n    pass\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe9\xff'\ndef f():\n    return '\xe9'\n",
        b"def f():\r\n\treturn 1\r\n",
        b"\x0cdef f():\n    pass\n\x0c\ndef g():\n    pass",
        b"def f():\n    print 'hello'\n    exec 'x'\n    raise E, 'x'\n",
        b"try:\n    pass\nexcept E, e:\n    pass\nx = 0777\n`x`\nprint >>f, 1\n",
        b"def f((a, b), c): return a\n",
        b"class\ndef\n@\nimport\nfrom import\n",
        b"def f(:\n  (((\n",
        b"def f():\r    pass\r",
        b"x = '\x00'\n",
        b"\xff\xfe" + "def f(): pass".encode("utf-16-le"),
        "def ünïcödé(): pass\n".encode(),
        b"x = (" + b"1 + " * 5000 + b"1)\n",
        b"x = " + b"[" * 400 + b"]" * 400 + b"\n",
        b"match x:\n    case [a, *b] | {'k': v, **r} as q if z: pass\n    case A.B(c=d): pass\n",
        b"type X[T] = list[T]\ndef f[T: int](a: T) -> T: pass\nclass A[T]: pass\n",
        b"if (n := f()) and (lambda *a, **k: a)(): pass\n",
    ],
)
def test_odd_files_never_crash(source: bytes) -> None:
    module = parse(source)
    assert module.symbols[0].end == len(source)
    for s in module.symbols:
        assert 0 <= s.start <= s.body_start <= s.code_start <= s.end <= len(source)
        assert s.start_line <= s.end_line
    assert pickle.loads(pickle.dumps(module)) == module


def test_broken_files_are_marked() -> None:
    assert parse(b"def f(:\n  (((\n").has_error
    assert parse(b"def f():\r    pass\r").has_error
    assert not parse(b"x = '\xe9'\n").has_error


def test_mutilated_sources_never_crash() -> None:
    source = Path(packaging.__file__).with_name("specifiers.py").read_bytes()
    chance = random.Random(7)
    for _ in range(25):
        start = chance.randrange(len(source))
        cut = source[start : start + chance.randrange(2000)]
        broken = bytearray(cut)
        for _ in range(min(10, len(broken))):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        parse(bytes(broken))


def files_of(package: str) -> list[Path]:
    return sorted(Path(package).parent.rglob("*.py"))


@pytest.mark.parametrize("path", files_of(coverage.__file__) + files_of(packaging.__file__), ids=lambda p: p.name)
def test_agrees_with_the_interpreter(path: Path) -> None:
    """Names, lines and docstrings of every definition are those that ``ast`` finds."""
    source = path.read_bytes()
    module = parse(source)
    found = sorted((_plain(s.qualname), s.start_line, s.end_line, s.docstring) for s in module.symbols if s.qualname)
    expected = sorted(_definitions(ast.parse(source), []))
    assert [f[:2] + f[3:] for f in found] == [e[:2] + e[3:] for e in expected]
    assert all(f[2] >= e[2] for f, e in zip(found, expected, strict=True)), "trailing comments may only be added"


def _plain(qualname: str) -> str:
    return ".".join(part.partition("#")[0] for part in qualname.split("."))


def _definitions(node: ast.AST, outer: list[str]) -> list[tuple[str, int, int, str]]:
    found: list[tuple[str, int, int, str]] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            qualname = [*outer, child.name]
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            found.append((".".join(qualname), first, child.end_lineno or 0, ast.get_docstring(child) or ""))
            if isinstance(child, ast.ClassDef):
                found += _definitions(child, qualname)
        else:
            found += _definitions(child, outer)
    return found
