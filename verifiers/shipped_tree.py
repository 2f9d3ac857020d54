"""The shipped tree, which an agent gets: scrubbed sources with the deletion, and a git history of one commit.

Sources are scrubbed once, when they are fetched, so that gates and graders run the same tree as agents.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from excise.errors import SandboxError
from excise.extractors.fetch.trees import list_files
from excise.extractors.languages import get_language
from excise.protocols import ScrubRules
from excise.system.git import GitError, GitOptions, run_git

SCRUBBED_FOLDERS = frozenset(
    {
        "htmlcov", ".cache", ".idea", ".vscode", "node_modules", ".git", ".hg", ".svn",
    }
)  # fmt: skip
"""Folders of caches, histories and installed packages, in every language."""
SCRUBBED_SUFFIXES = frozenset(
    {".orig", ".rej", ".swp", ".swo", ".bak", ".cover", ".prof", ".whl", ".egg", ".class", ".gcda"}
)
"""Suffixes of leftovers of editors and merges, of profiles, and of built packages."""
MARKS_OF_BUILT_DOCUMENTS = (".buildinfo", "environment.pickle", "search/search_index.json", "allclasses-index.html")
"""Files in folders of documents that Sphinx (pages, and what it keeps between runs), MkDocs or Javadoc have built: they
hold the code of the modules that they describe."""
_SOURCES = (".py", ".rst", ".md", ".adoc", ".java", ".go", ".rs", ".ts", ".ipynb")
"""Suffixes of files that no tool for documents writes: a folder with one is not its output alone."""
PATCHES_OF_DISTRIBUTIONS = "debian/patches"
"""The folder in which Debian keeps what it changes, tests too."""
SCRUBBED_NAMES = frozenset({"coverage.xml", "tags", "TAGS", "lcov.info"})
ATTRIBUTES = "* -text -filter -ident !working-tree-encoding !diff\n"
"""The content of ``.git/info/attributes``, which outranks any ``.gitattributes`` of the tree: commits and diffs hold
the bytes of the files, so that an agent's diff applies to the tree that it is graded on."""
GIT_DATE = "2000-01-01T00:00:00+0000"
GIT_AUTHOR = {
    "GIT_AUTHOR_NAME": "excise",
    "GIT_AUTHOR_EMAIL": "excise@localhost",
    "GIT_COMMITTER_NAME": "excise",
    "GIT_COMMITTER_EMAIL": "excise@localhost",
    "GIT_AUTHOR_DATE": GIT_DATE,
    "GIT_COMMITTER_DATE": GIT_DATE,
}
"""Author and date of the one commit: equal trees have equal commits."""
GIT_TIMEOUT_S = 300.0
"""Timeout in seconds of one git command: adding a large tree takes tens of seconds on a busy machine."""
COMMIT_OPTIONS = GitOptions(settings={"core.logAllRefUpdates": "false"}, variables=GIT_AUTHOR, timeout_s=GIT_TIMEOUT_S)
"""Options of the commands that make the commit."""


def scrubbed(paths: Iterable[str], language: str) -> frozenset[str]:
    """The artefacts among a tree's files, which may contain deleted code: of all languages' tools, and of this one's.

    Raises :class:`ConfigError` for an unknown language.
    """
    present, rules = frozenset(paths), get_language(language).scrub_rules
    compiled = _compiled(present, rules)
    return frozenset(path for path in present if path in compiled or _is_artefact(path, present, rules))


def _compiled(present: frozenset[str], rules: ScrubRules) -> frozenset[str]:
    """The files that a compiler made of others of the tree."""
    found: set[str] = set()
    for suffix, made in rules.compiled:
        sources = {path.removesuffix(suffix) for path in present if path.endswith(suffix)}
        sources -= {stem for stem in sources if any(f"{stem}{suffix}".endswith(each) for each in made)}
        moved = {stem.partition("/")[2] for stem in sources if "/" in stem}
        for path in present:
            end = next((each for each in made if path.endswith(each)), "")
            stem = path.removesuffix(end)
            folder, _, below = stem.partition("/")
            if end and folder not in rules.not_compiled and {stem, below} & (sources | moved):
                found.add(path)
    return frozenset(found)


