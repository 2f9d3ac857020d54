"""Whether a test makes the same checks whatever right code does, and compares nothing elsewhere.

Otherwise right solutions would report different values, or a comparison with what is expected would stay in the test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from tree_sitter import Node

from excise.extractors.divided_tests import Undividable
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, descendants, text, unwrapped
from excise.extractors.javascript.execution.hidden_comparisons import HiddenComparisons
from excise.extractors.javascript.execution.known_values import KnownValues, calls_around

_COMPARISONS = frozenset({"==", "===", "!=", "!==", "<", ">", "<=", ">=", "in", "instanceof"})
_COMPARING = frozenset(
    {"includes", "indexOf", "lastIndexOf", "startsWith", "endsWith", "test", "match", "matchAll", "exec", "search",
     "every", "some", "find", "findIndex", "findLast", "localeCompare", "equals", "isEqual", "deepEqual",
     "isDeepStrictEqual", "hasOwnProperty", "hasOwn", "propertyIsEnumerable", "isPrototypeOf", "is", "has"}
)  # fmt: skip
"""Methods that compare what they are called on with an argument."""
_ENDING = frozenset({"done", "end", "cb", "callback", "next"})
"""Functions that say that a test has ended: one that is called twice fails."""
_LOOPS = frozenset({"while_statement", "do_statement", "try_statement", "switch_statement", "labeled_statement"})
_EFFECTS = frozenset({"assignment_expression", "augmented_assignment_expression", "update_expression", "new_expression",
                      "throw_statement", "await_expression", "yield_expression"})  # fmt: skip
_REPEATING = frozenset({"for_statement", "for_in_statement"})
_DEFINING = frozenset({"test", "it", "describe", "suite", "context", "specify"})
_FIXTURES = frozenset({"fixtures", "fixture", "__fixtures__", "testdata", "data"})
_NOTHINGS = frozenset({"null", "undefined"})


class CertainChecks:
    """Judges the checks of one file; ``depending``: names of the code under test."""

    def __init__(self, values: KnownValues, depending: Collection[str]) -> None:
        self.values, self.source, self.depending = values, values.source, depending
        self.comparisons = HiddenComparisons(values, depending)
        self.is_assertion: Callable[[Node], bool] = lambda _: False

    def require_certain(self, check: Node, function: Node, *, is_helper: bool = False) -> None:
        """Raise :class:`Undividable` if the code may decide whether, how often, or in which order checks are made."""
        inner, around, is_late = check, check.parent, False
        while around is not None and inner != function:
            why = self._why_uncertain(inner, around)
            is_repeated = around.type in _REPEATING or self.values.rows_given_to(around) is not None
            if is_late and is_repeated and around != function:
                why = "checks in no certain order"
            if why and around != function:
                raise Undividable(why)
            if around.type in FUNCTIONS and around != function:
                is_late = is_late or self._is_called_late(around)
            inner, around = around, around.parent
        if is_late and is_helper:
            raise Undividable("checks in no certain order")

    def _is_called_late(self, function: Node) -> bool:
        """Whether a function within a test may be called when others that began after it have ended."""
        call = function.parent.parent if function.parent is not None else None
        callee = call.child_by_field_name("function") if call is not None else None
        if call is None or callee is None or self.values.rows_given_to(function) is not None:
            return False
        return call.parent is None or call.parent.type != "await_expression"

    def require_waited(self, node: Node, function: Node, *, is_counted: bool = False) -> None:
        """Raise :class:`Undividable` if a function does not wait for a promise that a node in it gives."""
        around = node.parent
        kind = around.type if around is not None else ""
        outer = around
        while outer is not None and outer.type not in FUNCTIONS:
            outer = outer.parent
        is_returned = kind == "return_statement" or (kind == "arrow_function" and around == outer)
        if kind != "await_expression" and (is_counted or not is_returned or outer != function):
            raise Undividable("check that nobody waits for")

    def _why_uncertain(self, inner: Node, around: Node) -> str:
        """Why the node around another may leave that out, or repeat it; empty if it does not."""
        kind, why = around.type, ""
        if kind in _LOOPS or (kind == "for_statement" and not self._is_counting(around)):
            why = "check in a loop or a branch that the code may decide"
        elif kind == "for_in_statement":
            table = around.child_by_field_name("right")
            is_fixed = table is None or table == inner or self.values.is_known(table) or self._is_fixture(table)
            why = "" if is_fixed else "check in a loop or a branch that the code may decide"
        elif kind in {"if_statement", "ternary_expression"}:
            condition = around.child_by_field_name("condition")
            is_fixed = condition is None or condition == inner or self.values.is_known(condition)
            why = "" if is_fixed else "check under a condition"
        elif kind == "binary_expression" and around.child_by_field_name("right") == inner:
            left, operator = around.child_by_field_name("left"), around.child_by_field_name("operator")
            is_choice = operator is not None and operator.type in {"&&", "||", "??"}
            why = "check under a condition" if is_choice and left and not self.values.is_known(left) else ""
        elif kind in FUNCTIONS and not self._is_called_once(around):
            why = "check in a function that the code may call"
        return why

    def _is_counting(self, loop: Node) -> bool:
        """Whether a loop counts to a known number."""
        heads = [loop.child_by_field_name(name) for name in ("initializer", "condition", "increment")]
        for head in heads:
            for use, binding in self.values.bindings.uses_in(head) if head is not None else ():
                is_own = loop.start_byte <= binding.node.start_byte < loop.end_byte
                if not is_own and not self.values.is_known_binding(binding):
                    return False
                if is_own and use.parent is not None and use.parent.type == "call_expression":
                    return False
        return True

    def _is_called_once(self, function: Node) -> bool:
        """Whether a function within a test is called for each row of a known table, or once, or the test fails."""
        rows = self.values.rows_given_to(function)
        if rows is not None:  # functions that wait may end in any order
            is_certain = self.values.is_known(rows[0]) or self._is_fixture(rows[0])
            return is_certain and function.children[0].type != "async"
        around = function.parent
        call = around.parent if around is not None and around.type == "arguments" else None
        callee = call.child_by_field_name("function") if call is not None else None
        if call is None or callee is None or around is None:
            return False
        if _DEFINING & {text(callee, self.source), *text(callee, self.source).split(".")[1:2]}:
            return True  # a test in a test
        if text(callee, self.source).endswith(".then") and children(around)[0] == function:
            outer = call.parent
            is_waited = outer is not None and outer.type in {"return_statement", "await_expression"}
            return is_waited or (outer is not None and outer.type == "arrow_function")
        body = function.child_by_field_name("body")
        return body is not None and any(map(self._ends_test, children(body)))

    def _is_fixture(self, table: Node) -> bool:
        """Whether a table is in a file of data beside the tests, which no solution changes."""
        binding = self.values.bindings.of(unwrapped(table)) if unwrapped(table).type == "identifier" else None
        folders = binding.module.split("/") if binding is not None and not binding.writes else []
        return not _FIXTURES.isdisjoint(folders[:-1])

    def _ends_test(self, statement: Node) -> bool:
        call = children(statement)[0] if statement.type == "expression_statement" and children(statement) else None
        callee = call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
        arguments = call.child_by_field_name("arguments") if call is not None else None
        words = text(callee, self.source).split(".") if callee is not None else [""]
        return words[-1] in _ENDING and len(words) <= 2 and arguments is not None and not children(arguments)

    # -------------------------------------------------------------------------------------- comparisons
    def require_no_comparison(self, nodes: Iterator[Node] | Sequence[Node], *, of_code: bool = False) -> None:
        """Raise :class:`Undividable` if one of the nodes compares what comes of the code, or brings it to a literal.

        ``of_code``: only if the code may be concerned.
        """
        for node in nodes:
            if self._compares(node) and not self._is_given_to_code(node) and (not of_code or self._concerns(node)):
                raise Undividable("comparison outside a check")
            if self.comparisons.compares(node) and not self._is_input(node) and not self._is_given_to_code(node):
                raise Undividable("value of the code beside a literal")
            if self.comparisons.says(node):
                raise Undividable("output that may tell what is expected")
            if node.type == "throw_statement" and self._is_verdict(node):
                raise Undividable("error that a test throws itself")

    def _concerns(self, node: Node) -> bool:
        return any(self.comparisons.is_of_code(child) for child in children(node))

    def _is_verdict(self, statement: Node) -> bool:
        """Whether an error is thrown under a condition, as one of a check is."""
        around = statement.parent
        while around is not None and around.type not in FUNCTIONS:
            if around.type in {"if_statement", "switch_statement"}:
                return True
            around = around.parent
        return False

    def _compares(self, node: Node) -> bool:
        if node.type == "switch_statement":
            value = node.child_by_field_name("value")
            return value is not None and not self.values.is_known(value)
        if node.type == "binary_expression":
            operator = node.child_by_field_name("operator")
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if operator is None or operator.type not in _COMPARISONS or left is None or right is None:
                return False
            sides = {text(unwrapped(left), self.source), text(unwrapped(right), self.source)}
            in_head = node.parent is not None and node.parent.type == "for_statement"
            is_known = self.values.is_known(left) and self.values.is_known(right)
            return not (sides & _NOTHINGS or in_head or is_known)
        callee = node.child_by_field_name("function") if node.type == "call_expression" else None
        if callee is None or callee.type != "member_expression":
            return False
        name, owner = callee.child_by_field_name("property"), callee.child_by_field_name("object")
        word = text(name, self.source) if name is not None else ""
        arguments = node.child_by_field_name("arguments")
        given = children(arguments) if arguments is not None else []
        is_test = word == "test" and bool(given) and given[-1].type in FUNCTIONS
        if word not in _COMPARING or word in self.depending or not given or is_test:
            return False
        return owner is not None and not (self.values.is_known(owner) and all(map(self.values.is_known, given)))

    def require_no_choice(self, found: Node) -> None:
        """Raise :class:`Undividable` if what is found is chosen from other values by what the code returns."""
        for node in (found, *_own(found)):
            field = {"ternary_expression": "condition", "binary_expression": "left"}.get(node.type, "")
            chooser, operator = node.child_by_field_name(field), node.child_by_field_name("operator")
            is_choice = node.type == "ternary_expression" or (
                operator is not None and operator.type in {"&&", "||", "??"}
            )
            if field and is_choice and chooser is not None and not self.values.is_known(chooser):
                raise Undividable("condition within an operand")

    def _is_input(self, node: Node) -> bool:
        """Whether an expression is part of an argument of the code under test."""
        inner, around = node, node.parent
        while around is not None and inner.type not in FUNCTIONS and not inner.type.endswith("_statement"):
            if around.type == "arguments" and around.parent is not None and self.is_code(around.parent):
                return True
            inner, around = around, around.parent
        return False

    def _is_given_to_code(self, node: Node) -> bool:
        """Whether a comparison is part of a function without effects that a test gives to the code under test."""
        around = node.parent
        while around is not None and not around.type.endswith("_declaration"):
            if around.type in FUNCTIONS and any(map(self.is_code, calls_around(around))):
                return self._is_predicate(around)
            around = around.parent
        return False

    def _is_predicate(self, function: Node) -> bool:
        """Whether a function does nothing but return a value."""
        body = function.child_by_field_name("body")
        statements = children(body) if body is not None and body.type == "statement_block" else []
        is_one = not statements or (len(statements) == 1 and statements[0].type == "return_statement")
        return is_one and not any(
            node.type in _EFFECTS
            or (node.type == "call_expression" and (node.child_by_field_name("function") or node).type == "identifier")
            for node in descendants(function)
        )

    def is_code(self, call: Node) -> bool:
        """Whether a call is one of the code under test, by its name."""
        callee = call.child_by_field_name("function") or call.child_by_field_name("constructor")
        is_named = callee is not None and text(callee, self.source).rpartition(".")[2] in self.depending
        return is_named and not self.is_assertion(call)

    def require_no_early_end(self, body: Node) -> None:
        """Raise :class:`Undividable` if a test may return before its last statement."""
        last = children(body)[-1:] if body.type == "statement_block" else []
        for node in _own(body):
            if node.type in {"break_statement", "continue_statement"}:
                raise Undividable("test that may end early")
            if node.type == "return_statement" and node not in last:
                raise Undividable("test that may end early")


def _own(node: Node) -> Iterator[Node]:
    """The nodes of a body outside the functions in it."""
    for child in node.named_children:
        yield child
        if child.type not in FUNCTIONS:
            yield from _own(child)
