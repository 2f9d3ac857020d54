"""Every worked example of every deleter."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from excise.deleters.all_deleters import DELETERS, get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Deleter
from excise.types import Deletion, Feature, FeatureKind

from .examples import part_examples, proposed_examples, remove_and_stub_examples, remove_examples, stub_examples
from .examples.example import Example

EXAMPLES = {
    "expression": part_examples.EXPRESSIONS,
    "line": part_examples.LINES,
    "path": proposed_examples.EXAMPLES,
    "proposed": proposed_examples.EXAMPLES,
    "stub": stub_examples.EXAMPLES,
    "remove_and_stub": remove_and_stub_examples.EXAMPLES,
    "remove": remove_examples.EXAMPLES,
}
"""Name of each deleter to its worked examples."""

DELETER_OBJECTS = [get(name) for name in DELETERS]
CASES = [pytest.param(d, e, id=f"{d.name}: {e.name}") for d in DELETER_OBJECTS for e in EXAMPLES.get(d.name, ())]


def feature_of(symbols: tuple[str, ...], tests: tuple[str, ...] = ()) -> Feature:
    return Feature(
        feature_id="example", kind=FeatureKind.FUNCTION, tier=1, entry=symbols[:1], symbols=symbols, tests=tests
    )


def run(deleter: Deleter, example: Example) -> Deletion:
    codebase = PythonCodebase.from_texts(example.before)
    feature = replace(feature_of(example.delete), changed=example.changed)
    return deleter.delete(codebase, feature, hide=frozenset(example.hide))


def test_every_deleter_has_examples() -> None:
    assert set(EXAMPLES) == {deleter.name for deleter in DELETER_OBJECTS}
    assert all(EXAMPLES.values())


@pytest.mark.parametrize(("deleter", "example"), CASES)
def test_example(deleter: Deleter, example: Example, tmp_path: Path) -> None:
    if not example.after:
        with pytest.raises(DeletionRefused):
            run(deleter, example)
        return
    deletion = run(deleter, example)
    before = {path: text.encode() for path, text in example.before.items()}
    patch = deletion.source_patch + deletion.hide_patch
    changed = apply_patch(before, patch)
    assert {p: t.decode() if t is not None else None for p, t in changed.items()} == dict(example.after)
    assert set(deletion.hidden) >= set(example.hide)
    assert set(touched(patch)) == set(example.after)
    after = {p: t for p, t in {**before, **changed}.items() if t is not None}
    git_apply(tmp_path, after, patch, "-R")
    assert tree(tmp_path) == before
    codebase, edits = PythonCodebase.from_texts(example.before), apply_patch(before, deletion.source_patch)
    found = editor_of("python").deleted_texts(codebase, deletion.deleter, deletion.removed, edits)
    assert sorted(found) == sorted(deletion.text), "what a stored task tells is the same"
    assert {k for k, _ in deletion.stub_patches} == {"none", "raise", "any", "trivial"}
    for _, stub in deletion.stub_patches:
        apply_patch(before, stub)


def git_apply(root: Path, files: dict[str, bytes], patch: str, *options: str) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    subprocess.run(["git", "apply", *options, "-"], cwd=root, input=patch.encode(), check=True)


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
