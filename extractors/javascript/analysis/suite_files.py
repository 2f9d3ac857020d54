"""Distinguishes test files from library code by what ran as a test, and by names of files and folders."""

from __future__ import annotations

import re

_FOLDERS = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "specs", "testing", "fixtures"})
_FILE = re.compile(
    r".*[.\-_](test|tests|spec|test-d|tst)\.[cm]?[jt]sx?|(test|tests|spec)\.[cm]?[jt]sx?|test[.\-_].*\.[cm]?[jt]sx?"
)


def is_test_file(path: str) -> bool:
    """Whether a file belongs to the tests by its name or folder."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _FILE.fullmatch(name) is not None
