"""Lifted tests in Java: their observing forms, what is not divided, and what is judged apart from texts."""

from __future__ import annotations

import json
import re
import time

import pytest

from excise.extractors.java.execution.java_grading import JavaGrading
from excise.extractors.java.execution.lifted_tests import lifted
from excise.extractors.reported_texts import as_json, judged, what_is_reported
from excise.protocols import LiftedRun, LiftedTests
from excise.types import Status

JUPITER = """package a;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;
"""
JUNIT4 = "package a;\n\nimport static org.junit.Assert.*;\n\nimport org.junit.Test;\n"
DEPENDING = ("f", "parse", "Code")


def divided(body: str, more: str = "", head: str = JUPITER, beside: tuple[bytes, ...] = ()) -> tuple[str, str]:
    """The class with the observing form of a test with this body, without the places of checks; and why there is
    none."""
    test = body if "@" in body else f"@Test void it() throws Exception {{ {body} }}"
    found = lifted(f"{head}class ATest {{ {more} {test} }}".encode(), ["ATest::it"], DEPENDING, beside)
    assert found is not None
    text = re.sub(r"_[0-9a-f]{10}(?![0-9a-f])", "_", found.observing.decode()).replace("excise.Observed.", "")
    text = re.sub(r"\b(report|near|items|isNull|thrown|caught)\(\d+, ", r"\1(", text)
    return re.sub(r"\s+", " ", text), found.refused.get("ATest::it", "")


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("assertEquals(44, f(2));", "{ report(f(2)); }"),
        ("assertEquals(f(2), 44, \"of 44\");", "{ report(f(2)); }"),
        ("String s = \"44\"; assertEquals(s, f(2));", "{ report(f(2)); }"),
        ("int[] s = {44}; assertArrayEquals(s, f(2));", "{ report(f(2)); }"),
        ("List<Integer> s = new ArrayList<>(); s.add(44); assertEquals(s, f(2));", "{ report(f(2)); }"),
        ("assertIterableEquals(List.of(44), f(2));", "{ items(f(2)); }"),
        ("assertEquals(Arrays.asList(\"44\", null), f(2));", "{ report(f(2)); }"),
        ("assertEquals(TimeUnit.SECONDS, f(44 - 42));", "{ report(f(44 - 42)); }"),
        ("assertEquals(4.4, f(2), 0.1);", "{ near(f(2)); }"),
        ("assertEquals(4.4, f(2), 0.0);", "{ report(f(2)); }"),
        ("assertTrue(f(2));", "{ report(f(2)); }"),
        ("f(this); assertFalse(isSet);", "{ f(this); report(isSet); }"),
        ("assertTrue(f(2) && !f(3));", "{ report(f(2)); report(f(3)); }"),
        ("assertTrue(f(2) == 44);", "{ report(f(2)); }"),
        ("assertTrue(\"44\".equals(f(2)));", "{ report(f(2)); }"),
        ("assertFalse(f(2) == null);", "{ isNull(f(2)); }"),
        ("assertNotNull(f(2), \"44\");", "{ isNull(f(2)); }"),
        ("assertSame(Month.MAY, f(2));", "{ report(f(2)); }"),
        ("assertThrows(IllegalStateException.class, () -> f(2));", "{ caught(() -> f(2)); }"),
        ("Exception e = assertThrows(IOException.class, () -> f(2)); assertEquals(\"44\", e.getMessage());",
         "{ java.lang.Throwable e = caught(() -> f(2)); report(e.getMessage()); }"),
        ("try { f(2); fail(\"44\"); } catch (IOException e) { assertEquals(\"44\", e.getMessage()); }",
         "try { f(2); thrown(null); } catch (java.lang.Throwable e) { thrown(e); report(e.getMessage()); }"),
        ("try { assertEquals(44, f(2)); } catch (Exception e) { fail(\"44\"); }",
         "try { report(f(2)); } catch (Exception e) { fail(); }"),
        ("assertAll(\"44\", () -> assertEquals(44, f(2)), () -> assertTrue(f(3)));",
         'assertAll("", () -> report(f(2)), () -> report(f(3)));'),
        ("for (int i = 0; i < 3; i++) { assertNull(f(i)); }", "{ isNull(f(i)); }"),
        ("String s = \"x\"; assertEquals(s, parse(f(s)));", 'String s = "x"; report(parse(f(s)));'),
        ("for (String s : new String[] {\"x\"}) { assertEquals(s, parse(s)); }", "{ report(parse(s)); }"),
        ("Object o = f(2); o.run();", "{ Object o = f(2); o.run(); }"),
        ("@DisplayName(\"is 44\") @Test void it() { assertEquals(44, f(2)); }", "@Test void it() { report(f(2)); }"),
        ("@ParameterizedTest(name = \"{0}\") @CsvSource({\"x, 44\", \"'y, z', '44'\"}) void it(String a, int b) "
         "{ assertEquals(b, f(a)); }",
         "@ParameterizedTest @CsvSource({\"x\", \"'y, z'\"}) void it(String a) { report(f(a)); }"),
        ("@ParameterizedTest @MethodSource(\"rows\") void it(int b, String a) { assertEquals(b, f(a)); } static "
         "Stream<Arguments> rows() { return Stream.of(Arguments.of(44, \"x\"), Arguments.of(440, g())); }",
         "Stream.of(Arguments.of(\"x\"), Arguments.of(g()))"),
        ("@ParameterizedTest @ValueSource(strings = {\"a\"}) void it(String a) { assertTrue(f(a)); }",
         "@ValueSource(strings = {\"a\"}) void it(String a) { report(f(a)); }"),
    ],
)  # fmt: skip
def test_a_check_becomes_a_report_of_what_it_looks_at(body: str, part: str) -> None:
    text, why = divided(body, "boolean isSet;")
    assert not why
    assert part in text
    assert "44" not in text.replace("f(44 - 42)", "")
    assert not re.search(r"IllegalState|IOException|SECONDS|MAY\b", text)


