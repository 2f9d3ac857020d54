"""The ``/usr`` of sandboxes: which packages and files it has, and what a project's compiled files add."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from excise.envs.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from excise.envs.interpreters import choose
from excise.envs.sandbox import system_root as roots
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.envs.sandbox.linked_libraries import needed_libraries
from excise.envs.sandbox.mount_points import interpreter_mounts, system_request
from excise.envs.sandbox.system_root import linked_packages, system_root
from excise.protocols import Mount, Policy, SystemRequest

STATUS = """\
Package: app
Status: install ok installed
Architecture: all
Version: 1.0
Pre-Depends: base (>= 2)
Depends: absent | backup, mail-agent,
 library:any (= 1)

Package: base
Essential: yes
Status: install ok installed
Architecture: amd64
Version: 2

Package: backup
Status: install ok installed
Architecture: amd64
Version: 3

Package: postman
Status: install ok installed
Architecture: amd64
Version: 4
Provides: mail-agent (= 1), letters

Package: library
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 1

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


@pytest.fixture
def database(tmp_path: Path) -> DebianPackages:
    (tmp_path / "info").mkdir()
    (tmp_path / "status").write_text(STATUS)
    (tmp_path / "info" / "app.list").write_text("/.\n/usr\n/usr/bin/app\n")
    (tmp_path / "info" / "library:amd64.list").write_text("/usr/lib/x86_64-linux-gnu/liblibrary.so.1\n")
    return DebianPackages(tmp_path)


def test_a_closure_has_dependencies_alternatives_and_providers(database: DebianPackages) -> None:
    names = [package.name for package in database.closure(["app", "removed", "unknown"])]
    assert names == ["app", "backup", "base", "library", "postman"]
    assert [package.name for package in database.closure([])] == ["base"], "essential packages are always there"
    assert database.installed["app"].version == "1.0"


def test_files_and_owners_are_found_for_each_architecture(database: DebianPackages) -> None:
    assert database.files("app") == ["/.", "/usr", "/usr/bin/app"]
    assert database.files("backup") == []
    assert database.owner_of_library(Path("/lib/x86_64-linux-gnu/liblibrary.so.1")) == "library"
    assert database.owner_of_library(Path("/usr/local/lib/libother.so")) == ""


def test_a_machine_without_dpkg_shows_all_of_usr(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert DebianPackages(tmp_path).installed == {}
    monkeypatch.setattr(roots, "DATABASE", tmp_path)
    request = SystemRequest(paths=(str(tmp_path),))
    assert system_root(request) is None
    assert roots.usr_mounts(request)[0].layers == ("/usr",)


def shown(request: SystemRequest, script: str) -> list[str]:
    """Lines that a script prints in a sandbox."""
    mounts = [Mount(target="/testbed", layers=(), writable=True)]
    with BubblewrapSandbox().open(mounts, Policy(), env={"PATH": "/usr/bin:/bin"}, system=request) as session:
        done = session.exec(["/bin/bash", "-c", script], timeout_s=60)
    assert done.rc == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_sandboxes_have_what_developers_use_and_no_more() -> None:
    usual = ["bash", "git", "grep", "sed", "awk", "sh", "diff"]
    found = shown(SystemRequest(), f"for name in {' '.join(usual)} gcc; do command -v $name; done; true")
    assert [Path(path).name for path in found] == usual
    packaged = "find /usr -path '*-packages/*' -o -path '/usr/share/doc/*' -o -name '*.whl' | head"
    assert shown(SystemRequest(), packaged) == []


def test_a_recipe_gets_the_packages_that_it_asks_for() -> None:
    assert shown(SystemRequest(packages=("gcc",)), "command -v gcc && echo 'int main(){}' | gcc -xc -c - -o /tmp/x.o")


def test_roots_share_the_files_that_they_have_in_common() -> None:
    usual, more = system_root(SystemRequest()), system_root(SystemRequest(packages=("gcc",)))
    assert usual is not None
    assert more is not None
    assert more.usr.joinpath("bin/git").samefile(usual.usr / "bin" / "git")
    assert not (usual.usr / "bin" / "gcc").exists()


def test_every_interpreter_runs_with_its_libraries() -> None:
    interpreter = choose(">=3.9")
    mounts = [*interpreter_mounts(interpreter), Mount(target="/testbed", layers=(), writable=True)]
    request = system_request(interpreter)
    with BubblewrapSandbox().open(mounts, Policy(), env={}, system=request) as session:
        done = session.exec([str(interpreter.executable), "-c", "import ssl, sqlite3, lzma, ctypes"], timeout_s=60)
    assert done.rc == 0, done.stderr


def test_a_damaged_root_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "host_folder", lambda: tmp_path)
    monkeypatch.setattr(roots, "PACKAGES", ("grep",))
    request = SystemRequest(packages=("bash",))
    system_root.cache_clear()
    root = system_root(request)
    assert root is not None
    grep = root.usr / "bin" / "grep"
    assert grep.stat().st_mtime_ns == Path("/usr/bin/grep").stat().st_mtime_ns, "the leak scan recognises the file"
    grep.unlink()  # as a program that cleans the temporary folder would
    system_root.cache_clear()
    assert system_root(request) == root
    assert grep.is_file()
    system_root.cache_clear()


def test_libraries_of_compiled_files_are_found(tmp_path: Path) -> None:
    assert "libc.so.6" in needed_libraries([Path("/usr/bin/git")])
    assert needed_libraries([Path(__file__), tmp_path / "nothing"]) == frozenset()
    shutil.copy("/usr/lib/apt/methods/file", tmp_path / "extension.cpython-311.so")
    assert any(name.startswith("libapt-pkg") for name in linked_packages([tmp_path]))
    for path in Path("/usr/lib").glob("*-linux-gnu*/libapt-pkg.so.*"):
        (tmp_path / path.name).write_bytes(b"")  # a library that comes along
    assert not any(name.startswith("libapt-pkg") for name in linked_packages([tmp_path]))
