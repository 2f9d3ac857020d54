"""Benchmark of learning: pass rates on held-out tasks before and after training, over several seeds.

The tasks are of the easiest kind, since the model is small: one line of a function in a real project is missing, and
the model continues the file there. A source file is either trained on or held out. The benchmark uses the commands
``excise generate --request``, ``excise train`` and ``excise eval``.

Run one of

``python benchmarks/learning.py pass-rate MODEL``: held-out pass rates before and after, over seeds
``python benchmarks/learning.py ablation MODEL``: the same for RL alone, with lessons, and with a cost per token
``python benchmarks/learning.py curriculum MODEL``: the pool begins with the easiest tasks and requests harder ones

MODEL is a Hugging Face folder, for example ``.venv-vllm/smollm2`` after ``scripts/vllm.sh``. Tasks and runs are kept in
``--into`` and reused; interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from excise.pipeline.exit_codes import OK, PARTIAL

CONFIG = Path(__file__).with_name("learning.toml")
SOURCES = (
    "pypi:toolz==1.2.0", "pypi:tinydb==4.9.0", "pypi:inflection==0.5.1", "pypi:voluptuous==0.16.0",
    "pypi:boltons==26.2.0", "pypi:jinja2==3.1.6", "pypi:python-slugify==9.2.0",
)  # fmt: skip
"""Projects with fast tests."""
VARIANTS: dict[str, tuple[str, ...]] = {
    "rl": (),
    "lessons": ("learner.lessons.weight=0.5", "teacher.privileged=gold"),
    "effort": ("effort.scale=0.01", "effort.per_turn=0.0"),
}
"""Variants to compare, by the settings that differ.

``lessons``: a teacher is shown the gold patch if a whole group failed, and a hint if an answer could not be used.
``effort``: each token costs 0.01 of reward.
"""


def excise(*words: object) -> str:
    """Run an excise command and return its standard output; progress is shown. Exits if the command fails."""
    done = subprocess.run(
        [sys.executable, "-m", "excise.pipeline.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (OK, PARTIAL):
        sys.exit(f"excise {' '.join(map(str, words))}: exit code {done.returncode}")
    return done.stdout


def settings(*items: str) -> list[str]:
    """Settings as command-line options."""
    return [word for item in items for word in ("--set", item)]


def make_tasks(out: Path, into: Path, count: int, levels: tuple[str, str]) -> None:
    """Add tasks of the easiest levels to a set, unless that is done already."""
    asked = into / f"request-{'-'.join(levels)}.json"
    if asked.exists():
        return
    request = {"lowest": levels[0], "highest": levels[1], "visibility": "tests", "count": count}
    going = asked.with_suffix(".begun")
    going.write_text(json.dumps(request))
    excise("generate", *SOURCES, "--request", going, "--out", out)
    going.rename(asked)


def evaluated(model: Path, out: Path, into: Path, name: str) -> dict[str, Any]:
    """The result of ``excise eval`` for a policy on the held-out tasks; an existing result is reused."""
    kept = into / "eval" / name / "eval.json"
    if not kept.exists():
        excise(
            "eval", CONFIG, "--model", model, "--held-out", "--name", name, "--out", out, "--into", kept.parent,
            "--quiet",
        )  # fmt: skip
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def trained(model: Path, out: Path, folder: Path, seed: int, steps: int, changes: Sequence[str]) -> Path:
    """The folder of a trained policy; an interrupted run is resumed."""
    policy = folder / "policy"
    if not policy.exists() or len(rows_of(folder)) < steps:  # an interrupted run has a policy, too
        resume = ["--resume"] if folder.exists() else []
        excise(
            "train", CONFIG, "--quiet", *resume, *settings(
                f"folder='{folder}'", f"policy.model='{model}'", f"excise.out='{out}'", f"seed={seed}",
                f"loop.steps={steps}", *changes,
            ),
        )  # fmt: skip
    return policy


def rows_of(folder: Path) -> list[dict[str, float]]:
    """The metrics of a run, one row per step."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation as text."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.3f}"
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{mean:.3f} ± {deviation:.3f}"


def compare(variants: Sequence[str], options: argparse.Namespace) -> None:
    """Train each variant with each seed and print a table."""
    before = evaluated(options.model, options.out, options.into, "before")
    num_tasks = len(before["tasks"])
    print(
        f"{num_tasks} held-out tasks, {before['samples']} attempts at each; {options.steps} steps, "
        f"seeds {options.seeds}"
    )
    heads = ("pass@1", "pass@4", "pass@16", "tokens")
    print(f"{'':10} " + " ".join(f"{head:>16}" for head in heads))
    show("before", [before])
    for variant in variants:
        found = []
        for seed in options.seeds:
            folder = options.into / f"{variant}-{options.steps}-{seed}"
            policy = trained(options.model, options.out, folder, seed, options.steps, VARIANTS[variant])
            found.append(evaluated(policy, options.out, options.into, folder.name))
            rates = [row["pass@1"] for row in rows_of(folder) if "pass@1" in row]
            few = max(1, len(rates) // 5)
            first, last = (math.fsum(part) / len(part) for part in (rates[:few], rates[-few:]))
            print(f"  {folder.name}: training pass rate {first:.3f} in the first fifth, {last:.3f} in the last")
        show(variant, found)


def show(name: str, found: Sequence[dict[str, Any]]) -> None:
    """Print one row of the table: a variant's pass rates."""
    cells = [spread([one["pass_at"][k] for one in found]) for k in ("1", "4", "16")]
    cells.append(spread([one["mean_tokens"] for one in found]))
    print(f"{name:10} " + " ".join(f"{cell:>16}" for cell in cells), flush=True)


def curriculum(options: argparse.Namespace) -> None:
    """Train with a pool that begins with the easiest tasks; print tiers, pass rates and requests over time."""
    folder = options.into / f"curriculum-{options.steps}-{options.seeds[0]}"
    changes = (
        "curriculum.max_visits=4", "curriculum.ask.low_water=8", "curriculum.ask.set_point=0.15",
        "curriculum.ask.pass_rate=[0.03, 0.6]", "curriculum.ask.count=24",
    )  # fmt: skip
    trained(options.model, options.out, folder, options.seeds[0], options.steps, changes)
    for row in rows_of(folder):
        shown = {name: row[name] for name in ("step", "pass@1", "tier", "zero_variance") if name in row}
        print(" ".join(f"{name} {value:.3f}" for name, value in shown.items()))
    for path in sorted((folder / "requests").glob("*.json")):
        asked = json.loads(path.read_text())
        code = path.with_suffix(".code")
        print(f"asked for {asked['lowest']} to {asked['highest']}, {asked['visibility']}: exit code", end=" ")
        print(code.read_text() if code.exists() else "none yet")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("pass-rate", "ablation", "curriculum"))
    parser.add_argument("model", type=lambda text: Path(text).absolute(), help="Hugging Face folder")
    parser.add_argument("--into", type=lambda text: Path(text).absolute(), default=Path("learning").absolute())
    parser.add_argument("--tasks", type=int, default=175, help="tasks to ask for")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    if options.what == "curriculum":
        options.out = options.into / "easiest"
        make_tasks(options.out, options.into, options.tasks // 3, ("line", "line"))
        curriculum(options)
    else:
        options.out = options.into / "tasks"
        make_tasks(options.out, options.into, options.tasks, ("line", "expression"))
        compare(("rl",) if options.what == "pass-rate" else tuple(VARIANTS), options)


if __name__ == "__main__":
    main()
