"""Divides one test, or one helper that checks, into what it does and what it expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable, edited
from excise.extractors.java.analysis.grammar import annotations_of, descendants, name_of, statements, text
from excise.extractors.java.execution.certain_tests import (
    has_effect,
    is_input,
    why_changed,
    why_repeated,
)
from excise.extractors.java.execution.checks import Check, Kind, arguments, is_assertion_name
from excise.extractors.java.execution.expected_errors import expected_class, is_of_error, try_that_fails
from excise.extractors.java.execution.expected_values import is_written_out
from excise.extractors.java.execution.hidden_comparisons import HiddenComparisons, mixes
from excise.extractors.java.execution.observing_checks import REPORTER, ObservingCheck, report
from excise.extractors.java.execution.test_class import TestClass, parameters_of, simple_annotations
from excise.extractors.java.execution.written_names import UNCHANGING, WrittenNames

MAX_DEPTH = 2
"""Helpers that call helpers are divided to this depth."""
_CHECKED = frozenset({Kind.EQUAL, Kind.ITEMS, Kind.SAME, Kind.TRUE, Kind.NULL, Kind.THROWS})
_ADDING = frozenset({"add", "put", "append", "addAll"})
_THREADS = frozenset({
    "Thread", "ExecutorService", "CompletableFuture", "CountDownLatch", "Executors", "CyclicBarrier", "ForkJoinPool",
    "Timer", "parallelStream", "parallel", "submit", "invokeAll",
})  # fmt: skip
_FAILURES = frozenset({
    "AssertionError", "AssertionFailedError", "ComparisonFailure", "Expectations", "StrictExpectations",
    "Verifications", "FullVerifications", "VerificationsInOrder",
})  # fmt: skip
"""Types of which a test makes objects to fail, or to check what was called."""
_CHECKING = ("org.assertj.", "org.hamcrest.", "com.google.common.truth.", "org.testng.")
"""Packages of libraries of checks."""
_SHOWING = frozenset({"System.out", "System.err"})
_OF_RUNS = frozenset({"TestInfo", "TestReporter", "RepetitionInfo"})
"""Types of parameters that get no column of the rows."""
_THROWABLE = "java.lang.Throwable"
_ACTING = frozenset({
    "method_invocation", "object_creation_expression", "assignment_expression", "update_expression",
    "lambda_expression",
})  # fmt: skip
_ALL_ERRORS = frozenset({"Throwable", "Error", "AssertionError"})
"""What would also catch a failure of the test."""


class DividedTest:
    """A method with the edits that make its observing form."""

    def __init__(self, holder: TestClass, method: Node, depth: int = 0) -> None:
        body = method.child_by_field_name("body")
        parameters = parameters_of(method, holder.file.source)
        if body is None or parameters is None:
            raise Undividable("any number of parameters")
        self.holder, self.method, self.body, self.depth, self.parameters = holder, method, body, depth, parameters
        self.file, self.source, self.depending = holder.file, holder.file.source, holder.file.depending
        self.has_rows: bool = "ParameterizedTest" in simple_annotations(method, self.source)
        self.names = WrittenNames(holder, method, body)
        self.edits: list[Edit] = []
        self.sites: dict[str, dict[str, Any]] = {}
        """Places of values that have no certain text, to what is right there."""
        self.helpers: dict[int, DividedTest] = {}
        """Helpers by their places in the file."""
        self.fields: set[str] = set()
        """Fields that hold what is expected."""
        self.expected_parameters: set[str] = set()
        """Parameters that hold nothing but what is expected."""
        self.given_parameters: set[str] = set()
        """Parameters that hold what is expected and are given to the code, too."""
        self._given_to_helpers: list[Node] = []
        self._dropped: set[int] = set()
        """The ids of nodes that have no place in the form."""
        self._variables: set[str] = set()
        """Variables and parameters that are compared with what the code gives."""
        self._checks: list[Check] = []
        self._helper_calls: list[Node] = []
        self._caught: set[int] = set()
        """Where the clauses begin that catch expected errors."""

    def divide(self) -> None:
        """Make the edits. Raises :class:`Undividable`."""
        self._collect(self.body, inside=None)
        self._divide_failures()
        checks = [check for check in self._checks if check.kind in _CHECKED]
        for node in (*(check.node for check in checks), *self._helper_calls):
            self._require_made_once(node)
        for check in checks:
            self._divide_check(check)
        for call in self._helper_calls:
            self._divide_call(call)
        self._require_certain()
        self._keep_given_fields()
        self.edits += list(self._expected_edits())
        self.edits += list(self._unused_edits())

    # -------------------------------------------------------------------------------------- finding checks
    def _collect(self, node: Node, inside: Check | None) -> None:
        """Find all checks and calls of helpers that check."""
        if node.type == "method_invocation":
            check = self.holder.reader.read(node)
            if check is not None:
                self._add(check, inside)
                return
            self._require_harmless(node)
            helper = self._helper_of(node)
            if helper is not None and self.holder.checks_in(helper):
                if inside is not None and inside.kind is not Kind.ALL:
                    raise Undividable("check within a check")
                self._helper_calls.append(node)
        for child in node.named_children:
            self._collect(child, inside)

    def _add(self, check: Check, inside: Check | None) -> None:
        if check.kind is Kind.OTHER:
            raise Undividable("check of another kind")
        if inside is not None and inside.kind is not Kind.ALL:
            raise Undividable("check within a check")
        around = check.node.parent
        is_statement = around is not None and around.type in {"expression_statement", "lambda_expression"}
        has_result = check.kind in {Kind.THROWS, Kind.HARMLESS} and self._declared_by(check.node) is not None
        if not is_statement and not has_result:
            raise Undividable("result of a check")
        self._checks.append(check)
        if check.kind in {Kind.ALL, Kind.HARMLESS}:
            for each in arguments(check.node):
                self._collect(each, check)
        elif check.actual is not None:
            self._collect(check.actual, check)

    def _require_harmless(self, call: Node) -> None:
        """Raise :class:`Undividable` for a call that may check something elsewhere."""
        name, target = name_of(call, self.source), call.child_by_field_name("object")
        if name in self.depending:
            return
        is_own = target is None and name in self.holder.methods
        is_inherited = target is None and not is_own and name not in self.file.imports.functions
        above = list(self.holder.inherited(name)) if is_inherited else []
        is_unknown = is_inherited and not above and not self.holder.is_whole
        if is_unknown or any(each.checks_in(method) or each.compares(method) for each, method in above):
            raise Undividable("helper of another file")
        owner = "" if is_own or target is not None else self.file.imports.functions.get(name, "")
        is_open = name.startswith("then") and any(each.startswith(_CHECKING) for each in self.file.imports.open_types)
        is_check = owner.startswith(_CHECKING) or (target is None and is_open)
        if not is_own and (is_check or is_assertion_name(name)):
            raise Undividable("check of another kind")
        holder = text(target, self.source) if target is not None else self.file.imports.functions.get(name, "")
        last = holder.rpartition(".")[2]
        if last in self.file.foreign_types or (last[:1].isupper() and ("Test" in last or "Assert" in last)):
            raise Undividable("helper of another file")

    def _helper_of(self, call: Node) -> Node | None:
        """The method of the class that is called; ``None`` for other calls."""
        target = call.child_by_field_name("object")
        is_own = target is None or target.type == "this" or text(target, self.source) == self.holder.names[-1]
        found = self.holder.methods.get(name_of(call, self.source), []) if is_own else []
        number = len(arguments(call))
        fitting = [each for each in found if len(parameters_of(each, self.source) or ()) == number]
        if len(fitting) != 1 and any(map(self.holder.checks_in, found)):
            raise Undividable("helper that checks")
        return fitting[0] if len(fitting) == 1 else None

    def _require_made_once(self, node: Node) -> None:
        """Raise :class:`Undividable` if the code may decide whether, or how often, a check is made."""

        def is_all(call: Node) -> bool:
            return any(check.node == call and check.kind is Kind.ALL for check in self._checks)

        why = why_repeated(node, self.body, self.names.is_fixed, is_all, self._is_failing_clause)
        if why:
            raise Undividable(why)

    def _is_failing_clause(self, clause: Node) -> bool:
        """Whether a clause that catches an error does nothing but fail the test, or is divided itself."""
        block = clause.child_by_field_name("body")
        if block is None or clause.start_byte in self._caught:
            return block is not None
        found = statements(block)
        failures = (check.node.parent for check in self._checks if check.kind is Kind.FAIL)
        return len(found) == 1 and found[0] in failures

    # ------------------------------------------------------------------------------------ expected errors
    def _divide_failures(self) -> None:
        """Divide what expects an error: the annotation, and statements that fail the test if there is none."""
        for check in self._checks:
            given = arguments(check.node)
            if check.kind is Kind.ALL and given and given[0].type == "string_literal":
                self._edit(given[0], '""')
            elif check.kind is Kind.HARMLESS and len(given) > 1:
                self._edit(given[1], '""')
            elif check.kind is Kind.FAIL:
                self._divide_failure(check)
        found = expected_class(self.method, self.source)
        if found is None:
            return
        if self._caught or any(check.kind in _CHECKED for check in self._checks) or self._helper_calls:
            raise Undividable("checks before an expected error")
        name, start, end = found
        site, mark = self.body.start_byte, self.file.mark
        self.sites[str(site)] = {"thrown": [self.file.full_name(name)]}
        head = f"{{ {_THROWABLE} error{mark} = null; try "
        tail = (
            f" catch ({_THROWABLE} other{mark}) {{ error{mark} = other{mark}; }}"
            f" finally {{ {report('thrown', site, f'error{mark}')}; }} }}"
        )
        self.edits.append(Edit(start, end, b""))
        for place, code in ((self.body.start_byte, head), (self.body.end_byte, tail)):
            self.edits.append(Edit(place, place, code.encode()))

    def _divide_failure(self, check: Check) -> None:
        """Divide a call of ``fail``: where an error is caught, or where none was thrown."""
        statement = check.node.parent
        block = statement.parent if statement is not None else None
        if statement is None or block is None or statement.type != "expression_statement":
            raise Undividable("failure without a check")
        if block.parent is not None and block.parent.type == "catch_clause":
            self._edit(check.node, f"{REPORTER}.fail()")
            return
        found = try_that_fails(statement, self.source)
        if (
            found is None
            or found.clause.parent is None
            or _ALL_ERRORS.intersection(each.rpartition(".")[2] for each in found.classes)
        ):
            raise Undividable("failure without a check")
        before = range(block.start_byte, statement.start_byte)
        if any(each.node.start_byte in before for each in self._checks):
            raise Undividable("checks before an expected error")
        self._require_made_once(found.clause.parent)
        site, place = check.node.start_byte, found.block.start_byte + 1
        self.sites[str(site)] = {"thrown": list(map(self.file.full_name, found.classes))}
        self._edit(check.node, report("thrown", site, "null"))
        self._edit(found.kind, _THROWABLE)
        self.edits.append(Edit(place, place, f" {report('thrown', site, found.name)};".encode()))
        self._caught.add(found.clause.start_byte)

    def _edit(self, node: Node, code: str) -> None:
        self.edits.append(Edit(node.start_byte, node.end_byte, code.encode()))
        self._drop(node)

    # --------------------------------------------------------------------------------------------- checks
    def _divide_check(self, check: Check) -> None:
        node = check.node
        said = [each for each in arguments(node) if each not in (check.actual, check.expected, check.delta)]
        if any(has_effect(each, self.source) for each in said):
            raise Undividable("message with an effect")
        made = ObservingCheck(check, self.names, self._is_expected)
        self.sites |= made.sites
        self.edits.append(Edit(node.start_byte, node.end_byte, made.code.encode()))
        self._drop(node, made.observed)
        declaration = self._declared_by(node)
        if check.kind is Kind.THROWS and declaration is not None:
            kind, name = declaration.child_by_field_name("type"), declaration.child_by_field_name("declarator")
            if kind is None or name is None or not is_of_error(name_of(name, self.source), self.body, self.source):
                raise Undividable("error that the test looks into")
            self._edit(kind, _THROWABLE)

    def _declared_by(self, call: Node) -> Node | None:
        """The declaration of one variable whose value a call gives."""
        declarator = call.parent
        found = declarator.parent if declarator is not None and declarator.type == "variable_declarator" else None
        if found is None or found.type != "local_variable_declaration":
            return None
        return found if len(found.children_by_field_name("declarator")) == 1 else None

    # ------------------------------------------------------------------------------------------- expected
    def _is_expected(self, node: Node) -> bool:
        """Whether a value is written out somewhere in the test; where that is, is noted."""
        names: set[str] = set()

        def is_known(each: Node) -> bool:
            names.add(text(each, self.source))
            return self.names.is_known(each, is_expected=True)

        if not is_written_out(node, self.source, self.depending, is_known):
            return False
        self._variables |= {name for name in names if self.names.is_variable(name)}
        self.fields |= {name for name in names - self._variables if name in self.holder.fields}
        return True

    def _keep_given_fields(self) -> None:
        """Let fields be that the test itself gives to the code."""
        for name in sorted(self.fields):
            if self.names.is_immutable(name) and self.gives(name):
                self.fields.discard(name)

    @property
    def columns(self) -> list[tuple[str, Node]]:
        """(name, node) of the parameters that get a value from a caller, or from rows."""
        kinds = {name: node.child_by_field_name("type") for name, node in self.parameters}
        of_run = {name for name, kind in kinds.items() if kind is not None and text(kind, self.source) in _OF_RUNS}
        return [(name, node) for name, node in self.parameters if name not in of_run]

    @property
    def compared(self) -> frozenset[str]:
        """Variables and parameters that are compared with what the code gives."""
        return frozenset(self._variables)

    def gives(self, name: str) -> bool:
        """Whether the code under test gets what a name stands for."""
        return self._is_given(self._uses(name))

    def _is_given(self, uses: list[Node]) -> bool:
        given = (use in self._given_to_helpers or is_input(use, self.source, self.depending, self.body) for use in uses)
        return any(given)

    def _is_unchanging(self, node: Node) -> bool:
        """Whether a value is written out, and no code that gets it can change it. Of a helper's parameters, its callers
        must know."""
        name = text(node, self.source)
        if node.type == "identifier" and name in self.names.parameters:
            self._variables.add(name)
            return True
        if node.type == "identifier":
            return self.names.is_immutable(name)
        is_boxed = node.type == "method_invocation" and name_of(node, self.source) == "valueOf"
        return (is_boxed or node.type in UNCHANGING) and self.names.is_fixed(node)

    def _expected_edits(self) -> Iterator[Edit]:
        """The edits that take out the variables of what is expected."""
        done: set[str] = set()
        while left := sorted(self._variables - done):
            name = left[0]
            done.add(name)
            changes = list(self._changes(name))
            uses = [use for use in self._uses(name) if not any(_is_within(use, change) for change in changes)]
            is_parameter = name in self.names.parameters
            if not changes and self._is_given(uses) and (is_parameter or self.names.is_immutable(name)):
                self.given_parameters |= {name} & set(self.names.parameters)
                continue
            declared = [each.parent for each in self.names.declarators(name) if each.parent is not None]
            is_single = all(len(each.children_by_field_name("declarator")) == 1 for each in declared)
            if uses or not is_single or not (declared or is_parameter):
                raise Undividable("expected value that the test uses otherwise")
            if is_parameter:
                self.expected_parameters.add(name)
            for each in (*declared, *changes):
                yield Edit(each.start_byte, each.end_byte, b"")

    def _unused_edits(self) -> Iterator[Edit]:
        """The edits that take out variables that are not used any more, and what is printed; parameters are noted."""
        if self.depth or self.has_rows:
            self.expected_parameters |= {name for name, _ in self.columns if not self._uses(name)}
        for name, declared in self.names.index.declared.items():
            line = declared[0].parent
            value = declared[0].child_by_field_name("value")
            is_single = line is not None and len(line.children_by_field_name("declarator")) == len(declared) == 1
            if not is_single or line is None or line.parent is None or line.parent.type != "block":
                continue
            if value is not None and self.names.is_fixed(value) and not self._uses(name):
                yield Edit(line.start_byte, line.end_byte, b"")
        for each in descendants(self.body):
            target = each.child_by_field_name("object") if each.type == "method_invocation" else None
            if target is not None and text(target, self.source) in _SHOWING:
                texts = (leaf for given in arguments(each) for leaf in descendants(given))
                yield from (Edit(t.start_byte, t.end_byte, b'""') for t in texts if t.type == "string_literal")

    def _changes(self, name: str) -> Iterator[Node]:
        """Statements that add a written value to a variable: ``expected.add(3);``."""
        for use in self._uses(name):
            call = use.parent
            if call is None or call.type != "method_invocation" or call.child_by_field_name("object") != use:
                continue
            statement = call.parent
            if statement is None or statement.type != "expression_statement" or statement.parent != self.body:
                continue
            if name_of(call, self.source) in _ADDING and all(map(self._is_expected, arguments(call))):
                yield statement

    def _uses(self, name: str) -> list[Node]:
        """Where a variable is used, but for its declaration and checks."""
        found = []
        for each in self.names.uses(name):
            parent = each.parent
            if parent is None or self._is_dropped(each):
                continue
            is_declared = parent.type == "variable_declarator" and parent.child_by_field_name("name") == each
            is_loop = parent.type == "enhanced_for_statement" and parent.child_by_field_name("name") == each
            is_method = parent.type == "method_invocation" and parent.child_by_field_name("name") == each
            is_field = parent.type == "field_access" and parent.child_by_field_name("field") == each
            if not (is_declared or is_loop or is_method or is_field):
                found.append(each)
        return found

    def _drop(self, node: Node, kept: Iterable[Node] = ()) -> None:
        """Note that a node has no place in the form, but for some of it."""
        self._dropped.update(each.id for each in descendants(node))
        for part in kept:
            self._dropped.difference_update(each.id for each in descendants(part))

    def _is_dropped(self, node: Node) -> bool:
        return node.id in self._dropped

    def _require_certain(self) -> None:
        """Raise :class:`Undividable` if the code may decide what is checked, or something else is compared."""
        mixed = HiddenComparisons(self.names, is_helper=self.depth > 0)
        places = [*(check.node.start_byte for check in self._checks), *(call.start_byte for call in self._helper_calls)]

        def has_check(node: Node) -> bool:
            return any(node.start_byte <= place < node.end_byte for place in places)

        for node in descendants(self.body):
            if node.type in {"type_identifier", "identifier"} and text(node, self.source) in _THREADS:
                raise Undividable("threads")
            if self._is_dropped(node):
                continue
            if node.type == "type_identifier" and text(node, self.source) in _FAILURES:
                raise Undividable("failure without a check")
            if why := mixed.why(node):
                raise Undividable(why)
            if node.type == "method_reference":
                called = self.holder.methods.get(text(node.named_children[-1], self.source), ())
                if any(self.holder.checks_in(each) or self.holder.compares(each) for each in called):
                    raise Undividable("helper that checks")
            if why := why_changed(node, self.source, self.depending, has_check, self.body):
                raise Undividable(why)
            if node.type == "method_invocation" and name_of(node, self.source) not in self.depending:
                helper = self._helper_of(node)
                if helper is None or node in self._helper_calls:
                    continue
                if self.holder.compares(helper) or (mixed.is_of_code(node) and mixes(self.holder, helper)):
                    raise Undividable("comparing function")

    # -------------------------------------------------------------------------------------------- helpers
    def _divide_call(self, call: Node) -> None:
        """Let a call call the observing form of a helper, without what it expects."""
        helper = self._helper_of(call)
        kind = helper.child_by_field_name("type") if helper is not None else None
        is_plain = helper is not None and "Override" not in annotations_of(helper, self.source)
        if helper is None or not is_plain or kind is None or kind.type != "void_type" or self.depth >= MAX_DEPTH:
            raise Undividable("helper that checks")
        made = self._divided_helper(helper)
        self.helpers |= {**made.helpers, helper.start_byte: made}
        self.sites |= made.sites
        self.fields |= made.fields
        kept = []
        for (parameter, _), argument in zip(made.parameters, arguments(call), strict=True):
            if parameter in made.expected_parameters:
                is_unused = parameter not in made.compared and not any(
                    each.type in _ACTING for each in descendants(argument)
                )
                if not is_unused and not self._is_expected(argument):
                    raise Undividable("expected value that is computed")
                self._drop(argument)
                continue
            if parameter in made.given_parameters and not self._is_unchanging(argument):
                raise Undividable("expected value that is computed")
            if made.gives(parameter):
                self._given_to_helpers.append(argument)
            kept.append(text(argument, self.source))
        whole, called = call.child_by_field_name("arguments"), call.child_by_field_name("name")
        assert whole is not None
        assert called is not None
        self.edits.append(Edit(called.end_byte, called.end_byte, made.mark.encode()))
        self.edits.append(Edit(whole.start_byte, whole.end_byte, f"({', '.join(kept)})".encode()))

    def _divided_helper(self, helper: Node) -> DividedTest:
        known = self.holder.divided_helpers
        key = (helper.id, self.depth)
        if key not in known:
            try:
                known[key] = DividedTest(self.holder, helper, self.depth + 1)
                known[key].divide()
            except Undividable as reason:
                known[key] = reason
        found = known[key]
        if isinstance(found, Undividable):
            raise found
        made: DividedTest = found
        return made

    @property
    def mark(self) -> str:
        """What the name of a helper's form ends with: forms of overloaded helpers may have equal parameters."""
        is_overloaded = len(self.holder.methods.get(name_of(self.method, self.source), ())) > 1
        return f"{self.file.mark}_{len(self.parameters)}" if is_overloaded else self.file.mark

    def as_helper(self) -> bytes:
        """The observing form of a helper under a name of its own, without the parameters that say what is expected."""
        head, parameters = self.method.child_by_field_name("name"), self.method.child_by_field_name("parameters")
        assert head is not None
        assert parameters is not None
        kept = [text(node, self.source) for name, node in self.parameters if name not in self.expected_parameters]
        edits = [
            *self.edits,
            Edit(head.end_byte, head.end_byte, self.mark.encode()),
            Edit(parameters.start_byte, parameters.end_byte, f"({', '.join(kept)})".encode()),
        ]
        start, end = self.method.start_byte, self.method.end_byte
        moved = [Edit(each.start - start, each.end - start, each.text) for each in edits]
        return edited(self.source[start:end], moved)


def _is_within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte and node.end_byte <= other.end_byte
