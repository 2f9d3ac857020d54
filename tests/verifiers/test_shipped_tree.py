"""The shipped tree: the edited files in one commit, without caches and history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from excise.config import Settings
from excise.extractors.fetch.trees import git_tree_hash, list_files
from excise.pipeline.services.checkout import write_tree
from excise.pipeline.stages.fetch_stage import fetch
from excise.types import SourceSpec
from excise.verifiers.grading.intake import _apply_diff
from excise.verifiers.shipped_tree import materialise, scrubbed

SOURCES = {
    "pkg/mod.py": "kept\n",
    "pkg/gone.py": "gone\n",
    "run.sh": "#!/bin/sh\n",
    ".gitignore": "ignored.txt\n*.so\n",
    "ignored.txt": "tracked all the same\n",
    ".gitattributes": "*.txt eol=crlf\n",
    "pkg/__pycache__/mod.cpython-312.pyc": "compiled\n",
    "pkg/mod.py.orig": "before\n",
    ".mypy_cache/mod.json": "before\n",
    "dist/pkg-1.0-py3-none-any.whl": "before\n",
    ".coverage": "before\n",
    "TAGS": "before\n",
    "name with space.txt": "x\n",
}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    base, built = tmp_path / "base", tmp_path / "built"
    for path, text in SOURCES.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    (base / "run.sh").chmod(0o755)
    (base / "link").symlink_to("pkg/mod.py")
    for path in ("pkg.egg-info/PKG-INFO", "pkg/ext.so", "pkg/mod.py", "build/lib/x.pyc"):
        (built / path).parent.mkdir(parents=True, exist_ok=True)
        (built / path).write_text("built\n")
    edits = {"pkg/mod.py": b"edited\n", "pkg/gone.py": None, "run.sh": b"#!/bin/sh\ntrue\n", "new/file.py": b"new\n"}
    tree = tmp_path / "tree"
    materialise(base, built, list_files(base), edits, tree, "python")
    return tree


def test_files_are_those_of_the_edited_tree(shipped: Path) -> None:
    assert sorted(list_files(shipped)) == sorted(
        [".gitattributes", ".gitignore", "ignored.txt", "link", "name with space.txt", "new/file.py", "pkg/mod.py",
         "run.sh", "pkg.egg-info/PKG-INFO", "pkg/ext.so"]
    )  # fmt: skip
    assert (shipped / "pkg/mod.py").read_text() == "edited\n", "a built file replaces no source"
    assert (shipped / "ignored.txt").read_text() == "tracked all the same\n"
    assert (shipped / "run.sh").stat().st_mode & 0o111
    assert not (shipped / "pkg/mod.py").stat().st_mode & 0o111
    assert (shipped / "link").readlink() == Path("pkg/mod.py")


def test_the_history_is_one_commit_by_nobody(shipped: Path) -> None:
    assert git(shipped, "rev-list", "--all", "--count").split() == ["1"]
    assert git(shipped, "log", "--format=%an %ae %ad %s").split("\n")[0].startswith("excise excise@localhost")
    assert "2000" in git(shipped, "log", "--format=%ad")
    assert git(shipped, "for-each-ref").count("\n") == 1
    assert git(shipped, "stash", "list") == ""
    assert git(shipped, "remote", "-v") == ""
    assert not (shipped / ".git" / "logs").exists()
    assert list((shipped / ".git").glob("hooks/*")) == []


def test_no_git_object_holds_deleted_code(shipped: Path) -> None:
    listed = git(shipped, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    blobs = [line.split()[0] for line in listed if " blob " in line]
    assert len(blobs) == 8, "one for each different file that is committed"
    texts = {git(shipped, "cat-file", "blob", blob) for blob in blobs}
    assert not {"gone\n", "kept\n", "before\n", "built\n"} & texts
    assert git(shipped, "fsck", "--unreachable", "--no-reflogs") == ""


@pytest.mark.parametrize(
    "attributes",
    [
        "* text=auto", "* text eol=lf", "* eol=crlf", "* ident", "* -diff", "* binary", "* filter=lfs",
        "* text working-tree-encoding=UTF-16", "* crlf=input",
    ],
)  # fmt: skip
def test_a_diff_of_the_shipped_tree_applies_with_any_gitattributes(tmp_path: Path, attributes: str) -> None:
    files = {".gitattributes": attributes, "dos.py": "a = 1\r\nb = '$Id$'\r\n", "unix.py": "a = 1\nb = '$Id$'\n"}
    for folder in ("base", "again"):
        for path, text in files.items():
            (tmp_path / folder / path).parent.mkdir(exist_ok=True)
            (tmp_path / folder / path).write_bytes(text.encode())
    base, tree = tmp_path / "base", tmp_path / "tree"
    materialise(base, tmp_path / "nothing", list_files(base), {}, tree, "python")
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "rev-parse", "HEAD^{tree}").strip() == git_tree_hash(tree) == git_tree_hash(base)
    solved = {path: text.replace("1", "2").encode() for path, text in files.items() if path.endswith(".py")}
    for path, data in solved.items():
        (tree / path).write_bytes(data)
    diff = subprocess.run(["git", "diff"], cwd=tree, capture_output=True, check=True).stdout
    _apply_diff(tmp_path / "again", diff.decode())
    assert {path: (tmp_path / "again" / path).read_bytes() for path in solved} == solved
    assert (tmp_path / "again/.gitattributes").read_text() == attributes


def test_a_task_is_shipped_reproducibly(stored, tmp_path: Path) -> None:
    instance_id = stored.taskset.ids()[0]
    heads = []
    for name in ("one", "two"):
        write_tree(stored.taskset, instance_id, tmp_path / name)
        heads.append(git(tmp_path / name, "rev-parse", "HEAD"))
    assert heads[0] == heads[1]


def test_every_shipped_tree_is_the_proven_one(stored, tmp_path: Path) -> None:
    for task in stored.taskset.tasks():
        into = tmp_path / task.instance_id
        write_tree(stored.taskset, task.instance_id, into)
        assert git_tree_hash(into) == task.shipped_tree
        assert git(into, "status", "--porcelain", "--ignored") == ""
        assert list(into.rglob("__pycache__")) == []
        write_tree(stored.taskset, task.instance_id, tmp_path / f"solved-{task.instance_id}", solved=True)
        assert git_tree_hash(tmp_path / f"solved-{task.instance_id}") == task.tree


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("a/__pycache__/b.py", True), ("a/b.pyc", True), ("x~", True), (".git/config", True), ("sub/.hg/store", True),
        ("a/node_modules/b.js", True), (".hypothesis/examples/1", True), ("htmlcov/index.html", True),
        ("a/b.py", False), ("dist/readme.txt", False), ("cache.py", False), ("docs/tags.rst", False),
        ("venv.py", False), ("src/pdm/cli/commands/venv/backends.py", False), ("env/settings.py", False),
        (".venv/readme.txt", False), ("tests/__pycache__/__init__.py", True), ("node_modules/deep/__init__.py", True),
    ],
)  # fmt: skip
def test_caches_and_leftovers_are_scrubbed(path: str, gone: bool) -> None:
    assert scrubbed([path], "python") == ({path} if gone else set())


@pytest.mark.parametrize(
    ("paths", "gone"),
    [
        (["a/venv/pyvenv.cfg", "a/venv/lib/m.py", "a/m.py"], {"a/venv/pyvenv.cfg", "a/venv/lib/m.py"}),
        (["env/pyvenv.cfg", "env/__init__.py"], {"env/pyvenv.cfg", "env/__init__.py"}),
        (["pyvenv.cfg", "venv/m.py"], set()),
        (["pkg/htmlcov/__init__.py", "pkg/htmlcov/m.py", "htmlcov/m.html"], {"htmlcov/m.html"}),
        ([".cache/__init__.py"], {".cache/__init__.py"}),
        (["d/_build/html/.buildinfo", "d/_build/html/_modules/m.html", "d/i.rst"],
         {"d/_build/html/.buildinfo", "d/_build/html/_modules/m.html"}),
        (["docs/.buildinfo", "docs/conf.py", "docs/html/i.html"], set()),
        (["d/doctrees/environment.pickle", "d/doctrees/i.doctree", "m/environment.pickle/x"],
         {"d/doctrees/environment.pickle", "d/doctrees/i.doctree"}),
        (["debian/patches/series", "debian/patches/tests.patch", "debian/rules", "pkg/patches/__init__.py"],
         {"debian/patches/series", "debian/patches/tests.patch"}),
        (["site/search/search_index.json", "site/api/m.html", "search/i.md"],
         {"site/search/search_index.json", "site/api/m.html"}),
        ([".buildinfo", "m.py"], set()),
        (["pkg/environment.pickle", "pkg/__init__.py"], set()),
        (["docs/.buildinfo", "docs/index.html", "docs/source/index.rst"], set()),
        (["tests/search/search_index.json", "tests/test_a.py"], set()),
    ],
)  # fmt: skip
def test_a_folder_is_recognised_by_its_content(paths: list[str], gone: set[str]) -> None:
    assert scrubbed(paths, "python") == gone


def test_gates_and_graders_see_the_scrubbed_tree(tmp_path: Path) -> None:
    project = tmp_path / "project"
    files = {
        "pyproject.toml": '[project]\nname = "pkg"\nversion = "1"\n', "pkg/core.py": "x = 1\n",
        "pkg/venv/__init__.py": "", "pkg/core.py.orig": "old\n", "wheels/pkg-1-py3-none-any.whl": "old\n",
        "pkg/.venv/pyvenv.cfg": "home = /\n",
    }  # fmt: skip
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    settings = Settings(cache=tmp_path / "cache", out=tmp_path / "out")
    sourced = fetch(settings, SourceSpec(spec=str(project)), keep_archive=False)
    layer = Path(sourced.layer)
    assert list_files(layer) == ["pkg/core.py", "pkg/venv/__init__.py", "pyproject.toml"]
    assert not (layer / "wheels").exists()
    (tmp_path / "built").mkdir()
    materialise(layer, tmp_path / "built", list_files(layer), {}, tmp_path / "tree", "python")
    assert git_tree_hash(tmp_path / "tree") == git_tree_hash(layer) == sourced.repo.tree


def test_what_was_compiled_from_typescript_is_an_artefact_but_tests_and_declarations_are_not() -> None:
    made = {"a/b.js", "lib/a/b.cjs", "lib/a/b.d.ts", "mod.js", "esm/mod.js", "src/a/b.js.map"}
    kept = {"src/a/b.ts", "src/c.d.ts", "test/a/b.js", "mod.ts", "index.js", "src/a/b.spec.ts", "types/z.d.ts"}
    assert scrubbed(made | kept, "javascript") == made
    assert scrubbed(kept - {"mod.ts", "src/a/b.ts"}, "javascript") == frozenset()
