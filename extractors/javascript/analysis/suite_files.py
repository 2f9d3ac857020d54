"""Distinguishes test files from library code by what ran as a test, and by names of files and folders."""

from __future__ import annotations

import re

SNAPSHOTS = "tap-snapshots"
"""The folder of what tests of tap compare with, as modules; other test runners have it in ``*.snap`` files."""
_FOLDERS = frozenset(
    {"test", "tests", "__tests__", "__mocks__", "spec", "specs", "testing", "fixtures", SNAPSHOTS, "__snapshots__"}
)
_FILE = re.compile(
    r".*[.\-_](test|tests|spec|test-d|tst)\.[cm]?[jt]sx?|(test|tests|spec)\.[cm]?[jt]sx?|test[.\-_].*\.[cm]?[jt]sx?"
)


def is_test_file(path: str) -> bool:
    """Whether a file belongs to the tests by its name or folder."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _FILE.fullmatch(name) is not None


_OWN = re.compile(rb"""(?:\brequire\(\s*|\bfrom\s*|\bimport\s*\(?\s*)['"](node:test|tape|tap|test)['"]""")
"""What a test file has that is run by tape, tap or node itself; others are run by the project's test runner."""


def runner_kind(source: bytes) -> str:
    """How a test file is run: ``tape``, ``tap``, ``node``, or ``other`` for the project's test runner."""
    found = _OWN.search(source)
    return "other" if found is None else found[1].decode() if found[1] in {b"tape", b"tap"} else "node"
