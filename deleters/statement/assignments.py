"""Removed names that are bound by assignments: which a statement shows, and how."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from excise.deleters.statement.descriptions import assignment_docstring, quoted
from excise.deleters.statement.offered_names import STRING
from excise.protocols import Codebase, Module, StatementWords
from excise.types import Deletion, Symbol, SymbolKind, Visibility, joined

MAX_ASSIGNMENT = 2000
"""Maximum number of characters of an assignment that a statement shows."""
_COMPUTED = re.compile(r"\b(?:lambda|for|if|await|yield)\b")
"""What makes an assignment more than data: a statement does not show such code."""


def assigned_names(
    codebase: Codebase, deletion: Deletion, shown: Sequence[Symbol], words: StatementWords
) -> dict[str, str]:
    """Ids of removed names that are bound by assignments, to the statements.

    Of what went with a whole file or class, those which a signature names, and the public ones of a file.
    """
    symbols = codebase.symbols()
    gone = set(deletion.removed)
    found = {name: text for name, text in deletion.text if name in gone and name not in symbols}
    named = {word for symbol in shown for word in re.findall(r"\w+", symbol.signature)}
    for holder in (symbol for symbol in shown if symbol.symbol_id in gone and not symbol.is_callable):
        is_file = holder.kind is SymbolKind.MODULE
        for name, text in words.assignments(codebase.modules[holder.path], holder).items():
            is_public = is_file and "." not in name and not name.startswith("_")
            if is_public or name.rpartition(".")[2] in named:
                found.setdefault(joined(holder.path, name), text)
    return found


def assignments(texts: Mapping[str, str], module: Module, visibility: Visibility, fence: str) -> Iterable[str]:
    """The entries of names that assignments bind, by their class and their docstring: the statements that are data."""
    entries: dict[tuple[str, str], list[str]] = defaultdict(list)
    source = module.source.decode(errors="replace")
    for name, text in sorted(texts.items(), key=lambda item: source.find(item[1])):
        docstring = assignment_docstring(source, text)
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


def is_plain_data(text: str) -> bool:
    """Whether an assignment binds literals, names and calls, which nobody could guess, and no code of its own."""
    return len(text) <= MAX_ASSIGNMENT and "```" not in text and not _COMPUTED.search(STRING.sub("", text))
