"""Libraries of a Java project, taken from Debian's packages: those on this machine, and, where something is missing
there, those of the archive.

Only those are taken whose types the project or its tests import, with the libraries that Debian's packages of these
depend on, and JUnit; none that holds types of the project itself, which would be a copy of what is to be deleted.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from excise.envs.debian_archive import DebianArchive
from excise.envs.java.project_layout import JavaFile, ProjectLayout
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.errors import EnvironmentFailure
from excise.types import Repo

JARS = "/usr/share/java"
"""Where Debian's packages put jars."""
_KIND = r"lib.+-java"
"""Names of the packages with them."""
_OF_BUILDS = re.compile(r"maven|plugin|surefire|doxia|plexus|-ant-")
"""Names of packages that builds need, not what is built."""
JUNIT_PACKAGES = ("junit5", "junit4")
AGENT_PACKAGE = "libjacoco-java"
JUNIT = (
    "junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-platform-commons",
    "junit-platform-engine", "junit-platform-launcher", "junit-vintage-engine", "junit4", "hamcrest", "opentest4j",
    "apiguardian-api", "univocity-parsers",
)  # fmt: skip
"""Jars that tests of every project have."""
AGENT = ("org.jacoco.agent.rt", "org.jacoco.core", "asm", "asm-commons", "asm-tree", "asm-analysis")
"""Jars that the agent for coverage is made of."""
_JAVA = re.compile(
    r"(?:java|jdk|sun|com\.sun|org\.w3c|org\.xml\.sax|org\.ietf|netscape)\."
    r"|javax\.(?!annotation\.(?!processing)|inject|servlet|ws\.|persistence|validation|xml\.bind|jms|mail|ejb"
    r"|enterprise|el\.|json|cache)"
)
"""Names of the types of Java itself."""
_SHADED_SHARE, _SHADED_LEAST = 0.5, 4
"""A jar with this share of the project's type names, and at least so many, holds a renamed copy of it."""
_PART = re.compile(r"-(?:core|api|all|library)$")
"""What names of artifacts end with, and those of packages do not: ``mockito-core`` is in ``libmockito-java``."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One library."""

    name: str
    """Name of its file without the suffix; without a version where there is such a name."""
    path: Path
    """Its file."""
    package: str
    """The Debian package that it belongs to."""
    version: str
    """That package's version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """The libraries of a project."""

    jars: tuple[Jar, ...]
    """Sorted by name."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Path of each test file that needs what is not there, to what that is."""
    evidence: tuple[str, ...] = ()
    """One line per decision."""
    missing: tuple[str, ...] = ()
    """What the sources import and no package has."""

    def write(self, folder: Path) -> dict[str, str]:
        """Copy the jars; return ``package==version`` of each package to the hash of its jars."""
        found: dict[str, list[bytes]] = {}
        for jar in self.jars:
            data = jar.path.read_bytes()
            (folder / f"{jar.name}.jar").write_bytes(data)
            found.setdefault(jar.package, []).append(f"{jar.name}\0".encode() + hashlib.sha256(data).digest())
        return {package: hashlib.sha256(b"".join(parts)).hexdigest() for package, parts in sorted(found.items())}


def find_libraries(layout: ProjectLayout, packages: DebianPackages, repo: Repo, archive: DebianArchive) -> Libraries:
    """Choose the libraries of a project.

    Raises :class:`EnvironmentFailure`: ``toolchain_unavailable`` without JUnit, ``unknown_test_runner`` for tests of
    another, ``missing_dependency`` that names what the sources import and no package has.
    """
    found = libraries_in(packages, layout)
    if found.missing or found.left_out:
        artifacts = layout.artifacts | {_PART.sub("", artifact) for artifact in layout.artifacts}
        names = {f"lib{artifact}-java" for artifact in artifacts} | archive.build_dependencies(repo.source) | artifacts
        asked = {name for name in names if not _OF_BUILDS.search(name)}
        kind = re.compile("|".join([_KIND, *map(re.escape, sorted(artifacts))]))  # ``ant`` is a package, too
        if unpacked := {each.name: each.root for each in archive.unpacked(asked, kind)}:
            found = libraries_in(packages.and_unpacked(unpacked), layout)
    if found.missing:
        raise archive.failure(
            f"The sources import {', '.join(found.missing[:5])}, which no jar in {JARS} has, nor any package of "
            "Debian's archive that is named like an artifact of the manifest: install the library's Debian package, if "
            "there is one (its name is often libNAME-java)."
        )
    return found


