"""Crates of Debian's ``librust-*-dev`` packages: this machine's, and, where it lacks one, those of the archive."""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from excise.envs.debian_archive import DebianArchive
from excise.envs.rust.manifests import Table
from excise.errors import EnvironmentFailure
from excise.types import Repo

IN_PACKAGE = "usr/share/cargo/registry"
"""Where the packages put sources of crates: ``NAME-VERSION``."""
REGISTRY = Path("/", IN_PACKAGE)
"""The same on this machine."""
_KIND = re.compile(r"librust-.+-dev")
"""Names of the packages with them."""
_FOLDER = re.compile(r"(.+)-(\d+(?:\.\d+)*[\w.+~-]*)")
_CHECKSUM = ".cargo-checksum.json"
"""What cargo wants in every folder of a registry."""


def available_crates(registries: Iterable[Path]) -> frozenset[str]:
    """Names of the packages in some folders."""
    paths = (path for registry in registries if registry.is_dir() for path in registry.iterdir())
    return frozenset(match[1] for path in paths if (match := _FOLDER.fullmatch(path.name)))


def registries_for(needed: Mapping[str, Table], repo: Repo, archive: DebianArchive) -> tuple[Path, ...]:
    """Folders with the crates that a project ``needed``: name to its description in ``Cargo.toml``.

    This machine's, and those that are unpacked from Debian's archive.
    """
    wanted = {name for crate, description in needed.items() for name in _debian_names(crate, description)}
    unpacked = archive.unpacked(wanted | archive.build_dependencies(repo.source), _KIND)
    return REGISTRY, *(each.root / IN_PACKAGE for each in unpacked)


def _debian_names(crate: str, description: Table) -> Iterator[str]:
    """Names of the packages that may have a crate in the wanted version, with the wanted features."""
    name = str(description.get("package", crate)).lower().replace("_", "-")
    numbers = re.match(r"\D*(\d+)(?:\.(\d+))?", str(description.get("version", "")))
    versions = ["", *([f"-{numbers[1]}", *([f"-{numbers[1]}.{numbers[2]}"] if numbers[2] else [])] if numbers else [])]
    features = [f"+{feature}".lower().replace("_", "-") for feature in description.get("features", ())]
    if description.get("default-features", description.get("default_features", True)):
        features.append("+default")
    for version in versions:
        for feature in ("", *features):
            yield f"librust-{name}{version}{feature}-dev"


def locked_crates(lock: str) -> list[tuple[str, str]]:
    """(name, version) of the packages of others in a ``Cargo.lock``, sorted."""
    packages = tomllib.loads(lock).get("package", [])
    return sorted((str(each["name"]), str(each["version"])) for each in packages if "source" in each)


def copy_crates(crates: Iterable[tuple[str, str]], target: Path, registries: Sequence[Path]) -> dict[str, str]:
    """Copy crates into the folder ``target``; return ``name==version`` to the hash of each one's files.

    Raises :class:`EnvironmentFailure` (``missing_dependency``).
    """
    hashes = {}
    for name, version in crates:
        folders = [registry / f"{name}-{version}" for registry in registries]
        source = next((folder for folder in folders if folder.is_dir()), None)
        if source is None:
            raise EnvironmentFailure(f"{folders[0]} is not there.", reason="missing_dependency")
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
