"""Files that only removed code read: data and templates of the sources, and of hidden tests.

A file is used by code that has its name in it, without folders, or in tests a name that ends with it without suffix:
``test_colors`` may read ``colors.json`` by its own name. It goes if no code has it that stays, and no other
file; one of the sources only if a statement can show what was in it, since nobody could guess that.
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
    """Names of files that stand, in quotes, in the removed code of some file, and no longer in what is left of it."""
    known = remover.codebase.others.by_name.keys()
    found: set[bytes] = set()
    for path, plan in remover.plans.items():
        if remover.codebase.is_test(path) is of_tests and plan.is_changed:
            lost = (set(FILE_NAME.findall(plan.source)) - _names_left(remover, path)) & known
            found |= {name for name in lost if re.search(rb"[\"'/\\\\]" + re.escape(name) + rb"[\"']", plan.source)}
    return found


def _names_left(remover: DependentRemover, path: str) -> set[bytes]:
    return set(FILE_NAME.findall(_text_left(remover, path)))


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
    stem = re.compile(rb"(?:_|[\"'])" + re.escape(name.partition(b".")[0]) + rb"(?:[\"']|\b)")
    return any(
        name in _names_left(remover, path)
        or (remover.codebase.is_test(path) and stem.search(_text_left(remover, path)) is not None)
        for path in _modules_naming(remover.codebase, name)
    )


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
