"""The deleters on the source of installed packages: every deletion that they accept is exact and parses."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.patches.git_patches import apply_patch
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Deleter
from excise.types import Deletion, Feature, FeatureKind, Symbol

PACKAGES = ("coverage", "packaging", "dask/bag", "typer")
EVERY = 20
EXPECTED_REFUSALS = {
    "import_time_reference",
    "dunder_method",
    "abstract_method",
    "nothing_to_stub",
    "package_in_use",
    "no_expression",
    "not_one_function",
    "not_one_statement",
    "one_statement",
}
LEAST_ACCEPTED = {
    "remove": 0.5,
    "stub": 0.5,
    "expression": 0.12,
    "line": 0.08,
}
"""Least share of the sampled definitions that each deleter must accept; the others do with one what ``remove`` does."""


@cache
def codebase_of(package: str) -> PythonCodebase:
    top, _, rest = package.partition("/")
    spec = importlib.util.find_spec(top)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent.parent
    paths = [p.relative_to(root).as_posix() for p in (root / top / rest).rglob("*.py")]
    return PythonCodebase.parse(root, paths)


def sample(codebase: PythonCodebase) -> list[Symbol]:
    symbols = [s for s in codebase.symbols().values() if s.qualname and not codebase.is_test(s.path)]
    return sorted(symbols, key=lambda s: s.symbol_id)[::EVERY]


def delete(deleter: Deleter, codebase: PythonCodebase, symbol: Symbol) -> Deletion | DeletionRefused:
    feature = Feature(
        feature_id="f",
        kind=FeatureKind.FUNCTION,
        tier=1,
        entry=(symbol.symbol_id,),
        symbols=(symbol.symbol_id,),
        tests=(),
    )
    try:
        return deleter.delete(codebase, feature)
    except DeletionRefused as refusal:
        return refusal


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("deleter", [get(name) for name in LEAST_ACCEPTED], ids=lambda d: d.name)
def test_every_accepted_deletion_is_exact(deleter: Deleter, package: str, tmp_path: Path) -> None:
    codebase = codebase_of(package)
    files = {p: m.source for p, m in codebase.modules.items()}
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    accepted = 0
    for symbol in sample(codebase):
        deletion = delete(deleter, codebase, symbol)
        if isinstance(deletion, DeletionRefused):
            assert deletion.reason in EXPECTED_REFUSALS, f"{symbol.symbol_id}: {deletion}"
            continue
        accepted += 1
        changed = apply_patch(files, deletion.source_patch)
        git_apply(tmp_path, deletion.source_patch)
        assert {p: read(tmp_path / p) for p in changed} == changed
        git_apply(tmp_path, deletion.source_patch, "-R")
        assert {p: read(tmp_path / p) for p in changed} == {p: files[p] for p in changed}
        for path, after in changed.items():
            assert after is not None
            compile(after, f"{symbol.symbol_id} in {path}", "exec", dont_inherit=True)
        check_patch(deleter, deletion.source_patch, symbol.symbol_id)
        for _, stub in deletion.stub_patches:
            if stub:
                git_apply(tmp_path, stub, "--check")
    assert accepted > LEAST_ACCEPTED[deleter.name] * len(sample(codebase))


def check_patch(deleter: Deleter, patch: str, what: str) -> None:
    """Assert that lines which a patch adds are lines that it removes beside them: shortened, or moved to the left."""
    for hunk in re.split(r"(?m)^@@ .*\n", patch):
        before = b"\n".join(line[1:].encode() for line in hunk.split("\n") if line.startswith("-"))
        for line in (line[1:].encode() for line in hunk.split("\n") if line.startswith("+")):
            is_stub = line.strip().startswith((b"pass", b"raise NotImplementedError", b"++ b/"))
            is_stub |= deleter.name in {"stub", "line"} and b": raise NotImplementedError" in line
            assert is_stub or is_shortened(line, before), (what, line)


def is_shortened(line: bytes, before: bytes) -> bool:
    """Whether the line results from another one by removing elements of a list: its words are in the same order."""
    position = 0
    for word in line.split():
        position = before.find(word.rstrip(b",)]}"), position)
        if position < 0:
            return False
    return True


def git_apply(root: Path, patch: str, *options: str) -> None:
    subprocess.run(["git", "apply", *options, "-"], cwd=root, input=patch.encode(), check=True)


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
