"""Code as the scan rules of its language read it: without comments, and the parameters of a signature."""

from __future__ import annotations

import re

from excise.extractors.languages import scan_rules_of
from excise.protocols import ScanRules
from excise.types import Symbol


def without_comments(code: bytes, rules: ScanRules) -> bytes:
    """The code without comments; strings stay."""
    return re.sub(rules.literals, lambda found: b" " if found[0].startswith(rules.comments) else found[0], code)


def parameters_of(symbol: Symbol) -> list[str]:
    """Names of a function's parameters, read from its signature."""
    if not symbol.is_callable:
        return []
    rules = scan_rules_of(symbol.path)
    before = rules.before_name
    signature = re.sub(before, "", symbol.signature) if before else symbol.signature
    opened = signature.partition("(")[2]
    depth, top = 1, []
    for letter in opened:
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            break
        top.append(letter if depth == 1 else " " if letter in ")]}" else "")
    parts = "".join(top).split(",")
    return [found[1] for part in parts if (found := re.match(rules.parameter, part))]
