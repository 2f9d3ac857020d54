"""Takes out of an edited file what it no longer needs: imports, without which Go does not compile, and empty groups."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.grammar import descendants, parse_tree
from excise.extractors.go.analysis.parsed_file import GoModule, lines_with_comments, parse_file

_GROUPS = frozenset({"import_declaration", "const_declaration", "var_declaration", "type_declaration"})
_SPECS = frozenset({"import_spec", "const_spec", "var_spec", "type_spec", "type_alias"})


def tidied(before: GoModule, after: bytes) -> bytes:
    """The edited file ``after`` without empty groups, and without the imports that it no longer uses, but did use
    ``before``.

    Where the name of a package cannot be told from its path, the file did not use that name before, and it stays.
    """
    module = parse_file(before.path, after)
    used, was_used = _qualifiers(module), _qualifiers(before)
    gone = [
        each
        for each in module.imports
        if each.name not in {"_", "."} and each.used_names & was_used and not each.used_names & used
    ]
    text = apply_edits(after, removals(after, [(each.start, each.end) for each in gone]))
    empty = [node for node in parse_tree(text).root_node.named_children if _is_empty(node)]
    if not any(map(_is_empty_init, parse_tree(before.source).root_node.named_children)):
        empty += filter(_is_empty_init, parse_tree(text).root_node.named_children)
    return apply_edits(text, removals(text, [lines_with_comments(node, text) for node in empty]))


def goes_whole(codebase: GoCodebase, path: str) -> bool:
    """Whether a file without definitions goes: it holds no documentation of its package."""
    root = parse_tree(codebase.modules[path].source).root_node
    clauses = (node for node in root.named_children if node.type == "package_clause")
    above = ((each.prev_named_sibling, each) for each in clauses)
    return not any(
        comment is not None and comment.type == "comment" and comment.end_point[0] + 1 == clause.start_point[0]
        for comment, clause in above
    )


def _is_empty(node: Node) -> bool:
    return node.type in _GROUPS and not any(each.type in _SPECS for each in descendants(node))


def _is_empty_init(node: Node) -> bool:
    """Whether a node is a function that Go calls at the beginning, and does nothing."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    is_init = node.type == "function_declaration" and name is not None and name.text == b"init"
    return is_init and body is not None and not body.named_children


def _qualifiers(module: GoModule) -> frozenset[str]:
    return frozenset(reference.qualifier for reference in module.references if reference.qualifier not in {"", "?"})