def test_helpers_that_check_get_a_form_without_what_they_expect() -> None:
    more = "private void check(String in, int out) { is(out, f(in)); } static final int N = 440; "
    more += "static void is(int a, int b) { assertEquals(a, b); }"
    text, why = divided('check("x", 44); check("y", N);', more)
    assert not why
    assert 'check_("x"); check_("y");' in text
    assert "void check_(String in) { is_(f(in)); }" in text
    assert "void is_(int b) { report(b); }" in text
    assert "44" not in text
    assert "check(" not in text, "nothing calls it any more"


def test_helpers_give_to_the_code_what_they_expect_of_it() -> None:
    more = "void both(Object in, String out) { both(in, out, in); } void both(Object in, String out, Object back) "
    more += "{ assertEquals(out, f(in)); assertEquals(back, parse(out)); }"
    text, why = divided('both(Locale.class, "x");', more)
    assert not why
    assert "void both__2(Object in, String out) { both__3(in, out); }" in text
    assert "void both__3(Object in, String out) { report(f(in)); report(parse(out)); }" in text
    assert divided('int[] a = {4}; both(a, "x");', more)[1] == "expected value that is computed"


def test_checks_of_libraries_that_have_no_form() -> None:
    head = JUPITER + "import static org.assertj.core.api.BDDAssertions.%s;\n"
    assert divided("then(f(2)).hasSize(44);", head=head % "then")[1] == "check of another kind"
    assert divided("then(f(2)).hasSize(44);", head=head % "*")[1] == "check of another kind"
    head = JUPITER + "import static org.hamcrest.Matchers.hasItem;\n"
    assert divided('f(2).body("x", hasItem(44)); assertTrue(f(3));', head=head)[1] == "check of another kind"


def test_errors_that_an_annotation_expects() -> None:
    text, why = divided("@Test(timeout = 9, expected = IOException.class) public void it() { f(2); }", head=JUNIT4)
    assert not why
    assert re.search(r"@Test\(timeout = 9 ?\) public void it\(\) \{ java.lang.Throwable error_ = null; try", text)
    assert "finally { thrown(error_); } }" in text


def test_messages_and_deltas_of_junit_4() -> None:
    body = 'assertEquals("44", 44, f(2)); assertEquals("", 4.4, f(3), 1e-9);'
    assert "{ report(f(2)); near(f(3)); }" in divided(body, head=JUNIT4)[0]
    old = 'class ATest extends TestCase { public void testIt() { assertEquals("is", 44, f(2)); } }'
    found = lifted(f"import junit.framework.TestCase;\n{old}".encode(), ["ATest::testIt"], (), ())
    assert found is not None
    assert b", f(2));" in found.observing
    assert b"44" not in found.observing


