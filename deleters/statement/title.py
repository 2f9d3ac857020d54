"""The title of a statement, and what it says below: what is gone, and how."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from excise.deleters.deletion_record import KEPT_DEFINITIONS
from excise.deleters.edits.removed_parts import lines_of_parts, symbol_of_part
from excise.deleters.patches.git_patches import apply_to_file, touched
from excise.deleters.patches.patch_reader import parse_patch, removed_lines
from excise.deleters.statement.spelling import accessor_of, exported_by, unnumbered
from excise.protocols import Codebase, StatementWords
from excise.types import Deletion, Repo, Symbol, SymbolKind, holders_of, name_in_file, path_of

_WITH_IMPORTS = "; imports that only this code used are gone as well"
MAX_IMPORTS = 6
"""Number of imports that a statement names of those that are gone."""
_HOW_PARTS_ARE_GONE = {
    "path": "the branch that ran under the condition `{condition}` is missing",
    "proposed": "functions that are still there do less than they did, others may be missing",
    "remove_and_stub": "of some definitions only names and signatures are there, others are missing",
}
"""What a deleter of :data:`PARTLY_KEPT` did."""

MAX_VALUE = 80
"""Number of characters of an assignment up to which a statement shows it."""
_PLAIN_VALUE = re.compile(
    r"^[^\n={}\"'`]*[^=\n:<>!]:?=\s*"
    r"(?:[-+]?(?:new )?[\w$.]+(?:::\w+)*(?:\([\w$., ]*\))?|\{\}|\[\]"
    r"|/(?![*/])(?:[^/\\\[\n`]|\\[^\n`]|\[(?:[^\]\\\n`]|\\[^\n`])*\])+/[a-z]*)\s*;?$"
)
"""An assignment of a number, of a name, of a call with such arguments, of a regular expression of JavaScript, or of
nothing yet."""
MAX_AROUND = 2
"""Number of statements around a lost branch that are named."""
_BLOCK = re.compile(r"\s*(?:(?:async )?(?:for|with)|while|if|elif|else|try|except|finally|match|case)\b.*:$")
"""A line, complete in itself, that begins a block within a function."""
_IN_LIST = re.compile(
    r"\s*(?!(?:return|pass|else|break|continue|try|finally|end)\b)[\w.\"']+(?:\s+as\s+\w+)?,?\s*$"
    r"|(?!\s*(?:#|//|/?\*)).*\b(?:__all__|exports?)\b"
)
"""A line that is an element of a list of names, or exports some."""


def title(codebase: Codebase, repo: Repo, shown: Sequence[Symbol], deletion: Deletion, words: StatementWords) -> str:
    """The title of a statement, and the paragraph below it."""
    outer = sorted((s for s in shown if s.symbol_id in deletion.removed), key=lambda s: not s.is_public)
    kinds = {s.symbol_id: "constructor" if _is_constructor(s) else accessor_of(s) for s in outer}
    owned = {symbol_id: f"the {kind} of " for symbol_id, kind in kinds.items() if kind}
    called = {s.symbol_id: _name_in_title(codebase, s, deletion.removed, words) for s in outer}
    unnamed = {s.symbol_id for s in outer if s.qualname and s.qualname == words.unnamed(codebase.modules[s.path])}
    spelled = {i: exported_by(path_of(i)) if i in unnamed else f"`{name}`" for i, name in called.items()}
    names = list(dict.fromkeys(f"{owned.get(each, '')}{name}" for each, name in spelled.items()))
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    version = f" {repo.version}" if repo.version else ""
    if deletion.deleter == "expression":
        return (
            f"# Complete {listed}\n\nIn this checkout of {repo.repo}{version} one `return` of the code below is gone: "
            f"`{words.placeholder}` stands in its place. Return an expression with which the code does what is "
            "described here. Everything else in the project works and must keep working."
        )
    removed = removed_lines(deletion.source_patch)
    defining = {s.path for s in outer if s.kind is not SymbolKind.MODULE}
    unused = _unused_imports(codebase, deletion, sorted(defining), words) + _helpers(codebase, deletion, words)
    if deletion.deleter in KEPT_DEFINITIONS:
        lines = (line for path in sorted(defining) for line in removed.get(path, ()))
        found = ((match[1], line) for line in lines if (match := re.match(words.values, line)))
        if values := dict.fromkeys(f"`{_value(name, line)}`" for name, line in found):
            unused += f"; so is what nothing else used: {', '.join(list(values)[:MAX_IMPORTS])}"
    if deletion.deleter in {"stub", "line"}:
        return (
            f"# Implement {listed}\n\nIn this checkout of {repo.repo}{version} the code below is only a stand-in: "
            f"names and signatures are there, what they do is gone{unused}. Write it again so "
            "that it does what is described here. Everything else in the project works and must keep working."
        )
    if lines_of_parts(deletion.text):
        return (
            f"# Complete {listed}\n\nIn this checkout of {repo.repo}{version} the code below is there only in part: "
            f"{_how_parts_are_gone(codebase, deletion)}{unused}. Write the rest again so that all of it "
            "does what is described here. Everything else in the project works and must keep working."
        )
    others = (codebase.modules.keys() & touched(deletion.source_patch)).difference(map(path_of, deletion.removed))
    naming = (line for path in others for line in removed.get(path, ()))
    is_named = any(re.match(words.imports, line) or _IN_LIST.match(line) for line in naming)
    also = ", together with the imports and exports that named it" if is_named else ""
    return (
        f"# Bring back {listed}\n\n{repo.repo}{version} used to offer what is described below; in this checkout it is "
        f"missing{also}{unused}. Write it again, under the same names and in the same places. "
        "Everything else in the project works and must keep working."
    )


def _unused_imports(codebase: Codebase, deletion: Deletion, paths: Sequence[str], words: StatementWords) -> str:
    """What the paragraph says of the imports that files lost; it names these, as tests may look for them in the module,
    and since a solution is likely to need them."""
    found: dict[str, None] = {}
    for part in parse_patch(deletion.source_patch):
        before = codebase.modules[part.path].source if part.path in paths else b""
        after = apply_to_file(part, before) if before else None
        found.update(dict.fromkeys(words.lost_imports(before, after) if after else ()))
    named = [each for each in found if _is_whole_import(each)][:MAX_IMPORTS]
    if not named:
        return _WITH_IMPORTS if found else ""
    shown = ", ".join(f"`{each}`" for each in named)
    more = f" and {len(found) - len(named)} more" if len(found) > len(named) else ""
    return f"{_WITH_IMPORTS} ({shown}{more})"


def _is_whole_import(line: str) -> bool:
    """Whether a line is all of an import, of which no part may be left: without braces, and with one call at most."""
    return re.search(r"[{`\\]", line) is None and line.count("(") == line.count(")") <= 1


def _helpers(codebase: Codebase, deletion: Deletion, words: StatementWords) -> str:
    """What the paragraph says of definitions that went along beside parts of functions, and of values and public
    definitions that went along beside stubs."""
    if deletion.deleter not in {"remove_and_stub", "path"}:
        return ""
    along = [each for each in definitions_along(codebase, deletion) if each.is_public or deletion.deleter == "path"]
    spelled = (unnumbered(symbol.qualname) for symbol in along if symbol.qualname)
    names = [f"`{name.replace('.', words.separator)}`" for name in (*spelled, *_values_along(codebase, deletion))]
    more = f" and {len(names) - MAX_IMPORTS} more" if len(names) > MAX_IMPORTS else ""
    return f"; so is what nothing else used: {', '.join(names[:MAX_IMPORTS])}{more}" if names else ""


def _values_along(codebase: Codebase, deletion: Deletion) -> list[str]:
    """The constants and variables that went along with a deletion and are no definitions of their own in statements:
    their names, or short assignments."""
    gone = {text_id for text_id, _ in deletion.text} | set(deletion.removed)
    known = codebase.symbols().keys() | set(deletion.removed)
    values = {i: text for i, text in deletion.text if i not in known and symbol_of_part(i) == i and name_in_file(i)}
    of_sources = {i: text for i, text in values.items() if not codebase.is_test(path_of(i))}
    outer = (i for i in of_sources if gone.isdisjoint(holders_of(i)))
    return [_value(unnumbered(name_in_file(i)), of_sources[i]) for i in outer]


def _value(name: str, text: str) -> str:
    """How a statement names a value that went along: by its assignment, if this is short and neither text, table nor
    code."""
    line = text.strip()
    return line if len(line) <= MAX_VALUE and _PLAIN_VALUE.search(line) else name


def definitions_along(codebase: Codebase, deletion: Deletion) -> list[Symbol]:
    """The outermost definitions of the sources that went along with a deletion, whose code alone used them."""
    symbols = codebase.symbols()
    ids = {i for i, _ in deletion.text if i in symbols and not codebase.is_test(path_of(i))}
    gone = ids.union(deletion.removed)
    return [symbols[i] for i in sorted(ids.difference(deletion.removed)) if gone.isdisjoint(holders_of(i))]


def _name_in_title(codebase: Codebase, symbol: Symbol, removed: Collection[str], words: StatementWords) -> str:
    """The name of a definition; with its parameters where an overload of it stays."""
    parts = unnumbered(symbol.qualname).split(".")
    parts = parts[len(parts) > 1 and parts[0] == words.unnamed(codebase.modules[symbol.path]) :]
    name = words.separator.join(parts[:-1] if _is_constructor(symbol) else parts)
    overloads = (each for each in codebase.modules[symbol.path].symbols if each.holder_id == symbol.holder_id)
    bare = unnumbered(symbol.name)
    others = (o for o in overloads if unnumbered(o.name) == bare and o.symbol_id not in removed)
    if not accessor_of(symbol) and not all(other.is_overload for other in others):
        parameters = re.search(rf"\b{re.escape(bare)}(\([^()]*\))", symbol.signature)
        return name + (parameters[1] if parameters else "")
    return name or symbol.path


def _is_constructor(symbol: Symbol) -> bool:
    """Whether a function of Java has the name of its class, as constructors have."""
    names = unnumbered(symbol.qualname).split(".")
    is_java = symbol.path.endswith(".java")
    return is_java and symbol.kind is SymbolKind.METHOD and names[-1:] == names[-2:-1] and names[-1][:1].isupper()


def _how_parts_are_gone(codebase: Codebase, deletion: Deletion) -> str:
    told = _HOW_PARTS_ARE_GONE[deletion.deleter]
    if deletion.deleter != "path":
        return told
    return told.format(condition=deletion.feature.name.partition(": ")[2]) + _place_of_part(codebase, deletion)


def _place_of_part(codebase: Codebase, deletion: Deletion) -> str:
    """Where in a function the first part stood that is gone: in which loops, ``with`` statements and branches."""
    text_id, part = next(iter(deletion.text))
    symbol, first = codebase.symbols().get(symbol_of_part(text_id)), next(filter(str.strip, part.splitlines()), "")
    if symbol is None or not first:
        return ""
    source = codebase.modules[symbol.path].source[symbol.start : symbol.end].decode(errors="replace")
    before = source.partition(part)[0].splitlines() if part in source else []
    around: list[str] = []
    margin = len(first) - len(first.lstrip())
    for line in reversed(before):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < margin:
            margin = indent
            if _BLOCK.match(line):
                around.append(f"`{line.strip()}`")
    return f", which stood inside {' inside '.join(around[:MAX_AROUND])}" if around else ""
