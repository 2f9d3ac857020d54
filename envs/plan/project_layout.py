"""Finds a project's import roots and its top-level packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from excise.envs.manifests.manifest import Manifest

NOT_PACKAGES = frozenset({
    "__main__", "bench", "benchmark", "benchmarks", "bin", "build", "changelog", "ci", "ci_tools", "conf",
    "conftest", "demo", "demos", "dist", "doc", "docs", "example", "examples", "fabfile", "noxfile", "packaging",
    "perf", "profiling", "release", "requirements", "sample", "samples", "script", "scripts", "setup", "site",
    "tasks", "test", "testing", "tests", "third_party", "tool", "tools", "utils", "vendor", "versioneer",
})  # fmt: skip
"""Top-level names that are rarely packages of the project."""


def find_layout(root: Path, manifest: Manifest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (import roots inside the repository, import names of its packages; dotted inside namespaces).

    Packages named in the build configuration come first; else folders with ``__init__.py`` and modules, preferably
    those with the project's name.
    """
    roots = _roots(root, manifest)
    named = [name for name in manifest.packages if _roots_with(root, roots, name) and name not in NOT_PACKAGES]
    if not named:
        named = [name for name in manifest.packages if _roots_with(root, roots, name)]
    packages = named or _guess_packages(root, roots, manifest.name)
    if not packages and manifest.has_extensions:  # only compiled modules, which the build makes
        packages = [name for name in manifest.packages if name not in NOT_PACKAGES]
    used = tuple(dict.fromkeys(r for name in packages for r in _roots_with(root, roots, name)[:1]))
    whole = [inner for name in packages for inner in _without_namespaces(root, roots, name)]
    return used or roots, tuple(dict.fromkeys(whole))


def _without_namespaces(root: Path, roots: Iterable[str], name: str) -> list[str]:
    """Return the packages in a namespace package, which other distributions may extend; any other package unchanged."""
    top, *below = name.split(".")
    folder = next((root / where / top for where in _roots_with(root, roots, top)), root).joinpath(*below)
    if not folder.is_dir() or folder == root or not _is_namespace(folder):
        return [name]
    inner = [
        entry.name
        for entry in sorted(folder.iterdir())
        if re.fullmatch(r"[A-Za-z_]\w*", entry.name) and any(entry.glob("**/*.py")) and entry.name not in NOT_PACKAGES
    ]
    return [found for child in inner for found in _without_namespaces(root, roots, f"{name}.{child}")] or [name]


def _is_namespace(folder: Path) -> bool:
    """Whether this is a namespace package: no ``__init__.py`` and no module, or one of the two old declarations."""
    init = folder / "__init__.py"
    if init.is_file():
        text = init.read_text(encoding="utf-8", errors="replace")
        return len(text) < 1500 and bool(re.search(r"declare_namespace|extend_path", text))
    return not any(folder.glob("*.py"))


def _roots(root: Path, manifest: Manifest) -> tuple[str, ...]:
    declared = [Path(r).as_posix() for r in manifest.source_roots if (root / r).is_dir() and ".." not in Path(r).parts]
    common = [name for name in ("src", "lib") if _modules(root / name) or _packages(root / name)]
    return tuple(dict.fromkeys([*declared, *common, "."]))


def _roots_with(root: Path, roots: Iterable[str], name: str) -> list[str]:
    """The roots from which ``name`` can be imported."""
    return [r for r in roots if (root / r / name).is_dir() or any((root / r).glob(f"{name}.py"))]


def _guess_packages(root: Path, roots: tuple[str, ...], project: str) -> list[str]:
    folded = _folded(project)
    for where in roots:
        folder = root / where
        present = [*_packages(folder), *_modules(folder)]
        candidates = [n for n in present if n.lower() not in NOT_PACKAGES]
        same_name = [n for n in present if folded and _folded(n) in (folded, folded.removeprefix("py"), f"py{folded}")]
        if same_name:
            return same_name
        if where != "." and candidates:
            return candidates
    packages = [n for n in _packages(root) if n.lower() not in NOT_PACKAGES]
    return packages or [n for n in _modules(root) if n.lower() not in NOT_PACKAGES and not _is_test(n)]


def _packages(folder: Path) -> list[str]:
    """Folders with ``__init__.py``; inside ``src`` also namespace packages."""
    if not folder.is_dir():
        return []
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and re.fullmatch(r"[A-Za-z_]\w*", entry.name):
            namespace = folder.name in ("src", "lib") and any(entry.glob("*/__init__.py"))
            if (entry / "__init__.py").is_file() or namespace:
                found.append(entry.name)
    return found


def _modules(folder: Path) -> list[str]:
    return (
        sorted(p.stem for p in folder.glob("*.py") if re.fullmatch(r"[A-Za-z_]\w*", p.stem)) if folder.is_dir() else []
    )


def _is_test(name: str) -> bool:
    return name.startswith("test_") or name.endswith("_test")


def _folded(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower().removeprefix("python")
