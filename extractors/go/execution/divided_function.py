"""Divides one test, or one helper that checks, into what it does and what it expects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, Undividable
from excise.extractors.go.analysis.grammar import descendants, statements, text
from excise.extractors.go.execution.certain_checks import is_comparison, why_uncertain
from excise.extractors.go.execution.comparing_functions import EQUAL, may_compare
from excise.extractors.go.execution.declared_names import (
    all_parameters,
    composites,
    has_comparison,
    imports,
    is_within,
    local_names,
    loops_around,
    packages_in,
    parameters,
    range_names,
)
from excise.extractors.go.execution.expected_values import (
    Table,
    cells,
    element_type,
    is_plain,
    occurrences,
    resolved,
)

_FAILING = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
_HARMLESS = frozenset(
    {"Log", "Logf", "Helper", "Run", "Name", "TempDir", "Setenv", "Cleanup", "Skip", "Skipf", "SkipNow"}
)
"""Methods of a test that fail nothing."""
_TESTING = re.compile(r"^\*?\s*\w+\.(?:T|TB)$")
_ENDING = frozenset({"panic", "os.Exit", "log.Fatal", "log.Fatalf", "log.Panic", "runtime.Goexit"})
MAX_DEPTH = 2
"""Helpers that call helpers are divided to this depth."""


class DividedFunction:
    """A function with the edits that make its observing form."""

    def __init__(
        self,
        function: Node,
        source: bytes,
        root: Node,
        helpers: Mapping[str, tuple[Node, bytes]],
        depending: frozenset[str],
        mark: str,
        depth: int = 0,
    ) -> None:
        body = function.child_by_field_name("body")
        assert body is not None
        self.function, self.body, self.source, self.root = function, body, source, root
        self.helpers, self.depending, self.mark, self.depth = helpers, depending, mark, depth
        self.edits: list[Edit] = []
        self.helper_texts: dict[str, bytes] = {}
        """Names of helpers' forms, to their texts."""
        self.expected_parameters: dict[str, str] = {}
        """Parameters that hold what is expected: ``value``, or ``items`` of a table."""
        self.shared_columns: set[tuple[str, str]] = set()
        """(name, field) of columns of tables of the file whose values are taken out."""
        self._dropped: list[tuple[int, int]] = []
        self._columns: set[tuple[int, str, str]] = set()
        self._variables: set[str] = set()
        self._number = 0
        self._parameters = dict(parameters(function, source))
        self._tests = {name for name, kind in all_parameters(function, source) if _TESTING.match(kind)}
        self._locals = set(local_names(function, source))

    def divide(self) -> None:
        """Make the edits. Raises :class:`Undividable`."""
        if not self._tests:
            raise Undividable("test of another kind")
        checks = [node for node in descendants(self.body) if node.type == "if_statement" and self._is_check(node)]
        checks = [node for node in checks if not any(is_within(node, other) for other in checks if other != node)]
        if any(map(self._is_conditional, checks)):
            raise Undividable("check under a condition")
        calls = [node for node in descendants(self.body) if self._helper_of(node)]
        if not checks and not calls:
            raise Undividable("test without a check")
        if why := why_uncertain(self.function, checks, calls, self._table, self._method):
            raise Undividable(why)
        found = [(node, self._check(node)) for node in checks]
        for node in calls:
            self._divide_call(node)
        self._require_no_other_failure(checks)
        self._require_expected_only()
        for node, made in found:
            names = sorted(self._unused(node) - self._variables)
            code = "".join(f"_ = {name}; " for name in names)
            self.edits.append(Edit(node.start_byte, node.end_byte, f"{{ {made}{code}}}".encode()))
        self.edits += self._declaration_edits()

    def uses(self, table: str, field: str) -> bool:
        """Whether the function uses a column of a table of the file for more than an expected value."""
        if not occurrences(table, self.body, self.source):
            return False
        if not field:
            return (table, field) not in self.shared_columns
        uses = (each for each in occurrences(field, self.body, self.source) if each.type == "field_identifier")
        return any(not self._is_dropped(each) for each in uses)

    # ------------------------------------------------------------------------------------ checks
    def _is_check(self, node: Node) -> bool:
        """Whether a statement fails the test on a condition and does nothing else, in any of its branches."""
        block, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if block is None or (other is not None and not (other.type == "if_statement" and self._is_check(other))):
            return False
        fails = False
        for each in statements(block):
            method = self._method(each.named_children[0]) if each.type == "expression_statement" else ""
            is_end = each.type in {"return_statement", "continue_statement", "break_statement"}
            if not is_end and method not in _FAILING | _HARMLESS - {"Run"}:
                return False
            fails = fails or method in _FAILING
        return fails

    def _is_conditional(self, check: Node) -> bool:
        """Whether it may depend on the code that a check is made: right solutions would report different values."""
        around = check.parent
        while around is not None and around != self.function:
            heads = [around.child_by_field_name(field) for field in ("initializer", "condition", "value")]
            parts = [each for head in heads if head is not None for each in descendants(head)]
            names = {text(each, self.source) for each in parts if each.type == "identifier"}
            is_choice = around.type in {"if_statement", "expression_switch_statement", "type_switch_statement"}
            if is_choice and (
                any(each.type == "call_expression" for each in parts) or any(map(self._is_of_call, names))
            ):
                return True
            around = around.parent
        return False

    def _method(self, call: Node) -> str:
        """The method of a test that is called; empty for other calls."""
        function = call.child_by_field_name("function") if call.type == "call_expression" else None
        if function is None or function.type != "selector_expression":
            return ""
        operand, field = function.named_children[0], function.named_children[-1]
        return text(field, self.source) if text(operand, self.source) in self._tests else ""

    def _check(self, node: Node) -> str:
        """The code in the place of a check: its statement before the condition, and the reports."""
        condition, block = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        before, other = node.child_by_field_name("initializer"), node.child_by_field_name("alternative")
        assert condition is not None
        assert block is not None
        self._dropped.append((block.start_byte, block.end_byte))
        code = f"{text(before, self.source)}; " if before is not None else ""
        if before is not None and before.type == "short_var_declaration":
            names = (text(each, self.source) for each in before.named_children[0].named_children)
            code += "".join(f"_ = {name}; " for name in names if name != "_")
        for value in self._condition(condition):
            self._number += 1
            keys = ", ".join(self._keys(node))
            number = self.depth * 1000 + self._number
            code += f"report{self.mark}({number}, {f'[]interface{{}}{{{keys}}}' if keys else 'nil'}, {value}); "
        if other is not None:
            code += f"{{ {self._check(other)}}}; "
        return code

    def _condition(self, node: Node) -> Iterator[str]:
        """The values that are reported of a condition which fails the test."""
        operator = text(node.child_by_field_name("operator") or node, self.source)
        if node.type == "parenthesized_expression":
            yield from self._condition(node.named_children[0])
        elif node.type == "binary_expression" and operator == "||":
            for side in (node.child_by_field_name("left"), node.child_by_field_name("right")):
                assert side is not None
                yield from self._condition(side)
        elif node.type == "binary_expression" and operator in {"==", "!="}:
            left, right = node.named_children[0], node.named_children[-1]
            yield self._compared(left, right, is_unequal=operator == "!=")
        elif node.type == "unary_expression" and operator == "!":
            inner = node.named_children[-1]
            while inner.type == "parenthesized_expression":
                inner = inner.named_children[0]
            if inner.type == "call_expression" and text(inner.named_children[0], self.source) in EQUAL:
                left, right = inner.named_children[-1].named_children
                yield self._equal(left, right)
            elif inner.type == "binary_expression":
                if text(inner.child_by_field_name("operator") or inner, self.source) != "==":
                    raise Undividable("condition that cannot be divided")
                yield self._compared(inner.named_children[0], inner.named_children[-1], is_unequal=True)
            else:
                yield self._truth(inner)
        else:
            yield self._truth(node)

    def _compared(self, left: Node, right: Node, *, is_unequal: bool) -> str:
        for value, other in ((left, right), (right, left)):
            if other.type == "nil":
                return f"{self._observed(value)} == nil"
            if other.type in {"true", "false"}:
                return self._truth(value)
        if not is_unequal:
            raise Undividable("check of an inequality")
        return self._equal(left, right)

    def _equal(self, left: Node, right: Node) -> str:
        for value, expected in ((left, right), (right, left)):
            if not is_plain(value, self.source) and self._is_expected(expected):
                self._dropped.append((expected.start_byte, expected.end_byte))
                return self._observed(value)
        raise Undividable("expected value that is computed")

    def _observed(self, node: Node) -> str:
        """The code of a value that is reported."""
        for each in descendants(node):
            if is_comparison(each):
                raise Undividable("condition that cannot be divided")
        return text(node, self.source)

    def _truth(self, node: Node) -> str:
        """The code of a truth that is reported: of what a call returns, not of a comparison."""
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        if node.type == "binary_expression" and "nil" in {child.type for child in node.named_children}:
            return self._observed(node)
        if node.type == "identifier" and self._is_of_call(text(node, self.source)):
            return text(node, self.source)
        if node.type != "call_expression" or any(each.type == "func_literal" for each in descendants(node)):
            raise Undividable("condition that cannot be divided")
        return self._observed(node)

    def _is_of_call(self, name: str) -> bool:
        """Whether a variable is declared once, and gets what a call or an assertion of a type returns."""
        values = []
        for node in descendants(self.function):
            if node.type in {"short_var_declaration", "assignment_statement"}:
                names = [text(each, self.source) for each in node.named_children[0].named_children]
                if name in names:
                    values += node.named_children[-1].named_children
        kinds = {"call_expression", "type_assertion_expression", "index_expression"}
        return bool(values) and all(value.type in kinds for value in values)

    def _keys(self, node: Node) -> Iterator[str]:
        """The keys of the maps that the loops around a statement range over: they do so in any order."""
        for loop in loops_around(node, self.function):
            table = self._table(loop)
            kind = resolved(table.kind, self.root, self.source) if table is not None else None
            if kind is not None and kind.type == "map_type":
                names = range_names(loop, self.source)
                if not names or names[0] == "_":
                    raise Undividable("loop over a map without keys")
                yield names[0]

    # ---------------------------------------------------------------------------------- expected
    def _is_expected(self, node: Node) -> bool:
        """Whether a value is written out somewhere in the test; where that is, is noted."""
        if is_plain(node, self.source):
            return True
        words = text(node, self.source).split(".")
        if node.type == "identifier":
            return self._is_expected_name(node, words[0])
        if node.type != "selector_expression" or len(words) != 2:
            return False
        loop = self._loop_of(node, words[0])
        table = self._table(loop) if loop is not None else None
        if loop is None or table is None or cells(table, words[1], self.root, self.source) is None:
            return False
        self._columns.add((loop.start_byte, words[0], words[1]))
        return True

    def _is_expected_name(self, node: Node, name: str) -> bool:
        loop = self._loop_of(node, name)
        if loop is not None:
            self._columns.add((loop.start_byte, name, ""))
            return self._is_column_of_items(loop, name)
        if name in self._parameters and self.depth:
            self.expected_parameters[name] = "value"
        elif self._declaration(name) is None:
            return False
        self._variables.add(name)
        return True

    def _is_column_of_items(self, loop: Node, name: str) -> bool:
        """Whether a variable is an item of a table, and no index or key."""
        table, names = self._table(loop), range_names(loop, self.source)
        if table is None or len(names) != 2 or names[1] != name:
            return False
        if table.rows is None:
            return table.name in self._parameters
        return cells(table, "", self.root, self.source) is not None

    def _declaration(self, name: str) -> Node | None:
        """The statement that declares a variable, alone, with a value that is written out."""
        found = []
        for node in descendants(self.body):
            if node.type in {"short_var_declaration", "var_spec", "const_spec", "assignment_statement"}:
                names = node.named_children[0]
                heads = names.named_children if names.type == "expression_list" else [names]
                if name in [text(each, self.source) for each in heads]:
                    found.append((node, len(heads)))
        if len(found) != 1 or found[0][1] != 1 or found[0][0].type == "assignment_statement":
            return None
        ((node, _),) = found
        value = node.named_children[-1]
        around = node if node.type == "short_var_declaration" else node.parent
        if value.type != "expression_list" or not is_plain(value.named_children[0], self.source):
            return None
        while around is not None and around.type == "var_spec_list":
            around = around.parent
        if around is None or around.parent is None or len(around.named_children) > 2:
            return None
        return around if around.parent.type in {"statement_list", "block"} else None

    def _loop_of(self, node: Node, name: str) -> Node | None:
        return next(
            (loop for loop in loops_around(node, self.function) if name in range_names(loop, self.source)), None
        )

    def _table(self, loop: Node) -> Table | None:
        """What a loop ranges over, if that is written out or a parameter."""
        right = loop.child_by_field_name("right")
        if right is None:
            return None
        if right.type == "composite_literal":
            return Table(right.child_by_field_name("type"), right.child_by_field_name("body"))
        name = text(right, self.source)
        if right.type != "identifier":
            return None
        if name in self._parameters and self.depth:
            return Table(self._parameters[name], None, name)
        for where in (self.body, self.root):
            values = list(composites(where, name, self.source))
            if len(values) == 1:
                (value,) = values
                is_single = where == self.root or len(occurrences(name, self.body, self.source)) == 2
                table = Table(value.child_by_field_name("type"), value.child_by_field_name("body"), name)
                return table if is_single else None
        return None

    def _require_expected_only(self) -> None:
        """Raise :class:`Undividable` if what is expected is used for something else, too."""
        for name in self._variables:
            uses = [each for each in occurrences(name, self.function, self.source) if not self._is_dropped(each)]
            if len(uses) > 1:
                raise Undividable("expected value that the test uses otherwise")
        for _, name, field in self._columns:
            for each in occurrences(name, self.body, self.source):
                parent = each.parent
                member = parent if parent is not None and parent.type == "selector_expression" else None
                is_declared = (
                    parent is not None
                    and parent.parent is not None
                    and (parent.parent.type in {"range_clause", "short_var_declaration"})
                )
                is_other = field and member is not None and text(member.named_children[-1], self.source) != field
                if not (self._is_dropped(each) or is_declared or is_other):
                    raise Undividable("expected value that the test uses otherwise")

    def _is_dropped(self, node: Node) -> bool:
        return any(start <= node.start_byte < end for start, end in self._dropped)

    def _unused(self, check: Node) -> set[str]:
        """Local names in what is dropped of a check, which might not be used any more."""
        found = set()
        for node in descendants(check):
            if node.type == "identifier" and self._is_dropped(node):
                found.add(text(node, self.source))
        return found & self._locals - self._tests

    def _declaration_edits(self) -> Iterator[Edit]:
        for name in sorted(self._variables - set(self.expected_parameters)):
            node = self._declaration(name)
            if node is not None:
                yield Edit(node.start_byte, node.end_byte, b"")
        for node in descendants(self.body):
            for start, _, field in sorted(self._columns):
                table = self._table(node) if node.type == "range_clause" and node.start_byte == start else None
                if table is None:
                    continue
                if table.rows is None:
                    self.expected_parameters[table.name] = "items"
                    continue
                if table.name and table.rows.start_byte not in range(self.body.start_byte, self.body.end_byte):
                    self.shared_columns.add((table.name, field))
                yield from cells(table, field, self.root, self.source) or ()

    # ----------------------------------------------------------------------------------- helpers
    def _helper_of(self, call: Node) -> str:
        """The helper of the test files to which a call gives the test; empty for other calls."""
        if call.type != "call_expression" or call.named_children[0].type != "identifier":
            return ""
        name = text(call.named_children[0], self.source)
        given = [text(each, self.source) for each in call.named_children[-1].named_children]
        return name if name in self.helpers and self._tests & set(given) else ""

    def _divide_call(self, call: Node) -> None:
        """Let a call call the observing form of a helper, without what it expects."""
        name = self._helper_of(call)
        node, source = self.helpers[name]
        if self.depth >= MAX_DEPTH:
            raise Undividable("helper that checks")
        root = node.parent
        assert root is not None
        made = DividedFunction(node, source, root, self.helpers, self.depending, self.mark, self.depth + 1)
        made.divide()
        if source != self.source and packages_in(made.function, source) - set(imports(self.root, self.source)):
            raise Undividable("helper of another file")
        self.helper_texts.update(made.helper_texts)
        self.helper_texts[name] = made.renamed(name + self.mark)
        called = call.named_children[0]
        self.edits.append(Edit(called.start_byte, called.end_byte, (name + self.mark).encode()))
        given = [each for each in call.named_children[-1].named_children if each.type != "comment"]
        arguments = dict(zip(made._parameters, given, strict=False))
        for parameter, how in made.expected_parameters.items():
            kind, argument = made._parameters[parameter], arguments.get(parameter)
            if kind is None or argument is None or len(given) != len(made._parameters):
                raise Undividable("helper that checks")
            self._take_out(argument, kind, how, made)

    def _take_out(self, argument: Node, kind: Node, how: str, helper: DividedFunction) -> None:
        """Give a helper a value that says nothing of what is expected."""
        if how == "value":
            if not self._is_expected(argument):
                raise Undividable("expected value that is computed")
            zero = f"*new({text(kind, helper.source)})".encode()
            self.edits.append(Edit(argument.start_byte, argument.end_byte, zero))
            self._dropped.append((argument.start_byte, argument.end_byte))
            return
        element = element_type(kind, helper.root, helper.source)
        body = argument.child_by_field_name("body") if argument.type == "composite_literal" else None
        if body is None or element is None:
            raise Undividable("expected value that is computed")
        zero = f"*new({text(element, helper.source)})".encode()
        for row in body.named_children:
            value = row.named_children[-1] if row.type == "keyed_element" else row
            if row.type == "comment":
                continue
            if not is_plain(value, self.source):
                raise Undividable("expected value that is computed")
            self.edits.append(Edit(value.start_byte, value.end_byte, zero))

    def renamed(self, name: str) -> bytes:
        """The observing form of the function under another name."""
        start, result = self.function.start_byte, bytearray(self.source)
        head = self.function.child_by_field_name("name")
        assert head is not None
        edits = [*self.edits, Edit(head.start_byte, head.end_byte, name.encode())]
        end = self.function.end_byte
        for edit in sorted(set(edits), reverse=True):
            result[edit.start : edit.end] = edit.text
            end += len(edit.text) - (edit.end - edit.start)
        return bytes(result[start:end])

    # -------------------------------------------------------------------------------- other ends
    def _require_no_other_failure(self, checks: list[Node]) -> None:
        """Raise :class:`Undividable` for a test that something else but its checks and the code can fail."""
        for node in descendants(self.body):
            if node.type == "go_statement":
                raise Undividable("threads or caught panics")
            if self._is_dropped(node) or node.type not in {"call_expression", "identifier"}:
                continue
            if node.type == "identifier":
                if text(node, self.source) in self._tests and not self._is_known_use(node):
                    raise Undividable("helper that checks")
                continue
            function = node.named_children[0]
            called = text(function, self.source)
            if self._method(node) in _FAILING or called in _ENDING:
                raise Undividable("failure without a condition")
            if self._method(node) == "Parallel" and self._is_nested(node):
                raise Undividable("threads or caught panics")
            is_check = called in EQUAL and any(is_within(node, check) for check in checks)
            if may_compare(called, self.depending) and not is_check:
                raise Undividable("comparing function")
            compares = called in self.helpers and any(map(has_comparison, descendants(self.helpers[called][0])))
            if compares and not self._helper_of(node):
                raise Undividable("comparing function")

    def _is_nested(self, node: Node) -> bool:
        around = node.parent
        while around is not None and around != self.function:
            if around.type == "func_literal":
                return True
            around = around.parent
        return False

    def _is_known_use(self, node: Node) -> bool:
        """Whether a test is used to call a harmless method, or given to a helper that is divided."""
        parent = node.parent
        if parent is None or parent.type == "parameter_declaration":
            return True
        if parent.type == "selector_expression" and parent.parent is not None:
            return self._method(parent.parent) in _HARMLESS | {"Parallel"}
        return parent.type == "argument_list" and parent.parent is not None and bool(self._helper_of(parent.parent))
