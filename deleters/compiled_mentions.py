"""Comments and documents of a project in a compiled language lose what they say of removed definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from excise.deleters.compiled_edits import CompiledEdits
from excise.deleters.deletion_record import Changed
from excise.deleters.documents.lost_names import LeftSources, LostName, WithoutNames, without_lost_names
from excise.deleters.statement.project_docs import is_document
from excise.deleters.statement.spelling import unnumbered
from excise.extractors.compiled_codebase import CompiledCodebase, Definition, DefinitionKind

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
    return without_lost_names(left_sources, lost, documents, changed)


def _names(codebase: CompiledCodebase[Any], definition: Definition, gone: frozenset[str]) -> Iterator[LostName]:
    """The names of a definition that nothing else beside it has."""
    if definition.kind is DefinitionKind.PART:
        return
    beside = [
        each
        for each in codebase.modules[definition.path].definitions
        if each.holder == definition.holder and each.about == definition.about and each.key not in gone
    ]
    holder = unnumbered(definition.holder.rpartition(".")[2])
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
