"""Which files belong to the tests: those that pytest collected from, and those that are called and made like tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from excise.extractors.python.analysis.name_resolution import Resolver
from excise.extractors.python.analysis.parsed_file import PythonModule

_FOLDERS = frozenset({"tests", "test", "_tests", "testsuite"})
"""Folders of tests, wherever they lie."""
_TOP_FOLDER = re.compile(r"tests?|_tests?|.*_tests?|test_.*|unittests?")
_FILE = re.compile(r"(test_.*|.*_tests?|tests?|conftest)\.py")
_EITHER = frozenset({"test.py", "tests.py"})
"""Inside a package these may be library code: ``werkzeug/test.py`` is a client, ``jinja2/tests.py`` holds filters."""


def collected_from(tests: Iterable[str]) -> frozenset[str]:
    """Files of test ids; examples in documentation (``pkg/mod.py::pkg.mod.f``) make no tests of the code around."""
    parts = (test.partition("::") for test in tests)
    return frozenset(path for path, _, name in parts if "." not in name.partition("[")[0])


class SuiteFiles:
    """Tells test files from library code. Where in doubt, a file is a test: what is hidden cannot leak."""

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
        if name in _EITHER and not folders:
            return len(self._modules) > 1
        if name in _EITHER and path in self._modules:
            return self._tests_in(path) and path not in self._imported
        if _FILE.fullmatch(name):
            return True
        return bool(folders and _TOP_FOLDER.fullmatch(folders[0])) and folders[0] not in self._libraries

    @cached_property
    def _libraries(self) -> frozenset[str]:
        """Installed packages that are called like tests: those without any, and the one that is all there is."""
        tops = {name.partition(".")[0] for name in self.packages}
        alone = all(_TOP_FOLDER.fullmatch(name) for name in tops)
        found = set()
        for top in tops:
            below = [p for p in self._modules if p.startswith(f"{top}/") and _FOLDERS.isdisjoint(p.split("/")[:-1])]
            tests = sum(path in self.collected or self._tests_in(path) for path in below)
            if not tests or (alone and 2 * tests < len(below)):
                found.add(top)
        return frozenset(found)

    def _tests_in(self, path: str) -> bool:
        """The file defines functions or methods that are called like tests, as pytest and unittest look for them."""
        return any(s.is_callable and s.name.startswith("test") for s in self._modules[path].symbols)

    @cached_property
    def _imported(self) -> frozenset[str]:
        """Files that library code imports; nothing imports tests but tests."""
        found: set[str] = set()
        for path, module in self._modules.items():
            *folders, name = path.split("/")
            if _FOLDERS.isdisjoint(folders) and not _FILE.fullmatch(name):
                for record in module.imports:
                    source = self._resolver.module_of(path, record)
                    entity = self._resolver.imported(path, record) if record.name != "*" else None
                    found.update(e.path for e in (source, entity) if e is not None)
        return frozenset(found)
