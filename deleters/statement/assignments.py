"""Removed names that are bound by assignments: which a statement shows, and how."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from excise.deleters.statement.descriptions import assignment_docstring, quoted
from excise.deleters.statement.offered_names import STRING
from excise.protocols import Codebase, Module, StatementWords
from excise.types import Deletion, Symbol, Visibility, joined

MAX_ASSIGNMENT = 2000
"""Maximum number of characters of an assignment that a statement shows."""
MAX_ASSIGNMENTS = 60
"""Maximum number of them of one file or class."""
_COMPUTED = re.compile(r"\b(?:lambda|for|if|await|yield)\b")
"""What makes an assignment more than data: a statement does not show such code."""


def assigned_names(
    codebase: Codebase, deletion: Deletion, shown: Sequence[Symbol], words: StatementWords
) -> dict[str, str]:
    """Ids of removed names that are bound by assignments, to the statements.

    Of what went with a whole file or class, public ones and those which a signature names: at most
    :data:`MAX_ASSIGNMENTS`.
    """
    symbols = codebase.symbols()
    gone = set(deletion.removed)
    found = {name: text for name, text in deletion.text if name in gone and name not in symbols}
    named = {word for symbol in shown for word in _used_in(symbol.signature)}
    for holder in (symbol for symbol in shown if symbol.symbol_id in gone and not symbol.is_callable):
        own = words.assignments(codebase.modules[holder.path], holder)
        inside = holder.qualname.count(".") + 1 if holder.qualname else 0
        public = {n: text for n, text in own.items() if not any(p.startswith("_") for p in n.split(".")[inside:])}
        wanted = {n: text for n, text in own.items() if n.rpartition(".")[2] in named} | public
        for name, text in list(wanted.items())[:MAX_ASSIGNMENTS]:
            found.setdefault(joined(holder.path, name), text)
    return found


def _used_in(signature: str) -> set[str]:
    """The names in defaults and annotations of a signature; not those of its parameters."""
    defaults = set(re.findall(r"=\s*([A-Za-z_][\w.]*)", signature))
    parameters = set(re.findall(r"[(,]\s*\*{0,2}(\w+)", signature))
    return {name.rpartition(".")[2] for name in defaults} | set(re.findall(r"\w+", signature)) - parameters


def assignments(texts: Mapping[str, str], module: Module, visibility: Visibility, fence: str) -> Iterable[str]:
    """The entries of names that assignments bind, by their class and their docstring: the statements that are data."""
    entries: dict[tuple[str, str], list[str]] = defaultdict(list)
    sources = {name: _source_around(module, name) for name in texts}
    for name, text in sorted(texts.items(), key=lambda item: _position(sources[item[0]], item[1])):
        docstring = assignment_docstring(sources[name][1], text)
        quote = "" if visibility is Visibility.SIGNATURE else quoted(docstring)
        if visibility is not Visibility.BEHAVIOUR and is_plain_data(text):
            first, *rest = text.split("\n", 1)
            shown = "\n".join([first, *map(textwrap.dedent, rest)])
            entries[name.rpartition(".")[0], quote].append(shown)
        else:
            yield f"\nthe name `{name}`{quote}"
    for (owner, quote), statements in entries.items():
        block = "\n".join(dict.fromkeys(statements))
        yield f"\n```{fence}\n{block}\n```" + (f"\n(in `{owner}`)" if owner else "") + quote


def _source_around(module: Module, name: str) -> tuple[int, str]:
    """Where the class around a name begins, and its source; of other names those of the file."""
    owner = name.rpartition(".")[0]
    around = next((s for s in module.symbols if owner and s.qualname == owner), None)
    start, end = (around.start, around.end) if around is not None else (0, len(module.source))
    return start, module.source[start:end].decode(errors="replace")


def _position(around: tuple[int, str], assignment: str) -> tuple[int, int]:
    """Where in the source around it a line begins with an assignment: (beginning of the source, place in it)."""
    start, source = around
    found = re.search(rf"(?m)^[ \t]*{re.escape(assignment.partition(chr(10))[0])}", source)
    return start, found.start() if found is not None else -1


def is_plain_data(text: str) -> bool:
    """Whether an assignment binds literals, names and calls, which nobody could guess, and no code of its own."""
    return len(text) <= MAX_ASSIGNMENT and "```" not in text and not _COMPUTED.search(STRING.sub("", text))
