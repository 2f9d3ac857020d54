"""Distinguishes test files from library code by what pytest collected, by names, and by what files define."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from excise.extractors.python.analysis.name_resolution import Resolver
from excise.extractors.python.analysis.parsed_file import PythonModule

_FOLDERS = frozenset({"tests", "test", "_tests", "testsuite"})
"""Names of folders that hold tests at any level."""
_TOP_FOLDER = re.compile(r"tests?|_tests?|.*_tests?|test_.*|unittests?")
_FILE = re.compile(r"(test_.*|.*_tests?|tests?|conftest)\.py")
_HELPERS = re.compile(r"test(?:ing)?_?(?:utils?|helpers?|cases?|support|tools?|base)\.py")
"""Names of files with what tests share, if no library code imports them."""
_AMBIGUOUS = frozenset({"test.py", "tests.py"})
"""Names that may be library code in a package: ``werkzeug/test.py`` is a client, ``jinja2/tests.py`` has filters."""


def collected_from(tests: Iterable[str]) -> frozenset[str]:
    """The files of test ids, without those of doctests (``pkg/mod.py::pkg.mod.f``), which lie in library code."""
    parts = (test.partition("::") for test in tests)
    return frozenset(path for path, _, name in parts if "." not in name.partition("[")[0])


class SuiteFiles:
    """Classifies files as tests or library code; in doubt as tests, in which no feature is deleted."""

    def __init__(
        self,
        modules: Mapping[str, PythonModule],
        resolver: Resolver,
        collected: Iterable[str] = (),
        packages: Iterable[str] = (),
    ) -> None:
        self._modules, self._resolver = modules, resolver
        self.collected = frozenset(collected)
        self.packages = frozenset(packages)
        self._known: dict[str, bool] = {}

    def holds(self, path: str) -> bool:
        """Whether the file belongs to the tests."""
        if path not in self._known:
            self._known[path] = path in self.collected or self._looks_like_one(path)
        return self._known[path]

    def _looks_like_one(self, path: str) -> bool:
        *folders, name = path.split("/")
        if not _FOLDERS.isdisjoint(folders):
            return True
        if name in _AMBIGUOUS and not folders:
            return len(self._modules) > 1
        if name in _AMBIGUOUS and path in self._modules:
            return self._defines_tests(path) and path not in self._imported
        if _FILE.fullmatch(name):
            return True
        if _HELPERS.fullmatch(name) and path not in self._imported:
            return True
        return bool(folders and _TOP_FOLDER.fullmatch(folders[0])) and folders[0] not in self._libraries

    @cached_property
    def _libraries(self) -> frozenset[str]:
        """Installed packages whose names look like test folders but that are library code.

        These are packages without tests, and, if all installed packages have such names, those with few tests.
        """
        tops = {name.partition(".")[0] for name in self.packages}
        alone = all(_TOP_FOLDER.fullmatch(name) for name in tops)
        found = set()
        for top in tops:
            below = [p for p in self._modules if p.startswith(f"{top}/") and _FOLDERS.isdisjoint(p.split("/")[:-1])]
            tests = sum(path in self.collected or self._defines_tests(path) for path in below)
            if not tests or (alone and 2 * tests < len(below)):
                found.add(top)
        return frozenset(found)

    def _defines_tests(self, path: str) -> bool:
        """Whether the file defines functions or methods whose names begin with ``test``."""
        return any(s.is_callable and s.name.startswith("test") for s in self._modules[path].symbols)

    @cached_property
    def _imported(self) -> frozenset[str]:
        """Files that library code imports; these are library code, too."""
        found: set[str] = set()
        for path, module in self._modules.items():
            *folders, name = path.split("/")
            if _FOLDERS.isdisjoint(folders) and not _FILE.fullmatch(name):
                for record in module.imports:
                    source = self._resolver.module_of(path, record)
                    entity = self._resolver.imported(path, record) if record.name != "*" else None
                    found.update(e.path for e in (source, entity) if e is not None)
        return frozenset(found)
