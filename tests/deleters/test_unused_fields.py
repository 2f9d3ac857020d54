"""Fields of types that stay: those that nothing reads or sets any more, in every language that has them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.go.alignment import realigned
from excise.deleters.patches.git_patches import apply_patch
from excise.errors import DeletionRefused
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.types import Feature, FeatureKind

GOFMT = "/usr/lib/go/bin/gofmt"
"""The formatter of Debian's package golang-go, which ./check installs."""
BOX = """package box

// Box holds items.
type Box struct {
	name string // what it is called
	// strict refuses what is there already.
	strict bool
	limit  int
	items  []string
}

// New makes one.
func New(name string, limit int) *Box {
	b := &Box{
		name:  name,
		items: []string{},
	}
	b.limit = limit
	return b
}

// Name is its name.
func (b *Box) Name() string { return b.name }

// Add adds an item.
func (b *Box) Add(item string) { b.items = append(b.items, item) }

// Len counts.
func (b *Box) Len() int { return len(b.items) }
"""


def feature(*symbols: str) -> Feature:
    return Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())


TEST = 'package box\n\nimport "testing"\n\nfunc TestBox(t *testing.T) {\n\tif (&Box{}).strict {\n\t\tt.Fail()\n\t}\n}\n'


def without(*symbols: str, more: str = "", tests: str = "", files: Mapping[str, str] | None = None) -> str:
    """The file ``box.go`` without some symbols; it has ``more`` code."""
    texts = {"box.go": BOX + more, **({"box_test.go": tests} if tests else {}), **(files or {})}
    codebase = GoCodebase.from_texts(texts, import_paths=["example.com/box"])
    deletion = get("remove", "go").delete(codebase, feature(*(f"box.go::{each}" for each in symbols)))
    after = apply_patch({path: text.encode() for path, text in texts.items()}, deletion.source_patch)
    return (after["box.go"] or b"").decode()


def formatted(source: str) -> str:
    return subprocess.run([GOFMT], input=source, capture_output=True, text=True, check=True).stdout


STRICT = (
    "\n// SetStrict makes it strict.\nfunc (b *Box) SetStrict() { b.strict = true }\n\n"
    "// Has tells.\nfunc (b *Box) Has() bool { return b.strict && b.limit > 0 }\n"
)


def test_a_field_that_nothing_uses_any_more_goes_and_the_others_are_aligned_anew() -> None:
    more = STRICT + "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    after = without("Box.SetStrict", "Box.Has", more=more)
    assert "strict" not in after
    assert "\tname  string // what it is called\n\tlimit int\n\titems []string\n}" in after
    assert after == formatted(after)


@pytest.mark.parametrize(
    ("more", "tests"),
    [
        ("\nfunc reset(b *Box) { b.strict = check() }\n\nfunc check() bool { return true }\n", ""),
        ("\nvar none = Box{\"\", false, 1, nil}\n", ""),
        ("\nfunc swap(a, b *Box) { a.strict, b.strict = b.strict, a.strict }\n", ""),
        ("", TEST),
    ],
    ids=["effect", "order", "read", "test"],
)  # fmt: skip
def test_a_field_stays_with_other_uses(more: str, tests: str) -> None:
    limit = "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    assert "strict bool" in without("Box.SetStrict", "Box.Has", more=STRICT + limit + more, tests=tests)


def test_a_field_that_is_only_set_goes_with_what_sets_it() -> None:
    reset = "\n// Reset loosens it.\nfunc (b *Box) Reset() {\n\tb.strict = false\n\tb.items = nil\n}\n"
    limit = "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    after = without("Box.SetStrict", "Box.Has", more=STRICT + limit + reset)
    assert "strict" not in after
    assert "func (b *Box) Reset() {\n\tb.items = nil\n}" in after
    assert after == formatted(after)


@pytest.mark.parametrize(
    ("symbol", "reason"),
    [
        ("Name", "a parameter would have no use"),
        ("Limit", "it is given a parameter alone"),
        ("Add", "nothing would fill the list that Len counts"),
    ],
)
def test_a_method_without_which_a_private_field_has_no_sense_does_not_go(symbol: str, reason: str) -> None:
    more = "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    with pytest.raises(DeletionRefused, match="code that stays needs it"):
        without(f"Box.{symbol}", more=more)
    assert reason


def test_beside_other_code_it_becomes_a_stub() -> None:
    more = "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    after = without("Box.Limit", "Max", more=more + "\n// Max is the greatest.\nfunc Max() int { return 7 }\n")
    assert 'func (b *Box) Limit() int {\n\tpanic("not implemented")\n}' in after
    assert "Max" not in after
    assert "\tlimit  int\n" in after


OPTIONS = (
    "\n// Options are for Pack.\ntype Options struct {\n\tDepth int\n\tLoose bool\n}\n\n"
    "// Depths tells.\nfunc Depths(o Options) int { return o.Depth }\n\n"
    "// Loosely tells.\nfunc Loosely(o Options) bool { return o.Loose }\n"
)


