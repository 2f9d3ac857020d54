"""A patch built from recovered code: the best item for each symbol, inserted where the symbol was."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence

from excise.types import name_in_file, path_of
from excise.verifiers.candidate import Candidate
from excise.verifiers.recovery.recovery_attempt import RecoveredItem
from excise.verifiers.recovery.scoring import DeletedCode, distinctive_lines
from excise.verifiers.workbench import Edits


def reconstruction(candidate: Candidate, code: DeletedCode, items: Sequence[RecoveredItem]) -> Edits:
    """Edits that replace the feature's stubs by the best recovered item for each symbol; empty if there is none.

    All other symbols are stubs that raise, and imports and re-exports are restored, which an agent writes without help.
    Raises :class:`PatchError`.
    """
    stubs = dict(candidate.deletion.stub_patches)
    edits = dict(candidate.edits("raise" if "raise" in stubs else "deleted"))
    restored = False
    for symbol in candidate.deletion.removed:
        path, qualname = path_of(symbol), name_in_file(symbol)
        known = edits.get(path) or candidate.bench.read([path]).get(path, b"")
        made = _with_symbol(known.decode(errors="replace"), qualname, code, items)
        if made is not None:
            edits[path] = made.encode()
            restored = True
    return edits if restored else {}


def _with_symbol(source: str, qualname: str, code: DeletedCode, items: Sequence[RecoveredItem]) -> str | None:
    """The module with one symbol restored; ``None`` if no item defines it."""
    texts = sorted((i.text for i in items if i.kind == "text"), key=lambda t: -len(code.lines & distinctive_lines(t)))
    if not qualname:
        return next((text for text in texts if code.lines & distinctive_lines(text)), None)
    outer, _, name = qualname.rpartition(".")
    definition = re.compile(rf"(?m)^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{re.escape(name)}\b")
    for text in texts:
        match = definition.search(text)
        block = textwrap.dedent(text[match.start() :]) if match else ""
        if block and _parsed(block) is not None:
            return _placed(source, outer, block)
    compiled = next((i for i in items if i.kind == "code" and i.text in {qualname, name} and i.code), None)
    return _placed(source, outer, _unmarshalled(name, compiled)) if compiled else None


def _unmarshalled(name: str, item: RecoveredItem) -> str:
    """Source of a definition that runs recovered byte code, which an agent could use without decompiling it."""
    return (
        "import base64 as _b, marshal as _m, types as _t\n"
        f"{name} = _t.FunctionType(_m.loads(_b.b64decode({item.code!r})), globals(), {name!r})\n"
    )


def _placed(source: str, outer: str, block: str) -> str:
    """Append ``block`` to the end of the class ``outer``, or of the module if ``outer`` is empty."""
    if not outer:
        return f"{source.rstrip()}\n\n\n{block.rstrip()}\n"
    tree = _parsed(source)
    body: list[ast.stmt] = tree.body if tree else []
    found: ast.stmt | None = None
    for part in outer.split("."):
        found = next((n for n in body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == part), None)
        body = found.body if isinstance(found, (ast.ClassDef, ast.FunctionDef)) else []
    if found is None or found.end_lineno is None or not body:
        return f"{source.rstrip()}\n\n\n{block.rstrip()}\n"
    lines = source.splitlines()
    indented = textwrap.indent(block.rstrip(), " " * body[0].col_offset)
    return "\n".join([*lines[: found.end_lineno], "", indented, *lines[found.end_lineno :], ""])


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
