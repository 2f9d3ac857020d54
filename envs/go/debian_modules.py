"""Modules that a project uses and does not bring along, taken from Debian's ``golang-*-dev`` packages on this machine.

They become a ``vendor`` folder over the checkout, with those packages only that the project or its tests import, and
without any of the project itself.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from excise.errors import EnvironmentFailure

GOCODE = Path("/usr/share/gocode/src")
"""Where Debian's packages put sources of Go."""
_IMPORTS = re.compile(r'(?m)^import\s+(?:[\w.]+\s+)?"([^"]+)"|^import\s*\(([^)]*)\)')
_QUOTED = re.compile(r'"([^"]+)"')
_REQUIRE = re.compile(r"(?m)^\s*(?:require\s+)?([\w.~-]+(?:\.[\w~-]+)+(?:/[\w.~-]+)*)\s+(v[\w.+-]+)")
_HOSTED_PARTS = 3
"""Parts of the path of a module on a forge: host, owner, name."""


@dataclass(slots=True)
class DebianModules:
    """The packages of others that a project uses."""

    requires: dict[str, str]
    """Path of each module that ``go.mod`` requires, to its version."""
    packages: dict[str, Path] = field(default_factory=dict)
    """Import path to the folder of its sources on this machine."""

    def lines(self) -> Iterator[str]:
        """The lines of ``vendor/modules.txt``."""
        by_module: dict[str, list[str]] = {path: [] for path in self.requires}
        for package in sorted(self.packages):
            by_module.setdefault(self._module_of(package), []).append(package)
        for module, packages in sorted(by_module.items()):
            yield f"# {module} {self.requires.get(module, 'v0.0.0')}"
            if module in self.requires:
                yield "## explicit"
            yield from packages

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


def find_modules(root: Path, import_path: str, gocode: Path = GOCODE) -> DebianModules:
    """Find what the project in ``root`` imports of others, and what that imports.

    Raises :class:`EnvironmentFailure` (``missing_dependency``) that names what this machine has not.
    """
    manifest = root / "go.mod"
    text = manifest.read_text("utf-8", "replace") if manifest.is_file() else ""
    found = DebianModules({path: version for path, version in _REQUIRE.findall(text) if path != import_path})
    pending = list(_foreign(_imports_below(root), import_path))
    missing: set[str] = set()
    while pending:
        package = pending.pop()
        if package in found.packages or package in missing:
            continue
        folder = gocode / package
        if not any(_sources(folder)):
            missing.add(package)
            continue
        found.packages[package] = folder
        pending += _foreign(_imports(_sources(folder)), import_path)
    needed = sorted(missing & set(_foreign(_imports_below(root), import_path)))
    if needed:
        names = ", ".join(f"golang-{_debian_name(path)}-dev" for path in needed[:5])
        raise EnvironmentFailure(
            f"The project imports {', '.join(needed[:5])}, which is neither in vendor/ nor installed: bring it along "
            f"(go mod vendor), or install Debian's package, if there is one (perhaps {names}).",
            reason="missing_dependency",
        )
    return found


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
    files = [path for path in root.rglob("*.go") if not {"vendor", "testdata"} & set(path.relative_to(root).parts)]
    return set(_imports(files))


def _imports(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        text = path.read_text("utf-8", "replace")
        for one, several in _IMPORTS.findall(text):
            yield from [one] if one else _QUOTED.findall(re.sub(r"//[^\n]*", "", several))


def _sources(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.glob("*") if path.is_file() and path.suffix in {".go", ".s", ".h"})
    return [path for path in found if not path.name.endswith("_test.go")]
