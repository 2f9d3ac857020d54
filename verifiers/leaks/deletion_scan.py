"""The leak scan of one deletion: outside the tree, in the remaining sources, and in the shipped tree."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from excise.deleters.edits.removed_parts import symbol_of_part
from excise.envs.sandbox.mount_points import REPO
from excise.extractors.languages import scan_rules_of
from excise.protocols import Codebase
from excise.system.deadline import check_deadline
from excise.types import Symbol
from excise.verifiers.candidate import PlannedDeletion
from excise.verifiers.leaks.content_cache import Content
from excise.verifiers.leaks.decoders.minified_js import kept_words
from excise.verifiers.leaks.file_copies import copies_of_files
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes, text_fingerprints, unique
from excise.verifiers.leaks.fragments import FragmentKind
from excise.verifiers.leaks.renamed_twins import renamed_twins
from excise.verifiers.leaks.scan import (
    THRESHOLDS,
    Leak,
    PlaceRules,
    ScannedFiles,
    is_in,
    keep_distinctive,
    leaks_in,
)
from excise.verifiers.leaks.surface import PROCESSES, Surface, content_cache_of, surface_of
from excise.verifiers.leaks.targets import Target, code_pairs, definitions_in, targets_of
from excise.verifiers.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Subject:
    """What the scan searches for: the fingerprints of one deletion."""

    targets: Sequence[Target]
    """The deleted definitions."""
    legitimate: Hashes
    """The targets' fingerprints that the remaining sources, or code compiled from them, also have: these prove
    nothing."""

    @property
    def is_short(self) -> bool:
        """Whether the deleted code is too short to be found by itself."""
        return sum(len(target.body) for target in self.targets) < THRESHOLDS.partial_windows


def subject_of(plan: PlannedDeletion) -> Subject:
    """The scan's subject for a planned deletion; computed once for the steps of a proof."""
    deletion = plan.deletion
    key = (deletion.source_patch, deletion.hide_patch, deletion.text)
    known, subject = _subjects.get(plan.bench.codebase, (None, None))
    if subject is None or known != key:
        targets = targets_of(plan.bench.codebase, deletion.text)
        subject = Subject(targets, _legitimate(plan, targets))
        _subjects[plan.bench.codebase] = key, subject
    return subject


_subjects: WeakKeyDictionary[Codebase, tuple[object, Subject]] = WeakKeyDictionary()
"""The deletion of each codebase that was scanned last, and its subject."""


def similar_share(subject: Subject) -> float:
    """Share of the removed code, in windows of words, that stands elsewhere in the shipped sources."""
    body = unique(np.concatenate([EMPTY, *(target.body for target in subject.targets)]))
    return round(float(is_in(body, subject.legitimate).mean()), 4) if len(body) else 0.0


def _legitimate(plan: PlannedDeletion, targets: Sequence[Target]) -> Hashes:
    """The targets' fingerprints that the shipped sources also have, in their texts or in their byte code."""
    bench = plan.bench
    edits = plan.edits("shipped")
    contents = content_cache_of(bench)
    removed = {symbol_of_part(target.symbol) for target in targets}
    wanted = unique(np.concatenate([EMPTY, *(target.all_fingerprints() for target in targets)]))
    held = np.zeros(len(wanted), dtype=bool)
    for path, module in bench.codebase.modules.items():
        check_deadline()
        data = edits.get(path, module.source)
        for kind, numbers in contents.of(data).fragments if data is not None else ():
            if kind is FragmentKind.TEXT:
                held |= is_in(wanted, numbers)
        if data is not None and any(target.is_minified for target in targets):
            held |= is_in(wanted, text_fingerprints(kept_words(data)))
    for symbol, numbers in _pairs_by_symbol(bench).items():
        if symbol not in removed:
            held |= is_in(wanted, numbers)
    return wanted[held]


def _pairs_by_symbol(bench: Workbench) -> dict[str, Hashes]:
    """Symbol id to fingerprints of its byte code, for every definition of a project; computed once per environment."""
    key = bench.prepared.environment.env_id
    if key not in _pairs:
        _pairs.clear()
        codebase = bench.codebase
        tops: list[Symbol] = [module.symbols[0] for module in codebase.modules.values() if module.symbols]
        _pairs[key] = {
            symbol.symbol_id: unique(code_pairs(symbol, body))
            for top in tops
            for symbol, body in definitions_in(codebase, top)
        }
    return _pairs[key]


_pairs: dict[str, dict[str, Hashes]] = {}


