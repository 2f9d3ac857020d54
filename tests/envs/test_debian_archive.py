"""Libraries from Debian's archive, read by the real apt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from excise.envs import debian_archive
from excise.envs.debian_archive import DebianArchive
from excise.errors import SourceError

from .debian_archive import archive_of, make_package

KIND = re.compile(r"lib.+-dev")
SOURCES = """\
Package: words
Binary: libwords-dev
Version: {version}
Build-Depends: debhelper (>= 13), libbase-dev:native <!nocheck>, libone-dev | libother-dev
Build-Depends-Indep: libdocs-dev [amd64]
Format: 1.0
Directory: .
Files:
 d41d8cd98f00b204e9800998ecf8427e 0 words.dsc

"""


@pytest.fixture
def archive(tmp_path: Path) -> DebianArchive:
    """Two libraries, of which one needs the other and a program."""
    folder = tmp_path / "archive"
    folder.mkdir()
    make_package(folder, "libwords-dev", {"usr/share/words/a.txt": "word"}, depends="libbase-dev, speller")
    make_package(folder, "libbase-dev", {"usr/share/words/b.txt": "base"})
    make_package(folder, "speller", {"usr/bin/speller": "#!/bin/sh\n"})
    (folder / "Sources").write_text(SOURCES.format(version="1.0-1") + SOURCES.format(version="2.0-1"))
    return archive_of(folder, tmp_path / "cache")


def test_what_a_library_needs_is_unpacked_with_it_and_nothing_else(archive: DebianArchive) -> None:
    found = archive.unpacked(["libwords-dev", "libunknown-dev", "lib.*-dev", "-o=x", ""], KIND)
    assert [(each.name, each.version) for each in found] == [("libbase-dev", "1:2.0-1"), ("libwords-dev", "1:2.0-1")]
    base, words = (each.root / "usr/share/words" for each in found)
    assert ((base / "b.txt").read_text(), (words / "a.txt").read_text()) == ("base", "word")
    assert "Package: libbase-dev" in (found[0].root / "DEBIAN/control").read_text()
    assert archive.failure("It lacks x.").reason == "missing_dependency"


def test_unknown_names_alone_give_nothing(archive: DebianArchive) -> None:
    assert archive.unpacked(["libunknown-dev", "libw.rds-dev"], KIND) == []
    assert archive.unpacked([], KIND) == []


def test_unpacked_packages_are_taken_from_the_cache(archive: DebianArchive, tmp_path: Path) -> None:
    first = archive.unpacked(["libwords-dev"], KIND)
    for package in (tmp_path / "archive").glob("*.deb"):
        package.unlink()
    assert archive.unpacked(["libwords-dev"], KIND) == first


def test_a_project_with_a_hundred_thousand_names_breaks_nothing(archive: DebianArchive) -> None:
    names = [f"lib{number:06}-{'x' * 40}-dev" for number in range(100_000)]
    assert archive.unpacked(names, KIND) == []
    assert archive.failure("It lacks x.").reason == "missing_dependency"


def test_too_much_is_not_downloaded(archive: DebianArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian_archive, "MAX_BYTES", 100)
    assert archive.unpacked(["libwords-dev"], KIND) == []


def test_a_package_that_needs_what_is_not_there_is_no_fault_of_the_archive(
    archive: DebianArchive, tmp_path: Path
) -> None:
    make_package(tmp_path / "archive", "libbroken-dev", {}, depends="libgone-dev")
    assert archive.unpacked(["libbroken-dev"], KIND) == []
    assert archive.failure("It lacks x.").reason == "missing_dependency"


def test_an_archive_that_does_not_answer_is_no_verdict_on_the_project(tmp_path: Path) -> None:
    broken = DebianArchive(tmp_path / "cache", lambda kind: [f"{kind} file:{tmp_path}/nothing ./"])
    assert broken.unpacked(["libwords-dev"], KIND) == []
    failure = broken.failure("It lacks x.")
    assert failure.reason == "infra"
    assert re.match(r"It lacks x\. Debian's archive did not answer: apt: E: ", str(failure))


def test_a_machine_without_apt_lacks_what_it_lacks(tmp_path: Path) -> None:
    def none(kind: str) -> list[str]:
        raise SourceError("this needs apt", reason="no_apt")

    archive = DebianArchive(tmp_path / "cache", none)
    assert archive.unpacked(["libwords-dev"], KIND) == []
    assert archive.build_dependencies("debsrc:words=1.0-1") == set()
    assert archive.failure("It lacks x.").reason == "missing_dependency"


def test_a_source_package_names_what_it_is_built_with(archive: DebianArchive) -> None:
    wanted = {"debhelper", "libbase-dev", "libone-dev", "libother-dev", "libdocs-dev"}
    assert archive.build_dependencies("debsrc:words=2.0-1#folder") == wanted
    assert archive.build_dependencies("debsrc:words=3.0-1") == set()
    assert archive.build_dependencies("npm:words@1.0.0") == set()
    assert archive.build_dependencies("debsrc:-o=x") == set()
