"""Attacks: diffs that try to earn the reward without implementing the feature."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.deleters.patches.git_patches import touched
from excise.envs.sandbox.session_base import diff_folders
from excise.types import Task, by_plain_name, name_in_file, path_of
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

ChangedFiles = Mapping[str, bytes | str | None]
"""Path to new content; ``None`` deletes the file; text that begins with :data:`LINK` makes a symbolic link."""
LINK = "symlink -> "


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackTarget:
    """An attacker's knowledge of a task: the shipped tree, the missing names, the hidden tests' ids."""

    task: Task
    """The task."""
    shipped: dict[str, bytes]
    """Path to content of the shipped files that attacks change, and of all files in the top folder."""
    stubbed: dict[str, bytes]
    """Path to content of the feature's files with empty stubs: every name exists, nothing is implemented."""
    raising: dict[str, bytes]
    """The same with stubs that raise when they are called."""
    module: str
    """The file of the feature in which an attack puts its code."""
    names: tuple[str, ...]
    """Missing functions and methods of that file, as ``name`` or ``Class.name``."""
    tests: tuple[str, ...]
    """Ids of the hidden tests."""
    roots: tuple[str, ...]
    """Import roots."""
    package: str
    """Name of the feature's top-level package."""
    interpreter: Path
    """Path of the environment's interpreter."""

    @property
    def test_file(self) -> str:
        """File of the first hidden test."""
        return path_of(self.tests[0])

    @property
    def test_folder(self) -> str:
        """Folder of the hidden tests, with a trailing slash; empty for the top folder."""
        return self.test_file.rpartition("/")[0] + "/" if "/" in self.test_file else ""

    @property
    def root(self) -> str:
        """Import root of the feature, with a trailing slash; empty for the top folder."""
        found = [f"{root.strip('/')}/" for root in self.roots if root not in {".", ""}]
        return next((root for root in sorted(found, reverse=True) if self.module.startswith(root)), "")

    def with_code(self, code: str, *, first: bool = False) -> dict[str, bytes | str | None]:
        """The stubbed files, with ``code`` at the end (``first``: at the beginning) of the feature's file."""
        stub = self.stubbed[self.module].decode()
        text = f"{code}\n{stub}" if first else f"{stub}\n\n{code}\n"
        return {**self.stubbed, self.module: text}

    def with_names_bound(self, function: str, code: str) -> dict[str, bytes | str | None]:
        """The stubbed files, with every missing name bound to ``function``, which ``code`` defines."""
        lines = [code]
        for name in self.names:
            chosen = f"lambda *a, **k: {function}(*a, wanted={name!r}, **k)" if "wanted=" in code else function
            lines.append(f"try:\n    {name} = {chosen}\nexcept Exception:\n    pass")
        return self.with_code("\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attempt to get a reward without a solution."""

    name: str
    """Name of the attack."""
    vector: str
    """The part of grading that it attacks; attacks are grouped by it in reports."""
    make: Callable[[AttackTarget], ChangedFiles]
    """Makes the files that the attack changes in the shipped tree."""

    def diff(self, target: AttackTarget) -> str:
        """The attack as the diff that an agent would submit."""
        return diff_of(target.shipped, self.make(target))


def diff_of(shipped: Mapping[str, bytes], changed: ChangedFiles) -> str:
    """The diff from ``shipped`` to ``changed`` as git writes it, with binary files and links."""
    with tempfile.TemporaryDirectory(prefix="excise-attack-") as folder:
        for side in ("a", "b"):
            (Path(folder) / side).mkdir()
        for path, data in changed.items():
            if path in shipped:
                _write(Path(folder) / "a" / path, shipped[path])
            if data is not None:
                _write(Path(folder) / "b" / path, data)
        return diff_folders(Path(folder)).decode("utf-8", "surrogateescape")


def _write(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, str) and data.startswith(LINK):
        path.symlink_to(data.removeprefix(LINK))
    else:
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def attack_target(bench: Workbench, task: Task) -> AttackTarget:
    """Collect an attacker's knowledge of ``task``. Raises :class:`ExciseError`."""
    edits = bench.edits_of(task.deletion_patch)
    paths = {*edits, *(path for path in bench.paths if "/" not in path or path.endswith("conftest.py"))}
    paths |= {path_of(test) for test in (*task.fail_to_pass, *task.pass_to_pass)}
    shipped = {**bench.read(sorted(paths)), **{p: d for p, d in edits.items() if d is not None}}
    for path in [path for path, data in edits.items() if data is None]:
        shipped.pop(path, None)
    stubs = dict(candidate_of(bench, task).deletion.stub_patches)
    sources = [path for path in touched(task.patch) if path.endswith(bench.language.suffixes)]
    base = bench.read(sources)

    def with_stubs(kind: str) -> dict[str, bytes]:
        made = bench.edits_of(stubs[kind]) if kind in stubs else {}
        return {path: data for path in sources if (data := made.get(path) or base.get(path) or shipped.get(path))}

    stubbed = with_stubs("none")
    module = _module(task, stubbed)
    names = _missing(bench, task, module)
    root = next((r.strip("/") + "/" for r in bench.recipe.roots if r not in {".", ""} and module.startswith(r)), "")
    return AttackTarget(
        task=task,
        shipped=shipped,
        stubbed=stubbed,
        raising=with_stubs("raise"),
        module=module,
        names=names,
        tests=task.fail_to_pass,
        roots=bench.recipe.roots,
        package=module.removeprefix(root).partition("/")[0].partition(".")[0],
        interpreter=bench.interpreter.executable,
    )


def _module(task: Task, stubbed: Mapping[str, bytes]) -> str:
    removed = [path_of(symbol) for symbol in task.removed]
    return max(stubbed, key=lambda path: (removed.count(path), path))


def _missing(bench: Workbench, task: Task, module: str) -> tuple[str, ...]:
    """Functions and methods of ``module`` that the deletion removed."""
    names: dict[str, None] = {}
    removed = [name_in_file(symbol) for symbol in task.removed if path_of(symbol) == module]
    for name, symbol in by_plain_name(bench.codebase.modules[module].symbols).items():
        inside = any(not q or symbol.qualname == q or symbol.qualname.startswith(q + ".") for q in removed)
        if inside and symbol.is_callable and name.count(".") <= 1:
            names[name] = None
    return tuple(names)
