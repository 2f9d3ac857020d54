"""Benchmark of trying candidates against mutmut 3, on the functions of one file.

Run: ``python benchmarks/mutants.py SOURCE FILE``, for example ``pypi:toolz==1.0.0 toolz/itertoolz.py`` (uses the usual
cache, and installs the newest mutmut into an environment of its own). mutmut changes one expression at a time and stops
at the first test that fails; excise takes the body of a function away and reports all its tests. mutmut is run twice,
with one mutant and with all, so that its preparation can be told from the mutants: it runs the suite first, to learn
which tests reach a function. excise's preparation is the coverage map and the process that has collected the suite.
Prints CPU seconds of all processes, and candidates for each.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from search import cost_of, deletions, prepare
from uv import find_uv_bin

from excise.config import Settings, load
from excise.pipeline.stages.environment_stage import open_workbench
from excise.types import SourceSpec
from excise.verifiers.candidate import DeletionTrees
from excise.verifiers.workbench import Workbench

MUTMUT = "mutmut>=3,<4"


def run(command: list[str], cwd: Path, environment: Path) -> tuple[str, float]:
    """Output and CPU seconds of a command; exits if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = {**os.environ, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(environment)}
    done = subprocess.run(command, check=False, cwd=cwd, env=variables, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def install(bench: Workbench, environment: Path) -> None:
    """Install mutmut and what the project's tests need."""
    uv = find_uv_bin()
    run(
        [uv, "venv", "--quiet", "--python", str(bench.interpreter.executable), str(environment)],
        Path.cwd(),
        environment,
    )
    locked = environment / "locked.txt"
    locked.write_text("".join(f"{line}\n" for line in bench.prepared.environment.lock))
    run([uv, "pip", "install", "--quiet", MUTMUT, "-r", str(locked)], Path.cwd(), environment)


def measure_mutmut(bench: Workbench, file: str, work: Path) -> tuple[int, float, float]:
    """Number of mutants, CPU seconds of the preparation, and of all mutants."""
    environment, tree = work / "environment", work / "tree"
    install(bench, environment)
    shutil.copytree(bench.root, tree)
    tests = sorted({test.partition("::")[0] for test in bench.trusted})
    top = file.partition("/")[0]
    others = [entry.name for entry in tree.iterdir() if entry.name not in {top, "mutants"}]
    sections = {
        "source_paths": [top], "only_mutate": [file], "pytest_add_cli_args_test_selection": tests, "also_copy": others
    }  # fmt: skip
    with (tree / "setup.cfg").open("a") as configuration:
        configuration.write("\n[mutmut]\n")
        for name, values in sections.items():
            configuration.write(f"{name} =\n" + "".join(f"    {value}\n" for value in values))
    mutmut = str(environment / "bin" / "mutmut")
    _, every = run([mutmut, "run", "--max-children", "1"], tree, environment)
    listed, _ = run([mutmut, "results", "--all", "true"], tree, environment)
    names = [line.partition(":")[0].strip() for line in listed.splitlines() if ":" in line]
    shutil.rmtree(tree / "mutants")
    _, one = run([mutmut, "run", "--max-children", "1", names[0]], tree, environment)
    return len(names), one, every - one


def measure_excise(spec: SourceSpec, file: str, settings: Settings) -> tuple[Workbench, list[float], float]:
    """The workbench, CPU seconds of each candidate in the file, and those of the preparation."""
    prepared, proposed = prepare(spec, settings)
    bench = open_workbench(settings, prepared)
    assert prepared.coverage is not None
    bench.starts.collect_now()
    _, start_s = cost_of(spec.spec, lambda: bench.run({}, ids=[], forked=True))
    found = []
    features = [f for f in proposed.features if all(symbol.partition("::")[0] == file for symbol in f.symbols)]
    for deletion in deletions(bench, features):
        edits = DeletionTrees(bench=bench, deletion=deletion).edits("deleted")
        found.append(bench.run(edits, ids=sorted(deletion.feature.tests), forked=True).cpu_s)
    return bench, found, prepared.coverage.cpu_s + start_s


def compare(spec: SourceSpec, file: str, settings: Settings) -> float:
    """Measure both and print the table; return excise's candidates per CPU second as a multiple of mutmut's."""
    with tempfile.TemporaryDirectory() as folder:
        bench, candidates, prepared_s = measure_excise(spec, file, settings)
        mutants, preparation_s, mutants_s = measure_mutmut(bench, file, Path(folder))
    rows = (("excise", len(candidates), prepared_s, sum(candidates)), ("mutmut", mutants, preparation_s, mutants_s))
    print(f"{'':8} {'number':>7} {'preparation s':>14} {'all s':>8} {'each per CPU s':>15}")
    for name, number, before, spent in rows:
        print(f"{name:8} {number:7} {before:14.1f} {spent:8.1f} {number / spent:15.1f}")
    ratio = len(candidates) / sum(candidates) / (mutants / mutants_s)
    print(f"excise ÷ mutmut: {ratio:.1f}", flush=True)
    return ratio


def main() -> None:
    """Measure both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        compare(SourceSpec(spec=options.source), options.file, load(out=Path(out)))


if __name__ == "__main__":
    main()
