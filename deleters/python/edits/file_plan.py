"""Planned removals in one file, and the content that results."""

from __future__ import annotations

import warnings
from functools import cached_property, lru_cache
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.python.edits.list_elements import elements_of, remove_elements
from excise.deleters.python.edits.statement_removal import StatementRemover
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.grammar import parse_tree
from excise.extractors.python.analysis.parsed_file import Import, PythonModule

Span = tuple[int, int]


class PlanState(NamedTuple):
    """What is planned for a file at one moment: two equal states give the same content."""

    deleted: bool
    statements: frozenset[Span]
    elements: dict[Span, frozenset[Span]]
    clauses: frozenset[Import]
    replacements: tuple[Edit, ...]
    lost_names: frozenset[str]


class FilePlan:
    """Collects removals in one file; :meth:`result` applies them."""

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self.path = module.path
        self.source = module.source
        self.deleted = False
        """Whether the whole file is deleted."""
        self.statements: set[Span] = set()
        """Removed statements."""
        self.elements: dict[Span, set[Span]] = {}
        """Spans of lists to the spans of their removed elements."""
        self.clauses: set[Import] = set()
        """Removed imports of single names."""
        self.replacements: list[Edit] = []
        """Edits other than removals."""
        self.emptied: set[Span] = set()
        """Spans of function bodies that an empty body replaces."""
        self.lost_names: set[str] = set()
        """Module-level names that are no longer bound."""
        self._planned: tuple[PlanState, tuple[Edit, ...]] | None = None

    @cached_property
    def root(self) -> Node:
        """The syntax tree."""
        return parse_tree(self.source).root_node

    def is_removed(self, start: int, end: int) -> bool:
        """Whether a span is inside a planned removal."""
        if self.deleted or any(s <= start and end <= e for s, e in (*self.statements, *self.emptied)):
            return True
        return any(s <= start and end <= e for spans in self.elements.values() for s, e in spans)

    def remove_statement(self, node: Node) -> None:
        """Remove a whole statement."""
        self.statements.add((node.start_byte, node.end_byte))

    def remove_span(self, start: int, end: int) -> None:
        """Remove the statement with exactly this span."""
        self.statements.add((start, end))

    def empty_body(self, edit: Edit) -> None:
        """Replace the body of a function by an empty one."""
        self.replacements.append(edit)
        self.emptied.add((edit.start, edit.end))

    def remove_element(self, container: Node, element: Node) -> None:
        """Remove an element of a list, tuple, set, dict or target list."""
        key = (container.start_byte, container.end_byte)
        self.elements.setdefault(key, set()).add((element.start_byte, element.end_byte))

    def is_emptied(self, container: Node) -> bool:
        """Whether a container loses its last element."""
        gone = self.elements.get((container.start_byte, container.end_byte), set())
        return all((e.start_byte, e.end_byte) in gone for e in elements_of(container))

    def remove_clause(self, record: Import) -> None:
        """Remove one imported name; the statement is removed with its last name."""
        self.clauses.add(record)
        siblings = [
            r for r in self.module.imports if (r.stmt_start, r.stmt_end) == (record.stmt_start, record.stmt_end)
        ]
        if all(r in self.clauses for r in siblings):
            self.remove_span(record.stmt_start, record.stmt_end)

    def drops(self, record: Import) -> bool:
        """Whether an imported name is removed, alone or with what is around it."""
        return record in self.clauses or self.is_removed(record.start, record.end)

    @property
    def is_changed(self) -> bool:
        """Whether anything is planned."""
        return bool(self.deleted or self.statements or self.elements or self.clauses or self.replacements)

    # ------------------------------------------------------------------------------------ result
    @property
    def state(self) -> PlanState:
        """What is planned at the moment."""
        return PlanState(
            self.deleted,
            frozenset(self.statements),
            {span: frozenset(gone) for span, gone in self.elements.items()},
            frozenset(self.clauses),
            tuple(self.replacements),
            frozenset(self.lost_names),
        )

    def edits(self) -> tuple[Edit, ...]:
        """All edits of the file. They are computed once for what is planned: it is asked again and again."""
        state = self.state
        if self._planned is None or self._planned[0] != state:
            statements = StatementRemover(self.source, self.root, self.statements, self.lost_names).plan()
            edits = (*statements, *self._element_edits(), *self._clause_edits(), *self.replacements)
            self._planned = state, edits
        return self._planned[1]

    def _is_kept(self, span: Span) -> bool:
        return not any(s <= span[0] and span[1] <= e for s, e in self.statements)

    def _element_edits(self) -> list[Edit]:
        edits: list[Edit] = []
        for span, gone in self.elements.items():
            container = self.node_at(*span)
            if self._is_kept(span):
                edits += remove_elements(self.source, container, gone)
        return edits

    def _clause_edits(self) -> list[Edit]:
        by_statement: dict[Span, set[Span]] = {}
        for record in self.clauses:
            by_statement.setdefault((record.stmt_start, record.stmt_end), set()).add((record.start, record.end))
        edits: list[Edit] = []
        for span, gone in by_statement.items():
            if self._is_kept(span):
                edits += remove_elements(self.source, self.node_at(*span), gone)
        return edits

    def node_at(self, start: int, end: int) -> Node:
        """The outermost node with exactly this span."""
        node = self.root.descendant_for_byte_range(start, end) or self.root
        while node.parent is not None and (node.parent.start_byte, node.parent.end_byte) == (start, end):
            if node.parent.type in {"module", "block", "expression_statement"}:
                break
            node = node.parent
        return node

    def result(self) -> bytes | None:
        """The new content; ``None`` if the file is deleted. Raises :class:`DeletionRefused` if it does not parse."""
        if self.deleted:
            return None
        after = apply_edits(self.source, self.edits())
        check_parses(self.path, self.source, after)
        return after


def check_parses(path: str, before: bytes, after: bytes) -> None:
    """Raise :class:`DeletionRefused` if ``after`` has a syntax error that ``before`` did not have."""
    broken = parse_tree(after).root_node.has_error
    if broken or (not _compiles(after) and _compiles(before)):
        raise DeletionRefused(f"{path}: the file would no longer parse without this code", reason="would_not_parse")


@lru_cache(maxsize=64)
def _compiles(source: bytes) -> bool:
    """Whether this interpreter compiles the file, which is faster than parsing it to an ``ast``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<file>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
