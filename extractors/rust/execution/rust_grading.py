"""Grading of Rust projects: files that solutions may not change, how tests are run, canaries, and other forms of tests.

No calls are recorded. Lifted tests are decided by the values that they report; mirrored tests and canaries guard the
results of the others.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from excise.extractors.compiled_grading import CompiledGrading, Supervisor
from excise.extractors.rust.analysis.codebase import SUFFIX, TEST_FOLDERS
from excise.extractors.rust.execution.lifted_tests import lifted
from excise.extractors.rust.execution.mirrored_tests import mirrored
from excise.protocols import Canaries, LiftedTests

_MANIFESTS = frozenset({"cargo.toml", "cargo.lock", "rust-toolchain", "rust-toolchain.toml", "build.rs", ".cargo"})
_WORDS = ("empty", "basic", "order", "bounds", "types", "values", "repeat", "limits", "simple", "nested", "default")


class RustGrading(CompiledGrading):
    """Implements :class:`excise.protocols.Grading` for Rust."""

    supervisor = Supervisor("excise_rust_grade.py")

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Forbids tests, manifests, build scripts, settings of cargo, and everything that is no Rust source."""
        *folders, name = path.split("/")
        parts = {part.lower() for part in (*folders, name)}
        rules = {
            "version_control": bool({".git", ".hg", ".svn"} & parts) or name.lower().startswith(".git"),
            "manifest": bool(_MANIFESTS & parts) or "vendor" in folders,
            "test": not ours and path.partition("/")[0] in TEST_FOLDERS,
            "no_source": not name.endswith(SUFFIX),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:  # noqa: ARG002
        """Never: other crates have names of their own."""
        return False

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:  # noqa: ARG002
        """Five tests that must fail in different ways; the supervisor makes the file a module of a test file."""
        rng = random.Random(seed)
        words = rng.sample(_WORDS, 5)
        number, mark = rng.randrange(1000, 10**6), hashlib.sha256(seed.encode()).hexdigest()[:6]
        names = [f"{word}_{rng.randrange(100, 1000)}" for word in words]
        bodies = (
            f"    assert_eq!({number} + 1, {number});\n",
            f'    assert!("{mark}".len() == {number});\n',
            f'    panic!("{mark}");\n',
            f'    let values: [u8; 4] = [1; 4];\n    let at = "{mark}".len() + {number};\n'
            "    assert_ne!(values[at], values[at]);\n",
            f'    let found: Result<u8, _> = "{mark}x".parse();\n    found.unwrap();\n',
        )
        functions = "\n".join(f"#[test]\nfn {n}() {{\n{body}}}\n" for n, body in zip(names, bodies, strict=True))
        return f"{rng.choice(_WORDS)}_{mark}{SUFFIX}", Canaries(text=functions, tests=tuple(names))

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:  # noqa: ARG002
        """The test file with wrong expectations."""
        return mirrored(source, functions)

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,  # noqa: ARG002
        **_: object,
    ) -> LiftedTests | None:
        """See :meth:`excise.protocols.Grading.lifted`."""
        return lifted(source, functions, depending)
