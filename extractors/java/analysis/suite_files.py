"""Which files of a Java project belong to its tests, as far as their paths tell."""

from __future__ import annotations

import re

SUFFIX = ".java"
_TEST_FOLDERS = frozenset({"test", "tests", "testfixtures", "testlib", "it", "jmh", "benchmark", "benchmarks"})
_MAIN_FOLDERS = frozenset({"main"})
_TEST_FILE = re.compile(r"(?:Test[A-Z]\w*|\w+Tests?|\w+TestCase|\w+IT)\.java")


def is_test_file(path: str) -> bool:
    """Whether a path is in a folder of tests, or its file has the name of a test.

    The folder of the sources (``src/main``, ``src/test``) decides before the packages below it.
    """
    *folders, name = path.split("/")
    for folder in folders:
        if folder.lower() in _MAIN_FOLDERS:
            return False
        if folder.lower() in _TEST_FOLDERS:
            return True
    return bool(_TEST_FILE.fullmatch(name))
