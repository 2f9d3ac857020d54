"""Entry points that name removed code: lines of manifests, and texts in ``setup.py``."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.python.edits.file_plan import FilePlan
from excise.extractors.python.analysis.grammar import descendants

SETUP = "setup.py"
"""The manifest that is code."""
_ENTRY_POINT = re.compile(
    r"""^[ \t]*["']?[\w.\- ]+["']?[ \t]*=[ \t]*(["']?)(?P<module>[\w.]+)[ \t]*:[ \t]*(?P<name>[\w.]+)"""
    r"""[ \t]*(\[[^\]]*\])?\1[ \t]*,?[ \t]*(\#.*)?$"""
)
"""An entry point: ``name = module:object``."""
_KEY = re.compile(r"^[\w.\-]+[ \t]*=[ \t]*$")
"""A key of ``setup.cfg`` whose values are the indented lines below it."""
_GROUP = re.compile(r"""^\[(?:project\.entry-points|tool\.poetry\.plugins)\.["']?([\w.\-]+)["']?\][ \t]*$""")
"""The head of a group of entry points in ``pyproject.toml``."""
_HEADER = re.compile(r"^\[.*\][ \t]*$")
_SCRIPTS = re.compile(r"^\[[^\]\n]*scripts[\"']?\][ \t]*$|\b(?:console|gui)_scripts\b")
"""The head of a list of scripts: commands that installing the project makes."""
_SCRIPT = re.compile(r"""["']?([\w.-]+)["']?[ \t]*=[ \t]*["']?([\w.]+[ \t]*:[ \t]*[\w.]+)""")
MAX_LINE = 1000
"""Number of characters of a line up to which scripts are looked for in it."""
_DISPLAYS = frozenset({"list", "tuple", "set", "dictionary", "argument_list"})


class LostNames(NamedTuple):
    """What no longer exists."""

    modules: Collection[str]
    """Dotted names of modules."""
    names: Collection[tuple[str, str]]
    """(dotted name of the module, name in it)."""

    def has(self, entry: str) -> bool:
        """Whether a text is an entry point that names something of it."""
        match = _ENTRY_POINT.match(entry)
        if not match:
            return False
        return match["module"] in self.modules or (match["module"], match["name"].partition(".")[0]) in self.names


def without_entry_points(manifests: Mapping[str, bytes], lost: LostNames) -> dict[str, bytes]:
    """Path to new content of the manifests from which entry points are deleted, and sections that this empties.

    A manifest that would become invalid is not changed.
    """
    changed: dict[str, bytes] = {}
    for path, data in manifests.items():
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        gone = {number for number, line in enumerate(lines) if lost.has(line.rstrip("\r\n"))}
        if gone:
            gone |= set(_emptied(lines, gone))
            after = "".join(line for number, line in enumerate(lines) if number not in gone)
            if _is_valid(path, after):
                changed[path] = after.encode("utf-8", "surrogateescape")
    return changed


def emptied_groups(before: bytes, after: bytes) -> set[str]:
    """The names of the groups of entry points that a manifest has no more."""
    return set(_groups(before)) - set(_groups(after))


def _groups(manifest: bytes) -> Iterator[str]:
    head = ""
    for line in manifest.decode("utf-8", "replace").splitlines():
        head = line.strip() if _HEADER.match(line) else head
        if found := _GROUP.match(line):
            yield found[1]
        elif head == "[options.entry_points]" and _KEY.match(line):
            yield line.partition("=")[0].strip()


def scripts_in(manifest: bytes) -> Iterator[tuple[str, str]]:
    """(name, ``module:object``) of each script of a manifest, or of ``setup.py``."""
    is_inside = False
    for line in manifest.decode("utf-8", "replace").splitlines():
        is_head = _SCRIPTS.search(line) is not None
        if is_head or _HEADER.match(line) or (_KEY.match(line) and _is_unindented(line)):
            is_inside = is_head
        if is_inside and len(line) <= MAX_LINE:
            for name, entry in _SCRIPT.findall(line):
                yield name, "".join(entry.split())


def _emptied(lines: list[str], gone: Collection[int]) -> Iterator[int]:
    """Numbers of the lines of keys and headers that only removed and blank lines are below, with the blank ones."""
    taken = set(gone)
    for is_end, is_head in ((_is_unindented, _KEY.match), (_HEADER.match, _HEADER.match)):
        for number in range(len(lines) - 1, -1, -1):
            if number in taken or not is_head(lines[number].rstrip("\r\n")):
                continue
            end = number + 1
            while end < len(lines) and (end in taken or not is_end(lines[end].rstrip("\r\n"))):
                end += 1
            inside = range(number + 1, end)
            left = [n for n in inside if n not in taken]
            if any(n in taken for n in inside) and all(not lines[n].strip() for n in left):
                blank = left if is_head == _HEADER.match else []
                found = {number, *blank}
                taken |= found
                yield from found


def _is_unindented(line: str) -> bool:
    return bool(line.strip()) and not line[0].isspace()


def _is_valid(path: str, text: str) -> bool:
    try:
        if path.endswith(".toml"):
            tomllib.loads(text.replace("\r\n", "\n"))
        else:
            configparser.ConfigParser(interpolation=None, strict=False).read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error):
        return False
    return True


def remove_from_setup(plan: FilePlan, lost: LostNames) -> None:
    """Plan the removal of entry points from ``setup.py``, with the lists and arguments that this empties."""
    for node in descendants(plan.root):
        if node.type == "string" and lost.has(_text(node)):
            _remove_element(plan, node)


def _text(string: Node) -> str:
    return "".join((c.text or b"").decode(errors="replace") for c in string.children if c.type == "string_content")


def _remove_element(plan: FilePlan, element: Node) -> None:
    container = element.parent
    while container is not None and container.type in _DISPLAYS:
        plan.remove_element(container, element)
        around = container.parent
        if around is not None and around.type == "call" and (around.text or b"").startswith(b"dict("):
            around = around.parent
        if not plan.is_emptied(container) or around is None or around.type not in {"pair", "keyword_argument"}:
            return
        element, container = around, around.parent


def entry_lines(before: bytes, after: bytes) -> Iterable[str]:
    """The entry points that a manifest has lost, with the heads of tables and the keys that held no others."""
    left = set(after.splitlines())
    found = [line.decode(errors="replace").rstrip() for line in before.splitlines() if line not in left]
    return [line for line in found if _ENTRY_POINT.match(line) or _HEADER.match(line) or _KEY.match(line)]
