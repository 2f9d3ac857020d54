"""Tests that lose the statements which use removed code, and stay: most of what they check is about other code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from excise.deleters.python.references.statement_names import (
    DEFINITIONS,
    Definition,
    Names,
    all_names,
    is_bound,
    names_of,
)
from excise.deleters.python.test_excerpt import checks
from excise.extractors.python.analysis.ast_walk import last_name, walk
from excise.extractors.python.analysis.parsed_file import PythonModule, Reference
from excise.extractors.python.needs.test_uses import Function, function_of
from excise.types import Symbol

Span = tuple[int, int]

BLOCKS = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.If)
"""Statements of which a part of the body may go."""
MIN_CHECKS = 2
"""Checks that a test has at least, besides one that goes."""
NAMED_SHARE = 3
"""Checks that stay for each that goes, at least, of a test that is named after the code."""
MAX_STATEMENTS = 400
"""Number of statements of a test function up to which a part of it may stay."""
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
"""The encoding that a file says it has."""
_EMPTY = re.compile(
    r"(?:list|dict|set|deque|Counter|defaultdict|OrderedDict|StringIO|BytesIO|Mock|MagicMock|AsyncMock)$"
)
"""What makes something that is empty, or that stands in for something and notes what is done with it."""
_CHANGING = re.compile(
    r"(?:_*(?:set|add|del|put)|append|extend|insert|pop|push|remove|delete|discard|clear|update|reset|write|read|next|save"
    r"|store|load|send|recv|receive|register|create|open|close|start|stop|run|execute|commit|connect|move|seek|feed)",
    re.IGNORECASE,
)
"""A method that changes its object."""
_PREPARING = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
"""Statements that prepare what later ones check."""
_LITERALS = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set)
_ALWAYS = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.AsyncWith)
"""Statements that bind their names whatever happens."""


def can_lose_a_part(module: PythonModule, test: Symbol) -> bool:
    """Whether a test function has enough checks for one part to go and a larger one to stay."""
    function = function_of(module.source, test)
    if function is None or sum(isinstance(node, ast.stmt) for node in walk(function)) > MAX_STATEMENTS:
        return False
    return _num_checks(function.body, without=_uncalled(function.body)) > MIN_CHECKS


@lru_cache(maxsize=1024)  # a deletion is planned several times, mostly with the same uses
def statements_to_remove(
    source: bytes,
    test: Symbol,
    uses: tuple[Reference, ...],
    names: frozenset[str],
    failing: frozenset[int] = frozenset(),
) -> tuple[Span, ...]:
    """Bytes of the statements without which a test function of a file does nothing with removed code.

    ``uses`` are its references to that code, ``names`` that code's names, and ``failing`` the first lines of statements
    that fail without it. Empty unless more of the test's checks stay than go, and nothing else in it needs what goes;
    of a test that is named after the code, far more must stay, and ``failing`` must be known.
    """
    function = function_of(source, test)
    if function is None or not _is_plain_text(source, function) or not (uses or failing):
        return ()
    is_named = any(_is_in(name, test.name) for name in names if name)
    if not _names_imported(function).isdisjoint(names):
        return ()
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]

    def span(node: ast.stmt) -> Span:
        first: ast.stmt | ast.expr = next(iter(getattr(node, "decorator_list", [])), node)
        at = starts[first.lineno - 1] + first.col_offset
        at = at if first is node else source.rfind(b"@", 0, at)
        return at, starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)

    places = [(use.start, use.end) for use in uses]
    places += [span(each) for each in walk(function) if isinstance(each, ast.stmt) and each.lineno in failing]
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    gone = [each for statement in body for each in _using(statement, places, span)]
    gone = _with_dependents(body, gone, _local_names(function))
    if len(gone) == len(body) and all(each in body for each in gone):
        return ()
    left = _num_checks(body, without=[*gone, *_uncalled(body)])
    lost = sum(len(list(checks(each))) for each in gone)
    if is_named and not failing:
        return ()
    is_larger = left > (NAMED_SHARE * max(1, lost) if is_named else lost)
    return tuple(span(each) for each in gone) if is_larger else ()


def _is_in(name: str, test: str) -> bool:
    """Whether a test is named after code: all words of its name are in that of the test, one after the other."""
    return f"_{name.strip('_').lower()}_" in f"_{test.lower()}_"


def _using(statement: ast.stmt, places: Iterable[Span], span: Callable[[ast.stmt], Span]) -> Iterator[ast.stmt]:
    """The statement, or those in its body, that have one of the ``places`` in them."""
    start, end = span(statement)
    inside = [(first, last) for first, last in places if start <= first and last <= end]
    if not inside:
        return
    if isinstance(statement, (*BLOCKS, *DEFINITIONS)) and not getattr(statement, "orelse", []):
        begin = span(statement.body[0])[0]
        if all(first >= begin for first, _ in inside):
            found = [each for inner in statement.body for each in _using(inner, inside, span)]
            left = [each for each in statement.body if each not in found]
            replaced = set(_stand_ins(statement))
            is_rest = bool(left) and not any(replaced & names_of(each, ()).read for each in left)
            is_rest = is_rest and not [*_reading_lost(statement.body, found)]
            if is_rest and (not isinstance(statement, DEFINITIONS) or all(map(is_check, found))):
                yield from found
                return
    yield statement


def _is_plain_text(source: bytes, function: Function) -> bool:
    """Whether places of nodes are bytes of a file, and each statement of a test has lines of its own."""
    coding = _CODING.search(source[:200])
    if source.startswith(b"\xef\xbb\xbf") or (coding is not None and b"utf" not in coding[1].lower()):
        return False
    nodes = (node for node in walk(function) if isinstance(node, ast.stmt))
    places = sorted((node.lineno, node.col_offset) for node in nodes)
    lines = [line for line, _ in places]
    return len(set(lines)) == len(lines)


def is_check(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but to check something."""
    return isinstance(statement, ast.Assert | ast.Expr) and any(True for _ in checks(statement))


