"""Tests of types, which are only compiled, lose the statements that name what is gone."""

from __future__ import annotations

import re

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.code_examples import GoneUses, without_uses
from excise.deleters.javascript.type_declarations import TypeNames
from excise.deleters.javascript.unused_code import without_unused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import parse_tree
from excise.types import path_of

_FILE = re.compile(r"(?:(\.(?:tst|test-d))|(?:^|/)types?)\.[cm]?tsx?$")
"""The end of the path of a test of types; that of one that nothing imports has a group."""


def type_tests_without(codebase: JavaScriptCodebase, names: TypeNames) -> Changed:
    """Path to (content before, content after) of the tests of types, by the names of their files.

    One in which nothing but imports is left goes (``None``), if its name says that it is a test. A file that could no
    longer be parsed stays as it is.
    """
    known = {path_of(test) for test in codebase.tests}
    members = frozenset(name for _, name in names.members) & names.alone
    gone = GoneUses(names.alone - members, members, frozenset())
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, module in codebase.modules.items() if names.alone else ():
        named = _FILE.search(path)
        if named is None or path in known or not codebase.is_test(path) or module.has_error:
            continue
        lines = module.source.decode(errors="surrogateescape").split("\n")
        left = without_uses(lines, gone)
        if left is None or not (left or named[1]):
            continue
        after = "\n".join([*left, ""]).encode(errors="surrogateescape") if left else None
        after = after and without_unused(module.source, after)
        if after is None or not parse_tree(after).root_node.has_error:
            changed[path] = (module.source, after)
    return changed
