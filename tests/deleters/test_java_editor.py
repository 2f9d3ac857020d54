"""Java's code editor: stubs and stand-ins compile, and tests go with what only they use."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.errors import DeletionRefused
from excise.extractors.fetch.trees import list_files
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.types import Deletion, Feature, FeatureKind

REPO = Path(__file__).parents[1] / "repos" / "ledger"
MAIN, TESTS = "src/main/java/org/example/ledger", "src/test/java/org/example/ledger"
AMOUNT, LEDGER = f"{MAIN}/Amount.java", f"{MAIN}/Ledger.java"
JARS = "/usr/share/java"
"""Where Debian's packages junit4 and junit5, which ./check installs, have their jars."""


@pytest.fixture(scope="module")
def codebase() -> JavaCodebase:
    return JavaCodebase.parse(REPO, list_files(REPO))


def stubbed(codebase: JavaCodebase, *symbols: str, tests: tuple[str, ...] = ()) -> Deletion:
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=tests)
    return get("stub", "java").delete(codebase, feature)


def files_after(*patches: str) -> Mapping[str, bytes | None]:
    """Contents of the files that patches change."""
    found: dict[str, bytes | None] = {}
    for patch in patches:
        known = {path: (REPO / path).read_bytes() for path in touched(patch)}
        found |= apply_patch(known, patch)
    return found


def compiled(folder: Path, changed: Mapping[str, bytes | None]) -> str:
    """What the compiler says of the project with changed files: nothing if everything, tests included, compiles."""
    for path in list_files(REPO):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        data = changed.get(path, (REPO / path).read_bytes())
        if data is not None:
            (folder / path).write_bytes(data)
    jars = [f"{JARS}/{name}.jar" for name in ("junit-jupiter-api", "junit-jupiter-params", "junit4", "apiguardian-api")]
    files = [str(path) for path in folder.rglob("*.java")]
    command = ["javac", "-proc:none", "-nowarn", "--release", "11", "-cp", ":".join(jars), "-d", str(folder / "out")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
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
