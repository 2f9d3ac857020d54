"""A small archive of Debian packages in files, which the real apt reads."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from excise.envs.debian_archive import DebianArchive


def make_package(archive: Path, name: str, files: Mapping[str, str | bytes], depends: str = "") -> None:
    """Add a package to the archive, a folder."""
    root = archive / "roots" / name
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode() if isinstance(text, str) else text)
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1:2.0-1\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: x\n"
    control += f"Depends: {depends}\n" if depends else ""
    (root / "DEBIAN/control").write_text(control)
    built = archive / f"{name}_2.0-1_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, built], check=True, capture_output=True)
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    with (archive / "Packages").open("a") as listed:
        listed.write(f"{control}Filename: ./{built.name}\nSize: {built.stat().st_size}\nSHA256: {digest}\n\n")


def archive_of(archive: Path, cache: Path) -> DebianArchive:
    """The archive in a folder, which may be empty."""
    archive.mkdir(exist_ok=True)
    for name in ("Packages", "Sources"):
        (archive / name).touch()
    return DebianArchive(cache, lambda kind: [f"{kind} [trusted=yes] file:{archive} ./"])
