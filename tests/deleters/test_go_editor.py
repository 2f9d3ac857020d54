"""Go's code editor: stubs and stand-ins compile, and tests go with what only they use."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.envs.go.toolchain import VARIABLES
from excise.errors import ConfigError, DeletionRefused
from excise.extractors.fetch.trees import list_files
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.types import Deletion, Feature, FeatureKind

REPO = Path(__file__).parents[1] / "repos" / "spans"
GO = "/usr/lib/go/bin/go"
"""The compiler of Debian's package golang-go, which ./check installs."""


@pytest.fixture(scope="module")
def codebase() -> GoCodebase:
    return GoCodebase.parse(REPO, list_files(REPO), import_paths=["example.com/spans"])


def stubbed(codebase: GoCodebase, *symbols: str, tests: tuple[str, ...] = ()) -> Deletion:
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=tests)
    return get("stub", "go").delete(codebase, feature)


def files_after(*patches: str) -> Mapping[str, bytes | None]:
    """Contents of the files that patches change."""
    found: dict[str, bytes | None] = {}
    for patch in patches:
        known = {path: (REPO / path).read_bytes() for path in touched(patch)}
        found |= apply_patch(known, patch)
    return found


def vetted(folder: Path, changed: Mapping[str, bytes | None]) -> str:
    """What go says of the project with changed files: nothing if everything, tests included, compiles."""
    for path in list_files(REPO):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        data = changed.get(path, (REPO / path).read_bytes())
        if data is not None:
            (folder / path).write_bytes(data)
    variables = {**VARIABLES, "PATH": "/usr/bin:/bin", "HOME": str(folder), "GOCACHE": str(folder / ".cache")}
    command = [GO, "test", "-vet=off", "-run", "^$", "./..."]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_a_stub_keeps_signature_and_comment_and_drops_imports(codebase: GoCodebase, tmp_path: Path) -> None:
    deletion = stubbed(
        codebase, "spans.go::Parse", "spans.go::Join", tests=("spans_test.go::TestParse", "spans_test.go::TestJoin")
    )
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    source = (changed["spans.go"] or b"").decode()
    assert 'func Parse(input string) (Span, error) {\n\tpanic("not implemented")\n}' in source
    assert "// Parse reads a span" in source
    assert '"sort"' not in source
    assert '"example.com/spans/text"' not in source
    assert '"strconv"' in source, "String uses it"
    tests = (changed["spans_test.go"] or b"").decode()
    assert "TestParse(" not in tests
    assert "var parsed" not in tests, "a table that only the hidden test used"
    assert "func sameSpans" in tests, "TestGaps uses it"
    assert deletion.hidden == ("spans_test.go::TestJoin", "spans_test.go::TestParse")
    assert dict(deletion.text)["spans.go::Join"].startswith("func Join(")
    assert vetted(tmp_path, changed) == ""


@pytest.mark.parametrize("kind", ["none", "raise", "any"])
def test_stand_ins_of_everything_compile(codebase: GoCodebase, tmp_path: Path, kind: str) -> None:
    patches = dict(editor_of("go").stand_ins(codebase, ["spans.go", "text/text.go"]))
    changed = files_after(patches[kind])
    assert vetted(tmp_path, changed) == ""
    if kind == "any":
        assert b"result1 = struct{ error }{}" in (changed["spans.go"] or b"")


def test_a_file_without_tests_goes_whole(codebase: GoCodebase) -> None:
    tests = ("text/text_test.go::TestSqueeze", "text/text_test.go::TestInitials")
    deletion = stubbed(codebase, "text/text.go::Squeeze", tests=tests)
    assert files_after(deletion.hide_patch) == {"text/text_test.go": None}


def test_methods_of_a_type_and_functions_of_a_file_are_stubbed_together(codebase: GoCodebase) -> None:
    of_type = stubbed(codebase, "spans.go::Span").removed
    assert of_type == tuple(sorted(f"spans.go::Span.{name}" for name in ("Contains", "Len", "Overlaps", "String")))
    assert stubbed(codebase, "text/text.go").removed == ("text/text.go::Initials", "text/text.go::Squeeze")


def test_what_go_cannot_do_is_refused(codebase: GoCodebase) -> None:
    with pytest.raises(ConfigError, match="no deleter of go"):
        get("remove", "go")
    with pytest.raises(DeletionRefused, match="belongs to the tests"):
        stubbed(codebase, "spans_test.go::sameSpans")
