"""Sources of foreign tasks: fetches the commit, applies the set's patches, and stores the solved tree.

The patches come from strangers: their paths are checked before git sees them, and nothing that is no regular file is
accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from excise.config import Settings
from excise.deleters.patches.git_patches import blob_id
from excise.errors import PatchError, SourceError
from excise.extractors.fetch.git_mirror import SHA, Mirror, is_repository
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot
from excise.pipeline.stages.fetch_stage import FetchedSources, store_sources, trees_folder
from excise.system.folders import temporary_folder_beside
from excise.types import ForeignTask
from excise.verifiers.git_apply import apply_in_folder
from excise.verifiers.grading.intake import is_safe, paths_of, sections
from excise.verifiers.shipped_tree import scrubbed

MAX_PATCH_BYTES = 8 << 20
"""Size above which a patch is refused."""
IMPORT_DATE = "2000-01-01T00:00:00Z"
"""Date of the commits that excise makes of trees (:func:`excise.extractors.fetch.trees.import_commit`)."""
_LINK = re.compile(r"(?m)^(?:new file mode|new mode|old mode|deleted file mode) (?:120000|160000)$")
"""Headers of patches of symbolic links and submodules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedSources:
    """The solved sources of a foreign task."""

    sources: FetchedSources
    """The solved tree, hidden tests included, as a layer of the cache."""
    shipped: Mapping[str, bytes | None]
    """Path to content in the agent's tree (``None``: no such file) of every file that differs."""
    test_paths: frozenset[str]
    """Those of these files that are hidden tests."""
    history: str
    """How the project's history gives the solution away, in a sentence; empty if it does not."""


def fetch_solved(settings: Settings, task: ForeignTask, repos: Path | None) -> SolvedSources:
    """Fetch and patch the sources of a task; with ``repos``, from the local repositories in this folder alone.

    Raises :class:`SourceError`, and :class:`PatchError` (``no_gold_patch``, ``unsafe_path``, ``not_a_regular_file``,
    ``patch_does_not_apply``) for what a set says wrongly.
    """
    if not (task.patch or task.bug_patch):
        raise PatchError("The task has no gold patch: without it nothing can be proven.", reason="no_gold_patch")
    for patch in (task.patch, task.bug_patch, task.test_patch):
        check_patch(patch)
    for path, _ in task.test_files:
        if not is_safe(path):
            raise PatchError(f"{path!r} is outside the tree.", reason="unsafe_path")
    mirror, commit, url = _fetched_commit(settings, task, repos)
    with temporary_folder_beside(trees_folder(settings) / "imported") as work:
        files = work / "files"
        files.mkdir()
        mirror.export(commit, files)
        changed, tests = _solve(files, task)
        facts = SourceFacts(
            source=f"git+{url}@{commit}",
            name=task.repo,
            commit=commit,
            tag=mirror.version(commit),
            created_at=_date(mirror.created_at(commit), task),
        )
        solved = {path: (files / path).read_bytes() for path in changed if (files / path).is_file()}
        history = _history(mirror, commit, changed, solved, task) if solved else ""
        repo = record_snapshot(files, facts).repo
        sources = store_sources(settings, repo, files, keep_archive=False)
    gone = scrubbed({*changed, *solved}, repo.language)
    return SolvedSources(
        sources=sources,
        shipped={path: data for path, data in changed.items() if path not in gone},
        test_paths=frozenset(tests - gone),
        history=history,
    )


def check_patch(patch: str) -> None:
    """Raise :class:`PatchError` for a patch that leaves the tree, makes links, or is none."""
    if len(patch.encode("utf-8", "replace")) > MAX_PATCH_BYTES:
        raise PatchError(f"The patch is larger than {MAX_PATCH_BYTES >> 20} MiB.", reason="patch_too_large")
    for part in sections(patch):
        if bad := next((path for path in sorted(paths_of(part)) if not is_safe(path)), None):
            raise PatchError(f"The patch changes {bad!r}, which is outside the tree.", reason="unsafe_path")
        if _LINK.search(part.partition("\n@@ ")[0]):
            raise PatchError(f"{sorted(paths_of(part))[0]}: links are not accepted.", reason="not_a_regular_file")


# --------------------------------------------------------------------------------------- commit
def _fetched_commit(settings: Settings, task: ForeignTask, repos: Path | None) -> tuple[Mirror, str, str]:
    """The mirror with the task's commit, its full id, and the repository's public URL."""
    if not task.urls:
        raise SourceError(
            "Nothing names a git repository and a commit: only a Docker image may have the sources. Add repo and "
            "base_commit to the task's metadata.",
            reason="no_repository",
        )
    problems: list[SourceError] = []
    for url in task.urls:
        try:
            place = str(_local_repository(repos, url)) if repos is not None else url
            mirror = Mirror(place, settings.cache)
            return mirror, _full_commit(mirror, task, url), url
        except SourceError as error:
            problems.append(error)
    raise problems[0]


