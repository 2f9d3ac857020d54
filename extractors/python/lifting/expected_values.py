"""Which expressions of a test file are expected values: their value does not depend on the code under test.

They are made of literals, imported names and calls of the standard library.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from excise.extractors.python.analysis.ast_walk import child_nodes, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef

_PURE = frozenset(
    {"abs", "ascii", "bin", "bool", "bytes", "bytearray", "chr", "complex", "dict", "divmod", "enumerate", "float",
     "format", "frozenset", "hash", "hex", "int", "len", "list", "max", "min", "oct", "ord", "pow", "range", "repr",
     "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip"}
)  # fmt: skip
"""Builtin functions and types whose result depends on their arguments alone."""
_TYPES = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type)) | {"NotImplemented"}
_RECEIVERS = frozenset({"self", "cls"})
_VIEWS = frozenset({"items", "keys", "values"})
_IMPURE = frozenset({"random", "time", "os", "unittest"})
"""Modules of the standard library whose functions may return something else each time, or are no functions."""
_NAMED_AS_EXPECTED = ("expect", "want", "reference", "correct", "desired", "should")
"""Beginnings of the names that tests give to what they expect."""
_TEST_MODULES = ("test", "conftest", "helper", "util", "common", "support", "_test")
"""Beginnings of the parts of names of modules that may contain functions which check something."""


class NotLifted(Exception):
    """Raised for a test that cannot be divided; the message says why."""


def functions_of(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Functions and methods with their names as in test ids."""
    for child in child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from functions_of(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from functions_of(child, prefix)


def definitions_of(tree: ast.Module) -> dict[str, tuple[str, Function]]:
    """Names of a file's functions as in test ids, to the names of their definitions and these definitions.

    The two names differ for a test that a class inherits from another one of the same file.
    """
    found = {name: (name, function) for name, function in functions_of(tree)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def inherited(node: ast.ClassDef, seen: tuple[str, ...]) -> Iterator[str]:
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes and base.id not in seen:
                yield base.id
                yield from inherited(classes[base.id], (*seen, base.id))

    for name, node in classes.items():
        for base in inherited(node, (name,)):
            for own, function in functions_of(classes[base], f"{base}::"):
                found.setdefault(f"{name}::{own.partition('::')[2]}", (own, function))
    return found


@dataclass
class ExpectedNames:
    """Names whose values do not depend on the code under test."""

    values: set[str] = field(default_factory=set)
    """Names of expected values, ``self.name`` for those of classes, and names of imported things."""
    pure: set[str] = field(default_factory=set)
    """Names of modules, functions and classes of the standard library (and ``pytest.approx``), which may be called."""
    project: set[str] = field(default_factory=set)
    """Names that are imported from modules which are not the standard library's."""
    depending: set[str] = field(default_factory=set)
    """Names of the code under test, of what calls it, and of what the file makes with these."""

    def copy(self) -> ExpectedNames:
        """A copy, to which names can be added."""
        return ExpectedNames(set(self.values), set(self.pure), self.project, set(self.depending))

    def forget(self, names: Iterable[str]) -> None:
        """Take out names that a function gives to values of its own."""
        self.values.difference_update(names)
        self.pure.difference_update(names)

    def add_depending(self, bound: Iterable[tuple[Iterable[str], ast.AST]]) -> None:
        """Add the names of values and definitions that mention depending names, directly or through each other."""
        left = [(set(names), node) for names, node in bound]
        while True:
            more = [names for names, node in left if not names <= self.depending and self.depends(node)]
            if not more:
                return
            self.depending.update(*more)

    def depends(self, node: ast.AST) -> bool:
        """Whether an expression or definition mentions a depending name."""
        return any(
            (isinstance(part, ast.Name) and part.id in self.depending)
            or (isinstance(part, ast.Attribute) and part.attr in self.depending)
            or (isinstance(part, ast.arg) and part.arg in self.depending)
            for part in walk(node)
        )

    def unknown_in(self, node: ast.AST) -> Iterator[str]:
        """Names that an expression reads, those in expected values excepted."""
        if isinstance(node, ast.expr) and self.is_expected(node):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        for child in child_nodes(node):
            yield from self.unknown_in(child)

    def is_of_project(self, node: ast.AST) -> bool:
        """Whether an expression mentions something that is imported from the project, or from another package."""
        return any(name in self.project for name in loads_of(node))

    def is_expected(self, node: ast.AST) -> bool:
        """Whether an expression is made of expected values alone."""
        if isinstance(node, ast.Constant | ast.Name | ast.Attribute) and (known := self._is_plain(node)) is not None:
            return known
        if isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            return self._is_pure(node.func) and all(self.is_expected(each) for each in arguments)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._is_expected_comprehension(node)
        plain = (ast.Attribute, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice,
                 ast.Starred, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue)  # fmt: skip
        parts = (child for child in child_nodes(node) if isinstance(child, ast.expr))
        return isinstance(node, plain) and all(self.is_expected(part) for part in parts)

    def _is_plain(self, node: ast.expr) -> bool | None:
        """Whether a constant or name is an expected value; ``None`` for an attribute that its owner decides."""
        if isinstance(node, ast.Constant) or self.depends(node):
            return isinstance(node, ast.Constant)
        if isinstance(node, ast.Name):
            return node.id in self.values or (node.id in _TYPES and node.id not in {"object"})
        own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _RECEIVERS
        return f"self.{node.attr}" in self.values if own else None  # type: ignore[attr-defined]

    def _is_expected_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        inner = self.copy()
        for generator in node.generators:
            if not inner.is_expected(generator.iter):
                return False
            inner.values |= set(targets_of(generator.target))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        tests = [test for generator in node.generators for test in generator.ifs]
        return all(inner.is_expected(part) for part in (*parts, *tests))

    def _is_pure(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in self.pure or (function.id in _PURE and function.id not in self.values)
        if isinstance(function, ast.Attribute):
            root = function.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name):
                if root.id == "pytest":
                    return function.attr == "approx"
                return root.id in self.pure or (root.id in _PURE and root.id not in self.values)
            return isinstance(root, ast.Constant | ast.JoinedStr)
        return False


def module_names(tree: ast.Module, depending: Iterable[str] = ()) -> ExpectedNames:
    """Names of a test file that hold expected values: what it imports, and constants.

    ``depending``: names of the code under test and of what calls it.
    """
    names, nodes = ExpectedNames(depending=set(depending)), list(walk(tree))
    names.add_depending(_made_in(tree, nodes))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            local = isinstance(node, ast.ImportFrom) and node.level > 0
            for alias in node.names:
                top = (module or alias.name).partition(".")[0]
                name = alias.asname or alias.name.partition(".")[0]
                names.values.add(name)
                if top not in sys.stdlib_module_names and top != "pytest":
                    names.project.add(name)
                standard = top in sys.stdlib_module_names and not local and top not in _IMPURE
                if standard or (top == "pytest" and alias.name == "approx"):
                    names.pure.add(name)
    counts: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and names.is_expected(statement.value):
            for target in statement.targets:
                if isinstance(target, ast.Name) and counts[target.id] == 1:
                    names.values.add(target.id)
    names.values |= {f"self.{name}" for name in _class_constants(nodes, names)}
    return names


def _made_in(tree: ast.Module, nodes: Iterable[ast.AST]) -> list[tuple[list[str], ast.AST]]:
    """Names that a test file gives to imported things, values and functions, with what they mention."""
    aliases = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    made: list[tuple[list[str], ast.AST]] = [
        ([alias.asname], ast.Name(alias.name, ast.Load())) for alias in aliases if alias.asname
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            made.append(([target.id for target in node.targets if isinstance(target, ast.Name)], node.value))
    functions = (function for _, function in functions_of(tree) if not function.name.startswith("test"))
    return [*made, *(([function.name], function) for function in functions)]


def _class_constants(nodes: Iterable[ast.AST], names: ExpectedNames) -> set[str]:
    """Names of the attributes of classes that are only assigned expected values, in the bodies of the classes."""
    found: set[str] = set()
    others: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            others.add(node.attr)
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(statement, ast.Assign) and names.is_expected(statement.value):
                found.update(target.id for target in statement.targets if isinstance(target, ast.Name))
            else:
                others.update(_bound_by(statement))
    return found - others


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement in the body of a class binds."""
    if isinstance(statement, Function | ast.ClassDef):
        yield statement.name
    else:
        yield from (part.id for part in walk(statement) if isinstance(part, ast.Name))


def test_helpers(tree: ast.Module) -> set[str]:
    """Names that a file imports from modules of tests: they may be functions that check something."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if node.level or any(part.startswith(_TEST_MODULES) for part in parts):
                found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if any(part.startswith(_TEST_MODULES) for part in alias.name.split(".")):
                    found.add(alias.asname or alias.name.partition(".")[0])
    return found


def is_named_as_expected(node: ast.AST) -> bool:
    """Whether an expression is a name that tests give to what they expect."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_").lower().startswith(_NAMED_AS_EXPECTED)


def is_written_out(node: ast.AST) -> bool:
    """Whether an expression is a container, a text or an object of a class that is written with its content."""
    if isinstance(node, ast.Call):
        return called(node)[:1].isupper()
    return not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Await)


def root_of(node: ast.AST) -> str:
    """The name that an expression of attributes, subscripts and calls begins with; empty if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def calls_in(node: ast.AST) -> list[ast.Call]:
    """The calls within an expression."""
    return [part for part in walk(node) if isinstance(part, ast.Call)]


def in_order(function: Function) -> Iterator[ast.AST]:
    """The statements of a function in the order of the text."""
    return iter(sorted(statements_of(function), key=lambda part: (part.lineno, part.col_offset)))


def statements_of(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements within a function, those in bodies of classes excepted: they assign attributes."""
    for child in child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.ClassDef):
            yield from statements_of(child)


def iterated(node: ast.expr) -> ast.expr:
    """What a loop goes through, without ``.items()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and called(node) in _VIEWS:
        return node.func.value
    return node


def targets_of(node: ast.AST) -> Iterator[str]:
    """Names that an expression mentions, such as those of a loop's target."""
    return (part.id for part in walk(node) if isinstance(part, ast.Name))


def loads_of(node: ast.AST) -> Iterator[str]:
    """Names that are read within a node."""
    return (part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))


def is_mutable(node: ast.AST) -> bool:
    """Whether a value holds a list, a dict or a set, or is made by a call."""
    kinds = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.Name, ast.Attribute)
    return any(isinstance(part, kinds) for part in walk(node))


def parts_of(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of some statements."""
    return (part for statement in statements for part in walk(statement))


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def loads_in(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Names that are read within some statements."""
    return (name for statement in statements for name in loads_of(statement))


def is_literal(node: ast.AST) -> bool:
    """Whether an expression is written without names and calls."""
    return not any(isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in walk(node))


def has_mutable_rows(rows: ast.AST) -> bool:
    """Whether the items of a literal list or tuple (not the list itself) are mutable."""
    items = rows.elts if isinstance(rows, ast.List | ast.Tuple) else [rows]
    return any(is_mutable(item) for item in items)


def tells_little(node: ast.expr) -> bool:
    """Whether an operand is a truth value, ``None``, several of these, or a type."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(map(tells_little, node.elts))
    is_type = isinstance(node, ast.Call) and called(node) == "type"
    return is_type or (isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)))
