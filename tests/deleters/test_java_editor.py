"""Java's code editor: what is left compiles, and tests go with what only they use."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.java.tidy import mentions
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.problem_statement import write_statement
from excise.errors import DeletionRefused
from excise.extractors.fetch.trees import list_files
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.parsed_file import parse_file
from excise.protocols import CompiledDeleter
from excise.types import Deletion, Feature, FeatureKind

from .planned_deletions import REPO as PROJECT

REPO = Path(__file__).parents[1] / "repos" / "ledger"
MAIN, TESTS = "src/main/java/org/example/ledger", "src/test/java/org/example/ledger"
AMOUNT, LEDGER = f"{MAIN}/Amount.java", f"{MAIN}/Ledger.java"
JARS = "/usr/share/java"
"""Where Debian's packages junit4 and junit5, which ./check installs, have their jars."""


@pytest.fixture(scope="module")
def codebase() -> JavaCodebase:
    return JavaCodebase.parse(REPO, list_files(REPO))


def feature(*symbols: str, tests: tuple[str, ...] = ()) -> Feature:
    return Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=tests)


def stubbed(codebase: JavaCodebase, *symbols: str, tests: tuple[str, ...] = ()) -> Deletion:
    return get("stub", "java").delete(codebase, feature(*symbols, tests=tests))


def removed(codebase: JavaCodebase, *symbols: str) -> Deletion:
    return get("remove", "java").delete(codebase, feature(*symbols))


def files_after(*patches: str) -> Mapping[str, bytes | None]:
    """Contents of the files that patches change."""
    found: dict[str, bytes | None] = {}
    for patch in patches:
        known = {path: (REPO / path).read_bytes() for path in touched(patch)}
        found |= apply_patch(known, patch)
    return found


def compiled(folder: Path, changed: Mapping[str, bytes | None]) -> str:
    """What the compiler says of the project with changed files: nothing if everything, tests included, compiles."""
    return said_by_javac(folder, {**{path: (REPO / path).read_bytes() for path in list_files(REPO)}, **changed})


