"""Checks the changes that a recipe's commands made to the checkout and the environment.

Pristine files must be unchanged, no new file may influence the tests, and every module must come from a distribution:
a module that a command wrote by hand would be a mock that the recipe does not record.
"""

from __future__ import annotations

import csv
import os
import re
import stat
from pathlib import Path

from excise.envs.model_driven.install_context import InstallContext
from excise.envs.sandbox.overlay_layers import is_opaque
from excise.errors import EnvironmentFailure

_TEST_CONFIGURATION = re.compile(
    r"(conftest|sitecustomize|usercustomize)\.py|\.?pytest\.(ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|.*\.pth"
)
"""Names of files that influence how tests run, whatever their content."""
_ALWAYS_PRESENT = frozenset({"_virtualenv.py", "excise_mocks.pth", "__pycache__", "easy-install.pth"})
"""Entries of ``site-packages`` that belong to the virtual environment or to excise."""


def require_pristine(built: Path, sources: Path, repo: str) -> None:
    """Require that a layer over the sources changes no pristine file and adds no test configuration.

    Raises :class:`EnvironmentFailure` (``source_modified``).
    """
    if changed := changed_sources(built, sources):
        raise EnvironmentFailure(
            f"{repo}: the installation changed files of the repository: {', '.join(changed[:10])}. Sources and tests "
            "have to stay as they are; only new files may be added.",
            reason="source_modified",
        )
    if steering := [
        path for path in new_files(built, sources) if _TEST_CONFIGURATION.fullmatch(path.rpartition("/")[2])
    ]:
        raise EnvironmentFailure(
            f"{repo}: the installation added files that steer the tests: {', '.join(steering[:10])}.",
            reason="source_modified",
        )


def changed_sources(built: Path, sources: Path) -> list[str]:
    """Pristine files that the layer ``built`` changes or deletes, sorted.

    Names, contents, link targets and the executable bit are compared, as in a git tree.
    """
    changed: set[str] = set()
    for folder, folders, files in os.walk(built):
        inside = Path(folder).relative_to(built)
        below = sources / inside
        if is_opaque(Path(folder)) and below.is_dir():
            changed |= {(inside / p).as_posix() for p in _all_files(below) if not os.path.lexists(Path(folder) / p)}
        for name in [*files, *(n for n in folders if (Path(folder) / n).is_symlink())]:
            ours, theirs = Path(folder) / name, below / name
            if os.path.lexists(theirs) and not _same(ours, theirs):
                changed.add((inside / name).as_posix())
    return sorted(changed)


def new_files(built: Path, sources: Path) -> list[str]:
    """Files of the layer that the sources lack, sorted."""
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


def _all_files(folder: Path) -> list[str]:
    return [Path(f, name).relative_to(folder).as_posix() for f, _, files in os.walk(folder) for name in files]


def require_no_unowned_modules(env: Path, built: Path, context: InstallContext) -> None:
    """Require that no command put a module into the environment or the checkout by hand.

    Raises :class:`EnvironmentFailure` (``source_modified``).
    """
    major, minor = context.interpreter.minor
    library = env / "lib" / f"python{major}.{minor}" / "site-packages"
    found = unowned_modules(library) + _new_modules(built, context)
    if found:
        raise EnvironmentFailure(
            f"{context.repo.repo}: modules were put in place by hand: {', '.join(found[:10])}. Stand-ins are written "
            "by write_mock alone, so that it is known which tests use them.",
            reason="source_modified",
        )


def unowned_modules(library: Path) -> list[str]:
    """Importable files and folders of ``site-packages`` that no distribution's ``RECORD`` names."""
    owned = _owned_names(library)
    found = []
    for path in sorted(library.iterdir()) if library.is_dir() else ():
        name = path.name
        if name in _ALWAYS_PRESENT or name in owned or name.endswith((".dist-info", ".egg-info", ".egg", ".egg-link")):
            continue
        if path.is_dir() or name.endswith((".py", ".pth", ".so")):
            found.append(name)
    return found


def _owned_names(library: Path) -> set[str]:
    """First parts of all paths in the distributions' ``RECORD`` files."""
    names: set[str] = set()
    for record in library.glob("*.dist-info/RECORD"):
        with open(record, encoding="utf-8", errors="replace", newline="") as file:
            names |= {row[0].partition("/")[0] for row in csv.reader(file) if row}
    return names


def _new_modules(built: Path, context: InstallContext) -> list[str]:
    """Modules and packages, other than the project's own, that were added to the checkout's import roots."""
    found = []
    own_names = {name.partition(".")[0] for name in context.recipe.packages}
    for root in context.recipe.roots:
        folder = built / root
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            own = path.name.removesuffix(".py") in own_names or (context.sources / root / path.name).exists()
            is_module = path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
            if is_module and not own:
                found.append(path.name)
    return found
