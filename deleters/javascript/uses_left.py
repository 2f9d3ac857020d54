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
from excise.types import Symbol

_THIS = re.compile(rb"\b(?:const|let|var)\s+(\w+)\s*=\s*this\s*(?=[;,\n])")
"""Another name of ``this``."""
_TEXTS = frozenset({"string_fragment", "template_string"})
"""Nodes of texts: code that is made of them calls functions, too."""


_TARGET = re.compile(rb"\s*((?:[\w$]+\s*\.\s*)+[\w$]+)\s*=(?![=>])")
"""A member to which something is assigned."""
_WHOLE = frozenset({b"module.exports", b"exports"})


def names_of(source: bytes, symbol: Symbol) -> list[str]:
    """The names of the members to which one statement assigns a function: ``Box.prototype.lid = Box.prototype.lids =
    function () {``."""
    names, at = [], symbol.start
    while (found := _TARGET.match(source, at, symbol.end)) is not None:
        target, at = b"".join(found[1].split()), found.end()
        names += [target.rpartition(b".")[2].decode("utf-8", "replace")] if target not in _WHOLE else []
    return list(dict.fromkeys(names))


def calls_left(
    codebase: JavaScriptCodebase,
    names: Collection[str],
    is_removed: Callable[[str, int], bool],
    own_paths: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """(path, text) of calls in code that stays, outside tests, of one of the names behind an object of unknown type,
    and of texts that hold such calls. ``is_removed`` tells whether a byte of a file goes.

    Names that objects of the language have count behind ``this`` alone, in the files that had what is removed
    (``own_paths``).
    """
    wanted = frozenset(names) - OF_THE_LANGUAGE
    yield from _calls_of_itself(codebase, frozenset(names) & OF_THE_LANGUAGE, is_removed, own_paths)
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


def _calls_of_itself(
    codebase: JavaScriptCodebase,
    names: frozenset[str],
    is_removed: Callable[[str, int], bool],
    own_paths: Collection[str],
) -> Iterator[tuple[str, str]]:
    """The calls ``this.close()``, also by another name of ``this``."""
    for path in sorted(own_paths) if names else ():
        source = codebase.modules[path].source
        own = {b"this", *_THIS.findall(source)}
        for reference in codebase.modules[path].references:
            root = source[reference.start : reference.end].partition(b".")[0]
            is_own = root in own and reference.chain[-1] in names and len(reference.chain) == 2
            if is_own and not is_removed(path, reference.start) and _is_unknown_call(codebase, path, reference, source):
                yield path, source[reference.start : reference.end].decode("utf-8", "replace")


def _is_unknown_call(codebase: JavaScriptCodebase, path: str, reference: Reference, source: bytes) -> bool:
    """Whether a reference calls a member of an object that no import and no class around it tells."""
    if len(reference.chain) < 2 or not source[reference.end : reference.end + 9].lstrip().startswith((b"(", b"?.(")):
        return False
    return not codebase.targets(path, reference) and not codebase.links.is_external(path, reference.chain[0])


def _is_filled_in(template: Node, offset: int) -> bool:
    """Whether a byte of a template is in code that it fills in, which has references of its own."""
    filled = (each for each in template.named_children if each.type == "template_substitution")
    return any(each.start_byte <= offset < each.end_byte for each in filled)
