"""Host side of recorded calls: selects the functions to record, and replays calls."""

from __future__ import annotations

import ast
import json
import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from excise.errors import SandboxError
from excise.extractors.python.analysis.ast_walk import tree_of, walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.compared_outcomes import parsed
from excise.extractors.python.execution.pytest_runner import request_run
from excise.extractors.python.execution.unread_results import is_unread
from excise.extractors.python.needs.find_needs import find_needs
from excise.extractors.python.needs.test_uses import uses_in
from excise.extractors.python.needs.watching import read_report, watch_request
from excise.extractors.test_reports.report import read_bounded
from excise.protocols import CallRecording, Codebase, ForkServer, Session, Start
from excise.types import Recipe, Symbol, SymbolKind, Watched, WorkerOutcome, by_plain_name, path_of

logger = logging.getLogger(__name__)

_PYTHON = "/opt/env/bin/python"
_INSIDE, _ROOT = "/excise/inside", "/testbed"
MAX_CALLS = 200
"""Maximum number of calls in a recording, spread over the functions."""
MAX_NAMES = 500
"""Maximum number of names in each list of a report."""
MAX_CALLS_BYTES = 512 << 10
"""Maximum size of a recording's calls in bytes."""
MAX_RECORD_BYTES = 64 << 20
"""Maximum size of the report of a recording in bytes."""
CALL_TIMEOUT_S = 5.0
"""Seconds for the replay of one call."""
NEW_CALL_TIMEOUT_S = 1.0
"""The same for one that no test makes, the first time: a loop with a large number ends nothing but itself."""

_PICKLING = frozenset(
    {"__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"}
)
"""Methods whose results only ``copy`` and ``pickle`` use: what these make of them counts, not their form."""


def public_names(codebase: Codebase, symbols: Iterable[str], roots: Sequence[str]) -> list[str]:
    """``module:qualname`` of the public functions and classes among (and in the modules among) ``symbols``, and of the
    private functions that tests name: a solution must have these, too."""
    return [
        name
        for name, symbol in _named(codebase, symbols, roots)
        if symbol.is_public or _is_dunder(symbol) or _is_named_by_tests(codebase, symbol)
        if symbol.name.partition("#")[0] not in _PICKLING
    ]


