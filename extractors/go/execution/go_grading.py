"""Grading of Go projects: files that solutions may not change, how tests are run, canaries, and other forms of tests.

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
from excise.extractors.go.execution.go_runner import root_of
from excise.extractors.go.execution.lifted_tests import lifted
from excise.extractors.go.execution.mirrored_tests import mirrored
from excise.protocols import Canaries, LiftedTests

_MANIFESTS = frozenset({"go.mod", "go.sum", "go.work", "go.work.sum", "go.env"})
_COMPILED = frozenset({".s", ".c", ".h", ".cc", ".cpp", ".syso", ".a", ".o", ".so", ".test", ".exe", ".swig", ".f"})
"""Suffixes of what go would build or link beside Go files."""
_PACKAGE = re.compile(rb"(?m)^package[ \t]+(\w+)")
_WORDS = ("Empty", "Basic", "Order", "Bounds", "Types", "Values", "Repeat", "Limits", "Simple", "Nested", "Default")


class GoGrading(CompiledGrading):
    """Implements :class:`excise.protocols.Grading` for Go."""

    supervisor = Supervisor("excise_go_grade.py", root_of)

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Forbids tests and their data, manifests, copies of other modules, and everything that is no Go source."""
        *folders, name = path.split("/")
        low = name.lower()
        parts = {part.lower() for part in (*folders, name)}
        rules = {
            "version_control": bool({".git", ".hg", ".svn"} & parts) or low.startswith(".git"),
            "manifest": low in _MANIFESTS or "vendor" in folders,
            "compiled": Path(low).suffix in _COMPILED,
            "test": not ours and (low.endswith("_test.go") or "testdata" in folders),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:  # noqa: ARG002
        """Never: packages of the project have import paths of their own."""
        return False

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:
        """Five tests that must fail in different ways, in the package of the test file ``beside``."""
        rng = random.Random(seed)
        words = rng.sample(_WORDS, 5)
        number, mark = rng.randrange(1000, 10**6), hashlib.sha256(seed.encode()).hexdigest()[:6]
        names = [f"Test{word}{rng.randrange(100, 1000)}" for word in words]
        package = found[1].decode() if (found := _PACKAGE.search(beside)) else "main"
        bodies = (
            f'\tif sum := {number} + 1; sum != {number} {{\n\t\tt.Errorf("got %d", sum)\n\t}}\n',
            f'\tif len("{mark}") != {number} {{\n\t\tt.Fatal("length")\n\t}}\n',
            f'\tpanic("{mark}")\n',
            f"\tvar values []int\n\t_ = values[len(t.Name())+{number}]\n",
            f'\tt.Run("{mark}", func(t *testing.T) {{\n\t\tt.FailNow()\n\t}})\n',
        )
        functions = "\n".join(
            f"func {name}(t *testing.T) {{\n{body}}}\n" for name, body in zip(names, bodies, strict=True)
        )
        text = f'package {package}\n\nimport "testing"\n\n{functions}'
        return f"{rng.choice(_WORDS).lower()}_{mark}_test.go", Canaries(text=text, tests=tuple(names))

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:  # noqa: ARG002
        """The test file with its checks turned round."""
        return mirrored(source, functions)

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
