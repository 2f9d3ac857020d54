"""Rules for the layout of folders, for imports between them, and for every file."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("layout")  # with test_languages.py: every file is parsed once
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "excise"
BASE = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} | {
    path.name for path in SOURCE.iterdir() if path.is_dir() and not path.is_symlink() and path.name != "__pycache__"
}
"""Records, interfaces, settings, and what is below them (``system``): everything may import these."""

MAY_IMPORT = {
    "extractors": set(),
    "envs": {"agents"},
    "agents": set(),
    "deleters": {"extractors", "agents"},
    "verifiers": {"envs", "extractors", "deleters", "agents"},
    "datasets": set(),
    "trainer": {"agents", "envs", "verifiers", "datasets"},
    "pipeline": {"extractors", "envs", "agents", "deleters", "verifiers", "datasets", "trainer"},
}
"""Folder to the other folders that it may import; all may import the records and themselves."""


def parsed(source: str | bytes) -> ast.Module:
    """The syntax tree. Python 3.11 counts the depth of trees for all threads together, and may find the sum wrong."""
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def tracked() -> list[Path]:
    """Files of the repository that git tracks or does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def modules(folder: str) -> list[Path]:
    return [path for path in tracked() if path.is_relative_to(ROOT / folder) and path.suffix == ".py"]


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_are_linked_and_are_no_packages_themselves(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
    link = SOURCE / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../../{folder}"
    assert link.resolve() == (ROOT / folder).resolve()


def test_every_link_has_a_rule() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_symlink()} == set(MAY_IMPORT)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_one_way(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | BASE | {folder}
    found = {
        f"{path.relative_to(ROOT)} imports excise.{name}"
        for path in modules(folder)
        for name in imported_parts(path.read_text(encoding="utf-8"))
        if name not in allowed
    }
    assert found == set()


def test_the_records_import_nothing_of_ours() -> None:
    for path in tracked():
        if (
            path.is_relative_to(SOURCE)
            and path.suffix == ".py"
            and path not in {SOURCE / "__init__.py", SOURCE / "__main__.py"}
        ):
            assert set(imported_parts(path.read_text(encoding="utf-8"))) <= BASE, path


def test_system_mechanisms_import_no_records() -> None:
    for path in modules("src/excise/system"):
        assert set(imported_parts(path.read_text(encoding="utf-8"))) <= {"system", "errors"}, path


def imported_parts(source: str) -> list[str]:
    """First part below ``excise`` of every import, whatever its form (``from excise import x`` names x)."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found += [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("excise.")]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports as excise.<folder>.<module>"
            if node.module == "excise":
                found += [alias.name for alias in node.names if alias.name != "__version__"]
            elif node.module and node.module.startswith("excise."):
                found.append(node.module.split(".")[1])
    return found


def test_the_import_rule_sees_every_form() -> None:
    source = "import excise.a.b\nfrom excise.c import d\nfrom excise import e\ndef f():\n    from excise.g.h import i\n"
    assert imported_parts(source) == ["a", "c", "e", "g"]


@cache
def imported_modules(source: str) -> frozenset[str]:
    """Dotted names below ``excise`` that a file may import: ``from excise.a import b`` names ``a`` and ``a.b``."""
    found: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name.removeprefix("excise.") for name in found if name.startswith("excise."))


def import_graph() -> dict[Path, set[Path]]:
    """Every module of ours to the modules that it imports; programs that run in sandboxes import none."""
    by_name: dict[str, Path] = {}
    for path in [*modules("src/excise"), *(path for folder in MAY_IMPORT for path in modules(folder))]:
        if "inside" not in path.parts and path not in {SOURCE / "__init__.py", SOURCE / "__main__.py"}:
            below = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT)
            by_name[".".join(below.with_suffix("").parts).removesuffix(".__init__")] = path
    return {
        path: {by_name[name] for name in imported_modules(path.read_text(encoding="utf-8")) & by_name.keys()} - {path}
        for path in by_name.values()
    }


def circle_in(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The nodes of one circle, the first again at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_modules_do_not_import_each_other_in_circles() -> None:
    graph = {str(path.relative_to(ROOT)): {str(p.relative_to(ROOT)) for p in of} for path, of in import_graph().items()}
    assert circle_in(graph) == []


def test_rooms_do_not_import_each_other_in_circles() -> None:
    """At each level, folders (with all that is below them) and the files beside them form a graph without circles."""
    graph = import_graph()
    levels = {parent for path in graph for parent in path.relative_to(ROOT).parents if parent != Path(".")}
    found = {}
    for level in sorted(levels):
        rooms: dict[str, set[str]] = {}
        for path, imports in graph.items():
            if path.is_relative_to(ROOT / level):
                here = path.relative_to(ROOT / level).parts[0]
                there = {p.relative_to(ROOT / level).parts[0] for p in imports if p.is_relative_to(ROOT / level)}
                rooms.setdefault(here, set()).update(there - {here})
        if circle := circle_in(rooms):
            found[str(level)] = circle
    assert found == {}


def test_the_circle_rule_sees_circles() -> None:
    assert set(circle_in({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})) == {"a", "b", "c"}
    assert circle_in({"a": ["b", "c"], "b": ["c"]}) == []
    graph = import_graph()
    assert SOURCE / "errors.py" in graph[ROOT / "extractors/sources.py"]
    assert len(graph) > 300


@pytest.mark.parametrize("name", ["datasets", "verifiers"])
def test_other_distributions_of_the_same_name_win(tmp_path: Path, name: str) -> None:
    """From the root of the repository, ``import datasets`` reaches the library of that name."""
    library = tmp_path / name
    library.mkdir()
    (library / "__init__.py").write_text("def load_dataset():\n    return 'theirs'\n")
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        f"from {name} import load_dataset; print(load_dataset())\n"
        "from excise.datasets.taskset import TaskSet; print(TaskSet.__module__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["theirs", "excise.datasets.taskset"]


@pytest.mark.parametrize("module", ["excise", "excise.config", "excise.types", "excise.protocols"])
def test_importing_is_cheap(module: str) -> None:
    heavy = ["torch", "dask", "distributed", "pyarrow", "duckdb", "docker", "openai", "vllm"]
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_torch_is_imported_by_the_trainer_alone() -> None:
    pattern = re.compile(r"^\s*(import|from) (torch|vllm)\b", re.MULTILINE)
    folders = [SOURCE.relative_to(ROOT), *(Path(f) for f in MAY_IMPORT if f != "trainer")]
    found = [p for f in folders for p in modules(str(f)) if pattern.search(p.read_text(encoding="utf-8"))]
    assert found == []


def texts() -> list[tuple[Path, str]]:
    """Every tracked text file with its content."""
    found = []
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            found.append((path.relative_to(ROOT), data.decode("utf-8", "replace")))
    return found


def test_no_file_names_a_registry() -> None:
    hosts = ["pypi" + ".org", "python" + "hosted.org", "npm" + "js.", "crates" + ".io", "deb" + ".debian.org"]
    hosts += ["repo1" + ".maven", "proxy" + ".golang"]
    found = [f"{path}: {host}" for path, text in texts() for host in hosts if host in text]
    assert found == []


def test_no_file_names_a_path_of_a_machine() -> None:
    """``/home/agent`` is allowed, as the home in every sandbox, and so are root's dot files, which attacks read."""
    pattern = re.compile(r"(?<![\w.$}*<>-])/(?:root/(?!\.(?!pyenv))|home/(?!agent\b)\w|work/(?=main|shared))[\w./]*")
    hostile = Path("tests/repos/escapes")  # tries to write where it must not
    searched = [(p, t) for p, t in texts() if p != Path(__file__).relative_to(ROOT) and hostile not in p.parents]
    found = [f"{path}: {match[0]}" for path, text in searched for match in pattern.finditer(text)]
    assert found == []


def test_files_have_one_idea_each() -> None:
    lengths = {str(path): text.count("\n") for path, text in texts() if path.suffix == ".py"}
    assert {path: n for path, n in lengths.items() if n > 500} == {}


def test_no_grab_bag_modules() -> None:
    names = {"utils.py", "helpers.py", "misc.py", "common.py"}
    assert [path for path in tracked() if path.name in names] == []


def test_the_package_resolves_into_this_checkout() -> None:
    spec = importlib.util.find_spec("excise")
    assert spec is not None
    assert Path(str(spec.origin)).resolve() == (SOURCE / "__init__.py").resolve()
