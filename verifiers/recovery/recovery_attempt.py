"""One attempt at recovering deleted code: all strategies in one sandbox, exactly as an agent gets it.

The programs travel on the interpreter's standard input and live in memory, so that nothing of ours lies in the sandbox.
What comes back was written by strangers' machines: bounded, parsed, never run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.envs.sandbox.mount_points import ENV, REPO
from excise.protocols import Completed, Session

INSIDE = Path(__file__).parent / "inside"
MODULES = (
    "code_search",
    "git_stores",
    "bytecode",
    "tool_leftovers",
    "installed_copies",
    "hidden_texts",
    "all_strategies",
)
"""In the order in which they import each other."""
SECONDS = 60.0
"""Wall seconds after which no further strategy begins."""
GRACE_S = 120.0
MAX_LINE = 1 << 20

_START = """
import json, sys, types
def _load(sources, order):
    for name in ("excise", "excise.verifiers", "excise.verifiers.recovery", "excise.verifiers.recovery.inside"):
        sys.modules[name] = types.ModuleType(name)
    parent = sys.modules["excise.verifiers.recovery.inside"]
    for name, source in sources:
        module = types.ModuleType(parent.__name__ + "." + name)
        sys.modules[module.__name__] = module
        exec(compile(source, name, "exec"), module.__dict__)
        setattr(parent, name, module)
    emit = parent.code_search.emitter()
    parent.all_strategies.go(order, emit)
_load(json.loads(%r), json.loads(%r))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing that a strategy brought back."""

    strategy: str
    """Which one."""
    kind: str
    """``text``, ``code`` (of a code object: shape and marshalled bytes) or ``note``."""
    where: str
    """Where it lay, inside the sandbox."""
    text: str
    """The text; the qualified name of a code object."""
    shape: dict[str, Any] = field(default_factory=dict)
    """Names, arguments and constants of a code object."""
    code: str = ""
    """base64 of its marshalled bytes."""
    magic: str = ""
    """Byte-code version of those, hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came out of one sandbox."""

    pieces: tuple[Piece, ...]
    """All that was found."""
    seconds: dict[str, float]
    """Strategy to wall seconds, for those that ended."""
    problems: dict[str, str]
    """Strategy to what kept it from its end."""
    completed: Completed
    """The command itself."""
    finished: bool
    """All strategies were tried, to the last line of the report."""
    num_files: int = 0
    """Files that were listed."""
    bytes_read: int = 0
    """Bytes that were read."""


def attempt(
    session: Session,
    symbols: Sequence[str],
    *,
    distribution: str,
    packages: Sequence[str] = (),
    only: Sequence[str] = (),
    thorough: bool = False,
    first: str = "",
) -> Attempt:
    """Run the strategies (``only`` some, by name) against the removed ``symbols``.

    ``thorough`` reads the system's files as well. ``first`` is a shell line that runs before, in the same command.
    Raises :class:`excise.errors.SandboxError` if the sandbox itself fails.
    """
    nonce = uuid.uuid4().hex
    seconds = SECONDS * (5 if thorough else 1)
    order = {
        "symbols": list(symbols),
        "repo": REPO,
        "distribution": distribution,
        "packages": list(packages),
        "only": list(only),
        "thorough": thorough,
        "seconds": seconds,
        "nonce": nonce,
    }
    sources = [(name, (INSIDE / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    program = _START % (json.dumps(sources), json.dumps(order))
    python = [f"{ENV}/bin/python", "-I", "-S", "-B", "-"]
    argv = python if not first else ["/bin/sh", "-c", f"{first}\nexec {' '.join(python)}"]
    done = session.exec(argv, timeout_s=seconds + GRACE_S, stdin=program.encode(), cwd=REPO)
    return _read(done, nonce)


def _read(done: Completed, nonce: str) -> Attempt:
    pieces, seconds, problems = [], {}, {}
    last: dict[str, Any] = {}
    for line in done.stdout.split(b"\n"):
        try:
            said = json.loads(line) if line and len(line) <= MAX_LINE else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(said, dict):
            continue
        if "ended" in said:
            seconds[str(said["ended"])] = _number(said.get("seconds"))
            if said.get("problem"):
                problems[str(said["ended"])] = str(said["problem"])[:300]
        elif said.get("done") == nonce:
            last = said
        elif isinstance(piece := _piece(said), Piece):
            pieces.append(piece)
    if not last:
        problems["all"] = done.stderr.decode(errors="replace")[-300:] or f"ended with {done.rc}"
    return Attempt(
        pieces=tuple(pieces),
        seconds=seconds,
        problems=problems,
        completed=done,
        finished=bool(last),
        num_files=int(_number(last.get("files"))),
        bytes_read=int(_number(last.get("bytes"))),
    )


def _piece(said: dict[str, Any]) -> Piece | None:
    names = ("strategy", "kind", "where", "text", "code", "magic")
    texts = {name: said.get(name, "") for name in names}
    shape = said.get("shape", {})
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(shape, dict):
        return None
    return Piece(**texts, shape=shape)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