def said_by_javac(folder: Path, files: Mapping[str, bytes | None]) -> str:
    """What the compiler says of files: nothing if everything compiles."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            (folder / path).write_bytes(data)
    jars = [f"{JARS}/{name}.jar" for name in ("junit-jupiter-api", "junit-jupiter-params", "junit4", "apiguardian-api")]
    chosen = [str(path.relative_to(folder)) for path in folder.rglob("*.java")]
    command = ["javac", "-proc:none", "-nowarn", "--release", "11", "-cp", ":".join(jars), "-d", str(folder / "out")]
    done = subprocess.run([*command, *chosen], cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_a_stub_keeps_signature_and_comment_and_drops_imports(codebase: JavaCodebase, tmp_path: Path) -> None:
    tests = tuple(f"{TESTS}/AmountTest.java::AmountTest::{name}" for name in (
        "parseReadsUnits[1]", "parseRefusesWhatIsNoAmount[2]", "parseKnowsTheCurrency", "textsAreReadAgain",
        "Splitting::largerPartsComeFirst", "Splitting::negativeAmountsAreSplitToo", "Splitting::thereMustBeParts",
    ))  # fmt: skip
    deletion = stubbed(codebase, f"{AMOUNT}::Amount.parse", f"{AMOUNT}::Amount.split", tests=tests)
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    source = (changed[AMOUNT] or b"").decode()
    stub = 'Amount parse(String text) {\n        throw new UnsupportedOperationException("not implemented");\n    }'
    assert stub in source
    assert "* Reads an amount such as" in source
    assert "import java.util.Locale;" not in source
    assert "import java.util.Objects;" in source, "hashCode uses it"
    after = (changed[f"{TESTS}/AmountTest.java"] or b"").decode()
    assert "parseReadsUnits" not in after
    assert "Stream<String> wrong" not in after, "the arguments of a hidden test"
    assert "class Splitting" not in after, "no test is left in it"
    assert "import org.junit.jupiter.params" not in after
    assert "TEN = new Amount" in after, "others use it"
    assert f"{TESTS}/AmountTest.java::AmountTest::Splitting::thereMustBeParts" in deletion.hidden
    assert compiled(tmp_path, changed) == ""


@pytest.mark.parametrize("kind", ["none", "raise", "any"])
def test_stand_ins_of_everything_compile(codebase: JavaCodebase, tmp_path: Path, kind: str) -> None:
    every = [f"{MAIN}/{name}.java" for name in ("Amount", "Currencies", "Ledger")]
    patches = dict(editor_of("java").stand_ins(codebase, every))
    changed = files_after(patches[kind])
    assert compiled(tmp_path, changed) == ""
    source = (changed[AMOUNT] or b"").decode()
    if kind == "none":
        assert "this.units = 0;\n        this.currency = null;" in source, "constructors assign final fields"
    if kind == "any":
        assert "throw new IllegalArgumentException();" in source


def test_calls_of_other_constructors_stay_and_thrown_types_are_tried() -> None:
    files = {
        "a/Wrong.java": "package a;\n\nclass Wrong extends Exception {\n    Wrong(String text) { super(text); }\n}\n",
        "a/Box.java": (
            "package a;\n\nclass Box extends Base {\n\tfinal int n;\n"
            "\tBox(int n) {\n\t\tsuper(n);\n\t\tthis.n = n;\n\t}\n"
            "\tBox() { this(3); }\n\tlong[] open() throws Wrong { return new long[n]; }\n}\n"
        ),
    }
    codebase = JavaCodebase.from_texts(files)
    patches = dict(editor_of("java").stand_ins(codebase, ["a/Box.java"]))
    none = apply_patch({"a/Box.java": files["a/Box.java"].encode()}, patches["none"])["a/Box.java"] or b""
    assert b"\t\tsuper(n);\n\t\tthis.n = 0;\n" in none
    assert b"Box() {\n\t\tthis(3);\n\t}" in none
    assert b"return null;" in none
    assert '+\t\tthrow new Wrong("");' in patches["any"]


def test_a_file_without_tests_and_a_class_with_an_inherited_test_go_whole(codebase: JavaCodebase) -> None:
    names = ("bookingsKeepTheirOrder", "otherCurrenciesAreRefused", "bookingsCannotBeChanged", "bookingsAreFound",
             "balancesAreSums")  # fmt: skip
    tests = tuple(f"{TESTS}/LedgerTest.java::LedgerTest::{name}" for name in names)
    assert files_after(stubbed(codebase, f"{LEDGER}::Ledger.book", tests=tests).hide_patch) == {
        f"{TESTS}/LedgerTest.java": None
    }
    inherited = stubbed(codebase, f"{LEDGER}::Ledger.book", tests=(f"{TESTS}/LedgerTest.java::LedgerTest::elsewhere",))
    assert files_after(inherited.hide_patch) == {f"{TESTS}/LedgerTest.java": None}
    assert set(tests) < set(inherited.hidden)


def test_methods_of_a_type_are_stubbed_together_and_those_of_tests_are_refused(codebase: JavaCodebase) -> None:
    removed = stubbed(codebase, f"{LEDGER}::Ledger.Booking").removed
    assert removed == tuple(f"{LEDGER}::Ledger.Booking.{name}" for name in ("Booking", "account", "amount"))
    with pytest.raises(DeletionRefused, match="belongs to the tests"):
        stubbed(codebase, f"{TESTS}/LedgerTest.java::LedgerTest.euros")


def test_definitions_go_with_what_only_they_need(codebase: JavaCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, f"{AMOUNT}::Amount.parse", f"{AMOUNT}::Amount.split")
    assert (deletion.deleter, deletion.removed) == ("remove", (f"{AMOUNT}::Amount.parse", f"{AMOUNT}::Amount.split"))
    assert f"{AMOUNT}::Amount.TEXT" in dict(deletion.text), "what only the code used is no part of the task, but a leak"
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    source = (changed[AMOUNT] or b"").decode()
    assert "Pattern" not in source
    assert "import java.util.Objects;\n\n/** An amount" in source
    assert "/** The amount as {@code parse} reads it" in source, "a link to what is gone"
    assert "textsAreReadAgain" in "".join(deletion.hidden), "it mentions what is gone, so that it could not be compiled"
    assert compiled(tmp_path, changed) == ""


def test_what_code_that_stays_uses_is_left_as_a_stub(codebase: JavaCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, f"{LEDGER}::Ledger.Booking", f"{LEDGER}::Ledger.balances")
    assert deletion.deleter == "remove_and_stub"
    assert f"{LEDGER}::Ledger.balances" in deletion.removed
    assert f"{LEDGER}::Ledger.Booking.account" in deletion.removed
    changed = files_after(deletion.source_patch, deletion.hide_patch)
    source = (changed[LEDGER] or b"").decode()
    assert "private final String account;" not in source.partition("class Booking")[0]
    assert "import java.util.Map;" not in source
    texts = editor_of("java").deleted_texts(codebase, deletion.deleter, deletion.removed, changed)
    assert sorted(texts) == sorted(deletion.text)


SHAPES = {
    "src/Shape.java": "/** A shape. */\npublic interface Shape {\n    /** Its area. */\n    int area();\n}\n",
    "src/Square.java": (
        # of the constructor nothing would go, so that it is no stub
        "/** A square; see {@link Disc} and {@link Square#corners() the corners}.\n *\n * @see Disc#area()\n */\n"
        "public class Square implements Shape {\n    private static final int FOUR = 4;\n\n"
        "    public Square() {\n        super();\n    }\n\n    @Override\n"
        "    public int area() {\n        return 1;\n    }\n\n    /** Corners. */\n    public int corners() {\n"
        "        return FOUR;\n    }\n\n    public int corners(int more) {\n        return more;\n    }\n}\n"
    ),
    "src/Disc.java": (
        "/** A disc. */\npublic class Disc implements Shape {\n    public static final int PI = 3;\n"
        "    public int r = 1;\n\n    @Override\n    public int area() {\n        return PI * r * r;\n    }\n}\n"
    ),
    "test/DiscTest.java": (
        "import org.junit.Before;\nimport org.junit.Test;\n\npublic class DiscTest {\n    private Disc disc;\n\n"
        "    @Before\n    public void setUp() {\n        disc = new Disc();\n    }\n\n"
        "    @Test\n    public void plain() {\n    }\n}\n"
    ),
}


def test_types_go_with_their_files_and_links(tmp_path: Path) -> None:
    codebase = JavaCodebase.from_texts(SHAPES)
    files = {path: text.encode() for path, text in SHAPES.items()}
    deletion = removed(codebase, "src/Disc.java::Disc", "src/Square.java::Square.corners")
    assert deletion.deleter == "remove"
    shipped = {**files, **apply_patch(files, deletion.source_patch), **apply_patch(files, deletion.hide_patch)}
    assert shipped["src/Disc.java"] is None
    assert shipped["test/DiscTest.java"] is None, "JUnit calls what needs the type before each test"
    assert deletion.hidden == ("test/DiscTest.java::DiscTest::plain",)
    source = (shipped["src/Square.java"] or b"").decode()
    assert source.startswith("/** A square; see {@code Disc} and the corners.\n */"), "the other one is no corners()"
    assert "FOUR" not in source
    assert said_by_javac(tmp_path, shipped) == ""
    words = editor_of("java").words
    shown = words.declaration(codebase.modules["src/Disc.java"], codebase.symbols()["src/Disc.java::Disc"])
    assert shown == (
        "public class Disc implements Shape {\n    public static final int PI = 3;\n    public int r = 1;\n}"
    )


def test_the_compiler_says_which_methods_must_stay(tmp_path: Path) -> None:
    codebase = JavaCodebase.from_texts(SHAPES)
    files = {path: text.encode() for path, text in SHAPES.items()}
    deleter = get("remove", "java")
    wanted = feature(
        "src/Square.java::Square.area", "src/Square.java::Square.corners", "src/Square.java::Square.Square"
    )
    first = deleter.delete(codebase, wanted)
    said = said_by_javac(tmp_path / "first", {**files, **apply_patch(files, first.source_patch)})
    assert "does not override abstract method area()" in said
    assert isinstance(deleter, CompiledDeleter)
    second = deleter.corrected(codebase, first, [said]).delete(codebase, wanted)
    assert (first.deleter, second.deleter, second.removed) == ("remove", "remove_and_stub", first.removed)
    assert said_by_javac(tmp_path / "second", {**files, **apply_patch(files, second.source_patch)}) == ""


def test_a_statement_tells_overloads_apart_and_shows_a_use_once() -> None:
    source = """package org.example.ledger;