@pytest.mark.parametrize(
    ("imports", "body"),
    [
        (
            "static org.assertj.core.api.Assertions.assertThat",
            "assertThat(f(2)).isEqualTo(44); assertThat(f(2)).isNotNull();",
        ),
        (
            "static com.google.common.truth.Truth.assertThat",
            "assertThat(f(2)).isEqualTo(44); assertThat(f(2)).isNotNull();",
        ),
        (
            "static org.hamcrest.MatcherAssert.assertThat",
            'assertThat(f(2), is(equalTo(44))); assertThat("", f(2), notNullValue());',
        ),
    ],
)
def test_checks_of_other_libraries(imports: str, body: str) -> None:
    text, why = divided(body, head=f"import org.junit.jupiter.api.Test;\nimport {imports};\n")
    assert not why
    assert "{ report(f(2)); isNull(f(2)); }" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("assertEquals(g(4), f(2));", "expected value that is computed"),
        ("assertEquals(Code.X, f(2));", "expected value that is computed"),
        ("assertEquals(LocalDate.now(), f(2));", "expected value that is computed"),
        ("int s = 4; assertEquals(s, f(2)); g(s);", "expected value that the test uses otherwise"),
        ("int[] s = {4}; f(s); assertArrayEquals(s, f(2));", "expected value that the test uses otherwise"),
        ("assertEquals(4, 2 + 2);", "check of two values that are written out"),
        ("assertEquals(x, f(2), d);", "check of another kind"),
        ("assertEquals(X, f(2), 0.1);", "expected value that is computed"),
        ("assertNotEquals(4, f(2));", "check of another kind"),
        ("assertTrue(f(2) > 4);", "check of an inequality"),
        ("assertFalse(f(2) == 4);", "check of an inequality"),
        ("assertTrue(f(2) == \"x\");", "check of identity"),
        ("assertSame(\"x\", f(2));", "check of identity"),
        ("assertTrue(f(2).contains(\"x\"));", "comparing function"),
        ("assertTrue(f(2) instanceof String);", "condition that cannot be divided"),
        ("assertEquals(1, g(f(2) == 4));", "comparison within a check"),
        ("boolean b = f(2).equals(4); assertTrue(b);", "comparing function"),
        ("boolean b = f(2) == 4; assertTrue(b);", "condition that cannot be divided"),
        ("boolean b = false; try { f(2); } catch (IOException e) { b = true; } assertTrue(b);",
         "condition that cannot be divided"),
        ("if (f(2)) { assertEquals(4, f(3)); }", "check under a condition"),
        ("for (int e : f(2)) { assertEquals(4, e); }", "check in a loop over what the code may decide"),
        ("while (f(2)) { assertTrue(f(3)); }", "check in a loop over what the code may decide"),
        ("f(x -> { assertEquals(4, x); });", "check in a function that the code may call"),
        ("new Code() { void g() { assertTrue(f(2)); } };", "check in a function that the code may call"),
        ("if (f(2)) { return; } assertTrue(f(3));", "test that may end early"),
        ("int n = 0; if (f(2) == 4) { n++; } assertEquals(1, n);", "comparison outside a check"),
        ("switch (f(2)) { case 4: g(); } assertTrue(f(3));", "comparison outside a check"),
        ("assert f(2) == 4;", "comparison outside a check"),
        ("if (f(2)) fail();", "failure without a check"),
        ("try { f(2); fail(); } catch (IOException e) { assertEquals(4, e.code()); }", "failure without a check"),
        ("try { assertTrue(f(2)); f(3); fail(); } catch (IOException e) { }", "checks before an expected error"),
        ("try { assertTrue(f(2)); } catch (Throwable e) { }", "check whose failure is caught"),
        ("try { f(2); } catch (IOException e) { assertTrue(f(3)); }", "check under a condition"),
        ("assertThrows(IOException.class, block);", "expected error of a variable"),
        ("IOException e = assertThrows(IOException.class, () -> f(2)); assertEquals(4, e.code());",
         "error that the test looks into"),
        ("assertThrows(IOException.class, () -> { assertEquals(4, f(2)); });", "check within a check"),
        ("verify(mock).run(4); assertTrue(f(2));", "check of another kind"),
        ("assumeTrue(f(2)); assertTrue(f(2));", "check of another kind"),
        ("Thread t = new Thread(() -> f(2)); assertTrue(f(2));", "threads"),
        ("TestUtil.run(f(2), 4);", "helper of another file"),
        ("Beside.run(f(2), 4);", "helper of another file"),
        ("assertThat(f(2)).isEqualTo(4).isNotNull();", "check of another kind"),
        ("many(4, f(2));", "helper that checks"),
        ("same(f(2), g(4));", "expected value that is computed"),
        ("@ParameterizedTest @CsvFileSource(resources = \"x.csv\") void it(String a, int b) { assertEquals(b, f(a)); }",
         "rows of another source"),
        ("@ParameterizedTest @MethodSource(\"rows\") void it(int b, String a) { assertEquals(b, f(a)); } static "
         "Stream<Arguments> rows() { return Stream.of(Arguments.of(g(), \"x\")); }", "expected value that is computed"),
        ("@TestFactory Stream<DynamicTest> it() { assertTrue(f(2)); return null; }", "test of another kind"),
    ],
)  # fmt: skip
def test_other_tests_are_not_divided(body: str, why: str) -> None:
    more = "void many(int a, int b) { assertEquals(a, b); } void many(int a, long b) { assertEquals(a, b); } "
    more += "void same(int a, int b) { assertEquals(b, a); } static final double X = Code.y();"
    assert divided(body, more, beside=(b"class Beside { }",))[1] == why


