"""Go: symbols and references, mirrored tests, detection, artefacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.deleters.statement.details import lines_by_symbol, locate
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.execution.go_grading import GoGrading
from excise.extractors.go.execution.mirrored_tests import mirrored
from excise.extractors.go.needs import find_needs
from excise.extractors.languages import detect_language
from excise.types import GivenBy, NeedKind, Symbol, SymbolKind
from excise.verifiers.shipped_tree import scrubbed

REPO = Path(__file__).parents[1] / "repos" / "spans"
FILES = {
    "a.go": """package a

import (
	"fmt"
	m "example.com/a/more"
)

// Box holds things.
type Box struct{ n int }

// Size says how many.
//go:noinline
func (b *Box) Size() int { return b.n + m.One() }

/* Show prints
   a box. */
func Show(b *Box) {
	if b != nil && b.n > 0 {
		fmt.Println(b.Size(), limit)
	}
}

const limit = 3

func init() { Show(nil) }
func init() {}

func Map[K comparable, V any](in map[K]V) (keys []K, n int) {
	return nil, 0
}
""",
    "more/more.go": "package more\n\nfunc One() int { return 1 }\n",
    "a_test.go": 'package a\n\nimport "testing"\n\nfunc TestShow(t *testing.T) { Show(&Box{}) }\n',
}


@pytest.fixture
def codebase() -> GoCodebase:
    return GoCodebase.from_texts(FILES, import_paths=["example.com/a"])


def symbol(codebase: GoCodebase, name: str) -> Symbol:
    return codebase.symbols()[f"a.go::{name}"]


def test_symbols_have_spans_signatures_and_comments(codebase: GoCodebase) -> None:
    size = symbol(codebase, "Box.Size")
    assert (size.kind, size.signature, size.docstring) == (
        SymbolKind.METHOD,
        "func (b *Box) Size() int",
        "Size says how many.",
    )
    source = codebase.modules["a.go"].source
    assert source[size.start : size.end].endswith(b"m.One() }")
    assert source[size.code_start :].startswith(b"return b.n")
    show = symbol(codebase, "Show")
    assert (show.docstring, show.complexity, show.loc) == ("Show prints\na box.", 3, 5)
    assert symbol(codebase, "Box").signature == "type Box struct"
    assert symbol(codebase, "Map").signature.startswith("func Map[K comparable, V any](in map[K]V)")
    assert {s.qualname for s in codebase.modules["a.go"].symbols if s.name.startswith("init")} == {"init", "init#2"}


def test_names_are_resolved_in_packages_through_imports_and_by_unique_methods(codebase: GoCodebase) -> None:
    assert codebase.callees("a.go::Box.Size") >= {"a.go::Box", "more/more.go::One"}
    assert codebase.callees("a.go::Show") >= {"a.go::Box", "a.go::Box.Size"}
    assert codebase.callers("a.go::Show") == {"a.go::init", "a_test.go::TestShow"}


def test_what_go_calls_itself_cannot_be_deleted(codebase: GoCodebase) -> None:
    assert not codebase.is_removable("a.go::init#2")
    assert codebase.is_removable("a.go::Show")
    assert codebase.is_test("a_test.go")
    assert codebase.is_test("testdata/x.go")
    assert codebase.is_vendored("vendor/x/y.go")


def test_lines_belong_to_functions(codebase: GoCodebase) -> None:
    assert codebase.symbols_of_lines("a.go", [13, 19]) == {"a.go::Box.Size", "a.go::Show"}
    assert codebase.symbols_of_lines("a.go", [1, 24]) == frozenset()


def test_a_mirrored_test_fails_where_the_test_passes() -> None:
    source = b"""package a

func TestA(t *testing.T) {
	got, err := f()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("x", func(tt *testing.T) {
		if got != 1 {
			tt.Errorf("no")
		} else if got == 2 {
			return
		} else {
			use(got)
		}
	})
	if got > 3 {
		return
	}
}

func TestHelper(t *testing.T) { setUp(t); t.Run("x", f) }

func TestCases(t *testing.T) { runTestCases(t, f, cases) }

