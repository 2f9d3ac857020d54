"""What making tasks costs, in one run: one table, as ratios against alternatives that are measured beside it.

Run: ``python benchmarks/all.py [SOURCE…] [--candidates 12] [--naive 2]``. Without sources: two short suites, two long
ones, and one of more than 10,000 tests. It has a cache of its own, empty at the start, so that set-up is measured, too.
Prints

- the table of ``search.py``: set-up, trying candidates against the naive loop and against the tests themselves, proofs
  and coverage maps against one run of the suite, bytes of a task, peak memory;
- candidates for each CPU second against those of mutmut 3 (``mutants.py``);
- CPU of the main process for each candidate, and whether its memory stays flat (``orchestration.py``).

Exits with 1 if a set of failing tests differs between the fast and the naive way, or memory grows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import mutants
import orchestration
import search

from excise.config import Settings, load
from excise.datasets.taskset import TaskSet
from excise.pipeline.run.graph import run
from excise.types import SourceSpec

SOURCES = ("boltons==25.0.0", "jinja2==3.1.6", "networkx==3.4.2", "sqlglot==26.0.0", "packaging==25.0")
"""Projects of the index; packaging has 26,948 tests."""
MUTANTS = ("pypi:toolz==1.0.0", "toolz/itertoolz.py")
"""Source and file whose functions mutmut changes."""


def one_task(settings: Settings, source: str) -> TaskSet:
    """A set with one task of a source."""
    wanted = {"sources": (SourceSpec(spec=source),), "limit": 1, "workers": 1}
    run(settings.model_copy(update=wanted), lambda _: None)
    return TaskSet.open(settings.out)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", default=[f"pypi:{name}" for name in SOURCES])
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--naive", type=int, default=2)
    parser.add_argument("--mutants", nargs=2, default=MUTANTS, metavar=("SOURCE", "FILE"))
    parser.add_argument("--orchestration", type=int, default=1000, metavar="CANDIDATES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = load(out=Path(folder, "out"), cache=Path(folder, "cache"))
        rows = search.table(options.sources, options.candidates, options.naive, settings)
        source, file = options.mutants
        mutants.compare(SourceSpec(spec=source), file, settings)
        taskset = one_task(settings, source)
        flat = orchestration.measure(taskset, options.orchestration, max(2, options.orchestration // 100), 2)
    sys.exit(any(row.differing for row in rows) or not flat)


if __name__ == "__main__":
    main()
