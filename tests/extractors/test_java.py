"""Java: symbols and references, tests by path, mirrored tests, canaries, details, artefacts."""

from __future__ import annotations

import os
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from excise.extractors.fetch.trees import list_files
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.suite_files import is_test_file
from excise.extractors.java.execution import java_runner
from excise.extractors.java.execution.java_grading import JavaGrading
from excise.extractors.java.execution.mirrored_tests import mirrored
from excise.extractors.java.needs import find_needs
from excise.extractors.languages import detect_language
from excise.extractors.scanned_code import parameters_of
from excise.types import NeedKind, Symbol, SymbolKind
from excise.verifiers.shipped_tree import scrubbed

REPO = Path(__file__).parents[1] / "repos" / "ledger"
FILES = {
    "src/main/java/a/Box.java": """package a;

import a.more.Lid;
import java.util.*;

/**
 * Holds {@code things}.
 */
public class Box<T> extends Base implements Comparable<Box<T>> {
    private final Lid lid = new Lid();

    public Box(int size) { super(size); }

    /** Says how many, or {@link Lid none}. */
    @Deprecated
    public int size(Map<String, List<T>> by, final int... more) throws IllegalStateException {
        if (by == null && more.length > 0) {
            return lid.weight();
        }
        return helper();
    }

    public int size() { return 1; }

    int helper() { return inherited(); }

    @Override
    public int compareTo(Box<T> other) { return 0; }

    static class Inner {
        void open() { Lid.make().weight(); }
    }

    interface Shape {
        int area();
        default int twice() { return 2 * area(); }
    }
}
""",
    "src/main/java/a/Base.java": (
        "package a;\n\nclass Base {\n    Base(int n) { }\n    int inherited() { return 3; }\n}\n"
    ),
    "src/main/java/a/more/Lid.java": (
        "package a.more;\n\npublic class Lid {\n    public static Lid make() { return new Lid(); }\n"
        "    public int weight() { return 1; }\n}\n"
    ),
    "src/test/java/a/BoxTest.java": (
        "package a;\n\nclass BoxTest {\n    @Test void sizes() { new Box(1).size(null); }\n}\n"
    ),
}
BOX = "src/main/java/a/Box.java"


@pytest.fixture
def codebase() -> JavaCodebase:
    return JavaCodebase.from_texts(FILES)


def symbol(codebase: JavaCodebase, name: str) -> Symbol:
    return codebase.symbols()[f"{BOX}::{name}"]


def test_symbols_have_spans_signatures_and_comments(codebase: JavaCodebase) -> None:
    size = symbol(codebase, "Box.size")
    assert size.signature == (
        "public int size(Map<String, List<T>> by, final int... more) throws IllegalStateException"
    )
    assert (size.kind, size.docstring, size.decorators) == (
        SymbolKind.METHOD, "Says how many, or Lid none.", ("Deprecated",),
    )  # fmt: skip
    assert (size.complexity, size.is_public) == (3, True)
    assert parameters_of(size)[-1] == "more"
    source = codebase.modules[BOX].source
    assert source[size.code_start :].startswith(b"if (by == null")
    assert symbol(codebase, "Box.size#2").signature == "public int size()"
    assert symbol(codebase, "Box").signature == "public class Box<T> extends Base implements Comparable<Box<T>>"
    assert symbol(codebase, "Box").docstring == "Holds things."
    assert {s.qualname for s in codebase.modules[BOX].symbols} >= {"Box.Box", "Box.Inner.open", "Box.Shape.twice"}
    assert f"{BOX}::Box.Shape.area" not in codebase.symbols(), "it has no body"
    assert not symbol(codebase, "Box.helper").is_public


def test_names_are_resolved_by_types_imports_and_inheritance(codebase: JavaCodebase) -> None:
    lid = "src/main/java/a/more/Lid.java::Lid"
    assert codebase.callees(f"{BOX}::Box.size") >= {f"{lid}.weight", f"{BOX}::Box.helper"}
    assert codebase.callees(f"{BOX}::Box.helper") == {"src/main/java/a/Base.java::Base.inherited"}
    assert codebase.callees(f"{BOX}::Box.Inner.open") >= {lid, f"{lid}.make", f"{lid}.weight"}
    assert "src/test/java/a/BoxTest.java::BoxTest.sizes" in codebase.callers(f"{BOX}::Box.Box")


def test_calls_of_overloads_are_told_apart_by_the_number_of_arguments() -> None:
    source = """class Text {
    static String join(String a) { return join(a, ""); }
    static String join(String a, String b) { return a + b; }
    static String join(String a, Object... rest) { return a; }
    String all() { return join("a", "b", /* more */ "c") + new Text(1); }
    String any(java.util.function.Function<String, String> f) { return f.apply("x") + any(Text::join); }
    Text() { }
    Text(int size) { }
}
"""
    found = JavaCodebase.from_texts({"Text.java": source})
    assert found.callees("Text.java::Text.join") == {"Text.java::Text.join#2", "Text.java::Text.join#3"}
    assert found.callees("Text.java::Text.all") == {
        "Text.java::Text",
        "Text.java::Text.join#3",
        "Text.java::Text.Text#2",
    }
    every = {f"Text.java::Text.join{number}" for number in ("", "#2", "#3")}
    assert found.callees("Text.java::Text.any") >= every, "which one a reference means is not told by its arguments"


