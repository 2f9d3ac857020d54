"""Rust's environments: manifests, crates of Debian's packages, and what is said where something is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from excise.envs.rust import toolchain
from excise.envs.rust.debian_crates import REGISTRY, available_crates, copy_crates, locked_crates, registries_for
from excise.envs.rust.manifests import holds, read_manifest
from excise.envs.rust.toolchain import TOOLCHAIN, installed_version
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.errors import EnvironmentFailure
from excise.protocols import Completed
from excise.system.toml_text import toml_text
from excise.types import Repo, SourceSpec, WorkerOutcome

from .debian_archive import archive_of, make_package

LENGTHS = Path(__file__).parents[1] / "repos" / "lengths"
REPO = Repo(repo="r", base_commit="c", tree="t", language="rust", source="dir:/r")
MANIFEST = """
[package]
name = "big-bag"
version = "1.0.0"
edition = "2018"

[lib]
name = "bag"

[[test]]
name = "slow"
harness = false

[[test]]
name = "extra"
required-features = ["extra"]

[features]
default = ["std"]
std = ["alloc/std", "dep:memory"]
extra = ["serde", "memory?/more"]

[dependencies]
alloc = "1"
memory = { version = "2", optional = true, path = "../memory" }
serde = { version = "1", optional = true }

[target."cfg(windows)".dependencies]
winapi = "0.3"

[target.'cfg(all(unix, not(target_os = "macos")))'.dependencies]
libc = "0.2"

