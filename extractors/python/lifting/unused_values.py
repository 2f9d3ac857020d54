"""Takes out of a test file what only expectations used: assignments, table columns, loop rows, other tests."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.lifting.expected_values import (
    Function,
    NotLifted,
    called,
    iterated,
    loads_in,
    statements_of,
    targets_of,
)
from excise.extractors.python.lifting.tables import parameter_names, table_of

_SET_UP = frozenset({"setUp", "setUpClass", "setup", "setup_method", "setup_class"})
"""Methods that prepare the tests of a class."""
_CALLED_BY_PYTEST = ("test", "pytest_", "setup_", "teardown_", "setUpModule", "tearDownModule")
"""Beginnings of the names of functions that pytest calls although nothing mentions them."""


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that a file assigns, to what it assigns to them."""
    return {
        statement.targets[0].id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def drop_unused(
    mine: Function, theirs: Function, constants: Mapping[str, ast.expr], references: Sequence[ast.expr] = ()
) -> None:
    """Take out of the observing form what only expectations used. Raises :class:`NotLifted` where that cannot be.

    ``constants``: the values of names of the file; ``references``: operands that only the judging form has.
    """
    _drop_docstring(mine)
    for call in [part for part in walk(mine) if isinstance(part, ast.Call) and called(part) == "subTest"]:
        call.args, call.keywords = [], []
    expected = set(loads_in(references))
    judged = set(loads_in(theirs.body))
    while _drop_assignments(mine, expected, judged):
        pass
    used = set(loads_in(mine.body))
    literals = {
        part.targets[0].id: part
        for part in walk(mine)
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name)
    }
    for loop in [part for part in walk(mine) if isinstance(part, ast.For)]:
        _forget_in_loop(loop, used, mine, literals)
    while _drop_assignments(mine, expected, judged):
        pass
    arguments = [argument.arg for argument in walk(mine.args) if isinstance(argument, ast.arg)]
    for one in mine.decorator_list:
        if not (isinstance(one, ast.Call) and called(one) == "parametrize"):
            continue
        table = table_of(one, constants)
        names = table.names if table is not None else parameter_names(one)
        unused = [name for name in names if name in arguments and name not in used and name in judged]
        if unused and table is None:
            raise NotLifted("table whose rows are not written out")
        if unused and table is not None:
            table.forget(unused)


def _forget_in_loop(
    loop: ast.For, used: Collection[str], function: Function, literals: Mapping[str, ast.Assign]
) -> None:
    """Take the values of unused targets out of the rows of a loop. Raises :class:`NotLifted` if that cannot be."""
    names = [name for name in targets_of(loop.target) if name not in used]
    if not names or any(isinstance(part, ast.Call) and called(part) == "range" for part in walk(loop.iter)):
        return
    rows, viewed = iterated(loop.iter), iterated(loop.iter) is not loop.iter
    if isinstance(rows, ast.Name) and rows.id in literals:
        if sum(name == rows.id for name in loads_in(function.body)) > 1:
            raise NotLifted("loop over values that are used elsewhere")
        rows = literals[rows.id].value
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    items = isinstance(loop.iter, ast.Call) and called(loop.iter) == "items" and len(targets) == 2
    if items and viewed and isinstance(rows, ast.Dict):
        value = targets[1]
        if isinstance(value, ast.Name) and set(names) == {value.id}:
            rows.values = [ast.Constant(None) for _ in rows.values]
            return
    if targets and isinstance(rows, ast.List | ast.Tuple | ast.Set):
        for row in rows.elts:
            if not isinstance(row, ast.List | ast.Tuple) or len(row.elts) != len(targets):
                raise NotLifted("loop whose rows are not written out")
            for index, target in enumerate(targets):
                if isinstance(target, ast.Name) and target.id in names:
                    row.elts[index] = ast.Constant(None)
        return
    is_written_out = isinstance(rows, ast.List | ast.Tuple) and not any(isinstance(r, ast.Starred) for r in rows.elts)
    if isinstance(loop.target, ast.Name) and isinstance(rows, ast.List | ast.Tuple) and is_written_out and not viewed:
        rows.elts = [ast.Constant(None) for _ in rows.elts]
        return
    raise NotLifted("loop over expected values")


