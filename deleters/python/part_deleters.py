"""The deleters ``line`` and ``expression``, which remove parts of functions and make the easiest tasks.

``line`` replaces the body of functions that consist of one statement. ``expression`` keeps the body except one
``return`` statement, which becomes one that raises. Both are meant for tasks with visible tests, and also work with
hidden tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.deleters.deletion_record import EditedFiles
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.deleters.python.deletion_builder import build_python_deletion, require_python, symbols_to_delete
from excise.deleters.python.edits.empty_bodies import functions_of, is_abstract
from excise.deleters.python.edits.file_plan import check_parses
from excise.deleters.python.hidden_tests import without_tests
from excise.deleters.python.stub import Stub
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.grammar import DEFINITIONS, docstring_node, parse_tree, statements, text
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol

PLACEHOLDER = b"raise NotImplementedError"
"""Replaces the deleted code; it raises, because some tests would pass with any true value."""
_SIMPLE = frozenset(
    {"return_statement", "expression_statement", "raise_statement", "assert_statement", "delete_statement"}
)
_EMPTY = frozenset({"...", "NotImplemented", "raise NotImplementedError", "raise NotImplementedError()"})
_TRIVIAL = frozenset({"identifier", "none", "true", "false", "integer", "float", "string", "ellipsis"})
"""Node types of return values that are too simple for a task."""


class Line(Stub):
    """Replaces the one statement of short functions by ``raise NotImplementedError``."""

    name = "line"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`; refuses functions with more than one statement."""
        python = require_python(codebase)
        for function in _functions(python, feature, only):
            body = _body(python, function)
            if len(body) != 1 or body[0].type not in _SIMPLE or text(body[0], _source(python, function)) in _EMPTY:
                raise DeletionRefused(f"{function.symbol_id}: not one statement", reason="not_one_statement")
        return super().delete(codebase, feature, only=only, hide=hide)


class Expression:
    """Replaces the ``return`` with the longest expression of a function by a statement that raises."""

    name = "expression"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`; refuses functions that return no such expression or do nothing
        else."""
        python = require_python(codebase)
        functions = _functions(python, feature, only)
        if len(functions) != 1:
            raise DeletionRefused("more than one function", reason="not_one_function")
        (function,) = functions
        node, source = returned_expression(python, function), _source(python, function)
        if node is None or node.parent is None:
            raise DeletionRefused(f"{function.symbol_id}: returns no expression", reason="no_expression")
        whole = node.parent
        if _body(python, function)[0].start_byte == whole.start_byte:
            raise DeletionRefused(f"{function.symbol_id}: returns, and does no more", reason="one_statement")
        after = apply_edits(source, [Edit(whole.start_byte, whole.end_byte, PLACEHOLDER)])
        check_parses(function.path, source, after)
        tests, hidden = without_tests(python, feature, hide)
        files = EditedFiles(
            changed={function.path: (source, after), **tests},
            removed=[function.symbol_id],
            hidden=hidden,
            text=[(f"{function.symbol_id}{EXPRESSION_SUFFIX}", text(node, source))],
            stubs_of=[function.symbol_id],
        )
        return build_python_deletion(python, feature, files, name=self.name, version=self.version)


def returned_expression(codebase: PythonCodebase, function: Symbol) -> Node | None:
    """The longest expression that a function returns, of equal ones the last; ``None`` if all are trivial."""
    found = [
        value
        for node in _nodes_below(_body(codebase, function))
        if node.type == "return_statement" and node.named_children
        if (value := node.named_children[0]).type not in _TRIVIAL
    ]
    return max(reversed(found), key=lambda node: node.end_byte - node.start_byte, default=None)


def _functions(codebase: PythonCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The feature's entry symbols, which must be functions. Raises :class:`DeletionRefused` if one is not."""
    symbols = symbols_to_delete(codebase, feature, only)
    entries = [symbol.symbol_id for symbol in symbols if symbol.symbol_id in feature.entry]
    if not all(codebase.symbols()[entry].is_callable for entry in entries):
        raise DeletionRefused("a class or a module is no function", reason="not_one_function")
    functions = [f for f in functions_of(codebase, entries) if not f.is_overload and not is_abstract(f)]
    if not functions:
        raise DeletionRefused("no function with a body", reason="nothing_to_stub")
    return functions


def _source(codebase: PythonCodebase, function: Symbol) -> bytes:
    return codebase.modules[function.path].source


def _body(codebase: PythonCodebase, function: Symbol) -> list[Node]:
    """Statements of a function after its docstring."""
    root = parse_tree(_source(codebase, function)).root_node
    node = root.descendant_for_byte_range(function.body_start, function.body_start)
    while node is not None and not (node.type == "function_definition" and node.end_byte == function.end):
        node = node.parent
    block = node.child_by_field_name("body") if node is not None else None
    if block is None:
        return []
    body, docstring = statements(block), docstring_node(block)
    return body[1:] if docstring is not None else body


def _nodes_below(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes below ``nodes`` in the order of the source, without those of nested functions and classes."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node.type in DEFINITIONS or node.type == "lambda":
            continue
        yield node
        stack.extend(reversed(node.named_children))
