"""Go's environments: manifests, and what is said where something is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from excise.envs.go import toolchain
from excise.envs.go.debian_modules import DebianModules, find_modules, modules_in
from excise.envs.go.manifests import read_manifest
from excise.envs.go.toolchain import TOOLCHAIN, installed_version
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.errors import EnvironmentFailure
from excise.protocols import Completed
from excise.types import Repo, SourceSpec, WorkerOutcome

from .debian_archive import archive_of, make_package

REPO = Repo(repo="r", base_commit="c", tree="t", language="go", source="dir:/r")
STATUS = """Package: {name}
Status: install ok installed
Architecture: amd64
Version: {version}
Depends: {depends}
"""


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_the_module_is_read_from_its_manifest(tmp_path: Path) -> None:
    files = {"go.mod": "// x\nmodule example.com/a/v2\n\ngo 1.16\n", "vendor/modules.txt": "", "a.go": "package a\n"}
    manifest = read_manifest(written(tmp_path, files))
    assert (manifest.import_path, manifest.made, manifest.has_vendor) == ("example.com/a/v2", "", True)
    recipe = TOOLCHAIN.plan(tmp_path, REPO, SourceSpec(spec="r"), "", tmp_path / "cache")
    assert dict(recipe.env)["GOFLAGS"] == "-mod=vendor"
    assert recipe.requirements == (f"go=={installed_version()}",)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"a.go": 'package errors // import "example.com/errors"\n'}, "example.com/errors"),
        ({"a.go": "package errors\n", "README.md": "`go get github.com/x/errors`\n"}, "github.com/x/errors"),
        (
            {"a.go": "package yaml\n", "b_test.go": 'package yaml_test\n\nimport "example.org/go-yaml"\n'},
            "example.org/go-yaml",
        ),
        (
            {"a.go": 'package color\n\nimport "github.com/x/go-colorable"\n', "README.md": "go get github.com/y/color"},
            "github.com/y/color",
        ),
        (
            {
                "README.md": "# Gods\n",
                "lists/list.go": 'package lists\n\nimport (\n"github.com/x/gods/utils"\n"github.com/other/utils"\n)\n',
                "maps/tree/map.go": 'package tree\n\nimport "github.com/x/gods/lists"\n',
                "utils/utils.go": "package utils\n",
            },
            "github.com/x/gods",
        ),
        ({"a.go": "package quote\n", "a_test.go": 'package quote_test\n\nimport "fmt"\n'}, "quote"),
        ({"a.go": 'package a\n\nimport "github.com/other/thing"\n', "b.go": "package b\n"}, ""),
    ],
    ids=["comment", "readme", "imports", "not imported", "folders", "package", "nothing"],
)
def test_the_path_of_a_project_without_manifest_is_found_in_its_files(
    tmp_path: Path, files: dict[str, str], path: str
) -> None:
    manifest = read_manifest(written(tmp_path, files))
    assert manifest.import_path == path
    assert manifest.made == (f"module {path}\n\ngo 1.13\n" if path else "")
    if not path:
        with pytest.raises(EnvironmentFailure, match=r"no go\.mod") as failure:
            TOOLCHAIN.plan(tmp_path, REPO, SourceSpec(spec="r"), "", tmp_path / "cache")
        assert failure.value.reason == "no_manifest"


def test_the_version_is_that_of_the_distributions_package(tmp_path: Path) -> None:
    rows = [("golang-go", "2:1.19~1", "golang-1.19-go"), ("golang-1.19-go", "1.19.8-2", "libc6")]
    (tmp_path / "status").write_text("\n".join(STATUS.format(name=n, version=v, depends=d) for n, v, d in rows))
    assert installed_version(DebianPackages(tmp_path)) == "1.19.8"


def test_a_machine_without_go_is_told_which_package_it_needs(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS.format(name="bash", version="5", depends=""))
    with pytest.raises(EnvironmentFailure, match="golang-go") as failure:
        installed_version(DebianPackages(tmp_path))
    assert failure.value.reason == "toolchain_unavailable"


def test_modules_of_debian_packages_become_a_vendor_folder(tmp_path: Path) -> None:
    gocode = written(
        tmp_path / "gocode",
        {
            "github.com/x/flags/flags.go": 'package flags\n\nimport "github.com/y/text"\n',
            "github.com/x/flags/flags_test.go": "package flags\n",
            "github.com/y/text/go.mod": "module github.com/y/text\n\ngo 1.17\n",
            "github.com/y/text/text.go": 'package text\n\nimport (\n\t"example.com/a" // the project itself\n)\n',
            "github.com/z/unused/unused.go": "package unused\n",
        },
    )
    root = written(
        tmp_path / "project",
        {
            "go.mod": "module example.com/a\n\ngo 1.19\n\nrequire github.com/x/flags v1.2.0\n",
            "a.go": 'package a\n\nimport (\n\t"fmt"\n\tf "github.com/x/flags"\n)\n',
            "testdata/x.go": 'package x\n\nimport "github.com/not/there"\n',
        },
    )
    found = modules_in((tmp_path / "none", gocode), root, "example.com/a")
    found.write(tmp_path / "vendor")
    assert {path.relative_to(tmp_path / "vendor").as_posix() for path in (tmp_path / "vendor").rglob("*.*")} >= {
        "modules.txt", "github.com/x/flags/flags.go", "github.com/y/text/text.go",
    }  # fmt: skip
    assert not list((tmp_path / "vendor").rglob("*_test.go"))
    assert (tmp_path / "vendor" / "modules.txt").read_text().splitlines() == [
        "# github.com/x/flags v1.2.0", "## explicit", "github.com/x/flags", "# github.com/y/text v0.0.0",
        "## go 1.17", "github.com/y/text",
    ]  # fmt: skip


def test_a_made_manifest_requires_every_module() -> None:
    packages = dict.fromkeys(["github.com/x/flags/v2/sub", "gopkg.in/yaml.v3", "github.com/y/text"], Path())
    modules = DebianModules({"github.com/y/text": "v1.2.0"}, packages)
    assert modules.require_all().splitlines() == [
        "require github.com/x/flags v0.0.0", "require github.com/y/text v1.2.0", "require gopkg.in/yaml.v3 v3.0.0",
    ]  # fmt: skip


def test_what_the_machine_lacks_comes_from_the_archive(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"a_test.go": 'package a\n\nimport "github.com/not-here/check/assert"\n'})
    archive = archive_of(tmp_path / "archive", tmp_path / "cache")
    with pytest.raises(EnvironmentFailure, match="golang-github-not-here-check-dev") as failure:
        find_modules(root, REPO, "example.com/a", archive)
    assert failure.value.reason == "missing_dependency"
    code = 'package assert\n\nimport "github.com/not-here/text"\n'
    source = "usr/share/gocode/src/github.com/not-here"
    needed = "golang-github-not-here-text-dev"
    make_package(
        tmp_path / "archive", "golang-github-not-here-check-dev", {f"{source}/check/assert/a.go": code}, needed
    )
    make_package(tmp_path / "archive", needed, {f"{source}/text/text.go": "package text\n"})
    found = find_modules(root, REPO, "example.com/a", archive_of(tmp_path / "archive", tmp_path / "another"))
    assert set(found.packages) == {"github.com/not-here/check/assert", "github.com/not-here/text"}


def test_what_go_leaves_out_needs_no_modules(tmp_path: Path) -> None:
    files = {
        "a.go": 'package a\n\nimport "github.com/x/here"\n',
        "_codegen/main.go": 'package main\n\nimport "github.com/x/codegen"\n',
        ".hidden/main.go": 'package main\n\nimport "github.com/x/hidden"\n',
        "gen.go": '//go:build ignore\n\npackage main\n\nimport "github.com/x/gen"\n',
        "old.go": '// +build ignore\n\npackage main\n\nimport "github.com/x/old"\n',
        "tools/go.mod": "module example.com/a/tools\n",
        "tools/main.go": 'package main\n\nimport "github.com/x/tools"\n',
        "unix.go": '//go:build unix\n\npackage a\n\nimport "github.com/x/unix"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = modules_in((), tmp_path, "example.com/a")
    assert found.missing == ("github.com/x/here", "github.com/x/unix")


@pytest.mark.parametrize(("asked", "reason"), [("1.99.0", "toolchain_unavailable"), ("1.13", "missing_dependency")])
def test_a_module_that_asks_for_a_newer_go_is_told(tmp_path: Path, asked: str, reason: str) -> None:
    (tmp_path / "go.mod").write_text(f"module example.com/a\n\ngo {asked}\n")
    request: Any = SimpleNamespace(sources=tmp_path, repo=SimpleNamespace(repo="a"))
    failed = Completed(
        rc=1, stdout=b"", stderr=b"go: errors parsing go.mod", worker=WorkerOutcome.OK, wall_s=0.0, cpu_s=0.0
    )
    with pytest.raises(EnvironmentFailure) as failure:
        toolchain._require_done(failed, "a: a package is not there", request)
    assert failure.value.reason == reason
    assert ("asks for Go 1.99.0" in str(failure.value)) is (asked == "1.99.0")