def _drop_docstring(function: Function) -> None:
    if function.body and isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant):
        function.body[:1] = [] if len(function.body) > 1 else [ast.Pass()]


def _drop_assignments(function: Function, expected: set[str], judged: Collection[str]) -> bool:
    """Drop assignments to names that only the judging form uses (``judged``): of plain values, or to names that
    references use (``expected``).

    Returns whether there were any. What the dropped ones computed references with is added to ``expected``.
    """
    used = set(loads_in(function.body))
    dropped = False
    for owner in (function, *statements_of(function)):
        if isinstance(owner, ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(owner, name, None)
            if not isinstance(block, list):
                continue
            unused = [each for each in block if _is_unused(each, used, expected) and _names(each) & set(judged)]
            if unused:
                expected.update(loads_in(each for each in unused if _names(each) & expected))
                block[:] = [each for each in block if each not in unused] or ([ast.Pass()] if name == "body" else [])
                dropped = True
    return dropped


def _is_unused(statement: ast.AST, used: Collection[str], expected: Collection[str]) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    names = _names(statement)
    if not names or not names.isdisjoint(used):
        return False
    calls = any(isinstance(part, ast.Call | ast.Await | ast.Yield) for part in walk(statement.value))
    return not calls or names <= set(expected)


def _names(statement: ast.AST) -> set[str]:
    """Names that an assignment binds, if it binds nothing else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return names if len(names) == len(targets) else set()


def keep_only(
    tree: ast.Module, lifted: Collection[str], classes: Collection[str] = (), elsewhere: Collection[str] | None = ()
) -> None:
    """Remove the tests other than those that ``lifted`` defines, and definitions and constants that nothing left uses.

    ``classes``: names of the classes that have lifted tests, their own or inherited ones. ``elsewhere``: names that
    lifted tests in other files use; ``None`` if these may use any.
    """
    _drop_tests(tree, "", lifted)
    used = _drop_left_over(tree, {*classes, *(elsewhere or ())})
    if elsewhere is not None:
        _drop_class_constants(tree, classes, elsewhere)
        used = _drop_left_over(tree, {*classes, *elsewhere})  # such as what only these constants used
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used] or node.names[:1]


def _drop_left_over(tree: ast.Module, always: Collection[str]) -> set[str]:
    """Remove definitions and constants that nothing uses; return the names that something does, and those that are
    ``always`` used."""
    while True:
        used = {"*", *always, *(name for node in tree.body for name in _mentioned(node))}
        kept = [node for node in tree.body if not _is_left_over(node, used)]
        if len(kept) == len(tree.body):
            return used
        tree.body = kept


def _drop_tests(node: ast.AST, prefix: str, lifted: Collection[str]) -> None:
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        kept = []
        for child in block:
            if isinstance(child, ast.ClassDef):
                _drop_tests(child, f"{prefix}{child.name}::", lifted)
            elif isinstance(child, ast.If | ast.Try | ast.With):
                _drop_tests(child, prefix, lifted)
            is_test = isinstance(child, Function) and child.name.startswith("test") and not _is_fixture(child)
            if not is_test or prefix + child.name in lifted:
                kept.append(child)
        block[:] = kept or ([ast.Pass()] if name == "body" else [])


def _is_fixture(function: Function) -> bool:
    """Whether a function is a fixture, which may be called ``test_client``."""
    parts = (part for each in function.decorator_list for part in walk(each))
    return any("fixture" in (getattr(part, "attr", ""), getattr(part, "id", "")) for part in parts)


def _drop_class_constants(tree: ast.Module, classes: Collection[str], elsewhere: Collection[str]) -> None:
    """Drop plain values that classes with tests assign, and that nothing mentions, not ``elsewhere`` either."""
    parts = list(walk(tree))
    used = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    used |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    used |= {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    inheriting = _with_bases(tree, classes)
    for node in _classes(tree):
        if _has_tests(node) or node.name in inheriting:
            body = [single for each in node.body for single in _assignments(each)]
            kept = [each for each in body if not _is_unused(each, {*used, *elsewhere}, ()) or _is_special(each)]
            node.body = kept or [ast.Pass()]
            read = {part.attr for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load)}
            for function in node.body:
                if isinstance(function, Function) and function.name in _SET_UP:
                    left = [each for each in function.body if not _sets_unread(each, {*read, *elsewhere})]
                    function.body = left or [ast.Pass()]


def _sets_unread(statement: ast.stmt, read: Collection[str]) -> bool:
    """Whether a statement gives an attribute that nothing reads a value, and calls nothing."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=name)], value=value):
            return name not in read and not any(isinstance(part, ast.Call | ast.Await) for part in walk(value))
    return False


def _classes(owner: ast.AST) -> Iterator[ast.ClassDef]:
    """The classes of a file, also in conditions; of those in classes, the ones that pytest collects."""
    for statement in (*getattr(owner, "body", ()), *getattr(owner, "orelse", ())):
        if isinstance(statement, ast.ClassDef):
            if not isinstance(owner, ast.ClassDef) or statement.name.startswith("Test"):
                yield statement
            yield from _classes(statement)
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _classes(statement)


def _assignments(statement: ast.stmt) -> list[ast.stmt]:
    """A statement of a class; one that assigns constants to several names, or to one with a type, as plain ones."""
    match statement:
        case ast.AnnAssign(target=ast.Name() as target, value=ast.Constant() as value):
            return [ast.Assign(targets=[target], value=value)]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            if all(isinstance(name, ast.Name) for name in names) and all(isinstance(v, ast.Constant) for v in values):
                return [ast.Assign(targets=[name], value=v) for name, v in zip(names, values, strict=True)]
    return [statement]


def _with_bases(tree: ast.Module, classes: Collection[str]) -> set[str]:
    """The names of classes and of those that they are based on in the file."""
    bases = {node.name: node.bases for node in tree.body if isinstance(node, ast.ClassDef)}
    found, left = set(classes), [name for name in classes if name in bases]
    while left:
        more = {base.id for base in bases[left.pop()] if isinstance(base, ast.Name) and base.id in bases} - found
        found |= more
        left += more
    return found


def _is_special(statement: ast.stmt) -> bool:
    """Whether Python or the test runner may read what a statement in the body of a class assigns."""
    return any(name.startswith(("_", "pytest")) for name in _names(statement))


def _has_tests(node: ast.ClassDef) -> bool:
    return any(isinstance(part, Function) and part.name.startswith("test") for part in walk(node))


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Names that a top-level statement uses, its own excepted; arguments may be fixtures."""
    own = node.name if isinstance(node, Function | ast.ClassDef) else ""
    for part in walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg
        elif (
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and part.value.isidentifier()
            and part.value != own
        ):
            yield part.value


def _is_left_over(node: ast.AST, used: Collection[str]) -> bool:
    if isinstance(node, Function):
        autouse = any("autouse" in ast.dump(each) for each in node.decorator_list)
        parts = [part for each in node.decorator_list for part in walk(each)]
        aliases = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        return not (node.name.startswith(_CALLED_BY_PYTEST) or autouse or {node.name, *aliases} & set(used))
    if isinstance(node, ast.ClassDef):
        return not _has_tests(node) and node.name not in used
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        calls = any(isinstance(part, ast.Call | ast.Await) for part in walk(node.value))
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        return not calls and not names & set(used) and not any(name.startswith("pytest") for name in names)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