class Words {
    /** Joins the words of a list. */
    static String join(String[] words) { return join(words, ""); }

    /** Joins the words of a list with something between them. */
    static String join(String[] words, String between) { return String.join(between, words); }

    static String lines(String[] words) { return join(words, "\\n"); }
    static String all(String[] words) { return join(words); }
}
"""
    path = f"{MAIN}/Words.java"
    codebase = JavaCodebase.from_texts({path: source, f"{TESTS}/WordsTest.java": "class WordsTest { }"})
    deletion = stubbed(codebase, f"{path}::Words.join")
    text = write_statement(codebase, deletion, replace(PROJECT, language="java"), ()).text
    assert text.startswith("# Implement `Words.join(String[] words)`\n")
    assert text.partition("## Where it is used\n\n")[2].startswith(f"- `{path}::Words.all`: `return join(words);")
    assert "Words.lines" not in text


@pytest.mark.parametrize(
    "comment", ["/* Nothing stands behind the last word. */", "// Nothing stands behind the last word."]
)
def test_a_comment_that_overloads_share_is_quoted_once(comment: str) -> None:
    body = f"{{\n        {comment}\n        return String.join(between, words);\n    }}\n"
    heads = (
        "static String join(List<String> words, String between)",
        "static String join(String[] words, String between)",
    )
    path = f"{MAIN}/Words.java"
    source = "class Words {\n" + "\n".join(f"    {head} {body}" for head in heads) + "}\n"
    codebase = JavaCodebase.from_texts({path: source, f"{TESTS}/WordsTest.java": "class WordsTest { }"})
    deletion = stubbed(codebase, f"{path}::Words.join", f"{path}::Words.join#2")
    text = write_statement(codebase, deletion, replace(PROJECT, language="java"), ()).text
    assert text.count("> Nothing stands behind the last word.") == 1
    assert text.count("The comments in its code are those quoted above.") == 1


def test_what_a_body_is_further_in_by_stays_and_fields_are_no_uses() -> None:
    source = """package org.example.ledger;

