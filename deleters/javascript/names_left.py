"""Names of removed definitions, and whether code that stays has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.types import Symbol

_COMMENT = re.compile(rb"/\*[\s\S]*?\*/|^[ \t]*//[^\n]*", re.MULTILINE)


def qualified_name(symbol: Symbol) -> list[str]:
    """The parts of the name of a definition, without the numbers that tell those of the same name apart."""
    return [part.partition("#")[0] for part in symbol.qualname.split(".")]


def without_properties(source: bytes, names: Iterable[str]) -> bytes:
    """A file without the lines ``* @property {function} name - …`` of comments for names that its code has no more."""
    code = _COMMENT.sub(b"", source)
    for name in map(str.encode, names):
        own = rb"(?<![\w$])%s(?![\w$])" % re.escape(name)
        if name in source and not re.search(own, code):
            line = rb"(?m)^[ \t]*\*[ \t]*@prop(?:erty)?[ \t]+(?:\{[^{}\n]{0,200}\}[ \t]+)?\[?%s[^\n]*\n" % own
            source = re.sub(line, b"", source)
    return source


def is_left(codebase: JavaScriptCodebase, name: str, sources: Changed) -> bool:
    """Whether code that stays, and is no test, has a name outside of comments.

    ``sources`` are the files that the removal changes.
    """
    word = re.compile(rb"(?<![\w$])%s(?![\w$])" % re.escape(name.encode()))
    for path, module in codebase.modules.items():
        left = sources[path][1] if path in sources else module.source
        if codebase.is_test(path) or left is None or not word.search(left):
            continue
        if word.search(_COMMENT.sub(b"", left)):
            return True
    return False
