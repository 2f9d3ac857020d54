"""Syntax highlighting with Pygments, as HTML lines with class names and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from excise.datasets.visible_text import visible

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHTED = 200_000
"""Characters of one text that are highlighted; longer ones are shown plain."""
_VALUE_FOLLOWS = re.compile(r"([=(\[{,:+%]|\breturn|\bin|\b[rRbBuUfF]{1,2})\s*$")
MAX_LINE = 2_000
"""Characters of one line that are shown."""


def highlighted_lines(lines: Sequence[str], file_name: str) -> list[Markup]:
    """Each line as HTML, highlighted as the language that the file's name tells."""
    shown = [
        visible(line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}… ({len(line):,} characters)") for line in lines
    ]
    lexer = lexer_for(file_name)
    text = "\n".join(shown)
    if lexer is None or len(text) > MAX_HIGHLIGHTED:
        return [escape(line) for line in shown]
    inside = next((quotes for quotes in ('"""', "'''") if begins_inside(text, quotes)), "")
    lines = _lines_of(list(lexer.get_tokens(f"{inside}\n{text}" if inside else text)))[bool(inside) :]
    return (lines + [Markup("")] * len(shown))[: len(shown)]


def begins_inside(text: str, quotes: str) -> bool:
    """Whether a part of a file seems to begin inside a string that such quotes end.

    They end one where they stand after text on their line, or alone on it and not after a line that calls for a value.
    """
    if text.count(quotes) % 2 == 0:
        return False
    before, _, after = text.partition(quotes)
    above, _, same_line = before.rpartition("\n")
    if same_line.strip():
        return _VALUE_FOLLOWS.search(same_line) is None
    last = above.rstrip()[-1:]
    return bool(last) and last not in ":=([{," and not after.partition("\n")[0].strip()


def _lines_of(tokens: Sequence[tuple[object, str]]) -> list[Markup]:
    """Tokens as lines of HTML."""
    made: list[list[str]] = [[]]
    for kind, value in tokens:
        name = _css_class(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                made.append([])
            if part:
                text = str(escape(part))
                made[-1].append(f'<span class="{name}">{text}</span>' if name else text)
    return [Markup("".join(parts)) for parts in made]


def _cut(line: str) -> str:
    return f"{line[:MAX_LINE]}… ({len(line):,} characters)"


def code_block(text: str, language: str) -> Markup:
    """A block of code, in a language or with a file's name."""
    lines = highlighted_lines(text.rstrip("\n").split("\n"), language if "." in language else f"x.{language or 'txt'}")
    return Markup('<pre class="code"><code>{}</code></pre>').format(Markup("\n").join(lines))


@lru_cache(maxsize=256)
def lexer_for(file_name: str) -> Lexer | None:
    """The lexer for a file of this name; ``None`` if there is none."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    name = file_name.rpartition("/")[2]
    aliases = {"x.python": "x.py", "x.pycon": "x.py", "x.shell": "x.sh", "x.bash": "x.sh", "x.text": "x.txt"}
    try:
        lexer = get_lexer_for_filename(aliases.get(name, name), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return None if lexer.name == "Text only" else lexer


_CLASSES = {
    "Keyword": "k", "Comment": "c", "String": "s", "Number": "m", "Operator.Word": "k", "Name.Function": "nf",
    "Name.Class": "nf", "Name.Decorator": "nd", "Name.Builtin": "nb", "Name.Exception": "nb", "Name.Tag": "k",
    "Generic.Deleted": "gd", "Generic.Inserted": "gi", "Generic.Subheading": "c",
}  # fmt: skip


@lru_cache(maxsize=1024)
def _css_class(kind: object) -> str:
    """Our class for a kind of token; few, so that colours stay calm."""
    path = str(kind).removeprefix("Token.").replace("Literal.", "").split(".")
    for length in range(len(path), 0, -1):
        if name := _CLASSES.get(".".join(path[:length])):
            return name
    return ""
