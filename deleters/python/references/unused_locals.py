"""Local names of functions that stay, which only removed paths used: what binds them goes, too.

A name is unused if it stands in the removed spans, and elsewhere only where it is bound. Its assignments go, with the
branches that this empties; of a statement that does more than to bind it, only the name goes (``except E as error``,
``item = queue.pop()``). A name that cannot go cleanly stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import descendants, docstring_node, statements, text_of

Span = tuple[int, int]

_ADVANCING = frozenset(
    {b"next", b"pop", b"popleft", b"popitem", b"read", b"readline", b"recv", b"send", b"get", b"seek"}
)
"""Functions and methods whose calls change what later ones return."""
_OUTER = frozenset({"global_statement", "nonlocal_statement"})
_IMPORTS = frozenset({"import_statement", "import_from_statement"})
_BLOCKS = frozenset({"block", "module"})


class LocalRemoval(NamedTuple):
    """A removal: the span that goes, and what is written there instead; ``None`` for whole statements."""

    start: int
    end: int
    replacement: bytes | None


class _Binding(NamedTuple):
    """What binds a name, and how that can go."""

    statement: Node
    """The statement."""
    cut: LocalRemoval | None
    """The removal of the name alone; ``None`` if the whole statement goes."""


def unused_locals(source: bytes, scope: Node, gone: Collection[Span]) -> Iterator[LocalRemoval]:
    """What to remove of a function, of which the spans ``gone`` are removed, besides these."""
    spans = list(gone)
    names = [node for node in descendants(scope) if node.type == "identifier" and not _is_attribute(node)]
    declared = (each for each in descendants(scope) if each.type in _OUTER)
    kept = {text_of(node) for each in declared for node in descendants(each) if node.type == "identifier"}
    parameters = scope.child_by_field_name("parameters")
    kept |= {text_of(node) for node in descendants(parameters) if node.type == "identifier"} if parameters else set()
    while True:
        found = _next_unused(source, names, spans, kept)
        if found is None:
            return
        name, removals = found
        kept.add(name)
        spans += [(each.start, each.end) for each in removals]
        yield from removals


def _next_unused(
    source: bytes, names: list[Node], gone: list[Span], kept: Collection[str]
) -> tuple[str, list[LocalRemoval]] | None:
    """A name that only the removed spans use, and what removes its bindings."""
    were_used: dict[str, None] = {}
    stay: dict[str, list[Node]] = {}
    for node in names:
        if _is_within(node, gone):
            were_used[text_of(node)] = None
        else:
            stay.setdefault(text_of(node), []).append(node)
    for name in sorted(were_used.keys() & stay.keys() - set(kept)):
        bindings = [_binding(node, gone) for node in stay[name]]
        if None not in bindings:
            removals = _removals(source, [each for each in bindings if each is not None], gone)
            if removals is not None:
                return name, removals
    return None


def _is_attribute(name: Node) -> bool:
    """Whether an identifier is no name of the scope: an attribute, or the keyword of an argument."""
    parent = name.parent
    if parent is None:
        return False
    field = {"attribute": "attribute", "keyword_argument": "name"}.get(parent.type)
    return field is not None and parent.child_by_field_name(field) == name


def _binding(target: Node, gone: Collection[Span]) -> _Binding | None:
    """The binding that a name is the target of; ``None`` if it is used there, or cannot go."""
    parent = target.parent
    if parent is None:
        return None
    if parent.type in {"assignment", "augmented_assignment"}:
        return _assignment(target, parent)
    if parent.type in {"dotted_name", "aliased_import"}:
        return _import(target, parent, gone)
    if parent.type == "as_pattern_target" and parent.parent is not None:
        whole = parent.parent  # E as name
        head = whole.named_children[0]
        return _Binding(whole, LocalRemoval(head.end_byte, whole.end_byte, b""))
    return None


def _assignment(target: Node, assignment: Node) -> _Binding | None:
    statement, right = assignment.parent, assignment.child_by_field_name("right")
    if (
        statement is None
        or statement.type != "expression_statement"
        or assignment.child_by_field_name("left") != target
    ):
        return None
    if right is None or not (right.type == "assignment" or _advances(right)):
        return _Binding(statement, None)
    if assignment.type == "augmented_assignment":
        return None
    return _Binding(statement, LocalRemoval(target.start_byte, right.start_byte, b""))


def _import(name: Node, clause: Node, gone: Collection[Span]) -> _Binding | None:
    """The import of a name in a function."""
    bound = clause.child_by_field_name("alias") if clause.type == "aliased_import" else clause.named_children[0]
    statement = clause.parent
    if bound != name or statement is None or statement.type not in _IMPORTS:
        return None
    clauses = statement.children_by_field_name("name")
    others = [each for each in clauses if each != clause and not _is_within(each, gone)]
    if not others and clause in clauses:
        return _Binding(statement, None)
    if clause not in clauses or len(others) + 1 < len(clauses):
        return None
    place = clauses.index(clause)
    start, end = (clauses[place - 1].end_byte, clause.end_byte) if place else (clause.start_byte, clauses[1].start_byte)
    return _Binding(statement, LocalRemoval(start, end, b""))


def _advances(node: Node) -> bool:
    """Whether the value of an expression may not be left out: asking for it changes something."""
    for each in descendants(node):
        function = each.child_by_field_name("function") if each.type == "call" else None
        name = (function.text or b"").rpartition(b".")[2] if function is not None else b""
        arguments = each.child_by_field_name("arguments") if function is not None else None
        is_lookup = name == b"get" and arguments is not None and arguments.named_child_count > 0
        if each.type in {"await", "yield", "named_expression"} or (name in _ADVANCING and not is_lookup):
            return True
    return False


# ------------------------------------------------------------------------------------------ what goes
def _removals(source: bytes, bindings: list[_Binding], gone: list[Span]) -> list[LocalRemoval] | None:
    """The removals of all bindings of one name; ``None`` if one would leave an empty block behind."""
    whole = [each.statement for each in bindings if each.cut is None]
    going = [*gone, *((node.start_byte, node.end_byte) for node in whole)]
    found: dict[LocalRemoval, None] = {each.cut: None for each in bindings if each.cut is not None}
    for statement in whole:
        removal = _unit(source, statement, going)
        if removal is None:
            return None
        found[removal] = None
    return list(found)


def _unit(source: bytes, statement: Node, going: Collection[Span]) -> LocalRemoval | None:
    """The removal of a statement, or of the largest branch or statement around it that has nothing else in it."""
    unit: Node | None = statement
    while unit is not None and unit.parent is not None and unit.parent.type == "block":
        block, owner = unit.parent, unit.parent.parent
        is_alone = all(_is_going(each, unit, going) for each in _code_of(block))
        if not is_alone or (owner is not None and owner.type == "except_clause"):  # an empty handler says ``pass``
            return LocalRemoval(unit.start_byte, unit.end_byte, None)
        if owner is not None and owner.type in {"elif_clause", "else_clause"}:
            return _clause(source, owner)
        unit = owner if owner is not None and _can_go_with(owner, unit, going) else None
    return None


def _can_go_with(owner: Node, unit: Node, going: Collection[Span]) -> bool:
    """Whether a compound statement does nothing without the statement ``unit`` and those that are going."""
    if owner.type == "try_statement":
        inside = (each for each in descendants(owner) if _is_statement_of(each, owner))
        return all(_is_going(each, unit, going) for each in inside)
    condition = owner.child_by_field_name("condition")
    is_plain = owner.type == "if_statement" and not owner.children_by_field_name("alternative")
    return is_plain and condition is not None and not _advances(condition)


def _clause(source: bytes, clause: Node) -> LocalRemoval | None:
    """The removal of a last branch with its lines."""
    condition = clause.child_by_field_name("condition")
    siblings = clause.parent.named_children if clause.parent is not None else []
    others = [each for each in siblings if each.type in {"elif_clause", "else_clause", "finally_clause"}]
    if not others or others[-1] != clause or (condition is not None and _advances(condition)):
        return None
    end = source.find(b"\n", clause.end_byte)
    return LocalRemoval(source.rfind(b"\n", 0, clause.start_byte) + 1, len(source) if end < 0 else end + 1, b"")


def _is_statement_of(node: Node, owner: Node) -> bool:
    """Whether a node is a statement directly in one of the blocks of a compound statement."""
    block = node.parent
    if block is None or block.type != "block" or block.parent is None:
        return False
    return block.parent == owner or (block.parent.parent == owner and block.parent.type.endswith("_clause"))


def _is_going(statement: Node, unit: Node, going: Collection[Span]) -> bool:
    return statement == unit or statement.type == "pass_statement" or _is_within(statement, going)


def _code_of(block: Node) -> list[Node]:
    """The statements of a block, but for a docstring."""
    body, doc = statements(block), docstring_node(block)
    return body[1:] if doc is not None else body


def _is_within(node: Node, spans: Collection[Span]) -> bool:
    return any(start <= node.start_byte and node.end_byte <= end for start, end in spans)
