"""Curves and bars as SVG made on the server: they need no JavaScript, and take their colours from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from excise.datasets.visible_text import visible

WIDTH, HEIGHT = 480, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 20
_MAX_POINTS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve."""

    name: str
    """Name in the legend."""
    points: tuple[tuple[float, float], ...]
    """(x, y), in order of x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What the axes of a chart say, and how its curves run."""

    x_name: str = "step"
    """What x counts."""
    x_ticks: tuple[tuple[float, str], ...] = ()
    """Places on the axis of x with their labels; by default its ends."""
    y_high: float | None = None
    """Upper end of the axis of y; by default a round value above all curves."""
    is_stepped: bool = False
    """Whether a value holds until the next point, so that curves run in steps."""


def line_chart(series: Sequence[Series], *, label: str, axes: Axes | None = None) -> Markup:
    """A chart of curves, over steps unless ``axes`` say otherwise. Empty without finite points.

    A curve without points is not drawn, and keeps its colour.
    """
    axes = axes or Axes()
    curves = [
        (s.name, _thinned([(x, y) for x, y in s.points if math.isfinite(x) and math.isfinite(y)])) for s in series
    ]
    points = [point for _, curve in curves for point in curve]
    if not points:
        return Markup("")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_low, x_high = min([*xs, *(x for x, _ in axes.x_ticks)]), max([*xs, *(x for x, _ in axes.x_ticks)])
    ticks = nice_ticks(min(0.0, *ys) if min(ys) >= 0 else min(ys), max(ys) if axes.y_high is None else axes.y_high)
    y_low, y_high = ticks[0], ticks[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        up = (y - y_low) / (y_high - y_low) if y_high > y_low else 0.5
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)

    parts = [_grid(at, ticks, axes.x_ticks or ((x_low, number_text(x_low)), (x_high, number_text(x_high))))]
    for number, (name, curve) in enumerate(curves):
        if curve:
            parts.append(_curve(name, [(x, y, *at(x, y)) for x, y in curve], number, axes))
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, visible(label), Markup("").join(parts)
    )


def _grid(at: object, ticks: Sequence[float], x_ticks: Sequence[tuple[float, str]]) -> Markup:
    assert callable(at)
    parts = []
    for tick in ticks:
        _, y = at(x_ticks[0][0], tick)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="y" x="{}" y="{:.1f}">{}</text>'
            ).format(_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 3.5, number_text(tick))
        )
    for number, (tick, text) in enumerate(x_ticks):
        anchor = "start" if not number else "end" if number == len(x_ticks) - 1 else "middle"
        x, _ = at(tick, ticks[0])
        parts.append(
            Markup('<text class="x" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(x, HEIGHT - 5, anchor, text)
        )
    return Markup("").join(parts)


def _curve(name: str, placed: Sequence[tuple[float, float, float, float]], number: int, axes: Axes) -> Markup:
    further = "H{:.1f}V{:.1f}" if axes.is_stepped else "L{:.1f} {:.1f}"
    path = " ".join((further if n else "M{:.1f} {:.1f}").format(x, y) for n, (_, _, x, y) in enumerate(placed))
    color, label = f"s{number % 6}", escape(visible(name))
    radius = 2.2 if len(placed) <= 60 else 1.1
    dots = (
        f'<circle class="dot {color}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
        f"<title>{label}, {escape(axes.x_name)} {number_text(at)}: {number_text(value)}</title></circle>"
        for at, value, x, y in placed
    )
    return Markup(f'<path class="line {color}" d="{path}"/>') + Markup("".join(dots))


def bar(share: float | None, *, kind: str = "") -> Markup:
    """A horizontal bar for a share between 0 and 1."""
    width = 100 * min(1.0, max(0.0, share or 0.0))
    return Markup(
        '<svg class="bar {}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="6"/><rect class="fill" width="{:.2f}" height="6"/></svg>'
    ).format(kind, width)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most :data:`_MAX_POINTS` points: means of neighbours."""
    if len(points) <= _MAX_POINTS:
        return points
    size = math.ceil(len(points) / _MAX_POINTS)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], math.fsum(y for _, y in group) / len(group)) for group in groups]


def nice_ticks(low: float, high: float, count: int = 3) -> list[float]:
    """Round values that enclose ``low`` and ``high``, about ``count`` intervals apart."""
    if high <= low:
        low, high = (low - 1, low + 1) if low < 0 else (0.0, low or 1.0)
    raw = (high - low) / count
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(s * magnitude for s in (1, 2, 2.5, 5, 10) if s * magnitude >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def number_text(value: float) -> str:
    """A number for people: at most four digits, thousands as k and millions as M."""
    if not math.isfinite(value):
        return str(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"
