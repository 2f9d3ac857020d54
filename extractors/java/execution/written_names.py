"""What the names in a Java test stand for: variables, parameters and fields whose values are written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import descendants, name_of, text
from excise.extractors.java.execution.expected_values import LITERALS, is_written_out, number_of
from excise.extractors.java.execution.test_class import TestClass, assigned_names, parameters_of

_IMMUTABLE = frozenset({
    "String", "boolean", "byte", "short", "char", "int", "long", "float", "double", "Boolean", "Byte", "Short",
    "Character", "Integer", "Long", "Float", "Double",
})  # fmt: skip
UNCHANGING = LITERALS | {"unary_expression", "binary_expression"}
"""Nodes of values that no code can change."""
_BINDING = frozenset({
    "enhanced_for_statement", "lambda_expression", "catch_formal_parameter", "resource", "formal_parameter",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Index:
    """What stands where in a method, by name."""

    declared: Mapping[str, list[Node]]
    assigned: Mapping[str, list[Node]]
    uses: Mapping[str, list[Node]]
    loops: Mapping[str, list[Node]]
    """Loops over items that are called so."""
    bound: frozenset[str]


def _index(body: Node, source: bytes) -> _Index:
    declared, uses, loops = dict[str, list[Node]](), dict[str, list[Node]](), dict[str, list[Node]]()
    bound = set[str]()
    for each in descendants(body):
        if each.type == "identifier":
            uses.setdefault(text(each, source), []).append(each)
        elif each.type == "variable_declarator":
            declared.setdefault(name_of(each, source), []).append(each)
        elif each.type in _BINDING:
            bound.add(name_of(each, source))
        if each.type == "enhanced_for_statement":
            loops.setdefault(name_of(each, source), []).append(each)
        parameters = each.child_by_field_name("parameters") if each.type == "lambda_expression" else None
        if parameters is not None:
            bound.update(text(leaf, source) for leaf in descendants(parameters))
    return _Index(declared, assigned_names(body, source), uses, loops, frozenset(bound))


class WrittenNames:
    """The names that a method uses."""

    def __init__(self, holder: TestClass, method: Node, body: Node) -> None:
        self.holder, self.body = holder, body
        self.file, self.source, self.depending = holder.file, holder.file.source, holder.file.depending
        self.parameters = dict(parameters_of(method, self.source) or [])
        self.index = _index(body, self.source)

    def is_fixed(self, node: Node) -> bool:
        """Whether a value is written out somewhere in the test."""
        return is_written_out(node, self.source, self.depending, lambda each: self.is_known(each, is_expected=False))

    def is_known(self, node: Node, *, is_expected: bool) -> bool:
        """Whether a name stands for a value that is written out. What is expected may be a parameter, or one of some
        values that a loop takes."""
        name = text(node, self.source)
        if name in self.parameters:
            return is_expected and not self.assignments(name)
        if is_expected and self.loop_over_written(name) is not None:
            return True
        if self.is_local(name) or name in self.holder.fields:
            return self.initial_value(name) is not None
        owner = self.file.imports.functions.get(name, "")
        return name.isupper() and bool(owner) and not {name, owner.rpartition(".")[2]} & self.depending

    def is_variable(self, name: str) -> bool:
        """Whether a name is a parameter, a variable, or what a loop gives a value to."""
        return name in self.parameters or self.is_local(name)

    def is_local(self, name: str) -> bool:
        """Whether the method declares a name, in whatever way."""
        return bool(self.declarators(name)) or self._is_bound(name)

    def declarators(self, name: str) -> list[Node]:
        """The declarations of local variables with a name."""
        return list(self.index.declared.get(name, ()))

    def assignments(self, name: str) -> list[Node]:
        """Where a name gets another value, or an item of it."""
        return list(self.index.assigned.get(name, ()))

    def uses(self, name: str) -> list[Node]:
        """Where a name stands, in whatever role."""
        return list(self.index.uses.get(name, ()))

    def _is_bound(self, name: str) -> bool:
        """Whether a loop, function or clause of the method gives a value to a name."""
        return name in self.index.bound

    def loop_over_written(self, name: str) -> Node | None:
        """The loop that gives each of some written values to a name, which never gets others."""
        found = self.index.loops.get(name, [])
        value = found[0].child_by_field_name("value") if len(found) == 1 else None
        if value is None or self.declarators(name) or self.assignments(name) or not self.is_fixed(value):
            return None
        return found[0]

    def is_immutable(self, name: str) -> bool:
        """Whether what a name stands for cannot be changed by the code that it is given to."""
        declared = self.parameters.get(name) or self.loop_over_written(name)
        kind = declared.child_by_field_name("type") if declared is not None else None
        if kind is not None:
            return text(kind, self.source) in _IMMUTABLE
        value = self.initial_value(name)
        return value is not None and value.type in UNCHANGING

    def initial_value(self, name: str) -> Node | None:
        """The written value of a variable or field that never gets another one."""
        local = self.declarators(name)
        if local:
            is_single = len(local) == 1 and not self.assignments(name) and not self._is_bound(name)
            declarator = local[0] if is_single else None
        elif self._is_bound(name):
            return None
        else:
            declarator = self.holder.fields.get(name)
            if declarator is not None and name in self.file.assigned:
                return None
        value = declarator.child_by_field_name("value") if declarator is not None else None
        if value is None or not is_written_out(value, self.source, self.depending, self._is_constant):
            return None
        return None if not local and value.type == "object_creation_expression" else value

    def _is_constant(self, node: Node) -> bool:
        """Whether a name in a written value is one of a field that is written out by itself."""
        declarator = self.holder.fields.get(text(node, self.source))
        value = declarator.child_by_field_name("value") if declarator is not None else None
        return value is not None and is_written_out(value, self.source, self.depending)

    def is_counter(self, name: str) -> bool:
        """Whether a variable gets nothing but written values, and is counted."""
        declared, assigned = self.declarators(name), self.assignments(name)
        if len(declared) != 1 or self._is_bound(name):
            return False
        values = [declared[0].child_by_field_name("value"), *(each.child_by_field_name("right") for each in assigned)]
        found = [each for each in values if each is not None]
        return bool(found) and all(is_written_out(each, self.source, self.depending) for each in found)

    def number(self, node: Node) -> float | None:
        """The number that a literal says, or the variable of one."""
        value = self.initial_value(text(node, self.source)) if node.type == "identifier" else node
        return number_of(value, self.source) if value is not None else None

    def is_of_call(self, name: str) -> bool:
        """Whether a variable gets nothing but what calls return, or a field what code elsewhere gives it."""
        if not self.is_variable(name):
            field = self.holder.fields.get(name)
            return field is not None and name not in self.file.assigned
        values = [each.child_by_field_name("value") for each in self.declarators(name)]
        values += [each.child_by_field_name("right") for each in self.assignments(name)]
        kinds = {"method_invocation", "array_access", "field_access"}
        return bool(values) and all(value is not None and value.type in kinds for value in values)
