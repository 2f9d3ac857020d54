"""Libraries that this machine lacks, from Debian's archive: downloaded by apt, and unpacked into the cache.

Nothing is installed, no program of a package is run, and no root is needed. A project gets what it asks for, and what
apt says that this needs beside what the machine has: never what other projects asked for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from excise.errors import EnvironmentFailure, SourceError
from excise.system.apt import PackageLists, archive_entries
from excise.system.commands import run_command
from excise.system.folders import make_folder_once, temporary_folder_beside

logger = logging.getLogger(__name__)
MAX_BYTES = 300 << 20
"""Size in bytes of what is downloaded for one project, above which nothing is."""
MAX_NAMES = 2000
"""Number of names that are asked for at most: no project needs more, and a command line ends somewhere."""
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_OFFERED = re.compile(r"^'\S+' ([a-z0-9][a-z0-9+.-]+)_(\S+)_\S+\.deb (\d+)", re.MULTILINE)
"""A line of ``--print-uris``: name, version and size of a package."""
_UNKNOWN = re.compile(r"[Uu]nable to locate package (\S+)|Package '([^']+)' has no installation candidate")
_BROKEN = "held broken packages"
"""What apt says where a package needs another that the archive has not."""
_BUILD_DEPENDS = re.compile(r"^Build-Depends(?:-Indep|-Arch)?: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UnpackedPackage:
    """One package in the cache."""

    name: str
    """Its name."""
    version: str
    """Its version."""
    root: Path
    """The folder with its files: ``usr/share/…``, and ``DEBIAN/control``."""


class DebianArchive:
    """The archives of this machine's apt; their lists are fetched once a day, when they are first needed."""

    def __init__(self, cache: Path, entries: Callable[[str], Sequence[str]] = archive_entries) -> None:
        """``entries`` returns the lines of a ``sources.list``, for ``deb`` or ``deb-src``."""
        self._packages = PackageLists(cache / "debian-packages", partial(entries, "deb"))
        self._sources = PackageLists(cache / "debian", partial(entries, "deb-src"))
        self._problem = ""

    def unpacked(self, names: Iterable[str], kind: re.Pattern[str]) -> list[UnpackedPackage]:
        """Packages whose names match ``kind``, and those such that they need and this machine lacks; sorted.

        Names that the archive does not know are left out; the list is empty if apt cannot answer (:meth:`failure`).
        """
        try:
            asked = {name for name in names if _NAME.fullmatch(name) and kind.fullmatch(name)}
            offered = [each for each in self._offered(sorted(asked)[:MAX_NAMES]) if kind.fullmatch(each[0])]
            wanted = [(name, version) for name, version, _ in offered]
            if sum(size for _, _, size in offered) > MAX_BYTES:
                logger.warning("too many packages", extra={"packages": [name for name, _ in wanted]})
                return []
            return self._unpack(wanted)
        except SourceError as error:
            logger.info("no packages from the archive", extra={"detail": str(error)})
            answered = error.reason in {"no_apt", "no_archive"} or _BROKEN in str(error)
            self._problem = "" if answered else str(error)
            return []

    def failure(self, message: str) -> EnvironmentFailure:
        """What to raise for a library that no package has: ``missing_dependency``, or ``infra`` if the archive did not
        answer, so that it is asked again."""
        if self._problem:
            return EnvironmentFailure(f"{message} Debian's archive did not answer: {self._problem}", reason="infra")
        return EnvironmentFailure(message, reason="missing_dependency")

    def build_dependencies(self, source: str) -> set[str]:
        """Names of the packages that a pinned source, ``debsrc:name=1.2-3``, is built with; none for other sources."""
        kind, _, pinned = source.partition(":")
        name, _, version = pinned.partition("#")[0].partition("=")
        if kind != "debsrc" or not _NAME.fullmatch(name):
            return set()
        try:
            shown = self._sources.ask(["--only-source", "showsrc", name], program="apt-cache")
        except SourceError:
            return set()
        found = [entry for entry in shown.split("\n\n") if f"\nVersion: {version}\n" in f"{entry}\n"]
        lists = (line for entry in found for line in _BUILD_DEPENDS.findall(entry))
        return {
            re.split(r"[\s:(\[<]", each.strip(), maxsplit=1)[0] for text in lists for each in re.split(r"[,|]", text)
        }

    def _offered(self, names: list[str]) -> list[tuple[str, str, int]]:
        """Name, version and size of what apt would install for these names."""
        while names:
            try:
                words = ["install", "--print-uris", "--assume-yes", "--no-install-recommends", *names]
                printed = self._packages.ask(words)
            except SourceError as error:
                unknown = {one or other for one, other in _UNKNOWN.findall(str(error))}
                if not unknown.intersection(names):
                    raise
                names = [name for name in names if name not in unknown]
                continue
            return [(name, unquote(version), int(size)) for name, version, size in _OFFERED.findall(printed)]
        return []

    def _unpack(self, wanted: Sequence[tuple[str, str]]) -> list[UnpackedPackage]:
        folder = self._packages.root / "unpacked"
        found = [UnpackedPackage(name, version, folder / f"{name}_{version}") for name, version in sorted(wanted)]
        missing = [package for package in found if not package.root.is_dir()]
        if missing:
            with temporary_folder_beside(folder / "downloads") as work:
                self._packages.ask(["download", *(f"{each.name}={each.version}" for each in missing)], cwd=work)
                for each in missing:
                    [archive] = [path for path in work.iterdir() if path.name.startswith(f"{each.name}_")]
                    make_folder_once(each.root, partial(_extract, archive))
        return found


def _extract(archive: Path, folder: Path) -> None:
    """Unpack a package's files, and what it says of itself. Raises :class:`SourceError`."""
    done = run_command(["dpkg-deb", "--raw-extract", str(archive), str(folder)], timeout_s=600)
    if done.returncode != 0:
        raise SourceError(f"{archive.name}: {done.stderr.decode(errors='replace')}", reason="source_unavailable")
