"""Test files that a project's Maven build excludes from its runs of tests: of performance, by hand, abstract ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from excise.system.plain_xml import read_xml

_PLUGIN = "maven-surefire-plugin"
_PLACES = ("build/plugins/plugin", "build/pluginManagement/plugins/plugin")
"""Where a ``pom.xml`` configures plug-ins for all builds."""
MAX_PATTERNS = 100
"""Maximum number of patterns that are read."""
MAX_PATTERN = 200
"""Maximum number of characters of a pattern; longer ones are passed over."""


def excluded_tests(manifests: Iterable[str], test_roots: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Those of ``paths``, test files relative to the checkout, that a ``pom.xml`` of ``manifests`` excludes, sorted."""
    found_patterns = (pattern for text in manifests for pattern in _patterns(text))
    patterns = [tuple(pattern.split("/")) for pattern in islice(found_patterns, MAX_PATTERNS)]
    found = set()
    for path in paths:
        tops = [top for top in test_roots if top == "." or path.startswith(f"{top}/")]
        parts = [tuple((path if top == "." else path[len(top) + 1 :]).split("/")) for top in tops]
        if any(_matches(pattern, each) for pattern in patterns for each in parts):
            found.add(path)
    return sorted(found)


def _patterns(manifest: str) -> Iterator[str]:
    """The patterns of a ``pom.xml``, for sources; none of one that is malformed or declares entities."""
    root = read_xml(manifest)
    if root is None:
        return
    for plugin in (plugin for place in _PLACES for plugin in root.findall(place)):
        if plugin.findtext("artifactId", "").strip() == _PLUGIN:
            for exclude in plugin.findall("configuration/excludes/exclude"):
                pattern = (exclude.text or "").strip().removesuffix(".class").removesuffix(".java")
                if pattern and len(pattern) <= MAX_PATTERN and not set(pattern) & set("%#!,$["):
                    every = pattern.endswith(("/", "**"))
                    yield pattern.removesuffix("**") + "**" if every else f"{pattern}.java"


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a path has the form of a pattern, in which ``**`` stands for any number of folders.

    Where the rest does not fit, the last ``**`` takes one folder more: no earlier one need.
    """
    i = j = 0
    last: tuple[int, int] | None = None
    while j < len(parts):
        if i < len(pattern) and pattern[i] == "**":
            last, i = (i, j), i + 1
        elif i < len(pattern) and fnmatchcase(parts[j], pattern[i]):
            i, j = i + 1, j + 1
        elif last is None:
            return False
        else:
            last = last[0], last[1] + 1
            i, j = last[0] + 1, last[1]
    return all(part == "**" for part in pattern[i:])