[dev-dependencies]
criterion = "0.3"
rand = "0.8"
version-sync = "0.9"
"""


def written_tree(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


FILES = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": "// criterion::not_used\n#[cfg(test)] mod t { use rand::random; }\n",
    "tests/api.rs": "",
    "tests/versions.rs": "mod common;\n",
    "tests/common/mod.rs": "use version_sync::x;\n",
    "tests/slow.rs": "fn main() {}\n",
    "tests/extra.rs": "",
}


def test_a_manifest_is_reduced_to_what_tests_need(tmp_path: Path) -> None:
    found = read_manifest(written_tree(tmp_path, FILES), {"alloc", "memory", "libc", "rand"})
    assert (found.name, found.library, found.left_out) == ("big-bag", "bag", ("tests/versions.rs",))
    reduced = tomllib.loads(toml_text(found.reduced))
    assert reduced == found.reduced
    assert reduced["dependencies"] == {
        "alloc": {"version": "1"}, "memory": {"version": "2", "optional": True}, "libc": {"version": "0.2"},
    }  # fmt: skip
    assert reduced["dev-dependencies"] == {"rand": {"version": "0.8"}}
    assert reduced["features"] == {"default": ["std"], "std": ["alloc/std", "dep:memory"], "extra": ["memory?/more"]}
    assert reduced["test"] == [{"name": "api", "path": "tests/api.rs"}]
    assert (reduced["package"]["autotests"], reduced["package"]["autobenches"]) == (False, False)


@pytest.mark.parametrize(
    ("files", "reason", "words"),
    [
        ({"Cargo.toml": "[workspace]\n"}, "workspace", "name the folder"),
        ({"Cargo.toml": '[package]\nname = "a"\n[lib]\nproc-macro = true\n'}, "proc_macro", "procedural"),
        ({"Cargo.toml": "[package\n"}, "no_manifest", "cannot be read"),
        (
            {"Cargo.toml": '[package]\nname = "a"\n', "build.rs": '#[path = "src/a.rs"] mod a;'},
            "build_script",
            "build.rs",
        ),
        ({"Cargo.toml": '[package]\nname = "a"\n[dependencies]\nb_c = "1"\n'}, "missing_dependency", "librust-b-c-dev"),
        ({"a.rs": ""}, "no_manifest", "no Cargo.toml"),
    ],
)
def test_what_cannot_be_built_is_refused_with_a_reason(
    tmp_path: Path, files: dict[str, str], reason: str, words: str
) -> None:
    with pytest.raises(EnvironmentFailure, match=words) as failure:
        read_manifest(written_tree(tmp_path, files), ())
    assert failure.value.reason == reason


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("cfg(windows)", False), ("cfg(unix)", True), ('cfg(any(windows, target_os = "linux"))', True),
        ('cfg(not(all(unix, target_os = "linux")))', False), ("x86_64-unknown-linux-gnu", True),
        ("x86_64-pc-windows-msvc", False), ('cfg(all(unix, not(target_arch = "wasm32")))', True),
    ],
)  # fmt: skip
def test_conditions_of_targets_are_those_of_this_system(condition: str, answer: bool) -> None:
    assert holds(condition) == answer


def test_a_recipe_names_the_compiler_and_what_is_left_out(tmp_path: Path) -> None:
    recipe = TOOLCHAIN.plan(LENGTHS, REPO, SourceSpec(spec="r"), "", tmp_path)
    assert recipe.requirements == (f"rustc=={installed_version()}",)
    assert (recipe.packages, recipe.system_packages) == (("lengths",), ("cargo", "rustc"))
    with pytest.raises(EnvironmentFailure) as failure:
        TOOLCHAIN.plan(LENGTHS, REPO, SourceSpec(spec="r", requirements=("x",)), "", tmp_path)
    assert failure.value.reason == "bad_option"


@pytest.mark.parametrize("line", ['rust-version = "1.999"', 'edition = "2024"'])
def test_a_crate_that_needs_a_newer_compiler_is_refused(tmp_path: Path, line: str) -> None:
    written_tree(tmp_path, {"Cargo.toml": f'[package]\nname = "a"\n{line}\n', "src/lib.rs": ""})
    with pytest.raises(EnvironmentFailure, match="needs Rust 1") as failure:
        TOOLCHAIN.plan(tmp_path, REPO, SourceSpec(spec="r"), "", tmp_path / "cache")
    assert failure.value.reason == "toolchain_unavailable"


def test_a_machine_without_rust_is_told_which_packages_it_needs(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(
        "Package: rustc\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.63.0+dfsg1-2\n"
    )
    with pytest.raises(EnvironmentFailure, match="cargo rustc") as failure:
        installed_version(DebianPackages(tmp_path))
    assert failure.value.reason == "toolchain_unavailable"


def test_crates_of_the_archive_are_those_of_the_wanted_version_and_features(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    crate = "usr/share/cargo/registry"
    for name, folder, depends in (
        ("librust-not-here-0.3-dev", "not_here-0.3.1", ""), ("librust-not-here-dev", "not_here-0.5.0", ""),
        ("librust-not-here-0.3+extra-dev", "", "librust-not-here-0.3-dev, librust-other-dev"),
        ("librust-other-dev", "other-1.0.0", ""), ("librust-unwanted-dev", "unwanted-1.0.0", ""),
    ):  # fmt: skip
        make_package(archive, name, {f"{crate}/{folder}/Cargo.toml": ""} if folder else {}, depends)
    needed = {"renamed": {"package": "not_here", "version": "0.3", "features": ["extra"]}}
    found = registries_for(needed, REPO, archive_of(archive, tmp_path / "cache"))
    assert found[0] == REGISTRY
    assert available_crates(found[1:]) == {"not_here", "other"}
    assert {path.name for each in found[1:] if each.is_dir() for path in each.iterdir()} == {
        "not_here-0.3.1", "not_here-0.5.0", "other-1.0.0",
    }  # fmt: skip


def test_only_what_tests_need_may_be_of_any_version(tmp_path: Path) -> None:
    manifest = '[package]\nname = "a"\n[dependencies]\nb = "0.3"\n[dev-dependencies]\nc = "0.6"\n'
    written_tree(tmp_path, {"Cargo.toml": manifest, "src/lib.rs": "use c::d;"})
    found = read_manifest(tmp_path, ["b", "c"])
    assert found.described() == {"b": {"version": "0.3"}, "c": {"version": "0.6"}}
    assert found.with_any_for_tests().described() == {"b": {"version": "0.3"}, "c": {"version": "*"}}


def test_locked_crates_are_copied_without_their_tests(tmp_path: Path) -> None:
    registry = written_tree(
        tmp_path / "registry",
        {
            "a-b-1.2.3/.cargo-checksum.json": '{"files": {}}', "a-b-1.2.3/src/lib.rs": "", "a-b-1.2.3/tests/t.rs": "",
            "bare-1.0.0/src/lib.rs": "",
        },
    )  # fmt: skip
    lock = (
        '[[package]]\nname = "own"\nversion = "1.0.0"\n\n'
        '[[package]]\nname = "a-b"\nversion = "1.2.3"\nsource = "registry+https://example.com"\n'
    )
    assert available_crates([registry, tmp_path / "none"]) == {"a-b", "bare"}
    assert locked_crates(lock) == [("a-b", "1.2.3")]
    hashes = copy_crates([("a-b", "1.2.3")], tmp_path / "env", [tmp_path / "none", registry])
    assert list(hashes) == ["a-b==1.2.3"]
    files = sorted(p.relative_to(tmp_path / "env").as_posix() for p in (tmp_path / "env").rglob("*") if p.is_file())
    assert files == ["a-b-1.2.3/.cargo-checksum.json", "a-b-1.2.3/src/lib.rs"]
    for missing in (("bare", "1.0.0"), ("other", "1.0.0")):
        with pytest.raises(EnvironmentFailure):
            copy_crates([missing], tmp_path / "env", [tmp_path / "none", registry])


def test_a_member_of_the_same_workspace_that_is_missing_is_told(tmp_path: Path) -> None:
    manifest = '[package]\nname = "a"\n[dependencies]\na-core = { path = "core", version = "0.1" }\nb = "0.3"\n'
    written_tree(tmp_path, {"Cargo.toml": manifest, "src/lib.rs": ""})
    members = read_manifest(tmp_path, ["a-core", "b"]).members
    assert members == ("a-core",)
    request: Any = SimpleNamespace(timeout_s=1.0, repo=SimpleNamespace(repo="a"))
    for said, reason in (("no version of `a-core`", "workspace"), ("no version of `b`", "missing_dependency")):
        done = Completed(worker=WorkerOutcome.OK, rc=101, stdout=b"", stderr=said.encode(), wall_s=0.0, cpu_s=0.0)
        session: Any = SimpleNamespace(exec=lambda *_, done=done, **__: done)
        with pytest.raises(EnvironmentFailure) as failure:
            toolchain._resolved(session, request, members)
        assert failure.value.reason == reason
