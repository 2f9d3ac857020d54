"""Rows of the tables of hidden tests that statements show, in Go and Java."""

from __future__ import annotations

import pytest

from excise.deleters.go.statement_words import GoWords
from excise.deleters.java.statement_words import JavaWords
from excise.deleters.statement.test_words import rows_of_tests
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.types import Visibility

TABLE = """package a

import "testing"
{tables}
func TestParse(t *testing.T) {{
	limit := 3
	other := 4
	cases := []struct {{
		in      string
		want    []string
		wantErr bool
	}}{{
{rows}
	}}
	for _, tc := range cases {{
		got, err := Parse(tc.in, limit)
		if (err != nil) != tc.wantErr {{
			t.Fatal(tc.in, got, other)
		}}
	}}
}}
"""


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (['{"a", []string{"a"}, false}', '{"b", nil, true}', '{"c", []string{"c"}, false}'], ['{"b", nil, true}']),
        (['{"a", []string{"a"}, false}', '{"", []string{}, false}', '{in: "c"}'], ['{"", []string{}, false}']),
        (
            ['{in: "a"}', '{in: "b", wantErr: true}', '{in: "c"}', '{in: "", want: []string{}}', '{in: "d"}'],
            ['{in: "b", wantErr: true}', '{in: "", want: []string{}}'],
        ),
        (
            [
                *(f'{{"{n}", []string{{"{n}"}}, false}}' for n in range(5)),
                '{"x", split("x"), false}',
                '{"y", nil, true}',
            ],
            ['{"1", []string{"1"}, false}', '{"x", split("x"), false}', '{"y", nil, true}'],
        ),
        (['{"a", list, false}', '{"b", list, false}'], []),
        (['{"b", nil, true}'], []),
        (["load()", "load()"], []),
        (['{"a", list, false}', '{"b" + `\n\t\tb`, nil, true}'], []),
    ],
)
def test_rows_with_errors_and_empty_values_are_shown(rows: list[str], shown: list[str]) -> None:
    table = TABLE.format(tables="", rows="\n".join(f"\t\t{row}," for row in rows))
    files = {"a.go": "package a\n\nfunc Parse(s string, n int) []string { return nil }\n", "a_test.go": table}
    codebase = GoCodebase.from_texts(files)
    removed = [codebase.symbols()["a.go::Parse"]]
    tests = ["a_test.go::TestParse"]
    found = rows_of_tests(codebase, tests, GoWords(), Visibility.DOCSTRING, removed)
    assert [line.strip()[:-1] for line in found.splitlines() if line.startswith("\t{")] == shown
    assert bool(found) is bool(shown)
    if shown:
        assert "```go\n// TestParse\nlimit := 3\ncases := []struct {\n\tin      string\n" in found
        assert found.endswith("\t// …\n}\n// each row: got, err := Parse(tc.in, limit)\n```")
    assert rows_of_tests(codebase, tests, GoWords(), Visibility.SIGNATURE, removed) == ""
    assert rows_of_tests(codebase, tests, GoWords(), Visibility.DOCSTRING, []) == "", "it does not name what is gone"


def test_tables_of_the_file_and_of_the_loop_have_rows() -> None:
    whole = TABLE.format(tables="", rows='\t\t{"a", nil, false},\n\t\t{"b", nil, true},')
    start, end = whole.index("\tcases := "), whole.index("\tfor _,")
    table = whole[start:end].partition(":= ")[2].strip()
    in_loop = whole[:start] + whole[end:].replace("range cases", f"range {table}")
    in_file = whole[:start] + whole[end:] + f"\nvar cases = {table}\n"
    for source in (in_loop, in_file):
        codebase = GoCodebase.from_texts({"a.go": "package a\n\nfunc Parse() {}\n", "a_test.go": source})
        removed = [codebase.symbols()["a.go::Parse"]]
        found = rows_of_tests(codebase, ["a_test.go::TestParse"], GoWords(), Visibility.DOCSTRING, removed)
        assert '\t{"b", nil, true},\n\t// …\n}' in found


