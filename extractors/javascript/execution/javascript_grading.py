"""Grading of JavaScript projects: files that solutions may not change, how tests are run, and canary tests."""

from __future__ import annotations

import hashlib
import json
import random
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from excise.extractors.grading_without_calls import GradingWithoutCalls
from excise.extractors.javascript.analysis.suite_files import SNAPSHOTS, is_test_file, runner_kind
from excise.extractors.javascript.execution.failing_copies import failing_copies
from excise.extractors.javascript.execution.judged_texts import judge_values, originals_values
from excise.extractors.javascript.execution.lifted_tests import lifted
from excise.extractors.javascript.execution.mirrored_tests import mirrored
from excise.extractors.javascript.execution.node_runner import PYTHON, runner_options
from excise.extractors.javascript.execution.observed_names import numbered_ids, observed_ids
from excise.extractors.javascript.execution.wrong_values import SEEDS
from excise.extractors.reported_texts import as_json
from excise.extractors.test_reports.signed_report import graded_results, signed_report
from excise.protocols import (
    Canaries,
    GradedRun,
    GradedRunRequest,
    GradingMode,
    LiftedTests,
    ReportedValues,
    Session,
)
from excise.types import Recipe, TestRun, WorkerOutcome

_REPO = "/testbed"
_SUPERVISOR = "/excise/inside/excise_node_grade.py"
_CONFIGURATION = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", ".npmrc", ".yarnrc",
    ".babelrc", "babel.config", "jest.config", "jest.setup", ".mocharc", "vitest.", "vite.config", "tsconfig", ".taprc",
    ".c8rc", ".nycrc", "ava.config", ".swcrc", ".env", "jsconfig", ".node-version", ".nvmrc", ".borp",
)  # fmt: skip
"""Beginnings of the names of files that decide how node or a test runner loads code."""
_BINARY = frozenset({".node", ".wasm", ".so", ".dylib", ".dll", ".tgz", ".zip", ".snap", ".map"})
_WORDS = ("empty input", "basic usage", "keeps order", "upper bounds", "typed values", "repeated keys", "small limits",
          "simple objects", "nested lists", "default options")  # fmt: skip
_HEADS = {
    "tape": "const test = require('tape')",
    "tap": "const { test } = require('tap')",
    "node": "const test = require('node:test')\nconst assert = require('node:assert')",
    "other": (
        "const found = (name) => Reflect.get(globalThis, name)\n"
        "const group = found('describe') || found('suite')\nconst test = found('it') || found('test')\n"
        "const expect = found('expect')\nconst assert = typeof require === 'function' ? require('assert') : null"
    ),
}
"""How a file of canaries begins; the last one is for all test runners that define global functions."""
_TESTS = {
    "tape": "test('{title}', function (t) {{\n  t.{tape}({arguments})\n  t.end()\n}})",
    "tap": "test('{title}', function (t) {{\n  t.{tap}({arguments})\n  t.end()\n}})",
    "node": "test('{title}', () => {{\n  assert.{node}({arguments})\n}})",
    "other": (
        "test('{title}', () => {{\n"
        "  if (assert && (!expect || {by_assert})) assert.{node}({arguments})\n"
        "  else (found('expect') || expect)({one}).{matcher}({other})\n}})"
    ),
}
_BODIES = (
    ("equal", "strictEqual", "{n}, {n} + 1", "{n}", "toBe", "{n} + 1"),
    ("deepEqual", "deepStrictEqual", "[{n}], [{n}, 1]", "[{n}]", "toEqual", "[{n}, 1]"),
    ("throws", "throws", "function () {{ return {n} }}", "() => {n}", "toThrow", ""),
    ("notOk", "ifError", "new Error('{n}')", "{n}", "toBeNull", ""),
    ("deepEqual", "deepEqual", "{{ a: {n} }}, {{ a: '{n}~' }}", "{{ a: {n} }}", "toStrictEqual", "{{ a: '{n}~' }}"),
    ("ok", "ok", "0", "0", "toBeTruthy", ""),
)
"""Assertions that fail: for tape, for node, their arguments, and the same for ``expect``."""


