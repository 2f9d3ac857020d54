"""Titles of tests in their observing forms, which say nothing: titles often tell what is expected.

Both who makes an observing form and who runs it derive them from the names of the lifted functions alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from excise.types import joined, name_in_file, path_of

_SEPARATOR = "::"
_SUFFIX = re.compile(r"\[\d+\]$")
MAX_DEPTH = 5
"""Maximum number of titles of a test, with those of the blocks around it."""


def observed_titles(functions: Iterable[str]) -> dict[str, str]:
    """Title to observed title, for all titles in the names of the lifted functions of a file."""
    titles = sorted({title for name in functions for title in name.split(_SEPARATOR)})
    return {title: f"t{number}" for number, title in enumerate(titles)}


def observed_ids(ids: Sequence[str], functions: Sequence[str]) -> dict[str, str]:
    """Ids that tests may have in observing forms, to those that they are asked for by.

    A title that is computed stays as it is, so that there are several for each test. The second one of equal titles has
    the number 1 in what is asked for, and 2 in its run; the first has none.
    """
    names: dict[str, set[str]] = {}
    for function in functions:
        names.setdefault(path_of(function), set()).add(name_in_file(function))
    titles = {path: observed_titles(found) for path, found in names.items()}
    found: dict[str, str] = {}
    for test in ids:
        path, name = path_of(test), name_in_file(test)
        number = re.search(r"\[(\d+)\]$", name)
        if number is not None and number[1] == "0":
            continue
        suffix = f"[{int(number[1]) + 1}]" if number is not None else ""
        parts = _SUFFIX.sub("", name).split(_SEPARATOR)
        for chosen in itertools.product(*(_choices(part, titles.get(path, {})) for part in parts[:MAX_DEPTH])):
            found[joined(path, *chosen) + suffix] = test
    return found


def numbered_ids(ids: Iterable[str]) -> dict[str, str]:
    """Number of a test in a run of lifted tests, to its id: the second one of equal titles ends with ``[2]``."""
    return {test: re.sub(r"\[(\d+)\]$", lambda found: f"[{int(found[1]) + 1}]", test) for test in ids}


def _choices(title: str, titles: Mapping[str, str]) -> tuple[str, ...]:
    return (titles[title], title) if title in titles else (title,)
