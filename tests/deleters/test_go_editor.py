"""Go's code editor: what is left compiles, and tests go with what only they use."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.go.statement_words import GoWords
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.title import title
from excise.deleters.statement.uses import where_used
from excise.envs.go.toolchain import VARIABLES
from excise.errors import ConfigError, DeletionRefused
from excise.extractors.fetch.trees import list_files
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.protocols import CompiledDeleter
from excise.types import Deletion, Feature, FeatureKind

from .planned_deletions import REPO as PROJECT

REPO = Path(__file__).parents[1] / "repos" / "spans"
GO = "/usr/lib/go/bin/go"
"""The compiler of Debian's package golang-go, which ./check installs."""


@pytest.fixture(scope="module")
def codebase() -> GoCodebase:
    return GoCodebase.parse(REPO, list_files(REPO), import_paths=["example.com/spans"])


def feature(*symbols: str, tests: tuple[str, ...] = ()) -> Feature:
    return Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=tests)


def stubbed(codebase: GoCodebase, *symbols: str, tests: tuple[str, ...] = ()) -> Deletion:
    return get("stub", "go").delete(codebase, feature(*symbols, tests=tests))


def removed(codebase: GoCodebase, *symbols: str) -> Deletion:
    return get("remove", "go").delete(codebase, feature(*symbols))


def files_after(*patches: str) -> Mapping[str, bytes | None]:
    """Contents of the files that patches change."""
    found: dict[str, bytes | None] = {}
    for patch in patches:
        known = {path: (REPO / path).read_bytes() for path in touched(patch)}
        found |= apply_patch(known, patch)
    return found


def vetted(folder: Path, changed: Mapping[str, bytes | None]) -> str:
    """What go says of the project with changed files: nothing if everything, tests included, compiles."""
    return said_by_go(folder, {**{path: (REPO / path).read_bytes() for path in list_files(REPO)}, **changed})


def said_by_go(folder: Path, files: Mapping[str, bytes | None]) -> str:
    """What go says of files: nothing if everything compiles."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
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


def test_definitions_go_with_what_only_they_need(codebase: GoCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, "spans.go::Parse")
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    source = (changed["spans.go"] or b"").decode()
    assert deletion.deleter == "remove"
    assert "Parse" not in source
    assert '"strconv"\n)\n\n// ErrEmpty' in source, "imports go, and the blank line between groups of them"
    assert "ExampleParse" in "".join(deletion.hidden), "it mentions what is gone, so that it could not be compiled"
    assert "TestParseErrors" in "".join(deletion.hidden)
    assert vetted(tmp_path, changed) == ""


def test_what_code_that_stays_uses_is_left_as_a_stub(codebase: GoCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, "spans.go::Join", "spans.go::Gaps")
    assert (deletion.deleter, deletion.removed) == ("remove_and_stub", ("spans.go::Gaps", "spans.go::Join"))
    assert [name for name, _ in deletion.text] == ["spans.go::Gaps", "spans.go::Join#part1"]
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    assert 'func Join(spans []Span) []Span {\n\tpanic("not implemented")\n}' in (changed["spans.go"] or b"").decode()
    assert "spans_test.go::TestJoin" not in deletion.hidden, "it compiles, and so is for coverage to name"
    assert vetted(tmp_path, changed) == ""
    texts = editor_of("go").deleted_texts(codebase, deletion.deleter, deletion.removed, changed)
    assert texts == list(deletion.text), "a stored task tells stubs from what is gone"
    with pytest.raises(DeletionRefused, match="code that stays needs it"):
        removed(codebase, "spans.go::Join")


SHAPES = {
    "go.mod": "module example.com/shapes\n\ngo 1.18\n",
    "shape.go": """package shapes

// Shape has an area and a name.
type Shape interface {
	Area() int
	Name() string
}

// Total adds areas.
func Total(shapes []Shape) int {
	sum := 0
	for _, s := range shapes {
		sum += s.Area()
	}
	return sum
}
""",
    "square.go": """package shapes

const (
	four = 4 // corners

	// Unit is one.
	Unit = 1
)

// Square is one.
type Square struct{ Side int }

// Area is its area.
func (s Square) Area() int { return s.Side * s.Side }

// Name tells what it is.
func (s Square) Name() string { return "square" }

// Corners counts.
func (s Square) Corners() int { return four }

