"""Where a Java project keeps sources, tests and resources, and its version of the language; nothing of it is run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from excise.envs.java.excluded_tests import excluded_tests
from excise.envs.java.module_dependencies import needed_modules
from excise.errors import EnvironmentFailure

LOWEST, HIGHEST = 8, 17
"""Versions of the language that the compiler of Java 17 takes without complaints."""
_PACKAGE = re.compile(r"(?m)^\s*package\s+([\w.]+)\s*;")
_IMPORT = re.compile(r"(?m)^\s*import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;")
_TYPE = re.compile(
    r"(?m)^(?:(?:public|final|abstract|strictfp|sealed|non-sealed)\s+)*(?:class|interface|enum|record|@interface)\s+(\w+)"
)
_VERSIONS = (
    r"<maven\.compiler\.release>\s*([\d.]+)",
    r"<maven\.compiler\.source>\s*([\d.]+)",
    r"(?s)maven-compiler-plugin</artifactId>.{0,400}?<(?:release|source)>\s*([\d.]+)",
    r"sourceCompatibility\s*[=:]?\s*[\"']?(?:JavaVersion\.VERSION_)?([\d._]+)",
    r"JavaLanguageVersion\.of\((\d+)\)",
    r"<javac[^>]*\bsource=\"([\d.]+)\"",
)
"""Regular expressions for the version of the language in manifests, the most telling first."""
_ENCODING = re.compile(r"<(?:project\.build\.sourceEncoding|encoding)>\s*([\w-]+)|encoding=\"([\w-]+)\"")
_TEST_FOLDERS = frozenset({"test", "tests"})
_TEST_LIBRARIES = ("org.junit.", "junit.framework.", "org.testng.")
MANIFESTS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml", "gradle.properties")


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaFile:
    """What the text of a source file tells."""

    package: str
    """Its package."""
    types: tuple[str, ...]
    """Qualified names of the types that it declares, without nested ones."""
    imports: tuple[tuple[str, bool], ...]
    """(qualified name of a type or package, whether all types of it are imported); of static imports, the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectLayout:
    """The folders of one module, relative to the checkout."""

    roots: tuple[str, ...]
    """Folders of sources."""
    test_roots: tuple[str, ...]
    """Folders of tests; those of ``roots`` where a project keeps both together."""
    resources: tuple[str, ...] = ()
    """Folders of files that programs find on the class path."""
    test_resources: tuple[str, ...] = ()
    """The same for tests."""
    release: int = LOWEST
    """Version of the language."""
    encoding: str = "UTF-8"
    """Encoding of the sources."""
    artifacts: frozenset[str] = frozenset()
    """Names of artifacts that the manifests depend on."""
    evidence: tuple[str, ...] = ()
    """``file: finding``, one line per decision."""
    sources: dict[str, JavaFile] = field(default_factory=dict)
    """Path of each source to what it tells."""
    tests: dict[str, JavaFile] = field(default_factory=dict)
    """Path of each test file to what it tells."""
    not_run: tuple[str, ...] = ()
    """Paths of the test files whose tests the project's build does not run."""
    replacements: tuple[str, ...] = ()
    """Paths of files that other tools take in place of ``sources``, such as GWT's; they are not compiled."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages of the sources that are in no other one of these."""
        names = sorted({each.package for each in self.sources.values()})
        return tuple(name for name in names if not any(name.startswith(f"{other}.") for other in names))

    @property
    def own_types(self) -> frozenset[str]:
        """Qualified names of the types of the sources."""
        return frozenset(name for each in self.sources.values() for name in each.types)


