"""Takes out imports that a file no longer uses: Go does not compile with them."""

from __future__ import annotations

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.extractors.go.analysis.parsed_file import GoModule, parse_file


def without_unused_imports(before: GoModule, after: bytes) -> bytes:
    """The edited file ``after`` without the imports that it no longer uses, but did use ``before``.

    Where the name of a package cannot be told from its path, the file did not use that name before, and it stays.
    """
    module = parse_file(before.path, after)
    used, was_used = _qualifiers(module), _qualifiers(before)
    gone = [
        each
        for each in module.imports
        if each.name not in {"_", "."} and each.used_names & was_used and not each.used_names & used
    ]
    if not gone:
        return after
    left = len(module.imports) - len(gone)
    text = apply_edits(after, [Edit(each.start, each.end, b"") for each in gone])
    return text if left else _without_empty_group(text)


def _qualifiers(module: GoModule) -> frozenset[str]:
    return frozenset(reference.qualifier for reference in module.references if reference.qualifier not in {"", "?"})


def _without_empty_group(source: bytes) -> bytes:
    """The file without an ``import ()`` that holds nothing."""
    start = source.find(b"import (")
    end = source.find(b")", start)
    if start < 0 or source[start + 8 : end].strip():
        return source
    return source[:start] + source[end + 1 :].lstrip(b"\n")
