"""Which modules a ``.d.ts`` file describes, and what it says of their functions."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from excise.extractors.javascript.analysis.comments import doc_comment
from excise.extractors.javascript.analysis.documented_methods import documented_types
from excise.extractors.javascript.analysis.grammar import CLASSES, DECLARED, descendants, parse_tree, text
from excise.extractors.javascript.analysis.module_links import ModuleLinks

DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
"""Suffixes of type declarations."""
_STEM = re.compile(r"(.+?)(?:\.(?:browser|node|native|server|client|react-native|deno|bun))?\.[cm]?[jt]sx?")
"""The name of a module; files of one stem are the same module for several platforms."""
_TYPES = ("types", "typings")
_ENTRIES = ("main", "module", "browser", "jsnext:main")
"""Members of a manifest with the files that its types describe."""


_NAMED = frozenset({"function_signature", "variable_declarator", *DECLARED, *CLASSES})
_AROUND = frozenset({"lexical_declaration", "variable_declaration", "ambient_declaration", "export_statement"})


def described_modules(
    code: Iterable[str], declarations: Iterable[str], links: ModuleLinks, manifest: bytes
) -> Mapping[str, frozenset[str]]:
    """Path of each declaration file to the modules that it describes: those of its stem in its folder, and those that
    the manifest (``package.json``) names beside it. Empty for files of which neither is known; ``code`` are the paths
    of modules that are no tests."""
    by_stem: dict[str, set[str]] = defaultdict(set)
    for path in code:
        folder, name = posixpath.split(path)
        if (stem := _STEM.fullmatch(name)) is not None:
            by_stem[posixpath.join(folder, stem[1])].add(path)
    named: dict[str, set[str]] = defaultdict(set)
    for types, entry in _named_by_manifest(manifest):
        if (module := links.file_of("", _relative(entry))) is not None:
            named[posixpath.normpath(types)].add(module)
    return {
        path: frozenset(by_stem.get(re.sub(r"\.d\.[cm]?ts$", "", path), set()) | named.get(path, set()))
        for path in declarations
    }


def documented_declarations(source: bytes) -> dict[str, str]:
    """Name of a function, class, value, or method of a class or interface (``Box.put``) that a declaration file
    declares to its documentation, where it has one; of overloads, that of the first with one."""
    found: dict[str, str] = {}
    for node in descendants(parse_tree(source).root_node):
        name = node.child_by_field_name("name") if node.type in _NAMED else None
        if name is not None and (words := doc_comment(_statement_of(node), source)):
            found.setdefault(text(name, source), words)
    for each in documented_types(source):
        for method, words in each.methods.items():
            found.setdefault(f"{each.name}.{method}", words)
    return found


def _statement_of(node: Node) -> Node:
    """The statement that declares a name: what is around it, if it declares nothing else."""
    above = node.parent
    while above is not None and above.type in _AROUND and len(above.named_children) == 1:
        node, above = above, above.parent
    return node


def _relative(path: str) -> str:
    return path if path.startswith((".", "/")) else f"./{path}"


def _named_by_manifest(data: bytes) -> Iterator[tuple[str, str]]:
    """(declaration file, module) pairs of a manifest."""
    try:
        manifest = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    for types in (manifest.get(key) for key in _TYPES):
        if isinstance(types, str):
            yield types, "."
            yield from ((types, entry) for key in _ENTRIES if isinstance(entry := manifest.get(key), str))
    yield from _conditions(manifest.get("exports"))


def _conditions(exports: object) -> Iterator[tuple[str, str]]:
    """(declaration file, module) pairs of conditional exports: what one object has beside its ``types``."""
    if isinstance(exports, list):
        for each in exports:
            yield from _conditions(each)
    if not isinstance(exports, dict):
        return
    types = exports.get("types")
    for key, value in exports.items():
        if key != "types":
            yield from _conditions(value)
            if isinstance(types, str):
                yield from ((types, entry) for entry in _texts(value))


def _texts(value: object) -> Iterator[str]:
    """The texts in an object, but for its types."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each) if key != "types" else ()
