"""Grading of Rust projects: files that solutions may not change, how tests are run, canaries and mirrored tests.

Tests are neither lifted nor their calls recorded: a FAIL_TO_PASS test counts if it can be mirrored; mirrored tests
and canaries guard the results.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
from collections.abc import Collection, Sequence
from pathlib import Path

from excise.extractors.grading_without_calls import GradingWithoutCalls
from excise.extractors.rust.analysis.codebase import SUFFIX, TEST_FOLDERS
from excise.extractors.rust.execution.mirrored_tests import mirrored
from excise.extractors.test_reports.runner_program import PYTHON, REPO
from excise.extractors.test_reports.signed_report import graded_results, signed_report
from excise.protocols import Canaries, ForkServer, GradedRun, GradedRunRequest, GradingMode, LiftedTests, Session
from excise.types import Recipe

_MANIFESTS = frozenset({"cargo.toml", "cargo.lock", "rust-toolchain", "rust-toolchain.toml", "build.rs", ".cargo"})
_WORDS = ("empty", "basic", "order", "bounds", "types", "values", "repeat", "limits", "simple", "nested", "default")


class RustGrading(GradingWithoutCalls):
    """Implements :class:`excise.protocols.Grading` for Rust."""

    def mode(self, root: Path, environment: Path) -> GradingMode:  # noqa: ARG002
        """The only mode: tests are compiled, and only their results are believed."""
        return GradingMode(strict=False, sealed=False)

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

    def mirrored(self, source: bytes, functions: Sequence[str]) -> bytes | None:
        """The test file with wrong expectations."""
        return mirrored(source, functions)

    def lifted(self, source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:  # noqa: ARG002
        """None is divided."""
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=dict.fromkeys(functions, "compiled test"))

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> ForkServer:  # noqa: ARG002
        """The command of a graded run; it is never forked."""
        return ForkServer(argv=(PYTHON, "-I", "-S", "/excise/inside/excise_rust_grade.py"), env=dict(recipe.env))

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Start the supervisor in the sandbox and accept only its signed report."""
        key = secrets.token_hex(32)
        body = {
            "key": key,
            "root": REPO,
            "ids": list(request.ids),
            "canaries": dict(request.canaries),
            "timeout_s": request.timeout_s,
            "test_timeout_s": request.test_timeout_s,
        }
        server = self.run_server(recipe, request)
        stdin = json.dumps(body).encode()
        done = session.exec(server.argv, timeout_s=request.timeout_s + 60, stdin=stdin, env=server.env)
        report = signed_report(done.stdout, key)
        return GradedRun(run=graded_results(done, report, (*request.ids, *request.canaries)))
