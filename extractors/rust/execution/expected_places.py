"""Where a test's expected values are: written into its checks, in variables that only checks use, in rows of tables."""

from __future__ import annotations

import re
from collections.abc import Collection

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.rust.analysis.grammar import NAMES, descendants, field_text, text
from excise.extractors.rust.execution.neutral_values import neutral_value

_FORMLESS = re.compile(r"""&?(?:0(?:\.0)?(?:[iuf]\w+)?|""|' '|false)$""")
"""Neutral values whose form tells nothing."""
_ITERATING = frozenset({"iter", "into_iter", "iter_mut", "copied", "cloned"})


class ExpectedPlaces:
    """The places of a test's expected values, and the edits that take them out."""

    def __init__(self, root: Node, body: Node, source: bytes) -> None:
        self._root, self._body, self._source = root, body, source
        self.dropped: list[tuple[int, int]] = []
        """Places of expected values and messages of checks, which the observing form leaves out."""
        self._lets = self._named_lets()
        self._used: set[str] = set()

    def _named_lets(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in descendants(self._body):
            pattern = node.child_by_field_name("pattern") if node.type == "let_declaration" else None
            if pattern is not None and pattern.type == "identifier":
                found.setdefault(text(pattern, self._source), []).append(node)
        return found

    def is_independent(self, condition: Node) -> bool:
        """Whether a condition has no calls, and no variables that are declared with some."""
        names = {text(each, self._source) for each in descendants(condition) if each.type == "identifier"}
        lets = (let for name in names for let in self._lets.get(name, ()))
        calls = {"call_expression", "macro_invocation", "await_expression", "index_expression", "let_condition"}
        return not any(each.type in calls for node in (condition, *lets) for each in descendants(node))

    def is_plain(self, name: str) -> bool:
        """Whether a variable holds a value that is written out in the test, as far as its declaration tells."""
        return self._declared(name) is not None or self._column(name) is not None

    def _declared(self, name: str) -> str | None:
        """The declaration of a variable, with a neutral value; ``None`` if it is computed."""
        lets = self._lets.get(name, [])
        value = lets[0].child_by_field_name("value") if len(lets) == 1 else None
        neutral = neutral_value(text(value, self._source)) if value is not None else None
        if neutral is None or neutral.variables:
            return None
        kind = field_text(lets[0], "type", self._source)
        return f"let {name}{': ' + kind if kind else ''} = {neutral.text}; "

    def declarations(self, variables: Collection[str]) -> str | None:
        """Declarations of those of the variables that are declared in the test, with neutral values.

        ``None`` if one of them is used elsewhere, too, so that the test gives it to the code. To be called when
        everything that is dropped is known.
        """
        found = ""
        for name in sorted(variables):
            declared = self._declared(name)
            if not self._is_expected_only(name):
                return None
            self._used.add(name)
            found += declared or ""
        return found

    def _is_expected_only(self, name: str) -> bool:
        """Whether a variable is used in what is dropped only."""
        places = [place for place in self._occurrences(name) if not self._is_dropped(place)]
        return len(places) == 1  # its declaration

    def _occurrences(self, name: str) -> list[int]:
        """Where a name is in the test, names within texts to format included."""
        inside = rb"\{\s*%s\s*[:}]" % re.escape(name.encode())
        found = []
        for node in descendants(self._body):
            if node.type in NAMES and text(node, self._source) == name:
                found.append(node.start_byte)
            elif node.type in {"string_literal", "raw_string_literal"}:
                found += [node.start_byte] * bool(re.search(inside, self._source[node.start_byte : node.end_byte]))
        return found

    def _is_dropped(self, place: int) -> bool:
        return any(start <= place < end for start, end in self.dropped)

    def _column(self, name: str) -> list[Edit] | None:
        """The edits of a column of a table whose rows a loop takes; ``None`` if the variable is no such column.

        All cells must be literals of one type: the forms of others would tell something of what is expected.
        """
        loops = [node for node in descendants(self._body) if node.type == "for_expression"]
        for loop in loops:
            pattern, value = loop.child_by_field_name("pattern"), loop.child_by_field_name("value")
            if pattern is not None and pattern.type == "reference_pattern" and pattern.named_children:
                pattern = pattern.named_children[0]
            if pattern is None or value is None or pattern.type != "tuple_pattern":
                continue
            names = [text(each, self._source) for each in pattern.named_children]
            table = self._table(value) if names.count(name) == 1 else None
            if table is not None:
                return self._cells(table, names.index(name), len(names))
        return None

    def _cells(self, table: Node, column: int, width: int) -> list[Edit] | None:
        edits, forms = [], set()
        for row in table.named_children:
            if row.type in {"line_comment", "block_comment"}:
                continue
            cells = row.named_children if row.type == "tuple_expression" else []
            value = neutral_value(text(cells[column], self._source)) if len(cells) == width else None
            if value is None or not _FORMLESS.match(value.text):
                return None
            forms.add(value.text)
            edits.append(Edit(cells[column].start_byte, cells[column].end_byte, value.text.encode()))
        return edits if len(forms) == 1 else None

    def _table(self, value: Node) -> Node | None:
        """The array of rows that a loop goes through."""
        while True:
            called = value.child_by_field_name("function") if value.type == "call_expression" else None
            if called is not None and field_text(called, "field", self._source) in _ITERATING:
                value = called.child_by_field_name("value") or value
            elif value.type in {"reference_expression", "parenthesized_expression"} and value.named_children:
                value = value.named_children[-1]
            else:
                break
        if value.type == "array_expression":
            return value
        return self._named_table(text(value, self._source)) if value.type == "identifier" else None

    def _named_table(self, name: str) -> Node | None:
        """The array that a variable of the test or a constant of the file holds, if it is used once."""
        lets = self._lets.get(name, [])
        constants = [
            node
            for node in descendants(self._root)
            if node.type in {"const_item", "static_item"} and field_text(node, "name", self._source) == name
        ]
        within = self._root if constants else self._body
        uses = [n for n in descendants(within) if n.type in NAMES and text(n, self._source) == name]
        if len([*lets, *constants]) != 1 or len(uses) != 2:
            return None
        value = [*lets, *constants][0].child_by_field_name("value")
        while value is not None and value.type == "reference_expression" and value.named_children:
            value = value.named_children[-1]
        return value if value is not None and value.type == "array_expression" else None

    def edits(self) -> list[Edit]:
        """The edits that take the expected values out of declarations and tables."""
        found = list[Edit]()
        for name in sorted(self._used):
            if self._declared(name) is not None:
                (let,) = self._lets[name]
                found.append(Edit(let.start_byte, let.end_byte, b""))
            else:
                found += self._column(name) or ()
        return found