def _is_named_by_tests(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether a test refers to a private function, which is in no private class."""
    in_private = any(part.startswith("_") for part in symbol.qualname.split(".")[:-1])
    callers = codebase.callers(symbol.symbol_id) if symbol.is_callable and not in_private else ()
    return any(codebase.is_test(path_of(caller)) for caller in callers)


def private_classes(codebase: Codebase, symbols: Iterable[str], roots: Sequence[str]) -> list[str]:
    """``module:qualname`` of the private classes, in the same places; a solution may replace them by its own."""
    named = _named(codebase, symbols, roots)
    return [name for name, symbol in named if symbol.kind is SymbolKind.CLASS and not symbol.is_public]


def _named(codebase: Codebase, symbols: Iterable[str], roots: Sequence[str]) -> list[tuple[str, Symbol]]:
    found: dict[str, Symbol] = {}
    for symbol_id in symbols:
        path, _, qualname = symbol_id.partition("::")
        module = module_of(path, roots)
        if module is None or path not in codebase.modules or codebase.is_test(path):
            continue
        for name, symbol in by_plain_name(codebase.modules[path].symbols).items():
            inside = not qualname and "." not in name
            if symbol.kind is not SymbolKind.MODULE and (inside or symbol.qualname == qualname):
                found[f"{module}:{name}"] = symbol
    return list(found.items())


def _is_dunder(symbol: Symbol) -> bool:
    name = symbol.name.partition("#")[0]
    return name.startswith("__") and name.endswith("__")


def module_of(path: str, roots: Sequence[str]) -> str | None:
    """Import name of a file, relative to the innermost import root around it; ``None`` if it has none."""
    best = ""
    for root in roots:
        folder = "" if root in (".", "") else root.strip("/") + "/"
        if path.startswith(folder) and len(folder) >= len(best):
            best = folder
    if not path.endswith(".py"):
        return None
    parts = path[len(best) : -3].split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def roots_of_tests(codebase: Codebase, symbols: Iterable[str], roots: Sequence[str]) -> Sequence[str]:
    """The import roots by which tests import the modules of ``symbols``: that of the checkout if they say
    ``src.package``, and never ``package``: each name is a module of its own."""
    if not isinstance(codebase, PythonCodebase):
        return roots
    tests = (module for path, module in codebase.modules.items() if codebase.is_test(path))
    imported = {record.module for module in tests for record in module.imports if record.module}
    paths = sorted({path_of(symbol) for symbol in symbols})

    def is_imported(name: str | None) -> bool:
        return name is not None and any(f"{name}.".startswith(f"{each}.") for each in imported)

    from_checkout = [module_of(path, ["."]) for path in paths]
    has_own_name = any(is_imported(module_of(path, roots)) for path in paths)
    return roots if has_own_name or not any(map(is_imported, from_checkout)) else ["."]


class AskedRun(NamedTuple):
    """How the tests are run while calls are recorded; see :meth:`excise.protocols.Grading.record_calls`."""

    ids: tuple[str, ...]
    """The tests."""
    timeout_s: float
    """Timeout in wall seconds."""
    start: Start = Start.FRESH
    """How the run begins."""
    executed: Collection[str] | None = None
    """Symbols that the tests execute; ``None`` if what they do is not watched."""


def record(
    session: Session, recipe: Recipe, codebase: Codebase, symbols: Sequence[str], asked: AskedRun
) -> CallRecording:
    """See :meth:`excise.protocols.Grading.record_calls`."""
    roots = roots_of_tests(codebase, symbols, recipe.roots)
    names = public_names(codebase, symbols, roots)
    private = private_classes(codebase, symbols, roots)
    modules = tuple(dict.fromkeys(name.partition(":")[0] for name in names))
    watch = _watch_request(codebase, recipe, symbols, asked)
    found: dict[str, Any] = {}
    if names or watch:
        tests = sorted(path for path in codebase.modules if codebase.is_test(path))
        request = {
            "names": names,
            "modules": list(modules),
            "spans": _spans(codebase, symbols),
            "tests": tests,
            "watch": watch,
        }
        found = _run(session, recipe, request, asked)
    listed = found.get("calls")
    made = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    called = {str(call.get("name")) for call in made}
    named = ((name, symbol) for name, symbol in _named(codebase, symbols, roots) if name in called)
    unread = {name for name, symbol in named if is_unread(codebase, symbol)}
    raw = [json.dumps({**call, "unread": True} if call.get("name") in unread else call) for call in made]
    reported = found.get("refused")
    refused = (
        {str(why)[:80]: n for why, n in reported.items() if isinstance(n, int)} if isinstance(reported, dict) else {}
    )
    watched = found.get("watched")
    calls = tuple(spread(raw))
    uses = read_report(found.get("uses"), asked.ids) if watch else Watched(problem="The tests were not watched.")
    return CallRecording(
        calls=calls,
        modules=tuple(dict.fromkeys([*modules, *_strings(found.get("modules"))])),
        folders=_in_fixed_order(_strings(found.get("folders")), recipe.roots),
        removed=tuple(dict.fromkeys([*names, *(name.removesuffix(".__init__") for name in names), *private])),
        watched=watched if isinstance(watched, int) else 0,
        refused=refused,
        by_test=_by_test(found.get("tests"), raw),
        returned=_returned(found.get("returned"), raw),
        uses=replace(uses, compared=_functions_of(calls)),
    )


def _functions_of(calls: Iterable[str]) -> frozenset[str]:
    """The qualified names of the functions that are called."""
    return frozenset(str(json.loads(call).get("name")).rpartition(":")[2] for call in calls)


def _in_fixed_order(folders: Iterable[str], roots: Sequence[str]) -> tuple[str, ...]:
    """The folders of an import path, those that the project is imported from last, in the order of the recipe.

    Their place depends on how the run began (forked or not), and calls are replayed with them in front anyway.
    """
    found = dict.fromkeys(folders)
    own = [root for root in dict.fromkeys(root or "." for root in roots) if root in found]
    return (*(folder for folder in found if folder not in own), *own)


def watch(session: Session, recipe: Recipe, codebase: Codebase, symbols: Sequence[str], asked: AskedRun) -> Watched:
    """See :meth:`excise.protocols.Grading.watch_tests`."""
    request: dict[str, object] = {
        "names": [],
        "modules": [],
        "spans": [],
        "watch": _watch_request(codebase, recipe, symbols, asked),
    }
    return read_report(_run(session, recipe, request, asked).get("uses"), asked.ids)


def _run(session: Session, recipe: Recipe, request: Mapping[str, object], asked: AskedRun) -> dict[str, Any]:
    """The report of a run that records calls, or watches, or both; empty if there is none."""
    name = f"report-{uuid.uuid4().hex}.json"
    body: dict[str, Any] = {"report": f"/excise/out/{name}", "root": _ROOT, **request}
    run: dict[str, Any] = {"ids": list(asked.ids), "without": (), "test_timeout_s": asked.timeout_s, "record": body}
    request_run(session, recipe, timeout_s=asked.timeout_s, start=asked.start, **run)
    return parsed(read_bounded(session.out / name, MAX_RECORD_BYTES))


def _watch_request(
    codebase: Codebase, recipe: Recipe, symbols: Sequence[str], asked: AskedRun
) -> dict[str, Any] | None:
    """What is asked of ``excise_watch.py``; ``None`` if nothing is."""
    if asked.executed is None or not isinstance(codebase, PythonCodebase):
        return None
    uses = uses_in(codebase)
    known = find_needs(codebase, uses, symbols, asked.ids)
    owners = ((module_of(path, recipe.roots), name) for path, _, name in (each.partition("::") for each in symbols))
    return {
        **watch_request(codebase, uses, symbols, asked.ids, asked.executed),
        "root": _ROOT,
        "words": sorted({need.word for need in known}),
        "owners": [(module, name.partition("#")[0]) for module, name in owners if module is not None],
    }


def _spans(codebase: Codebase, symbols: Iterable[str]) -> list[tuple[str, int, int]]:
    """File, first line and last line of each symbol."""
    found = (codebase.symbols().get(symbol) for symbol in symbols)
    return [(symbol.path, symbol.start_line, symbol.end_line) for symbol in found if symbol is not None]


def _by_test(reported: object, calls: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The calls of each test, from their indexes."""
    indexes = reported if isinstance(reported, dict) else {}
    return {test: tuple(calls[number] for number in numbers) for test, numbers in indexes.items()}


def _returned(reported: object, calls: Sequence[str]) -> dict[str, bool]:
    """Whether calls returned, from their indexes."""
    found = reported if isinstance(reported, dict) else {}
    numbers = {int(number): returned is True for number, returned in found.items() if str(number).isdecimal()}
    return {calls[number]: returned for number, returned in numbers.items() if number < len(calls)}


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)][:MAX_NAMES] if isinstance(value, list) else []


