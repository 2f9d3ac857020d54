"""Finds a project's test files, and the imports, fixtures and markers that they use."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.envs.manifests.manifest import Manifest

DEFAULT_PATTERNS = ("test_*.py", "*_test.py")
"""pytest's default patterns for the names of test files."""
MAX_FILES = 3000
"""Maximum number of test files that are read."""

_NO_TEST_FOLDERS = frozenset(
    (
        *("doc", "docs", "example", "examples", "build", "dist", "node_modules", "bench", "benchmark", "benchmarks"),
        *("vendor", "third_party", "site-packages", "venv", "env"),
    )
)
_GUARD_EXCEPTIONS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUsage:
    """Names of modules, fixtures and markers that test files use."""

    __test__ = False

    imports: frozenset[str] = frozenset()
    """Dotted names of modules whose import must succeed."""
    optional: frozenset[str] = frozenset()
    """Top-level names of modules whose import may fail: inside ``try`` or ``if``, or by ``importorskip``."""
    fixtures: frozenset[str] = frozenset()
    """Parameters of test functions and fixtures that no file of the project defines as a fixture."""
    markers: frozenset[str] = frozenset()
    """Names of ``pytest.mark`` markers."""


def find_tests(root: Path, manifest: Manifest, called: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return (paths to pass to the runner, test files and conftests); both are empty if there are none.

    ``called`` are paths that the project's automation passes to the runner; they precede the configuration.
    """
    patterns = manifest.python_files or DEFAULT_PATTERNS
    configured = _configured_paths(root, called or manifest.testpaths)
    paths = configured or _conventional(root, patterns)
    below = [f for path in paths for f in _python_files(root / path)]
    files = [f for f in below if _matches(f, patterns) or f.name == "conftest.py"]
    conftests = [p for p in (root / "conftest.py",) if p.is_file()]
    if not configured and not any(_matches(f, patterns) for f in files):
        # tests under names that pytest does not collect by itself
        files = [f for f in below if _looks_like_tests(f)] or [
            f for f in _python_files_outside_docs(root) if _looks_like_tests(f)
        ]
        paths = [f.relative_to(root).as_posix() for f in files]
    return tuple(dict.fromkeys(paths)), tuple(dict.fromkeys([*conftests, *files]))[:MAX_FILES] if paths else ()


def scan_tests(files: Iterable[Path]) -> TestUsage:
    """Return the names that ``files`` use. Files that cannot be parsed are skipped."""
    found = _UsageVisitor()
    for path in files:
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        found.read(tree)
    return TestUsage(
        imports=frozenset(found.imports),
        optional=frozenset(found.optional),
        fixtures=frozenset(found.parameters - found.defined),
        markers=frozenset(found.markers),
    )


def _configured_paths(root: Path, patterns: Sequence[str]) -> list[str]:
    """Paths inside the tree that match the patterns; empty if the root is among them, which is pytest's default."""
    relative = [pattern.removeprefix("./").strip("/") for pattern in patterns]
    if any(pattern in ("", ".") for pattern in relative):
        return []
    found: list[str] = []
    for original, pattern in zip(patterns, relative, strict=True):
        if original.startswith("/") or ".." in Path(pattern).parts:
            continue
        try:
            found += [p.relative_to(root).as_posix() for p in sorted(root.glob(pattern)) if p.exists()]
        except (ValueError, IndexError, NotImplementedError):
            continue  # not a valid pattern
    return [] if "." in found else found


def _conventional(root: Path, patterns: tuple[str, ...]) -> list[str]:
    """``tests`` or ``test``, other top-level folders with test files, and test files in the root."""
    found = [name for name in ("tests", "test", "testing") if any(_python_files(root / name))]
    for entry in sorted(root.iterdir()):
        skipped = entry.name.startswith(".") or entry.name.lower() in _NO_TEST_FOLDERS or entry.name in found
        if entry.is_dir() and not skipped and any(_matches(f, patterns) for f in _python_files(entry)):
            found.append(entry.name)
    found += sorted(p.name for p in root.glob("*.py") if _matches(p, patterns))
    return found


def _python_files_outside_docs(root: Path) -> Iterator[Path]:
    """Python files except those in folders for documentation, examples and the like."""
    for entry in sorted(root.iterdir()):
        if entry.name.lower() not in _NO_TEST_FOLDERS and not entry.name.startswith("."):
            yield from (f for f in _python_files(entry) if f.suffix == ".py")


def _python_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        for entry in sorted(path.iterdir()):
            if (
                entry.is_dir()
                and not entry.is_symlink()
                and not entry.name.startswith(".")
                and entry.name != "__pycache__"
            ):
                if entry.name not in ("node_modules", "site-packages"):
                    yield from _python_files(entry)
            elif entry.suffix == ".py" and entry.is_file():
                yield entry


def _matches(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(path.name, pattern.rpartition("/")[2]) for pattern in patterns)


def _looks_like_tests(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    named = re.search(r"test", path.stem, re.IGNORECASE)
    return bool(named and re.search(r"^\s*(async )?def test|\(\s*(unittest\.)?TestCase\s*\)", text, re.MULTILINE))


class _UsageVisitor(ast.NodeVisitor):
    """Collects what test files use."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.optional: set[str] = set()
        self.parameters: set[str] = set()
        self.defined: set[str] = set()
        self.markers: set[str] = set()
        self._guarded = 0

    def read(self, tree: ast.Module) -> None:
        """Add what one file uses. A module whose import may fail somewhere in the file is optional in all of it."""
        one = _UsageVisitor()
        one.visit(tree)
        self.imports |= {name for name in one.imports if name.partition(".")[0] not in one.optional}
        self.optional |= one.optional
        self.parameters |= one.parameters
        self.defined |= one.defined
        self.markers |= one.markers

    def _module(self, name: str) -> None:
        (self.optional if self._guarded else self.imports).add(name.partition(".")[0] if self._guarded else name)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._module(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            self._module(node.module)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {n.id for h in node.handlers if h.type for n in ast.walk(h.type) if isinstance(n, ast.Name)}
        guards = bool(caught & _GUARD_EXCEPTIONS) or any(h.type is None for h in node.handlers)
        self._guarded += guards
        for part in (node.body, node.handlers, node.orelse, node.finalbody):
            for child in part:
                self.visit(child)
        self._guarded -= guards

    def visit_If(self, node: ast.If) -> None:
        # A conditional import may never run here: TYPE_CHECKING, versions, platforms.
        self._guarded += 1
        self.generic_visit(node)
        self._guarded -= 1

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = " ".join(ast.unparse(d) for d in node.decorator_list)
        is_fixture = "fixture" in decorators
        if is_fixture:
            self.defined.add(node.name)
        if is_fixture or node.name.startswith("test"):
            named = {*re.findall(r"\w+", decorators)}  # parametrize and mock.patch also name parameters
            self.parameters |= {a.arg for a in (*node.args.args, *node.args.kwonlyargs)} - named
        self.generic_visit(node)

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_Attribute(self, node: ast.Attribute) -> None:
        inner = node.value
        if isinstance(inner, ast.Attribute) and inner.attr == "mark":
            self.markers.add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "importorskip" and node.args and isinstance(node.args[0], ast.Constant):
            self.optional.add(str(node.args[0].value).partition(".")[0])
        self.generic_visit(node)