def leaks_outside(plan: PlannedDeletion, subject: Subject) -> list[Leak]:
    """Leaks of a deletion outside the tree: in the environment, the interpreter, the system and processes."""
    surface = surface_of(plan.bench)
    targets = keep_distinctive(subject.targets, surface.library, subject.legitimate, keep_bodies=False)
    copies = copies_of_files(_changed_files(plan), surface.indexes()) if subject.is_short else []
    return [*copies, *(leak for index in surface.indexes() for leak in leaks_in(index, targets, PlaceRules()))]


File = tuple[str, Content | None]
"""Path in the sandbox, and the decoded content; ``None`` where it could not be read."""


def leaks_in_sources(plan: PlannedDeletion, subject: Subject) -> list[Leak]:
    """Leaks of a deletion in the remaining files, which are read from the source layer: no tree is written."""
    bench = plan.bench
    contents, edits = content_cache_of(bench), plan.edits("shipped")
    kept = [path for path in bench.paths if path not in edits and not (bench.root / path).is_symlink()]
    files: list[File] = [(f"{REPO}/{path}", contents.of_file(bench.root / path)) for path in kept]
    files += [(f"{REPO}/{path}", contents.of(data)) for path, data in edits.items() if data is not None]
    return leaks_in_files(plan, subject, files)


def leaks_in_tree(plan: PlannedDeletion, subject: Subject, tree: Path) -> tuple[list[Leak], list[File]]:
    """Leaks of a deletion in the shipped tree, its history included, and every file that was read."""
    contents = content_cache_of(plan.bench)
    files: list[File] = [
        (f"{REPO}/{path.relative_to(tree).as_posix()}", contents.of_file(path)) for path in _files(tree)
    ]
    return leaks_in_files(plan, subject, files), files


def leaks_in_files(plan: PlannedDeletion, subject: Subject, files: Sequence[File]) -> list[Leak]:
    """Leaks in files of the tree. The threshold is higher for the project's sources and its history than elsewhere."""
    bench = plan.bench
    sources = {f"{REPO}/{path}" for path in bench.codebase.modules}
    history = f"{REPO}/.git/"

    def is_source(name: str) -> bool:
        return name in sources or name.startswith(history)

    rules = PlaceRules(
        share=lambda name: THRESHOLDS.tree_share if is_source(name) else THRESHOLDS.outside_share,
        is_project_source=is_source,
    )
    targets = keep_distinctive(subject.targets, surface_of(bench).library, subject.legitimate, keep_bodies=True)
    known = [(name, content) for name, content in files if content is not None]
    texts = _comments_of(plan, subject, [(name, content) for name, content in known if name in sources])
    copies = copies_of_files(_changed_files(plan), [ScannedFiles(known)]) if subject.is_short else []
    twins = renamed_twins(bench.codebase, plan.deletion.removed, plan.edits("shipped"))
    return [*copies, *twins, *leaks_in(ScannedFiles([*known, *texts]), targets, rules)]


def _changed_files(plan: PlannedDeletion) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to the contents before and after a deletion of each source file that it changes."""
    codebase, edits = plan.bench.codebase, plan.edits("shipped")
    paths = (path for path in edits if path in codebase.modules and not codebase.is_test(path))
    return {path: (codebase.modules[path].source, edits[path]) for path in paths}


def _comments_of(
    plan: PlannedDeletion, subject: Subject, sources: Sequence[tuple[str, Content]]
) -> list[tuple[str, Content]]:
    """The comments, and the texts of several lines, of those sources that have half of a body: these are no related
    code, so that they count as files of their own, which hold less than a near-copy."""
    bench, edits = plan.bench, plan.edits("shipped")
    found: list[tuple[str, Content]] = []
    for name, content in sources:
        numbers = [hashes for kind, hashes in content.fragments if kind is FragmentKind.TEXT]
        bodies = (target.body for target in subject.targets if len(target.body))
        if any(is_in(body, each).mean() >= THRESHOLDS.outside_share for body in bodies for each in numbers):
            path = name.removeprefix(f"{REPO}/")
            data, rules = edits.get(path, bench.codebase.modules[path].source) or b"", scan_rules_of(path)
            parts = (match[0] for match in re.finditer(rules.literals, data))
            texts = [part for part in parts if part.startswith(rules.comments) or b"\n" in part]
            found.append((f"{name} (comments)", content_cache_of(bench).of(b"\n".join(texts))))
    return found


def _files(tree: Path) -> list[Path]:
    found = [Path(folder, name) for folder, _, names in os.walk(tree) for name in names]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def decoders_of(surface: Surface) -> set[str]:
    """Names of the decoders that found something outside the tree, processes excluded."""
    return {
        name
        for root, indexes in surface.roots.items()
        if root != PROCESSES
        for index in indexes
        for name in index.decoders
    }
