"""Benchmark of the leak scanner: recall on planted functions, and throughput compared with plain text search.

``python benchmarks/leaks.py plant [FUNCTIONS]`` plants real functions in every kind of artefact and prints recall and
false positives for each kind (about 3 CPU seconds for each function).

``python benchmarks/leaks.py speed FOLDER [FUNCTIONS]`` searches a folder (an environment, an interpreter) for functions
in four ways: cold (every file is decoded), warm by content (files are read and hashed, their fingerprints are cached),
warm by index (fingerprints are looked up), and by a literal search for the longest line of each function in the raw
bytes, with hyperscan if it is installed, else with ``re``.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "verifiers"))
from planting.measure import SHORT, WHOLE, measure
from planting.subjects import Subject, subjects

from excise.verifiers.leaks.content_cache import ContentCache
from excise.verifiers.leaks.decoding import read_file
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex
from excise.verifiers.leaks.scan import PlaceRules, leaks_in


def files_below(root: Path) -> list[Path]:
    """The regular files below a folder, sorted."""
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def library() -> FingerprintIndex:
    """Index of the standard library, whose fingerprints are too common to show a leak."""
    contents = ContentCache()
    return FingerprintIndex.build(
        (str(p), 0, contents.of_file(p)) for p in sorted(Path(ast.__file__).parent.glob("*.py"))
    )


def plant(count: int) -> None:
    """Plant ``count`` functions; print recall and false positives for each kind of artefact."""
    with tempfile.TemporaryDirectory() as work:
        tallies = measure(subjects(count), WHOLE, Path(work), library())
    short = tallies.pop(SHORT)
    print("| artefact | planted | found | false | not made |\n|---|---|---|---|---|")
    for name, tally in tallies.items():
        print(
            f"| {name} | {tally.planted} | {tally.planted - len(tally.missed)} | {len(tally.false)} | {tally.unmade} |"
        )
    planted, missed = sum(t.planted for t in tallies.values()), sum(len(t.missed) for t in tallies.values())
    print(f"{len(tallies)} kinds, {planted} planted, {missed} missed, too short to tell: {short.missed}")
    for name, tally in tallies.items():
        for problem in (*tally.missed, *tally.false):
            print(f"  {name}: {problem}")


def timed(what: str, size: int, work: Callable[[], object]) -> None:
    """Print CPU seconds and throughput of ``work`` on ``size`` bytes."""
    began = time.process_time()
    work()
    took = max(time.process_time() - began, 1e-9)
    print(f"{what}: {took:.3f} CPU s, {size / took / 1e6:.0f} MB/s")


def speed(root: Path, count: int) -> None:
    """Print the throughput of each way to search a folder."""
    files = files_below(root)
    size = sum(path.stat().st_size for path in files)
    chosen = subjects(count)
    targets = [target for subject in chosen for target in subject.targets]
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {len(targets)} definitions")
    contents = ContentCache()

    def read() -> Iterator[tuple[str, int, object]]:
        return ((str(path), 0, contents.of_file(path)) for path in files)

    timed("cold, decoded", size, lambda: list(read()))
    timed("warm, by content", size, lambda: list(read()))
    index = FingerprintIndex.build(read())  # type: ignore[arg-type]
    timed("warm, by index, all definitions one by one", size * len(targets), lambda: _each(index, chosen))
    lines = sorted({_longest(subject) for subject in chosen})
    timed(f"{_other()} for {len(lines)} lines, raw bytes", size, _scan(files, lines))


def _each(index: FingerprintIndex, chosen: list[Subject]) -> None:
    for subject in chosen:
        leaks_in(index, subject.targets, PlaceRules())


def _longest(subject: Subject) -> bytes:
    return max(subject.code.splitlines(), key=len).strip().encode()


def _other() -> str:
    try:
        import hyperscan  # noqa: F401
    except ImportError:
        return "re"
    return "hyperscan"


def _scan(files: list[Path], lines: list[bytes]) -> Callable[[], None]:
    if _other() == "re":
        pattern = re.compile(b"|".join(map(re.escape, lines)))
        return lambda: [pattern.search(read_file(path) or b"") for path in files] and None
    import hyperscan

    base = hyperscan.Database()
    base.compile(expressions=[re.escape(line) for line in lines], ids=list(range(len(lines))), elements=len(lines))

    def scan() -> None:
        for path in files:
            base.scan(read_file(path) or b"", match_event_handler=lambda *_: None)

    return scan


if __name__ == "__main__":
    if sys.argv[1] == "plant":
        plant(int(sys.argv[2]) if len(sys.argv) > 2 else 50)
    else:
        speed(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20)
