"""Functions that stay and say what removed ones did, but for a word of their names.

A wrapper of one call is too short to be found by itself. Where all that was removed are such wrappers, and each has a
function beside it that is the same with the name changed, no file hides what to write:
``to_title_case`` is ``AsTitleCase(self).to_string()`` as ``to_snake_case`` is ``AsSnakeCase(self).to_string()``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from excise.envs.sandbox.mount_points import REPO
from excise.extractors.features.feature_names import words_of
from excise.protocols import Codebase
from excise.types import Symbol
from excise.verifiers.leaks.scan import WHOLE_DELETION, Leak, Level

_CALL = re.compile(r"(?:return\s+)?&?[\w.:$]+\s*\([^(){};=]*\)(?:\s*\.\s*\w+\s*\([^(){};=]*\))*\s*;?")
"""One call, or some in a row, and nothing else."""
_WORD = re.compile(r"[^\W\d]\w*")
_CALLED = re.compile(r"(\w+)\s*\([^()]*\)\s*;?$")
"""The function that is called last."""


def renamed_twins(codebase: Codebase, removed: Sequence[str], edits: Mapping[str, bytes | None]) -> list[Leak]:
    """The functions that stay and give all ``removed`` ones (ids of symbols) away; none if some stay unknown.

    ``edits`` maps the paths of changed files to their shipped contents. At least one function must have its twin; any
    other may be another name of a removed one, as a function that stays is of its own.
    """
    symbols = codebase.symbols()
    gone = [symbols[each] for each in removed if each in symbols]
    calls = {each.symbol_id: _call_of(codebase, each) for each in gone if each.is_callable}
    if not gone or len(calls) < len(removed) or not all(calls.values()):
        return []
    kept = {each: call for each in _kept(codebase, calls, edits) if (call := _call_of(codebase, each))}
    twins = {each: _twin(each, calls[each.symbol_id], kept) for each in gone}
    names, shapes = {_plain_name(each) for each in gone}, {_shape(call) for call in kept.values()}
    for function, twin in twins.items():
        call = calls[function.symbol_id]
        called = _CALLED.search(call)
        if twin is None and (called is None or called[1] not in names or _shape(call) not in shapes):
            return []
    files = sorted({twin.path for twin in twins.values() if twin is not None})
    return [Leak(Level.L4, WHOLE_DELETION, f"{REPO}/{path}", 1.0, "calls with names changed") for path in files]


def _kept(codebase: Codebase, gone: Mapping[str, str], edits: Mapping[str, bytes | None]) -> list[Symbol]:
    """The functions of the project, without those of tests, that stand in the shipped files as they are."""
    found: list[Symbol] = []
    for path, module in codebase.modules.items():
        shipped = edits.get(path, module.source)
        if shipped is None or codebase.is_test(path):
            continue
        functions = (each for each in module.symbols if each.is_callable and each.symbol_id not in gone)
        found += [each for each in functions if path not in edits or module.source[each.start : each.end] in shipped]
    return found


def _call_of(codebase: Codebase, function: Symbol) -> str:
    """The body of a function that is one call; else empty."""
    source = codebase.modules[function.path].source[function.code_start : function.end]
    text = source.decode("utf-8", "replace").strip()
    if text.startswith("{") or text.endswith("}"):
        text = text.removeprefix("{").removesuffix("}").strip()
    return text if _CALL.fullmatch(text) else ""


def _twin(function: Symbol, call: str, kept: Mapping[Symbol, str]) -> Symbol | None:
    """The function that stays whose call is the same if what the names do not share is changed in it."""
    own = words_of(_plain_name(function))
    shape = _shape(call)
    for other, text in kept.items():
        if _shape(text) != shape:
            continue
        mine, its = _different(own, words_of(_plain_name(other)))
        normalised = _without(call, mine)
        if mine and its and normalised != _without(call, []) and normalised == _without(text, its):
            return other
    return None


def _different(left: Sequence[str], right: Sequence[str]) -> tuple[list[str], list[str]]:
    """What two lists have between the items that they share at both ends."""
    start = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    rest, other = left[start:], right[start:]
    end = next(
        (n for n, (a, b) in enumerate(zip(reversed(rest), reversed(other), strict=False)) if a != b),
        min(len(rest), len(other)),
    )
    return list(rest[: len(rest) - end]), list(other[: len(other) - end])


def _without(call: str, words: Sequence[str]) -> str:
    """A call, with its names as words in lower case, and a mark in the place of the ``words``."""
    joined = " ".join(words)

    def marked(found: re.Match[str]) -> str:
        text = f" {' '.join(words_of(found[0]))} "
        return "<" + (text.replace(f" {joined} ", " * ") if joined else text).strip() + ">"

    return " ".join(_WORD.sub(marked, call).split())


def _shape(call: str) -> str:
    """A call with one mark for each name."""
    return "".join(_WORD.sub("*", call).split())


def _plain_name(function: Symbol) -> str:
    return function.name.partition("#")[0]
