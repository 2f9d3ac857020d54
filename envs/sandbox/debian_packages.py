"""The installed packages of a Debian system, read from dpkg's own database: dependencies, files, owners of files.

Packages that were unpacked elsewhere can be added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

DATABASE = Path("/var/lib/dpkg")
_FIELD = re.compile(r"^([A-Z][\w-]*): (.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package."""

    name: str
    """Its name, without the architecture."""
    version: str
    """Its version."""
    architecture: str
    """``amd64``; ``all`` if it suits every machine."""
    depends: tuple[tuple[str, ...], ...]
    """Its dependencies; each tuple lists alternatives, of which one is needed."""
    essential: bool
    """Whether every Debian system has it."""
    stanza: str
    """Its entry in dpkg's status file."""


class DebianPackages:
    """The packages installed on this machine, and those ``unpacked`` in the folders of these names; read at the first
    use."""

    def __init__(self, database: Path = DATABASE, unpacked: Mapping[str, Path] | None = None) -> None:
        self.database, self.unpacked = database, dict(unpacked or {})

    def and_unpacked(self, unpacked: Mapping[str, Path]) -> DebianPackages:
        """These packages and others, by their names, each in its folder with ``DEBIAN/control`` beside the files."""
        return DebianPackages(self.database, {**self.unpacked, **unpacked})

    @cached_property
    def installed(self) -> dict[str, Package]:
        """Name to package; empty on systems without dpkg."""
        try:
            status = (self.database / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return {}
        found = [_package(stanza) for stanza in status.split("\n\n")]
        for root in self.unpacked.values():
            stanza = (root / "DEBIAN/control").read_text(encoding="utf-8", errors="replace")
            found.append(_package(f"{stanza.rstrip()}\nStatus: unpacked, as good as installed"))
        return {package.name: package for package in found if package is not None}

    @cached_property
    def _providers(self) -> dict[str, str]:
        """Virtual package to the name of an installed package that provides it."""
        found: dict[str, str] = {}
        for package in self.installed.values():
            for group in _names(dict(_FIELD.findall(package.stanza)).get("Provides", "")):
                found.setdefault(group[0], package.name)
        return found

    def closure(self, names: Iterable[str]) -> list[Package]:
        """The installed ones of the named packages, and all installed packages that they depend on, by name.

        Essential packages are always among them, since no package declares that it depends on those.
        """
        found: dict[str, Package] = {}
        waiting = [*names, *(name for name, package in self.installed.items() if package.essential)]
        while waiting:
            name = waiting.pop()
            package = self.installed.get(name) or self.installed.get(self._providers.get(name, ""))
            if package is not None and package.name not in found:
                found[package.name] = package
                waiting += (self._chosen(group) for group in package.depends)
        return [found[name] for name in sorted(found)]

    def _chosen(self, alternatives: tuple[str, ...]) -> str:
        """The first installed one of alternative dependencies; empty if none is."""
        present = (name for name in alternatives if name in self.installed or name in self._providers)
        return next(present, "")

    def files(self, name: str) -> list[str]:
        """Paths of a package's files and folders, as dpkg lists them."""
        package = self.installed[name]
        for file in (f"{name}.list", f"{name}:{package.architecture}.list"):
            try:
                text = (self.database / "info" / file).read_text(encoding="utf-8", errors="surrogateescape")
            except OSError:
                continue
            return text.splitlines()
        return []

    def paths_in(self, name: str, folder: str) -> list[Path]:
        """Paths of a package's files and folders that lie in ``folder`` itself: ``/usr/share/java``."""
        if name in self.unpacked:
            return sorted((self.unpacked[name] / folder.strip("/")).glob("*"))
        return [Path(path) for path in self.files(name) if path.rpartition("/")[0] == folder.rstrip("/")]

    @cached_property
    def _owners(self) -> dict[str, str]:
        """Name of a library's file to the package that it belongs to."""
        libraries = (
            (path.rpartition("/")[2], name) for name in self.installed for path in self.files(name) if ".so" in path
        )
        return dict(libraries)

    def owner_of_library(self, path: Path) -> str:
        """The package that a shared library belongs to; empty if it belongs to none."""
        return self._owners.get(path.name, "") or self._owners.get(path.resolve().name, "")


def _package(stanza: str) -> Package | None:
    """Parse one entry of the status file; None for a package that is not installed."""
    fields = dict(_FIELD.findall(stanza))
    if not fields.get("Status", "").endswith(" installed"):
        return None
    return Package(
        name=fields["Package"],
        version=fields.get("Version", ""),
        architecture=fields.get("Architecture", ""),
        depends=(*_names(fields.get("Pre-Depends", "")), *_names(fields.get("Depends", ""))),
        essential=fields.get("Essential") == "yes",
        stanza=stanza,
    )


def _names(field: str) -> list[tuple[str, ...]]:
    """Parse a list of dependencies, ``a (>= 1) | b, c:any``, into the names of each group of alternatives."""
    groups = (group.split("|") for group in field.replace("\n", " ").split(",") if group.strip())
    return [tuple(re.split(r"[\s:(]", name.strip(), maxsplit=1)[0] for name in group) for group in groups]
