"""Java's environments: layout of projects, choice of libraries, and what is said where something is missing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from excise.envs.java import debian_jars
from excise.envs.java.debian_jars import JUNIT, Libraries, find_libraries
from excise.envs.java.excluded_tests import excluded_tests
from excise.envs.java.project_layout import JavaFile, ProjectLayout, read_layout
from excise.envs.java.toolchain import TOOLCHAIN, installed_version, require_most_tests, write_agent
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.envs.sandbox.system_root import debian_packages
from excise.errors import EnvironmentFailure
from excise.types import Repo, SourceSpec

from .debian_archive import archive_of, make_package

REPO = Repo(repo="r", base_commit="c", tree="t", language="java", source="dir:/r")
STATUS = """Package: {name}
Status: install ok installed
Architecture: all
Version: {version}
Depends: {depends}

"""
CLASS, TEST = "package a;\n\nclass Box { }\n", "package a;\n\nimport org.junit.Test;\n\nclass BoxTest { }\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "roots", "test_roots", "release"),
    [
        (
            {"pom.xml": "<maven.compiler.source>1.7</maven.compiler.source>", "src/main/java/a/Box.java": CLASS,
             "src/test/java/a/BoxTest.java": TEST},
            ("src/main/java",), ("src/test/java",), 8,
        ),
        (
            {"pom.xml": "<sourceDirectory>src/java</sourceDirectory>"
             "<testSourceDirectory>src/test</testSourceDirectory>",
             "src/java/a/Box.java": CLASS, "src/test/a/BoxTest.java": TEST},
            ("src/java",), ("src/test",), 8,
        ),
        (
            {"build.gradle": "sourceCompatibility = JavaVersion.VERSION_11", "core/build.gradle": "",
             "core/src/main/java/a/Box.java": CLASS, "core/src/test/java/a/BoxTest.java": TEST,
             "demo/src/main/java/a/Demo.java": CLASS},
            ("core/src/main/java",), ("core/src/test/java",), 8,
        ),
        (
            {"pom.xml": "<packaging>pom</packaging>", "demo/src/main/java/a/Demo.java": CLASS,
             "core/pom.xml": "<sourceDirectory>${project.basedir}/source</sourceDirectory>"
             "<testSourceDirectory>test</testSourceDirectory>",
             "core/source/a/Box.java": CLASS, "core/test/a/BoxTest.java": TEST},
            ("core/source",), ("core/test",), 8,
        ),
        (
            {"plugin/src/main/java/a/Plugin.java": CLASS, "source/a/Box.java": CLASS, "source/a/BoxTest.java": TEST},
            ("source",), ("source",), 8,
        ),
        (
            {"build.xml": '<javac source="11"/>', "source/a/Box.java": CLASS, "tests/a/BoxTest.java": TEST},
            ("source",), ("tests",), 11,
        ),
        ({"a/Box.java": CLASS, "a/BoxTest.java": TEST}, (".",), (".",), 8),
    ],
    ids=["maven", "declared", "modules", "declared in a module", "beside a module without tests", "ant", "plain"],
)  # fmt: skip
def test_folders_are_found(
    tmp_path: Path, files: dict[str, str], roots: tuple[str, ...], test_roots: tuple[str, ...], release: int
) -> None:
    layout = read_layout(written(tmp_path, files))
    assert (layout.roots, layout.test_roots, layout.release) == (roots, test_roots, release)
    assert [path.rpartition("/")[2] for path in layout.sources] == ["Box.java"]
    assert [path.rpartition("/")[2] for path in layout.tests] == ["BoxTest.java"]
    assert layout.packages == ("a",)


@pytest.mark.parametrize("is_gradle", [False, True], ids=["maven", "gradle"])
def test_a_module_brings_those_that_it_needs(tmp_path: Path, is_gradle: bool) -> None:
    def manifest(name: str, *needed: str) -> dict[str, str]:
        named = "".join(f"<dependency><artifactId>kit-{each}</artifactId></dependency>" for each in needed)
        pom = f"<project><artifactId>kit-{name}</artifactId><dependencies>{named}</dependencies></project>"
        script = "dependencies {\n" + "".join(f"    testImplementation project(':{each}')\n" for each in needed) + "}\n"
        return {f"{name}/build.gradle": script} if is_gradle else {f"{name}/pom.xml": pom}

    files = {
        **manifest("base"), **manifest("core", "base"), **manifest("checks", "core", "checks"),
        **manifest("demo", "core"), "demo/src/main/java/demo/Demo.java": "package demo;\n\nclass Demo { }\n",
        "base/src/main/java/a/base/Base.java": "package a.base;\n\npublic class Base { }\n",
        "base/src/test/java/a/base/BaseTest.java": TEST.replace("a;", "a.base;").replace("BoxTest", "BaseTest"),
        "core/src/main/java/a/Box.java": CLASS,
        **{f"checks/src/test/java/a/Box{n}Test.java": TEST.replace("BoxTest", f"Box{n}Test") for n in range(3)},
    }  # fmt: skip
    layout = read_layout(written(tmp_path, files))
    assert layout.roots == ("core/src/main/java", "base/src/main/java")
    assert layout.test_roots == ("checks/src/test/java", "base/src/test/java")
    assert "checks/: of 4 modules, the one with the most tests, with core/, base/, which it needs" in layout.evidence


def jar(folder: Path, name: str, *types: str) -> None:
    with zipfile.ZipFile(folder / f"{name}.jar", "w") as archive:
        for each in types:
            archive.writestr(f"{each.replace('.', '/')}.class", b"")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DebianPackages:
    """A machine with JUnit, two libraries, and copies of the project."""
    jars, database = tmp_path / "java", tmp_path / "dpkg"
    (database / "info").mkdir(parents=True)
    jars.mkdir()
    for name in JUNIT:
        jar(jars, name, f"org.junit.{name.replace('-', '_')}.Test", *(["org.junit.Test"] if name == "junit4" else []))
    jar(jars, "words", "org.words.Word", "org.words.more.Other")
    jar(jars, "base", "org.base.Base")
    jar(jars, "box-1.0", "a.Box", "a.Lid")
    jar(jars, "shaded", *(f"hidden.a.{name}" for name in ("Box", "Lid", "Nail", "Wood", "Glue")))
    (jars / "words-2.jar").symlink_to("words.jar")
    owners = {"junit4": list(JUNIT), "junit5": [], "libwords-java": ["words", "words-2"], "libbase-java": ["base"],
              "libbox-java": ["box-1.0", "shaded"]}  # fmt: skip
    status = ""
    for package, names in owners.items():
        depends = "libbase-java" if package == "libwords-java" else ""
        status += STATUS.format(name=package, version="1-1", depends=depends)
        (database / "info" / f"{package}.list").write_text("".join(f"{jars}/{name}.jar\n" for name in names))
    (database / "status").write_text(status)
    monkeypatch.setattr(debian_jars, "JARS", f"{jars}")
    return DebianPackages(database)


def project(folder: Path, main: str, *tests: str) -> Path:
    files = {"src/main/java/a/Box.java": f"package a;\n\n{main}\nclass Box {{ }}\n"}
    for name in ("Lid", "Nail", "Wood", "Glue"):
        files[f"src/main/java/a/{name}.java"] = f"package a;\n\nclass {name} {{ }}\n"
    for number, imports in enumerate(tests):
        files[f"src/test/java/a/Box{number}Test.java"] = f"package a;\n\n{imports}\nclass Box{number}Test {{ }}\n"
    return written(folder / "project", files)


def test_libraries_are_those_that_are_imported_and_none_holds_the_project(
    tmp_path: Path, machine: DebianPackages
) -> None:
    layout = read_layout(
        project(
            tmp_path, "import org.words.Word;\nimport a.Lid;\nimport java.util.List;",
            "import org.junit.Test;", "import org.junit.Test;\nimport static org.mock.Mock.made;",
        )
    )  # fmt: skip
    libraries = find_libraries(layout, machine, REPO, archive_of(tmp_path / "archive", tmp_path / "cache"))
    assert [jar.name for jar in libraries.jars] == sorted(["base", "words", *JUNIT])
    assert libraries.left_out == {"src/test/java/a/Box1Test.java": "org.mock.Mock"}
    assert "left out, since they hold the project's own types: box-1.0, shaded" in libraries.evidence


@pytest.mark.parametrize("package", ["libnew-java", "new"])
def test_libraries_that_the_manifest_names_come_from_the_archive(
    tmp_path: Path, machine: DebianPackages, package: str
) -> None:
    folder = project(tmp_path, "import org.new.Thing;", "import org.junit.Test;\nimport org.mock.Mock;")
    written(folder, {"pom.xml": "<project><dependencies><dependency><artifactId>new</artifactId></dependency>"})
    (tmp_path / "jars").mkdir()
    for name, type_name in (("new", "org.new.Thing"), ("part", "org.part.Part")):
        jar(tmp_path / "jars", name, type_name)
    archive, place = tmp_path / "archive", str(debian_jars.JARS).strip("/")
    archive.mkdir()
    data = {name: (tmp_path / "jars" / f"{name}.jar").read_bytes() for name in ("new", "part")}
    make_package(archive, package, {f"{place}/new.jar": data["new"]}, depends="libpart-java, libbase-java")
    make_package(archive, "libpart-java", {f"{place}/part.jar": data["part"]})
    make_package(archive, "libbase-java", {})
    found = find_libraries(read_layout(folder), machine, REPO, archive_of(archive, tmp_path / "cache"))
    assert {jar.name: jar.version for jar in found.jars if jar.name not in JUNIT} == {
        "new": "1:2.0-1", "part": "1:2.0-1",
    }  # fmt: skip
    assert list(found.left_out.values()) == ["org.mock.Mock"]


@pytest.mark.parametrize(
    ("main", "test", "reason", "message"),
    [
        ("import org.gone.Thing;", "import org.junit.Test;", "missing_dependency", "org.gone.Thing"),
        ("import org.words.*;", "import org.testng.annotations.Test;", "unknown_test_runner", "TestNG"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, machine: DebianPackages, main: str, test: str, reason: str, message: str
) -> None:
    archive = archive_of(tmp_path / "archive", tmp_path / "cache")
    with pytest.raises(EnvironmentFailure, match=message) as failure:
        find_libraries(read_layout(project(tmp_path, main, test)), machine, REPO, archive)
    assert failure.value.reason == reason


def test_a_machine_without_the_packages_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS.format(name="bash", version="1", depends=""))
    empty = DebianPackages(tmp_path)
    with pytest.raises(EnvironmentFailure, match="openjdk-17-jdk-headless") as failure:
        installed_version(empty)
    assert failure.value.reason == "toolchain_unavailable"
    layout = read_layout(project(tmp_path, "", "import org.junit.Test;"))
    with pytest.raises(EnvironmentFailure, match="junit5 junit4"):
        find_libraries(layout, empty, REPO, archive_of(tmp_path / "archive", tmp_path))


def test_newer_versions_of_the_language_are_refused(tmp_path: Path) -> None:
    files = {"pom.xml": "<maven.compiler.release>21</maven.compiler.release>", "src/main/java/a/Box.java": CLASS}
    with pytest.raises(EnvironmentFailure, match="Java 21"):
        TOOLCHAIN.plan(written(tmp_path, files), REPO, SourceSpec(spec="r"), "", tmp_path / "cache")


def test_the_agent_has_the_entry_that_virtual_machines_look_for(tmp_path: Path) -> None:
    write_agent(debian_packages(), tmp_path / "agent.jar")
    with zipfile.ZipFile(tmp_path / "agent.jar") as archive:
        assert b"Premain-Class: org.jacoco.agent.rt.internal.PreMain\n" in archive.read("META-INF/MANIFEST.MF")
        assert "org/objectweb/asm/ClassReader.class" in archive.namelist()


SUREFIRE = (
    '<?xml version="1.0"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0"><build>{wrapped}</build></project>'
)
PLUGIN = (
    "<plugins><plugin><artifactId>{name}</artifactId><configuration><excludes>{excludes}</excludes></configuration>"
    "</plugin></plugins>"
)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["**/*PerformanceTest.java"], ["src/test/java/a/b/FastPerformanceTest.java"]),
        (["**/a/**"], ["src/test/java/a/BoxTest.java", "src/test/java/a/b/FastPerformanceTest.java",
                       "src/test/java/a/b/OtherTest.java"]),
        (["a/b/**"], ["src/test/java/a/b/FastPerformanceTest.java", "src/test/java/a/b/OtherTest.java"]),
        (["a/"], ["src/test/java/a/BoxTest.java", "src/test/java/a/b/FastPerformanceTest.java",
                  "src/test/java/a/b/OtherTest.java"]),
        (["**/Box*.class", "b/OtherTest.java"], ["src/test/java/a/BoxTest.java"]),
        (["**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/nothing", "%regex[.*]", "*" * 500], []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("managed", [False, True])
def test_tests_that_the_build_excludes_are_not_run(patterns: list[str], expected: list[str], managed: bool) -> None:
    paths = [f"src/test/java/a/{name}.java" for name in ("BoxTest", "b/FastPerformanceTest", "b/OtherTest")]
    plugin = PLUGIN.format(
        name="maven-surefire-plugin", excludes="".join(f"<exclude>{each}</exclude>" for each in patterns)
    )
    wrapped = f"<pluginManagement>{plugin}</pluginManagement>" if managed else plugin
    assert excluded_tests([SUREFIRE.format(wrapped=wrapped)], ["src/test/java"], paths) == expected


def test_many_folders_and_patterns_are_matched_without_recursion() -> None:
    excludes = f"<exclude>{'**/' * 50}T*.java</exclude>" * 1000
    wrapped = PLUGIN.format(name="maven-surefire-plugin", excludes=excludes)
    paths = ["a/" * 2000 + name for name in ("Test.java", "Other.java")]
    assert excluded_tests([SUREFIRE.format(wrapped=wrapped)], ["."], paths) == paths[:1]


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "<project",
        SUREFIRE.format(wrapped=PLUGIN.format(name="maven-jar-plugin", excludes="<exclude>**/*</exclude>")),
        '<!DOCTYPE project [<!ENTITY a "b">]>' + SUREFIRE.partition("\n")[2].format(
            wrapped=PLUGIN.format(name="maven-surefire-plugin", excludes="<exclude>**/*</exclude>")
        ),
    ],
)  # fmt: skip
def test_other_manifests_exclude_nothing(manifest: str) -> None:
    assert excluded_tests([manifest], ["src/test/java"], ["src/test/java/a/BoxTest.java"]) == []


def test_a_class_that_another_tool_takes_in_its_place_is_left_out(tmp_path: Path) -> None:
    """GWT takes classes of a folder ``super`` in place of others."""
    text = "package a.b;\nclass Marks { }\n"
    files = {"java/a/b/Marks.java": text, "java/a/b/super/a/b/Marks.java": text, "java/a/b/Box.java": text}
    files |= {"java/odd/Other.java": text, "pom.xml": "<sourceDirectory>java</sourceDirectory>"}
    layout = read_layout(written(tmp_path, files))
    assert layout.replacements == ("java/a/b/super/a/b/Marks.java",)
    assert set(layout.sources) == {"java/a/b/Marks.java", "java/a/b/Box.java", "java/odd/Other.java"}
    assert any("super" in line for line in layout.evidence)


@pytest.mark.parametrize("library", ["", "org.gone.Thing"])
def test_why_most_tests_do_not_compile_is_said(library: str) -> None:
    paths = [f"test/{name}.java" for name in ("A", "B", "C", "D")]
    file = JavaFile(package="", types=(), imports=())
    layout = ProjectLayout(roots=(), test_roots=(), tests=dict.fromkeys(paths, file), replacements=("super/A.java",))
    libraries = Libraries(jars=(), left_out={paths[1]: library} if library else {})
    found = {"left_out": ["super/A.java", *paths[1:]], "reasons": {paths[2]: "line 3: package gone does not exist"}}
    with pytest.raises(EnvironmentFailure) as caught:
        require_most_tests("p", layout, libraries, found)
    first = f"{paths[1]}: {library} is not there" if library else f"{paths[2]}: line 3: package gone does not exist"
    assert str(caught.value) == f"p: 3 of 4 test files do not compile: {', '.join(paths[1:])}; {first}."
    require_most_tests("p", layout, libraries, {**found, "left_out": ["super/A.java", *paths[1:3]]})


def test_a_module_does_not_run_what_its_parent_excludes(tmp_path: Path) -> None:
    excludes = PLUGIN.format(name="maven-surefire-plugin", excludes="<exclude>**/BoxTest.java</exclude>")
    files = {
        "pom.xml": SUREFIRE.format(wrapped=f"<pluginManagement>{excludes}</pluginManagement>"),
        "core/pom.xml": "<project/>",
        "core/src/main/java/a/Box.java": CLASS,
        "core/src/test/java/a/BoxTest.java": TEST,
        "core/src/test/java/a/LidTest.java": TEST,
    }
    layout = read_layout(written(tmp_path, files))
    assert layout.not_run == ("core/src/test/java/a/BoxTest.java",)
    assert any("does not run the tests of" in line for line in layout.evidence)