def libraries_in(packages: DebianPackages, layout: ProjectLayout) -> Libraries:
    """The libraries that some packages have; raises as :func:`find_libraries` does, but for what is missing."""
    known = known_jars(packages)
    _require_junit(layout, known, packages)
    own = layout.own_types
    own_jars = {name for name, jar in known.items() if _holds(types_in(jar.path), own)}
    if broken := sorted(own_jars.intersection(JUNIT)):
        raise EnvironmentFailure(f"JUnit needs this project itself: {', '.join(broken)}.", reason="installs_itself")
    usable = {name: jar for name, jar in known.items() if name not in own_jars}
    present = own | {name for each in layout.tests.values() for name in each.types}
    packages_here = {each.package for each in (*layout.sources.values(), *layout.tests.values())}
    chosen: dict[str, Jar] = {}
    missing = _choose(layout.sources, usable, present, packages_here, layout.artifacts, chosen)
    left_out = _choose(layout.tests, usable, present, packages_here, layout.artifacts, chosen)
    junit = {known[name].package for name in JUNIT if name in known}
    wanted = {jar.package for jar in chosen.values()} - junit
    closure = {package.name for package in packages.closure(sorted(wanted))} - junit if wanted else set()
    for name, jar in usable.items():
        if name in JUNIT or (jar.package in closure and jar.package not in wanted):
            chosen.setdefault(name, jar)
    evidence = [f"{JARS}: {', '.join(sorted(set(chosen) - set(JUNIT)))}"] if set(chosen) - set(JUNIT) else []
    if own_jars:
        evidence.append(f"left out, since they hold the project's own types: {', '.join(sorted(own_jars))}")
    evidence += [f"{path}: left out, since {what} is not there" for path, what in sorted(left_out.items())]
    return Libraries(
        jars=tuple(chosen[name] for name in sorted(chosen)),
        left_out=left_out,
        evidence=tuple(evidence),
        missing=tuple(sorted(set(missing.values()))),
    )


def agent_jars(packages: DebianPackages) -> list[Jar]:
    """The jars that the agent for coverage is made of. Raises :class:`EnvironmentFailure`."""
    known = known_jars(packages)
    if missing := [name for name in AGENT if name not in known]:
        raise _not_installed(AGENT_PACKAGE, f"the jars {', '.join(missing)}, which measure coverage")
    return [known[name] for name in AGENT]


def known_jars(packages: DebianPackages) -> dict[str, Jar]:
    """Name to jar of Debian's packages; of several names of one file, the shortest."""
    found: dict[Path, Jar] = {}
    for name, package in packages.installed.items():
        for file in packages.paths_in(name, JARS):
            if file.suffix == ".jar" and file.is_file():
                real, plain = file.resolve(), file.name.removesuffix(".jar")
                if real not in found or (len(plain), plain) < (len(found[real].name), found[real].name):
                    found[real] = Jar(plain, real, name, package.version)
    return {jar.name: jar for jar in found.values()}


@cache
def types_in(path: Path) -> frozenset[str]:
    """Qualified names of the types in a jar, nested ones with a dot; empty if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return frozenset()
    classes = (name[: -len(".class")] for name in names if name.endswith(".class") and not name.startswith("META-INF/"))
    return frozenset(name.replace("/", ".").replace("$", ".") for name in classes)


def _holds(types: frozenset[str], own: frozenset[str]) -> bool:
    """Whether a jar holds types of the project, or most of their names in other packages."""
    if types & own:
        return True
    names = {name.rpartition(".")[2] for name in own}
    shared = names & {name.rpartition(".")[2] for name in types}
    return len(shared) >= max(_SHADED_LEAST, _SHADED_SHARE * len(names))


def _choose(
    files: Mapping[str, JavaFile],
    usable: Mapping[str, Jar],
    present: frozenset[str],
    packages_here: Iterable[str],
    artifacts: frozenset[str],
    chosen: dict[str, Jar],
) -> dict[str, str]:
    """Add the jars that files import to ``chosen``; return path to what is missing."""
    holders: dict[str, list[str]] = {}
    in_package: dict[str, list[str]] = {}
    for name, jar in sorted(usable.items()):
        for each in types_in(jar.path):
            holders.setdefault(each, []).append(name)
            in_package.setdefault(each.rpartition(".")[0], []).append(name)
    here, missing = set(packages_here), dict[str, str]()
    for path, file in files.items():
        for name, every in file.imports:
            if any(each in present for each in _with_outer(name)) or (every and name in here):
                continue
            found = in_package.get(name, []) if every else _first(holders, name)
            if found:
                best = min(found, key=lambda jar: (jar not in JUNIT, jar not in artifacts, jar not in chosen, jar))
                chosen[best] = usable[best]
            elif not _JAVA.match(f"{name}."):
                missing.setdefault(path, name)
    return missing


def _with_outer(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _first(holders: Mapping[str, list[str]], name: str) -> list[str]:
    return next((holders[each] for each in _with_outer(name) if each in holders), [])


def _require_junit(layout: ProjectLayout, known: Mapping[str, Jar], packages: DebianPackages) -> None:
    if missing := [name for name in JUNIT_PACKAGES if name not in packages.installed]:
        raise _not_installed(" ".join(missing), "JUnit")
    if [name for name in JUNIT if name not in known and name != "univocity-parsers"]:
        raise _not_installed(" ".join(JUNIT_PACKAGES), "all of JUnit")
    imports = {name for each in layout.tests.values() for name, _ in each.imports}
    if not any(name.startswith(("org.junit", "junit.")) for name in imports):
        other = "TestNG" if any(name.startswith("org.testng") for name in imports) else "no JUnit"
        raise EnvironmentFailure(
            f"The tests use {other}: only those of JUnit 3, 4 and 5 are run.", reason="unknown_test_runner"
        )


def _not_installed(packages: str, what: str) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"This is a Java project, and this machine has not {what}: install Debian's packages "
        f"(apt-get install -y --no-install-recommends {packages}), and run again.",
        reason="toolchain_unavailable",
    )