def _local_names(function: Function) -> frozenset[str]:
    """The names that a function binds, its parameters among them."""
    arguments = function.args
    given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    bound = (all_names(each).bound for each in function.body)
    return frozenset(each.arg for each in given if each is not None).union(*bound)


def _with_dependents(body: list[ast.stmt], gone: list[ast.stmt], local: frozenset[str]) -> list[ast.stmt]:
    """The statements, those that read names which these bind, those that bind what only these read, and those that are
    left without a purpose."""
    found, own = dict.fromkeys(gone), _literals(body)
    unread: set[ast.stmt] = set()
    """Those that go since nothing reads what they give any more."""
    while True:
        staying = [each for each in body if each not in found]
        read = frozenset[str]().union(*(names_of(each, found).read - (_adding_to(each) & own) for each in staying))
        lost = frozenset[str]().union(*(names_of(each, ()).read for each in found))
        binding = (each for each in staying if _is_plain(each) or _adding_to(each) & own)
        reading = list(_reading_lost(body, found))
        more = [each for each in binding if _given_by(each) <= lost - read]
        more += [each for each in _definitions_in_blocks(body, found) if each.name in lost - read]
        more = [each for each in more if not _is_registered(each, local)]
        more += _without_effect(body, found)
        unread |= {*more}.difference(reading)
        more += reading
        made = [each for block in _blocks_of(body) for statement in block for each in _makings(statement)]
        for block in _blocks_of(body):
            acting = [each for each in block if each not in unread or _changes(each)]
            more += _checking_nothing(acting, found, local, made)
        more += [each for each in _emptied(body, found) if each not in found]
        if not more:
            break
        found |= dict.fromkeys(more)
    found |= dict.fromkeys(_preparing_nothing(body, found))
    return [each for each in found if not any(each is not other and _holds(other, each) for other in found)]


