"""Class files in leak scans: what their methods refer to, in jars, renamed packages, without debug information."""

from __future__ import annotations

import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.verifiers.leaks.content_cache import read_content
from excise.verifiers.leaks.decoders.java_classes import MAGIC, JavaClasses
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex
from excise.verifiers.leaks.fingerprints import EMPTY
from excise.verifiers.leaks.fragments import COMPILED, CodeShape, DecodingLimits
from excise.verifiers.leaks.scan import Level, PlaceRules, ScannedFiles, keep_distinctive, leaks_in
from excise.verifiers.leaks.targets import targets_of

PATH = "src/main/java/org/box/Lid.java"
SOURCE = """package org.box;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

public class Lid {
    private final String label;
    private static final double LIMIT = 3.5;

    public Lid(String label) {
        this.label = label;
    }

    public List<String> widest(List<Lid> candidates, int amount) {
        List<String> chosen = new ArrayList<>();
        candidates.sort(Comparator.comparing(Lid::breadth).reversed());
        for (Lid candidate : candidates) {
            switch (amount - chosen.size()) {
                case 0: return chosen;
                case 7: continue;
                default: chosen.add(candidate.label.concat(" wide lid"));
            }
        }
        candidates.forEach(each -> each.register(amount));
        return chosen;
    }

    int breadth() { return label.length(); }

    void register(int amount) { if (amount > LIMIT) { throw new IllegalStateException("too many lids here"); } }
}
"""


def compiled(folder: Path, *options: str, package: str = "org.box") -> bytes:
    """A jar with the class."""
    (folder / "Lid.java").write_text(SOURCE.replace("org.box", package))
    subprocess.run(["javac", "-proc:none", *options, "-d", str(folder / "out"), str(folder / "Lid.java")], check=True)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (folder / "out").rglob("*.class"):
            archive.write(path, path.relative_to(folder / "out").as_posix())
    return made.getvalue()


def levels(data: bytes) -> dict[str, tuple[Level, str]]:
    """Name of a deleted method to what a file with the data gives away of it."""
    codebase = JavaCodebase.from_texts({PATH: SOURCE})
    text = SOURCE[SOURCE.index("public List") : SOURCE.index("    int breadth")]
    targets = targets_of(codebase, [(f"{PATH}::Lid.widest", text)])
    kept = keep_distinctive(targets, FingerprintIndex.build([]), EMPTY, keep_bodies=False)
    leaks = leaks_in(ScannedFiles([("/x.jar", read_content(data))]), kept, PlaceRules())
    return {leak.symbol.rpartition(".")[2]: (leak.level, leak.what) for leak in leaks}


@pytest.mark.parametrize("options", [("-g",), ("-g:none",)], ids=["debug", "no debug"])
def test_byte_code_in_a_jar_is_found(tmp_path: Path, options: tuple[str, ...]) -> None:
    data = compiled(tmp_path, *options)
    assert b"widest" not in data, "jars are deflated"
    assert levels(data)["widest"][0] is Level.L3


def test_byte_code_in_other_packages_is_found(tmp_path: Path) -> None:
    assert levels(compiled(tmp_path, "-g", package="shaded.more.box"))["widest"] == (Level.L3, "byte code")


def test_byte_code_inside_other_data_is_found(tmp_path: Path) -> None:
    compiled(tmp_path, "-g:none")
    one = (tmp_path / "out/org/box/Lid.class").read_bytes()
    assert levels(b"\x00\x01some header" + one + b"\x00" * 40)["widest"][0] is Level.L3


def test_another_class_is_no_leak(tmp_path: Path) -> None:
    (tmp_path / "Other.java").write_text(
        "package org.other;\n\npublic class Other {\n    int widest(int[] all) {\n        int most = 0;\n"
        "        for (int each : all) { most = Math.max(most, each); }\n        return most;\n    }\n}\n"
    )
    subprocess.run(["javac", "-g", "-d", str(tmp_path / "out"), str(tmp_path / "Other.java")], check=True)
    found = levels((tmp_path / "out/org/other/Other.class").read_bytes())
    assert found.get("widest", (Level.L1, ""))[0] <= Level.L1


def test_methods_have_the_names_of_the_source(tmp_path: Path) -> None:
    compiled(tmp_path, "-g")
    data = (tmp_path / "out/org/box/Lid.class").read_bytes()
    shapes = [part for part in JavaClasses().parts(data, DecodingLimits()) if isinstance(part, CodeShape)]
    widest = next(shape for shape in shapes if shape.name == "widest")
    assert (widest.parameters, widest.enclosing) == (("candidates", "amount"), "Lid")
    assert widest.words >= {
        "chosen",
        "candidate",
        "breadth",
        "register",
        "each",
        "concat",
        "label",
        "Comparator",
        "wide",
    }
    names = {shape.name for shape in shapes if COMPILED in shape.words}
    assert names >= {"org/box/Lid.widest", "org/box/Lid.Lid", "org/box/Lid.breadth"}


@pytest.mark.parametrize("cut", [9, 60, 400, 900])
def test_damaged_class_files_are_read_as_far_as_possible(tmp_path: Path, cut: int) -> None:
    compiled(tmp_path, "-g")
    data = (tmp_path / "out/org/box/Lid.class").read_bytes()
    limits = DecodingLimits()
    list(JavaClasses().parts(data[:cut], limits))
    assert limits.partial or cut < 10


def test_programs_for_several_processors_are_no_class_files() -> None:
    data = MAGIC + b"\x00\x00\x00\x02" + bytes(64)
    assert list(JavaClasses().parts(data, DecodingLimits())) == []