// Squares are all.
func Squares() []Shape { return []Shape{Square{Unit}} }
""",
    "disc.go": """package shapes

// Disc is round.
type Disc struct{ R int }

var _ Shape = (*Disc)(nil)

// Area is its area.
func (d *Disc) Area() int { return 3 * d.R * d.R }

// Name tells what it is.
func (d *Disc) Name() string { return "disc" }
""",
    "shape_test.go": """package shapes

import "testing"

func disc() *Disc { return &Disc{2} }

func TestDisc(t *testing.T) {
	if disc().Area() != 12 {
		t.Fail()
	}
}

func TestTotal(t *testing.T) {
	if Total(Squares()) != 1 {
		t.Fail()
	}
}

func BenchmarkDisc(b *testing.B) { disc() }
""",
}


def test_types_go_with_their_methods_and_files(tmp_path: Path) -> None:
    codebase = GoCodebase.from_texts(SHAPES, import_paths=["example.com/shapes"])
    deletion = removed(codebase, "disc.go::Disc")
    assert deletion.removed == ("disc.go::Disc", "disc.go::Disc.Area", "disc.go::Disc.Name")
    assert deletion.hidden == ("shape_test.go::BenchmarkDisc", "shape_test.go::TestDisc")
    assert "deleted file mode" in deletion.source_patch, "nothing is left in it, the assertion of its type included"
    files = {path: text.encode() for path, text in SHAPES.items()}
    shipped = {**files, **apply_patch(files, deletion.source_patch), **apply_patch(files, deletion.hide_patch)}
    assert b"disc()" not in (shipped["shape_test.go"] or b"")
    assert said_by_go(tmp_path, shipped) == ""
    corners = removed(codebase, "square.go::Square.Corners")
    after = apply_patch(files, corners.source_patch)["square.go"] or b""
    assert b"const (\n\t// Unit is one.\n\tUnit = 1\n)\n" in after, "a private constant that nothing else used"


def test_the_compiler_says_which_methods_must_stay(tmp_path: Path) -> None:
    codebase = GoCodebase.from_texts(SHAPES, import_paths=["example.com/shapes"])
    deleter = get("remove", "go")
    wanted = feature("square.go::Square.Area", "square.go::Square.Corners", "square.go::Square.Name")
    first = deleter.delete(codebase, wanted)
    assert first.deleter == "remove"
    files = {path: text.encode() for path, text in SHAPES.items()}
    said = said_by_go(tmp_path / "first", {**files, **apply_patch(files, first.source_patch)})
    assert said.count("missing ") == 1, "go tells one method; the type of the interface tells the other"
    assert isinstance(deleter, CompiledDeleter)
    second = deleter.corrected(codebase, first, [said]).delete(codebase, wanted)
    assert (second.deleter, second.removed) == ("remove_and_stub", first.removed)
    shipped = {**files, **apply_patch(files, second.source_patch)}
    assert b"Square) Area() int {\n\tpanic(" in (shipped["square.go"] or b"")
    assert b"Square) Name() string {\n\tpanic(" in (shipped["square.go"] or b"")
    assert b"Corners" not in (shipped["square.go"] or b"")
    assert said_by_go(tmp_path / "second", shipped) == ""
    with pytest.raises(DeletionRefused, match="does not compile"):
        deleter.corrected(codebase, first, ["go: no such tool"])


def test_a_private_type_that_is_used_stays_without_its_methods() -> None:
    text = (
        "package a\n\ntype unit int\n\nfunc (u unit) Half() int { return int(u) / 2 }\n\n"
        "func (u unit) third() int { return int(u) / 3 }\n\nfunc One() unit { return 1 }\n\n"
        "func Third() int { return One().third() }\n"
    )
    deletion = removed(GoCodebase.from_texts({"a.go": text}), "a.go::unit.Half", "a.go::Third")
    after = (apply_patch({"a.go": text.encode()}, deletion.source_patch)["a.go"] or b"").decode()
    assert after == "package a\n\ntype unit int\n\nfunc One() unit { return 1 }\n"


def test_what_go_cannot_do_is_refused(codebase: GoCodebase) -> None:
    with pytest.raises(ConfigError, match="no deleter of go"):
        get("path", "go")
    with pytest.raises(DeletionRefused, match="belongs to the tests"):
        stubbed(codebase, "spans_test.go::sameSpans")


def test_variables_that_only_get_a_value_go_with_what_read_them(tmp_path: Path) -> None:
    files = {
        "go.mod": "module example.com/box\n\ngo 1.19\n",
        "box.go": (
            'package box\n\nimport "regexp"\n\n'
            "var (\n\topen *regexp.Regexp\n\tshut *regexp.Regexp\n\tseen = count()\n)\n\n"
            'var loose *regexp.Regexp\n\nconst rule = "x"\n\n'
            'func init() {\n\topen = regexp.MustCompile("a")\n\tshut = regexp.MustCompile(rule)\n'
            "\tseen = count()\n}\n\n"
            "func init() {\n\tloose = regexp.MustCompile(rule)\n}\n\nfunc count() int { return 1 }\n\n"
            "// Open opens.\nfunc Open(s string) bool { return open.MatchString(s) }\n\n"
            "// Shut shuts.\nfunc Shut(s string) bool {\n"
            "\treturn shut.MatchString(s) && loose.MatchString(s) && seen > 0\n}\n"
        ),
    }
    box = GoCodebase.from_texts(files, import_paths=["example.com/box"])
    patch = removed(box, "box.go::Shut").source_patch
    after = apply_patch({"box.go": files["box.go"].encode()}, patch)["box.go"]
    assert after == (
        b'package box\n\nimport "regexp"\n\nvar (\n\topen *regexp.Regexp\n\tseen = count()\n)\n\n'
        b'func init() {\n\topen = regexp.MustCompile("a")\n\tseen = count()\n}\n\n'
        b"func count() int { return 1 }\n\n"
        b"// Open opens.\nfunc Open(s string) bool { return open.MatchString(s) }\n"
    )
    assert said_by_go(tmp_path, {"go.mod": files["go.mod"].encode(), "box.go": after}) == ""


@pytest.mark.parametrize(
    ("other", "is_left"),
    [
        ("func Copy(b *Box) *Box { return &Box{b.n} }", True),
        ("func (b *Box) Copy() *Box { return &Box{b.n} }", False),
        ("type Crate struct{ box Box }", True),
        ("", False),
    ],
    ids=["another maker", "its own method", "a part", "nothing"],
)
def test_the_last_function_that_makes_a_type_stays(other: str, is_left: bool) -> None:
    text = (
        "package box\n\n// Box is one.\ntype Box struct{ n int }\n\nfunc NewBox(n int) *Box { return &Box{n} }\n\n"
        f"func (b *Box) Count() int {{ return b.n }}\n\nfunc Newest() Box {{ return *NewBox(1) }}\n\n{other}\n"
    )
    box = GoCodebase.from_texts({"box.go": text}, import_paths=["example.com/box"])
    if is_left:
        assert removed(box, "box.go::NewBox", "box.go::Newest").removed == ("box.go::NewBox", "box.go::Newest")
    else:
        with pytest.raises(DeletionRefused, match=r"nothing makes box\.go::Box without box\.go::NewBox"):
            removed(box, "box.go::NewBox", "box.go::Newest")


def test_a_method_that_a_template_calls_stays() -> None:
    text = (
        "package box\n\ntype Box struct{ n int }\n\nfunc (b Box) Padding() int { return b.n }\n\n"
        "func (b Box) Other() int { return 2 }\n\nconst usage = `{{rpad .Name .Padding}} .Other`\n"
    )
    box = GoCodebase.from_texts({"box.go": text}, import_paths=["example.com/box"])
    assert removed(box, "box.go::Box.Other").removed == ("box.go::Box.Other",)
    with pytest.raises(DeletionRefused, match=r"Box\.Padding: code that stays needs it"):
        removed(box, "box.go::Box.Padding")


def test_a_private_constant_goes_though_another_package_has_one_of_its_name() -> None:
    text = (
        "package %s\n\nconst mask = 15\n\n// Cut cuts.\n"
        "func Cut(x int) int { return x & mask }\n\nfunc One() int { return 1 }\n"
    )
    files = {f"{name}/{name}.go": text % name for name in ("one", "two")}
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/x"])
    deletion = removed(codebase, "one/one.go::Cut")
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.source_patch)
    assert b"mask" not in (after["one/one.go"] or b"")


@pytest.mark.parametrize(
    ("code", "is_shown"),
    [
        ("func show(err error) string { return err.Error() }", False),
        ("func show() string {\n\terr := load()\n\treturn err.Error()\n}", False),
        ("func show(a, b *Failure) string { return b.Error() }", True),
        ("func show() string {\n\tf := &Failure{}\n\treturn f.Error()\n}", True),
        ("func show(s Shown) string { return s.Error() }", True),
        ("func show(s fmt.Stringer) string { return s.Error() }", False),
        (
            "func show(err error) string {\n\tswitch e := err.(type) {\n\tcase *Failure:\n\t\treturn e.Text\n"
            "\tdefault:\n\t\treturn e.Error()\n\t}\n}",
            False,
        ),
        (
            "func show(err error) string {\n\tswitch e := err.(type) {\n\tcase nil:\n\t\treturn one\n"
            "\tcase *Failure:\n\t\treturn e.Error()\n\t}\n\treturn two\n}",
            True,
        ),
    ],
)
def test_calls_of_methods_of_any_error_are_no_uses(code: str, is_shown: bool) -> None:
    source = "package a\n\ntype Failure struct{ Text string }\n\ntype Shown interface{ Error() string }\n\n"
    source += f"func (f *Failure) Error() string {{ return f.Text }}\n\n{code}\n"
    codebase = GoCodebase.from_texts({"a.go": source})
    deletion = stubbed(codebase, "a.go::Failure.Error")
    symbol = codebase.symbols()["a.go::Failure.Error"]
    found = where_used(codebase, [symbol], {symbol.symbol_id: ["a.go::show"]}, deletion, GoWords())
    assert ("a.go::show" in found) is is_shown


@pytest.mark.parametrize("path", ["a.go", "src/main/java/a/Error.java"])
def test_only_methods_of_java_with_the_name_of_their_class_are_constructors(path: str) -> None:
    sources = {
        "go": "package a\n\ntype Error struct{ s string }\n\nfunc (e *Error) Error() string { return e.s }\n",
        "java": "package a;\n\nclass Error {\n    int n;\n\n    Error() {\n        n = 2;\n    }\n}\n",
    }
    language = path.rpartition(".")[2]
    kind = GoCodebase if language == "go" else JavaCodebase
    codebase = kind.from_texts({path: sources[language]})
    entry = feature(f"{path}::Error.Error")
    deletion = get("stub", language).delete(codebase, entry)
    shown = [codebase.symbols()[f"{path}::Error.Error"]]
    repo = replace(PROJECT, language=language)
    told = title(codebase, repo, shown, deletion, editor_of(language).words).partition("\n")[0]
    assert told == ("# Implement the constructor of `Error`" if language == "java" else "# Implement `Error.Error`")


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        ("reflect.Array", False),
        ("made.Array", False),
        ("struct{ Array int }{Array: 1}.Array", True),  # the key may be a constant's name
        ("Array{}", True),
        ("box.Array{}", True),
        ("mine.Array{}", True),
    ],
)
def test_fields_and_names_of_other_packages_are_no_uses_of_test_types(other: str, *, stays: bool) -> None:
    tests = (
        'package box\n\nimport (\n\t"reflect"\n\t"testing"\n)\n\n'
        "type Array struct{ n int }\n\nfunc TestCut(t *testing.T) { Cut(Array{}) }\n\n"
        "func TestOne(t *testing.T) { One(reflect.Array) }\n"
    )
    files = {
        "box.go": "package box\n\nfunc Cut(x any) any { return x }\n\nfunc One(x any) any { return x }\n",
        "box_test.go": tests,
        "more_test.go": 'package box_test\n\nimport mine "example.com/box"\n\n'
        f"func TestTwo(t *testing.T) {{ mine.One({other}) }}\n",
    }
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/box"])
    deletion = stubbed(codebase, "box.go::Cut", tests=("box_test.go::TestCut",))
    assert deletion.hidden == ("box_test.go::TestCut",)
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.hide_patch)
    assert (b"type Array" in (after["box_test.go"] or b"")) is stays


def test_only_import_declarations_are_imports_that_went() -> None:
    before = b'package box\n\nimport (\n\t"fmt"\n\tre "regexp"\n)\n\nfunc Cut() string {\n\treturn "cut"\n}\n'
    after = b'package box\n\nimport (\n\t"fmt"\n)\n\nfunc Cut() string {\n\tpanic("removed")\n}\n'
    assert GoWords().lost_imports(before, after) == ['re "regexp"']
    assert GoWords().lost_imports(b'package box\n\nimport "fmt"\n', b"package box\n") == ['import "fmt"']
