"""Code without what its author alone chose: white space, and the names of parameters and local variables.

Declarations are found by the words around them, in all languages alike. A name that is not found stays as it is: then
two bodies that differ by it are not equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from excise.extractors.languages import scan_rules_of
from excise.extractors.scanned_code import parameters_of
from excise.types import Symbol

_NAME = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"
_LIST = rb"((?:\*?" + _NAME + rb"\s*,\s*)*\*?" + _NAME + rb")"
_STATEMENT = re.compile(rb"\b(?:var|let|const)\b((?:[^;\n]|,\s*\n)*)")
"""A declaration by a word of its own."""
_DECLARED = (
    (b":=", re.compile(_LIST + rb"\s*:=")),
    (b"for", re.compile(rb"\bfor\s*\(?\s*" + _LIST + rb"\s*,?\s+(?:in|of)\b")),
    (b"for", re.compile(rb"\bfor\s*\(\s*[\w.<>\[\], ?]+\s+(" + _NAME + rb")\s*:")),
    (b"catch", re.compile(rb"\bcatch\s*\(\s*(?:[\w.| ]+\s+)?(" + _NAME + rb")\s*\)")),
    (b"as", re.compile(rb"\bas\s+(" + _NAME + rb")\s*(?=[:,)])")),
    (b"lambda", re.compile(rb"\blambda\s+" + _LIST + rb"\s*:")),
    (b"=>", re.compile(rb"(" + _NAME + rb")\s*=>")),
    (b">", re.compile(rb"\(\s*" + _LIST + rb"\s*\)\s*(?:=>|->)")),
    (b"function", re.compile(rb"\bfunction\b\s*(?:" + _NAME + rb")?\s*\(\s*" + _LIST + rb"\s*\)")),
    (b"|", re.compile(rb"\|\s*" + _LIST + rb"\s*\|")),
)
"""What stands in code with such a declaration, and the declaration."""
_OF_PYTHON = re.compile(rb"(?m)^[ \t]*" + _LIST + rb"\s*(?::[^=\n]+)?=(?!=)")
_OUTER = re.compile(rb"\b(?:global|nonlocal)\s+" + _LIST)
_OF_JAVA = re.compile(rb"(?m)^\s*(?:final\s+)?[A-Za-z_][\w.<>\[\], ?]*[\w>\]]\s+(" + _NAME + rb")\s*(?:=(?!=)|;)")
_NAMES = re.compile(_NAME)
_DECLARING = frozenset({b"var", b"let", b"const"})
_OPENING, _CLOSING = b"([{", b")]}"


def with_numbered_names(code: bytes, symbol: Symbol) -> bytes:
    """The body of a function, which has no comments, with its parameters and local names numbered.

    Parameters have the first numbers, in their order, and the others follow by where they first stand. Names behind a
    dot stay; ``var``, ``let`` and ``const`` are one word.
    """
    rules = scan_rules_of(symbol.path)
    plain = re.sub(rules.literals, b'""', code)
    parameters = [name.encode() for name in parameters_of(symbol)]
    local = {*parameters, *_local_names(plain, symbol.path)} - rules.keywords - _DECLARING
    numbers = {name: number for number, name in enumerate(dict.fromkeys(parameters))}
    tokens = re.compile(rb"(?P<literal>%s)|(?P<name>%s)|\d[\w.]*|\S" % (_unnamed(rules.literals), _NAME))
    found: list[bytes] = []
    for each in tokens.finditer(code):
        token = each[0]
        if each["name"] is not None and token in local and found[-1:] not in ([b"."], [b"->"]):
            token = b"%%%d" % numbers.setdefault(token, len(numbers))
        found.append(b"var" if token in _DECLARING and each["name"] is not None else token)
    return b" ".join(found)


def _unnamed(literals: bytes) -> bytes:
    """A regular expression that may stand within another one with names of its own."""
    return literals.replace(b"(?P<quote>", b"(?P<_quote>").replace(b"(?P=quote)", b"(?P=_quote)")


def _split(text: bytes) -> Iterator[bytes]:
    """The parts of a list between commas outside of brackets; ends at a bracket that closes one before the text."""
    depth = start = 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth < 0:
            yield text[start:place]
            return
        if letter == ord(",") and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _local_names(plain: bytes, path: str) -> set[bytes]:
    """The names that code without texts and comments declares."""
    found: set[bytes] = set()
    for statement in _STATEMENT.finditer(plain):
        for part in _split(statement[1]):
            target = re.split(rb"=|\b(?:of|in)\b", part, maxsplit=1)[0].strip()
            is_pattern = target.startswith((b"{", b"[", b"("))
            found.update(_NAMES.findall(target if is_pattern else target.partition(b":")[0]))
    patterns = [pattern for mark, pattern in _DECLARED if mark in plain]
    patterns += [_OF_PYTHON] if path.endswith(".py") else [_OF_JAVA] if path.endswith(".java") else []
    found.update(_all(match[1] for pattern in patterns for match in pattern.finditer(plain)))
    return found - {b"mut"} - set(_all(match[1] for match in _OUTER.finditer(plain)))


def _all(lists: Iterable[bytes]) -> Iterator[bytes]:
    """The names in some lists."""
    return (name for each in lists for name in _NAMES.findall(each))