class Word {
  final String value;

  /** The text of a word. */
  static String value(String word) {
    return word.trim();
  }

  Word(String word) {
    value = word;
  }

  static String both(String word) {
    String value = word;
    return value + value(word);
  }
}
"""
    path = f"{MAIN}/Word.java"
    codebase = JavaCodebase.from_texts({path: source, f"{TESTS}/WordTest.java": "class WordTest { }"})
    deletion = stubbed(codebase, f"{path}::Word.value")
    assert b"\n    throw new Unsupported" in (apply_patch({path: source.encode()}, deletion.source_patch)[path] or b"")
    text = write_statement(codebase, deletion, replace(PROJECT, language="java"), ()).text
    assert f"- `{path}::Word.both`: `return value + value(word);`" in text
    assert "value = word" not in text


@pytest.mark.parametrize(
    ("other", "title"),
    [("", "the constructor of `Words`"), ("    Words(int size) { }\n", "the constructor of `Words(String[] words)`")],
)
def test_a_title_calls_a_constructor_one(other: str, title: str) -> None:
    source = f"class Words {{\n    int size;\n    Words(String[] words) {{ this.size = words.length; }}\n{other}}}\n"
    path = f"{MAIN}/Words.java"
    codebase = JavaCodebase.from_texts({path: source, f"{TESTS}/WordsTest.java": "class WordsTest { }"})
    (symbol,) = (s.symbol_id for s in codebase.symbols().values() if "String[] words" in s.signature)
    text = write_statement(codebase, stubbed(codebase, symbol), replace(PROJECT, language="java"), ()).text
    assert text.startswith(f"# Implement {title}\n")


@pytest.mark.parametrize(
    ("parameters", "link"),
    [
        ("final Reader in", "#read(Reader)"),
        ("java.io.Reader in, int... sizes", "Parser#read(java.io.Reader in, int...)"),
        ("Map<String, List<T>> all, @Nonnull String[] names", "#read(Map, String[])"),
    ],
)
def test_links_to_an_overload_go_with_it_alone(parameters: str, link: str) -> None:
    head = "package p;\n\npublic class Parser {\n"
    gone = f"    /** Reads. */\n    public static Object read({parameters}) {{ return null; }}\n\n"
    kept = "    /** Reads text. */\n    public static Object read(String text) { return text; }\n\n"
    more = "    public static Object more() { return 1; }\n}\n"
    links = f"    /**\n     * Reads it; see {{@link {link}}}.\n     *\n     * @see {link}\n"
    links += "     * @see #read(String)\n     */\n"
    files = {
        "src/Parser.java": f"{head}{gone}{kept}{links}{more}",
        "src/More.java": "package p;\n\n/** More. See {@link Parser#read}. */\npublic class More {}\n",
    }
    codebase = JavaCodebase.from_texts(files)
    name = next(each for each in codebase.symbols() if "Parser.read" in each)
    before = {path: text.encode() for path, text in files.items()}
    after = apply_patch(before, removed(codebase, name).source_patch)
    assert after.keys() == {"src/Parser.java"}
    code = link.replace("Parser#", "Parser.").replace("#", "")
    links = f"    /**\n     * Reads it; see {{@code {code}}}.\n     *\n     * @see #read(String)\n     */\n"
    assert (after["src/Parser.java"] or b"").decode() == f"{head}{kept}{links}{more}"


@pytest.mark.parametrize(
    ("example", "is_lost"),
    [
        ('kit.show("a", of(1, 2), true);', True),
        ('kit.show(\n *     "a", 1, true);', True),
        ('kit.show("a, b");', False),
        ('kit.show("a", 1, 2, 3);', False),
        ("kit.show(...);", False),
        ("kit.show();", False),
    ],
)
def test_examples_that_call_an_overload_which_is_gone_are_uses(example: str, *, is_lost: bool) -> None:
    source = (
        f"/**\n * Shows.\n * <pre>\n * {example}\n * </pre>\n */\npublic class Kit {{\n"
        "    public void show(String a) { }\n\n    public void show(int a, Map<String, int[]> b, int c, int d) { }\n\n"
        "    public void show(String a, Map<String, Integer> b, boolean c) { }\n}\n"
    )
    other = "class Other {\n    void show(int a, int b, int c) { }\n}\n"
    codebase = JavaCodebase.from_texts({f"{MAIN}/Kit.java": source, f"{MAIN}/Other.java": other})
    (gone,) = (each.symbol_id for each in codebase.symbols().values() if "boolean c" in each.signature)
    assert bool(removed(codebase, gone).uses_left) is is_lost
    heir = source.replace("class Kit", "class Kit extends Other")
    codebase = JavaCodebase.from_texts({f"{MAIN}/Kit.java": heir, f"{MAIN}/Other.java": other})
    assert not removed(codebase, gone).uses_left


def test_links_in_another_encoding_end_no_run() -> None:
    source = "class A {\n  /** See {@link #f(int gr\u00f6\u00dfe)}. */\n  void k() {}\n  void f(int a) {}\n}\n"
    codebase = JavaCodebase({"A.java": parse_file("A.java", source.encode("latin-1"))})
    gone = [each for each in codebase.definitions() if each.qualname == "A.f"]
    assert [edit.replacement for edit in mentions(codebase, gone)["A.java"]] == [
        "{@code f(int gr\u00f6\u00dfe)}".encode("latin-1")
    ]


def test_private_values_that_went_along_with_stubs_are_named() -> None:
    source = (
        "package a;\n\npublic class Box {\n    private static final int[] TABLE = {1, 2};\n"
        "    private static final int MANY = 9;\n\n    public Box() {\n        super();\n    }\n\n"
        "    private int look(int n) {\n        return TABLE[n] + MANY;\n    }\n\n"
        "    public int at(int n) {\n        return look(n);\n    }\n\n"
        "    public int next() {\n        return at(2);\n    }\n}\n"
    )
    codebase = JavaCodebase.from_texts({"Box.java": source})
    deletion = removed(codebase, "Box.java::Box.at", "Box.java::Box.look")
    assert deletion.deleter == "remove_and_stub"
    text = write_statement(codebase, deletion, replace(PROJECT, language="java"), ()).text
    assert "so is what nothing else used: `Box.TABLE`, `private static final int MANY = 9;`." in text


def test_a_private_constant_goes_though_another_class_has_one_of_its_name() -> None:
    text = (
        "public class %s {\n    private static final int MASK = 15;\n\n"
        "    public static int cut%s(int x) {\n        return x & MASK;\n    }\n}\n"
    )
    files = {f"lib/{name}.java": text % (name, name) for name in ("One", "Two")}
    files["lib/One.java"] = files["lib/One.java"][:-2] + "\n    static int one() {\n        return 1;\n    }\n}\n"
    deletion = removed(JavaCodebase.from_texts(files), "lib/One.java::One.cutOne")
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.source_patch)
    assert b"MASK" not in (after["lib/One.java"] or b"")
    assert after.get("lib/Two.java", files["lib/Two.java"].encode()) == files["lib/Two.java"].encode()