func ExampleF() {
	// Output: 3
}
"""
    text = (mirrored(source, ["TestA", "TestHelper", "TestCases", "ExampleF"]) or b"").decode()
    assert "runTestCases(t, f, cases); t.Fail() }" in text
    assert "\t} else { t.Fail() }\n\tt.Run" in text
    assert "} else if tt.Fail(); got == 2 {" in text
    assert "if got > 3 {\n\t\treturn\n\t}\n" in text
    assert "// Output: other 3" in text
    assert mirrored(source, ["TestHelper"]) is None


@pytest.mark.parametrize(
    ("check", "is_one"),
    [
        ("assert.Equal(t, f(), 1)", True),
        ("require.NoError(t, f())", True),
        ("checkText(t, f(), 1)", True),
        ("mustEqual(f(), 1, t)", True),
        ("c := qt.New(t)\n\tc.Assert(f(), qt.Equals, 1)", True),
        ("is := is.New(t)\n\tis.Equal(f(), 1)", True),
        ("g := NewWithT(t)\n\tg.Expect(f()).To(Equal(1))", True),
        ("a := assert.New(t)\n\ta.NotNil(f())", True),
        ("qt.New(t).Run(`x`, func(c *qt.C) { c.Check(f(), qt.IsNil) })", True),
        ("prepare(t)", False),
        ("t.Logf(`checked`)", False),
        ("box.Check(f())", False),
        ("checkText(f(), 1)", False),
    ],
)
def test_checks_of_libraries_and_helpers_are_followed_by_a_failure(check: str, is_one: bool) -> None:
    source = f"package a\n\nfunc TestA(t *testing.T) {{\n\t{check}\n}}\n"
    found = mirrored(source.encode(), ["TestA"])
    assert (found is not None) == is_one
    if found is not None:
        assert found.count(b"; t.Fail()") == 1
        assert found.replace(b"; t.Fail()", b"") == source.encode()


def test_canaries_are_of_the_package_beside_them() -> None:
    name, canaries = GoGrading().canaries("seed", b"// x\npackage a_test\n")
    assert name.endswith("_test.go")
    assert canaries.text.startswith("package a_test\n")
    assert len(set(canaries.tests)) == 5
    assert (name, canaries) == GoGrading().canaries("seed", b"package a_test\n")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("go.mod", "manifest"), ("vendor/a/b.go", "manifest"), ("x/go.sum", "manifest"), ("a_test.go", "test"),
        ("testdata/a.json", "test"), ("a_amd64.s", "compiled"), ("lib.syso", "compiled"),
        (".git/config", "version_control"),
        ("a.go", ""), ("internal/b/b.go", ""), ("README.md", ""),
    ],
)  # fmt: skip
def test_only_sources_of_a_solution_count(path: str, reason: str) -> None:
    assert GoGrading().forbidden(path, ours=False) == reason


def test_languages_are_told_by_files(tmp_path: Path) -> None:
    assert detect_language(REPO) == "go"
    assert detect_language(REPO.with_name("shapes")) == "python"
    (tmp_path / "a.go").write_text("package a\n")
    assert detect_language(tmp_path) == "go"
    (tmp_path / "pyproject.toml").write_text("")
    assert detect_language(tmp_path) == "python"


def test_test_binaries_and_profiles_are_no_sources() -> None:
    paths = ["spans.test", "cover.out", "spans.go", "go-build/x", "pkg.a", "testdata/in.txt"]
    assert scrubbed(paths, "go") == {"spans.test", "cover.out", "go-build/x", "pkg.a"}
    assert scrubbed(["cover.out"], "python") == frozenset()


def test_texts_that_tests_expect_are_details() -> None:
    files = {
        "a.go": 'package a\n\nfunc F(n int) error {\n\tif n < 0 {\n\t\treturn fmt.Errorf("a: %d is negative", n)\n\t}\n'
        '\tuse("unseen")\n\treturn nil\n}\n\nfunc G() string { return "the answer" }\n',
        "a_test.go": 'package a\n\nvar table = []string{"a: -1 is negative"}\n\n'
        "func TestF(t *testing.T) { use(table) }\n\n"
        'func TestG(t *testing.T) { check(t, G(), "the answer") }\n',
    }
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/a"])
    needs = find_needs(codebase, ["a.go::F", "a.go::G"], ["a_test.go::TestF", "a_test.go::TestG"])
    assert [(n.kind, n.word, n.owner, n.tests, n.template, n.is_answer) for n in needs] == [
        (NeedKind.MESSAGE, " is negative", "a.go::F", ("a_test.go::TestF",), "a: %d is negative", False),
        (NeedKind.TEXT, "the answer", "a.go::G", ("a_test.go::TestG",), "", True),
    ]


def test_errors_that_are_values_are_details_where_both_name_them() -> None:
    files = {
        "a.go": "package a\n\nfunc F() error {\n\tif done() {\n\t\treturn io.ErrUnexpectedEOF\n\t}\n"
        "\treturn ErrShut\n}\n\nfunc G() error { return x.io.EOF }\n",
        "a_test.go": "package a\n\nfunc TestF(t *testing.T) { check(F() == io.ErrUnexpectedEOF, io.EOF, MyErrShut) }\n"
        "\nfunc TestG(t *testing.T) { check(G(), ErrShut) }\n",
    }
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/a"])
    needs = find_needs(codebase, ["a.go::F", "a.go::G"], ["a_test.go::TestF", "a_test.go::TestG", "b_test.go::TestH"])
    assert [(n.kind, n.word, n.owner, n.tests) for n in needs] == [
        (NeedKind.EXCEPTION, "ErrShut", "a.go::F", ("a_test.go::TestG",)),
        (NeedKind.EXCEPTION, "io.ErrUnexpectedEOF", "a.go::F", ("a_test.go::TestF",)),
    ]


@pytest.mark.parametrize(
    ("body", "test", "told"),
    [
        ('panic("too large")', "defer func() { check(recover()) }()", [("panic", ""), ("too large", "panic")]),
        ('panic(fmt.Sprintf("bad %d", n))', "assert.Panics(t, F)", [("panic", ""), ("bad %d", "panic")]),
        ("panic(err)", "defer func() { recover() }()", [("panic", "")]),
        ('panic("too large")', 'check(recover() == "too large")', [("too large", "panic"), ("panic", "")]),
        ('panic("too large")', "check(F())", []),
        ("t.panic(1)", "check(recover())", []),
        ('t.panic("too large")', 'check(recover() == "too large")', [("too large", "")]),
        ("// does not panic(n)", "check(recover())", []),
        (f'panic("{"so " * 60}")', "check(recover())", [("panic", "")]),
    ],
)
def test_panics_are_details_where_tests_tell_them(body: str, test: str, told: list[tuple[str, str]]) -> None:
    files = {
        "a.go": f"package a\n\nfunc F(n int) int {{\n\tif n < 0 {{\n\t\t{body}\n\t}}\n\treturn n\n}}\n",
        "a_test.go": f"package a\n\nfunc TestF(t *testing.T) {{\n\t{test}\n}}\n",
    }
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/a"])
    needs = find_needs(codebase, ["a.go::F"], ["a_test.go::TestF"])
    assert [(need.word, need.exception) for need in needs] == told


@pytest.mark.parametrize(
    ("name", "comment", "told"),
    [
        ("ExampleF", "// Output:\n\t// 2 errors:\n\t//\n\t// * first\n\t// * second", [" errors:\n\n", "* %s"]),
        ("ExampleF", "// Unordered output: * first", ["* %s"]),
        ("ExampleF", "// 2 errors:\n\t// * first", []),
        ("TestF", "// Output:\n\t// * first", []),
    ],
)
def test_what_examples_print_is_expected(name: str, comment: str, told: list[str]) -> None:
    body = 'use(fmt.Sprintf("* %s", one))\n\treturn fmt.Sprintf("%d errors:\\n\\n%s", n, all)'
    files = {
        "a.go": f"package a\n\nfunc F(n int) string {{\n\t{body}\n}}\n",
        "a_test.go": f"package a\n\nfunc {name}() {{\n\tfmt.Println(F(2))\n\t{comment}\n}}\n",
    }
    codebase = GoCodebase.from_texts(files, import_paths=["example.com/a"])
    assert [need.word for need in find_needs(codebase, ["a.go::F"], [f"a_test.go::{name}"])] == told


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sort.Strings(n)", ["sort.Strings"]),
        ("slices.SortFunc(n, less)\n\tsort.Slice(n, less)", ["slices.SortFunc", "sort.Slice"]),
        ("sort.SearchInts(n, 1)\n\tmy.sort.Strings(n)\n\tsort(n)", []),
    ],
)
def test_what_code_sorts_by_is_a_detail(code: str, told: list[str]) -> None:
    codebase = GoCodebase.from_texts({"a.go": f"package a\n\nfunc F(n []string) {{\n\t{code}\n}}\n"})
    needs = find_needs(codebase, ["a.go::F"], ["a_test.go::TestF"])
    assert [(need.kind, need.word) for need in needs] == [(NeedKind.ORDER, name) for name in told]


@pytest.mark.parametrize(
    ("code", "test", "told"),
    [
        ("return []*T{}", "reflect.DeepEqual(F(n), []*T{})", "[]*T{}"),
        ("each([]*T{})\n\treturn nil", "reflect.DeepEqual(got, []*a.T{})", "[]*T{}"),
        ("return make([]*T, 0, 4)", "assert.Equal(t, []*T{}, F(n))", "[]*T{}"),
        ("return make(map[string]T)", "assert.Equal(t, map[string]T{}, F(n))", "map[string]T{}"),
        ("return make([]*T, 4)", "assert.Equal(t, []*T{}, F(n))", ""),
        ("return []*T{n}", "assert.Equal(t, []*T{}, F(n))", ""),
        ("return []*T{}", "assert.Equal(t, []*T{n}, F(n))", ""),
        ("return []*T{}", "F([]*T{})", ""),
    ],
)
def test_that_something_empty_is_not_nil_is_a_detail(code: str, test: str, told: str) -> None:
    files = {
        "a.go": f"package a\n\ntype T int\n\nfunc F(n *T) any {{\n\t{code}\n}}\n",
        "a_test.go": f"package a\n\nfunc TestF(t *testing.T) {{\n\t{test}\n}}\n",
    }
    codebase = GoCodebase.from_texts(files)
    needs = find_needs(codebase, ["a.go::F"], ["a_test.go::TestF"])
    assert [(need.kind, need.word) for need in needs] == ([(NeedKind.RESULT, f"F {told}")] if told else [])
    line = f"- Returns or passes on `{told}`, not `nil`, if it is empty."
    for text, given in (("func F(n *T) any", GivenBy.DETAILS), (line, GivenBy.STATEMENT)):
        found = locate(needs, text, "", codebase)
        assert [need.given for need in found] == [given] * len(needs)
        lines = lines_by_symbol(found, [*codebase.symbols().values()], codebase)
        assert [each for own in lines.values() for each in own] == [line] * (bool(told) and given is GivenBy.DETAILS)
