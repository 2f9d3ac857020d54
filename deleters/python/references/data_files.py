"""Files that only removed code read: data and templates of the sources, and of hidden tests.

A file is used by code that has its name in it, without folders. Tests may make it of a part: ``test_colors`` may read
``colors.json`` by its own name, and another one ``"red" + suffix``. It goes if no code that stays has the name or such
a part, and no other file; one of the sources only if a statement can show what was in it: nobody could guess that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.extractors.other_files import FILE_NAME
from excise.extractors.python.analysis.codebase import PythonCodebase

MAX_SHOWN = 2000
"""Number of characters of a source file above which it stays: a statement does not show it."""
MAX_OF_TESTS = 200_000
"""Number of bytes of a test's file above which it stays: it would be in the task's patch."""
MIN_STEM = 3
"""Number of characters of a file's name without suffix below which texts mean something else."""
_WORD = re.compile(rb"[\"']([\w\-]+)[\"']")
_TEST_NAME = re.compile(rb"\btest_\w+")
_LISTING = re.compile(rb"\b(?:i?glob|rglob|listdir|iterdir|scandir|walk)\(")
"""How code finds the files of a folder."""
_LISTS = frozenset({"SOURCES.txt", "RECORD", "MANIFEST", "MANIFEST.in"})
"""Files that list all files: they use none."""


def remove_unused_files(remover: DependentRemover, *, of_tests: bool) -> None:
    """Plan the removal of the files that only removed code of the sources, or of the tests, read."""
    codebase = remover.codebase
    for name in sorted(_names_lost(remover, of_tests=of_tests)):
        paths = [path for path in codebase.others.by_name.get(name, ()) if path not in remover.other_files]
        if len(paths) != 1 or codebase.is_test(paths[0]) is not of_tests or _is_named(remover, name, paths[0]):
            continue
        data = codebase.others.read(paths[0])
        is_shown = b"```" not in data and _is_packaged(codebase, paths[0])
        if _is_text(data, MAX_OF_TESTS if of_tests else MAX_SHOWN) and (of_tests or is_shown):
            remover.other_files[paths[0]] = data
    if not of_tests:
        for path, plan in sorted(remover.plans.items()):
            signatures = f"{path}i"  # for type checkers
            if plan.deleted and path.endswith(".py") and _is_text(codebase.others.read(signatures), MAX_OF_TESTS):
                remover.other_files[signatures] = codebase.others.read(signatures)


def _names_lost(remover: DependentRemover, *, of_tests: bool) -> set[bytes]:
    """Names of files that stand, in quotes, in the removed code of some file, and no longer in what is left of it.

    Those of tests may stand there without their suffixes, unless a test lists folders.
    """
    known = remover.codebase.others.by_name.keys()
    found: set[bytes] = set()
    for path, plan in remover.plans.items():
        if remover.codebase.is_test(path) is of_tests and plan.is_changed:
            left = _text_left(remover, path)
            lost = (set(FILE_NAME.findall(plan.source)) - set(FILE_NAME.findall(left))) & known
            found |= {name for name in lost if re.search(rb"[\"'/\\]" + re.escape(name) + rb"[\"']", plan.source)}
            if of_tests and (stems := _stems(plan.source) - _stems(left)):
                found |= {name for name in known if name.partition(b".")[0] in stems and _is_read_by_name(remover)}
    return found


def _is_read_by_name(remover: DependentRemover) -> bool:
    """Whether no test code that stays lists the files of a folder."""
    return not any(_LISTING.search(_text_left(remover, path)) for path in _test_modules(remover))


def _test_modules(remover: DependentRemover) -> Iterator[str]:
    return (path for path in remover.codebase.modules if remover.codebase.is_test(path))


def _stems(source: bytes) -> set[bytes]:
    """What test code may make names of files of: texts that are a word, and names of tests and parts of them."""
    texts = set(_WORD.findall(source))
    for name in _TEST_NAME.findall(source):
        parts = name.split(b"_")
        texts |= {b"_".join(parts[first:]) for first in range(1, len(parts))}
    return {text for text in texts if len(text) >= MIN_STEM}


def _text_left(remover: DependentRemover, path: str) -> bytes:
    plan = remover.plans.get(path)
    if plan is None:
        return remover.codebase.modules[path].source
    return b"" if plan.deleted else apply_edits(plan.source, plan.edits())


def _is_named(remover: DependentRemover, name: bytes, own: str) -> bool:
    """Whether code that stays, or another file, has the name of the file ``own`` in it."""
    naming = remover.codebase.others.naming.get(name, frozenset())
    if any(path != own and path.rpartition("/")[2] not in _LISTS for path in naming - remover.other_files.keys()):
        return True
    if any(name in FILE_NAME.findall(_text_left(remover, path)) for path in _modules_naming(remover.codebase, name)):
        return True
    stem = name.partition(b".")[0]
    is_of_tests = remover.codebase.is_test(own)
    return is_of_tests and any(stem in _stems(_text_left(remover, path)) for path in _test_modules(remover))


_INDICES: WeakKeyDictionary[PythonCodebase, dict[bytes, set[str]]] = WeakKeyDictionary()


def _modules_naming(codebase: PythonCodebase, name: bytes) -> Iterable[str]:
    """Paths of the Python files that have the name of a file in them."""
    if codebase not in _INDICES:
        index: dict[bytes, set[str]] = {}
        for path, module in codebase.modules.items():
            for each in set(FILE_NAME.findall(module.source)) & codebase.others.by_name.keys():
                index.setdefault(each, set()).add(path)
        _INDICES[codebase] = index
    return sorted(_INDICES[codebase].get(name, ()))


def _is_packaged(codebase: PythonCodebase, path: str) -> bool:
    """Whether a file is in the folder of a package, or below it."""
    return any(folder in codebase.names.packages for folder in _folders(path))


def _folders(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_text(data: bytes, longest: int) -> bool:
    if not data or len(data) > longest or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
