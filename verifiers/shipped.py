"""The tree that an agent gets: rebuilt from the shipped sources, scrubbed, with a git history of one commit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from excise.errors import SandboxError

SCRUBBED_FOLDERS = frozenset(
    {
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype", ".pyre", ".hypothesis", ".tox", ".nox",
        ".eggs", "htmlcov", ".ipynb_checkpoints", ".cache", ".idea", ".vscode", "node_modules", ".git", ".hg", ".svn",
        "__pypackages__", ".venv", "venv",
    }
)  # fmt: skip
"""Caches, histories and environments: never shipped, whatever the sources hold."""
SCRUBBED_SUFFIXES = frozenset(
    {".pyc", ".pyo", ".orig", ".rej", ".swp", ".swo", ".bak", ".cover", ".prof", ".whl", ".egg", ".class", ".gcda"}
)
"""Byte code, leftovers of editors and merges, profiles, built packages."""
SCRUBBED_NAMES = frozenset({".coverage", "coverage.xml", "tags", "TAGS", ".dmypy.json", "lcov.info", ".python_history"})
GIT_DATE = "2000-01-01T00:00:00+0000"


def is_scrubbed(path: str) -> bool:
    """Whether a file of the sources is an artefact that must not be shipped."""
    *folders, name = path.split("/")
    return (
        any(folder in SCRUBBED_FOLDERS for folder in folders)
        or name in SCRUBBED_NAMES
        or name.endswith("~")
        or Path(name).suffix in SCRUBBED_SUFFIXES
    )


def materialise(sources: Path, built: Path, files: list[str], edits: Mapping[str, bytes | None], into: Path) -> None:
    """Write the shipped tree into ``into``, which must not exist: sources with edits, then a fresh repository.

    Files that the installation made (metadata, compiled extensions) come along, untracked as in any checkout.
    Raises :class:`SandboxError` if git fails.
    """
    into.mkdir(parents=True)
    for path in sorted(set(files) | edits.keys()):
        data = edits.get(path, b"")
        if data is None or is_scrubbed(path):
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
    copy_built(built, into)


def commit(root: Path) -> None:
    """``git init`` and one commit by a fixed author at a fixed date."""
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "excise",
        "GIT_AUTHOR_EMAIL": "excise@localhost",
        "GIT_COMMITTER_NAME": "excise",
        "GIT_COMMITTER_EMAIL": "excise@localhost",
        "GIT_AUTHOR_DATE": GIT_DATE,
        "GIT_COMMITTER_DATE": GIT_DATE,
        "GIT_TEMPLATE_DIR": "",
    }
    safe = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"]
    safe += ["-c", "core.attributesFile=/dev/null", "-c", "gc.auto=0", "-c", "core.logAllRefUpdates=false"]
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all", "--force"],
        ["commit", "--quiet", "--allow-empty", "--no-verify", "--message=Import"],
    ):
        done = subprocess.run(
            [*safe, *arguments],
            cwd=root,
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=300,
        )
        if done.returncode != 0:
            raise SandboxError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")


def copy_built(built: Path, into: Path) -> None:
    """Copy the installation's files that are not in the tree already; caches and build folders stay behind."""
    for folder, _, names in os.walk(built):
        for name in names:
            source = Path(folder) / name
            path = source.relative_to(built).as_posix()
            target = into / path
            if source.is_file() and not source.is_symlink() and not target.exists() and not is_scrubbed(path):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
