"""Moves test modules that are written within a file of sources into files of their own.

Solutions change sources, and graders restore tests: so each needs a file of its own. ``#[cfg(test)] mod tests { … }``
and ``#[cfg(test)] mod tests;`` beside a file ``tests.rs`` mean the same, but for macros that read paths relative to the
file. A module with such a macro stays where it is, and its tests do not count. Tests beside the code, in no module, get
one of their own, which sees all that the file has.
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
    before_item,
    descendants,
    field_text,
    is_test_code,
    parse_tree,
)

_READS_FILES = re.compile(rb"\binclude(?:_str|_bytes)?\s*!|\bfile\s*!|#\s*\[\s*path\b")
_TEST = re.compile(rb"#\s*\[[^\[\]]{0,200}(?:test|\bbench\b)")
"""The attribute of a test or a benchmark, also of one that a macro makes."""
_IS_TEST = re.compile(r"(?:\w+::)*test")
_INCLUDED = re.compile(rb"(?:\binclude\s*!\s*\(|\bpath\s*=)\s*\"([^\"\n]+)\"")
"""A file whose modules are elsewhere than those of others."""
_RELATIVE = re.compile(rb"\bsuper::|\bself::|\binclude(?:_str|_bytes)?\s*!|\bfile\s*!|\bmodule_path\s*!")
"""What means something else in a module of its own."""
_NAMES = ("tests", "loose_tests")
"""Names of the module of tests that have none."""
_TEXTS = frozenset({"string_literal", "raw_string_literal", "block_comment"})


def separate_tests(root: Path) -> None:
    """Move the test modules of all sources below ``root`` into files of their own."""
    paths = set(list_files(root))
    other_roots = _other_roots(root)
    sources: dict[str, bytes] = {}
    for path in sorted(paths):
        folders = path.split("/")[:-1]
        is_source = path.endswith(SUFFIX) and folders[:1] not in [[name] for name in TEST_FOLDERS]
        if is_source and "bin" not in folders and path not in other_roots and not (root / path).is_symlink():
            sources[path] = (root / path).read_bytes()
    roots = {path: parse_tree(source).root_node for path, source in sources.items()}
    included = {
        Path(found.decode("utf-8", "replace")).name for each in sources.values() for found in _INCLUDED.findall(each)
    }
    of_tests = {found for path, top in roots.items() for found in _files_of_tests(path, top, sources[path])}
    for path, source in sources.items():
        below = any(path == each or path.startswith(f"{each.removesuffix(SUFFIX)}/") for each in of_tests)
        is_code = "src" in path.split("/")[:-1] and path.rpartition("/")[2] not in included
        after, moved = separated(path, source, paths, has_code=is_code and not below)
        for target, data in moved.items():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            (root / target).write_bytes(data)
            paths.add(target)
        if moved:
            (root / path).write_bytes(after)


def _files_of_tests(path: str, parent: Node, source: bytes, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Paths of the files that a file declares as modules of tests; of ``a/mod.rs``, ``a.rs``."""
    for node in parent.named_children:
        if node.type != "mod_item":
            continue
        inner, body = (*names, field_text(node, "name", source)), node.child_by_field_name("body")
        if body is not None:
            yield from _files_of_tests(path, body, source, inner)
        elif is_test_code(attributes_of(node, source)):
            yield module_paths(path, inner)[0]


def separated(path: str, source: bytes, paths: set[str], *, has_code: bool = True) -> tuple[bytes, dict[str, bytes]]:
    """(the file without test modules, path to content of these) of a file of sources; one without code of the crate
    (``has_code``) keeps tests outside of modules.

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
    after = b"".join([*parts, source[place:]])
    name = next((each for each in _NAMES if paths.isdisjoint(module_paths(path, (each,)))), "")
    may_move = name and has_code and f"mod {name}".encode() not in after
    loose = _loose_tests(after) if may_move else []
    if loose:
        moved[module_paths(path, (name,))[0]] = b"\n".join([b"use super::*;\n", *(after[s:e] for s, e in loose)])
        bounds = [0, *(bound for span in loose for bound in span), len(after)]
        left = [after[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
        first, *others = [*(each.rstrip() for each in left[:-1]), left[-1]]
        text = b"".join([first, *(each if each.startswith(b"\n") else b"\n" + each for each in others)])
        after = text.rstrip() + f"\n\n#[cfg(test)]\nmod {name};\n".encode()
    return after, moved


def _loose_tests(source: bytes) -> list[tuple[int, int]]:
    """The lines of the tests of a file that are in no module, and mean the same in one."""
    found = []
    for node in parse_tree(source).root_node.named_children:
        is_test = node.type == "function_item" and any(map(_IS_TEST.fullmatch, attributes_of(node, source)))
        if is_test and not _RELATIVE.search(source, node.start_byte, node.end_byte):
            above = before_item(node)
            first = (above[0] if above else node).start_byte
            start, end = source.rfind(b"\n", 0, first) + 1, source.find(b"\n", node.end_byte) + 1 or len(source)
            name = re.escape(field_text(node, "name", source).encode())
            is_called = len(re.findall(rb"\b%s\b" % name, source)) > 1
            if not source[start:first].strip() and not source[node.end_byte : end].strip() and not is_called:
                found.append((start, end))
    return found


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
