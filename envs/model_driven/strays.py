"""Modules that nobody installed: put straight into environment or checkout, they are mocks without a ledger."""

from __future__ import annotations

import csv
from pathlib import Path

from excise.envs.model_driven.install_context import Site
from excise.errors import EnvironmentFailure

_OURS = frozenset({"_virtualenv.py", "excise_mocks.pth", "__pycache__", "easy-install.pth"})


def require_honest(env: Path, built: Path, site: Site) -> None:
    """Raise :class:`EnvironmentFailure` (``source_modified``) for modules that no distribution brought."""
    major, minor = site.interpreter.minor
    library = env / "lib" / f"python{major}.{minor}" / "site-packages"
    found = stray_modules(library) + new_modules(built, site)
    if found:
        raise EnvironmentFailure(
            f"{site.repo.repo}: modules were put in place by hand: {', '.join(found[:10])}. Stand-ins are written by "
            "write_mock alone, so that it is known which tests use them.",
            reason="source_modified",
        )


def stray_modules(library: Path) -> list[str]:
    """Importable files and folders of ``site-packages`` that no distribution's list of files names."""
    owned = _owned(library)
    found = []
    for path in sorted(library.iterdir()) if library.is_dir() else ():
        name = path.name
        if name in _OURS or name in owned or name.endswith((".dist-info", ".egg-info", ".egg", ".egg-link")):
            continue
        if path.is_dir() or name.endswith((".py", ".pth", ".so")):
            found.append(name)
    return found


def _owned(library: Path) -> set[str]:
    """First parts of all paths in the distributions' ``RECORD`` files."""
    names: set[str] = set()
    for record in library.glob("*.dist-info/RECORD"):
        with open(record, encoding="utf-8", errors="replace", newline="") as file:
            names |= {row[0].partition("/")[0] for row in csv.reader(file) if row}
    return names


def new_modules(built: Path, site: Site) -> list[str]:
    """Modules and packages that an installation added where the checkout is imported from, beside the project's own."""
    found = []
    mine = {name.partition(".")[0] for name in site.recipe.packages}
    for root in site.recipe.roots:
        folder = built / root
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            own = path.name.removesuffix(".py") in mine or (site.sources / root / path.name).exists()
            is_module = path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
            if is_module and not own:
                found.append(path.name)
    return found
