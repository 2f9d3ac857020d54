"""Grading of JavaScript projects: files that solutions may not change, how tests are run, and canary tests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import re
import secrets
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from excise.extractors.javascript.analysis.suite_files import is_test_file
from excise.extractors.javascript.execution.mirrored_tests import mirrored
from excise.extractors.javascript.execution.node_runner import PYTHON
from excise.extractors.test_reports.report import to_result, worse
from excise.protocols import (
    CallRecording,
    Canaries,
    Codebase,
    ForkServer,
    GradedRun,
    GradedRunRequest,
    GradingMode,
    LiftedTests,
    ReportedValues,
    Session,
    Start,
)
from excise.types import Recipe, RecordedCall, Status, TestResult, TestRun, Watched

_SUPERVISOR = "/excise/inside/excise_node_grade.py"
_CONFIGURATION = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", ".npmrc", ".yarnrc",
    ".babelrc", "babel.config", "jest.config", ".mocharc", "vitest.config", "vite.config", "tsconfig", ".taprc",
    ".c8rc", ".nycrc", "ava.config", ".swcrc", ".env", "jsconfig", ".node-version", ".nvmrc", ".borp",
)  # fmt: skip
"""Beginnings of the names of files that decide how node or a test runner loads code."""
_BINARY = frozenset({".node", ".wasm", ".so", ".dylib", ".dll", ".tgz", ".zip", ".snap", ".map"})
_MAX_REPORT = 256 << 20
"""Maximum number of bytes of a report of a graded run."""
_WORDS = ("empty input", "basic usage", "keeps order", "upper bounds", "typed values", "repeated keys", "small limits",
          "simple objects", "nested lists", "default options")  # fmt: skip
_TAPE = re.compile(rb"""\brequire\(\s*['"]tape['"]\s*\)""")
"""What a test file has that uses tape; other files use the test runner of node."""
_NODE_HEAD = "const test = require('node:test')\nconst assert = require('node:assert')"


class JavaScriptGrading:
    """Implements :class:`excise.protocols.Grading` for JavaScript; calls are not recorded and tests not divided."""

    needs_mirrors = True

    def mode(self, root: Path, environment: Path) -> GradingMode:
        """Hidden tests are read from memory, if nothing speaks against it."""
        return GradingMode()

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Forbids test files, manifests and configuration, installed packages, binaries and version control."""
        *folders, name = path.split("/")
        low = name.lower()
        parts = {part.lower() for part in (*folders, name)}
        rules = {
            "version_control": bool({".git", ".hg", ".svn"} & parts) or low.startswith(".git"),
            "installed_package": "node_modules" in parts,
            "test_configuration": low.startswith(_CONFIGURATION),
            "binary": Path(low).suffix in _BINARY,
            "test": not ours and is_test_file(path),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:
        """No file of the tree does: packages are searched in folders that solutions may not change."""
        return False

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:
        """Six tests that must fail, for the test runner that the file beside them uses."""
        rng = random.Random(seed)
        titles = [f"{words} {rng.randrange(2, 99)}" for words in rng.sample(_WORDS, 6)]
        number = rng.randrange(10, 10**6)
        bodies = (
            ("equal", "strictEqual", f"{number}, {number + 1}"),
            ("deepEqual", "deepStrictEqual", f"[{number}], [{number}, 1]"),
            ("throws", "throws", f"function () {{ return {number} }}"),
            ("notOk", "ifError", f"new Error('{number}')"),
            ("deepEqual", "deepEqual", f"{{ a: {number} }}, {{ a: '{number}~' }}"),
            ("ok", "ok", "0"),
        )
        uses_tape = _TAPE.search(beside) is not None
        tests = "\n".join(
            f"test('{title}', function (t) {{\n  t.{tape}({arguments})\n  t.end()\n}})"
            if uses_tape
            else f"test('{title}', () => {{\n  assert.{node}({arguments})\n}})"
            for title, (tape, node, arguments) in zip(titles, bodies, strict=True)
        )
        head = "const test = require('tape')" if uses_tape else _NODE_HEAD
        name = f"{rng.choice(_WORDS).replace(' ', '-')}-{hashlib.sha256(seed.encode()).hexdigest()[:6]}.test.js"
        return name, Canaries(text=f"'use strict'\n{head}\n{tests}\n", tests=tuple(titles))

    def mirrored(self, source: bytes, functions: Sequence[str]) -> bytes | None:
        """The test file with wrong expectations."""
        return mirrored(source, functions)

    def lifted(self, source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:
        """No test of JavaScript is divided."""
        return LiftedTests(
            observing=source, judging=source, functions=(), refused=dict.fromkeys(functions, "JavaScript")
        )

    def reported(self, values: str) -> ReportedValues:
        """Never called, since no test is divided."""
        return ReportedValues()

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> ForkServer:
        """The supervisor; it is started like any other command."""
        return ForkServer(argv=(PYTHON, "-I", "-S", _SUPERVISOR), env=dict(recipe.env))

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Start the supervisor in the sandbox and accept only its signed report.

        Every process that runs a test file runs the canaries, too, some before it and some after it. A canary passes if
        it does so in one of them.
        """
        key = secrets.token_hex(32)
        body = {
            "key": key,
            "root": "/testbed",
            "args": list(recipe.test_args),
            "ids": list(request.ids),
            "canaries": dict(request.canaries),
            "sealed": dict(request.sealed),
            "timeout_s": request.timeout_s,
            "test_timeout_s": request.test_timeout_s,
        }
        server = self.run_server(recipe, request)
        stdin = json.dumps(body).encode()
        done = session.exec(server.argv, timeout_s=request.timeout_s + 60, stdin=stdin, env=server.env)
        report = _signed_report(done.stdout, key)
        results: dict[str, TestResult] = {}
        for entry in report.get("results", ()) if report else ():
            if isinstance(entry, dict):
                result = to_result(entry)
                results[result.test_id] = worse(results.get(result.test_id), result)
        for test in (*request.ids, *request.canaries):
            results.setdefault(test, TestResult(test_id=test, status=Status.MISSING))
        run = TestRun(
            worker=done.worker,
            results=tuple(results.values()),
            finished=bool(report and report.get("finished")),
            wall_s=done.wall_s,
            cpu_s=done.cpu_s,
            detail=str(report.get("why", ""))[:300] if report else "The report is missing, or is not the grader's.",
        )
        changed = (report or {}).get("changed", ())
        return GradedRun(run=run, changed=tuple(str(name)[:200] for name in changed[:100]))

    # ------------------------------------------------------------------------------- recorded calls
    def record_calls(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
        start: Start = Start.FRESH,
        executed: Collection[str] | None = None,
    ) -> CallRecording:
        """No calls are recorded."""
        return CallRecording(calls=(), modules=(), removed=(), watched=0, refused={})

    def watch_tests(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
        start: Start = Start.FRESH,
        executed: Collection[str],
    ) -> Watched:
        """Nothing is watched."""
        return Watched()

    def replay_server(self, recipe: Recipe, hash_seed: int) -> ForkServer:
        """Never called, since no calls are recorded."""
        raise NotImplementedError

    def replay_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        *,
        timeout_s: float,
        hash_seed: int = 0,
        later_s: float = 0.0,
    ) -> list[str]:
        """There are no calls to replay."""
        return ["" for _ in recording.calls]

    def trace_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        timeout_s: float,
    ) -> list[tuple[str, frozenset[str]]]:
        """There are no calls to trace."""
        return [("", frozenset()) for _ in recording.calls]

    def vary_calls(self, calls: Sequence[str]) -> list[str]:
        """There are no calls to vary."""
        return []

    def called(self, call: str) -> str:
        """There are no calls."""
        return ""

    def is_result(self, outcome: str) -> bool:
        """There are no outcomes."""
        return False

    def is_compared_whole(self, outcome: str) -> bool:
        """There are no outcomes."""
        return False

    def example(self, call: str, outcome: str) -> str:
        """There are no examples."""
        return ""

    def distinguish_from_stub(self, recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
        """No calls distinguish anything."""
        return False

    def same_outcome(self, expected: str, found: str) -> bool:
        """There are no outcomes."""
        return expected == found


def _signed_report(stdout: bytes, key: str) -> dict[str, Any] | None:
    """The report in the line with a valid signature; ``None`` if there is none. Other lines are ignored."""
    for line in stdout.split(b"\n"):
        code, _, body = line.partition(b" ")
        if hmac.compare_digest(code, hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode()):
            try:
                found = json.loads(zlib.decompressobj().decompress(base64.b64decode(body), _MAX_REPORT))
            except (ValueError, zlib.error, RecursionError):
                continue
            return found if isinstance(found, dict) else None
    return None
