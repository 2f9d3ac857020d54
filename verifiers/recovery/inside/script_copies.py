"""Strategies for JavaScript: copies of the project's scripts in installed packages, bundles and source maps."""

from __future__ import annotations

import json
import re

from excise.verifiers.recovery.inside.code_search import CodeSearch, decoded

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Iterator

SCRIPTS = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".tsx", ".mts", ".cts", ".vue", ".html", ".htm", ".md")
MAX_BLOCK = 60_000
"""Maximum number of characters of one definition."""
MAX_BLOCKS = 8


class ScriptCopies:
    """Searches scripts, bundles and source maps for definitions of the removed names."""

    name = "script_copies"
    looks_at = "scripts with the same definitions in packages and caches of npm, bundles, source maps"

    def run(self, search: CodeSearch) -> None:
        wanted = definition_of(search.names)
        for path in search.files_with_names():
            if path.endswith(".map"):
                for where, text in mapped_sources(path, search.read(path)):
                    self.report(search, wanted, where, text)
            elif path.endswith(SCRIPTS):
                self.report(search, wanted, path, decoded(search.read(path)))

    def report(self, search: CodeSearch, wanted: re.Pattern[str], where: str, text: str) -> None:
        for number, found in enumerate(wanted.finditer(text)):
            if number == MAX_BLOCKS:
                return
            start = text.rfind("\n", 0, found.start()) + 1
            search.report_item("text", where, text[start : end_of_block(text, found.end())])


def definition_of(names: list[str]) -> re.Pattern[str]:
    """Finds the beginning of a function or class with one of the names: of a statement, a variable, or a member."""
    either = "|".join(map(re.escape, names))
    return re.compile(
        r"\b(?:function\s*\*?|class)\s+(?:%s)\b"
        r"|(?<![\w$])(?:%s)\s*(?::[^=;{}]*)?[=:]\s*(?:async\s+)?(?:<[^>()]*>\s*)?"
        r"(?:function\b|class\b|\([^)]*\)\s*(?::[^=;{}]*)?=>|[\w$]+\s*=>)"
        r"|^[ \t]*(?:(?:static|async|get|set|public|private|protected|override)\s+|\*\s*)*"
        r"(?:%s)\s*(?:<[^>()]*>\s*)?\([^)]*\)\s*(?::[^;={}]*)?(?=\{)" % (either, either, either),
        re.MULTILINE,
    )


def end_of_block(text: str, position: int) -> int:
    """The end of the block in braces that begins after a position; of texts in it, braces are counted, too."""
    opened = text.find("{", position)
    if opened < 0 or opened - position > 400:
        return min(len(text), position + 400)
    depth = 0
    for place in range(opened, min(len(text), opened + MAX_BLOCK)):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place + 1
    return min(len(text), opened + MAX_BLOCK)


def mapped_sources(path: str, data: bytes) -> Iterator[tuple[str, str]]:
    """(place, text) of the sources in a source map."""
    try:
        found = json.loads(decoded(data))
    except ValueError:
        return
    sources = found.get("sourcesContent") if isinstance(found, dict) else None
    for number, text in enumerate(sources if isinstance(sources, list) else ()):
        if isinstance(text, str):
            yield "%s (source %d)" % (path, number), text
