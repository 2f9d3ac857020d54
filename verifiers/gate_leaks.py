"""Gate 9, first form: nothing of the deleted code survives in anything the agent can read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from excise.envs.interpreters import Interpreter
from excise.envs.layout import library_of, masked_in
from excise.envs.rootfs import masked_folders
from excise.protocols import GateReport
from excise.types import content_id
from excise.verifiers.candidate import Candidate
from excise.verifiers.shingles import FORMAT, Index, files_below, runs, shingles
from excise.verifiers.shipped import materialise
from excise.verifiers.workbench import Workbench

MAX_SHARE = 0.5
"""If so much of the code stands somewhere outside the tree, the task gives itself away."""
TWIN_SHARE = 0.85
"""Inside the tree siblings share idioms; only a near-copy is refused there."""
TELLING = 4
"""A symbol with fewer fingerprints is a line or two that anyone would write; it is judged with the others only."""
LONE_CHARS = 80
"""A deletion with a single fingerprint is judged if that one is so long. Shorter ones are idioms: of functions with one
fingerprint in 90 installed packages, 13 % have a double in their own package below this length, 7 % above it, and the
latter are copies."""
_SYSTEM_SUFFIXES = frozenset({".py", ".pyi", ".pyw", ".whl", ".zip", ".egg"})


@dataclass(frozen=True, slots=True)
class Leak:
    """Where code came to light again."""

    symbol: str
    file: str
    share: float


class NothingLeaks:
    """Gate 9."""

    name = "g9_leaks"
    claim = (
        "Where the deleted code is long enough to be told from idioms, "
        f"less than {TWIN_SHARE:.0%} of it, or of a symbol that makes up a quarter of it, stands in any readable file "
        f"of the tree, and less than {MAX_SHARE:.0%} in all that is readable of the environment, the interpreter and "
        "the system; the environment holds no byte code of its files"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Build the tree as shipped, and look for every deleted symbol by content everywhere."""
        code = _code(candidate)
        wanted = fingerprints_of(candidate)
        leaks, num_files, num_skipped = _scan(candidate, wanted)
        leaks += _bytecode(candidate)
        evidence = {
            "fingerprints": str(sum(map(len, wanted.values()))),
            "symbols_without_fingerprint": str(len(code) - len(wanted)),
            "files_of_the_tree": str(num_files),
            "skipped_files": str(num_skipped),
            "roots": "tree with build outputs (its history is one commit of it), environment, interpreter, "
            "Python files and archives of the system",
        }
        evidence |= {f"leak {n}": f"{leak.symbol} in {leak.file}" for n, leak in enumerate(leaks[:5])}
        outside = any(not leak.file.startswith("/testbed") for leak in leaks)
        verdict = candidate.judged(
            self,
            None,
            not leaks,
            reason="leak" if outside else "twin_in_repository",
            problem="; ".join(f"{leak.share:.0%} of {leak.symbol} stands in {leak.file}." for leak in leaks[:3]),
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict])


def fingerprints_of(candidate: Candidate) -> dict[str, set[int]]:
    """Fingerprints of the deleted code by symbol, where there is enough of it."""
    code = _code(candidate)
    found = {symbol: prints for symbol, text in code.items() if (prints := shingles(text))}
    if len(set().union(*found.values())) == 1:
        longest = max(len(run.replace("\n", "")) for text in code.values() for run in runs(text))
        return found if longest >= LONE_CHARS else {}
    return found


def _code(candidate: Candidate) -> dict[str, str]:
    """Deleted code by symbol, without docstrings: those may stand in the docs, and the statement quotes them."""
    codebase = candidate.bench.codebase
    symbols = codebase.symbols()
    found: dict[str, str] = {}
    for symbol_id, text in candidate.deletion.text:
        symbol = symbols.get(symbol_id)
        if symbol is None:
            found[symbol_id] = text
            continue
        source = codebase.modules[symbol.path].source
        for inner in codebase.modules[symbol.path].symbols:
            if symbol.start <= inner.start and inner.end <= symbol.end and inner.is_callable:
                found[inner.symbol_id] = source[inner.code_start : inner.end].decode(errors="replace")
    return found


