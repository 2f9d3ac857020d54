"""The language adapters by name, and which language a project is written in."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from excise.languages import LANGUAGES, language_part
from excise.protocols import Language, ScanRules


def get_language(name: str) -> Language:
    """The adapter of a language. Raises :class:`ConfigError` for an unknown name."""
    return cast(Language, language_part(name, "extractors.{}.language", "LANGUAGE"))


def scan_rules_of(path: str) -> ScanRules:
    """The scan rules of the language that a file is written in, as its suffix says; of the first one for others."""
    for name in LANGUAGES:
        if path.endswith(get_language(name).suffixes):
            return get_language(name).scan_rules
    return get_language(LANGUAGES[0]).scan_rules


def detect_language(root: Path) -> str:
    """The language that a project's files fit best; the first of :data:`LANGUAGES` if they fit none."""
    fits = {name: get_language(name).detect(root) for name in LANGUAGES}
    return max(LANGUAGES, key=lambda name: fits[name])