class JavaScriptGrading(GradingWithoutCalls):
    """Implements :class:`excise.protocols.Grading` for JavaScript; calls are not recorded."""

    mirror_seeds: Sequence[str] = SEEDS

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
            "test": SNAPSHOTS in folders or (not ours and is_test_file(path)),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:
        """No file of the tree does: packages are searched in folders that solutions may not change."""
        return False

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:
        """Six tests that must fail, for the test runner that the file beside them uses."""
        rng = random.Random(seed)
        titles = [f"{words} {rng.randrange(2, 99)}" for words in rng.sample(_WORDS, 6)]
        number, kind = rng.randrange(10, 10**6), runner_kind(beside)
        tests = []
        for place, (title, body) in enumerate(zip(titles, _BODIES, strict=True)):
            tape, node, arguments, one, matcher, other = (part.format(n=number) for part in body)
            words = {"arguments": arguments, "tape": tape, "node": node, "one": one, "matcher": matcher, "other": other}
            words["tap"] = {"deepEqual": "same"}.get(tape, tape)
            tests.append(_TESTS[kind].format(title=title, by_assert="true" if place % 3 == 0 else "false", **words))
        text = "\n".join(tests)
        if kind == "other":
            block = f"{rng.choice(_WORDS)} {rng.randrange(100, 999)}"
            text = f"{{\n{_HEADS[kind]}\ngroup('{block}', () => {{\n{text}\n}})\n}}\n"
        else:
            text = f"'use strict'\n{_HEADS[kind]}\n{text}\n"
        name = f"{rng.choice(_WORDS).replace(' ', '-')}-{hashlib.sha256(seed.encode()).hexdigest()[:6]}.test.js"
        return name, Canaries(text=text, tests=tuple(titles))

    def failing_copies(
        self, path: str, source: bytes, functions: Sequence[str], seed: str
    ) -> tuple[str, Canaries] | None:
        """A copy of the file, which is run in a process of its own."""
        rng = random.Random(seed)
        found = failing_copies(source, functions, runner_kind(source), rng)
        if found is None:
            return None
        stem, _, rest = path.rpartition("/")[2].partition(".")
        name = f"{stem}-{rng.choice(_WORDS).replace(' ', '-')}-{rng.randrange(16**4):04x}.{rest}"
        return name, Canaries(text=found[0].decode("utf-8", "replace"), tests=found[1])

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:
        """The test file with wrong expectations."""
        return mirrored(source, functions, seed)

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,
        **_: object,
    ) -> LiftedTests | None:
        """See :meth:`excise.protocols.Grading.lifted`; helpers of other files are not divided."""
        return lifted(source, functions, depending)

    def reported(self, values: str) -> ReportedValues:
        """A digest of the values: they are compared as they are, but for texts that a pattern matches."""
        return originals_values(values)

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Start the supervisor in the sandbox and accept only its signed report; a judging run matches texts alone.

        Every process that runs a test file runs the canaries, too, some before it and some after it. A canary passes if
        it does so in one of them.
        """
        observed = request.lifted
        if observed is not None and observed.seen is not None:
            results = judge_values(session, recipe, _REPO, observed, observed.seen, request.timeout_s)
            run = TestRun(worker=WorkerOutcome.OK, results=results, finished=True)
            return GradedRun(run=run, numbered=numbered_ids(observed.seen))
        asked = dict.fromkeys(request.ids, "") if observed is None else observed_ids(request.ids, observed.functions)
        key = secrets.token_hex(32)
        body = {
            "key": key,
            "root": _REPO,
            **runner_options(recipe),
            "ids": list(asked),
            "canaries": dict(request.canaries),
            "sealed": dict(request.sealed),
            "timeout_s": request.timeout_s,
            "test_timeout_s": request.test_timeout_s,
            "times_observed": 0 if observed is None else 2 if observed.is_repeated else 1,
        }
        command = (PYTHON, "-I", "-S", _SUPERVISOR)
        stdin = json.dumps(body).encode()
        done = session.exec(command, timeout_s=request.timeout_s + 60, stdin=stdin, env=dict(recipe.env))
        report = signed_report(done.stdout, key)
        run = graded_results(done, report, (*request.ids, *request.canaries))
        changed = (report or {}).get("changed", ())
        seen = {}
        for entry in (report or {}).get("results", ()) if observed is not None else ():
            if isinstance(entry.get("reported"), dict) and entry.get("id") in asked:
                seen[asked[entry["id"]]] = as_json(entry["reported"])
        return GradedRun(run=run, changed=tuple(str(name)[:200] for name in changed[:100]), seen=seen)
