"""Lifted tests in Go: their observing forms, what is not divided, and what they report when they run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from excise.extractors.go.execution.lifted_tests import lifted

from .reporting_programs import reported

HEAD = 'package a\n\nimport (\n\t"fmt"\n\t"reflect"\n\t"testing"\n)\n\n'
BESIDE = b"""package a

import "testing"

type rows map[string]int

func runAll(t *testing.T, f func(string) int, all map[string]int) {
	for text, want := range all {
		if got := f(text); got != want {
			t.Fatalf("%s: got %d, want %d", text, got, want)
		}
	}
}

func is(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Error(got, want)
	}
}

func same(a, b int) bool { return a == b }
"""


def form_of(body: str, *, more: str = "", depending: tuple[str, ...] = ()) -> tuple[str, str]:
    """The observing form of a test with this body, its names shortened; and why there is none."""
    source = f"{HEAD}{more}func TestIt(t *testing.T) {{\n{body}\n}}\n".encode()
    found = lifted(source, ["TestIt"], depending, [BESIDE])
    assert found is not None
    text = found.observing.decode().partition("\nvar last")[0]
    mark = re.search(r'fmt([0-9a-f]{10}) "fmt"', text)
    return text.replace(mark[1], "") if mark else text, found.refused.get("TestIt", "")


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("\tif got := f(2); got != 4 {\n\t\tt.Errorf(\"%d\", got)\n\t}",
         ["{ got := f(2); _ = got; report(1, nil, got); _ = got; }"]),
        ("\twant := []int{44}\n\tif got := f(2); !reflect.DeepEqual(got, want) {\n\t\tt.Fatal(got, want)\n\t}",
         ["report(1, nil, got);"]),
        ("\tif v, err := f(2); err != nil || v != 44 {\n\t\tt.Error(v)\n\t}",
         ["report(1, nil, err == nil); report(2, nil, v);"]),
        ("\tif !ok(2) || ok(3) {\n\t\tt.Error()\n\t}", ["report(1, nil, ok(2)); report(2, nil, ok(3));"]),
        ("\tfor _, tt := range []struct {\n\t\tin   string\n\t\twant []int\n\t}{{\"a\", []int{44}}, {in: \"b\"}} {\n"
         "\t\tif got := f(tt.in); !reflect.DeepEqual(got, tt.want) {\n\t\t\tt.Error(tt.want)\n\t\t}\n\t}",
         ['{{"a", *new([]int)}, {in: "b"}}', "report(1, nil, got);"]),
        ("\tfor n, want := range map[int]int{1: 44} {\n\t\tif f(n) != want {\n\t\t\tt.Error(want)\n\t\t}\n\t}",
         ["{1: *new(int)}", "report(1, []interface{}{n}, f(n));"]),
        ("\trunAll(t, f, rows{\"a\": 44})",
         ["runAll(t, f, rows{\"a\": *new(int)})", "report(1001, []interface{}{text}"]),
        ("\tis(t, f(2), 44)", ["is(t, f(2), *new(int))", "report(1001, nil, got); _ = got;"]),
        ("\tt.Run(\"x\", func(t *testing.T) {\n\t\tif f(2) != 44 {\n\t\t\tt.Fatal()\n\t\t}\n\t})",
         ["report(1, nil, f(2));"]),
    ],
)  # fmt: skip
def test_a_check_becomes_a_report_of_what_it_looks_at(body: str, parts: list[str]) -> None:
    text, why = form_of(body)
    assert not why
    assert all(part in text for part in parts), text
    assert "44" not in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("\tf(2)", "test without a check"),
        ("\tif f(2) != g(4) {\n\t\tt.Error()\n\t}", "expected value that is computed"),
        ("\twant := 4\n\tif f(want) != want {\n\t\tt.Error()\n\t}", "expected value that the test uses otherwise"),
        ("\tif f(2) == 5 {\n\t\tt.Error()\n\t}", "check of an inequality"),
        ("\tif f(2) > 5 {\n\t\tt.Error()\n\t}", "condition that cannot be divided"),
        ("\tok := f(2) == 4\n\tif !ok {\n\t\tt.Error()\n\t}", "comparison outside a check"),
        ("\tfor it.Next() {\n\t\tif f(2) != 4 {\n\t\t\tt.Error()\n\t\t}\n\t}",
         "check in a loop over what the code may decide"),
        ("\tfor _, e := range f(2) {\n\t\tif e != 4 {\n\t\t\tt.Error()\n\t\t}\n\t}",
         "check in a loop over what the code may decide"),
        ("\tf(func(x int) {\n\t\tif x != 4 {\n\t\t\tt.Error()\n\t\t}\n\t})",
         "check in a function that the code may call"),
        ("\tif !ok() {\n\t\treturn\n\t}\n\tif f(2) != 4 {\n\t\tt.Error()\n\t}", "test that may end early"),
        ("\tn := 0\n\tif f(2) == 4 {\n\t\tn++\n\t}\n\tif n != 1 {\n\t\tt.Error()\n\t}",
         "comparison outside a check"),
        ("\tif !strings.HasPrefix(f(2), \"a\") {\n\t\tt.Error()\n\t}", "comparing function"),
        ("\tif !same(f(2), 4) {\n\t\tt.Error()\n\t}", "comparing function"),
        ("\tif d := cmp.Diff(f(2), 4); d != \"\" {\n\t\tt.Error(d)\n\t}", "comparing function"),
        ("\tassert.Equal(t, 4, f(2))", "test without a check"),
        ("\tassert.Equal(t, 4, f(2))\n\tif f(2) != 4 {\n\t\tt.Error()\n\t}", "comparing function"),
        ("\tuse(t, 4)\n\tif f(2) != 4 {\n\t\tt.Error()\n\t}", "helper that checks"),
        ("\tswitch f(2) {\n\tcase 4:\n\tdefault:\n\t\tt.Error()\n\t}\n\tif f(2) != 4 {\n\t\tt.Error()\n\t}",
         "comparison outside a check"),
        ("\tif v, ok := g(2); ok {\n\t\tif v != 4 {\n\t\t\tt.Error()\n\t\t}\n\t}", "check under a condition"),
        ("\tgo f(2)\n\tif f(2) != 4 {\n\t\tt.Error()\n\t}", "threads or caught panics"),
        ("\tis(t, f(2), g(4))", "expected value that is computed"),
    ],
)  # fmt: skip
def test_other_tests_are_not_divided(body: str, why: str) -> None:
    assert form_of(body)[1] == why


def test_other_tests_are_emptied_and_their_imports_left() -> None:
    more = (
        "func TestOther(t *testing.T) {\n\tfmt.Println(44, reflect.TypeOf(4))\n}\n\nfunc TestMain(m *testing.M) {}\n\n"
    )
    text, _ = form_of("\tif f(2) != 4 {\n\t\tt.Error()\n\t}", more=more)
    assert "func TestOther(t *testing.T) {}" in text
    assert text.count('_ "fmt"') == text.count('_ "reflect"') == 1


def test_tables_that_other_tests_use_otherwise_are_left() -> None:
    loop = "\tfor _, r := range rows {\n\t\tif f(%s) != %s {\n\t\t\tt.Error()\n\t\t}\n\t}\n"
    source = f"{HEAD}var rows = []struct{{ a, b int }}{{{{1, 2}}}}\n\n"
    for name, values in (("TestOne", ("r.a", "r.b")), ("TestTwo", ("r.b", "4"))):
        source += f"func {name}(t *testing.T) {{\n{loop % values}}}\n\n"
    found = lifted(source.encode(), ["TestOne", "TestTwo"], (), ())
    assert found is not None
    assert found.functions == ("TestOne",)
    assert found.refused == {"TestTwo": "table that another test uses otherwise"}


CODE = """package a

