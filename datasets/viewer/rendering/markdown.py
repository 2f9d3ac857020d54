"""Statements as HTML: Markdown without raw HTML, links and images, which hostile projects could use."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from excise.datasets.viewer.rendering.highlighting import code_block
from excise.datasets.visible_text import shortened, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_MARKDOWN = 200_000
"""Characters of a text that are rendered; of longer ones the beginning is shown plain."""

_DEEP = re.compile(r"^[ \t]*(?:[>*+-][ \t]*){20}|^[ \t]{150}", re.MULTILINE)
"""Lines that would nest deeper than the renderer goes, which drops what is below: such texts are shown as they are."""


def markdown_html(text: str) -> Markup:
    """``text`` as HTML. Links and images stay as they are written; headings begin at level 3."""
    if len(text) > MAX_MARKDOWN or _DEEP.search(text):
        return Markup("<pre>{}</pre>").format(shortened(visible(text), MAX_MARKDOWN))
    try:
        return Markup(_renderer().render(visible(text)))
    except (RecursionError, ValueError):  # nested too deeply
        return Markup("<pre>{}</pre>").format(visible(text))


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable("table")
    renderer.disable(["link", "image", "autolink", "reference", "html_inline", "html_block"])
    renderer.add_render_rule("fence", _fence)
    renderer.add_render_rule("heading_open", _heading)
    renderer.add_render_rule("heading_close", _heading)
    for name in ("th_open", "td_open"):
        renderer.add_render_rule(name, _cell)
    return renderer


def _fence(_self: Any, tokens: Any, index: int, _options: Any, _env: Any) -> str:
    words = tokens[index].info.split()
    return code_block(tokens[index].content, words[0] if words else "")


def _heading(_self: Any, tokens: Any, index: int, _options: Any, _env: Any) -> str:
    level = min(6, int(tokens[index].tag[1:]) + 2)
    return f"<h{level}>" if tokens[index].nesting > 0 else f"</h{level}>\n"


def _cell(_self: Any, tokens: Any, index: int, _options: Any, _env: Any) -> str:
    """Without the ``style`` attribute of aligned columns, which the page's policy forbids."""
    return f"<{escape(tokens[index].tag)}>"