def _local_repository(repos: Path, url: str) -> Path:
    """The local repository of a project. Raises :class:`SourceError` (``no_local_repository``) without one."""
    owner, name = url.removesuffix(".git").split("/")[-2:]
    for place in (f"{owner}/{name}", f"{owner}__{name}", name):
        for path in (repos / place, repos / f"{place}.git"):
            if is_repository(path):
                return path.resolve()
    raise SourceError(
        f"{repos} has no repository {owner}/{name}. Clone it there as {owner}/{name}, or leave --repos out.",
        reason="no_local_repository",
    )


def _full_commit(mirror: Mirror, task: ForeignTask, url: str) -> str:
    """The full id of the task's commit, with its files in the mirror. Raises :class:`SourceError`."""
    commit = task.commit
    if not commit:
        raise SourceError(f"Nothing names the commit of {task.repo}. Add base_commit.", reason="no_commit")
    if not SHA.fullmatch(commit):
        mirror.update()
        commit = mirror.commit(task.commit)
        if not commit and task.bug_patch and url != task.urls[0]:  # a mirror of one commit
            commit = mirror.remote_commit("")
        if not commit:
            raise SourceError(f"{mirror.url} has no commit {task.commit}", reason="no_such_revision")
    mirror.ensure(commit)
    return commit


def _date(committed_at: str, task: ForeignTask) -> str:
    """The later one of the commit's date and the set's; commits that excise made have no date of their own."""
    return max("" if committed_at == IMPORT_DATE else committed_at, task.created_at)


# ---------------------------------------------------------------------------------------- trees
def _solve(files: Path, task: ForeignTask) -> tuple[dict[str, bytes | None], set[str]]:
    """Make the files at the task's commit the solved ones; return the agent's content of all that differ, and the paths
    of hidden tests. Raises :class:`PatchError`."""
    if task.bug_patch:
        return _with_bug(files, task.bug_patch), set()
    before: dict[str, bytes | None] = {}
    _apply(files, task.patch, before)
    tests: dict[str, bytes | None] = {}
    _apply(files, task.test_patch, tests)
    for path, text in task.test_files:
        tests.setdefault(path, _content(files, path))
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(text, encoding="utf-8")
    changed = {**tests, **before}
    return {path: data for path, data in changed.items() if data != _content(files, path)}, set(tests)


def _apply(files: Path, patch: str, before: dict[str, bytes | None]) -> None:
    """Apply a patch in the folder, and add what its files held before."""
    for path in _paths(patch):
        before.setdefault(path, _content(files, path))
    if patch:
        apply_in_folder(files, patch.encode("utf-8", "surrogateescape"))
    for path in _paths(patch):
        _content(files, path)


def _with_bug(files: Path, patch: str) -> dict[str, bytes | None]:
    """The content of the files that a patch changes in the folder, after it; the folder stays as it is."""
    with TemporaryDirectory(prefix="excise-import-") as folder:
        root = Path(folder)
        for path in _paths(patch):
            data = _content(files, path)
            if data is not None:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(data)
        apply_in_folder(root, patch.encode("utf-8", "surrogateescape"))
        return {path: _content(root, path) for path in _paths(patch)}


def _paths(patch: str) -> list[str]:
    return sorted({path for part in sections(patch) for path in paths_of(part)})


def _content(files: Path, path: str) -> bytes | None:
    """A file's content. Raises :class:`PatchError` for what is no regular file."""
    place = files / path
    if any(parent.is_symlink() for parent in (place, *place.parents) if parent.is_relative_to(files)):
        raise PatchError(f"{path} is a link, or below one.", reason="not_a_regular_file")
    if not place.exists():
        return None
    if not place.is_file():
        raise PatchError(f"{path} is no regular file.", reason="not_a_regular_file")
    return place.read_bytes()


# -------------------------------------------------------------------------------------- history
def _history(
    mirror: Mirror, commit: str, changed: Mapping[str, bytes | None], solved: Mapping[str, bytes], task: ForeignTask
) -> str:
    """How the repository's history holds a solved file; empty if it does not.

    excise's agents get a history of one commit. Other tools' images often have the whole history.
    """
    if task.bug_patch:
        return f"the sources before the bug are commit {commit[:12]}, which the set's mirror holds"
    tests = {path for path, _ in task.test_files} | set(_paths(task.test_patch))
    for path in sorted(path for path in solved if path not in tests and changed.get(path) != solved[path]):
        for found in _commits(mirror, path, solved[path]):
            when = "before" if mirror.is_ancestor(found, commit) else "after"
            return f"{path} is solved in commit {found[:12]}, {when} the task's commit"
    return ""


def _commits(mirror: Mirror, path: str, data: bytes) -> Iterator[str]:
    try:
        yield from mirror.commits_with(path, blob_id(data))
    except SourceError:
        return
