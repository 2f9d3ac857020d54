"""Byte code is compiled once for all environments, by a compiler that runs nothing of a package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from excise.envs.install.byte_code_store import ByteCodeStore
from excise.envs.interpreters import Interpreter, find_interpreters, interpreter_of
from excise.envs.sandbox.mount_points import ENV, library_of

PACKAGES = "lib/python3.11/site-packages"
KIT, TOOL = f"{ENV}/{PACKAGES}/kit/__init__.py", f"{ENV}/{PACKAGES}/tool.py"


@pytest.fixture
def interpreter() -> Interpreter:
    return find_interpreters()[-1]


@pytest.fixture
def store(tmp_path: Path, interpreter: Interpreter) -> ByteCodeStore:
    return ByteCodeStore(tmp_path / "store", interpreter)


def environment(root: Path, **texts: str) -> Path:
    """A layer of an environment with a package ``kit`` and a module ``tool``."""
    packages = root / PACKAGES
    (packages / "kit").mkdir(parents=True)
    (packages / "kit/__init__.py").write_text(texts.get("kit", "x = 1\n"))
    (packages / "tool.py").write_text(texts.get("tool", "y = 2\n"))
    (packages / "kit/data.txt").write_text("import kit\n")
    return root


def compiled(store: ByteCodeStore, layer: Path, *sources: str) -> Path:
    """A layer with something in place of the byte code of sources."""
    for source in sources:
        path = layer / f"{source.removesuffix('.py').lstrip('/')}{store.suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.encode())
    return layer


def names(layer: Path) -> set[str]:
    return {path.relative_to(layer).as_posix().rpartition(".cpython")[0] for path in layer.rglob("*.pyc")}


def test_equal_files_have_equal_times_and_keys(store: ByteCodeStore, tmp_path: Path) -> None:
    one, two = environment(tmp_path / "one"), environment(tmp_path / "two", tool="y = 3\n")
    first, second = store.sources(one), store.sources(two)
    assert set(first) == set(second) == {KIT, TOOL}
    assert first[KIT] == second[KIT]
    assert first[TOOL] != second[TOOL]
    times = [
        [(root / PACKAGES / name).stat().st_mtime_ns for root in (one, two)] for name in ("kit/__init__.py", "tool.py")
    ]
    assert times[0][0] == times[0][1]
    assert times[1][0] != times[1][1]


def test_what_was_imported_is_compiled_once_and_linked_into_the_next_environment(
    store: ByteCodeStore, tmp_path: Path
) -> None:
    sources = store.sources(environment(tmp_path / "env"))
    assert store.link_known(sources, tmp_path / "first") == [], "nothing was imported yet"
    store.note_imported(compiled(store, tmp_path / "imported", KIT))
    assert store.link_known(sources, tmp_path / "second") == [KIT]
    assert not (tmp_path / "second").exists(), "byte code of a session with packages is not shared"
    store.keep({KIT: sources[KIT]}, compiled(store, tmp_path / "clean", KIT, TOOL))
    assert store.link_known(sources, tmp_path / "third") == []
    assert names(tmp_path / "third") == {KIT[1:].removesuffix(".py")}
    assert not store.has_all_packages(sources, tmp_path / "third")
    store.keep({TOOL: sources[TOOL]}, compiled(store, tmp_path / "clean", TOOL))
    store.link_known({TOOL: sources[TOOL]}, tmp_path / "third")
    assert store.has_all_packages(sources, tmp_path / "third")
    changed = store.sources(environment(tmp_path / "other", kit="x = 2\n"))
    assert store.link_known(changed, tmp_path / "fourth") == [KIT]
    assert names(tmp_path / "fourth") == {TOOL[1:].removesuffix(".py")}


def test_modules_of_the_standard_library_are_shared_too(
    store: ByteCodeStore, interpreter: Interpreter, tmp_path: Path
) -> None:
    module = f"{library_of(interpreter)}/json/decoder.py"
    env = environment(tmp_path / "env")
    assert module not in store.sources(env)
    store.note_imported(compiled(store, tmp_path / "imported", module, "/etc/passwd.py"))
    sources = store.sources(env)
    assert set(sources) == {KIT, TOOL, module}
    assert store.link_known(sources, tmp_path / "known") == [module]


def test_links_are_neither_followed_nor_kept(store: ByteCodeStore, tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    (env / PACKAGES / "link.py").symlink_to("/etc/passwd")
    sources = store.sources(env)
    assert set(sources) == {KIT, TOOL}
    layer = compiled(store, tmp_path / "clean", KIT)
    path = next(layer.rglob("*.pyc"))
    path.unlink()
    path.symlink_to("/etc/passwd")
    store.keep(sources, layer)
    store.note_imported(layer)
    assert store.link_known(sources, tmp_path / "known") == []


def test_the_compiler_runs_nothing(tmp_path: Path) -> None:
    interpreter = interpreter_of(".".join(map(str, sys.version_info[:3])))
    module = tmp_path / "module.py"
    module.write_text("raise SystemExit('it ran')\n")
    broken = tmp_path / "broken.py"
    broken.write_text("def\n")
    program = ByteCodeStore(tmp_path, interpreter).compiler
    command = [word.replace("pycache_prefix=/excise/outputs", f"pycache_prefix={tmp_path}/pyc") for word in program]
    subprocess.run(command, input=f"{broken}\0{module}\0{tmp_path}/gone.py".encode(), check=True, cwd=tmp_path)
    found = {path.name.partition(".")[0] for path in (tmp_path / "pyc").rglob("*.pyc")}
    assert "module" in found
    assert "broken" not in found
