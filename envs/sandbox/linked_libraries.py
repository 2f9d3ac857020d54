"""The shared libraries that compiled files link to, and where the host has them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from excise.system.commands import CommandTimeout, run_command

_SHARED = re.compile(r"\.so(\.[\w.]+)?$")
_LISTED = re.compile(r"^\s*(\S+) \(.*\) => (/\S+)$", re.MULTILINE)


def needed_libraries(places: Iterable[Path]) -> frozenset[str]:
    """Names of the libraries (``libz.so.1``) that files link to, without those that lie in the places themselves.

    ``places`` are compiled files, and folders in which all shared objects are read.
    """
    needed: set[str] = set()
    present: set[str] = set()
    for path in _compiled_files(places):
        present.add(path.name)
        needed |= _needed(path)
    return frozenset(needed - present)


def _compiled_files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            for folder, _, names in os.walk(place):
                yield from (Path(folder, name) for name in names if _SHARED.search(name))
        elif place.is_file():
            yield place


def _needed(path: Path) -> set[str]:
    """The ``DT_NEEDED`` entries of an ELF file; empty for other files."""
    from elftools.common.exceptions import ELFError  # here: most processes find the answer in the cache
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".dynamic")
            if section is None or not hasattr(section, "iter_tags"):
                return set()
            return {str(tag.needed) for tag in section.iter_tags("DT_NEEDED")}
    except (OSError, ELFError, ValueError, UnicodeDecodeError):
        return set()


def find_libraries(names: Iterable[str]) -> dict[str, Path]:
    """Name to path of the libraries that the dynamic linker of this machine finds."""
    known = _linker_cache()
    return {name: known[name] for name in sorted(names) if name in known}


@cache
def _linker_cache() -> dict[str, Path]:
    """Name to path of each library in the dynamic linker's cache; the first one counts, as for the linker."""
    ldconfig = next((path for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if os.path.exists(path)), "ldconfig")
    try:
        listed = run_command([ldconfig, "-p"], timeout_s=60).stdout.decode(errors="replace")
    except (OSError, CommandTimeout):
        return {}
    found: dict[str, Path] = {}
    for name, path in _LISTED.findall(listed):
        folder, _, file = path.rpartition("/")
        found.setdefault(name, Path(os.path.realpath(folder), file))  # /lib is a link to /usr/lib
    return found
