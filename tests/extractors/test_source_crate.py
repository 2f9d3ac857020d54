"""Crates, packed and found by the real cargo, in a local registry and in a folder as Debian has them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from excise.errors import SourceError
from excise.extractors.fetch.source_crate import cargo_command
from excise.extractors.sources import resolve_source, source_of
from excise.protocols import Fetched
from excise.types import SourceSpec

FILES = {
    "Cargo.toml": '[package]\nname = "tiny-kit"\nversion = "%s"\nedition = "2021"\nlicense = "MIT"\n',
    "src/lib.rs": "pub fn one() -> u8 {\n    1\n}\n",
    "tests/one.rs": "#[test]\nfn one() {\n    assert_eq!(tiny_kit::one(), 1);\n}\n",
}


@dataclass
class Registry:
    """A registry in files that the configuration of cargo names."""

    root: Path
    entries: list[dict[str, object]] = field(default_factory=list)

    def publish(self, version: str, *, yanked: bool = False) -> Path:
        """Pack a version with cargo, and list it."""
        work = self.root / "work"
        for path, text in FILES.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text % version if path == "Cargo.toml" else text)
        command = [*cargo_command(), "package", "--offline", "--no-verify", "--allow-dirty", "--quiet"]
        subprocess.run(command, cwd=work, check=True, capture_output=True)
        archive = self.root / f"tiny-kit-{version}.crate"
        (work / "target/package" / archive.name).rename(archive)
        cksum = hashlib.sha256(archive.read_bytes()).hexdigest()
        entry = {"name": "tiny-kit", "vers": version, "deps": [], "cksum": cksum, "features": {}, "yanked": yanked}
        self.entries.append(entry)
        page = self.root / "index/ti/ny/tiny-kit"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join(map(json.dumps, self.entries)))
        return archive


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    (tmp_path / "registry").mkdir()
    configure('near = { local-registry = "registry" }', tmp_path, monkeypatch)
    return Registry(tmp_path / "registry")


def configure(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cargo take crates from a source called ``near``."""
    home = tmp_path / "cargo"
    home.mkdir()
    (home / "config.toml").write_text(f'[source]\ncrates-io = {{ replace-with = "near" }}\n{source}\n')
    monkeypatch.setenv("CARGO_HOME", str(home))


def fetch(spec: str, tmp_path: Path) -> Fetched:
    source, cache = resolve_source(SourceSpec(spec=spec)), tmp_path / "cache"
    pinned = source.resolve(SourceSpec(spec=spec), cache)
    return source_of(pinned).fetch(pinned, cache, tmp_path / "into")


def test_the_newest_version_of_a_crate(registry: Registry, tmp_path: Path) -> None:
    """Neither a yanked one nor a pre-release, without what cargo adds."""
    for version in ("0.9.0", "0.10.0", "1.0.0-beta.1"):
        registry.publish(version)
    registry.publish("0.11.0", yanked=True)
    fetched = fetch("crate:tiny-kit", tmp_path)
    repo = fetched.repo
    assert (repo.source, repo.version, repo.license) == ("crate:tiny-kit@0.10.0", "0.10.0", "MIT")
    files = {path.relative_to(fetched.root).as_posix() for path in fetched.root.rglob("*") if path.is_file()}
    assert files - {"Cargo.lock"} == FILES.keys()

    (tmp_path / "into").rename(tmp_path / "before")
    assert fetch("crate:tiny-kit@1.0.0-beta.1", tmp_path).repo.version == "1.0.0-beta.1"


def test_a_crate_with_another_hash_is_refused(registry: Registry, tmp_path: Path) -> None:
    registry.publish("1.0.0").write_bytes(b"other")
    with pytest.raises(SourceError, match="checksum"):
        fetch("crate:tiny-kit", tmp_path)


@pytest.mark.parametrize(
    ("spec", "reason", "said"),
    [
        ("crate:nothing-here", "source_unavailable", "error: .*nothing-here"),
        ("crate:tiny-kit@9.0.0", "source_unavailable", "cargo cannot get tiny-kit =9.0.0: error: "),
        ("crate:tiny-kit@^1", "bad_source", "write crate:name or crate:name@1.2.3"),
        ("crate:../x", "bad_source", "write crate:name"),
    ],
)
def test_what_the_registry_does_not_have(registry: Registry, tmp_path: Path, spec: str, reason: str, said: str) -> None:
    registry.publish("1.0.0")
    with pytest.raises(SourceError, match=said) as caught:
        fetch(spec, tmp_path)
    assert caught.value.reason == reason


def test_crates_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, version in (("tiny-kit-1.2.0", "1.2.0"), ("tiny-kit", "1.10.0")):
        for path, text in {**FILES, ".cargo-checksum.json": '{"files": {}}'}.items():
            (tmp_path / "crates" / folder / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "crates" / folder / path).write_text(text % version if path == "Cargo.toml" else text)
    configure('near = { directory = "crates" }', tmp_path, monkeypatch)
    fetched = fetch("crate:tiny-kit", tmp_path)
    assert (fetched.repo.source, fetched.repo.version) == ("crate:tiny-kit@1.10.0", "1.10.0")
    assert not (fetched.root / ".cargo-checksum.json").exists()


def test_a_crate_that_depends_on_another_version_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = '[dependencies.older]\npackage = "tiny-kit"\nversion = "1"\n'
    for version, more in (("1.2.0", ""), ("2.0.0", older)):
        for path, text in {**FILES, ".cargo-checksum.json": '{"files": {}}'}.items():
            (tmp_path / "crates" / version / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "crates" / version / path).write_text(text % version + more if path == "Cargo.toml" else text)
    configure('near = { directory = "crates" }', tmp_path, monkeypatch)
    assert fetch("crate:tiny-kit", tmp_path).repo.version == "2.0.0"


def test_rustup_without_a_toolchain_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("cargo", "rustc"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho 'no default is configured' >&2\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "registry").mkdir()
    configure('near = { local-registry = "registry" }', tmp_path, monkeypatch)
    Registry(tmp_path / "registry").publish("1.0.0")
    assert fetch("crate:tiny-kit", tmp_path).repo.version == "1.0.0"