def both(more: str, first: str, second: str) -> LiftedTests:
    source = f"{JUPITER}class ATest {{ {more} @Test void one() {{ {first} }} @Test void two() {{ {second} }} }}"
    found = lifted(source.encode(), ["ATest::one", "ATest::two"], DEPENDING, ())
    assert found is not None
    return found


def test_constants_of_the_class_go_unless_another_test_needs_them() -> None:
    constant = 'private static final String TEXT = "44";'
    found = both(constant, "assertEquals(TEXT, f(1));", "assertEquals(TEXT, f(2));")
    assert not found.refused
    assert b"44" not in found.observing
    found = both(constant, "assertEquals(TEXT, f(1));", "assertEquals(4, g(TEXT));")
    assert found.refused == {"ATest::one": "expected value that the tests use otherwise"}
    assert b"TEXT" in found.observing


@pytest.mark.parametrize(
    ("body", "more", "why"),
    [
        ("assertEquals(4, c.f(2));", "@BeforeEach void s() { if (c.x != 45) throw new Error(); }", "outside the tests"),
        ("assertTrue(f(2));", "@BeforeEach void s() { go(); } void go() { if (!x.equals(\"45\")) { stop(); } }",
         "outside the tests"),
        ("f(new Fake()); assertTrue(f(2));",
         "class Fake implements Code { public void g(int v) { if (v != 45) throw new Error(); } }",
         "outside the tests"),
        ("f(new Fake()); assertTrue(f(2));",
         "class Fake implements Code { public void g(int v) { assertEquals(45, v); } }", "outside the tests"),
        ("assertThrows(Error.class, this::go);", "void go() { assertEquals(44, f(3)); }", "helper that checks"),
        ("f(v -> { if (v != 45) throw new Error(); }); assertTrue(f(2));", "", "failure without a check"),
        ("new Verifications() {{ mock.run(44); }}; assertTrue(f(2));", "", "failure without a check"),
        ("f(v -> { throw new AssertionError(); }); assertTrue(f(2));", "", "failure without a check"),
        ("try { f(2); fail(); } catch (Throwable e) { }", "", "failure without a check"),
        ("assertEquals(0, f(2) - 44);", "", "arithmetic with a written value"),
        ("int a = f(2); a ^= 44; assertEquals(0, a);", "", "arithmetic with a written value"),
        ("assertEquals(\"x\", TABLE.get(f(2)));", "static final Map<Integer, String> TABLE = Map.of(44, \"x\");",
         "comparing function"),
        ("assertTrue(new HashSet<>(List.of(44)).add(f(2)));", "", "comparing function"),
        ("Set<Integer> s = new HashSet<>(); s.add(44); s.add(f(2)); assertEquals(1, s.size());", "",
         "comparing function"),
        ("int n = 0; assertEquals(44, f(2), \"no. \" + n++); f(n);", "", "message with an effect"),
        ("assertEquals(44, f(2), \"no. \" + it.next());", "Iterator<String> it = null;", "message with an effect"),
        ("check(44, f(2));", "@Override public void check(int a, int b) { assertEquals(a, b); }", "helper that checks"),
        ("assertEquals(0, less(f(2), 44));", "int less(int a, int b) { return a - b; }", "comparing function"),
        ("assertEquals(0, less(f(2)));", "int less(int a) { return a - 44; }", "comparing function"),
        ("less(f(2));", "void less(int a) { assertEquals(0, a - 44); }", "arithmetic with a written value"),
        ("less(f(2), 44);", "void less(int a, int b) { assertEquals(0, a - b); }", "arithmetic with a written value"),
        ("int[] t = new int[45]; t[f(2)] = 1; assertEquals(1, t[44]);", "", "comparing function"),
        ("assertEquals(1, Collections.frequency(f(2), 44));", "", "comparing function"),
        ("assertEquals(\"\", f(2).replace(\"44\", \"\"));", "", "comparing function"),
        ("assertEquals(0, f(2).stream().filter(Integer.valueOf(44)::equals).count());", "", "comparing function"),
        ("for (int n = 0; f(n) < 45; n++) { g(n); } assertTrue(f(2));", "", "comparison outside a check"),
        ("for (int i = 0; i < 3; i = f(i)) { assertTrue(f(i)); }", "", "in a loop over what the code may decide"),
        ("for (int i = 0; i < 3; i++) { i = f(i); assertTrue(f(i)); }", "", "in a loop over what the code may decide"),
        ("List.of(1).parallelStream().forEach(x -> f(x)); assertTrue(f(3));", "", "threads"),
        ("@ParameterizedTest @CsvSource({\"a, 45, 46\"}) void it(String a, int b) { assertEquals(b, f(a)); }", "",
         "rows in another form"),
        ("@ParameterizedTest @CsvSource({\"a, 45\"}) void it(String a, int b, ArgumentsAccessor c) "
         "{ assertEquals(b, f(a)); f(c); }", "", "rows in another form"),
    ],
)  # fmt: skip
def test_what_compares_in_other_words_is_not_divided(body: str, more: str, why: str) -> None:
    assert why in divided(body, more)[1]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("assertEquals(44, list.get(list.size() - 1));", "List<Integer> list = f(2);"),
        ("assertEquals(44, f(2)[0] & 0xff);", ""),
        ("for (int i = 0; i < 3; i++) { f(i * 4 + 3); } assertEquals(44, f(3));", ""),
        ("assertEquals(\"44\", f(2).replace(\"\\r\\n\", \"\\n\"));", ""),
        ("List<Integer> out = new ArrayList<>(); for (int x : f(2)) { out.add(x); } "
         "assertEquals(List.of(44), out);", ""),
        ("f(new Fake()); assertEquals(44, f(2));",
         "class Fake implements Code { public boolean g(int v) { return v == 'x'; } }"),
        ("String why = \"is 44\"; assertEquals(44, f(2), why);", ""),
        ("assertDoesNotThrow(() -> f(2), \"44\"); System.out.println(\"is 44\");", ""),
        ("assertEquals(44, f(2)); /* 44 */ // it is 44\n", "/** 44 */"),
        ("both(\"is 44\", 2, 44);", "void both(String m, int a, int b) { assertEquals(b, f(a), m); }"),
        ("assertEquals(44, f(2));", "enum Row { A(44); } int more(int a) { return more(44); }"),
        ("assertEquals(44, f(2));", "static Code X = new Code(44);"),
        ("assertEquals(44, f(2));",
         "static Map<String, Integer> all = new HashMap<>(); static { all.put(\"44\", 1); } int[] n = new int[1]; "
         "int e; @BeforeEach void s() { n[0] = 44; this.e = 44; f(1); }"),
        ("@ParameterizedTest @CsvSource({\"a, is 44\"}) void it(String a, String why) { assertTrue(f(a), why); }", ""),
        ("@RepeatedTest(value = 2, name = \"44\") @Tag(\"44\") void it() { assertEquals(44, f(2)); }", ""),
    ],
)  # fmt: skip
def test_nothing_of_what_is_expected_stays(body: str, more: str) -> None:
    text, why = divided(body, more)
    assert not why
    assert "44" not in text


