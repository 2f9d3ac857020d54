"""Where a project keeps its packages: import roots and top-level import names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from excise.envs.manifests.manifest import Manifest

NOT_PACKAGES = frozenset(
    (
        *("test", "tests", "testing", "doc", "docs", "example", "examples", "sample", "samples", "demo", "demos"),
        *("bench", "benchmark", "benchmarks", "script", "scripts", "tool", "tools", "bin", "ci", "build", "dist"),
        *("requirements", "setup", "conftest", "noxfile", "tasks", "fabfile", "conf", "versioneer", "changelog"),
        *(
            "release",
            "packaging",
            "vendor",
            "third_party",
            "site",
            "perf",
            "profiling",
            "ci_tools",
            "utils",
            "__main__",
        ),
    )
)
"""Top-level names that are hardly ever what a project ships."""


def find_layout(root: Path, manifest: Manifest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(import roots inside the repository, import names that must resolve into it; dotted inside namespaces).

    What the build backend is told counts first; else folders with ``__init__.py`` and modules, those that are
    called like the project before all others.
    """
    roots = _roots(root, manifest)
    named = [name for name in manifest.packages if _where(root, roots, name) and name not in NOT_PACKAGES]
    if not named:
        named = [name for name in manifest.packages if _where(root, roots, name)]
    packages = named or _guess(root, roots, manifest.name)
    if not packages and manifest.has_extensions:  # nothing but compiled modules, which only the build makes
        packages = [name for name in manifest.packages if name not in NOT_PACKAGES]
    used = tuple(dict.fromkeys(where for name in packages for where in _where(root, roots, name)[:1]))
    whole = [inner for name in packages for inner in _without_namespaces(root, roots, name)]
    return used or roots, tuple(dict.fromkeys(whole))


def _without_namespaces(root: Path, roots: Iterable[str], name: str) -> list[str]:
    """The packages inside a namespace, which several distributions share; any other package itself."""
    top, *below = name.split(".")
    folder = next((root / where / top for where in _where(root, roots, top)), root).joinpath(*below)
    if not folder.is_dir() or folder == root or not _is_namespace(folder):
        return [name]
    inner = [
        entry.name
        for entry in sorted(folder.iterdir())
        if re.fullmatch(r"[A-Za-z_]\w*", entry.name) and any(entry.glob("**/*.py")) and entry.name not in NOT_PACKAGES
    ]
    return [found for child in inner for found in _without_namespaces(root, roots, f"{name}.{child}")] or [name]


def _is_namespace(folder: Path) -> bool:
    """No ``__init__.py`` and no module, or one that only says so in one of the two old ways."""
    init = folder / "__init__.py"
    if init.is_file():
        text = init.read_text(encoding="utf-8", errors="replace")
        return len(text) < 1500 and bool(re.search(r"declare_namespace|extend_path", text))
    return not any(folder.glob("*.py"))


def _roots(root: Path, manifest: Manifest) -> tuple[str, ...]:
    told = [Path(r).as_posix() for r in manifest.source_roots if (root / r).is_dir() and ".." not in Path(r).parts]
    usual = [name for name in ("src", "lib") if _modules(root / name) or _packages(root / name)]
    return tuple(dict.fromkeys([*told, *usual, "."]))


def _where(root: Path, roots: Iterable[str], name: str) -> list[str]:
    """The roots in which ``name`` can be imported from."""
    return [r for r in roots if (root / r / name).is_dir() or any((root / r).glob(f"{name}.py"))]


def _guess(root: Path, roots: tuple[str, ...], project: str) -> list[str]:
    wanted = _folded(project)
    for where in roots:
        folder = root / where
        present = [*_packages(folder), *_modules(folder)]
        shipped = [n for n in present if n.lower() not in NOT_PACKAGES]
        alike = [n for n in present if wanted and _folded(n) in (wanted, wanted.removeprefix("py"), f"py{wanted}")]
        if alike:
            return alike
        if where != "." and shipped:
            return shipped
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