def spread(calls: Sequence[str]) -> list[str]:
    """At most :data:`MAX_CALLS` of the calls, chosen from all functions in turn; the order is kept."""
    by_name: dict[str, list[str]] = {}
    for call in dict.fromkeys(calls):
        by_name.setdefault(str(json.loads(call).get("name")), []).append(call)
    chosen: list[str] = []
    size = 0
    for turn in range(max(map(len, by_name.values()), default=0)):
        for listed in by_name.values():
            if turn < len(listed) and len(chosen) < MAX_CALLS and size + len(listed[turn]) <= MAX_CALLS_BYTES:
                chosen.append(listed[turn])
                size += len(listed[turn])
    kept = set(chosen)
    return [call for call in dict.fromkeys(calls) if call in kept]


def replay_server(recipe: Recipe, hash_seed: int) -> ForkServer:
    """See :meth:`excise.protocols.Grading.replay_server`."""
    variables = {"PYTHONPYCACHEPREFIX": "/excise/outputs", "PYTHONDONTWRITEBYTECODE": "1", **dict(recipe.env)}
    command = (_PYTHON, f"{_INSIDE}/excise_replay.py", json.dumps(_import_path(recipe)))
    return ForkServer(argv=command, env=variables | {"PYTHONHASHSEED": str(hash_seed)})


def _import_path(recipe: Recipe) -> list[str]:
    """The folders in a sandbox from which the project is imported."""
    return [f"/testbed/{root}".rstrip("/.") for root in recipe.roots]


class AskedReplay(NamedTuple):
    """How calls are made; see :meth:`excise.protocols.Grading.replay_calls` and ``trace_calls``."""

    timeout_s: float
    """Wall seconds for all calls together."""
    new: int = 0
    """Number of calls at the end that were made from others."""
    hash_seed: int = 0
    """The seed of hashes."""
    later_s: float = 0.0
    """Seconds by which the clock is ahead."""
    zone: str = ""
    """The time zone, as in ``TZ``, where there are also other arguments of the process, another home folder and another
    user; empty for those of the sandbox."""
    alone: int | None = None
    """Number of calls at the beginning with processes of their own; ``None``: all."""