def read_layout(root: Path) -> ProjectLayout:
    """Find the folders of the project in ``root``: its main folder, or the module with the most tests.

    Raises :class:`EnvironmentFailure` (``no_manifest``) if there are no sources of Java, ``no_tests`` without tests.
    """
    found = (
        path.relative_to(root) for path in sorted(root.rglob("*.java")) if path.is_file() and not path.is_symlink()
    )
    files = [path.as_posix() for path in found if not path.parts[0].startswith(".")]
    manifest = _text(root / "pom.xml")
    base, roots, test_roots, evidence = _module(root, files)
    if not roots:
        roots, test_roots = _by_packages(root, files)
        evidence = f"package declarations: sources in {', '.join(roots)}"
    manifests = "\n".join(_text(root / base / name) for name in MANIFESTS) + (manifest if base else "")
    sources, tests = _read(root, files, roots, test_roots)
    replacements = _replacements(sources, roots)
    sources = {path: each for path, each in sources.items() if path not in replacements}
    if not sources:
        raise EnvironmentFailure("No sources of Java were found.", reason="no_manifest")
    release = _release(manifests)
    not_run = excluded_tests([_text(root / base / "pom.xml"), *([manifest] if base else [])], test_roots, tests)
    excluded = [f"pom.xml: the build does not run the tests of {', '.join(not_run[:5])}"] if not_run else []
    excluded += [
        f"{path}: left out, since another file in the folder of its package has its type" for path in replacements
    ]
    return ProjectLayout(
        roots=tuple(roots),
        test_roots=tuple(test_roots),
        resources=tuple(_existing(root, [*_beside(roots), f"{base}src/main/resources", f"{base}src/resources"])),
        test_resources=tuple(_existing(root, [*_beside(test_roots), f"{base}src/test/resources"])),
        release=release,
        encoding=_encoding(manifests),
        artifacts=frozenset(re.findall(r"<artifactId>\s*([\w.-]+)", manifests)),
        evidence=(evidence, f"language version {release}", *excluded),
        sources=sources,
        tests=tests,
        not_run=tuple(not_run),
        replacements=tuple(replacements),
    )


def _beside(roots: Iterable[str]) -> list[str]:
    """The folders of resources beside folders of sources, which may be those of another module."""
    return [f"{folder.removesuffix('/java')}/resources" for folder in roots if folder.endswith("/java")]


def _module(root: Path, files: Sequence[str]) -> tuple[str, list[str], list[str], str]:
    """The module to work on: the main folder if this has sources, else the one that has the most tests together with
    the modules that it needs.

    Returns its folder with a trailing slash (empty: the main folder), the folders of sources and of tests, its own and
    those of the modules that it needs, and what was found. All are empty if no manifest and no usual folder tells of
    sources with tests.
    """
    folders = {folder for path in files for folder in _folders_around(path)}
    found: dict[str, tuple[list[str], list[str], str]] = {}
    for base in ("", *(f"{folder}/" for folder in sorted(folders))):
        manifest = _text(root / base / "pom.xml")
        if manifest or {f"{base}src/main/java", f"{base}src/test/java"} & folders:
            roots, test_roots, evidence = _declared_or_usual(manifest, folders, base)
            if roots or test_roots:
                found[base] = roots, test_roots, evidence
    if "" in found and found[""][0]:
        return "", *found[""]
    owners = {top: base for base, (_, test_roots, _) in found.items() for top in test_roots}
    counts = Counter(owners[folder] for path in files for folder in _folders_around(path) if folder in owners)
    closures = needed_modules(root, found)
    for best in sorted(counts, key=lambda base: (-sum(counts[each] for each in closures[base]), -counts[base], base)):
        needed = closures[best]
        roots, test_roots = ([folder for each in needed for folder in found[each][part]] for part in (0, 1))
        if roots:
            beside = f", with {', '.join(needed[1:])}, which it needs" if needed[1:] else ""
            evidence = f"{best}: of {len(found)} modules, the one with the most tests{beside}"
            return best, roots, test_roots, evidence
    return "", [], [], ""


def _folders_around(path: str) -> list[str]:
    """The folders that a file is in, from the innermost."""
    return [str(folder) for folder in PurePosixPath(path).parents][:-1]


def _declared_or_usual(manifest: str, folders: Collection[str], base: str) -> tuple[list[str], list[str], str]:
    """(folders of sources, folders of tests, what was found) of a module: those of its manifest, or the usual ones.

    ``folders`` are those with files of Java in or below them.
    """
    found: list[list[str]] = []
    evidence = ["src/main/java: the usual folders"]
    for kind, element in (("main", "sourceDirectory"), ("test", "testSourceDirectory")):
        folder = f"{base}src/{kind}/java"
        declared = re.search(rf"<{element}>\s*(?:\$\{{(?:project\.)?basedir\}}/)?([\w./-]+)", manifest)
        if declared and base + declared[1].rstrip("/") in folders:
            folder = base + declared[1].rstrip("/")
            evidence.append(f"{base}pom.xml: {'sources' if kind == 'main' else 'tests'} in {folder}")
        found.append([folder] if folder in folders else [])
    return found[0], found[1], "; ".join(evidence[1:] or evidence)


