"""The problem statement, written from what is known: signatures, docstrings, call sites, docs. No model needed.

It names everything that the hidden tests use and the visible tree no longer shows, and none of the deleted code.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence

from excise.protocols import Codebase
from excise.types import Deletion, Repo, Symbol, SymbolKind, Visibility

MAX_CALL_SITES = 6
MAX_DOC_CHARS = 4000
_CALLABLE = {SymbolKind.FUNCTION, SymbolKind.METHOD}


def write_statement(
    codebase: Codebase,
    deletion: Deletion,
    repo: Repo,
    fail_to_pass: Sequence[str],
    visibility: Visibility = Visibility.DOCSTRING,
) -> tuple[str, str]:
    """The statement (Markdown) and the interface (one ``module: signature`` a line)."""
    symbols = codebase.symbols()
    removed = [symbols[s] for s in deletion.removed if s in symbols]
    shown = _interface(codebase, removed, fail_to_pass)
    interface = [f"{symbol.path}: {_signature(symbol)}" for symbol in shown]
    doctests = {test.partition("::")[2].rpartition(".")[2] for test in fail_to_pass if ".py::" in test}
    parts = [
        _title(repo, shown, deletion),
        _missing(shown, visibility, doctests),
        _where_used(codebase, removed),
        _imports(codebase, shown),
        _checked(fail_to_pass, deletion.hidden),
    ]
    return "\n\n".join(part for part in parts if part) + "\n", "\n".join(interface)


def _interface(codebase: Codebase, removed: Sequence[Symbol], fail_to_pass: Sequence[str]) -> list[Symbol]:
    """Public definitions, and private ones that the hidden tests name; members of removed classes included."""
    files = {test.partition("::")[0] for test in fail_to_pass}
    tests = b"\n".join(codebase.modules[path].source for path in sorted(files) if path in codebase.modules)
    words = set(re.findall(rb"\w+", tests))
    chosen: dict[str, Symbol] = {}
    for symbol in removed:
        for inner in _with_members(codebase, symbol):
            name = inner.name.partition("#")[0]
            if inner.is_public or inner.symbol_id == symbol.symbol_id or name.encode() in words:
                chosen.setdefault(inner.symbol_id, inner)
    return sorted(chosen.values(), key=lambda s: (s.path, s.start))


def _with_members(codebase: Codebase, symbol: Symbol) -> Iterable[Symbol]:
    yield symbol
    if symbol.kind not in _CALLABLE:
        for inner in codebase.modules[symbol.path].symbols:
            if symbol.start <= inner.start and inner.end <= symbol.end and inner.symbol_id != symbol.symbol_id:
                yield inner


def _title(repo: Repo, shown: Sequence[Symbol], deletion: Deletion) -> str:
    outer = [s for s in shown if s.symbol_id in deletion.removed]
    names = [f"`{s.qualname or s.path}`" for s in outer]
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    version = f" {repo.version}" if repo.version else ""
    if deletion.deleter == "stub":
        return (
            f"# Implement {listed}\n\nIn this checkout of {repo.repo}{version} the code below is only a stand-in: "
            "names and signatures are there, what they do is gone. Write it again so that it does what is "
            "described here. Everything else in the project works and must keep working."
        )
    return (
        f"# Bring back {listed}\n\n{repo.repo}{version} used to offer what is described below; in this checkout it is "
        "missing, together with the imports and exports that named it. Write it again, under the same names and in the "
        "same places. Everything else in the project works and must keep working."
    )


def _missing(shown: Sequence[Symbol], visibility: Visibility, doctests: set[str]) -> str:
    by_path: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in shown:
        by_path[symbol.path].append(symbol)
    lines = ["## What is missing"]
    for path, symbols in by_path.items():
        whole = any(s.kind is SymbolKind.MODULE for s in symbols)
        lines.append(f"\n### `{path}`" + (" (the whole file)" if whole else ""))
        lines += [_entry(symbol, visibility, doctests) for symbol in symbols]
    return "\n".join(lines)


def _entry(symbol: Symbol, visibility: Visibility, doctests: set[str]) -> str:
    text = ""
    if symbol.kind is not SymbolKind.MODULE:
        marks = "".join(f"\n@{decorator}" for decorator in symbol.decorators)
        head = f"{marks}\n{_signature(symbol)}".strip()
        owner = symbol.qualname.rpartition(".")[0]
        text = f"\n```python\n{head}\n```" + (f"\n(in `{owner}`)" if owner else "")
    if symbol.docstring and visibility not in {Visibility.SIGNATURE}:
        docstring = symbol.docstring
        if symbol.name in doctests:
            docstring = without_examples(docstring)
        text += "\n" + textwrap.indent(docstring.strip()[:MAX_DOC_CHARS], "> ", lambda _: True)
    return text


def without_examples(docstring: str) -> str:
    """A docstring without its interactive examples (they are among the hidden tests)."""
    kept: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if line.lstrip().startswith((">>>", "...")):
            inside = True
        elif not line.strip():
            inside = False
            kept.append(line)
        elif not inside:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def _signature(symbol: Symbol) -> str:
    return symbol.signature or symbol.path


def _where_used(codebase: Codebase, removed: Sequence[Symbol]) -> str:
    """Places in the code that stays which call what is missing: they show what is expected of it."""
    gone = {inner.symbol_id for symbol in removed for inner in _with_members(codebase, symbol)}
    lines: list[str] = []
    for symbol in removed:
        callers = sorted(c for c in codebase.callers(symbol.symbol_id) if c not in gone and "::" in c)
        for caller in callers:
            if codebase.is_test(caller.partition("::")[0]):
                continue
            line = _line_naming(codebase, caller, symbol.name.partition("#")[0])
            if line and len(lines) < MAX_CALL_SITES:
                lines.append(f"- `{caller}`: `{line}`")
    return "## Where it is used\n\n" + "\n".join(lines) if lines else ""


def _line_naming(codebase: Codebase, caller: str, name: str) -> str:
    symbol = codebase.symbols()[caller]
    text = codebase.modules[symbol.path].source[symbol.code_start : symbol.end].decode(errors="replace")
    found = (line.strip() for line in text.splitlines() if re.search(rf"\b{re.escape(name)}\b", line))
    return next((line for line in found if len(line) <= 160 and "`" not in line), "")


def _imports(codebase: Codebase, shown: Sequence[Symbol]) -> str:
    """Other modules that offered the same names: re-exports and ``__all__``."""
    names = {s.name for s in shown if s.kind is not SymbolKind.MODULE and "." not in s.qualname and s.is_public}
    lines: list[str] = []
    for path, module in sorted(codebase.modules.items()):
        if codebase.is_test(path) or not path.endswith("__init__.py"):
            continue
        text = module.source.decode(errors="replace")
        offered = sorted(n for n in names if re.search(rf"\b{re.escape(n)}\b", text))
        if offered and path not in {s.path for s in shown}:
            lines.append(f"- `{path}` offered {', '.join(f'`{n}`' for n in offered)} as well.")
    return "## Also importable from\n\n" + "\n".join(lines) if lines else ""


def _checked(fail_to_pass: Sequence[str], hidden: Sequence[str]) -> str:
    unseen = [test for test in fail_to_pass if test in set(hidden)]
    seen = len(fail_to_pass) - len(unseen)
    files = sorted({test.partition("::")[0] for test in unseen})
    listed = ", ".join(f"`{file}`" for file in files[:5]) + (" and others" if len(files) > 5 else "")
    parts = []
    if unseen:
        parts.append(f"{_count(len(unseen), 'test')} not in this checkout (from {listed}) must pass")
    if seen:
        parts.append(f"{_count(seen, 'example')} in docstrings and documents here, failing now, must pass")
    return f"## How it is checked\n\n{'; '.join(parts)}; and all tests that pass now must still pass."


def _count(number: int, noun: str) -> str:
    return f"One {noun} that is" if number == 1 else f"{number} {noun}s that are"