def _is_artefact(path: str, present: frozenset[str], rules: ScrubRules) -> bool:
    *folders, name = path.split("/")
    return (
        name in SCRUBBED_NAMES | rules.names
        or name.endswith("~")
        or Path(name).suffix in SCRUBBED_SUFFIXES | rules.suffixes
        or any(_is_made("/".join(folders[: end + 1]), present, rules) for end in range(len(folders)))
    )


def _is_made(folder: str, present: frozenset[str], rules: ScrubRules) -> bool:
    """Whether a tool made the folder, judged by its name and by marker files in it."""
    name = folder.rpartition("/")[2]
    if f"/{folder}".endswith(f"/{PATCHES_OF_DISTRIBUTIONS}"):
        return True
    if marks := [mark for marked, mark in rules.marked_folders if marked == name]:
        return any(f"{folder}/{mark}" in present for mark in marks)
    if name in rules.caches or _is_built_document(folder, present):
        return True
    return name in SCRUBBED_FOLDERS | rules.folders and not _is_package(folder, name, present, rules)


def _is_built_document(folder: str, present: frozenset[str]) -> bool:
    if not any(f"{folder}/{mark}" in present for mark in MARKS_OF_BUILT_DOCUMENTS):
        return False
    inside = (path for path in present if path.startswith(f"{folder}/"))
    return not any(path.endswith(_SOURCES) and "/_downloads/" not in path for path in inside)


def _is_package(folder: str, name: str, present: frozenset[str], rules: ScrubRules) -> bool:
    """Whether a folder with a name of artefacts is a package of the sources."""
    if name.isidentifier() and any(f"{folder}/{mark}" in present for mark in rules.package_marks):
        return True
    return bool(rules.source_suffix) and any(
        path.endswith(rules.source_suffix) and path.rpartition("/")[0] == folder for path in present
    )


def scrub(root: Path, language: str) -> None:
    """Delete all artefacts below ``root``, and folders that become empty; move tests out of files of sources."""
    for path in scrubbed(list_files(root), language):
        (root / path).unlink()
        for folder in (root / path).parents:
            if folder == root or any(folder.iterdir()):
                break
            folder.rmdir()
    if separate := get_language(language).scrub_rules.separate_tests:
        separate(root)


def materialise(
    sources: Path, built: Path, files: list[str], edits: Mapping[str, bytes | None], into: Path, language: str
) -> None:
    """Write the shipped tree into ``into``, which must not exist: sources with edits, then a fresh repository.

    Files that the installation made (metadata, compiled extensions) are copied as well, untracked as in any checkout.
    Raises :class:`SandboxError` if git fails.
    """
    into.mkdir(parents=True)
    paths = set(files) | edits.keys()
    for path in sorted(paths - scrubbed(paths, language)):
        data = edits.get(path, b"")
        if data is None:
            continue
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source = sources / path
        if path in edits:
            target.write_bytes(data)
            if source.is_file() and source.stat().st_mode & 0o100:
                target.chmod(0o755)
        else:
            shutil.copyfile(source, target, follow_symlinks=False)
            if not source.is_symlink() and source.stat().st_mode & 0o100:
                target.chmod(0o755)
    commit(into)
    copy_built(built, into, language)


def commit(root: Path) -> None:
    """``git init`` and one commit of all files, by a fixed author at a fixed date. Raises :class:`SandboxError`."""
    info = root / ".git" / "info"
    info.mkdir(parents=True)
    (info / "attributes").write_text(ATTRIBUTES)
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all", "--force"],
        ["commit", "--quiet", "--allow-empty", "--no-verify", "--message=Import"],
    ):
        _git(root, *arguments)


def _git(root: Path, *arguments: str) -> None:
    try:
        run_git(arguments, cwd=root, options=COMMIT_OPTIONS)
    except GitError as error:
        raise SandboxError(str(error), reason=error.reason) from error


def copy_built(built: Path, into: Path, language: str) -> None:
    """Copy files that the installation made and that are not in the tree already, without artefacts.

    Files that it made anew (:attr:`~excise.protocols.ScrubRules.made_anew`) replace those of the tree; git overlooks
    that. Raises :class:`SandboxError` if git fails.
    """
    anew = get_language(language).scrub_rules.made_anew
    paths = [path for path in list_files(built) if not (built / path).is_symlink()] if built.is_dir() else []
    for path in sorted(set(paths) - scrubbed(paths, language)):
        source, target = built / path, into / path
        if target.exists() and path in anew and target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
            _git(into, "update-index", "--skip-worktree", path)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
