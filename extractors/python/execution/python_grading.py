"""Grading of Python projects: files that solutions may not change, how pytest is run, and canary tests."""

from __future__ import annotations

import configparser
import hashlib
import json
import random
import re
import secrets
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from excise.extractors.python.execution import (
    added_arguments,
    call_examples,
    compared_outcomes,
    recorded_calls,
    values_of_code,
    varied_calls,
)
from excise.extractors.python.execution.mirrored_tests import mirrored
from excise.extractors.python.lifting.lifted_tests import lifted
from excise.extractors.test_reports.report import COMPLETE
from excise.extractors.test_reports.signed_report import graded_results, signed_report
from excise.protocols import (
    NOTHING_INHERITED,
    CallRecording,
    Canaries,
    Codebase,
    ForkServer,
    GradedRun,
    GradedRunRequest,
    GradingMode,
    LiftedRun,
    LiftedTests,
    ReportedValues,
    Session,
    Start,
)
from excise.types import Recipe, RecordedCall, Watched

_PYTHON = "/opt/env/bin/python"
_SUPERVISOR = "/excise/inside/excise_grade_supervisor.py"
_FORKED_SUPERVISOR = "/excise/inside/excise_grade_forked.py"
_CONFIGURATION = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
     "pyproject.toml", "setup.py", "noxfile.py", ".coveragerc", "manifest.in"}
)  # fmt: skip
_START = frozenset({"sitecustomize.py", "usercustomize.py", "pyvenv.cfg"})
_COMPILED = frozenset({".pyc", ".pyo", ".so", ".pyd", ".dylib", ".dll", ".egg", ".whl", ".zip", ".pyz"})
_TESTING = frozenset({"pytest", "_pytest", "pluggy", "unittest", "doctest", "py"})
_TEST_FILE = re.compile(r"(test_.*|.*_tests?|tests?)\.py$")
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setattr__", "__init_subclass__"})
"""Methods that decide how objects represent their state."""
_TEST_FOLDERS = frozenset({"tests", "test", "_tests", "testsuite"})
_WORDS = ("empty", "basic", "order", "bounds", "types", "values", "repeat", "limits", "simple", "nested", "default")


