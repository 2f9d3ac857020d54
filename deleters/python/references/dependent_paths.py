"""Removal of paths through functions that stay: what they do with removed code, and nothing else.

``DependentRemover`` removes what would fail at import. A function that stays may also use removed code in one of its
branches, or call it for its effect. Such a branch goes with the feature, as a developer would remove it: the arm of
an ``if``, ``match`` or ``try``, an operand of a condition, the statement of the call, or a function inside of it that
only its decorator makes known. A use that the rest of the function depends on stays as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.bound_names import binds_what_stays
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.loop_ends import ends_a_loop
from excise.deleters.python.references.name_uses import LostBinding
from excise.deleters.python.references.needed_parts import (
    is_default_branch,
    is_last_way_out,
    is_one_of_two_values,
    leaves_a_raise,
    takes_its_result,
)
from excise.deleters.python.references.unused_locals import unused_locals
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.grammar import DEFINITIONS, descendants, field, of_types, statements, text_of
from excise.extractors.python.analysis.parsed_file import Reference

MAX_LINES = 20
"""Lines of a branch above which it stays: it does more than to use the removed code."""
MAX_STEP = 1500
"""Number of characters above which not all that was removed is shown, but one statement."""
MAX_SHOWN = 300
"""Length of a statement above which its first line stands for it."""
_CLAUSES = frozenset({"elif_clause", "else_clause", "except_clause", "case_clause"})
_BRANCHES = _CLAUSES - {"except_clause"}
"""Clauses that are removed with a use in their statements; how an exception is handled is no path of a feature."""
_SETUP = re.compile(r"(?:set_?up|tear_?down)(?:_?(?:module|class|method|function))?", re.IGNORECASE)
"""Functions that prepare tests, or clean up after them."""
_LOOPS = frozenset({"for_statement", "while_statement", "with_statement"})


class _Removal(NamedTuple):
    """A removal of a path: the span that goes, and what is written there instead."""

    start: int
    end: int
    replacement: bytes | None
    """``None`` for a whole statement, whose surroundings are tidied."""
    scope: Node
    """The function around it."""


class LaterUse(NamedTuple):
    """A use of a lost binding in a function."""

    lost: LostBinding
    """The binding."""
    path: str
    """File of the use."""
    ref: Reference
    """The use."""


def later_uses(remover: DependentRemover) -> Iterator[LaterUse]:
    """The uses of lost bindings in functions of sources; not in scripts and in tests."""
    return _in_sources(remover, remover.uses.later_references_to)


def likely_uses(remover: DependentRemover) -> Iterator[LaterUse]:
    """The same of attributes of unknown objects: too uncertain to remove them."""
    return _in_sources(remover, remover.uses.likely_references_to)


def possible_uses(remover: DependentRemover) -> Iterator[LaterUse]:
    """Attributes with the names of lost methods in functions that stay: only a run tells whether they are uses."""
    for use in _in_sources(remover, remover.uses.possible_references_to):
        if use.ref.owner and not remover.is_removed(use.path, use.ref.start, use.ref.end):
            yield use


def accessor_uses(remover: DependentRemover) -> Iterator[LaterUse]:
    """The assignments and deletions that call removed setters and deleters, of properties that can still be read."""
    accessors = {LostBinding(s.path, without_numbers(s.qualname)) for s in remover.accessors} - remover.lost
    for references in (remover.uses.later_references_to, remover.uses.likely_references_to):
        for use in _in_sources(remover, references, accessors):
            if use.ref.is_assigned and use.ref.chain.rpartition(".")[2] == use.lost.name:
                yield use


def _in_sources(
    remover: DependentRemover,
    references: Callable[[LostBinding], Iterator[tuple[str, Reference]]],
    lost: Collection[LostBinding] | None = None,
) -> Iterator[LaterUse]:
    return (use for use in _uses(remover, references, lost) if not remover.codebase.is_test(use.path))


def _uses(
    remover: DependentRemover,
    references: Callable[[LostBinding], Iterator[tuple[str, Reference]]],
    wanted: Collection[LostBinding] | None = None,
) -> Iterator[LaterUse]:
    """The uses of all lost bindings, or of the ``wanted`` ones."""
    for lost in sorted(remover.lost if wanted is None else wanted):
        for path, ref in references(lost):
            if not remover.is_script(path):
                yield LaterUse(lost, path, ref)


def remove_paths(remover: DependentRemover) -> list[tuple[str, str]]:
    """Plan the removal of paths that use lost bindings; return (path, text) of those in sources that go.

    Nothing is changed in files with syntax errors and in scripts. The functions of tests that name what is lost are
    hidden before: here are those around them, such as ``setUp``.
    """
    found: list[tuple[str, str]] = []
    uses: dict[str, dict[tuple[int, int], Reference]] = {}
    for _, path, ref in _uses(remover, remover.uses.later_references_to):
        uses.setdefault(path, {})[ref.start, ref.end] = ref
    for path, refs in sorted(uses.items()):
        if remover.codebase.modules[path].has_error:
            continue
        plan, is_test = remover.plan(path), remover.codebase.is_test(path)
        taken: list[_Removal] = []
        left = [ref for span, ref in sorted(refs.items()) if not plan.is_removed(*span)]
        for ref in left:
            if is_test and (setup := _setup_of_nothing_else(plan, ref)) is not None:
                plan.remove_span(setup.start_byte, setup.end_byte)
                continue
            removal = None if _is_within(ref, taken) else _removal_of(plan, ref, is_test=is_test)
            if removal is not None:
                taken = [each for each in taken if not (removal.start <= each.start and each.end <= removal.end)]
                taken.append(removal)
        if not taken or not _try_all(plan, [*taken, *_without_use(plan, taken)]):
            continue
        if not is_test:
            steps = [(ref, each) for ref in left for each in taken if _is_within(ref, [each])]
            found += [(path, text) for text in dict.fromkeys(_described(plan, *step) for step in steps)]
    return found


def remove_from_unions(remover: DependentRemover) -> None:
    """Plan the removal of lost names that stand as strings among others in ``Union["A", "B"]``."""
    for path, names in _lost_by_file(remover).items():
        module = remover.codebase.modules[path]
        strings = {f"{quote}{name}{quote}".encode() for name in names for quote in "\"'"}
        if module.has_error or not any(text in module.source for text in strings):
            continue
        plan = remover.plan(path)
        for node in of_types(plan.root, "string"):
            parent = node.parent
            if node.text not in strings or parent is None or parent.type != "subscript":
                continue
            others = parent.children_by_field_name("subscript")
            value = parent.child_by_field_name("value")
            head = (value.text or b"").rpartition(b".")[2] if value is not None else b""
            if head == b"Union" and len(others) > 1 and not plan.is_removed(node.start_byte, node.end_byte):
                place = [other.id for other in others].index(node.id)
                start, end = node.start_byte, node.end_byte
                if place:
                    start = others[place - 1].end_byte
                else:
                    end = others[1].start_byte
                plan.replacements.append(Edit(start, end))


def _lost_by_file(remover: DependentRemover) -> dict[str, set[str]]:
    """Path to the lost module-level names of a file."""
    found: dict[str, set[str]] = {}
    for lost in sorted(remover.lost):
        if lost.qualname and "." not in lost.qualname and not remover.codebase.is_test(lost.path):
            found.setdefault(lost.path, set()).add(lost.qualname)
    return found


def _without_use(plan: FilePlan, taken: list[_Removal]) -> Iterator[_Removal]:
    """What binds local names that nothing but the removed paths used."""
    for scope in {each.scope.id: each.scope for each in taken}.values():
        gone = [(each.start, each.end) for each in taken if each.scope.id == scope.id]
        for edit in unused_locals(plan.source, scope, gone):
            yield _Removal(*edit, scope)


def _setup_of_nothing_else(plan: FilePlan, ref: Reference) -> Node | None:
    """The function that prepares, or cleans up after, tests whose only statement is the call of what is gone."""
    node = plan.root.descendant_for_byte_range(ref.start, ref.end) or plan.root
    statement, function = _statement_around(node), _function_around(node)
    is_alone = function is not None and _calls(statement) and _siblings(statement) == [statement]
    if function is None or not is_alone or _owner_of(statement) != function:
        return None
    name = text_of(field(function, "name"))
    parent = function.parent
    is_plain = parent is None or parent.type != "decorated_definition"
    return function if _SETUP.fullmatch(name) and is_plain else None


def _is_within(ref: Reference, taken: list[_Removal]) -> bool:
    return any(each.start <= ref.start and ref.end <= each.end for each in taken)


def _try_all(plan: FilePlan, removals: Sequence[_Removal]) -> bool:
    """Plan removals, unless the file would no longer parse: two branches may need each other."""
    statements_before, replacements_before = set(plan.statements), list(plan.replacements)
    for removal in removals:
        if removal.replacement is None:
            plan.remove_span(removal.start, removal.end)
        else:
            plan.replacements.append(Edit(removal.start, removal.end, removal.replacement))
    try:
        plan.result()
    except DeletionRefused:
        plan.statements, plan.replacements = statements_before, replacements_before
        return False
    return True


def _described(plan: FilePlan, ref: Reference, removal: _Removal) -> str:
    """Where a use was and what went with it: all that was removed, or the statement after the head of its branch."""
    step = _lost_step(plan, removal)
    if step:
        separator = "\n" if "\n" in step else " "
        return f"in {ref.owner}:{separator}{step}" if ref.owner else step
    node = plan.root.descendant_for_byte_range(ref.start, ref.end) or plan.root
    statement = _statement_around(node)
    decorated = _decorated_inside(_function_around(node))
    if decorated is not None and (decorated.start_byte, decorated.end_byte) in plan.statements:
        statement = decorated
    text = plan.source[statement.start_byte : statement.end_byte].decode(errors="replace")
    first, *rest = text.split("\n", 1)
    if statement.type in {"if_statement", "elif_clause", "match_statement", "for_statement", "with_statement"}:
        rest = []
    shown = "\n".join([first, *map(textwrap.dedent, rest)])
    if len(shown) > MAX_SHOWN:
        shown = f"{first} …"
    arm = statement.parent.parent if statement.parent is not None else None
    condition = arm.child_by_field_name("condition") if arm is not None else None
    if condition is not None and arm is not None and arm.type in {"if_statement", "elif_clause"}:
        head = plan.source[condition.start_byte : condition.end_byte].decode(errors="replace").partition("\n")[0]
        shown = f"if {head}: {shown}"
    return f"in {ref.owner}: {shown}" if ref.owner else shown


def _lost_step(plan: FilePlan, removal: _Removal) -> str:
    """The lines that a removal takes; empty if it takes or leaves a part of a line, or is long."""
    source, start, end = plan.source, _line_start(plan, removal.start), removal.end
    if source[end - len(b"el") : end + len(b"if")] == b"elif":  # the next arm takes its place
        end = _line_start(plan, end)
    is_whole = source[:end].endswith(b"\n") or source[end : end + 1] in {b"", b"\n", b"\r"}
    if removal.replacement or source[start : removal.start].strip() or not is_whole:
        return ""
    lines = source[start:end].decode(errors="replace").replace("\r\n", "\n")
    text = textwrap.dedent(lines).strip("\n")
    return text if len(text) <= MAX_STEP else ""


# ------------------------------------------------------------------------------------- what goes
def _removal_of(plan: FilePlan, ref: Reference, *, is_test: bool) -> _Removal | None:
    """What to remove with a use; ``None`` if the function would no longer make sense without it."""
    node = plan.root.descendant_for_byte_range(ref.start, ref.end) or plan.root
    scope = _function_around(node)
    if scope is None:
        return None
    if is_one_of_two_values(node) or leaves_a_raise(_statement_around(node)):
        return None
    operand = _operand_around(node)
    if operand is not None:
        return _Removal(*operand, b"", scope)
    for start, end, replacement, inside in _candidates(plan, node, is_test=is_test):
        is_small = plan.source.count(b"\n", start, end) < MAX_LINES
        around = _function_around(inside)
        if ends_a_loop((start, end), inside) or is_last_way_out(inside) or is_default_branch(inside):
            return None
        if is_small and around is not None and not binds_what_stays(around, (start, end), inside):
            return _Removal(start, end, replacement, around)
    return None


def _candidates(plan: FilePlan, node: Node, *, is_test: bool) -> Iterator[tuple[int, int, bytes | None, Node]]:
    """What may go with a use, from the smallest: span, replacement, and the node whose bindings go."""
    statement = _statement_around(node)
    is_call = statement.type == "expression_statement" and _calls(statement)
    is_alone = is_test or not (takes_its_result(statement, node) or _begins_a_branch(statement))
    if is_call and len(_siblings(statement)) > 1 and is_alone:
        yield statement.start_byte, statement.end_byte, None, statement
    if statement.type == "except_clause":
        if _number_of(statement, "except_clause", "finally_clause") > 1:
            yield from _arm(plan, statement)
    elif statement.type in _CLAUSES or _is_in_head(statement, node):  # of a clause, or an ``if`` or ``match``
        yield from _arm(plan, statement)
    owner, inner = _owner_of(statement), statement
    while owner is not None and owner.type not in DEFINITIONS:
        is_first = owner.type == "if_statement" and inner.type not in _CLAUSES
        if owner.type in _BRANCHES or is_first:
            yield from _arm(plan, owner)
        elif owner.type in _LOOPS and _is_only_one(owner) and len(_siblings(owner)) > 1:
            yield owner.start_byte, owner.end_byte, None, owner
        inner, owner = owner, _owner_of(owner)
    decorated = _decorated_inside(owner)
    if decorated is not None:
        yield decorated.start_byte, decorated.end_byte, None, decorated


def _begins_a_branch(statement: Node) -> bool:
    """Whether a statement is the first of a branch: that is there for it."""
    owner = _owner_of(statement)
    in_branch = owner is not None and (owner.type in _BRANCHES or owner.type == "if_statement")
    return in_branch and _siblings(statement)[0] == statement


def _decorated_inside(definition: Node | None) -> Node | None:
    """The definition with its decorators, if it has some and stands in the body of a function."""
    decorated = definition.parent if definition is not None else None
    if decorated is None or decorated.type != "decorated_definition":
        return None
    around = _owner_of(decorated)
    return decorated if around is not None and around.type == "function_definition" else None


def _owner_of(node: Node) -> Node | None:
    """The statement, clause or definition around a statement or clause; ``None`` at module level."""
    around = node.parent
    while around is not None and around.type in {"block", "match_block"}:
        around = around.parent
    return around if around is not None and around.type != "module" else None


def _arm(plan: FilePlan, owner: Node) -> Iterator[tuple[int, int, bytes | None, Node]]:
    """The removal of a branch: of a clause, or of the first branch of an ``if``."""
    if owner.type in _CLAUSES:
        if owner.type == "case_clause" and _number_of(owner, "case_clause") == 1:
            return
        start, end = _line_start(plan, owner.start_byte), _next_line(plan, owner.end_byte)
        if plan.source[end:].split(b"\n", 1)[0].strip() == b"":  # what is below stays as far from what is above
            start = _next_line(plan, len(plan.source[:start].rstrip()))
        yield start, end, b"", owner
        return
    consequence = owner.child_by_field_name("consequence")
    alternatives = owner.children_by_field_name("alternative")
    if consequence is None:
        return
    if not alternatives:
        if len(_siblings(owner)) > 1:
            yield owner.start_byte, owner.end_byte, None, owner
    elif alternatives[0].type == "elif_clause":
        yield owner.start_byte, alternatives[0].start_byte + len(b"el"), b"", consequence
    else:
        kept = _dedented(plan, owner, alternatives[0])
        if kept is not None:
            yield owner.start_byte, owner.end_byte, kept, consequence


def _dedented(plan: FilePlan, owner: Node, clause: Node) -> bytes | None:
    """The statements of an ``else`` in the place of their ``if``; ``None`` where indentation is part of a string."""
    body = clause.child_by_field_name("body")
    if body is None or any(_is_multiline_string(each) for each in descendants(body)):
        return None
    inner = statements(body)
    indent = plan.source[_line_start(plan, owner.start_byte) : owner.start_byte]
    head = plan.source[_line_start(plan, inner[0].start_byte) : inner[0].start_byte] if inner else b"x"
    if indent.strip() or head.strip() or not head.startswith(indent):
        return None
    lines = plan.source[inner[0].start_byte : body.end_byte].split(b"\n")
    more = len(head) - len(indent)
    rest = [line[more:] if line[:more].strip() == b"" else line for line in lines[1:]]
    return b"\n".join([lines[0], *rest])


def _operand_around(node: Node) -> tuple[int, int] | None:
    """The operand of ``and`` or ``or`` in the condition of an ``if`` that the node is a part of, with its operator.

    ``x and removed(x)`` without it is true more often, ``x or removed(x)`` less often: only the latter is the condition
    of a path without the feature.
    """
    child, parent = node, node.parent
    while parent is not None and not parent.type.endswith(("_statement", "_clause", "block")):
        operator = parent.child_by_field_name("operator") if parent.type == "boolean_operator" else None
        if operator is not None and operator.type == "or" and _decides(parent):
            left, right = parent.child_by_field_name("left"), parent.child_by_field_name("right")
            if left is not None and right is not None:
                is_left = left == child
                return (child.start_byte, right.start_byte) if is_left else (left.end_byte, child.end_byte)
        child, parent = parent, parent.parent
    return None


def _decides(operator: Node) -> bool:
    """Whether a boolean expression is the whole condition of an ``if``, or one operand of such a chain."""
    node = operator
    while node.parent is not None and node.parent.type in {"boolean_operator", "parenthesized_expression"}:
        node = node.parent
    owner = node.parent
    return owner is not None and owner.type in {"if_statement", "elif_clause"}


# ------------------------------------------------------------------------------------ the syntax tree
def _statement_around(node: Node) -> Node:
    """The statement, or the clause, that the node is directly a part of."""
    while node.parent is not None and node.parent.type not in {"block", "module"}:
        if node.type in _CLAUSES:
            break
        node = node.parent
    return node


def _function_around(node: Node) -> Node | None:
    """The innermost function whose body holds the node."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "function_definition" and parent.child_by_field_name("body") == child:
            return parent
        if parent.type == "lambda":
            return None
        child, parent = parent, parent.parent
    return None


