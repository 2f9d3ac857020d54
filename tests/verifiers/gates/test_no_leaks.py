"""Gate 9 on disguised copies, damaged files and code that is too short to be distinctive."""

from __future__ import annotations

import inspect
import io
import json
import marshal
import tarfile
import textwrap
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest

from excise.deleters.all_deleters import get
from excise.types import Feature, FeatureKind, Verdict
from excise.verifiers.candidate import Candidate, DeletionTrees
from excise.verifiers.gates.no_leaks import NoLeaks, leaks_before_tests
from excise.verifiers.leaks.scan import THRESHOLDS
from excise.verifiers.workbench import Workbench

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

PARSE = "src/shapes/text.py::parse"
LONG = (
    '    kinds = ", ".join(sorted({type(figure).__name__.lower() for figure in figures if figure.area() > 0}))\n'
    "    return kinds\n"
)
SHORT = "    return self_describing_table[len(figures) // 2 + 1]\n"
Look = Callable[..., Verdict]


@pytest.fixture
def look(vary) -> Look:
    """The gate's verdict on ``shapes`` with further files and one symbol taken out."""

    def check(files: Mapping[str, str | bytes], symbol: str = PARSE) -> Verdict:
        bench: Workbench = vary({p: t for p, t in files.items() if isinstance(t, str)}, baseline=True)
        for path, data in files.items():
            if isinstance(data, bytes):
                (bench.root / path).write_bytes(data)
        (verdict,) = NoLeaks().check(candidate(bench, symbol)).verdicts
        return verdict

    return check


def candidate(bench: Workbench, symbol: str) -> Candidate:
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=())
    deletion = get("remove").delete(bench.codebase, feature)
    return Candidate(
        trees=DeletionTrees(bench=bench, deletion=deletion),
        trusted=bench.trusted,
        fail_to_pass=(),
        pass_to_pass=(),
        task=SimpleNamespace(instance_id="x"),  # type: ignore[arg-type]
    )


def code_of(bench: Workbench) -> str:
    symbol = bench.codebase.symbols()[PARSE]
    return bench.codebase.modules[symbol.path].source[symbol.start : symbol.end].decode()


def marked(code: str, mark: str) -> str:
    return "".join(f"{mark}{line}\n" for line in code.splitlines())


HIDDEN: dict[str, Callable[[str], str | bytes]] = {
    "fix.patch": lambda code: f"--- a/x.py\n+++ b/x.py\n@@ -1,0 +1,20 @@\n{marked(code, '+')}",
    "quote.md": lambda code: f"As he wrote:\n\n{marked(code, '> ')}",
    "old.py": lambda code: marked(code, "# "),
    "howto.rst": lambda code: marked(code, "... "),
    "notes.ipynb": lambda code: json.dumps({"cells": [{"source": code.splitlines(keepends=True)}]}, indent=1),
    "cache.json": lambda code: json.dumps([{"file": code}]),
    "wide.txt": lambda code: code.encode("utf-16"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_disguised_copies_are_found(look: Look, bench: Workbench, name: str) -> None:
    verdict = look({name: HIDDEN[name](code_of(bench))})
    assert verdict.reason == "twin_in_repository"
    assert f"/testbed/{name}" in verdict.detail


def test_byte_code_in_the_tree_is_found(look: Look, bench: Workbench) -> None:
    data = marshal.dumps(compile(code_of(bench), "text.py", "exec"))
    verdict = look({"module.dat": b"\xa7\r\r\n" + bytes(12) + data})
    assert verdict.reason == "twin_in_repository"
    assert "byte code, L3" in verdict.detail


def test_broken_archives_are_counted_and_refuse_nothing(look: Look) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as file:
        file.addfile(tarfile.TarInfo("x"), io.BytesIO(b""))
    sound = look({})
    broken = {
        "a.tgz": tar.getvalue()[:-20],
        "b.gz": b"\x1f\x8b\x08" + bytes(range(200)),
        "c.zip": b"PK\x03\x04" + b"\xff" * 100,
        "d.xz": b"\xfd7zXZ\x00" + b"?" * 60,
    }
    verdict = look(broken)
    assert not verdict.reason
    more = int(verdict.evidence["partly_read"]) - int(sound.evidence["partly_read"])
    assert more == 2 * len(broken), "they lie in the tree and in its history"


def test_the_evidence_names_what_was_read(look: Look) -> None:
    evidence = look({}).evidence
    for root in ("the environment", "the standard library", "the system", "processes"):
        assert int(evidence[f"root {root}"].split()[0]) >= 1
    assert int(evidence["files_of_the_tree"]) > 30
    assert "git_loose" in evidence["decoders"]
    assert {"residual L1", "residual L2"} <= evidence.keys()


@pytest.mark.parametrize(("body", "leaks"), [(LONG, True), (SHORT, False)])
def test_a_single_copied_line_leaks_only_if_it_is_long(vary, body: str, leaks: bool) -> None:
    files = {
        "src/shapes/lone.py": f"def describe(figures, self_describing_table=()):\n{body}",
        "examples/lone.py": f"def other(figures, self_describing_table=()):\n{body}",
    }
    subject = candidate(vary(files, baseline=True), "src/shapes/lone.py::describe")
    (verdict,) = NoLeaks().check(subject).verdicts
    assert verdict.reason == ("twin_in_repository" if leaks else "")
    assert ("/testbed/examples/lone.py" in verdict.detail) is leaks
    assert verdict.evidence["too_short_to_tell"] == ("0" if leaks else "1")


WALK = """\
    found, place, step = [], (0, 0), 1
    while len(found) < number:
        for horizontal in (True, False):
            for _ in range(step):
                column, row = place
                place = (column + 1, row) if horizontal else (column, row + 1)
                found.append(place)
        step += 1
    return found[:number]
"""


@pytest.mark.parametrize(("num_lines", "leaks"), [(8, True), (2, False)])
def test_most_of_a_body_in_comments_of_the_sources_is_found(vary, num_lines: int, leaks: bool) -> None:
    quote = marked("\n".join(WALK.splitlines()[:num_lines]), "# ")
    files = {"src/shapes/walk.py": f"{quote}\n\ndef other():\n    return 1\n\n\ndef walked_places(number):\n{WALK}"}
    subject = candidate(vary(files, baseline=True), "src/shapes/walk.py::walked_places")
    (verdict,) = NoLeaks().check(subject).verdicts
    assert verdict.reason == ("twin_in_repository" if leaks else "")
    assert ("/testbed/src/shapes/walk.py (comments)" in verdict.detail) is leaks


def test_a_copy_in_the_standard_library_is_found_without_a_run(vary) -> None:
    twin = inspect.getsource(textwrap.TextWrapper._wrap_chunks).replace("_wrap_chunks", "wrap_all")
    bench = vary({"src/shapes/wrapping.py": f"class Wrapper:\n{twin}"}, baseline=True)
    subject = candidate(bench, "src/shapes/wrapping.py::Wrapper.wrap_all")
    found = leaks_before_tests(subject)
    assert any(leak.file.endswith("/textwrap.py") for leak in found)
    assert subject.trees.runs == {}


def test_the_claim_describes_the_check() -> None:
    limits = THRESHOLDS
    for share in (limits.code_share, limits.outside_share, limits.rare_share, limits.tree_share):
        assert f"{share:.0%}" in NoLeaks.claim
