"""What an installation did to the checkout: pristine files must be what they were, and nothing may pose as a test.

Compares with the pristine sources exactly what a git tree holds: names, contents, links, and the executable bit.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from excise.errors import EnvironmentFailure

_STEERS = re.compile(
    r"(conftest|sitecustomize|usercustomize)\.py|\.?pytest\.(ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|.*\.pth"
)
"""New files of these names would steer the tests, whatever is in them."""


def require_pristine(built: Path, sources: Path, repo: str) -> None:
    """Raise :class:`EnvironmentFailure` (``source_modified``) if a layer over the sources changes or steers them."""
    if changed := changed_sources(built, sources):
        raise EnvironmentFailure(
            f"{repo}: the installation changed files of the repository: {', '.join(changed[:10])}. Sources and tests "
            "have to stay as they are; only new files may be added.",
            reason="source_modified",
        )
    if steering := [path for path in new_files(built, sources) if _STEERS.fullmatch(path.rpartition("/")[2])]:
        raise EnvironmentFailure(
            f"{repo}: the installation added files that steer the tests: {', '.join(steering[:10])}.",
            reason="source_modified",
        )


def changed_sources(built: Path, sources: Path) -> list[str]:
    """Pristine files that the layer ``built`` changes or takes away, sorted."""
    changed: set[str] = set()
    for folder, folders, files in os.walk(built):
        inside = Path(folder).relative_to(built)
        below = sources / inside
        if _is_opaque(folder) and below.is_dir():
            changed |= {(inside / p).as_posix() for p in _all_files(below) if not os.path.lexists(Path(folder) / p)}
        for name in [*files, *(n for n in folders if (Path(folder) / n).is_symlink())]:
            ours, theirs = Path(folder) / name, below / name
            if os.path.lexists(theirs) and not _same(ours, theirs):
                changed.add((inside / name).as_posix())
    return sorted(changed)


def new_files(built: Path, sources: Path) -> list[str]:
    """Files of the layer that the sources do not have, sorted."""
    found = (Path(folder, name) for folder, _, files in os.walk(built) for name in files)
    inside = (path.relative_to(built) for path in found if not stat.S_ISCHR(path.lstat().st_mode))
    return sorted(path.as_posix() for path in inside if not os.path.lexists(sources / path))


def _same(ours: Path, theirs: Path) -> bool:
    mine, pristine = ours.lstat(), theirs.lstat()
    if stat.S_IFMT(mine.st_mode) != stat.S_IFMT(pristine.st_mode):
        return False
    if stat.S_ISLNK(mine.st_mode):
        return os.readlink(ours) == os.readlink(theirs)
    if not stat.S_ISREG(mine.st_mode) or (mine.st_mode ^ pristine.st_mode) & 0o100:
        return False
    return mine.st_size == pristine.st_size and ours.read_bytes() == theirs.read_bytes()


def _is_opaque(folder: str) -> bool:
    """The folder was deleted and made again: nothing below shows through."""
    return any(name.endswith("overlay.opaque") for name in os.listxattr(folder, follow_symlinks=False))


def _all_files(folder: Path) -> list[str]:
    return [Path(f, name).relative_to(folder).as_posix() for f, _, files in os.walk(folder) for name in files]
