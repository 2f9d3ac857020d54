"""Lifted tests: a form of a test that reports what it would check, and contains nothing of what it expects.

``assertEquals(4, f(2));`` reports ``f(2)`` instead. A test is divided if each of its checks compares with a value that
is written out, in the check, a variable, a constant, a parameter's rows or a helper's argument, or asks for a truth,
``null`` or an error; and if nothing else in it can fail but what the code itself does. Which errors are right, and how
much numbers may differ, is in the judging form, which no solution meets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable, edited
from excise.extractors.java.analysis.grammar import annotations_of, modifiers_of, name_of, parse_tree, text
from excise.extractors.java.execution.divided_test import DividedTest
from excise.extractors.java.execution.parameter_sources import Unseparable, column_edits
from excise.extractors.java.execution.remaining_code import tests_beside_comparisons
from excise.extractors.java.execution.test_class import (
    TestClass,
    TestFile,
    classes_of,
    is_test,
    parameters_of,
    simple_annotations,
)
from excise.extractors.java.execution.unused_members import without_unused_members
from excise.protocols import LiftedTests

_RUNNERS = re.compile(
    r"RunWith\(\s*(?:value\s*=\s*)?(?:JUnit4|BlockJUnit4ClassRunner|MockitoJUnitRunner[\w.]*)\.class\s*\)"
)
_SHOWN = frozenset({"DisplayName", "DisplayNameGeneration", "IndicativeSentencesGeneration", "Tag", "Tags"})
"""Annotations that may say in words what is expected, and change nothing of a test that runs."""
_OF_WHOLE_ROWS = re.compile(r"\b(?:ArgumentsAccessor|AggregateWith)\b")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_KINDS = frozenset({"Test", "ParameterizedTest", "RepeatedTest"})


def lifted(
    source: bytes, functions: Collection[str], depending: Collection[str], beside: Iterable[bytes]
) -> LiftedTests | None:
    """Divide the tests ``functions`` (``Class::method``) of a file; ``None`` if it cannot be parsed. All its other
    tests are taken out.

    ``depending``: names of the code under test and of what calls it. ``beside``: the other test files of the folder.
    """
    try:
        source.decode()
        return _lifted(source, functions, frozenset(depending), list(beside))
    except UnicodeDecodeError:  # texts would have other characters
        return None
    except RecursionError:
        return _all_refused(dict.fromkeys(functions, "too deeply nested"))


def _all_refused(refused: Mapping[str, str]) -> LiftedTests:
    return LiftedTests(observing=b"", judging=b"", functions=(), refused=refused)


def _lifted(
    source: bytes, functions: Collection[str], names: frozenset[str], others: Sequence[bytes]
) -> LiftedTests | None:
    file = TestFile(source, names, tuple(TestFile(other, names) for other in others))
    if file.root.has_error:
        return None
    found = {name: each for holder in classes_of(file) for name, each in _methods(holder)}
    refused, divided = dict[str, str](), dict[str, tuple[DividedTest, list[Edit]]]()
    for name in sorted(functions):
        try:
            divided[name] = _divided(*found.get(name, (None, ())))
        except (Undividable, Unseparable) as reason:
            refused[name] = str(reason)
        except RecursionError:
            refused[name] = "too deeply nested"
    while True:
        made = _observing(file, found, divided, others)
        words = set(_WORD.findall(made.decode()))
        wrong = [name for name, (test, _) in divided.items() if not words.isdisjoint(test.fields)]
        why = "expected value that the tests use otherwise"
        if not wrong and divided:
            wrong = sorted(tests_beside_comparisons(TestFile(made, names), divided, file.mark))
            why = "comparison outside the tests"
        for name in wrong:
            refused[name] = why
            del divided[name]
        if not wrong:
            break
    if not divided or parse_tree(made).root_node.has_error:
        refused |= dict.fromkeys(divided, "form that cannot be parsed")
        return _all_refused(refused)
    judging = {name: test.sites for name, (test, _) in divided.items() if test.sites}
    form = json.dumps(judging, sort_keys=True).encode()
    return LiftedTests(observing=made, judging=form, functions=tuple(divided), refused=refused)


def _methods(holder: TestClass) -> Iterator[tuple[str, tuple[TestClass, list[Node]]]]:
    """The methods of a class by name (``Class::method``)."""
    for name, methods in holder.own_methods.items():
        yield "::".join((*holder.names, name)), (holder, methods)


def _divided(holder: TestClass | None, methods: Collection[Node]) -> tuple[DividedTest, list[Edit]]:
    """One test, divided, and further edits. Raises :class:`Undividable` and :class:`Unseparable`."""
    if holder is None or len(methods) != 1:
        raise Undividable("test of another file, or of several methods")
    (method,) = methods
    source = holder.file.source
    kinds = _KINDS.intersection(simple_annotations(method, source))
    if not is_test(method, source, is_junit3=holder.is_junit3) or (not kinds and not holder.is_junit3):
        raise Undividable("test of another kind")
    around: TestClass | None = holder
    while around is not None:
        for annotation in annotations_of(around.node, source):
            if annotation.startswith("RunWith") and not _RUNNERS.match(annotation):
                raise Undividable("test with a runner of its own")
        around = around.outer
    if holder.set_up_checks:
        raise Undividable("set-up that checks")
    made = DividedTest(holder, method)
    made.divide()
    parameters = parameters_of(method, source) or []
    if made.given_parameters and any(not made.names.is_immutable(name) for name in made.given_parameters):
        raise Undividable("expected value that the test uses otherwise")
    columns = [number for number, (name, _) in enumerate(made.columns) if name in made.expected_parameters]
    edits = list(_annotation_edits(method, source))
    if columns:
        if "ParameterizedTest" not in kinds:
            raise Undividable("expected value that is computed")
        if _OF_WHOLE_ROWS.search(text(method, source)):
            raise Undividable("rows in another form")
        edits += column_edits(holder, method, columns, len(made.columns))
        whole = method.child_by_field_name("parameters")
        assert whole is not None
        kept = ", ".join(text(node, source) for name, node in parameters if name not in made.expected_parameters)
        edits.append(Edit(whole.start_byte, whole.end_byte, f"({kept})".encode()))
    return made, edits


def _annotation_edits(method: Node, source: bytes) -> Iterator[Edit]:
    """Edits that take out what annotations say in words."""
    modifiers = modifiers_of(method)
    for node in modifiers.named_children if modifiers is not None else ():
        name = name_of(node, source).rpartition(".")[2]
        given = node.child_by_field_name("arguments")
        if name in _SHOWN:
            yield Edit(node.start_byte, node.end_byte, b"")
        elif name == "ParameterizedTest" and given is not None:
            yield Edit(given.start_byte, given.end_byte, b"")
        elif name == "RepeatedTest" and given is not None:
            pairs = [each for each in given.named_children if each.type == "element_value_pair"]
            values = [text(each, source) for each in pairs if text(each, source).startswith("value")]
            if pairs:
                yield Edit(given.start_byte, given.end_byte, f"({', '.join(values)})".encode())


def _observing(
    file: TestFile,
    found: Mapping[str, tuple[TestClass, list[Node]]],
    divided: Mapping[str, tuple[DividedTest, list[Edit]]],
    others: Iterable[bytes],
) -> bytes:
    """The file in which tests report values."""
    edits, helpers = list[Edit](), dict[int, DividedTest]()
    for test, more in divided.values():
        edits += [*test.edits, *more]
        helpers |= test.helpers
    for holder in {id(holder): holder for holder, _ in found.values()}.values():
        edits += _annotation_edits(holder.node, file.source)
    for helper in helpers.values():
        place = helper.method.end_byte
        edits.append(Edit(place, place, b"\n    " + helper.as_helper()))
    for name, (holder, methods) in found.items():
        for method in methods:
            if name not in divided and is_test(method, file.source, is_junit3=holder.is_junit3):
                edits.append(Edit(method.start_byte, method.end_byte, b""))
    return without_unused_members(edited(file.source, edits), others)