def _scan(candidate: Candidate, wanted: dict[str, set[int]]) -> tuple[list[Leak], int, int]:
    """Leaks, number of files of the tree, and how many of them (or of their members) cannot be read."""
    bench = candidate.bench
    leaks: list[Leak] = []
    skipped = 0
    edits = candidate.edits("shipped")
    with tempfile.TemporaryDirectory(prefix="excise-shipped-") as scratch:
        tree = Path(scratch) / "tree"
        materialise(bench.root, Path(bench.prepared.layers.built), bench.paths, edits, tree)
        files = [path for path in files_below([tree]) if ".git" not in path.relative_to(tree).parts]
        for path in files:
            inside = path.relative_to(tree).as_posix()
            known = None if inside in edits else bench.fingerprints.get(inside)
            index = known if known is not None else Index.build([path])
            skipped += index.skipped
            leaks += _matches(index, wanted, f"/testbed/{inside}", TWIN_SHARE)
    return leaks + twins_outside(bench, wanted), len(files), skipped


def twins_outside(bench: Workbench, wanted: dict[str, set[int]]) -> list[Leak]:
    """Deleted code that stands in the environment, the interpreter or the system; needs no test run."""
    shared = Path(bench.prepared.layers.env).parent.parent
    found = [
        Leak(leak.symbol, _where(bench, wanted), leak.share) for leak in _matches(environment_index(bench), wanted, "")
    ]
    found += _matches(interpreter_index(bench.interpreter, shared), wanted, "the interpreter")
    return found + _matches(system_index(shared), wanted, "the system")


def _matches(index: Index, wanted: dict[str, set[int]], name: str, enough_share: float = MAX_SHARE) -> list[Leak]:
    """Of which symbols too much is there: of the deletion as a whole, or of one that makes up a good part of it."""
    whole = set().union(*wanted.values())
    enough = max(TELLING, len(whole) // 4)
    judged = {symbol: prints for symbol, prints in wanted.items() if len(prints) >= enough}
    if whole:
        judged["the deleted code"] = whole
    shares = ((symbol, len(index.hits(prints)) / len(prints)) for symbol, prints in judged.items())
    return [Leak(symbol, name, share) for symbol, share in shares if share >= enough_share]


def _where(bench: Workbench, wanted: dict[str, set[int]]) -> str:
    """The first file of the environment that tells; only looked for when there is one."""
    for path in files_below([Path(bench.prepared.layers.env)]):
        if _matches(Index.build([path]), wanted, ""):
            return str(path).replace(bench.prepared.layers.env, "/opt/env", 1)
    return "the environment"


def environment_index(bench: Workbench) -> Index:
    """Everything readable in the environment; made once."""
    path = Path(bench.prepared.layers.env).parent / f"fingerprints-{FORMAT}.bin"
    if not path.exists():
        Index.build([Path(bench.prepared.layers.env)]).save(path)
    return Index.load(path)


@cache
def interpreter_index(interpreter: Interpreter, folder: Path) -> Index:
    """What sandboxes see of an interpreter (its own packages are masked); made once for all its environments."""
    path = folder / f"interpreter-{content_id('interpreter', FORMAT, str(interpreter.prefix), interpreter.version)}.bin"
    if not path.exists():
        library = library_of(interpreter)
        masked = tuple(f"{masked}/" for masked in masked_in(library))
        Index.build(file for file in files_below([library]) if not str(file).startswith(masked)).save(path)
    return Index.load(path)


@cache
def system_index(folder: Path) -> Index:
    """Python sources and archives of the host's ``/usr`` that sandboxes see; made once per state of the host."""
    masked = tuple(f"{path}/" for path in masked_folders())
    installed = Path("/var/lib/dpkg/status")
    stamp = installed.stat().st_mtime_ns if installed.exists() else 0
    path = folder / f"system-{content_id('system', FORMAT, stamp, masked)}.bin"
    if not path.exists():
        files = files_below([Path("/usr/lib"), Path("/usr/share")], _SYSTEM_SUFFIXES)
        Index.build(file for file in files if not str(file).startswith(masked)).save(path)
    return Index.load(path)


def _bytecode(candidate: Candidate) -> list[Leak]:
    """Byte code in the environment that was compiled from a file of the checkout."""
    bench = candidate.bench
    paths = {symbol.partition("::")[0] for symbol, _ in candidate.deletion.text}
    marks = {path: f"/testbed/{path}".encode() for path in paths}
    stems = {Path(path).stem for path in paths}
    leaks = []
    for file in files_below([Path(bench.prepared.layers.env)], frozenset({".pyc"})):
        if file.name.partition(".")[0] in stems:
            data = file.read_bytes()
            leaks += [Leak(path, str(file), 1.0) for path, mark in marks.items() if mark in data]
    return leaks
