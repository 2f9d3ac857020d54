"""What a test file knows without the code under test: literals, and what is made of them by the language itself.

Only what is known can be taken out of a test: its value is the same for all solutions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from excise.extractors.javascript.analysis.bindings import Binding, Bindings, Source, parameters_of
from excise.extractors.javascript.analysis.grammar import (
    FUNCTIONS,
    children,
    descendants,
    string_value,
    text,
    unwrapped,
)

_LITERALS = frozenset({"string", "number", "true", "false", "null", "undefined", "regex", "string_fragment",
                       "escape_sequence", "comment"})  # fmt: skip
_COMPOSED = frozenset({"array", "object", "parenthesized_expression", "binary_expression", "ternary_expression",
                       "spread_element", "template_string", "template_substitution", "computed_property_name",
                       "sequence_expression", "as_expression", "satisfies_expression",
                       "non_null_expression"})  # fmt: skip
GLOBALS = frozenset({
    "Array", "ArrayBuffer", "BigInt", "Boolean", "Buffer", "Date", "Error", "Float32Array", "Float64Array", "Infinity",
    "Int16Array", "Int32Array", "Int8Array", "JSON", "Map", "Math", "NaN", "Number", "Object", "RangeError", "RegExp",
    "Set", "String", "Symbol", "SyntaxError", "TypeError", "URL", "URLSearchParams", "Uint16Array", "Uint32Array",
    "Uint8Array", "decodeURIComponent", "encodeURIComponent", "isNaN", "parseFloat", "parseInt", "undefined",
})  # fmt: skip
MODULES = frozenset({"path", "util", "url", "buffer", "querystring", "os", "string_decoder"})
"""Modules of node that compute and read nothing."""
_CHANGING = frozenset({"push", "pop", "shift", "unshift", "splice", "set", "add", "delete", "defineProperty", "write"})
_ARRANGING = frozenset({"sort", "reverse", "fill", "copyWithin"})
"""Methods that change what they are called on, and return it."""
_DEFINING = frozenset({"it", "test", "describe", "suite", "context", "specify"})

_DEFAULTS = frozenset({"assignment_pattern", "object_assignment_pattern"})
_ASSIGNING = frozenset({"Object.assign", "Object.defineProperty", "Object.defineProperties", "Object.setPrototypeOf",
                        "Reflect.set", "Reflect.defineProperty"})  # fmt: skip
_INHERITED = frozenset({"toString", "valueOf", "hasOwnProperty", "constructor", "toJSON", "toLocaleString"})

Path = tuple[str | int, ...]


class KnownValues:
    """The known expressions of one file."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings, self.source = bindings, bindings.source
        self._known: dict[int, bool] = {}
        self._open: set[int] = set()
        self._bound: dict[int, Binding] = {}

    # --------------------------------------------------------------------------------------- expressions
    def is_known(self, node: Node, inside: tuple[Node, ...] = ()) -> bool:
        """Whether an expression has the same value for all solutions, and no effects.

        ``inside``: functions around it whose parameters count as known.
        """
        kind = node.type
        if kind in _COMPOSED:
            return all(self.is_known(child, inside) for child in children(node))
        if kind in {"identifier", "shorthand_property_identifier"}:
            return self._is_known_name(node, inside)
        if kind in {"call_expression", "new_expression"}:
            return self._is_known_call(node, inside)
        if kind in FUNCTIONS and kind != "method_definition":
            return self._is_known_function(node, inside)
        return kind in _LITERALS or self._has_known_parts(node, inside)

    def _has_known_parts(self, node: Node, inside: tuple[Node, ...]) -> bool:
        """Whether a pair of an object, an operation with one operand, or a member consists of known expressions."""
        key, operator = node.child_by_field_name("key"), node.child_by_field_name("operator")
        if node.type == "pair":
            computed = [key] if key is not None and key.type == "computed_property_name" else []
            parts = [*computed, node.child_by_field_name("value")]
        elif node.type == "unary_expression" and operator is not None and operator.type != "delete":
            parts = [node.child_by_field_name("argument")]
        elif node.type in {"member_expression", "subscript_expression"}:
            index = node.child_by_field_name("index")
            parts = [node.child_by_field_name("object"), *([index] if index is not None else [])]
        else:
            return False
        return all(part is not None and self.is_known(part, inside) for part in parts)

    def is_written_out(self, node: Node) -> bool:
        """Whether a known expression names no variable."""
        return self.is_known(node) and not any(True for _ in self.bindings.uses_in(node))

    def _is_known_call(self, node: Node, inside: tuple[Node, ...]) -> bool:
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if callee is None or text(callee, self.source).rpartition(".")[2] in _CHANGING:
            return False
        given = children(arguments) if arguments is not None else []
        return self.is_known(callee, inside) and all(self.is_known(each, inside) for each in given)

    def _is_known_function(self, node: Node, inside: tuple[Node, ...]) -> bool:
        """Whether a function names nothing that is not known, and changes nothing outside itself."""
        more = (*inside, node)
        for each in descendants(node):
            if each.type in {"this", "await_expression", "yield_expression", "super"}:
                return False
            binding = self.bindings.of(each)
            is_own = binding is not None and _is_within(binding.node, node)
            is_name = each.type in {"identifier", "shorthand_property_identifier"} and not is_own
            if is_name and not _is_bound_here(each, node, self.bindings) and not self._is_known_name(each, more):
                return False
        return True

    def _is_known_name(self, node: Node, inside: tuple[Node, ...]) -> bool:
        binding = self.bindings.of(node)
        if binding is None:
            return text(node, self.source) in GLOBALS
        if any(_is_within(binding.node, function) for function in inside):
            return True
        return self.is_known_binding(binding)

    def is_known_binding(self, binding: Binding) -> bool:
        """Whether a variable has a known value, the same wherever it is used."""
        found = self._known.get(binding.node.id)
        if found is None:
            if binding.node.id in self._open:
                return False
            self._open.add(binding.node.id)
            found = self._is_known_binding(binding)
            self._open.discard(binding.node.id)
            self._known[binding.node.id] = found
        return found

    def _is_known_binding(self, binding: Binding) -> bool:
        if binding.module:
            return binding.module.removeprefix("node:") in MODULES
        if binding.kind == "function":
            return binding.writes == 0 and self.is_known(binding.owner) if binding.owner.type in FUNCTIONS else False
        if binding.writes or self._has_default(binding) or any(map(self._is_changed, binding.uses)):
            return False
        if binding.kind == "parameter" and self._counts_rows(binding):
            return True
        sources = self.sources(binding)
        return bool(sources) and all(self.is_known(each.node) for each in sources or ())

    def _has_default(self, binding: Binding) -> bool:
        """Whether a name is bound with another value in case that there is none."""
        around: Node | None = binding.node
        while around is not None and around != binding.owner:
            is_default = around.type in {"required_parameter", "optional_parameter"}
            if around.type in _DEFAULTS or (is_default and around.child_by_field_name("value") is not None):
                return True
            around = around.parent
        return False

    def are_found(self, node: Node) -> bool:
        """Whether all that an expression reads of variables, directly or not, is written out somewhere."""
        queue, known = [node], set[tuple[int, Path]]()
        while queue:
            each = queue.pop()
            for use, binding in self.bindings.uses_in(each):
                is_own = _is_within(binding.node, each) or self._counts_rows_here(binding)
                key = binding.node.id, self.place_of(use)
                if binding.module or is_own or key in known or binding.kind not in {"variable", "loop", "parameter"}:
                    continue
                known.add(key)
                cells = self.cells(binding, key[1])
                if not cells:
                    return False
                queue += [cell for cell in cells if cell != use]
        return True

    def _counts_rows_here(self, binding: Binding) -> bool:
        return binding.kind == "parameter" and self._counts_rows(binding)

    def _is_changed(self, use: Node) -> bool:
        """Whether a use changes a part of a variable: ``x.a = 1``, ``delete x.a``, ``x.push(1)``."""
        node, around, name = use, use.parent, ""
        if around is not None and around.type == "arguments" and children(around)[0] == use:
            called = around.parent.child_by_field_name("function") if around.parent is not None else None
            if called is not None and text(called, self.source) in _ASSIGNING:
                return True
        while around is not None and around.child_by_field_name("object") == node:
            last = around.child_by_field_name("property")
            name = text(last, self.source) if last is not None else ""
            node, around = around, around.parent
        if around is None or node == use:
            return False
        if around.type == "unary_expression":
            return text(around, self.source).startswith("delete")
        is_target = around.type in {"assignment_expression", "augmented_assignment_expression", "update_expression"}
        is_called = around.type == "call_expression" and around.child_by_field_name("function") == node
        return (is_target and around.named_children[0] == node) or (is_called and name in _CHANGING | _ARRANGING)

    # -------------------------------------------------------------------------------------------- sources
    def sources(self, binding: Binding) -> list[Source] | None:
        """All that a variable may be a part of; ``None`` if that is not in the file."""
        if binding.writes or "..." in (binding.source.path if binding.source else ()):
            return None
        if binding.kind == "variable":
            return [binding.source] if binding.source is not None else None
        if binding.kind == "loop" and binding.source is not None:
            operator = binding.owner.child_by_field_name("operator")
            if operator is None or operator.type != "of":
                return None
            return self._rows(binding.source.node, binding.source.path)
        if binding.kind == "parameter" and binding.source is not None:
            return self._arguments(binding, binding.source.path)
        return None

    def _rows(self, table: Node, path: Path) -> list[Source] | None:
        """The items of a table that is written out, or those of an object with ``Object.entries``."""
        table = unwrapped(table)
        if table.type == "array":
            rows = children(table)
            return None if any(each.type == "spread_element" for each in rows) else [Source(row, path) for row in rows]
        if table.type == "identifier":
            binding = self.bindings.of(table)
            source = binding.source if binding is not None and binding.kind == "variable" else None
            if binding is None or binding.writes or source is None or source.path:
                return None
            return self._rows(source.node, path) if source.node != table else None
        callee, arguments = table.child_by_field_name("function"), table.child_by_field_name("arguments")
        if callee is None or arguments is None or text(callee, self.source) not in {"Object.entries", "Object.values"}:
            return None
        return self._entries(children(arguments), path, values=text(callee, self.source) == "Object.values")

    def _entries(self, given: list[Node], path: Path, *, values: bool) -> list[Source] | None:
        node = unwrapped(given[0]) if len(given) == 1 else None
        if node is not None and node.type == "identifier":
            binding = self.bindings.of(node)
            is_plain = binding is not None and binding.kind == "variable" and not binding.writes
            source = binding.source if binding is not None and is_plain else None
            node = unwrapped(source.node) if source is not None and not source.path else None
        if node is None or node.type != "object" or (path[:1] not in {(0,), (1,)} and not values):
            return None
        found = []
        for pair in children(node):
            key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if pair.type != "pair" or key is None or value is None:
                return None
            found.append(Source(value, path) if values else Source(value if path[0] else key, path[1:]))
        return found

    def _arguments(self, parameter: Binding, path: Path) -> list[Source] | None:
        """What the parameter of a function gets: of one that a table is given to, or of one that the file calls."""
        function, number = parameter.owner, parameter.number
        rows = self.rows_given_to(function)
        if rows is not None:
            table, is_spread = rows
            if not is_spread:
                return self._rows(table, path) if number == 0 else None
            items = self._rows(table, ())
            if items is None:
                return None
            is_array = all(unwrapped(item.node).type == "array" for item in items)
            more: Path = (number,) if is_array else ()
            return [Source(item.node, (*more, *path)) for item in items] if is_array or number == 0 else None
        calls = self.calls_of(function)
        if calls is None:
            return None
        found = []
        for call in calls:
            arguments = call.child_by_field_name("arguments")
            given = children(arguments) if arguments is not None else []
            if any(each.type == "spread_element" for each in given):
                return None
            if number < len(given):
                found.append(Source(given[number], path))
        return found

    def rows_given_to(self, function: Node) -> tuple[Node, bool] | None:
        """The table whose rows a function gets, and whether each is spread over its parameters (``it.each``)."""
        arguments = function.parent
        call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
        callee = call.child_by_field_name("function") if call is not None else None
        if callee is None or arguments is None:
            return None
        if callee.type == "member_expression" and children(arguments)[0] == function:
            table, name = callee.child_by_field_name("object"), callee.child_by_field_name("property")
            if table is not None and name is not None and text(name, self.source) in {"forEach", "map"}:
                return table, False
        if callee.type == "call_expression":
            each, given = callee.child_by_field_name("function"), callee.child_by_field_name("arguments")
            words = text(each, self.source).split(".") if each is not None else []
            if given is not None and words[-1:] == ["each"] and words[0] in _DEFINING and len(children(given)) == 1:
                return children(given)[0], True
        return None

    def calls_of(self, function: Node) -> list[Node] | None:
        """The calls of a function that has a name; ``None`` if it has none, or is used otherwise."""
        binding = self.binding_of_function(function)
        if binding is None:
            return None
        found = []
        for use in binding.uses:
            call = use.parent
            if call is None or call.type != "call_expression" or call.child_by_field_name("function") != use:
                return None
            found.append(call)
        return found

    def binding_of_function(self, function: Node) -> Binding | None:
        """The variable that holds a function, if nothing else does."""
        name, around = function.child_by_field_name("name"), function.parent
        is_value = around is not None and around.type == "variable_declarator"
        if around is not None and is_value:
            name = around.child_by_field_name("name")
        if not self._bound:
            self._bound = {binding.node.id: binding for binding in self.bindings.every()}
        binding = self._bound.get(name.id) if name is not None else None
        return binding if binding is not None and not binding.writes else None

    def _counts_rows(self, binding: Binding) -> bool:
        """Whether a parameter is the number of a row of a known table."""
        rows = self.rows_given_to(binding.owner)
        return rows is not None and not rows[1] and binding.number == 1 and self._rows(rows[0], ()) is not None

    # ---------------------------------------------------------------------------------------------- cells
    def cells(self, binding: Binding, path: Path) -> list[Node] | None:
        """The expressions that a part of a variable is written out in; ``None`` if they are not known."""
        sources = self.sources(binding)
        if sources is None:
            return None
        found: list[Node] = []
        for each in sources:
            cell = self._descend(each.node, (*each.path, *path))
            if cell is None:
                return None
            found += cell
        return found

    def _descend(self, node: Node, path: Path) -> list[Node] | None:
        """The parts of an expression at a path: at most one; the expression itself where it is written otherwise."""
        for depth, key in enumerate(path):
            inner = unwrapped(node)
            binding = self.bindings.of(inner) if inner.type == "identifier" else None
            if binding is not None and binding.kind == "variable":
                return self.cells(binding, path[depth:])
            items = children(inner)
            is_plain = not any(map(self._is_unplaced, items)) and not _has_hole(inner)
            is_item = inner.type == "array" and isinstance(key, int)
            is_pair = inner.type == "object" and key not in _INHERITED
            if not (is_item or is_pair):
                break
            if not is_plain:
                return None
            found = items[key : key + 1] if isinstance(key, int) and is_item else self._pairs(items, str(key))
            if not found:
                return []
            value = found[-1].child_by_field_name("value")
            node = value if value is not None and found[-1].type == "pair" else found[-1]
        return [node]

    def _is_unplaced(self, item: Node) -> bool:
        """Whether an item stands for others, or its key is computed."""
        key = item.child_by_field_name("key")
        is_computed = key is not None and key.type == "computed_property_name"
        return is_computed or item.type in {"spread_element", "method_definition"}

    def _pairs(self, items: list[Node], key: str) -> list[Node]:
        return [each for each in items if self._key(each) == key]

    def _key(self, pair: Node) -> str:
        key = pair.child_by_field_name("key")
        if key is None:
            return text(pair, self.source)
        return string_value(key, self.source) or text(key, self.source)

    def place_of(self, use: Node) -> Path:
        """The path of what a use of a variable reads: that of ``row.a[0]`` is ``("a", 0)``."""
        path: list[str | int] = []
        node = use
        while (around := node.parent) is not None:
            index, name = around.child_by_field_name("index"), around.child_by_field_name("property")
            if around.type not in {"member_expression", "subscript_expression"}:
                break
            if around.child_by_field_name("object") != node:
                break
            if name is not None:
                path.append(text(name, self.source))
            elif index is not None and index.type == "number" and text(index, self.source).isdigit():
                path.append(int(text(index, self.source)))
            elif index is not None and (word := string_value(index, self.source)) is not None:
                path.append(word)
            else:
                break
            node = around
        return tuple(path)


def calls_around(node: Node) -> Iterator[Node]:
    """The calls among whose arguments a node is, up to its statement, the innermost first."""
    inner, around = node, node.parent
    while around is not None and not inner.type.endswith(("_statement", "_declaration")):
        if around.type == "arguments" and around.parent is not None:
            yield around.parent
        inner, around = around, around.parent


def _has_hole(array: Node) -> bool:
    """Whether an array has places without an item, such as ``[, 1]``."""
    kinds = [each.type for each in array.children if each.type != "comment"] if array.type == "array" else []
    return any(before in {"[", ","} and each == "," for before, each in pairwise(kinds))


def _is_within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _is_bound_here(node: Node, function: Node, bindings: Bindings) -> bool:
    """Whether an identifier is where a name is bound (a parameter), within a function."""
    return bindings.of(node) is None and any(
        _is_within(node, parameter)
        for each in descendants(function)
        if each.type in FUNCTIONS
        for parameter in parameters_of(each)
    )
