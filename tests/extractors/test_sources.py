"""Folders, archives and source distributions, the latter from a package index in files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from excise.envs.manifests.read_manifest import read_manifest
from excise.errors import SourceError
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.untrusted_archives import unpack_archive
from excise.extractors.sources import resolve_source, source_of
from excise.package_index import index_url
from excise.protocols import Fetched
from excise.types import ProjectInfo, SourceSpec

FILES = {
    "pyproject.toml": '[project]\nname = "demo-kit"\nversion = "1.4"\nlicense = "MIT"\n',
    "demo/__init__.py": "x = 1\n",
    "tests/test_demo.py": "def test(): pass\n",
}


def make_tar(path: Path, files: dict[str, str], extra: list[tarfile.TarInfo] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text.encode()), 1_600_000_000
            tar.addfile(member, io.BytesIO(text.encode()))
        for member in extra or []:
            tar.addfile(member)
    return path


def fetch(spec: str, tmp_path: Path, subdir: str = "") -> Fetched:
    given = SourceSpec(spec=spec, subdir=subdir)
    source = resolve_source(given)
    return source.fetch(source.resolve(given, tmp_path / "cache"), tmp_path / "cache", tmp_path / "into")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"package.json": '{"name": "@kit/core", "version": "1.2.0", "license": {"type": "MIT"}}', "index.js": ""},
            ("@kit/core", "1.2.0", "MIT"),
        ),
        ({"package.json": '{"name": 3, "version": null, "license": ["MIT"]}', "index.js": ""}, ("", "", "")),
        ({"package.json": "[" * 100_000, "index.js": ""}, ("", "", "")),
        (
            {
                "Cargo.toml": '[package]\nname = "kit"\nversion.workspace = true\nlicense = "MIT OR Apache-2.0"\n'
                '[workspace.package]\nversion = "0.3.1"\n'
            },
            ("kit", "0.3.1", "MIT OR Apache-2.0"),
        ),
        ({"Cargo.toml": "a = " + "[" * 10_000}, ("", "", "")),
        ({"go.mod": "module github.com/maker/kit/v2 // new\n\ngo 1.19\n"}, ("maker/kit", "", "")),
        ({"go.mod": "module example.org/kit\n"}, ("kit", "", "")),
        (
            {
                "pom.xml": '<project xmlns="http://maven.apache.org/POM/4.0.0"><parent><artifactId>all</artifactId>'
                "<version>4</version></parent><artifactId>kit</artifactId><version>${revision}</version><licenses>"
                "<license><name>Apache License, Version 2.0</name></license></licenses></project>",
                "Kit.java": "class Kit {}",
            },
            ("kit", "", "Apache-2.0"),
        ),
        (
            {"pom.xml": "<project><artifactId>kit-parent</artifactId><modules/></project>", "Kit.java": "class Kit {}"},
            ("kit", "", ""),
        ),
        (
            {"pom.xml": "<project><artifactId>my-pom</artifactId></project>", "Kit.java": "class Kit {}"},
            ("my-pom", "", ""),
        ),
        ({"pom.xml": '<!DOCTYPE a [<!ENTITY a "b">]><project/>', "Kit.java": "class Kit {}"}, ("", "", "")),
        (
            {"pyproject.toml": FILES["pyproject.toml"], "package.json": '{"name": "docs", "version": "9"}', "a.js": ""},
            ("demo-kit", "1.4", "MIT"),
        ),
    ],
)
def test_manifests_of_each_language(tmp_path: Path, files: dict[str, str], expected: tuple[str, str, str]) -> None:
    write(tmp_path, files)
    found = read_project_info(tmp_path)
    assert (found.name, found.version, found.license) == expected


def test_manifests_that_are_no_plain_files_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pom.xml")
    (tmp_path / "Cargo.toml").symlink_to("/dev/zero")
    (tmp_path / "go.mod").mkdir()
    (tmp_path / "package.json").write_text('\ufeff{"name": "kit\\ud800", "version": "1"}')
    text = "MIT License\n\nPermission is hereby granted, free of charge, to any person"
    write(tmp_path, {"a.js": "", "A.java": "", "LICENSE": text})
    assert read_project_info(tmp_path) == ProjectInfo(name="", version="1", license="MIT")


def test_manifests_that_take_long_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"Cargo.toml": "a" + ".a" * 50_000 + " = 1", "A.java": ""})
    said = "redistribution and use in source and binary forms " * 20_000
    write(tmp_path, {"pom.xml": f"<project><licenses><license><name>{said}</name></license></licenses></project>"})
    assert read_project_info(tmp_path).name == ""


@pytest.mark.parametrize("odd", ["3", "true", "[1, 2]", "{a = 1}", "{text = 3}", "2020-01-01", "''"])
@pytest.mark.parametrize("field", ["name", "version", "license", "classifiers", "urls", "scripts", "keywords"])
def test_fields_of_unexpected_types_are_ignored(tmp_path: Path, field: str, odd: str) -> None:
    given = {"name": "'kit'", "version": "'1.4'", "license": "'MIT'"} | {field: odd}
    text = "[project]\n" + "".join(f"{key} = {value}\n" for key, value in given.items())
    write(tmp_path, {"pyproject.toml": text, "setup.py": "setup(name=3, extras_require={1: ['x']})"})
    found = read_project_info(tmp_path)
    assert (found.name, found.version, found.license) == tuple(
        "" if name == field else value.strip("'")
        for name, value in given.items()
        if name in ("name", "version", "license")
    )
    assert read_manifest(tmp_path).name == found.name


# ------------------------------------------------------------------------------------ directories
def test_caches_outputs_and_links_to_files_outside_are_left_out(tmp_path: Path) -> None:
    junk = {
        "demo/__pycache__/a.cpython-311.pyc": "",
        ".venv/pyvenv.cfg": "",
        ".venv/lib/x.py": "",
        "build/lib/demo/__init__.py": "",
        "dist/demo-1.4.tar.gz": "",
        ".coverage": "",
        "node_modules/x/index.js": "",
        "demo/_c.cpython-311-x86_64-linux-gnu.so": "",
    }
    root = write(tmp_path / "work", FILES | junk)
    (root / "inside").symlink_to("demo/__init__.py")
    (root / "outside").symlink_to("/etc/passwd")
    fetched = fetch(str(root), tmp_path)
    kept = {p.relative_to(fetched.root).as_posix() for p in fetched.root.rglob("*") if not p.is_dir() or p.is_symlink()}
    assert kept == {*FILES, "inside"}
    assert (fetched.repo.repo, fetched.repo.version, fetched.repo.license) == ("demo-kit", "1.4", "MIT")


def test_source_folders_named_like_outputs_are_kept(tmp_path: Path) -> None:
    own = {"build/__init__.py": "", "build/lib/x.py": "", "dist/readme.txt": "", "demo/cache.py": ""}
    fetched = fetch(str(write(tmp_path / "work", own)), tmp_path)
    assert fetched.repo.num_files == len(own)


def test_a_folder_is_pinned_by_content(tmp_path: Path) -> None:
    root = write(tmp_path / "work", FILES)
    spec = SourceSpec(spec=f"dir:{root}")
    source = resolve_source(spec)
    pinned = source.resolve(spec, tmp_path)
    (root / "demo/__pycache__").mkdir()
    (root / "demo/__pycache__/x.pyc").write_text("")
    assert source.resolve(spec, tmp_path) == pinned
    assert source_of(pinned).name == "directory"
    (root / "demo/__init__.py").write_text("x = 2\n")
    assert source.resolve(spec, tmp_path) != pinned
    with pytest.raises(SourceError, match="Name the folder without its pin") as refused:
        source.resolve(SourceSpec(spec=pinned), tmp_path)
    assert refused.value.reason == "source_changed"
    with pytest.raises(SourceError) as caught:
        source.fetch(pinned, tmp_path, tmp_path / "into")
    assert caught.value.reason == "source_changed"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(SourceError) as caught:
        fetch(str(tmp_path / "work"), tmp_path)
    assert caught.value.reason == "empty_source"


# --------------------------------------------------------------------------------------- archives
def test_archives_are_unpacked_without_their_top_folder(tmp_path: Path) -> None:
    tar = make_tar(tmp_path / "demo-kit-1.4.tar.gz", {f"demo-kit-1.4/{k}": v for k, v in FILES.items()})
    zipped = tmp_path / "demo.zip"
    with zipfile.ZipFile(zipped, "w") as bundle:
        for name, text in FILES.items():
            bundle.writestr(f"demo-kit/{name}", text)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    from_tar, from_zip = fetch(str(tar), tmp_path / "a"), fetch(str(zipped), tmp_path / "b")
    folder = fetch(str(write(tmp_path / "work", FILES)), tmp_path)
    assert from_tar.repo.tree == from_zip.repo.tree == folder.repo.tree
    assert from_tar.repo.base_commit == folder.repo.base_commit
    assert from_tar.repo.created_at == "2020-09-13T12:26:40Z"
    assert from_tar.repo.sha256 == hashlib.sha256(tar.read_bytes()).hexdigest()
    assert from_tar.repo.source == f"archive:{tar}@sha256:{from_tar.repo.sha256}"


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_links_to_files_outside_the_tree(tmp_path: Path) -> None:
    tar = make_tar(
        tmp_path / "x.tar.gz", {"t/a": "1"}, [link("t/l", "/etc/passwd"), link("t/m", "../../../x"), link("t/n", "a")]
    )
    fetched = fetch(str(tar), tmp_path)
    assert sorted(p.name for p in fetched.root.iterdir()) == ["a", "n"]


@pytest.mark.parametrize("name", ["../escape", "t/../../escape"])
def test_path_traversal_is_refused(tmp_path: Path, name: str) -> None:
    tar = make_tar(tmp_path / "x.tar.gz", {"t/a": "1", name: "evil"})
    with pytest.raises(SourceError, match="unsafe"):
        fetch(str(tar), tmp_path)
    assert not list(tmp_path.rglob("escape"))


def test_writing_through_a_link_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(link("t/d", str(outside)))
        member = tarfile.TarInfo("t/d/file")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    unpack_archive(path, tmp_path / "into")
    assert not list(outside.iterdir())


def test_devices_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    make_tar(tmp_path / "x.tar.gz", {"t/a": "1"}, [link("t/fifo", "", tarfile.FIFOTYPE)])
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8bnot really")
    for name in ("x.tar.gz", "broken.tar.gz"):
        with pytest.raises(SourceError) as caught:
            fetch(str(tmp_path / name), tmp_path)
        assert caught.value.reason == "bad_archive"


def test_an_archive_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excise.extractors.fetch.untrusted_archives.MAX_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("t/zeros", "0" * 100_000)
    with pytest.raises(SourceError) as caught:
        fetch(str(tmp_path / "x.zip"), tmp_path)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("x-1-py3-none-any.whl", "not_sources"), ("x.txt", "not_an_archive"), ("gone", "unknown_source")],
)
def test_other_files_are_refused_with_a_reason(tmp_path: Path, name: str, reason: str) -> None:
    if name != "gone":
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceError) as caught:
        fetch(str(tmp_path / name), tmp_path)
    assert caught.value.reason == reason


# ----------------------------------------------------------------------------------------- sdists
@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simple index in files: demo-kit 1.3 and 1.4 as sdists, 2.0 as a wheel only; wheely as wheels only."""
    simple = tmp_path / "simple"
    project = simple / "demo-kit"
    project.mkdir(parents=True)
    rows = []
    for version in ("1.3", "1.4"):
        files = {f"demo_kit-{version}/{k}": v for k, v in FILES.items()}
        sdist = make_tar(project / f"demo_kit-{version}.tar.gz", files)
        rows.append(f'<a href="{sdist.name}#sha256={hashlib.sha256(sdist.read_bytes()).hexdigest()}">x</a>')
    rows.append('<a href="demo_kit-2.0-py3-none-any.whl">x</a>')
    (project / "index.html").write_text("\n".join(rows))
    (simple / "wheely").mkdir()
    (simple / "wheely/index.html").write_text('<a href="wheely-2.0-py3-none-any.whl">x</a>')
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", simple.as_uri())
    return simple


