"""Jinja2 with escaping of everything, and with invisible characters made visible in everything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from excise.datasets.viewer.rendering.charts import bar, number_text
from excise.datasets.viewer.rendering.highlighting import code_block
from excise.datasets.viewer.rendering.markdown import markdown_html
from excise.datasets.visible_text import shortened, visible

UNKNOWN = "\N{EN DASH}"
"""What is shown in place of an unknown value."""
FOLDER = Path(__file__).parents[1] / "templates"
"""Folder of the templates."""


def render(name: str, context: Mapping[str, Any]) -> str:
    """The page that a template makes."""
    return _environment().get_template(name).render(context)


def warm_up() -> None:
    """Load templates and libraries, so that the first page is as fast as the others."""
    environment = _environment()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
    markdown_html("# a\n\n```python\na = 1\n```\n")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": count,
        "seconds": seconds,
        "percent": percent,
        "number": lambda value: UNKNOWN if value is None else number_text(float(value)),
        "markdown": markdown_html,
        "code": code_block,
        "short": shortened,
        "plural": lambda number, noun: f"{count(number)} {noun}{'' if number == 1 else 's'}",
        "when": lambda text: str(text or "")[:19].replace("T", " "),
        "json_text": lambda value: json.dumps(value, ensure_ascii=False, default=str),
    }
    environment.globals |= {"bar": bar}
    return environment


def _finalize(value: Any) -> Any:
    """What an expression of a template gives, before it is escaped."""
    if value is None:
        return UNKNOWN
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


def count(value: float | None) -> str:
    """A number with separators between thousands."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """A duration for people."""
    if value is None:
        return UNKNOWN
    if value < 100:
        return f"{value:.1f} s" if value >= 0.95 else f"{value:.2f} s"
    if value < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:,.1f} h"


def percent(value: float | None, whole: float | Sequence[float] | None = 1.0) -> str:
    """A share as a percentage; a dash if nothing is known."""
    if value is None or not whole or isinstance(whole, Sequence):
        return UNKNOWN
    share = 100 * value / whole
    return f"{share:.0f} %" if share >= 10 or share == 0 else f"{share:.1f} %"
