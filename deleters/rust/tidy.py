"""Takes out of files what names code that is gone: imports, re-exports, and modules in which nothing is left."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.test_mentions import lost_names
from excise.extractors.compiled_codebase import Definition
from excise.extractors.rust.analysis.codebase import RustCodebase, module_paths
from excise.extractors.rust.analysis.grammar import BEFORE_ITEMS, NAMES, descendants, field_text, parse_tree, text
from excise.extractors.rust.analysis.parsed_file import ModuleFile, RustModule, whole_lines

_LIBRARIES = frozenset({"std", "core", "alloc"})
_WITHOUT_METHODS = frozenset({"fmt", "ops", "cmp", "convert", "iter", "marker", "default", "clone", "collections"})
"""Modules of the standard library whose types and traits, but for ``fmt::Write``, are used by their names, or whose
methods need no import."""
_METHODS = {
    "Any": {"type_id"},
    "Borrow": {"borrow"},
    "BorrowMut": {"borrow_mut"},
    "BuildHasher": {"build_hasher", "hash_one"},
    "Error": {"source", "description", "cause"},
    "FromStr": {"from_str"},
    "Hash": {"hash", "hash_slice"},
}
"""Methods of traits of the standard library that are often imported for bounds."""
_FILE_BELOW = re.compile(rb"(?m)^\s{0,40}(?:pub(?:\([^)\n]*\))?\s+)?mod\s+\w+\s*;")
"""A module in another file, which may use what is imported here."""
MAX_LINE = 100
"""Length up to which a list of imports is on one line."""


class Leaf(NamedTuple):
    """A name that an import brings."""

    path: tuple[str, ...]
    """The names before the last one."""
    name: str
    """The last name; ``*`` for all of a module."""
    bound: str
    """The name in the file."""
    is_public: bool
    """Whether it is exported again."""


def tidied(before: RustModule, after: bytes) -> bytes:
    """The edited file ``after`` without the imports that it no longer uses by name, but did use ``before``, and without
    modules and other imports where nothing but imports is left.

    What is exported stays, and so do traits whose methods may be used: that is done without their names.
    """
    was_used, used = _used(before.source), _used(after)
    traits, has_files_below = _traits(before.source), _FILE_BELOW.search(after) is not None

    def is_unused(leaf: Leaf) -> bool:
        is_kept = leaf.is_public or leaf.name in {"*", "Write"} or (leaf.name == "self" and not leaf.path)
        if is_kept or leaf.bound not in was_used or leaf.bound in used:
            return False
        if leaf.name == "self" and len(re.findall(rf"\b{re.escape(leaf.bound)}\b".encode(), after)) > 1:
            return False  # a path of another import may begin with it, or a text name it
        if leaf.name not in traits or (leaf.path[0] in _LIBRARIES and not _WITHOUT_METHODS.isdisjoint(leaf.path)):
            return True
        methods = traits[leaf.name]
        if leaf.path[0] in _LIBRARIES and not has_files_below:
            methods = methods | _METHODS.get(leaf.name, set())
        return bool(methods) and "io" not in leaf.path and methods.isdisjoint(used)

    is_emptied = _holds_items(parse_tree(before.source).root_node) and not _holds_items(parse_tree(after).root_node)

    def goes(leaf: Leaf) -> bool:
        return is_unused(leaf) or (is_emptied and not leaf.is_public)

    found = apply_edits(after, without_leaves(after, goes))
    had = {field_text(each, "name", before.source) for each in _modules(before.source, _has_items)}
    empty = [
        each for each in _modules(found, lambda node: not _has_items(node)) if field_text(each, "name", found) in had
    ]
    return apply_edits(found, removals(found, [whole_lines(node, found) for node in empty]))


def _modules(source: bytes, is_wanted: Callable[[Node], bool]) -> list[Node]:
    """The modules within a file, of those that are wanted."""
    nodes = (n for n in descendants(parse_tree(source).root_node) if n.type == "mod_item")
    return [each for each in nodes if each.child_by_field_name("body") is not None and is_wanted(each)]


def _has_items(module: Node) -> bool:
    """Whether a module holds more than imports."""
    body = module.child_by_field_name("body")
    return body is not None and _holds_items(body)


def _holds_items(body: Node) -> bool:
    """Whether a file, or the body of a module, holds more than imports."""
    inside = body.named_children
    return any(each.type not in BEFORE_ITEMS | {"use_declaration", "inner_attribute_item"} for each in inside)


def _used(source: bytes) -> frozenset[str]:
    """The names in a file outside its imports."""
    found: set[str] = set()
    stack = [parse_tree(source).root_node]
    while stack:
        node = stack.pop()
        if node.type in NAMES:
            found.add(text(node, source))
        elif node.type != "use_declaration":
            stack += node.children
    return frozenset(found)


def _traits(source: bytes) -> dict[str, set[str]]:
    """Names in places where only traits stand (bounds, ``impl``, ``dyn``), to the functions that ``impl`` blocks give
    them."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in descendants(parse_tree(source).root_node):
        trait = node.child_by_field_name("trait") if node.type == "impl_item" else None
        held = node if node.type in {"trait_bounds", "abstract_type", "dynamic_type"} else trait
        names = [text(leaf, source) for leaf in descendants(held) if leaf.type == "type_identifier"] if held else []
        body = node.child_by_field_name("body") if trait is not None else None
        functions = [each for each in (body.named_children if body is not None else ()) if each.type == "function_item"]
        for name in names:
            found[name].update(field_text(each, "name", source) for each in functions)
    return found


