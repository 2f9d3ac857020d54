"""The record of a deletion, made from the files that a deleter changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from excise.deleters.patches.git_patches import unified
from excise.errors import DeletionRefused, PatchError
from excise.protocols import Codebase
from excise.types import Deletion, Feature, content_id

KEPT_DEFINITIONS = frozenset({"stub", "line", "expression"})
"""Deleters that leave all names and signatures in the tree."""
PARTLY_KEPT = frozenset({"path", "proposed", "remove_and_stub"})
"""Deleters that leave some of them."""
REMOVALS = frozenset({"remove", "remove_and_stub"})
"""Deleters that take names away."""
PARTS_ALONE = frozenset({"path", "line", "expression"})
"""Deleters that leave most of a function: what words say of it does not tell what is gone."""
PLACE = "  # "
"""Separates an entry of a table (:attr:`Deletion.registrations`) from what is said of its place."""
USED_ELSEWHERE = "used_elsewhere"
"""Reason of a refused removal: code that stays would be left with uses of what is gone."""
Changed = Mapping[str, tuple[bytes, bytes | None]]
"""Path to (content before, content after) of files; ``None`` after deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFiles:
    """The files that a deleter changed, and the symbols and tests that it removed from them."""

    changed: Changed
    """Path to (content before, content after); ``None`` after deletion."""
    removed: Iterable[str]
    """Ids of the symbols that were removed or whose bodies were emptied."""
    hidden: Iterable[str]
    """Ids of the tests that are no longer visible, or only in part."""
    text: Iterable[tuple[str, str]]
    """(symbol id, deleted source text) pairs."""
    stubs_of: Iterable[str]
    """Ids of the symbols whose bodies the stub patches empty."""
    registrations: Iterable[tuple[str, str]] = ()
    """(path, text) of calls and entries of tables that were removed with the code that they register."""
    uses: Iterable[tuple[str, str]] = ()
    """(path, text) of uses of the code in functions that stay, which were removed."""
    uses_left: Iterable[tuple[str, str]] = ()
    """(path, function and name) of uses of the code in functions that stay, which were left."""
    uses_likely: Iterable[tuple[str, str]] = ()
    """(id of a function that stays, name) of attributes of unknown objects with names of removed methods."""
    uses_distinctive: Iterable[tuple[str, str]] = ()
    """Those of them whose names nothing else has."""
    shortened: Iterable[str] = ()
    """Ids of the hidden tests of which a part stays."""


def build_deletion(
    codebase: Codebase,
    feature: Feature,
    files: EditedFiles,
    *,
    name: str,
    version: int,
    stand_ins: Callable[[Iterable[str]], tuple[tuple[str, str], ...]],
) -> Deletion:
    """Build the deletion and its patches from edited files; ``name`` and ``version`` are the deleter's.

    ``stand_ins`` makes the patches of stand-ins for symbols. Raises :class:`DeletionRefused` for files that a text
    patch cannot represent.
    """
    sources = {p: v for p, v in files.changed.items() if not codebase.is_test(p)}
    tests = {p: v for p, v in files.changed.items() if codebase.is_test(p)}
    try:
        source_patch, hide_patch = patch_of(codebase, sources), patch_of(codebase, tests)
        stubs = stand_ins(files.stubs_of)
    except PatchError as error:
        raise DeletionRefused(str(error), reason=error.reason) from error
    if not source_patch:
        raise DeletionRefused("the deletion changes no source file", reason="no_change")
    return Deletion(
        deletion_id=content_id("deletion", name, version, source_patch, hide_patch),
        feature=feature,
        deleter=name,
        deleter_version=version,
        source_patch=source_patch,
        hide_patch=hide_patch,
        removed=tuple(sorted(set(files.removed))),
        hidden=tuple(sorted(set(files.hidden))),
        text=tuple(dict.fromkeys(files.text)),
        stub_patches=stubs,
        registrations=tuple(files.registrations),
        uses=tuple(files.uses),
        uses_left=tuple(dict.fromkeys(files.uses_left)),
        uses_likely=tuple(dict.fromkeys(files.uses_likely)),
        uses_distinctive=tuple(dict.fromkeys(files.uses_distinctive)),
        shortened=tuple(sorted(files.shortened)),
    )


def hiding(deletion: Deletion, hide_patch: str, hidden: Iterable[str]) -> Deletion:
    """A copy of the deletion that hides other tests: the ids ``hidden``."""
    parts = deletion.deleter, deletion.deleter_version, deletion.source_patch
    return replace(
        deletion,
        deletion_id=content_id("deletion", *parts, hide_patch),
        hide_patch=hide_patch,
        hidden=tuple(sorted(hidden)),
        shortened=(),
    )


def patch_of(codebase: Codebase, changed: Changed) -> str:
    """The patch of changed files. Raises :class:`PatchError` for contents that no text patch can represent."""
    modes = {p: 0o100755 for p in changed if p in codebase.executable}
    return unified({p: a for p, (a, _) in changed.items()}, {p: b for p, (_, b) in changed.items()}, modes)
