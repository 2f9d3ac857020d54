"""Names of removed definitions, and whether code that stays has them."""

from __future__ import annotations

import re

from excise.deleters.deletion_record import Changed
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.types import Symbol


def qualified_name(symbol: Symbol) -> list[str]:
    """The parts of the name of a definition, without the numbers that tell those of the same name apart."""
    return [part.partition("#")[0] for part in symbol.qualname.split(".")]


def is_left(codebase: JavaScriptCodebase, name: str, sources: Changed) -> bool:
    """Whether code that stays, and is no test, has a name; ``sources`` are the files that the removal changes."""
    word = re.compile(rb"(?<![\w$])%s(?![\w$])" % re.escape(name.encode()))
    for path, module in codebase.modules.items():
        left = sources[path][1] if path in sources else module.source
        if not codebase.is_test(path) and left is not None and word.search(left):
            return True
    return False