def mentions(codebase: RustCodebase, gone: Sequence[Definition]) -> Mapping[str, list[Edit]]:
    """Edits of the sources that import or export what is gone, or declare a module in which nothing is left."""
    lost, keys = lost_names(codebase, gone), {each.key for each in gone}
    changed = {path for each in gone for path in [each.path] if all(d.key in keys for d in _all_of(codebase, path))}
    empty = {path for path in changed if goes_whole(codebase, path)}
    modules = {posixpath.basename(path.removesuffix("/mod.rs")).removesuffix(".rs") for path in empty}
    edits: dict[str, list[Edit]] = {}
    for path, module in codebase.modules.items():
        if not codebase.is_test(path) and path not in empty:
            found = [*imports_of(codebase, module, lost, modules), *_declarations(module, empty)]
            if found:
                edits[path] = found
    return edits


def _all_of(codebase: RustCodebase, path: str) -> Sequence[Definition]:
    return codebase.modules[path].definitions


def goes_whole(codebase: RustCodebase, path: str) -> bool:
    """Whether a file without definitions goes: another declares it as a module, and it declares none itself."""
    modules = codebase.modules.values()
    is_module = any(_is_declared(module, each, {path}) for module in modules for each in module.module_files)
    return is_module and not codebase.modules[path].module_files


def _is_declared(module: RustModule, declared: ModuleFile, paths: set[str]) -> bool:
    return not paths.isdisjoint(module_paths(module.path, declared.names, declared.path))


def _declarations(module: RustModule, empty: set[str]) -> Iterator[Edit]:
    """The edits that delete ``mod NAME;`` of files that go."""
    gone = {each.names[-1] for each in module.module_files if _is_declared(module, each, empty)}
    for node in descendants(parse_tree(module.source).root_node) if gone else ():
        is_file = node.type == "mod_item" and node.child_by_field_name("body") is None
        if is_file and field_text(node, "name", module.source) in gone:
            yield from removals(module.source, [whole_lines(node, module.source)])


# ------------------------------------------------------------------------------------------- imports
def imports_of(
    codebase: RustCodebase, module: RustModule, lost: frozenset[str], modules: Iterable[str] = ()
) -> list[Edit]:
    """The edits that delete imports of the project's names ``lost``, and of all of ``modules``."""
    gone = frozenset(modules)

    def is_lost(leaf: Leaf) -> bool:
        in_gone = not gone.isdisjoint(leaf.path) or leaf.name in gone
        return _is_own(codebase, leaf) and (in_gone or leaf.name in lost)

    return without_leaves(module.source, is_lost) if lost or gone else []


def _is_own(codebase: RustCodebase, leaf: Leaf) -> bool:
    """Whether an import is of the project: by the beginning of its path."""
    first = leaf.path[0] if leaf.path else leaf.name
    if first in {"crate", "self", "super", codebase.crate}:
        return True
    declared = {each.names[-1] for module in codebase.modules.values() for each in module.module_files}
    return first in declared


def without_leaves(source: bytes, is_gone: Callable[[Leaf], bool]) -> list[Edit]:
    """The edits that take names out of imports, and imports out of a file that bring no other name."""
    edits: list[Edit] = []
    for node in descendants(parse_tree(source).root_node):
        tree = node.child_by_field_name("argument") if node.type == "use_declaration" else None
        if tree is None:
            continue
        is_public = any(child.type == "visibility_modifier" for child in node.children)
        left = _left(tree, source, (), is_public, is_gone)
        if left is None:
            edits += removals(source, [whole_lines(node, source)])
        elif left != text(tree, source):
            edits.append(Edit(tree.start_byte, tree.end_byte, left.encode()))
    return edits


def _left(
    tree: Node, source: bytes, path: tuple[str, ...], is_public: bool, is_gone: Callable[[Leaf], bool]
) -> str | None:
    """The text of an import's tree without the names that are gone; ``None`` if none is left."""
    if tree.type in {"use_list", "scoped_use_list"}:
        names = tree if tree.type == "use_list" else tree.child_by_field_name("list")
        prefix = field_text(tree, "path", source) if tree.type == "scoped_use_list" else ""
        inner = (*path, *filter(None, prefix.split("::")))
        before = [child for child in (names.named_children if names is not None else ()) if child.type in _TREES]
        after = [(each, _left(each, source, inner, is_public, is_gone)) for each in before]
        kept = [found for _, found in after if found is not None]
        if len(kept) == len(before) and all(text(each, source) == found for each, found in after):
            return text(tree, source)
        return _list(prefix, kept, tree) if kept else None
    plain = tree.child_by_field_name("path") if tree.type == "use_as_clause" else tree
    names_in_it = (text(plain, source) if plain is not None else "").split("::")
    name = names_in_it[-1]
    bound = field_text(tree, "alias", source) or (path[-1] if name == "self" and path else name)
    leaf = Leaf(path=(*path, *names_in_it[:-1]), name=name, bound=bound, is_public=is_public)
    return None if is_gone(leaf) else text(tree, source)


_TREES = frozenset(
    {"identifier", "self", "crate", "super", "scoped_identifier", "use_list", "scoped_use_list", "use_as_clause",
     "use_wildcard", "metavariable"}
)  # fmt: skip


def _list(prefix: str, kept: list[str], tree: Node) -> str:
    """A list of imports; without braces for one, and on several lines if it is long."""
    start = f"{prefix}::" if prefix else ""
    if len(kept) == 1 and kept[0] != "self":
        return start + kept[0]
    line = f"{start}{{{', '.join(kept)}}}"
    if len(line) + tree.start_point[1] < MAX_LINE and "\n" not in line:
        return line
    margin = " " * (4 * (tree.start_point[1] // 4 if tree.parent is not None and tree.parent.type == "use_list" else 0))
    inner = "".join(f"{margin}    {each},\n" for each in kept)
    return f"{start}{{\n{inner}{margin}}}"
