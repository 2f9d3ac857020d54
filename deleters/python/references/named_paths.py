"""Paths of files that are gone, in lists of the configuration of tools and builds."""

from __future__ import annotations

import re
from collections.abc import Collection

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.document_text import utf8_text
from excise.extractors.python.analysis.codebase import PythonCodebase

_CONFIGURATION = frozenset(
    {
        "pyproject.toml", "setup.cfg", "tox.ini", "MANIFEST.in", ".coveragerc", "mypy.ini", "pytest.ini", ".flake8",
        "ruff.toml", ".ruff.toml", ".pre-commit-config.yaml",
    }
)  # fmt: skip
"""Names of files that list paths."""


def without_paths(
    codebase: PythonCodebase, changed: Changed, gone: Collection[str]
) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) of the files of configuration that name files which are ``gone``.

    ``changed`` are the files that other edits change. An entry of a list goes, and a line that is nothing else; a path
    that stands alone in a list or in a command stays.
    """
    found: dict[str, tuple[bytes, bytes | None]] = {}
    for path in sorted(codebase.others.paths) if gone else ():
        if path.rpartition("/")[2] not in _CONFIGURATION:
            continue
        before = codebase.others.read(path)
        left = utf8_text(changed.get(path, (before, before))[1] or b"")
        after = left
        for each in sorted(gone):
            after = _without_path(after, each) if after and each in after else after
        if after and after != left:
            found[path] = before, after.encode()
    return found


def _without_path(text: str, path: str) -> str:
    name = re.escape(path)
    alone = re.compile(rf"[ \t]*(?:(?:include|exclude|-)[ \t]+)?([\"']?){name}\1,?[ \t]*")
    entry = re.compile(rf"(?<=\[)[ \t]*([\"']){name}\1,[ \t]*|,[ \t]*([\"']){name}\2(?=[ \t]*[,\]])")
    word = re.compile(rf"(?<=[ \t]){name}(?:[ \t]+|$)")
    lines = [line for line in text.splitlines(keepends=True) if not alone.fullmatch(line.rstrip("\r\n"))]
    return "".join(_shortened(line, entry, word) if path in line else line for line in lines)


def _shortened(line: str, entry: re.Pattern[str], word: re.Pattern[str]) -> str:
    """A line of a list, or of a command that has other paths, without one."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    after = entry.sub("", body)
    others = [each for each in word.sub("", body).split() if "/" in each or each.endswith((".py", ".pyi"))]
    if after == body and others and word.search(body):
        after = word.sub("", body).rstrip()
    return after + end