@pytest.mark.parametrize(
    ("spec", "version"), [("pypi:Demo.Kit", "1.4"), ("pypi:demo-kit==1.3", "1.3"), ("pypi:demo-kit<1.4", "1.3")]
)
def test_an_sdist_from_the_index(index: Path, tmp_path: Path, spec: str, version: str) -> None:
    fetched = fetch(spec, tmp_path)
    assert fetched.repo.source == f"pypi:demo-kit=={version}"
    assert fetched.repo.version == version
    assert (fetched.root / "tests/test_demo.py").exists()
    assert fetched.repo.created_at == "2020-09-13T12:26:40Z"


def test_a_downloaded_sdist_needs_no_index_again(index: Path, tmp_path: Path) -> None:
    first = fetch("pypi:demo-kit==1.4", tmp_path).repo
    for path in index.rglob("*.*"):
        path.unlink()
    (tmp_path / "into").rename(tmp_path / "before")
    assert fetch("pypi:demo-kit==1.4", tmp_path).repo == first


def test_a_wrong_hash_is_refused(index: Path, tmp_path: Path) -> None:
    page = index / "demo-kit/index.html"
    page.write_text(page.read_text().replace("sha256=", "sha256=0"))
    with pytest.raises(SourceError) as caught:
        fetch("pypi:demo-kit==1.4", tmp_path)
    assert caught.value.reason == "hash_mismatch"
    assert not list((tmp_path / "cache").rglob("*.tar.gz"))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("pypi:wheely", "no_sdist"),
        ("pypi:nothing-here", "source_unavailable"),
        ("pypi:demo-kit==9", "source_unavailable"),
        ("pypi:not a name", "bad_source"),
    ],
)
def test_missing_sdists_are_refused_with_a_reason(index: Path, tmp_path: Path, spec: str, reason: str) -> None:
    with pytest.raises(SourceError) as caught:
        fetch(spec, tmp_path)
    assert caught.value.reason == reason


