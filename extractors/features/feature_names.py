"""Names and one-line summaries of features, made from the names and docstrings of their symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from excise.types import Symbol

MAX_SUMMARY = 160
"""Maximum length of a summary."""
MAX_PLACES = 3
"""Maximum number of modules that a name has."""
MAX_WORDS = 3
"""Maximum number of words that a name has beside the place."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_ROOTS = frozenset({"src", "lib", "python"})
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_FILLERS = frozenset(
    {"a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with"}
)


def words_of(name: str) -> list[str]:
    """The words of a name in snake case or camel case, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def name_of(symbols: Sequence[Symbol]) -> str:
    """A name: the qualified name of a single symbol, else the place that all share and the words that most share.

    For example ``interval: parse repeating interval`` or ``LRI: link``.
    """
    if len(symbols) == 1:
        return symbols[0].qualname or _module(symbols[0].path)
    counts = Counter(word for symbol in symbols for word in dict.fromkeys(words_of(symbol.name)))
    place = _place(symbols)
    taken = set(words_of(place))
    common = [word for word, count in counts.most_common() if 2 * count > len(symbols) and word not in taken | _FILLERS]
    return f"{place}: {' '.join(common[:MAX_WORDS])}" if common else place


def summary_of(symbols: Sequence[Symbol]) -> str:
    """The first sentence of the docstring of the longest public symbol that has one; empty if none has."""
    described = [symbol for symbol in symbols if symbol.docstring.strip()]
    if not described:
        return ""
    main = max(described, key=lambda symbol: (symbol.is_public, symbol.loc, symbol.symbol_id))
    paragraph = " ".join(main.docstring.strip().partition("\n\n")[0].split())
    line = _SENTENCE.split(paragraph, maxsplit=1)[0]
    return line if len(line) <= MAX_SUMMARY else f"{line[: MAX_SUMMARY - 1].rstrip()}…"


def _place(symbols: Sequence[Symbol]) -> str:
    """The class that all symbols are in, the modules (the one with most lines first), or the folder of many."""
    lines: Counter[str] = Counter()
    for symbol in symbols:
        lines[symbol.path] += symbol.loc
    paths = [path for path, _ in lines.most_common()]
    if len(paths) > MAX_PLACES:
        folders = [PurePosixPath(path).parent.parts for path in paths]
        shared = [parts[0] for parts in zip(*folders, strict=False) if len(set(parts)) == 1]
        names = [name for name in shared if name not in _ROOTS]
        return names[-1] if names else "several files"
    if len(paths) > 1:
        return ", ".join(dict.fromkeys(map(_module, paths)))
    classes = {symbol.qualname.rpartition(".")[0] for symbol in symbols}
    return classes.pop() if len(classes) == 1 and "" not in classes else _module(paths[0])


def _module(path: str) -> str:
    """The last name of a module: that of the folder for ``__init__``."""
    pure = PurePosixPath(path)
    return pure.parent.name or pure.stem if pure.stem == "__init__" else pure.stem