import "errors"

type pair struct{ A, B int }
type hidden struct{ a int }

func values() (interface{}, error) { return map[string][]float64{"b": {1.5}, "a": nil}, nil }
func pairs() []pair { return []pair{{1, 2}} }
func own() hidden { return hidden{1} }
func broken() error { return errors.New("no") }
"""
TESTS = """package a

import "testing"

func TestValues(t *testing.T) {
	found, err := values()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3; i++ {
		if found.(map[string][]float64)["b"][0] != 1.5 || pairs()[0] != (pair{1, 2}) {
			t.Error("wrong")
		}
	}
	if broken() == nil || broken().Error() != "no" {
		t.Error("wrong")
	}
}

func TestOwn(t *testing.T) {
	if own() != (hidden{1}) {
		t.Error("wrong")
	}
}
"""


def test_plain_values_are_reported_as_texts(tmp_path: Path) -> None:
    form = lifted(TESTS.encode(), ["TestValues", "TestOwn"], (), ())
    assert form is not None
    assert set(form.functions) == {"TestValues", "TestOwn"}, form.refused
    for name, text in (("a.go", CODE), ("a_test.go", form.observing.decode()), ("go.mod", "module a\n\ngo 1.13\n")):
        (tmp_path / name).write_text(text)
    variables = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "", "HOME": str(tmp_path)}
    command = ["/usr/lib/go/bin/go", "test", "-c", "-vet=off", "-o", "program", "."]
    subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True)
    assert reported(tmp_path / "program", ["-test.run", "^TestValues$"]) == [
        "1 true", "2 1.5", "3 {1,2,}", "2 1.5", "3 {1,2,}", "2 1.5", "3 {1,2,}", "4 false", '5 "no"',
    ]  # fmt: skip
    assert reported(tmp_path / "program", ["-test.run", "^TestOwn$"]) == ["OPAQUE"]