class PythonGrading:
    """Implements :class:`excise.protocols.Grading` for Python and pytest."""

    needs_mirrors = False
    mirror_seeds: Sequence[str] = ("",)

    def mode(self, root: Path, environment: Path) -> GradingMode:
        """The configuration file that pytest finds in the untouched sources, and the plugins that are installed."""
        return GradingMode(options={"ini": _configuration(root), "plugins": "\n".join(_plugins(environment))})

    def forbidden(self, path: str, *, ours: bool) -> str:
        """Forbids test files and configuration, start-up hooks, byte code, metadata and version control."""
        *folders, name = path.split("/")
        low = name.lower()
        suffix = Path(low).suffix
        parts = [part.lower() for part in (*folders, name)]
        rules = {
            "version_control": bool({".git", ".hg", ".svn"} & set(parts)) or low.startswith(".git"),
            "test_configuration": low in _CONFIGURATION,
            "start_up_hook": low in _START or suffix == ".pth",
            "byte_code": suffix in _COMPILED or "__pycache__" in folders,
            "metadata": any(part.endswith((".egg-info", ".dist-info")) for part in parts),
            "test": not ours and (bool(_TEST_FOLDERS & set(parts[:-1])) or bool(_TEST_FILE.fullmatch(low))),
        }
        return next((reason for reason, holds in rules.items() if holds), "")

    def shadows(self, path: str, environment: Path, roots: Sequence[str]) -> bool:
        """Whether the file or its top folder has the import name of a standard or an installed module."""
        if Path(path).suffix not in {".py", ".pyi", ""} and "/" not in path:
            return False
        names = {Path(path).stem} if "/" not in path else {path.partition("/")[0]}
        for root in roots:
            folder = root.strip("/") + "/"
            if root not in {".", ""} and path.startswith(folder):
                names.add(Path(path[len(folder) :].partition("/")[0]).stem)
        return bool(names & (_TESTING | sys.stdlib_module_names | _installed(environment)))

    def canaries(self, seed: str, beside: bytes) -> tuple[str, Canaries]:  # noqa: ARG002
        """Six tests that must fail, in different ways: by assertions, a missing exception, ``unittest``, a fixture."""
        rng = random.Random(seed)
        words = rng.sample(_WORDS, 6)
        number = rng.randrange(10, 10**6)
        text = (
            "import unittest\n\nimport pytest\n\n\n"
            f"def test_{words[0]}():\n    assert sum(range({number % 97 + 3})) == {number}.5\n\n\n"
            f"def test_{words[1]}():\n    with pytest.raises(ZeroDivisionError):\n        {number} / 7\n\n\n"
            f"class TestMore(unittest.TestCase):\n    def test_{words[2]}(self):\n"
            f"        self.assertEqual([{number}], [{number + 1}])\n\n\n"
            f"@pytest.fixture\ndef number():\n    raise LookupError({number})\n\n\n"
            f"def test_{words[3]}(number):\n    assert number\n\n\n"
            f'@pytest.mark.parametrize("value", [{number}])\ndef test_{words[4]}(value):\n    assert not value\n\n\n'
            f"def test_{words[5]}():\n    raise KeyError({number})\n"
        )
        tests = (
            f"test_{words[0]}", f"test_{words[1]}", f"TestMore::test_{words[2]}", f"test_{words[3]}",
            f"test_{words[4]}[{number}]", f"test_{words[5]}",
        )  # fmt: skip
        name = f"test_{rng.choice(_WORDS)}_{hashlib.sha256(seed.encode()).hexdigest()[:6]}.py"
        return name, Canaries(text=text, tests=tests)

    def failing_copies(self, *_: object) -> tuple[str, Canaries] | None:
        """No test is copied: recorded calls and lifted tests are judged outside."""
        return None

    def mirrored(self, source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:  # noqa: ARG002
        """The test file with wrong expectations."""
        return mirrored(source, functions)

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,  # noqa: ARG002
        *,
        inheriting: Mapping[str, Collection[str]] = NOTHING_INHERITED,
    ) -> LiftedTests | None:
        """See :meth:`excise.protocols.Grading.lifted`."""
        return lifted(source, functions, depending, inheriting)

    def reported(self, values: str) -> ReportedValues:
        """See :meth:`excise.protocols.Grading.reported`."""
        found = json.loads(values)
        nested = [[place, node] for place, node in found if place < 0]
        constant = len({str(node) for _, node in found}) == 1 and found[0][1][0] == "c"
        return ReportedValues(
            names=tuple(sorted(set(_names_in(found)))),
            nested=json.dumps(nested) if nested else "",
            telling=not constant,
        )

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> ForkServer:
        """See :meth:`excise.protocols.Grading.run_server`."""
        return _run_server(recipe, request)

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Run pytest as graders do; see :meth:`excise.protocols.Grading.run_graded`."""
        return _run_graded(session, recipe, request)

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
        """See :meth:`excise.protocols.Grading.record_calls`."""
        asked = recorded_calls.AskedRun(tuple(ids), timeout_s, start, executed)
        return recorded_calls.record(session, recipe, codebase, symbols, asked)

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
        """See :meth:`excise.protocols.Grading.watch_tests`."""
        asked = recorded_calls.AskedRun(tuple(ids), timeout_s, start, executed)
        return recorded_calls.watch(session, recipe, codebase, symbols, asked)

    def replay_server(self, recipe: Recipe, hash_seed: int) -> ForkServer:
        """See :meth:`excise.protocols.Grading.replay_server`."""
        return recorded_calls.replay_server(recipe, hash_seed)

    def replay_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        *,
        timeout_s: float,
        hash_seed: int = 0,
        later_s: float = 0.0,
        zone: str = "",
        alone: int | None = None,
    ) -> list[str]:
        """See :meth:`excise.protocols.Grading.replay_calls`."""
        asked = recorded_calls.AskedReplay(timeout_s, hash_seed=hash_seed, later_s=later_s, zone=zone, alone=alone)
        return recorded_calls.replay(session, recipe, recording, asked)

    def trace_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        new: int,
        timeout_s: float,
        alone: int = 0,
    ) -> list[tuple[str, frozenset[str]]]:
        """See :meth:`excise.protocols.Grading.trace_calls`."""
        asked = recorded_calls.AskedReplay(timeout_s, new=new, alone=alone)
        return recorded_calls.trace(session, recipe, recording, codebase, symbols, asked)

    def vary_calls(self, calls: Sequence[str], codebase: Codebase, removed: Sequence[str]) -> list[str]:
        """See :meth:`excise.protocols.Grading.vary_calls`."""
        parameters = added_arguments.parameters_of(codebase, removed)
        return varied_calls.varied(calls, parameters, values_of_code.values_of(codebase, removed))

    def added_argument(self, call: str) -> tuple[str, str]:
        """See :meth:`excise.protocols.Grading.added_argument`."""
        asked = compared_outcomes.parsed(call.encode())
        base = added_arguments.without_added(asked) if asked else {}
        return str(asked.get("added") or ""), added_arguments.canonical(base)

    def called(self, call: str) -> str:
        """See :meth:`excise.protocols.Grading.called`."""
        asked = compared_outcomes.parsed(call.encode())
        name = str(asked.get("name")).partition(":")[2].replace("()", "")  # which stand behind a call's result
        return f"{name}.__init__" if asked.get("kind") == "class" else name

    def arguments_given(self, call: str) -> str:
        """See :meth:`excise.protocols.Grading.arguments_given`."""
        asked = compared_outcomes.parsed(call.encode())
        names = sorted(str(key) for key, _ in asked.get("kwargs", ()))
        return " ".join([str(len(asked.get("args", ()))), *names])

    def is_result(self, outcome: str) -> bool:
        """See :meth:`excise.protocols.Grading.is_result`."""
        return "result" in compared_outcomes.parsed(outcome.encode())

    def texts_in(self, outcome: str) -> frozenset[str]:
        """See :meth:`excise.protocols.Grading.texts_in`."""
        return compared_outcomes.texts_in(compared_outcomes.parsed(outcome.encode()))

    def has_few_in_order(self, outcome: str) -> bool:
        """See :meth:`excise.protocols.Grading.has_few_in_order`."""
        return compared_outcomes.has_few_in_order(compared_outcomes.parsed(outcome.encode()))

    def is_compared_whole(self, outcome: str) -> bool:
        """See :meth:`excise.protocols.Grading.is_compared_whole`."""
        return compared_outcomes.is_compared_whole(outcome)

    def told_outcome(self, call: str, outcome: str) -> str:
        """See :meth:`excise.protocols.Grading.told_outcome`."""
        return call_examples.told_outcome(call, outcome)

    def example(self, call: str, outcome: str) -> str:
        """See :meth:`excise.protocols.Grading.example`."""
        return call_examples.example(call, outcome)

    def distinguish_from_stub(self, recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
        """See :meth:`excise.protocols.Grading.distinguish_from_stub`."""
        return compared_outcomes.distinguish_from_stub(recorded, stub)

    def same_result(self, first: str, second: str) -> bool:
        """See :meth:`excise.protocols.Grading.same_result`."""
        return compared_outcomes.same_result(first, second)

    def same_outcome(self, expected: str, found: str, statement: str | None = None) -> bool:
        """See :meth:`excise.protocols.Grading.same_outcome`."""
        return compared_outcomes.same_outcome(expected, found, statement)


def _run_server(recipe: Recipe, request: GradedRunRequest) -> ForkServer:
    """The command of forked graded runs: byte code is read where a sandbox has it, and never written."""
    judges = request.lifted is not None and request.lifted.seen is not None
    command = (_PYTHON, _FORKED_SUPERVISOR, "judge" if judges else "observe")
    variables = {"PYTHONPYCACHEPREFIX": "/excise/outputs", "PYTHONDONTWRITEBYTECODE": "1", **dict(recipe.env)}
    return ForkServer(argv=command, env=variables)


def _run_graded(session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
    """Start the supervisor in the sandbox and accept only its signed report."""
    key = secrets.token_hex(32)
    body = {
        "key": key,
        "python": _PYTHON,
        "root": "/testbed",
        "args": list(recipe.test_args),
        "ids": list(request.ids),
        "canaries": dict(request.canaries),
        "sealed": dict(request.sealed),
        "lifted": _lifted_run(request.lifted),
        "ini": request.mode.options["ini"],
        "plugins": request.mode.options["plugins"].splitlines(),
        "safe_path": request.mode.strict,
        "timeout_s": request.timeout_s,
        "test_timeout_s": request.test_timeout_s,
    }
    server = _run_server(recipe, request)
    command = server.argv if session.forks else [_PYTHON, "-I", "-S", _SUPERVISOR]
    stdin = json.dumps(body).encode()
    done = session.exec(command, timeout_s=request.timeout_s + 60, stdin=stdin, env=server.env)
    report = signed_report(done.stdout, key)
    is_complete = report is not None and report.get("code") in COMPLETE
    run = graded_results(done, report, (*request.ids, *request.canaries), is_complete=is_complete)
    report = report or {}
    return GradedRun(
        run=run,
        changed=tuple(str(name)[:200] for name in report.get("changed", ())[:100]),
        seen={test: json.dumps(values) for test, values in report.get("seen", {}).items()},
        numbered=report.get("numbered", {}),
    )


def _names_of(symbol: str) -> Iterator[str]:
    """Names of the class or module of which a removed symbol is, or makes, the objects.

    A method that makes none is no reason: its class stays, and objects are compared as the class does it.
    """
    path, _, qualname = symbol.partition("::")
    owner, _, name = qualname.rpartition(".")
    module = PurePosixPath(path)
    if not qualname:
        yield module.parent.name if module.stem == "__init__" else module.stem
    elif name in _MAKING:
        yield from owner.split(".")
    else:
        yield name


def _names_in(node: object, *, within: bool = False) -> Iterator[str]:
    """Names of the classes and functions in the objects of an encoded value; ``within`` an object."""
    if not isinstance(node, list):
        return
    tag = node[0] if node and isinstance(node[0], str) else ""
    if tag == "type" and within:
        yield str(node[1][0])
    elif tag in {"obj", "ref", "nt"}:
        yield str(node[1])
    for part in node:
        yield from _names_in(part, within=within or tag == "obj")


def _lifted_run(asked: LiftedRun | None) -> dict[str, Any] | None:
    """A run of lifted tests as the worker reads it."""
    if asked is None:
        return None
    seen = None if asked.seen is None else {test: json.loads(values) for test, values in asked.seen.items()}
    names = {name for symbol in asked.removed for name in _names_of(symbol)}
    return {
        "functions": list(asked.functions),
        "removed": sorted(names),
        "seen": seen,
        "names": {test: known.names for test, known in asked.originals.items()},
        "nested": {test: json.loads(known.nested) for test, known in asked.originals.items() if known.nested},
    }


def _configuration(root: Path) -> str:
    """Path inside the sandbox of the configuration file that pytest reads in the untouched sources."""
    for name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if (root / name).is_file():
            return f"/testbed/{name}"
    if (root / "pyproject.toml").is_file():
        try:
            tool = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
        except (ValueError, OSError):
            tool = {}
        if isinstance(tool, dict) and "pytest" in tool:
            return "/testbed/pyproject.toml"
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string((root / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        if parser.has_section(section):
            return f"/testbed/{name}"
    return "/dev/null"


def _packages(environment: Path) -> list[Path]:
    return [*environment.glob("lib/python*/site-packages"), *environment.glob("lib64/python*/site-packages")]


@lru_cache(maxsize=64)
def _plugins(environment: Path) -> tuple[str, ...]:
    """Names of the pytest plugins that the environment registers, without those that change the order of tests."""
    names: set[str] = set()
    for folder in _packages(environment):
        for file in folder.glob("*.dist-info/entry_points.txt"):
            parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
            parser.optionxform = str  # type: ignore[assignment,method-assign]
            try:
                parser.read_string(file.read_text(encoding="utf-8"))
            except (OSError, ValueError, configparser.Error):
                continue
            if parser.has_section("pytest11"):
                names |= set(parser.options("pytest11"))
    return tuple(sorted(names - {"randomly", "xdist", "xdist.looponfail"}))


@lru_cache(maxsize=64)
def _installed(environment: Path) -> frozenset[str]:
    """Top-level import names of the packages in the environment."""
    entries = [entry for folder in _packages(environment) for entry in folder.iterdir()]
    found = {entry.name.partition(".")[0] for entry in entries if entry.is_dir() or entry.suffix in {".py", ".so"}}
    return frozenset(name for name in found if name.isidentifier() and not name.startswith("__"))
