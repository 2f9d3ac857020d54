"""Strategies for files that tools leave: caches of checkers and test runners, databases, pickles, editor backups."""

from __future__ import annotations

import os
import re
import zlib

from excise.verifiers.recovery.inside.code_search import CodeSearch, printable_strings

CACHES = frozenset(
    (
        ".mypy_cache", ".dmypy.json", ".pytest_cache", ".ruff_cache", ".pytype", ".pyre", ".hypothesis", ".tox", ".nox",
        ".eggs", ".cache", ".ipynb_checkpoints", "jedi", "parso", "htmlcov", "node_modules", ".gradle", "doctrees",
        ".doctrees", "_build", "build", "dist", "target", ".idea", ".vscode", ".pylint.d", "pylint", "__pypackages__",
        ".jedi", ".ropeproject", "pip", "uv", ".venv", "venv", "site", ".import_linter_cache", ".benchmarks",
    )
)  # fmt: skip
LEFTOVERS = (
    ".orig", ".rej", ".bak", ".old", ".swp", ".swo", ".swn", ".un~", ".save", "~", ",cover", ".cover", ".tmp", ".patch",
    ".diff", ".mine", ".BASE", ".LOCAL", ".REMOTE", ".BACKUP", ".autosave",
)  # fmt: skip


class ToolCaches:
    """Searches cache folders of development tools."""

    name = "tool_caches"
    looks_at = "caches of type checkers, linters, test runners, builders and documentation tools"

    def run(self, search: CodeSearch) -> None:
        for path, data in search.untracked_files():
            if CACHES & set(path.split("/")) and search.contains_name(data):
                binary = b"\0" in data[:4096]
                search.report_definitions(path, printable_strings(data) if binary else data, whole=True)


class Databases:
    """Searches SQLite files: rows of every table, and free pages, which may hold deleted rows."""

    name = "databases"
    looks_at = "rows and free pages of SQLite files (mypy, coverage, browsers of code)"

    def run(self, search: CodeSearch) -> None:
        for path, size in search.files():
            if size > 64 << 20 or path in search.tracked() or "/.git/" in path:
                continue
            head = search.read(path, 16) if size > 512 and not path.endswith((".py", ".pyc", ".so", ".h")) else b""
            if head != b"SQLite format 3\0":
                continue
            for row in rows(path):
                data = unpacked(row)
                if search.contains_name(data):
                    search.report_definitions(path, printable_strings(data) if b"\0" in data else data, whole=True)
            free = search.read(path, 64 << 20)
            if search.contains_name(free):
                search.report_definitions(f"{path}: pages", printable_strings(free), whole=True)


def rows(path: str) -> list[bytes]:
    """All text and bytes values in a database."""
    import sqlite3  # only now, since it takes longer than most strategies; so do the other imports in functions

    found: list[bytes] = []
    try:
        with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as base:
            base.text_factory = bytes
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables[:50]:
                quoted = table.decode("utf-8", "replace").replace('"', '""')
                for row in base.execute(f'SELECT * FROM "{quoted}" LIMIT 20000'):
                    found += [value for value in row if isinstance(value, bytes) and len(value) > 8]
    except sqlite3.Error:
        pass
    return found


def unpacked(data: bytes) -> bytes:
    if data[:1] == b"\x78":
        try:
            return zlib.decompressobj().decompress(data, 8 << 20)
        except zlib.error:
            pass
    return data


class Pickles:
    """Searches the strings of pickles, without loading them."""

    name = "pickles"
    looks_at = "strings in pickles (jedi, sphinx, cloudpickle)"

    def run(self, search: CodeSearch) -> None:
        for path, data in search.untracked_files():
            if not (
                data[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05") or path.endswith((".pkl", ".pickle"))
            ):
                continue
            import pickletools

            strings = []
            try:
                for _, argument, _ in pickletools.genops(data):
                    if isinstance(argument, str):
                        strings.append(argument)
                    elif isinstance(argument, bytes):
                        strings.append(argument.decode("utf-8", "replace"))
            except Exception:  # a damaged pickle: strings read before the damage are kept
                pass
            search.report_definitions(path, "\n".join(strings), whole=True)


class EditorLeftovers:
    """Searches backups, swap files, rejected hunks and annotated copies, on the whole machine."""

    name = "editor_leftovers"
    looks_at = "backups, swap and undo files, merge leftovers, annotated copies"

    def run(self, search: CodeSearch) -> None:
        for path, size in search.files():
            name = os.path.basename(path)
            hit = name.endswith(LEFTOVERS) or (name[:1] == "#" and name[-1:] == "#") or ".py." in name
            if hit and size <= 8 << 20 and path not in search.tracked() and "/.git/" not in path:
                data = search.read(path)
                text = printable_strings(data, 1) if b"\0" in data else data.decode("utf-8", "replace")
                search.report_definitions(path, re.sub(r"(?m)^[>!-] (?=[ \w@])", "", text), whole=True)


class TestLeftovers:
    """Searches what test runs leave: failures with source lines, coverage reports, logs, snapshots."""

    name = "test_leftovers"
    looks_at = "reports, logs, tracebacks and coverage data of test runs"

    def run(self, search: CodeSearch) -> None:
        likely = re.compile(
            r"coverage|lcov|junit|report|\.log$|\.xml$|\.out$|nohup|traceback|crash|core\b|\.prof", re.I
        )
        for path, data in search.untracked_files():
            if likely.search(os.path.basename(path)) and search.contains_name(data):
                text = printable_strings(data) if b"\0" in data[:4096] else data.decode("utf-8", "replace")
                search.report_definitions(path, re.sub(r"(?m)^[>E]? {3}", "", text), whole=True)
