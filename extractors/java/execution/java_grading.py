"""Grading of Java projects: files that solutions may not change, how tests are run, canaries, and other forms of tests.

No calls are recorded. Lifted tests are decided by the values that they report; mirrored tests and canaries guard the
results of the others.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from excise.extractors.compiled_grading import CompiledGrading, Supervisor
from excise.extractors.java.analysis.suite_files import is_test_file
from excise.extractors.java.execution.failing_copies import failing_copies
from excise.extractors.java.execution.lifted_tests import lifted
from excise.extractors.java.execution.mirrored_tests import mirrored
from excise.protocols import Canaries, LiftedTests

_MANIFESTS = frozenset(
    {"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
     "build.xml", "ivy.xml", "module-info.java", "junit-platform.properties", "manifest.mf"}
)  # fmt: skip
"""Files that decide how the project is built, or how JUnit runs."""
_FOLDERS = frozenset({"meta-inf", ".mvn", ".gradle", "gradle", "buildsrc"})
_COMPILED = frozenset({".class", ".jar", ".war", ".jmod", ".so", ".dll", ".jnilib", ".ser", ".zip"})
_RUNNERS = ("org/junit/", "junit/", "org/hamcrest/", "org/opentest4j/", "org/apiguardian/", "org/assertj/",
            "org/mockito/", "excise/", "java/", "javax/")  # fmt: skip
"""Folders of packages that decide the results of tests."""
_PACKAGE = re.compile(rb"(?m)^\s*package\s+([\w.]+)\s*;")
_WORDS = ("Empty", "Basic", "Order", "Bounds", "Types", "Values", "Repeat", "Limits", "Simple", "Nested", "Default")
_IMPORTS = {
    True: "import org.junit.jupiter.api.Assertions;\nimport org.junit.jupiter.api.Test;\n",
    False: "import org.junit.Assert;\nimport org.junit.Test;\n",
}
"""Whether JUnit is Jupiter, to the imports of a test; classes of JUnit 3 lie beside tests of JUnit 4."""


class JavaGrading(CompiledGrading):
    """Implements :class:`excise.protocols.Grading` for Java."""

    supervisor = Supervisor("excise_java_grade.py")

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Forbids tests and their data, manifests, services, and everything that is compiled."""
        *folders, name = path.split("/")
        low = name.lower()
        parts = {part.lower() for part in (*folders, name)}
        rules = {
            "version_control": bool({".git", ".hg", ".svn"} & parts) or low.startswith(".git"),
            "manifest": low in _MANIFESTS or bool(_FOLDERS & {folder.lower() for folder in folders}),
            "compiled": Path(low).suffix in _COMPILED,
            "test": not ours and is_test_file(path),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:  # noqa: ARG002
        """Whether a new file is in a package of a test library, or of Java itself."""
        return any(path.removeprefix(f"{root}/" if root != "." else "").startswith(_RUNNERS) for root in (".", *roots))

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:
        """Five tests that must fail in different ways, with package and JUnit of the test file ``beside``."""
        rng = random.Random(seed)
        words = rng.sample(_WORDS, 6)
        number, mark = rng.randrange(1000, 10**6), hashlib.sha256(seed.encode()).hexdigest()[:6]
        names = [f"test{word}{rng.randrange(100, 1000)}" for word in words[:5]]
        is_jupiter = b"org.junit.jupiter" in beside
        asserts = "Assertions" if is_jupiter else "Assert"
        bodies = (
            f"        int sum = {number} + 1;\n        {asserts}.assertEquals({number}, sum);\n",
            f'        {asserts}.assertTrue("{mark}".length() == {number});\n',
            f'        throw new IllegalStateException("{mark}");\n',
            f"        int[] values = new int[1];\n        values[{number}] = 1;\n",
            f'        {asserts}.fail("{mark}");\n',
        )
        tests = "\n".join(
            f"    @Test\n    public void {name}() {{\n{body}    }}\n" for name, body in zip(names, bodies, strict=True)
        )
        package = f"package {found[1].decode()};\n\n" if (found := _PACKAGE.search(beside)) else ""
        name = f"{words[5]}{mark.upper()}Test"
        text = f"{package}{_IMPORTS[is_jupiter]}\npublic class {name} {{\n{tests}}}\n"
        return f"{name}.java", Canaries(text=text, tests=tuple(f"{name}::{each}" for each in names))

    def failing_copies(
        self, path: str, source: bytes, functions: Sequence[str], seed: str
    ) -> tuple[str, Canaries] | None:
        """A class of another name."""
        rng = random.Random(seed)
        stem = path.rpartition("/")[2].removesuffix(".java")
        name = f"{stem.removesuffix('Test')}{rng.choice(_WORDS)}{rng.randrange(16**4):04X}Test"
        found = failing_copies(source, functions, name, rng)
        try:
            return (f"{name}.java", Canaries(text=found[0].decode(), tests=found[1])) if found is not None else None
        except UnicodeDecodeError:  # a copy would have other characters
            return None

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:
        """The test file with its checks turned round."""
        return mirrored(source, functions, seed)

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,
        **_: object,
    ) -> LiftedTests | None:
        """See :meth:`excise.protocols.Grading.lifted`."""
        return lifted(source, functions, depending, beside())

    def numbered(self, test: str) -> str:
        """JUnit counts the runs of a method from 1, lifted tests from 0."""
        name, _, number = test.removesuffix("]").rpartition("[")
        return f"{name}[{int(number) + 1}]" if name and number.isdigit() else test