def _by_packages(root: Path, files: Iterable[str]) -> tuple[list[str], list[str]]:
    """Folders of sources and of tests, as the packages of the files tell: the path without them."""
    main: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for path in files:
        folder = path.rpartition("/")[0]
        text = _text(root / path)
        package = _PACKAGE.search(text)
        inside = package[1].replace(".", "/") if package else ""
        if inside and folder != inside and not folder.endswith(f"/{inside}"):
            continue
        top = (folder[: len(folder) - len(inside)].rstrip("/") if inside else folder) or "."
        (tests if _is_test(path, text) else main)[top] += 1
    best = max(sorted(main), key=lambda top: (main[top], top in tests), default="")
    return [best] if best else [], sorted(tests)


def _read(
    root: Path, files: Iterable[str], roots: Sequence[str], test_roots: Sequence[str]
) -> tuple[dict[str, JavaFile], dict[str, JavaFile]]:
    sources: dict[str, JavaFile] = {}
    tests: dict[str, JavaFile] = {}
    for path in files:
        main = max((len(top) for top in roots if _is_below(path, top)), default=-1)
        test = max((len(top) for top in test_roots if _is_below(path, top)), default=-1)
        if max(main, test) < 0 or path.rpartition("/")[2] == "module-info.java":
            continue
        text = _text(root / path)
        belongs_to_tests = test > main or (test == main and _is_test(path, text))
        (tests if belongs_to_tests else sources)[path] = read_file(text, path)
    return sources, tests


def _replacements(sources: Mapping[str, JavaFile], roots: Sequence[str]) -> list[str]:
    """The sources that are not in the folder of their package, where another one of the same name is."""
    packages = {path: each.package.replace(".", "/") for path, each in sources.items()}
    named = {path: str(PurePosixPath(package, path.rpartition("/")[2])) for path, package in packages.items()}
    placed = {path for path, name in named.items() if any(path == str(PurePosixPath(top, name)) for top in roots)}
    names = {named[path] for path in placed}
    return sorted(path for path, name in named.items() if name in names and path not in placed)


def _is_test(path: str, text: str) -> bool:
    """Whether a file that lies beside sources is one of tests: by a folder, or since it uses a library for tests."""
    in_folder = not _TEST_FOLDERS.isdisjoint(path.lower().split("/")[:-1])
    return in_folder or any(name.startswith(_TEST_LIBRARIES) for _, name, _ in _IMPORT.findall(text))


def read_file(text: str, path: str) -> JavaFile:
    """What the text of a Java file tells."""
    package = found[1] if (found := _PACKAGE.search(text)) else ""
    prefix = f"{package}." if package else ""
    names = dict.fromkeys([path.rpartition("/")[2].removesuffix(".java"), *_TYPE.findall(text)])
    imports = [
        (name.rpartition(".")[0] if static and not every else name, bool(every and not static))
        for static, name, every in _IMPORT.findall(text)
    ]
    return JavaFile(
        package=package, types=tuple(prefix + name for name in names if name != "package-info"), imports=tuple(imports)
    )


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def _existing(root: Path, folders: Iterable[str]) -> Iterator[str]:
    return (folder for folder in dict.fromkeys(folders) if (root / folder).is_dir())


def _release(manifests: str) -> int:
    """The version of the language; the lowest that the compiler knows for older ones."""
    for pattern in _VERSIONS:
        if found := re.search(pattern, manifests):
            number = found[1].replace("_", ".").removeprefix("1.").partition(".")[0]
            if number.isdigit() and int(number) > 0:
                return max(LOWEST, int(number))
    return LOWEST


def _encoding(manifests: str) -> str:
    found = _ENCODING.search(manifests)
    name = (found[1] or found[2]) if found else "UTF-8"
    return name.upper() if name.lower() in {"utf-8", "iso-8859-1", "us-ascii", "utf-16"} else "UTF-8"


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() and not path.is_symlink() else ""