def _given_by(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement gives values to when it is executed: a definition, its own name alone."""
    return frozenset([statement.name]) if isinstance(statement, DEFINITIONS) else names_of(statement, ()).bound


def _definitions_in_blocks(body: list[ast.stmt], gone: Collection[ast.stmt]) -> Iterator[Definition]:
    """The functions and classes that are defined in blocks of a body and stay."""
    for block in _blocks_of(body):
        if block is not body:
            yield from (each for each in block if isinstance(each, DEFINITIONS) and each not in gone)


def _is_registered(statement: ast.stmt, local: Collection[str]) -> bool:
    """Whether a decorator that is an object of the test may keep what a statement defines."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return any(isinstance(node, ast.Name) and node.id in local for each in decorators for node in walk(each))


def _uncalled(body: list[ast.stmt]) -> list[ast.stmt]:
    """The definitions of a body that nothing else in it names and no decorator may have kept."""
    plain = [each for each in body if isinstance(each, DEFINITIONS) and not each.decorator_list]
    return [each for each in plain if not any(each.name in all_names(other).read for other in body)] if plain else []


def _blocks_of(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The body, and those of the blocks in it of which a part may go."""
    yield body
    for statement in body:
        if isinstance(statement, BLOCKS):
            yield from _blocks_of(statement.body)


def _emptied(body: list[ast.stmt], gone: Collection[ast.stmt]) -> Iterator[ast.stmt]:
    """The blocks in a body of which nothing stays."""
    for statement in body:
        if isinstance(statement, BLOCKS) and statement not in gone:
            if all(each in gone for each in statement.body) and not getattr(statement, "orelse", []):
                yield statement
            yield from _emptied(statement.body, gone)


def _checking_nothing(
    block: list[ast.stmt], gone: Collection[ast.stmt], local: frozenset[str], made: Collection[Names]
) -> Iterator[ast.stmt]:
    """The checks that stay of what a lost call has done to an object of the test, to what that was made of, or to what
    was ``made`` of it in the test, right after it."""
    changed: set[str] = set()
    for statement in block:
        if statement in gone:
            direct = _changed_by(statement) & local - (_fixed(block) if isinstance(statement, ast.Assign) else set())
            own = (names_of(each, ()) for each in block if isinstance(each, ast.Assign) and direct)
            below = set(direct)
            while more := {name for each in made if each.read & below for name in each.bound} - below:
                below |= more
            changed |= below.union(direct, *(each.read & local for each in own if each.bound & direct))
        elif changed and is_check(statement):
            if _reads_one(statement, changed):
                yield statement
        else:
            changed = set()


def _preparing_nothing(body: list[ast.stmt], gone: Collection[ast.stmt]) -> list[ast.stmt]:
    """The statements that stay between the last check that does and a later one that is lost, unless later ones need
    them."""
    checking = [number for number, each in enumerate(body) if any(True for _ in checks(each))]
    last_staying = max((number for number in checking if body[number] not in gone), default=len(body))
    last_lost = max((number for number in checking if body[number] in gone), default=0)
    between = [each for each in body[last_staying:last_lost] if each not in gone]
    found: list[ast.stmt] = [each for each in between if isinstance(each, _PREPARING)]
    found = [each for each in found if not any(True for _ in checks(each))]
    while True:
        staying = (each for each in body[last_staying + 1 :] if each not in gone and each not in found)
        read = frozenset[str]().union(*(names_of(each, gone).read for each in staying))
        left = [each for each in found if read.isdisjoint(_touched(each))]
        if len(left) == len(found):
            return found
        found = left


def _touched(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement binds; of one that binds none, those of the objects that it may change."""
    names = names_of(statement, ())
    return names.bound or names.read


def _reads_one(check: ast.stmt, local: Collection[str]) -> bool:
    """Whether a check reads one of the names, other than the object whose method it is."""
    calls = (each.func for each in checks(check) if isinstance(each, ast.Call))
    objects = {id(function.value) for function in calls if isinstance(function, ast.Attribute)}
    names = (node for node in walk(check) if isinstance(node, ast.Name) and id(node) not in objects)
    return any(each.id in local for each in names)


def _makings(statement: ast.stmt) -> Iterator[Names]:
    """What a statement gives names to, and what it makes that of."""
    if isinstance(statement, ast.Assign):
        yield names_of(statement, ())
    for item in statement.items if isinstance(statement, ast.With | ast.AsyncWith) else ():
        given = walk(item.optional_vars) if item.optional_vars is not None else ()
        bound = frozenset(each.id for each in given if isinstance(each, ast.Name))
        yield Names(bound, frozenset(each.id for each in walk(item.context_expr) if isinstance(each, ast.Name)))


def _changed_by(statement: ast.stmt) -> frozenset[str]:
    """The names of what a statement may change: what a call for its effect alone reads, or the object of which the
    statement calls a method and keeps the result."""
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) else None
    value = value.value if isinstance(value, ast.Await) else value
    if not isinstance(value, ast.Call) or is_check(statement):
        return frozenset()
    if isinstance(statement, ast.Expr):
        return names_of(statement, ()).read
    receiver: ast.expr = value.func
    while isinstance(receiver, ast.Attribute | ast.Subscript | ast.Call):
        receiver = receiver.func if isinstance(receiver, ast.Call) else receiver.value
    is_method = isinstance(value.func, ast.Attribute) and isinstance(receiver, ast.Name)
    return frozenset({receiver.id} - {"self", "cls"} if is_method and isinstance(receiver, ast.Name) else ())


def _changes(statement: ast.stmt) -> bool:
    """Whether a statement calls a method whose name says that it changes its object."""
    calls = (each.func for each in walk(statement) if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and _CHANGING.match(each.attr) for each in calls)


def _without_effect(body: list[ast.stmt], gone: Collection[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that stay and do nothing any more: blocks that only give values to names which nothing reads, and
    assignments of names that get another value before something that stays reads them."""
    for number, statement in enumerate(body):
        if statement in gone:
            continue
        inner = [each for each in getattr(statement, "body", []) if each not in gone]
        if isinstance(statement, ast.For | ast.AsyncFor | ast.If) and len(inner) < len(statement.body):
            own = frozenset[str]().union(*(names_of(each, gone).bound for each in inner))
            others = (names_of(each, gone).read for each in body if each is not statement and each not in gone)
            if all(map(_is_plain, inner)) and own.isdisjoint(frozenset[str]().union(*others)):
                yield statement
        elif _is_plain(statement) and _is_overwritten(body, number, gone):
            yield statement


def _is_overwritten(body: list[ast.stmt], number: int, gone: Collection[ast.stmt]) -> bool:
    """Whether only lost statements read what an assignment gives, before the names get other values."""
    names, has_lost = names_of(body[number], ()).bound, False
    for statement in body[number + 1 :]:
        if statement in gone:
            has_lost = has_lost or not names.isdisjoint(names_of(statement, ()).read)
            continue
        here = names_of(statement, gone)
        if names & here.read:
            return False
        if names <= here.bound:
            return has_lost and isinstance(statement, (ast.Assign, *DEFINITIONS))
    return False


def _reading_lost(body: Iterable[ast.stmt], gone: Collection[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that stay and read a name to which a statement that is gone has given its value, or what it may
    have put into something that was empty, or called of a stand-in."""
    lost: set[str] = set()
    collecting: set[str] = set()
    for statement in body:
        names, whole = names_of(statement, gone), names_of(statement, ())
        if statement in gone:
            lost |= whole.bound | _receivers(statement) | (collecting & whole.read)
        elif lost & (names.read - _bound_first(statement)):
            yield statement
        else:
            lost -= names.bound if isinstance(statement, _ALWAYS) else frozenset()
            lost |= whole.bound - names.bound
            collecting |= set(_collectors(statement))
            inside = [node for node in walk(statement) if isinstance(node, ast.stmt) and node in gone]
            lost.update(*(collecting & names_of(each, ()).read for each in inside))
            lost |= set(_stand_ins(statement)) if inside else set()


def _bound_first(statement: ast.stmt) -> frozenset[str]:
    """The names that a loop gives values to before its body reads them."""
    if not isinstance(statement, ast.For | ast.AsyncFor):
        return frozenset()
    targets = {each.id for each in walk(statement.target) if is_bound(each)}
    outside = (statement.target, statement.iter, *statement.orelse)
    names = (each for part in outside for each in walk(part) if isinstance(each, ast.Name) and not is_bound(each))
    return frozenset(targets - {each.id for each in names})


def _collectors(statement: ast.stmt) -> Iterator[str]:
    """The names that get something empty, or a stand-in, in a statement: what is put into it comes later."""
    for node in walk(statement):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
            is_empty = (isinstance(value, ast.List) and not value.elts) or (
                isinstance(value, ast.Dict) and not value.keys
            )
            is_made = isinstance(value, ast.Call) and _EMPTY.search(last_name(value.func)) is not None
            if is_empty or is_made:
                yield from (each.id for each in targets if isinstance(each, ast.Name))


def _stand_ins(statement: ast.stmt) -> Iterator[str]:
    """The names that a block gives to what replaces something in it."""
    for item in statement.items if isinstance(statement, ast.With | ast.AsyncWith) else ():
        call = item.context_expr
        is_patch = isinstance(call, ast.Call) and "patch" in ast.unparse(call.func)
        if is_patch and isinstance(item.optional_vars, ast.Name):
            yield item.optional_vars.id


def _receivers(statement: ast.stmt) -> set[str]:
    """The local object whose method a statement calls for its effect alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    receiver = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return {receiver.id} - {"self"} if isinstance(receiver, ast.Name) else set()


def _names_imported(function: Function) -> set[str]:
    """The names that imports in a function bring."""
    imports = (node for node in walk(function) if isinstance(node, ast.Import | ast.ImportFrom))
    return {
        name for node in imports for each in node.names for name in (each.name.rpartition(".")[2], each.asname or "")
    }


def _is_plain(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but to give a name a value, or to define a function or class."""
    if isinstance(statement, DEFINITIONS):
        return True
    return isinstance(statement, ast.Assign) and all(isinstance(each, ast.Name) for each in statement.targets)


def _literals(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The names to which a body gives nothing but literals: what is added to these changes nothing else."""
    given: dict[str, bool] = {}
    for statement in body:
        is_literal = isinstance(statement, ast.Assign) and isinstance(statement.value, _LITERALS)
        if not _adding_to(statement):
            for name in names_of(statement, ()).bound:
                given[name] = is_literal and given.get(name, True)
    return frozenset(name for name, is_literal in given.items() if is_literal)


def _fixed(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The names of modules that a body imports whole, and those to which it gives texts and numbers alone: no method
    changes these."""
    found: dict[str, bool] = {}
    for statement in body:
        is_plain = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant | ast.JoinedStr)
        for name in names_of(statement, ()).bound:
            is_fixed = is_plain or isinstance(statement, ast.Import)
            found[name] = is_fixed and found.get(name, True)
    return frozenset(name for name, is_fixed in found.items() if is_fixed)


def _adding_to(statement: ast.stmt) -> frozenset[str]:
    """The name to which a statement adds something, ``text += "more"``, and that it does not read otherwise."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return frozenset()
    parts = list(walk(statement.value))
    is_plain = not any(isinstance(part, ast.Call | ast.Await | ast.NamedExpr) for part in parts)
    is_read = any(isinstance(part, ast.Name) and part.id == statement.target.id for part in parts)
    return frozenset([statement.target.id] if is_plain and not is_read else ())


def _holds(outer: ast.stmt, inner: ast.stmt) -> bool:
    """Whether a statement is in another one, or is it; each has lines of its own."""
    return outer.lineno <= inner.lineno and (inner.end_lineno or 0) <= (outer.end_lineno or 0)


def _num_checks(body: Iterable[ast.stmt], without: Collection[ast.stmt]) -> int:
    return sum(len(list(checks(each))) for each in body) - sum(len(list(checks(each))) for each in without)
