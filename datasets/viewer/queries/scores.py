"""Scores of the runs of ``excise solve``: pass@k, and the share solved within each amount of tokens, cost and time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from excise.datasets.queries.scores import CURVE_POINTS, KS
from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.queries.filters import Where, choices_of
from excise.datasets.viewer.rendering.charts import Axes, Series

MAX_CURVES = 6
"""Runs whose curves are drawn: as many as there are colours."""
FILTERS = {"agent": "agent", "model": "model", "style": "style", "run": "run"}
"""Names of filters to columns."""
KINDS = {
    "tokens": ("Solved within completion tokens", "tokens"),
    "cost": ("Solved within cost", "cost"),
    "seconds": ("Solved within seconds", "seconds"),
}
"""Kind of an amount to the title of its chart, and the name of its axis."""
_RUNS = """
SELECT run, any_value(agent) AS agent, any_value(model) AS model, any_value(style) AS style,
       count(DISTINCT instance_id) AS tasks, count(*) AS attempts, count(*) FILTER (solved) AS solved,
       avg(completion_tokens) AS tokens, avg(cost) AS cost, avg(wall_s) AS wall_s
FROM attempts{where} GROUP BY run
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScores:
    """The scores of one run."""

    run: Row
    """Name, agent, model, style, numbers of tasks and attempts, mean tokens, cost and seconds."""
    pass_at: dict[int, Row] = field(default_factory=dict)
    """k to ``pass_at_k``, its ``standard_error``, and the number of tasks."""
    effort: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Kind of an amount to its curve: (amount, share of attempts that solve their task within it, mean over tasks)."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.run["run"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChart:
    """One chart of the picture."""

    title: str
    """Its title."""
    axes: Axes
    """What its axes say."""
    series: list[Series]
    """A curve for each run that is drawn, in the same order in all charts; without points if the run has no such
    amounts."""


def scores(index: LoadedSet, wanted: Mapping[str, str]) -> list[RunScores]:
    """The scores of the runs that an address asks for, the best first."""
    where = Where()
    where.equals(wanted, FILTERS)
    runs = index.rows(_RUNS.format(where=where.sql), where.values)
    names = [str(row["run"]) for row in runs]
    pass_at: dict[str, dict[int, Row]] = {}
    for row in index.rows("SELECT * FROM pass_at_k WHERE list_contains(?, run)", [names]):
        pass_at.setdefault(str(row["run"]), {})[int(row["k"])] = row
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    sql = "SELECT run, kind, amount, score FROM effort WHERE list_contains(?, run) ORDER BY run, kind, amount"
    for row in index.rows(sql, [names]):
        by_kind = curves.setdefault(str(row["run"]), {})
        by_kind.setdefault(str(row["kind"]), []).append((float(row["amount"]), float(row["score"])))
    found = [
        RunScores(
            run=row,
            pass_at=pass_at.get(str(row["run"]), {}),
            effort={kind: _thinned(points) for kind, points in curves.get(str(row["run"]), {}).items()},
        )
        for row in runs
    ]
    return sorted(found, key=lambda one: (-_pass_at_1(one), one.name))


def _pass_at_1(one: RunScores) -> float:
    return float(one.pass_at[1]["pass_at_k"]) if 1 in one.pass_at else 0.0


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about :data:`excise.datasets.queries.scores.CURVE_POINTS` points, among them the last."""
    step = max(1, math.ceil(len(points) / CURVE_POINTS))
    kept = list(points[::step])
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]


def charts(found: Sequence[RunScores]) -> list[ScoreChart]:
    """The charts of the first :data:`MAX_CURVES` runs; those without a value are left out."""
    shown = found[:MAX_CURVES]
    ticks = tuple((math.log2(k), str(k)) for k in KS)
    by_k = [
        Series(
            name=one.name,
            points=tuple((math.log2(k), float(row["pass_at_k"])) for k, row in sorted(one.pass_at.items())),
        )
        for one in shown
    ]
    made = [ScoreChart(title="pass@k by k", axes=Axes(x_name="log2 k", x_ticks=ticks, y_high=1.0), series=by_k)]
    for kind, (title, unit) in KINDS.items():
        series = [Series(name=one.name, points=tuple(one.effort.get(kind, ()))) for one in shown]
        made.append(ScoreChart(title=title, axes=Axes(x_name=unit, y_high=1.0, is_stepped=True), series=series))
    return [chart for chart in made if any(series.points for series in chart.series)]


def choices(index: LoadedSet) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first."""
    return choices_of(index, "attempts", FILTERS)