def test_the_use_of_a_row_comes_with_the_line_that_names_what_is_gone() -> None:
    source = TABLE.format(tables="", rows='\t\t{"a", nil, false},\n\t\t{"b", nil, true},')
    source = source.replace("Parse(tc.in, limit)", "New(tc.in)").replace(
        "\t\tif (err", "\t\tout := got.Parse()\n\t\tif (err"
    )
    files = {
        "a.go": "package a\n\ntype V int\n\nfunc (v V) Parse() {}\n\nfunc New() V { return 1 }\n",
        "a_test.go": source,
    }
    codebase = GoCodebase.from_texts(files)
    removed = [codebase.symbols()["a.go::V.Parse"]]
    found = rows_of_tests(codebase, ["a_test.go::TestParse"], GoWords(), Visibility.DOCSTRING, removed)
    assert "// each row: got, err := New(tc.in); out := got.Parse()\n" in found
    assert '{"b", nil, true}' in found
    other = source.replace("\t\tout := got.Parse()\n", "").replace("limit := 3", "Parse()")
    codebase = GoCodebase.from_texts({**files, "a_test.go": other})
    assert rows_of_tests(codebase, ["a_test.go::TestParse"], GoWords(), Visibility.DOCSTRING, removed) == ""


def test_rows_with_empty_texts_that_stand_for_others_are_not_shown() -> None:
    source = TABLE.format(tables="", rows='\t\t{"a", nil, false},\n\t\t{"", nil, false},')
    files = {"a.go": "package a\n\nfunc Parse(s string, n int) []string { return nil }\n", "a_test.go": source}
    for text, is_shown in (
        (source, True),
        (source.replace("got, err :=", 'if tc.in == "" {\n}\n\t\tgot, err :='), False),
    ):
        codebase = GoCodebase.from_texts({**files, "a_test.go": text})
        removed = [codebase.symbols()["a.go::Parse"]]
        found = rows_of_tests(codebase, ["a_test.go::TestParse"], GoWords(), Visibility.DOCSTRING, removed)
        assert ('{"", nil, false}' in found) is is_shown


JAVA_TEST = """package a;

import org.junit.jupiter.params.ParameterizedTest;

class ATest {{
    static Stream<Arguments> rows() {{
        return Stream.of({rows});
    }}

    @ParameterizedTest
    @{source}
    void parses(String given, Object expected) {{
        Object other = 1;
        assertEquals(expected, A.parse(given), "" + other);
    }}
}}
"""


@pytest.mark.parametrize(
    ("source", "rows", "shown"),
    [
        ('CsvSource({"a,1", "b,2", "\'\',0", "c,3"})', "", ["\"'',0\",", '"c,3",']),
        ('CsvSource({"a,1", "b,"})', "", ['"b,",']),
        ('CsvSource({"a,1"})', "", []),
        (
            'MethodSource("rows")',
            'Arguments.of("a", 1), Arguments.of("b", xs[0]), Arguments.of("", 0), Arguments.of("c", FooError.class)',
            ['Arguments.of("", 0),', 'Arguments.of("c", FooError.class),'],
        ),
        ('MethodSource("rows")', 'new Object[] {"a", 1}, new Object[] {"b", null}', ['new Object[] {"b", null},']),
        ('MethodSource("rows")', "", []),
        ('MethodSource("rows")', 'Arguments.of("a", 1), Arguments.of("", // none\n 0)', []),
        ('MethodSource("rows")', 'Arguments.of("a", 1), Arguments.of("""\n  a""", "")', []),
    ],
)
def test_rows_of_parametrised_tests_of_java_are_shown(source: str, rows: str, shown: list[str]) -> None:
    path, test = "src/main/java/a/A.java", "src/test/java/a/ATest.java"
    files = {path: "package a;\n\nclass A {\n    static int parse(String s) {\n        return 1;\n    }\n}\n"}
    codebase = JavaCodebase.from_texts({**files, test: JAVA_TEST.format(source=source, rows=rows)})
    removed = [codebase.symbols()[f"{path}::A.parse"]]
    found = rows_of_tests(codebase, [f"{test}::ATest::parses"], JavaWords(), Visibility.DOCSTRING, removed)
    lines = found.partition("```java\n")[2].splitlines()
    use = '// each row: assertEquals(expected, A.parse(given), "" + other);'
    assert lines == (["// parses(String given, Object expected)", *shown, "// …", use, "```"] if shown else [])