def test_a_tampered_cache_is_downloaded_again(index: Path, tmp_path: Path) -> None:
    first = fetch("pypi:demo-kit==1.4", tmp_path).repo
    facts = json.loads((tmp_path / "cache/sdists/demo-kit-1.4/facts.json").read_text())
    (tmp_path / "cache/sdists/demo-kit-1.4" / facts["filename"]).write_bytes(b"changed")
    (tmp_path / "into").rename(tmp_path / "before")
    assert fetch("pypi:demo-kit==1.4", tmp_path).repo == first


def test_index_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text("[global]\nindex-url = https://pip.invalid/simple\n")
    home = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    assert index_url(home) == ""
    assert index_url({"HOME": str(tmp_path)}) == "https://pip.invalid/simple"
    assert index_url({**home, "UV_DEFAULT_INDEX": "corp=https://uv.invalid/simple"}) == "https://uv.invalid/simple"


def test_a_member_of_a_workspace_of_rust_brings_what_it_takes_from_there(tmp_path: Path) -> None:
    workspace = """[workspace]
members = ["crates/*"]
package.version = "0.3.1"
package.license = "MIT"
package.edition = "2021"

[workspace.dependencies]
fnv = { version = "1", default-features = false }
"""
    member = '[package]\nname = "inner"\nversion.workspace = true\nlicense = { workspace = true }\n\n[dependencies]\n'
    files = {
        "Cargo.toml": workspace,
        "crates/a/Cargo.toml": f"{member}fnv.workspace = true\n",
        "crates/a/src/lib.rs": "",
        "crates/b/Cargo.toml": '[package]\nname = "plain"\nversion = "1.0.0"\n',
        "crates/b/src/lib.rs": "",
    }
    where = write(tmp_path / "workspace", files)
    fetched = fetch(str(where), tmp_path, "crates/a")
    assert (fetched.repo.version, fetched.repo.license) == ("0.3.1", "MIT")
    made = tomllib.loads((fetched.root / "Cargo.toml").read_text())
    assert made["package"] == tomllib.loads(files["crates/a/Cargo.toml"])["package"]
    assert made["workspace"] == {
        "package": {"version": "0.3.1", "license": "MIT", "edition": "2021"},
        "dependencies": {"fnv": {"version": "1", "default-features": False}},
    }
    plain = fetch(str(where), tmp_path / "other", "crates/b")
    assert (plain.root / "Cargo.toml").read_text() == files["crates/b/Cargo.toml"]
