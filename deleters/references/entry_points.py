"""Remove entry points of deleted code from ``pyproject.toml`` and ``setup.cfg``."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Mapping

_LINE = re.compile(
    r"""^[ \t]*["']?[\w.\- ]+["']?[ \t]*=[ \t]*(["']?)(?P<module>[\w.]+)[ \t]*:[ \t]*(?P<name>[\w.]+)"""
    r"""[ \t]*(\[[^\]]*\])?\1[ \t]*,?[ \t]*(\#.*)?$"""
)


def without_entry_points(
    manifests: Mapping[str, bytes], modules: Iterable[str], names: Iterable[tuple[str, str]]
) -> dict[str, bytes]:
    """New contents of the manifests with lines that name a removed module or ``(module, name)``, without these lines.

    A manifest that would become invalid is not changed.
    """
    gone_modules, gone_names = set(modules), set(names)
    changed: dict[str, bytes] = {}
    for path, data in manifests.items():
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if not _names_removed(line, gone_modules, gone_names)]
        if len(kept) != len(lines):
            after = "".join(kept)
            if _is_valid(path, after):
                changed[path] = after.encode("utf-8", "surrogateescape")
    return changed


def _names_removed(line: str, modules: set[str], names: set[tuple[str, str]]) -> bool:
    match = _LINE.match(line.rstrip("\r\n"))
    if not match:
        return False
    return match["module"] in modules or (match["module"], match["name"].partition(".")[0]) in names


def _is_valid(path: str, text: str) -> bool:
    try:
        if path.endswith(".toml"):
            tomllib.loads(text.replace("\r\n", "\n"))
        else:
            configparser.ConfigParser(interpolation=None, strict=False).read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error):
        return False
    return True
