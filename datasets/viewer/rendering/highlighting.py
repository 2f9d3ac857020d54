"""Syntax highlighting with Pygments, as HTML lines with class names and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from excise.datasets.viewer.text import visible

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHTED = 200_000
"""Characters of one text that are highlighted; longer ones are shown plain."""
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
    tokens = list(lexer.get_tokens(text))
    for quotes in ('"""', "'''"):
        if text.count(quotes) % 2:  # a part of a file, which may begin inside of a string
            begun = list(lexer.get_tokens(f"{quotes}\n{text}"))
            if _string_length(begun) < _string_length(tokens):
                return _lines_of(begun)[1 : len(shown) + 1]
    return (_lines_of(tokens) + [Markup("")] * len(shown))[: len(shown)]


def _string_length(tokens: Sequence[tuple[object, str]]) -> int:
    return sum(len(value) for kind, value in tokens if _css_class(kind) == "s")


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
