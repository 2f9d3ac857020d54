"""A patch made of what was recovered: the best piece for each symbol, put back where the symbol was."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

from excise.types import Status
from excise.verifiers.candidate import Candidate
from excise.verifiers.recovery.recovery_attempt import Piece
from excise.verifiers.recovery.scoring import Deleted, lines_of
from excise.verifiers.workbench import Edits

MAX_TESTS = 30
"""FAIL_TO_PASS tests that a reconstruction is tried on."""


def reconstruction(candidate: Candidate, deleted: Deleted, pieces: Sequence[Piece]) -> Edits:
    """The tree with stand-ins that raise for the feature, each overridden by the best piece that there is for it.

    Imports and re-exports are given away: an agent writes those by itself. Empty if there is no piece.
    Raises :class:`excise.errors.PatchError`.
    """
    stubs = dict(candidate.deletion.stub_patches)
    edits = dict(candidate.edits("raise" if "raise" in stubs else "deleted"))
    put_back = False
    for symbol in candidate.deletion.removed:
        path, _, qualname = symbol.partition("::")
        known = edits.get(path) or candidate.bench.read([path]).get(path, b"")
        made = _with(known.decode(errors="replace"), qualname, deleted, pieces)
        if made is not None:
            edits[path] = made.encode()
            put_back = True
    return edits if put_back else {}


def passes(candidate: Candidate, edits: Edits) -> tuple[str, ...]:
    """FAIL_TO_PASS tests that pass on the reconstruction, run in a fresh sandbox."""
    ids = candidate.fail_to_pass[:MAX_TESTS]
    run = candidate.bench.run(edits, ids=ids)
    statuses = run.statuses()
    return tuple(test for test in ids if statuses.get(test) is Status.PASSED)


def _with(source: str, qualname: str, deleted: Deleted, pieces: Sequence[Piece]) -> str | None:
    """The module with one symbol back in it; ``None`` if no piece defines it."""
    texts = sorted((p.text for p in pieces if p.kind == "text"), key=lambda t: -len(deleted.lines & lines_of(t)))
    if not qualname:
        return next((text for text in texts if deleted.lines & lines_of(text)), None)
    outer, _, name = qualname.rpartition(".")
    definition = re.compile(rf"(?m)^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{re.escape(name)}\b")
    for text in texts:
        match = definition.search(text)
        block = textwrap.dedent(text[match.start() :]) if match else ""
        if block and _parses(block):
            return _placed(source, outer, block)
    code = next((p for p in pieces if p.kind == "code" and p.text in {qualname, name} and p.code), None)
    return _placed(source, outer, _unmarshalled(name, code)) if code else None


def _unmarshalled(name: str, piece: Piece) -> str:
    """A definition by byte code alone: what an agent could write without reading it."""
    return (
        "import base64 as _b, marshal as _m, types as _t\n"
        f"{name} = _t.FunctionType(_m.loads(_b.b64decode({piece.code!r})), globals(), {name!r})\n"
    )


def _placed(source: str, outer: str, block: str) -> str:
    """``block`` at the end of the class ``outer``, or of the module."""
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


def _parses(block: str) -> bool:
    return _parsed(block) is not None


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def by_strategy(pieces: Sequence[Piece]) -> Mapping[str, list[Piece]]:
    """Pieces by the strategy that brought them."""
    found: dict[str, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(piece.strategy, []).append(piece)
    return found