def test_other_tests_and_what_only_they_use_are_taken_out() -> None:
    more = (
        'private int[] rows() { return new int[] {44}; } @ParameterizedTest @MethodSource("rows") void other(int a) { }'
    )
    text, _ = divided("assertTrue(f(2));", more)
    assert "rows()" not in text
    assert "44" not in text
    assert (
        divided("assertTrue(f(2));", "@BeforeEach void start() { assertEquals(4, f(1)); }")[1] == "set-up that checks"
    )
    head = f"{JUNIT4}@RunWith(Parameterized.class) "
    assert divided("assertTrue(f(2));", head=head)[1] == "test with a runner of its own"


def judge(found: LiftedTests, *texts: str) -> list[bool]:
    """Which texts of the only value are right, if the first one is the original's."""
    (test,) = found.functions
    places = [[site, "", ""] for site in json.loads(found.judging)[test]]
    reported = [as_json({"returned": True, "values": [[site, key, text] for site, key, _ in places]}) for text in texts]
    seen = {f"A.java::{test}[{number}]": values for number, values in enumerate(reported)}
    originals = dict.fromkeys(seen, what_is_reported(reported[0]))
    results = judged(LiftedRun(functions=[], seen=seen, originals=originals, forms={"A.java": found.judging.decode()}))
    return [result.status is Status.PASSED for result in results]