def test_a_public_field_stays() -> None:
    assert "Loose bool" in without("Loosely", more=OPTIONS)


@pytest.mark.parametrize(
    "more",
    [
        "\nvar kinds = map[Box]int{}\n",
        '\nconst how = "{{.strict}}"\n',
        "\nfunc (b *Box) Reset(all []*Case) {\n\tfor _, b := range all {\n\t\tb.strict = false\n\t\tb.size++\n"
        "\t}\n}\n\ntype Case struct {\n\tsize   int\n\tstrict bool\n}\n",
        "\nfunc (b *Box) Reset(x bool) {\n\tif x {\n\t\tb.strict = false\n\t}\n}\n",
    ],
    ids=["a key", "a text", "another object", "an empty block"],
)
def test_what_else_may_need_a_field_keeps_it(more: str) -> None:
    limit = "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    after = without("Box.SetStrict", "Box.Has", more=STRICT + limit + more)
    assert "strict bool" in after
    assert more.strip() in after


@pytest.mark.parametrize(
    ("words", "is_name"),
    [("it is strict %q", False), ("strict one", False), ("strict", True), ("{{ .strict }}", True), ("[strict]", True)],
)
def test_words_of_prose_are_no_fields(words: str, *, is_name: bool) -> None:
    more = STRICT + "\n// Limit is its limit.\nfunc (b *Box) Limit() int { return b.limit }\n"
    after = without("Box.SetStrict", "Box.Has", more=f'{more}\nconst how = "{words}"\n')
    assert ("strict bool" in after) is is_name


def test_two_fields_that_share_a_variable_stay() -> None:
    more = (
        "\n// Sides is both.\nfunc (s *Side) Sides() int { return s.left + s.right }\n\n"
        "type Side struct {\n\tleft  int\n\tright int\n\tsize  int\n}\n\n"
        "func (s *Side) set(n int) {\n\ts.left = n\n\ts.right = n\n\ts.size = 3\n}\n\n"
        "func other(s *Side) int { return s.size }\n"
    )
    after = without("Side.Sides", "Max", more=more + "\n// Max is the greatest.\nfunc Max() int { return 7 }\n")
    assert "s.left = n\n\ts.right = n" in after


CASE = """
type Case struct {
	size   int
	strict bool
}

func count(c *Case) int { return c.size }

func open(how ...func(*Case)) *Box {
	c := &Case{}
	for _, each := range how {
		each(c)
	}
	b := made()
	b.limit = c.size
	b.strict = c.strict
	return b
}

func made() *Box { return &Box{} }

// Strictly is an option.
func Strictly(strict bool) func(*Case) { return func(c *Case) { c.strict = strict } }

// Limit is its limit.
func (b *Box) Limit() int { return b.limit }

// Strict tells.
func (b *Box) Strict() bool { return b.strict }

// Max is the greatest.
func Max() int { return 7 }
"""


@pytest.mark.parametrize(
    ("gone", "fields"), [(("Box.Strict",), 1), (("Strictly",), 2), (("Strictly", "Box.Strict"), 1)]
)
def test_fields_of_one_name_are_told_apart_by_the_types_of_variables(gone: tuple[str, ...], fields: int) -> None:
    after = without(*gone, "Max", more=CASE.replace("return c.size }", "return c.size + len(check(c.strict)) }"))
    assert ("b.strict = c.strict" in after) == ("Box.Strict" not in gone)
    assert after.count("strict bool\n") == fields
    assert ('panic("not implemented")' in after) == ("Strictly" in gone)


LISTS = [
    ('\ta   int    // one\n\tbcd string // two\n\te   int\n\tf   []int `json:"f"` // three\n', 1),
    ("\ta int\n\n\tlonger string\n\tb      int\n", 1),
    ("\ta  int\n\tbc int\n\tcde struct {\n\t\tx int\n\t}\n\td int\n", 1),
    ("\tint\n\tlong string // it\n\t*Other      // that\n", 1),
    ("\ta int /* in */\n\tlonger int /* out */\n\tb int\n", 1),
]


@pytest.mark.parametrize(("fields", "gone"), LISTS)
def test_fields_are_aligned_as_gofmt_does(fields: str, gone: int) -> None:
    before = formatted(f"package p\n\ntype Other int\n\ntype T struct {{\n{fields}}}\n")
    lines = before.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith("type T")) + 1
    chosen = [n for n in range(place, len(lines)) if lines[n].startswith("\t") and lines[n][1:2].isalpha()]
    del lines[chosen[gone]]
    cut = "".join(lines)
    assert realigned(before.encode(), cut.encode()).decode() == formatted(cut)


def test_elements_with_keys_are_aligned_as_gofmt_does() -> None:
    before = "package p\n\nvar t = T{\n\ta:      1, // one\n\tlonger: 2,\n\tb:      3, // three\n}\n"
    assert before == formatted(before)
    cut = before.replace("\tlonger: 2,\n", "")
    assert realigned(before.encode(), cut.encode()).decode() == formatted(cut)
