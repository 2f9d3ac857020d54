"""Crates that Debian's ``librust-*-dev`` packages have put on this machine."""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path

from excise.errors import EnvironmentFailure

REGISTRY = Path("/usr/share/cargo/registry")
"""Where the packages put sources of crates: ``NAME-VERSION``."""
_FOLDER = re.compile(r"(.+)-(\d+(?:\.\d+)*[\w.+~-]*)")
_CHECKSUM = ".cargo-checksum.json"
"""What cargo wants in every folder of a registry."""


def available_crates(registry: Path = REGISTRY) -> frozenset[str]:
    """Names of the packages on this machine."""
    if not registry.is_dir():
        return frozenset()
    found = (_FOLDER.fullmatch(path.name) for path in registry.iterdir())
    return frozenset(match[1] for match in found if match)


def locked_crates(lock: str) -> list[tuple[str, str]]:
    """(name, version) of the packages of others in a ``Cargo.lock``, sorted."""
    packages = tomllib.loads(lock).get("package", [])
    return sorted((str(each["name"]), str(each["version"])) for each in packages if "source" in each)


def copy_crates(crates: Iterable[tuple[str, str]], target: Path, registry: Path = REGISTRY) -> dict[str, str]:
    """Copy crates into the folder ``target``; return ``name==version`` to the hash of each one's files.

    Raises :class:`EnvironmentFailure` (``missing_dependency``).
    """
    hashes = {}
    for name, version in crates:
        source = registry / f"{name}-{version}"
        if not source.is_dir():
            raise EnvironmentFailure(f"{source} is not there.", reason="missing_dependency")
        folder = target / source.name
        digest = hashlib.sha256()
        for path in sorted(source.rglob("*")):
            relative = path.relative_to(source)
            if path.is_file() and relative.parts[0] not in {"tests", "benches", "examples", ".github", "debian"}:
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / relative)
                digest.update(f"{relative.as_posix()}\0".encode() + path.read_bytes())
        if not (folder / _CHECKSUM).is_file():
            raise EnvironmentFailure(f"{source} has no {_CHECKSUM}.", reason="missing_dependency")
        hashes[f"{name}=={version}"] = f"sha256:{digest.hexdigest()}"
    return hashes
