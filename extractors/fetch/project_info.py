"""Reads a project's name, version and licence from its files, without running any of its code."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.languages import detect_language, get_language
from excise.extractors.license_texts import license_of_text
from excise.languages import LANGUAGES
from excise.types import ProjectInfo


def read_project_info(root: Path) -> ProjectInfo:
    """Read the manifests of ``root``, those of its main language first, and its licence file."""
    main = detect_language(root)
    found = [get_language(name).project_info(root) for name in (main, *(name for name in LANGUAGES if name != main))]
    best = next((info for info in found if info.name), found[0])
    license_name = next((info.license for info in found if info.license), "")
    return ProjectInfo(name=best.name, version=best.version, license=license_name or _license_file(root))


def _license_file(root: Path) -> str:
    names = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE")
    for path in sorted(root.iterdir()):
        if path.is_file() and not path.is_symlink() and path.name.upper().startswith(names):
            text = path.read_text(encoding="utf-8", errors="replace")
            if spdx := license_of_text(text[:20_000]):
                return spdx
    return ""
