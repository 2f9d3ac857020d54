"""Distinguishes test files from library code by what ran as a test, and by names of files and folders."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FOLDERS = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "specs", "testing", "fixtures"})
_FILE = re.compile(r".*[.\-_](test|tests|spec)\.(c|m)?js|(test|tests|spec)\.(c|m)?js|test[.\-_].*\.(c|m)?js")
_LEFT_OUT = frozenset({"node_modules", "fixtures", "dist", "build", "coverage"})
"""Folders in which no file is run as a test."""
_RUN = re.compile(r".*\.(c|m)?js")


def test_files(paths: Iterable[str], others: Iterable[str] = ()) -> tuple[str, ...]:
    """The files that are run as tests: those in folders for tests and those with names of tests.

    ``others`` are paths of files that no test is in, such as helpers.
    """
    left_out = frozenset(others)
    return tuple(path for path in sorted(paths) if _is_run(path) and path not in left_out)


def _is_run(path: str) -> bool:
    *folders, name = path.split("/")
    if not _RUN.fullmatch(name) or not _LEFT_OUT.isdisjoint(folders):
        return False
    return not _FOLDERS.isdisjoint(folders) or _FILE.fullmatch(name) is not None


def is_test_file(path: str) -> bool:
    """Whether a file belongs to the tests by its name or folder."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _FILE.fullmatch(name) is not None
