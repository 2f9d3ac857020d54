"""One attempt at recovering deleted code: all strategies, run in one sandbox like an agent's.

The strategies' programs are sent to the interpreter's standard input and stay in memory, so that no file of excise is
in the sandbox. Their report is untrusted: its size is limited, it is parsed, and nothing of it is run.
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
    "script_copies",
    "hidden_texts",
    "all_strategies",
)
"""Modules of :data:`INSIDE`, each after those that it imports."""
STRATEGIES_S = 60.0
"""Wall seconds after which no further strategy is started."""
THOROUGH_FACTOR = 5
"""Factor on :data:`STRATEGIES_S` for a thorough attempt, which also reads the system's files."""
GRACE_S = 120.0
"""Additional wall seconds for the last strategy to end and report."""
MAX_LINE_BYTES = 1 << 20
"""Maximum bytes of a line of the report; longer ones are dropped."""

_START = """
import json, sys, types
def _load(sources, request):
    for name in ("excise", "excise.verifiers", "excise.verifiers.recovery", "excise.verifiers.recovery.inside"):
        sys.modules[name] = types.ModuleType(name)
    parent = sys.modules["excise.verifiers.recovery.inside"]
    for name, source in sources:
        module = types.ModuleType(parent.__name__ + "." + name)
        sys.modules[module.__name__] = module
        exec(compile(source, name, "exec"), module.__dict__)
        setattr(parent, name, module)
    emit = parent.code_search.report_writer()
    parent.all_strategies.run_all(request, emit)
_load(json.loads(%r), json.loads(%r))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredItem:
    """One text or code object that a strategy found."""

    strategy: str
    """Name of the strategy."""
    kind: str
    """``text``, ``code`` (shape and marshalled bytes of a code object) or ``note``."""
    where: str
    """Path or description of the place in the sandbox."""
    text: str
    """The text that was found; of a code object, its qualified name."""
    shape: dict[str, Any] = field(default_factory=dict)
    """Names, arguments and constants of a code object."""
    code: str = ""
    """Marshalled bytes of a code object, in base64."""
    magic: str = ""
    """Magic number (byte-code version) of ``code``, hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAttempt:
    """The report of all strategies from one sandbox."""

    items: tuple[RecoveredItem, ...]
    """All texts and code objects that the strategies found."""
    seconds: dict[str, float]
    """Strategy to wall seconds, for strategies that finished."""
    problems: dict[str, str]
    """Strategy to the error that ended it early; ``all`` if the report is incomplete."""
    completed: Completed
    """Exit code, output and cost of the command."""
    finished: bool
    """Whether the report has its last line, so every strategy was tried."""
    num_files: int = 0
    """Number of files that the strategies listed."""
    bytes_read: int = 0
    """Number of bytes that the strategies read."""

    def items_by_strategy(self) -> dict[str, list[RecoveredItem]]:
        """The items of each strategy that found something."""
        found: dict[str, list[RecoveredItem]] = {}
        for item in self.items:
            found.setdefault(item.strategy, []).append(item)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOptions:
    """Options of the strategies; the names of the removed symbols are given separately."""

    distribution: str
    """Name of the project's distribution."""
    packages: Sequence[str] = ()
    """The project's import names."""
    only: Sequence[str] = ()
    """Names of the strategies to run; empty for all."""
    thorough: bool = False
    """Whether to read the system's files as well."""
    definitions: Sequence[str] = ()
    """Regular expressions for what stands before the name of a definition; empty for those of Python."""
    suffixes: Sequence[str] = ()
    """Suffixes of source files; empty for those of Python."""
    shell_prefix: str = ""
    """A shell line to run first, in the same command (tests use it to plant code)."""


def run_strategies(session: Session, symbols: Sequence[str], options: StrategyOptions) -> RecoveryAttempt:
    """Run the strategies against the removed ``symbols``. Raises :class:`SandboxError` if the sandbox itself fails."""
    nonce = uuid.uuid4().hex
    seconds = STRATEGIES_S * (THOROUGH_FACTOR if options.thorough else 1)
    request = {
        "symbols": list(symbols),
        "repo": REPO,
        "distribution": options.distribution,
        "packages": list(options.packages),
        "only": list(options.only),
        "definitions": list(options.definitions),
        "suffixes": list(options.suffixes),
        "thorough": options.thorough,
        "seconds": seconds,
        "nonce": nonce,
    }
    sources = [(name, (INSIDE / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    program = _START % (json.dumps(sources), json.dumps(request))
    python = [f"{ENV}/bin/python", "-I", "-S", "-B", "-"]
    argv = python
    if options.shell_prefix:
        argv = ["/bin/sh", "-c", f"{options.shell_prefix}\nexec {' '.join(python)}"]
    done = session.exec(argv, timeout_s=seconds + GRACE_S, stdin=program.encode(), cwd=REPO)
    return _parsed_report(done, nonce)


def _parsed_report(done: Completed, nonce: str) -> RecoveryAttempt:
    items, seconds, problems = [], {}, {}
    last: dict[str, Any] = {}
    for line in done.stdout.split(b"\n"):
        try:
            event = json.loads(line) if line and len(line) <= MAX_LINE_BYTES else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict):
            continue
        if "ended" in event:
            seconds[str(event["ended"])] = _number(event.get("seconds"))
            if event.get("problem"):
                problems[str(event["ended"])] = str(event["problem"])[:300]
        elif event.get("done") == nonce:
            last = event
        elif (item := _item(event)) is not None:
            items.append(item)
    if not last:
        problems["all"] = done.stderr.decode(errors="replace")[-300:] or f"ended with {done.rc}"
    return RecoveryAttempt(
        items=tuple(items),
        seconds=seconds,
        problems=problems,
        completed=done,
        finished=bool(last),
        num_files=int(_number(last.get("files"))),
        bytes_read=int(_number(last.get("bytes"))),
    )


def _item(event: dict[str, Any]) -> RecoveredItem | None:
    """The item that a line of the report describes; ``None`` if a field has the wrong type."""
    names = ("strategy", "kind", "where", "text", "code", "magic")
    texts = {name: event.get(name, "") for name in names}
    shape = event.get("shape", {})
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(shape, dict):
        return None
    return RecoveredItem(**texts, shape=shape)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
