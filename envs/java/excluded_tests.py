"""Test files that a project's Maven build excludes from its runs of tests: of performance, by hand, abstract ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from xml.etree import ElementTree

_PLUGIN = "maven-surefire-plugin"
_PLACES = ("build/plugins/plugin", "build/pluginManagement/plugins/plugin")
"""Where a ``pom.xml`` configures plug-ins for all builds."""
MAX_PATTERN = 200
"""Maximum number of characters of a pattern; longer ones are passed over."""


def excluded_tests(manifests: Iterable[str], test_roots: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Those of ``paths``, test files relative to the checkout, that a ``pom.xml`` of ``manifests`` excludes, sorted."""
    patterns = [tuple(pattern.split("/")) for text in manifests for pattern in _patterns(text)]
    found = set()
    for path in paths:
        tops = [top for top in test_roots if top == "." or path.startswith(f"{top}/")]
        parts = [tuple((path if top == "." else path[len(top) + 1 :]).split("/")) for top in tops]
        if any(_matches(pattern, each) for pattern in patterns for each in parts):
            found.add(path)
    return sorted(found)


def _patterns(manifest: str) -> Iterator[str]:
    """The patterns of a ``pom.xml``, for sources; none of one that is malformed or declares entities."""
    if not manifest.strip() or "<!" in manifest.replace("<!--", "").replace("<![CDATA[", ""):
        return
    try:
        root = ElementTree.fromstring(manifest.strip())
    except ElementTree.ParseError:
        return
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
    for plugin in (plugin for place in _PLACES for plugin in root.findall(place)):
        if plugin.findtext("artifactId", "").strip() == _PLUGIN:
            for exclude in plugin.findall("configuration/excludes/exclude"):
                pattern = (exclude.text or "").strip().removesuffix(".class").removesuffix(".java")
                if pattern and len(pattern) <= MAX_PATTERN and not set(pattern) & set("%#!,$["):
                    every = pattern.endswith(("/", "**"))
                    yield pattern.removesuffix("**") + "**" if every else f"{pattern}.java"


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a path has the form of a pattern, in which ``**`` stands for any number of folders."""

    @cache
    def matches(i: int, j: int) -> bool:
        if i == len(pattern):
            return j == len(parts)
        if pattern[i] == "**":
            return matches(i + 1, j) or (j < len(parts) and matches(i, j + 1))
        return j < len(parts) and fnmatchcase(parts[j], pattern[i]) and matches(i + 1, j + 1)

    return matches(0, 0)
