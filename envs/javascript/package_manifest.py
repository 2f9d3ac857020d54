"""What a JavaScript project's manifest and files say about its environment: test files, and packages that they need."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.envs.javascript.lock_files import locked_versions
from excise.envs.javascript.test_command import RUNNERS, TYPED, named_packages, read_test_command
from excise.errors import EnvironmentFailure

MANIFEST = "package.json"
SUFFIXES = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx")
_MAX_FILES = 5000
"""Maximum number of files that are read."""
_MAX_BYTES = 2 << 20
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
_TEST_FILE = re.compile(
    r".*[.\-_](test|tests|spec)\.[cm]?[jt]sx?|(test|tests|spec)\.[cm]?[jt]sx?|test[.\-_].*\.[cm]?[jt]sx?"
)
_LEFT_OUT = frozenset({"node_modules", "fixtures", "dist", "build", "coverage", ".git", "bench", "benchmark",
                       "benchmarks", "example", "examples"})  # fmt: skip
_MODULE = r"""\(?\s*(['"])([^'"\n]+)\1"""
_IMPORT = re.compile(rf"""(?:\brequire\s*\(|\bimport\s*\(|\bfrom\b|\bimport\b|\brequire\.resolve\s*\()\s*{_MODULE}""")
_TEST_CALL = re.compile(r"\b(?:test|it|describe|suite|tape|tap)\b[\w.]*\s*\(")
_TAP_CALL = re.compile(
    r"""\b(?:(?:const|let|var)\s+(\w+)\s*=\s*require\(\s*|import\s+(\w+)\s+from\s*)['"]tap['"](?s:.*)\b(?:\1|\2)\.\w+\("""
)
"""An assertion outside of tests, by what tap itself is."""
_OWN_RUNNERS = frozenset({"tape", "tap", "node:test"})
"""Modules of test runners that a test file itself starts."""
FIRST_TAP = 10
"""The first major version of tap whose tests can be followed."""
_SETUP = re.compile(r"(^|/)((jest|vitest|vite|babel)\.config|[\w.-]*setup[\w.-]*)\.[cm]?[jt]sx?$")
"""Files that a test runner loads by its configuration."""
_NAME = re.compile(r"(@[\w.~-]+/)?[A-Za-z0-9._~-]+")
_BELOW = re.compile(r"<(=?)\s*v?(\d+)((?:\.\d+)*)")
_MAJOR = re.compile(r"(?<![\w.-])[v^~=]*(\d+)")
_RANGE = re.compile(r"[\w.\-+^~<>=*| ]*")
_BUILTIN = frozenset(
    {"assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
     "diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net",
     "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder",
     "sys", "timers", "tls", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    """What a project needs to run its tests."""

    name: str
    """Name of the package."""
    tests: tuple[str, ...]
    """Files that are run as tests."""
    options: tuple[str, ...] = ()
    """How they are run: words of ``Recipe.test_args``."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Names of packages to install, to the versions that the manifest admits."""
    evidence: tuple[str, ...] = ()
    """Why, one line per decision."""


def read_project(root: Path) -> ProjectFiles:
    """Read the manifest and the imports of the project's files. Raises :class:`EnvironmentFailure` (``no_tests``)."""
    manifest = _manifest(root)
    texts = dict(_texts(root))
    calls = (_TEST_CALL, _TAP_CALL)
    tests = tuple(path for path, text in texts.items() if _is_test(path) and any(c.search(text) for c in calls))
    if not tests:
        raise EnvironmentFailure(f"No test file was found below {', '.join(sorted(_TEST_FOLDERS))}.", reason="no_tests")
    main = posixpath.normpath(str(manifest.get("main") or "index"))
    known = {path: frozenset(_imports(text)) for path, text in texts.items()}
    command = read_test_command(manifest, [*texts, *(path.name for path in root.iterdir())])
    own = {path for path in tests if _OWN_RUNNERS & _reached(path, known, main, own=True)}
    runnable = tuple(path for path in tests if path in own or command.runner)
    if not runnable:
        raise EnvironmentFailure(
            f"None of {len(tests)} test files is run by {', '.join(sorted({*_OWN_RUNNERS, *RUNNERS}))}: no other test "
            "runner of JavaScript is supported.",
            reason="unknown_test_runner",
        )
    if any(path.endswith(TYPED) for path in runnable) or _reaches_typed(runnable, known):
        command = command.for_typescript(manifest)
    roots = {*runnable, *(path for path in known if _SETUP.search(path))}
    needed = {_package(module) for module in frozenset().union(*(_reached(path, known, main) for path in roots))}
    name = str(manifest.get("name", ""))
    packages, evidence = _packages(manifest, needed | named_packages(root, manifest, command), name)
    locked, lock_file = locked_versions(root, packages)
    packages |= {package: _followed(package, version) for package, version in locked.items()}
    evidence += tuple(f"{lock_file}: {package}@{version}" for package, version in sorted(locked.items()))
    for package in command.packages:
        if package != name and package not in packages:
            packages[package] = "*"
            evidence = (*evidence, f"{command.evidence}: {package}")
    return ProjectFiles(
        name=name,
        tests=runnable,
        options=command.options if len(own) < len(runnable) or command.arguments else (),
        packages=dict(sorted(packages.items())),
        evidence=evidence,
    )


def _reaches_typed(tests: Iterable[str], known: Mapping[str, frozenset[str]]) -> bool:
    """Whether a test imports a file in TypeScript, or one that only TypeScript has under this name."""
    for path in tests:
        for module in known[path]:
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module)) if module[:1] == "." else ""
            plain = re.sub(r"\.[cm]?js$", "", base)
            ends = ("", ".ts", ".tsx", ".mts", "/index.ts")
            if base and base not in known and any(f"{plain}{end}" in known for end in ends if f"{plain}{end}" != base):
                return True
            if base in known and base.endswith(TYPED):
                return True
    return False


def _packages(manifest: Mapping[str, Any], imported: set[str], name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """All dependencies, and those for development that sources or tests import."""
    found: dict[str, str] = {}
    evidence = []
    for table in ("devDependencies", "peerDependencies", "optionalDependencies", "dependencies"):
        for package, wanted in _table(manifest, table).items():
            if table != "dependencies" and package not in imported:
                continue
            if package == name or not _NAME.fullmatch(package):
                continue
            found[package] = _followed(package, wanted) if _RANGE.fullmatch(wanted) else "*"
            evidence.append(f"{MANIFEST}: {package}@{wanted} of {table}")
    return dict(sorted(found.items())), tuple(evidence)


def _followed(package: str, wanted: str) -> str:
    """The range of a package; of a tap whose tests cannot be followed, that of the last one with all of its words."""
    return "^14.11.0" if package == "tap" and _newest_major(wanted) < FIRST_TAP else wanted


def _newest_major(wanted: str) -> float:
    """The newest major version that a range admits."""
    newest: list[float] = []
    for part in wanted.split("||"):
        if below := _BELOW.findall(part):
            limits = ((int(major), equal or int(rest.replace(".", "") or 0)) for equal, major, rest in below)
            newest.append(min(major if is_in else major - 1 for major, is_in in limits))
        else:
            majors = [] if ">" in part else [float(major) for major in _MAJOR.findall(part)]
            newest.append(max(majors, default=math.inf))
    return max(newest)


def _table(manifest: Mapping[str, Any], name: str) -> dict[str, str]:
    table = manifest.get(name)
    return {str(k): str(v) for k, v in table.items()} if isinstance(table, dict) else {}


def _manifest(root: Path) -> dict[str, Any]:
    try:
        found = json.loads((root / MANIFEST).read_text(encoding="utf-8-sig"))
    except OSError:
        raise EnvironmentFailure(f"There is no {MANIFEST} in the main folder.", reason="no_manifest") from None
    except ValueError as error:
        raise EnvironmentFailure(f"{MANIFEST} cannot be read: {error}", reason="no_manifest") from None
    return found if isinstance(found, dict) else {}


def _texts(root: Path) -> Iterable[tuple[str, str]]:
    count = 0
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.suffix not in SUFFIXES or not _LEFT_OUT.isdisjoint(relative.parts[:-1]):
            continue
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_BYTES:
            continue
        count += 1
        if count > _MAX_FILES:
            return
        yield relative.as_posix(), path.read_text(encoding="utf-8", errors="replace")


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_FILE.fullmatch(name) is not None


def _imports(text: str) -> Iterable[str]:
    return (match[2] for match in _IMPORT.finditer(text))


def _reached(path: str, known: Mapping[str, frozenset[str]], main: str, *, own: bool = False) -> frozenset[str]:
    """Modules outside the project that a file and the files that it imports name; ``own``: the file alone.

    ``main`` is the file that the package itself stands for.
    """
    found: set[str] = set()
    done: set[str] = set()
    queue = [path]
    while queue:
        current = queue.pop()
        if current in done:
            continue
        done.add(current)
        for module in known.get(current, ()):
            if not module.startswith("."):
                found.add("node:test" if module == "test" else module)
                continue
            base = posixpath.normpath(posixpath.join(posixpath.dirname(current), module))
            ends = ("", *SUFFIXES, *(f"/index{suffix}" for suffix in SUFFIXES))
            if not own:
                base = main if base == "." else base
                plain = re.sub(r"\.[cm]?js$", "", base)
                queue += [f"{each}{end}" for each in {base, plain} for end in ends if f"{each}{end}" in known]
    return frozenset(found)


def _package(module: str) -> str:
    """The package that a module belongs to; empty for modules of node."""
    if module.startswith("node:") or module.partition("/")[0] in _BUILTIN:
        return ""
    return "/".join(module.split("/")[: 2 if module.startswith("@") else 1])