def test_methods_are_known_by_the_names_that_class_files_have(codebase: JavaCodebase) -> None:
    assert codebase.compiled_name(f"{BOX}::Box.Inner.open") == "a/Box$Inner.open"
    assert codebase.compiled_name(f"{BOX}::Box.size#2") == "a/Box.size"
    assert codebase.compiled_name(f"{BOX}::Box") == ""


def test_lines_belong_to_methods(codebase: JavaCodebase) -> None:
    assert codebase.symbols_of_lines(BOX, [18, 25]) == {f"{BOX}::Box.size", f"{BOX}::Box.helper"}
    assert codebase.symbols_of_lines(BOX, [1, 11]) == frozenset()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/test/java/a/Helper.java", True), ("src/main/java/a/test/Box.java", False), ("test/a/Box.java", True),
        ("a/BoxTest.java", True), ("a/TestBox.java", True), ("a/Testament.java", False),
        ("src/main/java/a/FooTest.java", False),
    ],
)  # fmt: skip
def test_tests_are_told_by_their_paths(path: str, expected: bool) -> None:
    assert is_test_file(path) is expected


def test_a_mirrored_test_fails_where_the_test_passes() -> None:
    source = b"""package a;

public class BoxTest {
    @Test(expected = IllegalStateException.class)
    public void refuses() { new Box(-1); }

    @Test
    public void sizes() {
        for (int n : all()) { assertEquals(n, new Box(n).size()); }
        check(3);
        assertThat(f()).isNotNull();
        try {
            g();
            fail();
        } catch (IllegalArgumentException error) {
            log(error);
        }
    }

    @Test
    public void plain() { new Box(1).open(); }

    private void check(int n) { Assert.assertTrue(n > 0); }
}
"""
    text = (mirrored(source, ["BoxTest::refuses", "BoxTest::sizes", "BoxTest::plain"]) or b"").decode()
    assert "@Test()\n    public void refuses()" in text
    assert text.count("catch (AssertionError") == 3
    assert "try { check(3); " in text
    assert "try { assertThat(f()).isNotNull(); " in text
    assert "catch (IllegalArgumentException error) { if (true) throw new AssertionError();" in text
    assert "{ new Box(1).open(); }" in text
    assert mirrored(source, ["BoxTest::plain"]) is None
    assert mirrored(source, ["BoxTest::missing"]) is None


COPIED = b"""package a;

public class BoxTest {
    static final Class<?> OWN = BoxTest.class;

    @Test(expected = IllegalStateException.class)
    public void refuses() { new Box(-1); }

    @Test
    public void sizes() throws Exception { assertEquals(1, new Box(1).size()); return; }

    @Test
    public void empty() {}

    @Disabled
    @Test
    public void left() { }

    void helper() { BoxTest.this.sizes(); }

    @Nested
    class Opened {
        @Test
        void closes() { assertTrue(box.close()); }
    }
}
"""
NAMES = [
    "BoxTest::Opened::closes",
    "BoxTest::sizes",
    "BoxTest::refuses",
    "BoxTest::empty",
    "BoxTest::left",
    "BoxTest::helper",
]


def test_failing_copies_are_in_a_class_of_another_name() -> None:
    found = JavaGrading().failing_copies("src/test/BoxTest.java", COPIED, NAMES, "seed")
    assert found is not None
    assert found == JavaGrading().failing_copies("src/test/BoxTest.java", COPIED, NAMES, "seed")
    name, copies = found[0].removesuffix(".java"), found[1]
    assert copies.tests == (f"{name}::Opened::closes", f"{name}::sizes", f"{name}::refuses", f"{name}::empty")
    assert "BoxTest" not in copies.text.replace(name, "")
    text = re.sub(r"\d{2,}", "0", " ".join(copies.text.split()))
    assert "{ try { new Box(-1); } finally { org.junit.Assert.assertEquals(0, 0); } }" in text
    assert "empty() { try { } finally {" in text
    assert "expected" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"static final", b"@Rule public final"),
        (b"class BoxTest", b"class BoxTest extends Base"),
        (b"class BoxTest", b"abstract class BoxTest"),
        (b"package a;", b"package a;\nclass Other {}"),
        (b"public class", b"@RunWith(Suite.class)\npublic class"),
    ],
)
def test_no_class_is_copied_in_which_a_failing_test_might_pass(old: bytes, new: bytes) -> None:
    assert JavaGrading().failing_copies("src/test/BoxTest.java", COPIED.replace(old, new, 1), NAMES, "seed") is None


