"""Watching what tests do with values that come from removed code: what is asked of the sandbox, and its answer.

The run itself is that of ``inside/excise_watch.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.removed_words import words_of
from excise.extractors.python.needs.supplied_words import Words
from excise.extractors.python.needs.test_uses import TestUses, Uses, literal_parts
from excise.types import Symbol, Watched

MAX_FUNCTIONS = 100
"""Maximum number of functions that stay whose use of removed objects is watched."""
MAX_WORDS = 2000
"""Maximum number of words of one kind and test that are read from a report."""
KINDS = frozenset(
    {
        "attributes", "settled", "shapes", "keys", "keywords", "texts", "expressions", "numbers", "exceptions",
        "patterns",
    }
)  # fmt: skip
"""Kinds of words in a report; see ``excise_watch.py``."""
_SET_UP_FILE = "conftest.py"


def watch_request(
    codebase: PythonCodebase, uses: TestUses, removed: Sequence[str], tests: Sequence[str], executed: Collection[str]
) -> dict[str, Any]:
    """What ``excise_watch.py`` has to know, but for the folder of the checkout and the import roots.

    ``executed`` are the symbols that the tests execute: of those that stay, the ones that may use removed objects are
    watched, too.
    """
    symbols = codebase.symbols()
    gone = [symbols[s] for s in removed if s in symbols]
    supplied = words_of(codebase, removed)
    files: dict[str, list[tuple[int, int]]] = {}
    whole = {path for path in codebase.modules if path.rpartition("/")[2] == _SET_UP_FILE}
    for function in dict.fromkeys(test.partition("[")[0] for test in tests):
        found = list(uses.functions_of(function))
        for path, first, last in found:
            files.setdefault(path, []).append((first, last))
        if not found:  # made by a function, or by a plugin
            whole.add(function.partition("::")[0])
    files |= {path: [(1, len(codebase.modules[path].source))] for path in whole if path in codebase.modules}
    for symbol in _using(codebase, supplied, gone, executed):
        files.setdefault(symbol.path, []).append((symbol.start_line, symbol.end_line))
    return {
        "files": {path: sorted(set(ranges)) for path, ranges in files.items()},
        "tests": [path for path in codebase.modules if codebase.is_test(path)],
        "spans": [(symbol.path, symbol.start_line, symbol.end_line) for symbol in gone],
    }


def _using(
    codebase: PythonCodebase, supplied: Sequence[Words], gone: Sequence[Symbol], executed: Collection[str]
) -> list[Symbol]:
    """Functions that stay and read attributes of names that removed code sets."""
    defined = {words.symbol.name for words in supplied}
    words = {word for each in supplied for word in each.attributes if word not in defined and not word.startswith("__")}
    if not words:
        return []
    pattern = re.compile(rf"\.\s*(?:{'|'.join(map(re.escape, sorted(words)))})\b".encode())
    found = []
    symbols = codebase.symbols()
    for symbol in (symbols[each] for each in sorted(executed) if each in symbols):
        is_gone = any(s.path == symbol.path and s.start <= symbol.start and symbol.end <= s.end for s in gone)
        if is_gone or not symbol.is_callable or codebase.is_test(symbol.path):
            continue
        if pattern.search(codebase.modules[symbol.path].source, symbol.start, symbol.end):
            found.append(symbol)
    return found[:MAX_FUNCTIONS]


def read_report(report: object, tests: Collection[str]) -> Watched:
    """The answer from a report, which is not trusted. Of tests that did not pass, nothing is known."""
    if not isinstance(report, dict):
        return Watched(problem="The run gave no report.")
    if report.get("problem"):
        return Watched(problem=str(report["problem"])[:200])
    passed = set(_strings(report.get("passed")))
    missing = sorted(set(tests) - passed)
    listed = report.get("words")
    words = {
        test: {kind: tuple(_strings(found)) for kind, found in by_kind.items() if kind in KINDS}
        for test, by_kind in (listed.items() if isinstance(listed, dict) else ())
        if test in passed and isinstance(by_kind, dict)
    }
    return Watched(
        words=words,
        results=frozenset(_rows(report.get("results"), (str, int, str, str)) if not missing else ()),
        foreign=frozenset(_rows(report.get("foreign"), (str, str, int, int)) if not missing else ()),
        lines={test: lines for test, lines in _lines_by_test(report.get("lines")) if test in passed},
        problem=f"{len(missing)} of {len(tests)} tests do not pass when they are watched." if missing else "",
    )


def _lines_by_test(value: object) -> Iterator[tuple[str, frozenset[tuple[str, int]]]]:
    """Each test with the (path, line) of what it executes of the removed code."""
    for test, by_path in value.items() if isinstance(value, dict) else ():
        if isinstance(by_path, dict):
            listed = {path: lines for path, lines in by_path.items() if isinstance(lines, list)}
            yield test, frozenset((path, n) for path, lines in listed.items() for n in lines if isinstance(n, int))


def _rows(value: object, types: tuple[type, ...]) -> Iterator[tuple[Any, ...]]:
    """The rows of a list that have values of these types."""
    for row in value if isinstance(value, list) else ():
        if isinstance(row, list) and tuple(map(type, row)) == types:
            yield tuple(row)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)][:MAX_WORDS] if isinstance(value, list) else []


def watched_uses(words: Mapping[str, Sequence[str]]) -> Uses:
    """What one test was seen to use."""
    keys = set(words.get("keys", ()))
    pairs = (word.partition(" ") for word in words.get("keywords", ()))
    return Uses(
        own=set(words.get("attributes", ())),
        settled=set(words.get("settled", ())),
        shapes=set(words.get("shapes", ())),
        keys=keys,
        keywords={(function, word) for function, _, word in pairs},
        texts=keys | set(words.get("texts", ())) | _literal(words.get("expressions", ())),
        numbers=set(words.get("numbers", ())),
        exceptions=set(words.get("exceptions", ())),
        patterns=_literal(words.get("patterns", ())),
    )


def _literal(expressions: Iterable[str]) -> set[str]:
    """The literal parts of regular expressions."""
    return {part for expression in expressions for part in literal_parts(expression)}
