"""What code that stays calls by the name of a removed definition, where nothing tells of which object.

Such a call may mean another definition of the name, or the removed one: only a run would tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from tree_sitter import Node

from excise.deleters.javascript.mentions import OF_THE_LANGUAGE
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import descendants, parse_tree, text
from excise.extractors.javascript.analysis.parsed_file import Reference

_TEXTS = frozenset({"string_fragment", "template_string"})
"""Nodes of texts: code that is made of them calls functions, too."""


def calls_left(
    codebase: JavaScriptCodebase, names: Collection[str], is_removed: Callable[[str, int], bool]
) -> Iterator[tuple[str, str]]:
    """(path, text) of calls in code that stays, outside tests, of one of the names behind an object of unknown type,
    and of texts that hold such calls. ``is_removed`` tells whether a byte of a file goes.

    Names that objects of the language have are left out.
    """
    wanted = frozenset(names) - OF_THE_LANGUAGE
    in_text = re.compile(rb"(?<![\w$])(?:%s)\(" % b"|".join(sorted(re.escape(name.encode()) for name in wanted)))
    for path, module in codebase.modules.items() if wanted else ():
        if codebase.is_test(path) or not any(name.encode() in module.source for name in wanted):
            continue
        for reference in module.references:
            is_left = reference.chain[-1] in wanted and not is_removed(path, reference.start)
            if is_left and _is_unknown_call(codebase, path, reference, module.source):
                yield path, module.source[reference.start : reference.end].decode("utf-8", "replace")
        for node in descendants(parse_tree(module.source).root_node):
            if node.type in _TEXTS and not is_removed(path, node.start_byte):
                found = in_text.search(module.source, node.start_byte, node.end_byte)
                if found is not None and not _is_filled_in(node, found.start()):
                    yield path, text(node, module.source)[:80]


def _is_unknown_call(codebase: JavaScriptCodebase, path: str, reference: Reference, source: bytes) -> bool:
    """Whether a reference calls a member of an object that no import and no class around it tells."""
    if len(reference.chain) < 2 or not source[reference.end : reference.end + 9].lstrip().startswith((b"(", b"?.(")):
        return False
    return not codebase.targets(path, reference) and not codebase.links.is_external(path, reference.chain[0])


def _is_filled_in(template: Node, offset: int) -> bool:
    """Whether a byte of a template is in code that it fills in, which has references of its own."""
    filled = (each for each in template.named_children if each.type == "template_substitution")
    return any(each.start_byte <= offset < each.end_byte for each in filled)