@pytest.mark.parametrize(
    ("beside", "library"),
    [
        ("import org.junit.jupiter.api.Test;", "org.junit.jupiter.api.Test"),
        ("import org.junit.Test;", "org.junit.Test"),
    ],
)
def test_canaries_are_of_the_package_and_with_the_library_of_the_tests(beside: str, library: str) -> None:
    data = f"/* x */\npackage a.b;\n\n{beside}\n".encode()
    name, canaries = JavaGrading().canaries("seed", data)
    assert canaries.text.startswith("package a.b;\n")
    assert f"import {library};" in canaries.text
    assert len(set(canaries.tests)) == 5
    assert all(test.startswith(f"{name.removesuffix('.java')}::") for test in canaries.tests)
    assert (name, canaries) == JavaGrading().canaries("seed", data)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("pom.xml", "manifest"), ("src/main/resources/META-INF/services/x.Y", "manifest"), ("build.gradle", "manifest"),
        ("src/main/resources/junit-platform.properties", "manifest"), ("src/main/java/module-info.java", "manifest"),
        ("src/test/java/a/BTest.java", "test"), ("src/test/resources/a.json", "test"), ("lib/a.jar", "compiled"),
        ("src/main/java/a/B.class", "compiled"), (".git/config", "version_control"), (".mvn/jvm.config", "manifest"),
        ("src/main/java/a/B.java", ""), ("src/main/resources/a.properties", ""), ("README.md", ""),
    ],
)  # fmt: skip
def test_only_sources_of_a_solution_count(path: str, reason: str) -> None:
    assert JavaGrading().forbidden(path, ours=False) == reason


def test_files_in_packages_of_test_libraries_shadow_them() -> None:
    grading, roots = JavaGrading(), ["src/main/java"]
    assert grading.shadows("src/main/java/org/junit/Assert.java", Path(), roots)
    assert grading.shadows("src/main/java/excise/Launcher.java", Path(), roots)
    assert not grading.shadows("src/main/java/org/example/Assert.java", Path(), roots)


def test_java_is_told_by_manifests_or_files(tmp_path: Path) -> None:
    assert detect_language(REPO) == "java"
    (tmp_path / "A.java").write_text("class A { }\n")
    assert detect_language(tmp_path) == "java"


def test_what_builds_make_is_no_source() -> None:
    paths = ["target/classes/a/B.class", "lib/b.jar", "build/libs/x", "src/a/build/Build.java", "src/a/build/x.txt",
             ".gradle/x", "out/notes.txt", "target/site/index.html", "pom.xml"]  # fmt: skip
    assert scrubbed(paths, "java") == {
        "target/classes/a/B.class", "lib/b.jar", "build/libs/x", ".gradle/x", "out/notes.txt", "target/site/index.html",
    }  # fmt: skip


def test_texts_and_exceptions_that_tests_expect_are_details() -> None:
    codebase = JavaCodebase.parse(REPO, list_files(REPO))
    ledger, tests = "src/main/java/org/example/ledger/Ledger.java", "src/test/java/org/example/ledger/LedgerTest.java"
    test = f"{tests}::LedgerTest::otherCurrenciesAreRefused"
    found = find_needs(codebase, [f"{ledger}::Ledger.book"], [test, f"{tests}::LedgerTest::balancesAreSums"])
    assert [(need.kind, need.word, need.tests, need.exception) for need in found] == [
        (NeedKind.MESSAGE, "a ledger in ", (test,), "IllegalArgumentException"),
        (NeedKind.EXCEPTION, "IllegalArgumentException", (test,), ""),
    ]


def test_tests_of_a_module_run_in_its_folder(tmp_path: Path) -> None:
    path = Path(java_runner.__file__).parents[1] / "inside" / "excise_java_build.py"
    spec = spec_from_file_location("excise_java_build", path)
    assert spec is not None
    assert spec.loader is not None
    building = module_from_spec(spec)
    spec.loader.exec_module(building)
    found = {"roots": ["core/src/main/java"], "test_roots": ["core/src/test/java"], "resources": [], "options": []}
    found |= {"test_resources": [], "left_out": [], "not_run": []}
    (tmp_path / "core").mkdir()
    project = building.Project(str(tmp_path), found)
    assert project.folder == str(tmp_path / "core")
    project.link_outputs()
    assert not (tmp_path / "core" / "target").exists(), "it is none of Maven's"
    (tmp_path / "core" / "pom.xml").touch()
    project.link_outputs()
    assert os.readlink(tmp_path / "core" / "target" / "test-classes") == "/tmp/excise-java/tests"
    project.link_outputs()
    for roots in (["tests"], ["testsrc/java"], ["gone/src/test"], ["core/src/test", "src/test"], []):
        assert building.Project(str(tmp_path), {**found, "test_roots": roots}).folder.rstrip("/") == str(tmp_path)


def test_constructors_that_only_call_others_have_no_code() -> None:
    source = (
        "package a;\n\nclass Box extends Base {\n    Box() {\n        super(1);\n    }\n\n    Box(int n) {\n"
        "        super(n);\n        size = n;\n    }\n\n    Box(long n) { }\n\n    void close() { }\n}\n"
    )
    codebase = JavaCodebase.from_texts({"src/main/java/a/Box.java": source})
    loc = {symbol.qualname: symbol.loc for symbol in codebase.modules["src/main/java/a/Box.java"].symbols}
    assert (loc["Box.Box"], loc["Box.Box#2"], loc["Box.Box#3"], loc["Box.close"]) == (0, 4, 0, 1)
