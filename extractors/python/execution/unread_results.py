"""Functions whose results nobody reads: each of their calls is a statement of its own."""

from __future__ import annotations

import re

from excise.protocols import Codebase
from excise.types import Symbol

_OF_STATEMENT = re.compile(rb"\s*(?:await\s+)?(?:[\w.]+\.)?")
"""What stands before the name where a call is a statement."""
_OF_OTHERS = re.compile(rb"\s*(?:async\s+)?def\s+|\s*(?:from|import)\s.*")
"""What stands before it in definitions and imports."""
_TOLD = re.compile(r"(?i)\b(?:returns?|returned|yields?|gives?)\b")
"""Words of docstrings that tell of a result."""


def is_unread(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether a function is called, no call of it uses what it returns, and its docstring says nothing of that.

    All modules are searched for its name; a mention that is no call counts as a use.
    """
    if not symbol.is_callable or symbol.name.startswith("__") or _TOLD.search(symbol.docstring):
        return False
    name = symbol.name.partition("#")[0].encode()
    pattern = re.compile(rb"\b" + re.escape(name) + rb"\b")
    calls = 0
    for module in codebase.modules.values():
        for line in module.source.splitlines() if name in module.source else ():
            for match in pattern.finditer(line):
                before, after = line[: match.start()], line[match.end() :].strip()
                if _OF_OTHERS.fullmatch(before):
                    continue
                if not _OF_STATEMENT.fullmatch(before) or not _is_whole_call(after):
                    return False
                calls += 1
    return bool(calls)


def _is_whole_call(after: bytes) -> bool:
    """Whether what follows a name on its line is a call, and nothing behind it, as far as the line goes."""
    return after.startswith(b"(") and re.search(rb"\)\s*[.\[,:=]", after) is None
