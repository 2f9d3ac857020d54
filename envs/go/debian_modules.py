"""Modules that a project uses and does not bring along, taken from Debian's ``golang-*-dev`` packages.

Those of this machine, and, where these lack something, those of Debian's archive. They become a ``vendor`` folder over
the checkout, with those packages only that the project or its tests import, and without any of the project itself.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from excise.envs.debian_archive import DebianArchive
from excise.types import Repo

IN_PACKAGE = "usr/share/gocode/src"
"""Where Debian's packages put sources of Go."""
GOCODE = Path("/", IN_PACKAGE)
"""The same on this machine."""
_KIND = re.compile(r"golang-.+-dev")
"""Names of the packages with them."""
_IGNORED = re.compile(r"(?m)^//(?:go:build| ?\+build) ignore$")
"""What keeps a file out of its package."""
_IMPORTS = re.compile(r'(?m)^import\s+(?:[\w.]+\s+)?"([^"]+)"|^import\s*\(([^)]*)\)')
_QUOTED = re.compile(r'"([^"]+)"')
_REQUIRE = re.compile(r"(?m)^\s*(?:require\s+)?([\w.~-]+(?:\.[\w~-]+)+(?:/[\w.~-]+)*)\s+(v[\w.+-]+)")
_LANGUAGE = re.compile(r"(?m)^go (\d+\.\d+)")
_HOSTED_PARTS = 3
"""Parts of the path of a module on a forge: host, owner, name."""


@dataclass(slots=True)
class DebianModules:
    """The packages of others that a project uses."""

    requires: dict[str, str]
    """Path of each module that ``go.mod`` requires, to its version."""
    packages: dict[str, Path] = field(default_factory=dict)
    """Import path to the folder of its sources."""
    missing: tuple[str, ...] = ()
    """Import paths that the project itself uses and no package has."""

    def require_all(self) -> str:
        """Let a ``go.mod`` require every module; return the lines to add to it."""
        for package in self.packages:
            self.requires.setdefault(self._module_of(package), "")
        for path, version in self.requires.items():
            major = re.search(r"[./]v(\d+)$", path)
            self.requires[path] = version or f"v{major[1] if major else 0}.0.0"
        return "".join(f"require {path} {version}\n" for path, version in sorted(self.requires.items()))

    def lines(self) -> Iterator[str]:
        """The lines of ``vendor/modules.txt``."""
        by_module: dict[str, list[str]] = {path: [] for path in self.requires}
        for package in sorted(self.packages):
            by_module.setdefault(self._module_of(package), []).append(package)
        for module, packages in sorted(by_module.items()):
            yield f"# {module} {self.requires.get(module, 'v0.0.0')}"
            marks = ["explicit"] if module in self.requires else []
            marks += [f"go {version}"] if (version := self._language(packages)) else []
            if marks:
                yield f"## {'; '.join(marks)}"
            yield from packages

    def _language(self, packages: Sequence[str]) -> str:
        """The version of the language that the ``go.mod`` above a module's packages declares; empty without one."""
        for package in packages:
            folder = self.packages[package]
            for above in [folder, *folder.parents][: package.count("/") + 1]:
                if (above / "go.mod").is_file():
                    found = _LANGUAGE.search((above / "go.mod").read_text("utf-8", "replace"))
                    return found[1] if found else ""
        return ""

    def _module_of(self, package: str) -> str:
        named = [path for path in self.requires if package == path or package.startswith(f"{path}/")]
        if named:
            return max(named, key=len)
        parts = package.split("/")
        size = _HOSTED_PARTS if parts[0] in {"github.com", "gitlab.com", "golang.org", "bitbucket.org"} else 2
        return "/".join(parts[:size])

    def write(self, vendor: Path) -> str:
        """Write the folder ``vendor``; return a hash of its files."""
        digest = hashlib.sha256()
        for package, folder in sorted(self.packages.items()):
            target = vendor / package
            target.mkdir(parents=True, exist_ok=True)
            for file in _sources(folder):
                shutil.copyfile(file, target / file.name)
                digest.update(f"{package}/{file.name}\0".encode() + file.read_bytes())
        text = "\n".join(self.lines()) + "\n"
        (vendor / "modules.txt").write_text(text)
        digest.update(text.encode())
        return digest.hexdigest()


def find_modules(root: Path, repo: Repo, import_path: str, archive: DebianArchive) -> DebianModules:
    """Find what the project in ``root`` imports of others, and what that imports.

    Raises :class:`EnvironmentFailure` (``missing_dependency``) that names what neither this machine nor Debian's
    archive has.
    """
    found = modules_in((GOCODE,), root, import_path)
    if found.missing:
        names = {f"golang-{_debian_name(path)}-dev" for path in found.missing}
        unpacked = archive.unpacked(names | archive.build_dependencies(repo.source), _KIND)
        found = modules_in((GOCODE, *(each.root / IN_PACKAGE for each in unpacked)), root, import_path)
    if found.missing:
        names = {f"golang-{_debian_name(path)}-dev" for path in found.missing[:5]}
        raise archive.failure(
            f"The project imports {', '.join(found.missing[:5])}, which is neither in vendor/ nor installed, and "
            f"Debian's archive has it not under its usual name ({', '.join(sorted(names))}): bring it along (go mod "
            "vendor), or install Debian's package, if there is one."
        )
    return found


def modules_in(folders: Sequence[Path], root: Path, import_path: str) -> DebianModules:
    """What the project in ``root`` imports of others, and what that imports, as far as one of the folders has it."""
    manifest = root / "go.mod"
    text = manifest.read_text("utf-8", "replace") if manifest.is_file() else ""
    found = DebianModules({path: version for path, version in _REQUIRE.findall(text) if path != import_path})
    imported = set(_foreign(_imports_below(root), import_path))
    pending, missing = sorted(imported), set[str]()
    while pending:
        package = pending.pop()
        if package in found.packages or package in missing:
            continue
        folder = next((each / package for each in folders if any(_sources(each / package))), None)
        if folder is None:
            missing.add(package)
            continue
        found.packages[package] = folder
        pending += _foreign(_imports(_sources(folder)), import_path)
    return replace(found, missing=tuple(sorted(missing & imported)))


def _debian_name(path: str) -> str:
    host, *rest = path.split("/")
    return "-".join([host.rpartition(".")[0].replace(".", "-"), *rest[:2]]).lower()


def _foreign(imports: Iterable[str], import_path: str) -> Iterator[str]:
    """The imports that are neither of the standard library nor of the project."""
    for each in imports:
        own = each == import_path or each.startswith(f"{import_path}/")
        if "." in each.partition("/")[0] and not own:
            yield each


def _imports_below(root: Path) -> set[str]:
    """What the packages of the module in a folder import: Go leaves out folders by their names, and modules inside."""
    others = {path.parent for path in root.rglob("go.mod")} - {root}
    files = [path for path in root.rglob("*.go") if _is_of_package(path.relative_to(root))]
    return set(_imports(path for path in files if others.isdisjoint(path.parents)))


def _is_of_package(path: Path) -> bool:
    return not any(part in {"vendor", "testdata"} or part.startswith(("_", ".")) for part in path.parts)


def _imports(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        text = path.read_text("utf-8", "replace")
        if _IGNORED.search(text):
            continue
        for one, several in _IMPORTS.findall(text):
            yield from [one] if one else _QUOTED.findall(re.sub(r"//[^\n]*", "", several))


def _sources(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.glob("*") if path.is_file() and path.suffix in {".go", ".s", ".h"})
    return [path for path in found if not path.name.endswith("_test.go")]
