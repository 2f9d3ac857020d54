"""The section of a statement that names the other files from which removed names could be imported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from excise.deleters.deletion_record import KEPT_DEFINITIONS
from excise.deleters.patches.patch_reader import removed_lines
from excise.protocols import Codebase, Module, StatementWords
from excise.types import Deletion, Symbol, SymbolKind, name_in_file, path_of

STRING = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
"""A string in quotes, on one line."""
_EXPORTS = re.compile(r"""^\s*from\s[^\n(]*import\s+(?:\([^)]*\)|[^\n(]*)|["']\w+["']""", re.MULTILINE)
"""What of a package's own file names what it offers: imports, and names in quotes."""
_DOCSTRING = re.compile(r"""\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}""")
_ALL = re.compile(r"^__all__\b[^\[(\n]*[\[(]([^\])]*)", re.MULTILINE)
"""The content of a list of the names that a star import of the file gives."""


def also_importable(
    codebase: Codebase, shown: Sequence[Symbol], assigned: Iterable[str], deletion: Deletion, words: StatementWords
) -> str:
    """The section with other files of the project from which the removed names could be imported."""
    if deletion.deleter in KEPT_DEFINITIONS or deletion.deleter == "path":
        return ""  # the names are there
    names = {s.name for s in shown if s.kind is not SymbolKind.MODULE and "." not in s.qualname and s.is_public}
    names |= {name for each in assigned if "." not in (name := name_in_file(each))}
    own = {s.path for s in shown} | {path_of(each) for each in assigned}
    removed = removed_lines(deletion.source_patch)
    used = {path for path, _ in deletion.uses}
    lines: list[str] = []
    for path, module in sorted(codebase.modules.items()):
        if codebase.is_test(path):
            continue
        if path in own:
            lines += _star_imports(path, module, removed.get(path, ()), names)
            continue
        code = (line for line in _code_in(removed.get(path, ()), module) if re.match(words.exports, line.strip()))
        text = STRING.sub(_name_in_quotes, "\n".join(code))
        if path.endswith("__init__.py"):
            text += "".join(_EXPORTS.findall(_DOCSTRING.sub("", module.source.decode(errors="replace"))))
        calls = r"(?!\s*\()" if path in used else ""  # a use is no offer
        found = (
            name
            for name in sorted(names)
            if re.search(rf"(?<![.\w]){re.escape(name)}\b{calls}", text)
            and not words.is_other(codebase, path, name, own)
        )
        offered = [_offered(name, text) for name in found]
        if offered:
            lines.append(f"- `{path}` offered {', '.join(offered)} as well.")
    return "## Also importable from\n\n" + "\n".join(lines) if lines else ""


def _star_imports(path: str, module: Module, removed: Iterable[str], names: Iterable[str]) -> list[str]:
    """What is to be said if the file's ``__all__`` has lost some of the names."""
    listed, gone = " ".join(_ALL.findall(module.source.decode(errors="replace"))), " ".join(removed)
    quoted = ((name, rf"""["']{re.escape(name)}["']""") for name in sorted(names))
    found = [f"`{name}`" for name, pattern in quoted if re.search(pattern, listed) and re.search(pattern, gone)]
    return [f"- The `__all__` of `{path}` had {', '.join(found)}."] if found else []


def _code_in(lines: Iterable[str], module: Module) -> list[str]:
    """Those of a file's lines that are no comments and in no docstring, without comments behind them."""
    described = {line.strip() for symbol in module.symbols for line in symbol.docstring.splitlines()}
    code = (line.partition("  # ")[0] for line in lines if not line.lstrip().startswith("# "))
    return [line for line in code if line.strip() not in described]


def _name_in_quotes(string: re.Match[str]) -> str:
    """A string that is a name; of any other, nothing."""
    return string[0] if string[0][1:-1].isidentifier() else "''"


def _offered(name: str, text: str) -> str:
    """A name as a file that imports it offers it: under another name if all of its imports say so."""
    found = re.findall(rf"(?<![.\w]){re.escape(name)}\b(?:\s+as\s+(\w+))?", text)
    return f"`{name}`" if "" in found else f"`{name}` as `{found[0]}`"
