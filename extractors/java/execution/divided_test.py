"""Divides one test, or one helper that checks, into what it does and what it expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import descendants, name_of, statements, text
from excise.extractors.java.execution.certain_tests import (
    LOOPS,
    is_comparison,
    is_input,
    may_compare,
    why_changed,
    why_repeated,
)
from excise.extractors.java.execution.checks import Check, Kind, arguments, is_assertion_name
from excise.extractors.java.execution.expected_errors import expected_class, is_of_error, try_that_fails
from excise.extractors.java.execution.expected_values import LITERALS, Edit, edited, is_written_out, number_of
from excise.extractors.java.execution.test_class import TestClass, parameters_of

REPORTER = "excise.Observed"
MAX_DEPTH = 2
"""Helpers that call helpers are divided to this depth."""
_CHECKED = frozenset({Kind.EQUAL, Kind.ITEMS, Kind.SAME, Kind.TRUE, Kind.NULL, Kind.THROWS})
_IMMUTABLE = frozenset({
    "String", "boolean", "byte", "short", "char", "int", "long", "float", "double", "Boolean", "Byte", "Short", "Character",
    "Integer", "Long", "Float", "Double",
})  # fmt: skip
_THREADS = frozenset({"Thread", "ExecutorService", "CompletableFuture", "CountDownLatch", "Executors"})


class Undividable(Exception):
    """Raised for a test that cannot be divided; the message is the reason."""


class DividedTest:
    """A method with the edits that make its observing form."""

    def __init__(self, holder: TestClass, method: Node, depth: int = 0) -> None:
        body = method.child_by_field_name("body")
        if body is None:
            raise Undividable("test without a body")
        self.holder, self.method, self.body, self.depth = holder, method, body, depth
        self.file, self.source, self.depending = holder.file, holder.file.source, holder.file.depending
        self.edits: list[Edit] = []
        self.sites: dict[str, dict[str, Any]] = {}
        """Places of checks that are judged by more than a text: what is expected there."""
        self.helpers: dict[str, DividedTest] = {}
        """Names of helpers' forms to the helpers."""
        self.fields: set[str] = set()
        """Fields that hold what is expected."""
        self.parameters = parameters_of(method, self.source) or []
        self.expected_parameters: set[str] = set()
        """Parameters that hold nothing but what is expected."""
        self._dropped: list[tuple[int, int]] = []
        self._variables: set[str] = set()
        self._checks: list[Check] = []
        self._helper_calls: list[Node] = []
        self._caught: set[int] = set()
        """Where the clauses begin that catch expected errors."""
        self._observed: list[Node] = []
        """What a check reports, in its own words."""

    def divide(self) -> None:
        """Make the edits. Raises :class:`Undividable`."""
        if parameters_of(self.method, self.source) is None:
            raise Undividable("any number of parameters")
        self._collect(self.body, inside=None)
        failing = self._divide_failures()
        checks = [check for check in self._checks if check.kind in _CHECKED]
        if not checks and not self._helper_calls and not failing:
            raise Undividable("test without a check")
        for node in (*(check.node for check in checks), *self._helper_calls):
            if why := why_repeated(node, self.body, self._is_fixed_value, self._is_all, self._is_failing_clause):
                raise Undividable(why)
        for check in checks:
            self._divide_check(check)
        for call in self._helper_calls:
            self._divide_call(call)
        self._require_certain()
        self.edits += list(self._expected_edits())

    # -------------------------------------------------------------------------------------- finding checks
    def _collect(self, node: Node, inside: Check | None) -> None:
        """Find all checks and calls of helpers that check."""
        if node.type == "method_invocation":
            check = self.holder.reader.read(node)
            if check is not None:
                self._add(check, inside)
                return
            self._require_harmless(node)
            if (helper := self._helper_of(node)) is not None and self.holder.checks_in(helper):
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
        if check.node.parent is None or check.node.parent.type not in {"expression_statement", "lambda_expression"}:
            if check.kind not in {Kind.THROWS, Kind.HARMLESS} or not self._declared_by(check.node):
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
        if target is None and name not in self.holder.methods and name not in self.file.imports.functions:
            if self.holder.base and not self.holder.is_junit3:
                raise Undividable("helper of another file")
        own = target is None and name in self.holder.methods
        if is_assertion_name(name) and not own:
            raise Undividable("check of another kind")
        holder = text(target, self.source) if target is not None else self.file.imports.functions.get(name, "")
        last = holder.rpartition(".")[2]
        if last in self.file.foreign or (last[:1].isupper() and ("Test" in last or "Assert" in last)):
            raise Undividable("helper of another file")

    def _helper_of(self, call: Node) -> Node | None:
        """The method of the class that is called; ``None`` for other calls."""
        target = call.child_by_field_name("object")
        is_own = target is None or target.type == "this" or text(target, self.source) == self.holder.names[-1]
        found = self.holder.methods.get(name_of(call, self.source), []) if is_own else []
        fitting = [each for each in found if len(parameters_of(each, self.source) or "") == len(arguments(call))]
        if found and len(fitting) != 1 and any(map(self.holder.checks_in, found)):
            raise Undividable("helper that checks")
        return fitting[0] if len(fitting) == 1 else None

    def _is_all(self, call: Node) -> bool:
        return any(check.node == call and check.kind is Kind.ALL for check in self._checks)

    def _is_failing_clause(self, clause: Node) -> bool:
        """Whether a clause that catches an error does nothing but fail the test, or is divided itself."""
        block = clause.child_by_field_name("body")
        if block is None or clause.start_byte in self._caught:
            return block is not None
        found = statements(block)
        return len(found) == 1 and any(
            check.kind is Kind.FAIL and check.node.parent == found[0] for check in self._checks
        )

    # ------------------------------------------------------------------------------------ expected errors
    def _divide_failures(self) -> bool:
        """Divide what expects an error: annotations, and statements that fail the test if there is none."""
        for check in self._checks:
            if check.kind is Kind.ALL:
                given = arguments(check.node)
                if given and given[0].type == "string_literal":
                    self._edit(given[0], '""')
            if check.kind is Kind.FAIL:
                self._divide_failure(check)
        found = expected_class(self.method, self.source)
        if found is not None:
            if self._caught or any(check.kind in _CHECKED for check in self._checks) or self._helper_calls:
                raise Undividable("checks before an expected error")
            name, start, end = found
            site, error = self.body.start_byte, f"error{self.file.mark}"
            self.sites[str(site)] = {"thrown": [name]}
            self.edits.append(Edit(start, end, b""))
            head = f"{{ java.lang.Throwable {error} = null; try "
            tail = f" catch (java.lang.Throwable other) {{ {error} = other; }} finally {{ {self._call('thrown', site, error)}; }}"
            self.edits.append(Edit(self.body.start_byte, self.body.start_byte, head.encode()))
            tail = tail.replace("other", f"other{self.file.mark}") + " }"
            self.edits.append(Edit(self.body.end_byte, self.body.end_byte, tail.encode()))
        return bool(self._caught) or found is not None

    def _divide_failure(self, check: Check) -> None:
        statement = check.node.parent
        block = statement.parent if statement is not None else None
        if statement is None or block is None or statement.type != "expression_statement":
            raise Undividable("failure without a check")
        if block.parent is not None and block.parent.type == "catch_clause":
            self._edit(check.node, f"{REPORTER}.fail()")
            return
        found = try_that_fails(statement, self.source)
        if found is None:
            raise Undividable("failure without a check")
        if any(block.start_byte <= each.node.start_byte < statement.start_byte for each in self._checks):
            raise Undividable("checks before an expected error")
        outer = found.clause.parent
        if (
            why := why_repeated(outer, self.body, self._is_fixed_value, self._is_all, self._is_failing_clause)
            if outer
            else ""
        ):
            raise Undividable(why)
        site = check.node.start_byte
        self.sites[str(site)] = {"thrown": list(found.classes)}
        self._edit(check.node, self._call("thrown", site, "null"))
        self._edit(found.kind, "java.lang.Throwable")
        place = found.block.start_byte + 1
        self.edits.append(Edit(place, place, f" {self._call('thrown', site, found.name)};".encode()))
        self._caught.add(found.clause.start_byte)

    # --------------------------------------------------------------------------------------------- checks
    def _edit(self, node: Node, code: str) -> None:
        self.edits.append(Edit(node.start_byte, node.end_byte, code.encode()))
        self._dropped.append((node.start_byte, node.end_byte))

    def _call(self, function: str, site: int, value: str) -> str:
        return f"{REPORTER}.{function}({site}, {value})"

    def _divide_check(self, check: Check) -> None:
        node = check.node
        self.edits.append(Edit(node.start_byte, node.end_byte, self._form(check).encode()))
        place = node.start_byte
        for each in sorted(self._observed, key=lambda kept: kept.start_byte):
            self._dropped.append((place, each.start_byte))
            place = each.end_byte
        self._dropped.append((place, node.end_byte))

    def _form(self, check: Check) -> str:
        """The code in the place of a check."""
        self._observed = []
        actual, expected, site = check.actual, check.expected, check.node.start_byte
        assert actual is not None
        if check.kind is Kind.TRUE:
            return "; ".join(self._truths(actual, check))
        if check.kind is Kind.NULL:
            return self._call("isNull", site, self._value(actual))
        assert expected is not None
        if check.kind is Kind.THROWS:
            return self._throws(check, expected, actual)
        if check.kind is Kind.SAME and not self._has_identity(expected):
            raise Undividable("check of identity")
        return self._equal(expected, actual, site, check)

    def _throws(self, check: Check, expected: Node, actual: Node) -> str:
        if actual.type not in {"lambda_expression", "method_reference"}:
            raise Undividable("expected error of a variable")
        site = check.node.start_byte
        self.sites[str(site)] = {"thrown": [text(expected, self.source).removesuffix(".class").rpartition(".")[2]]}
        if declaration := self._declared_by(check.node):
            kind, name = declaration.child_by_field_name("type"), declaration.child_by_field_name("declarator")
            if kind is None or name is None or not is_of_error(name_of(name, self.source), self.body, self.source):
                raise Undividable("error that the test looks into")
            self._edit(kind, "java.lang.Throwable")
        self._observed.append(actual)
        return self._call("caught", site, text(actual, self.source))

    def _declared_by(self, call: Node) -> Node | None:
        """The declaration of one variable whose value a call gives."""
        declarator = call.parent
        if declarator is None or declarator.type != "variable_declarator" or declarator.parent is None:
            return None
        found = declarator.parent
        is_single = len(found.children_by_field_name("declarator")) == 1
        return found if found.type == "local_variable_declaration" and is_single else None

    def _has_identity(self, node: Node) -> bool:
        is_named = node.type == "field_access" and text(node, self.source).rpartition(".")[2].isupper()
        return is_named or node.type in {"null_literal", "true", "false", "class_literal"}

    def _equal(self, expected: Node, actual: Node, site: int, check: Check | None = None) -> str:
        """The code that reports that side of a comparison which is not written out."""
        if not self._is_expected(expected):
            expected, actual = actual, expected
            if not self._is_expected(expected):
                raise Undividable("expected value that is computed")
        if is_written_out(actual, self.source, self.depending):
            raise Undividable("check of two values that are written out")
        if expected.type == "null_literal":
            return self._call("isNull", site, self._value(actual))
        if check is not None and check.kind is Kind.ITEMS:
            return self._call("items", site, self._value(actual))
        delta = self._number(check.delta) if check is not None and check.delta is not None else 0.0
        if delta is None or (delta and text(check.node, self.source).find("assertArray") >= 0):
            raise Undividable("numbers that may differ")
        if not delta:
            return self._call("report", site, self._value(actual))
        number = self._number(expected)
        if number is None:
            raise Undividable("numbers that may differ")
        self.sites[str(site)] = {"near": [number, delta]}
        return self._call("near", site, self._value(actual))

    def _number(self, node: Node) -> float | None:
        """The number that a literal says, or the variable of one."""
        value = node
        if node.type == "identifier":
            found = self._initial_value(text(node, self.source))
            if found is None:
                return None
            value = found
        return number_of(value, self.source)

    def _value(self, node: Node) -> str:
        """The code of a value that is reported."""
        for each in descendants(node):
            if is_comparison(each) or each.type in {"switch_expression", "assignment_expression"}:
                raise Undividable("comparison within a check")
            if each.type == "method_invocation" and may_compare(name_of(each, self.source), self.depending):
                raise Undividable("comparing function")
        self._observed.append(node)
        return text(node, self.source)

    def _truths(self, node: Node, check: Check) -> Iterator[str]:
        """The code that reports a truth, or what is compared for it."""
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        site = node.start_byte
        operator = node.children[1].type if node.type == "binary_expression" else ""
        parts = node.named_children
        if node.type == "unary_expression":
            yield from self._truths(
                parts[-1], Check(check.node, check.kind, parts[-1], is_negated=not check.is_negated)
            )
        elif operator == ("||" if check.is_negated else "&&"):
            statement = check.node.parent
            if statement is None or statement.parent is None or statement.parent.type != "block":
                raise Undividable("check under a condition")
            for part in parts:
                yield from self._truths(part, check)
        elif operator in {"==", "!="} and "null_literal" in {part.type for part in parts}:
            (value,) = [part for part in parts if part.type != "null_literal"][:1]
            yield self._call("isNull", site, self._value(value))
        elif operator == ("!=" if check.is_negated else "=="):
            if {part.type for part in parts} & {"string_literal", "field_access", "identifier"} == {"string_literal"}:
                raise Undividable("check of identity")
            yield self._equal(parts[0], parts[-1], site)
        elif node.type == "method_invocation" and not check.is_negated and (sides := self._compared_by(node)):
            yield self._equal(*sides, site)
        elif node.type in {"method_invocation", "field_access", "array_access"}:
            yield self._call("report", site, self._value(node))
        elif node.type == "identifier" and self._is_of_call(text(node, self.source)):
            yield self._call("report", site, self._value(node))
        else:
            raise Undividable("condition that cannot be divided")

    def _compared_by(self, call: Node) -> tuple[Node, Node] | None:
        """The two values that a call of ``equals`` compares, if one of them is written out."""
        target, given = call.child_by_field_name("object"), arguments(call)
        if target is None or name_of(call, self.source) != "equals":
            return None
        if text(target, self.source) in {"Arrays", "Objects"} and len(given) == 2:
            return given[0], given[1]
        if len(given) != 1 or not (self._is_fixed_value(target) or self._is_fixed_value(given[0])):
            return None
        return target, given[0]

    def _is_of_call(self, name: str) -> bool:
        """Whether a variable gets nothing but what calls return."""
        values = [each.child_by_field_name("value") for each in self._declarators(name)]
        values += [each.child_by_field_name("right") for each in self._assignments(name)]
        kinds = {"method_invocation", "array_access", "field_access"}
        return bool(values) and all(value is not None and value.type in kinds for value in values)

    # ------------------------------------------------------------------------------------------- expected
    def _is_expected(self, node: Node) -> bool:
        """Whether a value is written out somewhere in the test; where that is, is noted."""
        names: set[str] = set()

        def is_known(each: Node) -> bool:
            names.add(text(each, self.source))
            return self._is_known(each, is_expected=True)

        found = is_written_out(node, self.source, self.depending, is_known)
        if found:
            for name in names:
                self._note(name)
        return found

    def _is_fixed_value(self, node: Node) -> bool:
        """Whether a value is written out somewhere in the test."""
        return is_written_out(node, self.source, self.depending, lambda each: self._is_known(each, is_expected=False))

    def _is_known(self, node: Node, *, is_expected: bool) -> bool:
        name = text(node, self.source)
        if name in dict(self.parameters):
            return is_expected and not self._assignments(name)
        if is_expected and self._loop_over_written(name) is not None:
            return True
        if self._declarators(name) or self._is_bound(name) or name in self.holder.fields:
            return self._initial_value(name) is not None
        owner = self.file.imports.functions.get(name, "")
        return name.isupper() and bool(owner) and not {name, owner.rpartition(".")[2]} & self.depending

    def _note(self, name: str) -> None:
        if name in dict(self.parameters) or self._declarators(name) or self._loop_over_written(name):
            self._variables.add(name)
        elif name in self.holder.fields:
            self.fields.add(name)

    def _declarators(self, name: str) -> list[Node]:
        """The declarations of local variables with a name."""
        return [
            each
            for each in descendants(self.body)
            if each.type == "variable_declarator" and name_of(each, self.source) == name
        ]

    def _assignments(self, name: str, within: Node | None = None) -> list[Node]:
        found = []
        for each in descendants(within or self.body):
            target = each.child_by_field_name("left") if each.type == "assignment_expression" else None
            if each.type == "update_expression":
                target = each.named_children[0]
            while target is not None and target.type in {"array_access", "field_access"}:
                target = target.named_children[-1 if target.type == "field_access" else 0]
            if target is not None and text(target, self.source) == name:
                found.append(each)
        return found

    def _is_bound(self, name: str) -> bool:
        """Whether a loop, function or clause of the test gives a value to a name."""
        kinds = {
            "enhanced_for_statement",
            "lambda_expression",
            "catch_formal_parameter",
            "resource",
            "formal_parameter",
        }
        for each in descendants(self.body):
            if each.type in kinds and name_of(each, self.source) == name:
                return True
            parameters = each.child_by_field_name("parameters") if each.type == "lambda_expression" else None
            if parameters is not None and name in {text(leaf, self.source) for leaf in descendants(parameters)}:
                return True
        return False

    def _loop_over_written(self, name: str) -> Node | None:
        """The loop that gives each of some written values to a name, which never gets others."""
        loops = [each for each in descendants(self.body) if each.type == "enhanced_for_statement"]
        found = [each for each in loops if name_of(each, self.source) == name]
        value = found[0].child_by_field_name("value") if len(found) == 1 else None
        if value is None or self._declarators(name) or self._assignments(name) or not self._is_fixed_value(value):
            return None
        return found[0]

    def _is_immutable(self, name: str) -> bool:
        """Whether what a variable stands for cannot be changed by the code that it is given to."""
        declared = dict(self.parameters).get(name) or self._loop_over_written(name)
        kind = declared.child_by_field_name("type") if declared is not None else None
        if kind is not None:
            return text(kind, self.source) in _IMMUTABLE
        value = self._initial_value(name)
        return value is not None and value.type in LITERALS | {"unary_expression", "binary_expression"}

    def _initial_value(self, name: str) -> Node | None:
        """The written value of a variable or field that never gets another one."""
        local = self._declarators(name)
        if local:
            is_single = len(local) == 1 and not self._assignments(name) and not self._is_bound(name)
            declarator = local[0] if is_single else None
        elif self._is_bound(name):
            return None
        else:
            declarator = self.holder.fields.get(name)
            if declarator is not None and self._assignments(name, self.file.root):
                return None
        value = declarator.child_by_field_name("value") if declarator is not None else None
        if value is None or not is_written_out(value, self.source, self.depending, self._is_constant_name):
            return None
        return None if not local and value.type == "object_creation_expression" else value

    def _is_constant_name(self, node: Node) -> bool:
        """Whether a name in a written value is one of a field that is written out by itself."""
        declarator = self.holder.fields.get(text(node, self.source))
        value = declarator.child_by_field_name("value") if declarator is not None else None
        return value is not None and is_written_out(value, self.source, self.depending)

    def _expected_edits(self) -> Iterator[Edit]:
        """The edits that take out the variables of what is expected."""
        for name in sorted(self.fields):
            uses = self.uses(name)
            if self._is_immutable(name) and any(is_input(use, self.source, self.depending, self.body) for use in uses):
                self.fields.discard(name)
        done: set[str] = set()
        while left := sorted(self._variables - done):
            name = left[0]
            done.add(name)
            changes = list(self._changes(name))
            uses = [use for use in self.uses(name) if not any(_is_within(use, change) for change in changes)]
            is_given = any(is_input(use, self.source, self.depending, self.body) for use in uses)
            if is_given and not changes and self._is_immutable(name):
                continue  # the test itself gives it to the code
            if uses or self._loop_over_written(name) is not None:
                raise Undividable("expected value that the test uses otherwise")
            if name in dict(self.parameters):
                self.expected_parameters.add(name)
                continue
            (declarator,) = self._declarators(name)
            statement = declarator.parent
            if statement is None or statement.type != "local_variable_declaration":
                raise Undividable("expected value that the test uses otherwise")
            if len(statement.children_by_field_name("declarator")) > 1:
                raise Undividable("expected value that the test uses otherwise")
            for each in (statement, *changes):
                yield Edit(each.start_byte, each.end_byte, b"")

    def _changes(self, name: str) -> Iterator[Node]:
        """Statements that add a written value to a variable: ``expected.add(3);``."""
        for use in self.uses(name):
            call = use.parent
            if call is None or call.type != "method_invocation" or call.child_by_field_name("object") != use:
                continue
            statement = call.parent
            is_adding = name_of(call, self.source) in {"add", "put", "append", "addAll"}
            is_statement = statement is not None and statement.type == "expression_statement"
            if is_adding and is_statement and statement is not None and all(map(self._is_expected, arguments(call))):
                if statement.parent == self.body:
                    yield statement

    def uses(self, name: str) -> list[Node]:
        """Where a variable is used, but for its declaration and checks."""
        found = []
        for each in descendants(self.body):
            if each.type != "identifier" or text(each, self.source) != name or self._is_dropped(each):
                continue
            parent = each.parent
            is_member = parent is not None and (
                (parent.type == "variable_declarator" and parent.child_by_field_name("name") == each)
                or (parent.type == "method_invocation" and parent.child_by_field_name("name") == each)
                or (parent.type == "field_access" and parent.child_by_field_name("field") == each)
            )
            if not is_member:
                found.append(each)
        return found

    def _is_dropped(self, node: Node) -> bool:
        return any(start <= node.start_byte < end for start, end in self._dropped)

    def _require_certain(self) -> None:
        """Raise :class:`Undividable` if the code may decide what is checked, or something else is compared."""

        def has_check(node: Node) -> bool:
            places = [check.node.start_byte for check in self._checks] + [
                call.start_byte for call in self._helper_calls
            ]
            return any(node.start_byte <= place < node.end_byte for place in places)

        for node in descendants(self.body):
            if node.type in {"type_identifier", "identifier"} and text(node, self.source) in _THREADS:
                raise Undividable("threads")
            if self._is_dropped(node):
                continue
            if why := why_changed(node, self.source, self.depending, has_check, self.body):
                raise Undividable(why)
            if node.type == "method_invocation" and name_of(node, self.source) not in self.depending:
                helper = self._helper_of(node)
                if helper is not None and node not in self._helper_calls and self._compares(helper):
                    raise Undividable("comparing function")

    def _compares(self, helper: Node) -> bool:
        """Whether a helper that checks nothing compares something, but to end a loop."""
        for node in descendants(helper):
            if node.type == "method_invocation" and may_compare(name_of(node, self.source), self.depending):
                return True
            if is_comparison(node) and (node.parent is None or node.parent.type not in LOOPS):
                return True
        return False

    # -------------------------------------------------------------------------------------------- helpers
    def _divide_call(self, call: Node) -> None:
        """Let a call call the observing form of a helper, without what it expects."""
        helper = self._helper_of(call)
        kind = helper.child_by_field_name("type") if helper is not None else None
        if helper is None or kind is None or kind.type != "void_type" or self.depth >= MAX_DEPTH:
            raise Undividable("helper that checks")
        made = DividedTest(self.holder, helper, self.depth + 1)
        made.divide()
        name = name_of(helper, self.source) + self.file.mark
        self.helpers |= {**made.helpers, f"{helper.start_byte}": made}
        self.sites |= made.sites
        self.fields |= made.fields
        given = arguments(call)
        kept = []
        for (parameter, _), argument in zip(made.parameters, given, strict=True):
            if parameter in made.expected_parameters:
                if not self._is_expected(argument):
                    raise Undividable("expected value that is computed")
                self._dropped.append((argument.start_byte, argument.end_byte))
            elif parameter in made._variables and not self._is_fixed_value(argument):
                raise Undividable("expected value that is computed")
            else:
                kept.append(text(argument, self.source))
        whole, called = call.child_by_field_name("arguments"), call.child_by_field_name("name")
        assert whole is not None
        assert called is not None
        self.edits.append(Edit(called.start_byte, called.end_byte, name.encode()))
        self.edits.append(Edit(whole.start_byte, whole.end_byte, f"({', '.join(kept)})".encode()))

    def as_helper(self) -> bytes:
        """The observing form of a helper under a name of its own, without the parameters that say what is expected."""
        head, parameters = self.method.child_by_field_name("name"), self.method.child_by_field_name("parameters")
        assert head is not None
        assert parameters is not None
        kept = [text(node, self.source) for name, node in self.parameters if name not in self.expected_parameters]
        edits = [
            *self.edits,
            Edit(head.end_byte, head.end_byte, self.file.mark.encode()),
            Edit(parameters.start_byte, parameters.end_byte, f"({', '.join(kept)})".encode()),
        ]
        start, end = self.method.start_byte, self.method.end_byte
        moved = [Edit(each.start - start, each.end - start, each.text) for each in edits]
        return edited(self.source[start:end], moved)


def _is_within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte and node.end_byte <= other.end_byte
