"""Operations on layers after an installation: prune them, remove vendored copies, compare and merge them."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from excise.envs.sandbox.mount_points import REPO
from excise.envs.sandbox.overlay_layers import OPAQUE, is_opaque, is_whiteout

VENDOR_FOLDERS = frozenset(
    {"_vendor", "_vendored_packages", "_vendored", "vendor", "vendored", "extern", "_internal_vendor"}
)
"""Names of folders that hold copies of third-party packages."""
_INTERMEDIATE_SUFFIXES = (".pyc", ".pyo", ".o", ".obj")
_VARYING_FILES = re.compile(r"\.pyc$|(^|/)(__pycache__|\.lock|CACHEDIR\.TAG|uv_cache\.json|REQUESTED)(/|$)")
"""Caches and metadata of the installer, which differ between equal installations."""


def prune_built_layer(built: Path, sources: Path) -> tuple[str, ...]:
    """Keep only the new files that a build added to the checkout: metadata, generated versions, extensions.

    Caches, intermediate files, and every change or deletion of a pristine file are removed, so that the sources stay
    as they are. Return the remaining paths, sorted.
    """
    for folder, folders, files in os.walk(built, topdown=False):
        _clear_opaque(folder)
        for name in files:
            path = Path(folder, name)
            inside = path.relative_to(built)
            if not _is_build_result(path, inside) or os.path.lexists(sources / inside):
                path.unlink()
        for name in folders:
            path = Path(folder, name)
            if path.is_symlink():
                if os.path.lexists(sources / path.relative_to(built)):
                    path.unlink()
            elif not os.listdir(path):
                path.rmdir()
    found = (Path(folder, name) for folder, _, files in os.walk(built) for name in files)
    return tuple(sorted(path.relative_to(built).as_posix() for path in found))


def _is_build_result(path: Path, inside: Path) -> bool:
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):  # such as a whiteout
        return False
    return (
        "__pycache__" not in inside.parts
        and inside.parts[0] != "build"
        and not path.name.endswith(_INTERMEDIATE_SUFFIXES)
    )


def _clear_opaque(folder: str) -> None:
    """Remove the opaque mark: a folder that the build deleted and made again must not hide files of the sources."""
    for name in os.listxattr(folder, follow_symlinks=False):
        if name.endswith(OPAQUE):
            os.removexattr(folder, name, follow_symlinks=False)


def remove_vendored_copies(env: Path, packages: Iterable[str]) -> tuple[str, ...]:
    """Delete copies of the project that other distributions vendor: they would reveal every deleted feature.

    Return the deleted paths, relative to ``env``. A distribution that needs its copy stops working, which the
    baseline shows.
    """
    names = set(packages)
    removed: list[str] = []
    for folder, folders, files in os.walk(env):
        if Path(folder).name in VENDOR_FOLDERS:
            for name in [n for n in (*folders, *files) if n.partition(".")[0] in names]:
                path = Path(folder) / name
                removed.append(path.relative_to(env).as_posix())
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            folders[:] = [n for n in folders if n.partition(".")[0] not in names]
    return tuple(sorted(removed))


def link_scripts(env: Path, sources: Path) -> tuple[str, ...]:
    """Make scripts of an environment that are copies of files of the project run these files instead.

    Installing ``scripts=["tool.py"]`` copies a file of the sources, which would reveal every feature deleted from it.
    Return the names of the scripts, sorted. Only the first line of a copy may differ: it names the interpreter.
    """
    own: dict[str, list[Path]] = {}
    for folder in ("", "bin", "scripts", "script", "tools"):
        for path in sorted(sources.joinpath(folder).glob("*")):
            own.setdefault(path.name, []).append(path)
    linked: list[str] = []
    for script in sorted(env.joinpath("bin").glob("*")):
        if script.name not in own or script.is_symlink() or not script.is_file():
            continue
        head, _, text = script.read_bytes().partition(b"\n")
        same = [path for path in own[script.name] if path.is_file() and not path.is_symlink() and _body(path) == text]
        if same and head.startswith(b"#!") and text.strip():
            target = f"{REPO}/{same[0].relative_to(sources).as_posix()}"
            mode = script.stat().st_mode
            script.unlink()  # it may be a hard link
            script.write_bytes(head + f'\nimport runpy\n\nrunpy.run_path({target!r}, run_name="__main__")\n'.encode())
            script.chmod(mode)
            linked.append(script.name)
    return tuple(linked)


def _body(path: Path) -> bytes:
    """A file without its first line."""
    return path.read_bytes().partition(b"\n")[2]


def missing_files(first: Path, second: Path) -> list[str]:
    """Paths of files in ``first`` that ``second`` lacks, except for caches and notes of the installer; sorted."""
    found = (Path(folder, name).relative_to(first) for folder, _, files in os.walk(first) for name in files)
    paths = sorted(path.as_posix() for path in found if not os.path.lexists(second / path))
    return [path for path in paths if not _VARYING_FILES.search(path)]


def compose(lower: Path, upper: Path, into: Path) -> None:
    """Merge two layers into the folder ``into``, as an overlay would show them; files are hard links."""
    _link_tree(lower, into)
    for folder, folders, files in os.walk(upper):
        target = into / Path(folder).relative_to(upper)
        if is_opaque(Path(folder)) or (target.is_symlink() or (target.exists() and not target.is_dir())):
            _remove(target)
        target.mkdir(exist_ok=True)
        target.chmod(Path(folder).stat().st_mode & 0o777)
        for name in (*files, *(n for n in folders if Path(folder, n).is_symlink())):
            source = Path(folder, name)
            _remove(target / name)
            if not is_whiteout(source):
                _link(source, target / name)


def _link_tree(lower: Path, into: Path) -> None:
    for folder, folders, files in os.walk(lower):
        target = into / Path(folder).relative_to(lower)
        target.mkdir()
        target.chmod(Path(folder).stat().st_mode & 0o777)
        for name in (*files, *(n for n in folders if Path(folder, n).is_symlink())):
            _link(Path(folder, name), target / name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or too many links
        shutil.copy2(source, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