def _siblings(statement: Node) -> list[Node]:
    """All statements of the block of a statement, but for a docstring."""
    block = statement.parent
    body = statements(block) if block is not None else [statement]
    first = body[0] if body else statement
    has_text = first.type == "expression_statement" and first.named_child_count == 1
    return body[1:] if has_text and first.named_children[0].type == "string" else body


def _is_only_one(loop: Node) -> bool:
    """Whether the body of a loop or ``with`` is one statement."""
    body = loop.child_by_field_name("body")
    return body is not None and len(statements(body)) == 1


def _calls(statement: Node) -> bool:
    inner = statement.named_children[0] if statement.named_child_count == 1 else statement
    return inner.type in {"call", "await"}


def _is_in_head(statement: Node, node: Node) -> bool:
    head = statement.child_by_field_name("condition") or statement.child_by_field_name("subject")
    return head is not None and head.start_byte <= node.start_byte and node.end_byte <= head.end_byte


def _number_of(clause: Node, *kinds: str) -> int:
    parent = clause.parent
    return sum(child.type in kinds for child in parent.named_children) if parent is not None else 1


def _is_multiline_string(node: Node) -> bool:
    return node.type == "string" and node.start_point[0] != node.end_point[0]


def _line_start(plan: FilePlan, byte: int) -> int:
    return plan.source.rfind(b"\n", 0, byte) + 1


def _next_line(plan: FilePlan, byte: int) -> int:
    end = plan.source.find(b"\n", byte)
    return len(plan.source) if end < 0 else end + 1
