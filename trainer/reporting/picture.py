"""A picture of a run: the rung of the tasks that were tried and how many were solved, over steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(rows: Sequence[dict[str, float]], path: Path, title: str = "") -> bool:
    """Draw rows of ``metrics.jsonl`` into an SVG or PNG file, whole or not at all. False, if there is nothing to draw,
    or no matplotlib to draw with.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    rows = [row for row in rows if "pass@1" in row or "reward" in row]
    if not rows:
        return False
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "excise"
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, style in (("pass@1", "-"), ("pass@k", "--"), ("reward", ":")):
        _curve(above, rows, name, style)
    above.set(ylabel="share of attempts, reward", ylim=(-0.05, 1.05))
    above.legend(loc="best", frameon=False)
    for name, style in (("tier", "-"), ("zero_variance", ":")):
        _curve(below, rows, name, style)
    below.set(ylabel="tier of tasks tried", xlabel="step")
    if below.lines:
        below.legend(loc="best", frameon=False)
    figure.suptitle(title)
    temporary = path.with_name(f".{path.name}")
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(temporary, format=path.suffix.lstrip("."), metadata=metadata)
    temporary.replace(path)
    return True


def _curve(axes: Any, rows: Sequence[dict[str, float]], name: str, style: str) -> None:
    points = [(row["step"], row[name]) for row in rows if name in row]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, style, label=name, marker="." if len(points) < 30 else None)
