"""Tests of types, which are only compiled, lose the statements that name what is gone."""

from __future__ import annotations

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.code_examples import GoneUses, without_uses
from excise.deleters.javascript.type_declarations import TypeNames
from excise.deleters.javascript.unused_code import without_unused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import TYPED, parse_tree
from excise.types import path_of


def type_tests_without(codebase: JavaScriptCodebase, names: TypeNames) -> Changed:
    """Path to (content before, content after) of the files in TypeScript beside the tests in which no test is known;
    ``None`` where nothing but imports is left. A file that could no longer be parsed stays as it is."""
    known = {path_of(test) for test in codebase.tests}
    members = frozenset(name for _, name in names.members) & names.alone
    gone = GoneUses(names.alone - members, members, frozenset())
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, module in codebase.modules.items() if names.alone else ():
        if not path.endswith(TYPED) or path in known or not codebase.is_test(path) or module.has_error:
            continue
        lines = module.source.decode(errors="surrogateescape").split("\n")
        left = without_uses(lines, gone)
        if left is not None:
            after = "\n".join([*left, ""]).encode(errors="surrogateescape") if left else None
            after = after and without_unused(module.source, after)
            if after is None or not parse_tree(after).root_node.has_error:
                changed[path] = (module.source, after)
    return changed
