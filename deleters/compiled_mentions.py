"""Comments and documents of a project in a compiled language lose what they say of removed definitions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from excise.deleters.compiled_edits import CompiledEdits
from excise.deleters.deletion_record import Changed
from excise.deleters.documents.lost_names import LeftSources, LostName, WithoutNames, without_lost_names
from excise.deleters.function_shortcuts import MAX_CALL, arguments_of
from excise.deleters.statement.project_docs import is_document
from excise.deleters.statement.spelling import unnumbered
from excise.extractors.compiled_codebase import CompiledCodebase, Definition, DefinitionKind
from excise.types import Symbol

_WELL_KNOWN = frozenset(
    (
        "Add", "Close", "Equal", "Error", "Format", "Get", "Is", "As", "Len", "Less", "Marshal", "MarshalJSON",
        "MarshalText", "New", "Next", "Parse", "Read", "Reset", "Scan", "Set", "String", "Swap", "Unmarshal",
        "UnmarshalJSON", "UnmarshalText", "Unwrap", "Value", "Write", "as_bytes", "as_mut", "as_ref", "as_slice",
        "as_str", "compareTo", "from_iter", "from_str", "getName", "hashCode", "into_iter", "is_empty", "isEmpty",
        "next_back", "partial_cmp", "size_hint", "to_owned", "to_string", "to_vec", "toString", "try_from", "try_into",
        "valueOf", "with_capacity",
    )
)  # fmt: skip
"""Names of the standard libraries of Go, Java and Rust: text may mean these."""
_WORD = re.compile(r"[a-z]+$")
"""A name that is an ordinary word."""

_OF_TYPE = re.compile(r"<[^<>]*>")
"""Arguments of a type."""
_HEAD = re.compile(rb"\b(?:extends|implements)\b[^{]*")
"""The types from which another one inherits."""
MAX_ARGUMENTS = 99
"""A number that no function takes of arguments."""


def without_mentions(
    edits: CompiledEdits[Any], codebase: CompiledCodebase[Any], gone: Sequence[Definition], changed: Changed
) -> WithoutNames:
    """The files that a removal of definitions changes, and documents, without text that names these.

    ``changed`` are the sources that its edits change.
    """
    left = {path: changed.get(path, (b"", module.source))[1] for path, module in codebase.modules.items()}
    sources = {
        path: data
        for path, data in left.items()
        if data is not None and not codebase.is_test(path) and not codebase.is_vendored(path)
    }
    others = codebase.others
    quoted = (path for path in sorted(others.paths) if is_document(path) and not codebase.is_vendored(path))
    documents = {path: others.read(path) for path in quoted}
    keys = frozenset(each.key for each in gone)
    lost = [name for each in gone for name in _names(codebase, each, keys)]
    left_sources = LeftSources(sources, edits.parse_tree, documents_by_lines=edits.documents_by_lines)
    found = without_lost_names(left_sources, lost, documents, changed)
    now = {path: after for path, (_, after) in found.changed.items()}
    texts = {path: now.get(path, data) or b"" for path, data in documents.items()}
    loose = [*_calls_of_overloads(texts, _lost_numbers(codebase, gone))]
    for path in sorted({each.path for each in gone} & sources.keys()):
        lost_here = _lost_numbers(codebase, gone, path)
        comments = left_sources.comments(now.get(path, sources[path]) or b"") if lost_here else ()
        loose += _calls_of_overloads({path: b"\n".join(each.text or b"" for each in comments)}, lost_here)
    return found._replace(loose=(*found.loose, *loose))


def _names(codebase: CompiledCodebase[Any], definition: Definition, gone: frozenset[str]) -> Iterator[LostName]:
    """The names of a definition that nothing else beside it has."""
    if definition.kind is DefinitionKind.PART:
        return
    beside = [
        each
        for each in codebase.modules[definition.path].definitions
        if each.holder == definition.holder and each.about == definition.about and each.key not in gone
    ]
    holder = _simple(definition.holder)
    own_type = unnumbered(definition.qualname.rpartition(".")[0].rpartition(".")[2])
    is_member = bool(definition.holder or definition.about)
    packages = codebase.qualifiers_of(definition.path)
    owners = {holder, own_type, *definition.about} if is_member else packages
    for name in sorted(definition.names - packages):  # text means the package
        if not any(name in each.names for each in beside):
            yield LostName(
                name=name,
                owners=frozenset(owner for owner in owners if re.fullmatch(r"\w+", owner)),
                is_member=is_member,
                is_common=name in _WELL_KNOWN,
                is_word=_WORD.match(name) is not None,
            )


def _lost_numbers(
    codebase: CompiledCodebase[Any], gone: Sequence[Definition], path: str = ""
) -> Mapping[str, frozenset[int]]:
    """Names of functions of which overloads stay, to numbers of arguments that no function of the name takes now.

    With a ``path``, only functions of that file count, and what its types inherit.
    """
    keys, symbols = {each.key for each in gone}, codebase.symbols()
    heads = b" ".join(_HEAD.findall(codebase.modules[path].source)) if path else b""
    inherited = set(re.findall(r"\w+", heads.decode("utf-8", "replace")))
    names = {name for each in gone if each.kind is DefinitionKind.FUNCTION for name in each.names}
    staying = [each for each in codebase.definitions() if each.key not in keys and each.names & names]
    overloaded = {(each.path, each.holder, name) for each in staying for name in each.names}
    lost: dict[str, set[int]] = defaultdict(set)
    for each in (each for each in gone if each.key in symbols and path in {"", each.path}):
        for name in each.names:
            if (each.path, each.holder, name) in overloaded and not each.about:
                lost[name].update(_numbers(symbols[each.key]))
    left: dict[str, set[int]] = defaultdict(set)
    for each in staying:
        is_other = path not in {"", each.path} and _simple(each.holder) not in inherited
        for name in each.names if not is_other else ():
            left[name].update(_numbers(symbols[each.key]) if each.key in symbols else range(MAX_ARGUMENTS))
    return {name: frozenset(lost[name] - numbers) for name, numbers in left.items() if lost[name] - numbers}


def _simple(qualname: str) -> str:
    """The last part of a qualified name, without a number."""
    return unnumbered(qualname.rpartition(".")[2])


def _numbers(function: Symbol) -> range:
    """The numbers of arguments that a function takes."""
    _, _, parameters = function.signature.partition(f"{unnumbered(function.name)}(")
    while (plain := _OF_TYPE.sub("", parameters)) != parameters:
        parameters = plain
    listed = arguments_of(parameters)
    return range(len(listed) - 1, MAX_ARGUMENTS) if "..." in parameters else range(len(listed), len(listed) + 1)


def _calls_of_overloads(texts: Mapping[str, bytes], lost: Mapping[str, frozenset[int]]) -> Iterator[tuple[str, str]]:
    """(path, text) of what documentation and documents say of overloads that are gone: calls behind an object."""
    if not lost:
        return
    called = re.compile(rf"\w\.({'|'.join(map(re.escape, sorted(lost)))})\(")
    for path, data in sorted(texts.items()):
        text = data.decode("utf-8", "replace")
        for found in called.finditer(text):
            listed = arguments_of(text[found.end() : found.end() + MAX_CALL])
            if listed and len(listed) in lost[found[1]] and not any("..." in each for each in listed):
                yield path, f"an example calls it: .{found[1]}({', '.join(listed)})"
