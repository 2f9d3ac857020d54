"""Debian source packages, from a small archive in files that the real apt reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from excise.errors import SourceError
from excise.extractors.fetch.source_debian import DebianSource, system_entries
from excise.extractors.sources import resolve_source
from excise.types import SourceSpec

from .test_sources import FILES, make_tar


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with two versions of one source package."""
    root = tmp_path / "archive"
    root.mkdir()
    entries = []
    for version in ("1.4", "1.10"):
        files = {f"demo-{version}/{path}": text.replace("1.4", version) for path, text in FILES.items()}
        make_tar(root / f"demo_{version}.orig.tar.gz", files)
        make_tar(root / f"demo_{version}-1.debian.tar.gz", {"debian/rules": "exit 1"})
        names = [f"demo_{version}.orig.tar.gz", f"demo_{version}-1.debian.tar.gz"]
        (root / f"demo_{version}-1.dsc").write_text(_control(root, version, names, "Source"))
        entries.append(_control(root, version, [*names, f"demo_{version}-1.dsc"], "Package") + "Directory: .\n")
    (root / "Sources").write_text("\n".join(entries))
    return root


def _control(root: Path, version: str, names: list[str], first: str) -> str:
    lines = [f" {hashlib.sha256((root / n).read_bytes()).hexdigest()} {(root / n).stat().st_size} {n}" for n in names]
    head = f"{first}: demo\nFormat: 3.0 (quilt)\nBinary: demo, libdemo-java\nArchitecture: all\nVersion: {version}-1\n"
    return head + "Checksums-Sha256:\n" + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def source(archive: Path) -> DebianSource:
    return DebianSource(lambda: [f"deb-src [trusted=yes] file:{archive} ./"])


def test_the_newest_version_is_pinned_and_only_the_original_is_unpacked(source: DebianSource, tmp_path: Path) -> None:
    spec = SourceSpec(spec="debsrc:demo")
    pinned = source.resolve(spec, tmp_path / "cache")
    assert pinned == "debsrc:demo=1.10-1", "1.10 is newer than 1.4"
    fetched = source.fetch(pinned, tmp_path / "cache", tmp_path / "into")
    assert {str(p.relative_to(tmp_path / "into")) for p in (tmp_path / "into").rglob("*") if p.is_file()} == set(FILES)
    assert (fetched.repo.repo, fetched.repo.version, fetched.repo.source) == ("demo-kit", "1.10", pinned)


def test_an_earlier_version_comes_from_the_cache_the_second_time(
    source: DebianSource, archive: Path, tmp_path: Path
) -> None:
    first = source.fetch("debsrc:demo=1.4-1", tmp_path / "cache", tmp_path / "one")
    (archive / "demo_1.4.orig.tar.gz").unlink()
    second = source.fetch("debsrc:demo=1.4-1", tmp_path / "cache", tmp_path / "two")
    assert first.repo.tree == second.repo.tree
    assert second.repo.version == "1.4"


def test_only_the_original_archive_need_be_there(source: DebianSource, archive: Path, tmp_path: Path) -> None:
    (archive / "demo_1.4-1.debian.tar.gz").unlink()
    (archive / "demo_1.4-1.dsc").unlink()
    assert source.fetch("debsrc:demo=1.4-1", tmp_path / "cache", tmp_path / "into").repo.version == "1.4"


def test_another_archive_than_the_list_says_is_refused(source: DebianSource, archive: Path, tmp_path: Path) -> None:
    path = archive / "demo_1.4.orig.tar.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SourceError, match=r"apt: .*demo_1\.4\.orig"):
        source.fetch("debsrc:demo=1.4-1", tmp_path / "cache", tmp_path / "into")


def test_names_and_versions_that_do_not_exist(source: DebianSource, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no source package nothing-here$"):
        source.resolve(SourceSpec(spec="debsrc:nothing-here"), tmp_path / "cache")
    with pytest.raises(SourceError, match=r"libdemo-java; libdemo-java is made from demo: write debsrc:demo$"):
        source.resolve(SourceSpec(spec="debsrc:libdemo-java"), tmp_path / "cache")
    with pytest.raises(SourceError, match="apt: "):
        source.fetch("debsrc:demo=9-1", tmp_path / "cache", tmp_path / "into")
    for bad in ("debsrc:", "debsrc:a b", "debsrc:-o=x"):
        with pytest.raises(SourceError, match="write debsrc:name"):
            source.resolve(SourceSpec(spec=bad), tmp_path / "cache")


def test_the_form_is_known_and_the_archives_are_those_of_the_machine() -> None:
    assert isinstance(resolve_source(SourceSpec(spec="debsrc:toolz")), DebianSource)
    assert all(line.startswith("deb-src ") for line in system_entries())
