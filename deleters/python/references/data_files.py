"""Files that only removed code read: data and templates of the sources, and of hidden tests.

A file is used by code that has its name in it, without folders. Tests may make it of a part: ``test_colors`` may read
``colors.json`` by its own name, and another one ``"red" + suffix``. It goes if no code that stays has the name or such
a part, and no other file; one of the sources only if a statement can show what was in it: nobody could guess that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from weakref import WeakKeyDictionary

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import source_left
from excise.extractors.other_files import FILE_NAME
from excise.extractors.python.analysis.codebase import PythonCodebase

MAX_SHOWN = 2000
"""Number of characters of a source file above which it stays: a statement does not show it."""
MAX_OF_TESTS = 200_000
"""Number of bytes of a test's file above which it stays: it would be in the task's patch."""
MIN_STEM = 3
"""Number of characters of a file's name without suffix below which texts mean something else."""
_GENERAL = frozenset({
    b"README", b"LICENSE", b"COPYING", b"NOTICE", b"AUTHORS", b"CHANGELOG", b"Makefile", b"Dockerfile", b"requirements",
    b"setup", b"pyproject", b"pytest", b"tox", b"noxfile", b"conftest", b"index", b"config", b"data",
})  # fmt: skip
"""Names of files, without suffixes, that words of tests hardly mean."""
_WORD = re.compile(rb"[\"']([\w\-]+)[\"']")
_BEGINNING = re.compile(rb"[\"'/]([\w\-]{2,60})[{%]|[\"'/]([\w\-]{2,60})[\"'] *[+%]")
"""How names of files begin that are made of a part: in a text with a place for the rest, or one that is added to."""
_TEST_NAME = re.compile(rb"\btest_\w+")
_LISTING = re.compile(rb"\b(?:i?glob|rglob|listdir|iterdir|scandir|walk|copytree|datafiles)\b")
"""How code finds the files of a folder."""
_DOCUMENTS = (".md", ".rst", ".txt", ".adoc")
_LISTS = frozenset({"SOURCES.txt", "RECORD", "MANIFEST", "MANIFEST.in"})
"""Files that list all files: they use none."""


def remove_unused_files(remover: DependentRemover, *, of_tests: bool) -> None:
    """Plan the removal of the files that only removed code of the sources, or of the tests, read."""
    codebase, others = remover.codebase, remover.codebase.others
    by_parts = _made_of_parts(remover) if of_tests else set()
    for name in sorted(_names_lost(remover, of_tests=of_tests) | by_parts):
        paths = [path for path in others.by_name.get(name, ()) if path not in remover.other_files]
        if len(paths) != 1 or codebase.is_test(paths[0]) is not of_tests or _is_named(remover, name, paths[0]):
            continue
        data = others.read(paths[0])
        is_shown = b"```" not in data and _is_packaged(codebase, paths[0])
        if _is_text(data, MAX_OF_TESTS if of_tests else MAX_SHOWN) and (of_tests or is_shown):
            remover.other_files[paths[0]] = data
    if not of_tests:
        for path, plan in sorted(remover.plans.items()):
            signatures = f"{path}i"  # for type checkers
            if plan.deleted and path.endswith(".py") and _is_text(others.read(signatures), MAX_OF_TESTS):
                remover.other_files[signatures] = others.read(signatures)


def remove_text_of_tests(remover: DependentRemover, path: str) -> bool:
    """Plan the removal of a text file of the tests; whether it can go, as no code that stays has its name."""
    data, name = remover.codebase.others.read(path), path.rpartition("/")[2].encode()
    naming = (name in _names_left(remover, each) for each in _modules_naming(remover.codebase, name))
    if _is_text(data, MAX_OF_TESTS) and not any(naming):
        remover.other_files[path] = data
    return path in remover.other_files


def _names_lost(remover: DependentRemover, *, of_tests: bool) -> set[bytes]:
    """Names of files that stand, in quotes, in the removed code of some file, and no longer in what is left of it; of
    tests those alone that no test that stays may make of a part."""
    known = remover.codebase.others.by_name.keys()
    found: set[bytes] = set()
    for path, plan in remover.plans.items():
        if remover.codebase.is_test(path) is of_tests and plan.is_changed:
            lost = (set(FILE_NAME.findall(plan.source)) - _names_left(remover, path)) & known
            found |= {name for name in lost if re.search(rb"[\"'/\\]" + re.escape(name) + rb"[\"']", plan.source)}
    return found - _made_by_others(remover, found) if of_tests and found else found


def _made_of_parts(remover: DependentRemover) -> set[bytes]:
    """Names of files that hidden tests make of a part, and no test that stays, if none lists the files of a folder."""
    codebase = remover.codebase
    changed = [path for path, plan in remover.plans.items() if codebase.is_test(path) and plan.is_changed]
    stems = {stem for path in changed for stem in _stems(codebase.modules[path].source)}
    known = {name for name in codebase.others.by_name if _stem(name) in stems - _GENERAL}
    if not known or any(_LISTING.search(_left(remover, path)) for path in _test_modules(remover)):
        return set()
    return known - _made_by_others(remover, known)


def _made_by_others(remover: DependentRemover, names: Collection[bytes]) -> set[bytes]:
    """Those of the names of files that a test which stays may make of a part: the name without suffix, or how it
    begins."""
    texts = [_left(remover, path) for path in _test_modules(remover)]
    stems = {stem for text in texts for stem in _stems(text)}
    beginnings = tuple({begin for text in texts for pair in _BEGINNING.findall(text) for begin in pair if begin})
    return {name for name in names if _stem(name) in stems or name.startswith(beginnings)}


def _stem(name: bytes) -> bytes:
    """The part of a file's name that tests may make it of: ``colors`` of ``colors.json``, and the name of a test in
    ``tests.test_shop.test_colors[red].json``."""
    parts = re.sub(rb"\[.*\]", b"", name).split(b".")
    is_whole = len(parts) > 3 and parts[-2].startswith(b"test_") and parts[-3].lower().startswith(b"test")
    return parts[-2] if is_whole else parts[0]


def _stems(source: bytes) -> set[bytes]:
    """What test code may make names of files of: texts that are a word, and names of tests and parts of them."""
    texts = set(_WORD.findall(source))
    for name in _TEST_NAME.findall(source):
        parts = name.split(b"_")
        texts |= {b"_".join(parts[first:]) for first in range(len(parts))}
    return {text for text in texts if len(text) >= MIN_STEM}


def _test_modules(remover: DependentRemover) -> Iterator[str]:
    return (path for path in remover.codebase.modules if remover.codebase.is_test(path))


def _left(remover: DependentRemover, path: str) -> bytes:
    return source_left(remover.codebase, remover.plans, path)


def _names_left(remover: DependentRemover, path: str) -> set[bytes]:
    return set(FILE_NAME.findall(_left(remover, path)))


def _is_named(remover: DependentRemover, name: bytes, own: str) -> bool:
    """Whether code that stays, or another file, has the name of the file ``own`` in it."""
    naming = remover.codebase.others.naming.get(name, frozenset()) - remover.other_files.keys()
    is_of_tests = remover.codebase.is_test(own)  # documents tell of those, and read none
    if any(path != own and not _uses_none(path, is_of_tests=is_of_tests) for path in naming):
        return True
    return any(name in _names_left(remover, path) for path in _modules_naming(remover.codebase, name))


def _uses_none(path: str, *, is_of_tests: bool) -> bool:
    """Whether a file that has the name of another one does not read it."""
    return path.rpartition("/")[2] in _LISTS or (is_of_tests and path.endswith(_DOCUMENTS))


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