def replay(session: Session, recipe: Recipe, recording: CallRecording, asked: AskedReplay) -> list[str]:
    """See :meth:`excise.protocols.Grading.replay_calls`."""
    return [outcome for outcome, _ in _replayed(session, recipe, recording, {}, asked)]


def trace(
    session: Session,
    recipe: Recipe,
    recording: CallRecording,
    codebase: Codebase,
    symbols: Sequence[str],
    asked: AskedReplay,
) -> list[tuple[str, frozenset[str]]]:
    """See :meth:`excise.protocols.Grading.trace_calls`."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for path, first, last in _spans(codebase, symbols):
        spans[f"{_ROOT}/{path}"].append((first, last))
    literals: set[str] = set()
    for symbol in (found for s in symbols if (found := codebase.symbols().get(s)) is not None):
        literals.update(_literals(tree_of(codebase.modules[symbol.path].source, symbol.start, symbol.end)))
    answers = []
    for call, (outcome, executed) in zip(
        recording.calls, _replayed(session, recipe, recording, spans, asked), strict=True
    ):
        texts = literals.intersection(_texts_in([parsed(call.encode()), parsed(outcome.encode())]))
        answers.append((outcome, executed | {f"text {text}" for text in texts}))
    return answers


def _literals(definition: ast.stmt | None) -> Iterator[str]:
    """The texts of more than one character that a definition's code contains, but for docstrings and the like."""
    nodes = list(walk(definition)) if definition is not None else []
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in (each for each in nodes if isinstance(each, ast.Constant) and id(each) not in alone):
        if isinstance(node.value, str) and len(node.value) > 1:
            yield node.value


def _texts_in(node: Any) -> Iterator[str]:
    """The texts among encoded values."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        if len(node) == 2 and node[0] == "s" and isinstance(node[1], str):
            yield node[1]
        for part in node:
            yield from _texts_in(part)


def _replayed(
    session: Session,
    recipe: Recipe,
    recording: CallRecording,
    spans: Mapping[str, Sequence[tuple[int, int]]],
    asked: AskedReplay,
) -> list[tuple[str, frozenset[str]]]:
    """The outcome of each call, and ``file:line`` of the lines within ``spans`` that it executed."""
    request = {
        "calls": [json.loads(call) for call in recording.calls],
        "modules": list(recording.modules),
        "removed": list(recording.removed),
        "spans": spans,
        "path": _import_path(recipe),
        "folders": [f"{_ROOT}/{folder}".removesuffix("/.") for folder in recording.folders],
        "new": asked.new,
        "alone": len(recording.calls) if asked.alone is None else asked.alone,
        "call_timeout_s": CALL_TIMEOUT_S,
        "new_timeout_s": NEW_CALL_TIMEOUT_S,
        "timeout_s": asked.timeout_s,
        "later_s": asked.later_s,
        "zone": asked.zone,
    }
    command = replay_server(recipe, asked.hash_seed)
    stdin = json.dumps(request).encode()
    done = session.exec(command.argv, timeout_s=asked.timeout_s + 60, stdin=stdin, env=command.env)
    if done.worker in {WorkerOutcome.INFRA_ERROR, WorkerOutcome.KILLED}:
        raise SandboxError(f"Recorded calls cannot be replayed: {done.worker}.")
    if done.rc < 0:
        logger.info("replay ended", extra={"signal": -done.rc, "calls": len(recording.calls)})
    answers: list[tuple[str, frozenset[str]]] = [("", frozenset())] * len(recording.calls)
    for line in done.stdout.split(b"\n"):
        answer = parsed(line)
        number, outcome, lines = answer.get("n"), answer.get("outcome"), answer.get("lines")
        if isinstance(number, int) and 0 <= number < len(answers) and isinstance(outcome, dict):
            text = "" if "lost" in outcome else json.dumps(outcome, sort_keys=True)
            answers[number] = text, _executed(lines) if spans else frozenset()
    return answers


def _executed(lines: object) -> frozenset[str]:
    """``file:line`` of each pair of these in an untrusted list."""
    pairs = [pair for pair in lines if isinstance(pair, list) and len(pair) == 2] if isinstance(lines, list) else []
    return frozenset(f"{file}:{line}" for file, line in pairs)
