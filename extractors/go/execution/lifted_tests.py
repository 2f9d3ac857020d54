"""Lifted tests: a form of a test that reports what it would check, and contains nothing of what it expects.

``if got := f(2); got != 4 { t.Error(…) }`` reports ``got`` instead. A test is divided if each of its checks compares
with a value that is written out, in the check, a variable, a table's column or a helper's argument, or asks for a
truth or ``nil``; and if nothing else in it can fail but what the code itself does. Helpers that check get a form of
their own, also those of other files of the folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from excise.extractors.divided_tests import Edit, Undividable, edited
from excise.extractors.go.analysis.grammar import descendants, parse_tree, text
from excise.extractors.go.analysis.parsed_file import name_of
from excise.extractors.go.execution.divided_function import DividedFunction
from excise.extractors.go.execution.lifted_reporter import with_reporter
from excise.protocols import LiftedTests

_TEST = re.compile(r"Test(?![a-z]|Main$)\w*$")
_PACKAGE = re.compile(rb"(?m)^package[ \t]+(\w+)")
_ALIAS = re.compile(r"^(?:v\d+|go-?|.*[.]v\d+)$")


def lifted(
    source: bytes, functions: Collection[str], depending: Collection[str], beside: Iterable[bytes]
) -> LiftedTests | None:
    """Divide the test ``functions`` of a file; ``None`` if the file cannot be parsed. All its other tests are emptied.

    ``depending``: names of the code under test and of what calls it. ``beside``: the other test files of the folder.
    """
    root = parse_tree(source).root_node
    if root.has_error:
        return None
    mark = hashlib.sha256(source).hexdigest()[:10]
    declared = {name_of(node, source): node for node in root.named_children if node.type == "function_declaration"}
    helpers = {name: (node, source) for name, node in declared.items()}
    for other in beside if (package := _PACKAGE.search(source)) else ():
        if (found := _PACKAGE.search(other)) is None or package is None or found[1] != package[1]:
            continue
        for node in parse_tree(other).root_node.named_children:
            if node.type == "function_declaration":
                helpers.setdefault(name_of(node, other), (node, other))
    refused, divided = dict[str, str](), dict[str, DividedFunction]()
    for name in sorted(functions):
        try:
            if name not in declared or not _TEST.match(name):
                raise Undividable("example or test of another kind")
            made = DividedFunction(declared[name], source, root, helpers, frozenset(depending), mark)
            made.divide()
            divided[name] = made
        except Undividable as reason:
            refused[name] = str(reason)
    _refuse_shared_columns(divided, refused)
    if not divided:
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)
    edits = [edit for made in divided.values() for edit in made.edits]
    for name, node in declared.items():
        body = node.child_by_field_name("body")
        if name not in divided and body is not None and (_TEST.match(name) or name.startswith("Example")):
            edits.append(Edit(body.start_byte, body.end_byte, b"{}"))
    text_of_helpers = {key: code for made in divided.values() for key, code in made.helper_texts.items()}
    result = edited(source, edits) + b"".join(b"\n" + code + b"\n" for _, code in sorted(text_of_helpers.items()))
    observing = with_reporter(_without_unused_imports(source, result), mark)
    return LiftedTests(observing=observing, judging=b"", functions=tuple(divided), refused=refused)


def _refuse_shared_columns(divided: dict[str, DividedFunction], refused: dict[str, str]) -> None:
    """Refuse tests one of which gives to the code what the other expects of a table of the file."""
    taken = {column for made in divided.values() for column in made.shared_columns}
    for name, made in sorted(divided.items()):
        if any(made.uses(table, field) for table, field in taken):
            refused[name] = "table that another test uses otherwise"
            del divided[name]


def _without_unused_imports(before: bytes, after: bytes) -> bytes:
    """The file with imports that nothing uses any more imported for their effects only."""
    used = _package_names(before), _package_names(after)
    edits = []
    for node in descendants(parse_tree(after).root_node):
        path = node.child_by_field_name("path") if node.type == "import_spec" else None
        if path is None:
            continue
        alias = node.child_by_field_name("name")
        names = {text(alias, after)} if alias is not None else set(_names_of_import(text(path, after).strip('"`')))
        if names & used[0] and not names & used[1]:
            edits.append(Edit(node.start_byte, node.end_byte, b"_ " + text(path, after).encode()))
    return edited(after, edits)


def _package_names(source: bytes) -> set[str]:
    """First names of selectors and qualified types."""
    found = set()
    for node in descendants(parse_tree(source).root_node):
        if node.type in {"selector_expression", "qualified_type"} and node.named_children:
            found.add(text(node.named_children[0], source))
    return found


def _names_of_import(path: str) -> Iterator[str]:
    """Names that the package of an import path may have."""
    parts: Sequence[str] = path.split("/")
    for part in reversed(parts):
        yield from {part, part.removeprefix("go-"), part.removesuffix("-go"), part.partition(".")[0]}
        if not _ALIAS.match(part):
            break