def test_errors_and_numbers_are_judged_apart_from_texts() -> None:
    def of(body: str) -> LiftedTests:
        found = lifted(f"{JUPITER}class T {{ @Test void it() {{ {body} }} }}".encode(), ["T::it"], DEPENDING, ())
        assert found is not None
        return found

    error = "~thrown java.io.FileNotFoundException java.io.IOException java.lang.Exception"
    other = "~thrown a.Code$IOException java.lang.Exception"
    wrong = "~thrown java.lang.Exception"
    thrown = of("assertThrows(IOException.class, () -> f(2));")
    assert judge(thrown, error, other, wrong, "~thrown", "4") == [True, True, False, False, False]
    near = of("assertEquals(-1_0.5, f(2), 0.1);")
    assert judge(near, "~near -10.5", "~near -10.45", "~near 10.5", "~near NaN", "~near x", "-10.5") == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert not what_is_reported(as_json({"returned": True, "values": [["1", "", error]]})).telling
    plain = of("assertThrows(IllegalStateException.class, () -> f(2));")
    assert judge(plain, "~thrown java.lang.IllegalStateException", "~thrown a.B$IllegalStateException") == [True, False]


def test_runs_of_one_method_are_counted_from_one() -> None:
    assert JavaGrading().numbered("A.java::ATest::it[0]") == "A.java::ATest::it[1]"
    assert JavaGrading().numbered("A.java::ATest::it") == "A.java::ATest::it"


def test_time_grows_with_the_size_of_a_file_and_deep_ones_are_refused() -> None:
    lines = "".join(f"int e{i} = {i}; int g{i} = f({i}); assertEquals(e{i}, g{i}); " for i in range(400))
    tests = "".join(
        f"static final int E{i} = {i}; @Test void t{i}() {{ assertEquals(E{i}, f(2)); }}" for i in range(500)
    )
    began = time.process_time()
    names = ["ATest::it", *(f"ATest::t{i}" for i in range(500))]
    found = lifted(f"{JUPITER}class ATest {{ @Test void it() {{ {lines} }} {tests} }}".encode(), names, DEPENDING, ())
    assert found is not None
    assert len(found.functions) == 501
    assert time.process_time() - began < 20
    assert divided(f"assertEquals({'+'.join(['1'] * 3000)}, f(2));")[1] == "too deeply nested"
    assert divided("assertTrue(f(2));", "class A { " * 3000 + "}" * 3000)[1] == "too deeply nested"


def test_files_in_other_encodings_are_not_divided() -> None:
    source = f'{JUPITER}class ATest {{ @Test void it() {{ assertEquals(4, f("\u00e4")); }} }}'
    assert lifted(source.encode(), ["ATest::it"], DEPENDING, ()) is not None
    assert lifted(source.encode("latin-1"), ["ATest::it"], DEPENDING, ()) is None
