"""Moves test modules that are written within a file of sources into files of their own.

Solutions change sources, and graders restore tests: so each needs a file of its own. ``#[cfg(test)] mod tests { … }``
and ``#[cfg(test)] mod tests;`` beside a file ``tests.rs`` mean the same, but for macros that read paths relative to the
file. A module with such a macro stays where it is, and its tests do not count.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from excise.extractors.fetch.trees import list_files
from excise.extractors.rust.analysis.codebase import SUFFIX, TEST_FOLDERS, module_paths
from excise.extractors.rust.analysis.grammar import (
    attributes_of,
    descendants,
    field_text,
    is_test_code,
    parse_tree,
)

_READS_FILES = re.compile(rb"\binclude(?:_str|_bytes)?\s*!|\bfile\s*!|#\s*\[\s*path\b")
_TEST = re.compile(rb"#\s*\[[^\[\]]{0,200}(?:test|\bbench\b)")
"""The attribute of a test or a benchmark, also of one that a macro makes."""
_TEXTS = frozenset({"string_literal", "raw_string_literal", "block_comment"})


def separate_tests(root: Path) -> None:
    """Move the test modules of all sources below ``root`` into files of their own."""
    paths = set(list_files(root))
    other_roots = _other_roots(root)
    for path in sorted(paths):
        folders = path.split("/")[:-1]
        is_source = path.endswith(SUFFIX) and folders[:1] not in [[name] for name in TEST_FOLDERS]
        if not is_source or "bin" in folders or path in other_roots or (root / path).is_symlink():
            continue
        after, moved = separated(path, (root / path).read_bytes(), paths)
        for target, data in moved.items():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            (root / target).write_bytes(data)
            paths.add(target)
        if moved:
            (root / path).write_bytes(after)


def separated(path: str, source: bytes, paths: set[str]) -> tuple[bytes, dict[str, bytes]]:
    """(the file without test modules, path to content of these) of a file of sources.

    A module stays for which a file is there already (``paths``).
    """
    tree = parse_tree(source)
    moved: dict[str, bytes] = {}
    parts, place = [], 0
    if tree.root_node.has_error:
        return source, {}
    for module, names in _test_modules(tree.root_node, source, ()):
        body = module.child_by_field_name("body")
        wanted = module_paths(path, names)
        if body is None or not paths.isdisjoint(wanted) or not _may_move(body, source):
            continue
        moved[wanted[0]] = _content(body, source)
        before = source[module.start_byte : body.start_byte].rstrip()
        parts += [source[place : module.start_byte], before, b";"]
        place = body.end_byte
    return b"".join([*parts, source[place:]]), moved


def _test_modules(parent: Node, source: bytes, names: tuple[str, ...]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    for node in parent.named_children:
        body = node.child_by_field_name("body") if node.type == "mod_item" else None
        if body is None:
            continue
        inner = (*names, field_text(node, "name", source))
        if is_test_code(attributes_of(node, source)):
            yield node, inner
        else:
            yield from _test_modules(body, source, inner)


def _may_move(body: Node, source: bytes) -> bool:
    """Whether a module has tests, and means the same in a file of its own."""
    nodes = list(descendants(body))
    has_tests = _TEST.search(source, body.start_byte, body.end_byte) is not None
    has_files = any(n.type == "mod_item" and n.child_by_field_name("body") is None for n in nodes)
    return has_tests and not has_files and not _READS_FILES.search(source, body.start_byte, body.end_byte)


def _content(body: Node, source: bytes) -> bytes:
    """The content of a module, less indented; lines within texts stay as they are."""
    start, end = body.start_byte + 1, body.end_byte - 1
    fixed = {
        line
        for node in descendants(body)
        if node.type in _TEXTS
        for line in range(node.start_point[0] + 1, node.end_point[0] + 1)
    }
    first = body.start_point[0]
    lines = source[start:end].split(b"\n")
    plain = [line for number, line in enumerate(lines) if first + number not in fixed and line.strip()]
    depth = min((len(line) - len(line.lstrip(b" ")) for line in plain), default=0)
    found = [
        line if first + number in fixed else line[depth:] if line.strip() else line.strip(b" \t")
        for number, line in enumerate(lines)
    ]
    return b"\n".join(found).strip(b"\n\r").rstrip() + b"\n"


def _other_roots(root: Path) -> set[str]:
    """Root files of targets with other names than usual, whose modules are elsewhere than those of other files."""
    try:
        manifest = tomllib.loads((root / "Cargo.toml").read_text("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return set()
    binaries = manifest.get("bin", [])
    targets = [manifest.get("lib", {}), *(binaries if isinstance(binaries, list) else [])]
    paths = {str(each.get("path", "")) for each in targets if isinstance(each, dict)}
    return {path.removeprefix("./") for path in paths} - {"", "src/lib.rs", "src/main.rs"}
