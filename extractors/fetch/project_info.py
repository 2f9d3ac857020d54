"""Reads a project's name, version and licence from its files, without running any of its code."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from excise.extractors.languages import detect_language, get_language
from excise.extractors.license_texts import license_of_text
from excise.languages import LANGUAGES
from excise.types import ProjectInfo

_NAME = re.compile(r"@?[\w.~+-]{1,100}(?:/[\w.~+-]{1,100})?")
"""The name of a project, with or without that of its owner."""


def read_project_info(root: Path) -> ProjectInfo:
    """Read the manifests of ``root``, those of its main language first, and its licence file."""
    told = {name: info for name in LANGUAGES if (info := get_language(name).project_info(root)) != ProjectInfo()}
    if len(told) != 1 or not all(info.name for info in told.values()):  # else one manifest alone says something
        main = detect_language(root)
        told = {main: told.pop(main, ProjectInfo()), **told}
    found = list(told.values())
    best = next((info for info in found if info.name), found[0])
    best = best if _NAME.fullmatch(best.name) else replace(best, name="")
    license_name = next((info.license for info in found if info.license), "")
    return ProjectInfo(name=best.name, version=best.version, license=license_name or _license_file(root))


def _license_file(root: Path) -> str:
    names = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE")
    for path in sorted(root.iterdir()):
        if path.is_file() and not path.is_symlink() and path.name.upper().startswith(names):
            text = path.read_text(encoding="utf-8", errors="replace")
            if spdx := license_of_text(text):
                return spdx
    return ""
