"""Source of crates: cargo finds, downloads, checks and unpacks them, from the registry that it is configured for.

Nothing of a crate is run: cargo reads the description of an empty project that depends on it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from excise.errors import SourceError
from excise.extractors.fetch.downloads import run_registry_tool
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.trees import copy_files, list_files
from excise.protocols import Fetched
from excise.system.commands import CommandTimeout, run_command
from excise.types import SourceSpec

_PREFIX = "crate:"
_SPEC = re.compile(r"crate:([A-Za-z][\w-]*)(?:@(\d+\.\d+\.\d+[\w.\-+]*))?", re.ASCII)
_MADE_BY_CARGO = frozenset({"Cargo.toml.orig", ".cargo_vcs_info.json", ".cargo-checksum.json", ".cargo-ok"})
_PROJECT = """\
[package]
name = "excise-asks-for-it"
version = "0.0.0"
edition = "2018"

[lib]
path = "lib.rs"

[workspace]

[dependencies.wanted]
package = "{name}"
version = "{version}"
default-features = false
"""
_DEBIAN = "/usr/bin"
_TIMEOUT_S = 600.0
"""Time limit of one call of cargo, which downloads what the crate depends on, too."""


class CrateSource:
    """``crate:name`` (the newest version that is neither yanked nor a pre-release), ``crate:name@1.2.3``.

    Pinned: the latter.
    """

    name = "crate"

    def matches(self, spec: SourceSpec) -> bool:
        """``crate:…``."""
        return spec.spec.startswith(_PREFIX)

    def resolve(self, spec: SourceSpec, cache: Path) -> str:  # noqa: ARG002
        """Have cargo choose the version; one that is given needs no request.

        Raises :class:`SourceError` (``source_unavailable``, ``bad_source``).
        """
        name, version = _parsed(spec.spec)
        return with_subdir(f"{_PREFIX}{name}@{version or _found(name, '*')[0]}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:  # noqa: ARG002
        """Copy the files of the crate that the authors wrote from where cargo has them."""
        name, version = _parsed(split_subdir(pinned)[0])
        if not version:
            raise SourceError(f"{pinned} is not pinned; write {_PREFIX}name@1.2.3", reason="bad_source")
        folder = _found(name, f"={version}")[1]
        with staging(pinned, into) as root:
            copy_files(folder, [path for path in list_files(folder) if path not in _MADE_BY_CARGO], root)
            clean_export(root)
        return record_snapshot(into, SourceFacts(source=pinned, name=name, version=version))


def cargo_command() -> list[str]:
    """The words that start the path's cargo, or Debian's with its rustc if that is rustup's, without a toolchain."""
    with suppress(OSError, CommandTimeout):
        if (
            run_command(["cargo", "--version"], timeout_s=_TIMEOUT_S).returncode != 0
            and Path(_DEBIAN, "cargo").exists()
        ):
            return ["/usr/bin/env", f"PATH={_DEBIAN}:/bin", "cargo"]
    return ["cargo"]


def _parsed(spec: str) -> tuple[str, str]:
    found = _SPEC.fullmatch(split_subdir(spec)[0])
    if found is None:
        raise SourceError(f"{spec!r}: write {_PREFIX}name or {_PREFIX}name@1.2.3", reason="bad_source")
    return found[1], found[2] or ""


def _found(name: str, requirement: str) -> tuple[str, Path]:
    """The version of a crate that meets a requirement, and the folder of its files. Raises :class:`SourceError`."""
    with TemporaryDirectory(prefix="excise-crate-") as folder:
        Path(folder, "Cargo.toml").write_text(_PROJECT.format(name=name, version=requirement), encoding="utf-8")
        Path(folder, "lib.rs").touch()
        line = [*cargo_command(), "metadata", "--format-version", "1"]
        done = run_registry_tool(line, cwd=Path(folder), packages="cargo", timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        printed = done.stderr.decode(errors="replace")
        said = " ".join(printed[max(0, printed.find("error:")) :].split())[:400]
        raise SourceError(f"cargo cannot get {name} {requirement}: {said}", reason="source_unavailable")
    found = json.loads(done.stdout)
    root = next(node for node in found["resolve"]["nodes"] if node["id"] == found["resolve"]["root"])
    for package in found["packages"]:
        if package["id"] in root["dependencies"]:  # it may depend on another version of itself
            return str(package["version"]), Path(package["manifest_path"]).parent
    raise SourceError(f"cargo has no {name} {requirement}", reason="source_unavailable")
