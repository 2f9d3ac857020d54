"""Hiding of tests: removal from the visible tree by pytest node ids."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.python.references.data_files import remove_text_of_tests, remove_unused_files
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.name_uses import LostBinding
from excise.deleters.python.references.unused_code import drop_unused_imports
from excise.deleters.python.references.unused_test_code import drop_unused_helpers, support_files
from excise.deleters.python.references.uses_by_name import fixture_users, is_fixture
from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.analysis.codebase import PythonCodebase, base_id
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parameter_rows import RowElement, RowsApart, rows_apart
from excise.extractors.python.analysis.parsed_file import Reference
from excise.extractors.python.needs.test_uses import function_of
from excise.types import Symbol, SymbolKind, symbol_of_test, without_parameter

_SKIPPING = re.compile(r"skip|(?:^|[._])(?:only|requires?|needs?)(?:_|\b)", re.IGNORECASE)
"""A decorator that skips a class of tests: ``@skipIf(…)``, ``@only_nt``."""


_PLAIN = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
"""Statements that are executed as a whole."""
PartsOfTest = Callable[[Symbol], Collection[tuple[int, int]]]
"""The bytes of the statements that a test function loses, if it stays; else nothing."""


class NodeId(NamedTuple):
    """The parts of a pytest node id."""

    path: str
    """Path of the file."""
    names: tuple[str, ...]
    """Names of the classes and the function, without parameters; of a doctest, its dotted name."""


def parse_node_id(test_id: str) -> NodeId:
    """Parse ``path::Class::func[param]``; the parameter may contain any characters."""
    path, _, rest = test_id.partition("::")
    return NodeId(path, tuple(rest.partition("[")[0].split("::")) if rest else ())


class TestHider:
    """Removes test functions or rows of their parameters, and classes and files without remaining tests."""

    __test__ = False

    def __init__(self, codebase: PythonCodebase, remover: DependentRemover) -> None:
        self.codebase = codebase
        self.remover = remover
        self.uses = remover.uses
        self.hidden: set[str] = set()
        """Ids of hidden tests; for a removed class, its id instead of those of its tests."""
        self.shortened: set[str] = set()
        """Test functions of which a part stays, as ids without parameters."""
        self._paths: set[str] = set()
        self._wanted: frozenset[str] = frozenset()

    # -------------------------------------------------------------------------------------- tests
    def hide(self, test_ids: Iterable[str], parts_of: PartsOfTest = lambda _: ()) -> None:
        """Remove the functions of the tests, or the rows of their parameters; other ids are ignored.

        ``parts_of`` tells of a test which statements go, if the others can stay.
        """
        by_function = by_functions(test_ids)
        rows = {function: each.elements for function, each in rows_of(self.codebase, by_function)}
        self._wanted |= by_function.keys() - rows.keys()
        for function, ids in sorted(by_function.items()):
            node = parse_node_id(function)
            if self._hide_text(node):
                self.hidden.update(ids)
                continue
            in_tests = node.path in self.codebase.modules and self.codebase.is_test(node.path)
            if not in_tests or not node.names:
                continue
            if function not in rows and self._shorten(function, parts_of):
                self.shortened.add(function)
            elif self._hide_rows(node, rows.get(function, ())) or self._hide_one(node):
                self.shortened.discard(function)
            else:
                continue
            self.hidden.update(ids)

    def shortened_tests(self) -> list[str]:
        """Those of the hidden tests of whose functions a part stays."""
        return [test for test in self.hidden if without_parameter(test) in self.shortened]

    def naming_lost(self) -> set[str]:
        """Ids, without parameters, of test functions that name lost bindings: they cannot work without the feature."""
        found: set[str] = set()
        for lost in self.remover.lost:
            if self.codebase.is_test(lost.path):
                continue
            uses = (*self.uses.later_references_to(lost), *self._distinctive_uses(lost))
            for path, ref in (use for use in uses if not self.remover.is_removed(use[0], use[1].start, use[1].end)):
                symbol = self.codebase.symbols().get(f"{path}::{ref.owner}") if self.codebase.is_test(path) else None
                if symbol is not None and not self._is_removed(symbol.symbol_id):
                    tests = [symbol] if _is_test_function(symbol) else self._left_behind(symbol, ref)
                    found.update(map(id_of_test, tests))
            fixture = self.codebase.symbols().get(f"{lost.path}::{lost.qualname}")
            if fixture is not None and is_fixture(fixture):
                asking = (each for each in fixture_users(self.remover, fixture) if self.codebase.is_test(each.path))
                found.update(map(id_of_test, filter(_is_test_function, asking)))
        return found

    def _distinctive_uses(self, lost: LostBinding) -> Iterator[tuple[str, Reference]]:
        """Attributes of unknown objects with the name of a lost method, if nothing else has the name."""
        found = list(self.uses.possible_references_to(lost))
        return iter(found if found and self.uses.is_distinctive(lost.name) else ())

    def _left_behind(self, helper: Symbol, use: Reference) -> list[Symbol]:
        """The test functions that stay and call a helper, if at least as many that do are hidden, or each call of it
        comes to the ``use`` of what is gone."""
        symbols = self.codebase.symbols()
        callers = (symbols[each] for each in self.codebase.callers(helper.symbol_id) if each in symbols)
        tests = [each for each in callers if self.codebase.is_test(each.path) and _is_test_function(each)]
        staying = [each for each in tests if not self._is_removed(each.symbol_id)]
        is_always = _is_always_reached(self.codebase.modules[helper.path].source, helper, use)
        return staying if is_always or 2 * len(staying) <= len(tests) else []

    def _shorten(self, test: str, parts_of: PartsOfTest) -> bool:
        """Remove some statements of a test; whether that is possible."""
        symbol = self.codebase.symbols().get(symbol_of_test(test))
        if symbol is None or is_defined_again(self.codebase, symbol):
            return False
        parts = parts_of(symbol)
        for start, end in parts:
            self.remover.plan(symbol.path).remove_span(start, end)
        if parts:
            self._paths.add(symbol.path)
        return bool(parts)

    def _hide_text(self, node: NodeId) -> bool:
        """Remove a file of the tests whose examples are one test (``tests/usage.txt``); whether it is one."""
        is_one = node.names == (node.path.rpartition("/")[2],) and node.path not in self.codebase.modules
        if is_one and self.codebase.is_test(node.path):
            return remove_text_of_tests(self.remover, node.path)
        return False

    def _hide_rows(self, node: NodeId, rows: Sequence[RowElement]) -> bool:
        """Remove rows of the parameters of a test; whether there are any."""
        for container, element in rows:
            self.remover.plan(node.path).elements.setdefault(container, set()).add(element)
        if rows:
            self._paths.add(node.path)
        return bool(rows)

    def _hide_one(self, node: NodeId) -> bool:
        entity = self._find(node)
        if entity is None:
            return False
        symbol = self.codebase.symbols().get(entity.id)
        if symbol is not None and symbol.kind is not SymbolKind.CLASS:
            if id_of_test(symbol) in self.shortened and id_of_test(symbol) in self._wanted:
                return True  # as another class inherits it
            if self._other_class_inherits(node, entity):
                return self._hide_in_subclass(node)
            self.remover.remove_symbol(symbol)
            self._paths.add(symbol.path)
            return True
        return self._hide_binding(node, entity)

    def _find(self, node: NodeId) -> Entity | None:
        return self.uses.resolver.member(node.path, node.names)

    def _other_class_inherits(self, node: NodeId, method: Entity) -> bool:
        """Whether the class inherits the test from a base that is collected itself, or whose other subclasses are, and
        must keep the test there; not for those that are skipped on some machines."""
        owner, base = Entity(node.path, ".".join(node.names[:-1])), _owner(method)
        if not owner.qualname or owner == base:
            return False
        classes = (
            symbol
            for path, module in self.codebase.modules.items()
            if self.codebase.is_test(path)
            for symbol in module.symbols
            if symbol.kind is SymbolKind.CLASS
        )
        name = node.names[-1]
        return any(
            self.uses.resolver.attribute(subclass, name) == method
            for symbol in classes
            if ((subclass := Entity(symbol.path, symbol.qualname)) != base or self._is_collected(symbol))
            and not any(map(_SKIPPING.search, symbol.decorators))
            and "::".join([symbol.path, *symbol.qualname.split("."), name]) not in self._wanted
        )

    def _is_collected(self, symbol: Symbol) -> bool:
        """Whether pytest takes a class itself for one with tests, by its name or its base, in a file that it reads."""
        if (known := self.codebase.suite.collected) and symbol.path not in known:
            return False
        bases = self.uses.resolver.scope(symbol.path).bases.get(symbol.qualname, ())
        return symbol.name.startswith("Test") or any(base.endswith("TestCase") for base in bases)

    def _hide_in_subclass(self, node: NodeId) -> bool:
        """Hide an inherited test in one class: by ``test = None`` if the class has other tests, else with the class."""
        owner = self.codebase.symbols().get(f"{node.path}::{'.'.join(node.names[:-1])}")
        if owner is None:
            return False
        plan = self.remover.plan(node.path)
        self._paths.add(node.path)
        if plan.is_removed(owner.start, owner.end):
            return True
        prefix = "::".join([node.path, *node.names[:-1]])
        own = [m for m in self._members(owner) if _is_test_function(m) and f"{prefix}::{m.name}" not in self._wanted]
        indent = plan.source[plan.source.rfind(b"\n", 0, owner.body_start) + 1 : owner.body_start]
        if own and not indent.strip():
            end = plan.source.find(b"\n", plan.source.rfind(b":", owner.start, owner.body_start))
            known = next((each for each in plan.replacements if each.start == each.end == end), Edit(end, end))
            plan.replacements = [each for each in plan.replacements if each != known]
            lines = known.replacement.rstrip(b"\n") + b"\n" + indent + node.names[-1].encode() + b" = None"
            is_definition = plan.source.startswith((b"def ", b"async ", b"@", b"class "), owner.body_start)
            plan.replacements.append(Edit(end, end, lines + b"\n" if is_definition else lines))
        else:
            self.remover.remove_symbol(owner)
            self.hidden.add(prefix)
        return True

    def _hide_binding(self, node: NodeId, entity: Entity) -> bool:
        """Remove a test that an assignment makes, such as ``test_x = make_test(…)``."""
        binding = self.uses.resolver.scope(entity.path).bindings.get((_owner(entity).qualname, node.names[-1]))
        if binding is None or not self.codebase.is_test(entity.path):
            return False
        plan = self.remover.plan(entity.path)
        if binding.target or plan.source[binding.start : binding.end].startswith(node.names[-1].encode()):
            plan.remove_span(binding.start, binding.end)
            self.remover.lose(entity.path, entity.qualname)
            self._paths.add(entity.path)
            return True
        return False

    def record_removed(self, symbol: Symbol, predicted: Iterable[str]) -> None:
        """Add a test definition that was removed because it could not be collected to the hidden tests."""
        self._paths.add(symbol.path)
        inside = [symbol, *(s for s in self._members(symbol))] if symbol.kind is SymbolKind.CLASS else [symbol]
        for part in inside:
            if _is_test_function(part):
                bare = id_of_test(part)
                self.shortened.discard(bare)
                self.hidden.update([bare, *(t for t in predicted if t.startswith(f"{bare}["))])

    # ------------------------------------------------------------------------------------ clean-up
    def clean_up(self) -> None:
        """Remove helpers, classes and files that only the hidden tests needed."""
        if not self._paths:
            return
        before = -1
        while before != (before := sum(len(p.statements) + p.deleted for p in self.remover.plans.values())):
            self._paths.update(support_files(self.remover, self._paths))
            for path in sorted(self._paths):
                self._empty_classes(path)
                drop_unused_helpers(self.remover, path)
                drop_unused_imports(self.remover.plan(path), self.uses, self.remover.plans)
                self._empty_file(path)
            self.remover.run()
        for path in sorted(self.remover.plans.keys() - self._paths):
            if self.codebase.is_test(path):
                drop_unused_imports(self.remover.plan(path), self.uses, self.remover.plans)
        remove_unused_files(self.remover, of_tests=True)
        self.hidden.update(self._no_longer_imported())
        self.shortened = {each for each in self.shortened if not self._is_removed(symbol_of_test(each))}

    def _no_longer_imported(self) -> Iterator[str]:
        """Ids of test classes and functions of other files, which are collected in a test file that imports them, and
        are not any more: nothing else there used the import."""
        for path, plan in self.remover.plans.items():
            if self.codebase.is_test(path):
                names = (record.bound for record in plan.clauses)
                yield from (f"{path}::{name}" for name in names if name.startswith(("test", "Test")))

    def _empty_classes(self, path: str) -> None:
        plan = self.remover.plan(path)
        for symbol in plan.module.symbols:
            if symbol.kind is not SymbolKind.CLASS or plan.is_removed(symbol.start, symbol.end):
                continue
            tests = [m for m in self._members(symbol) if _is_test_function(m)]
            had_tests = bool(tests) or self._inherited_tests(symbol)
            if not had_tests or not all(plan.is_removed(m.start, m.end) for m in tests):
                continue
            if not self._inherits_tests(symbol) and not self._is_used(symbol):
                plan.remove_span(symbol.start, symbol.end)
                self.remover.lose(path, symbol.qualname)

    def _members(self, symbol: Symbol) -> list[Symbol]:
        prefix = symbol.qualname + "."
        return [s for s in self.codebase.modules[symbol.path].symbols if s.qualname.startswith(prefix)]

    def _inherited_tests(self, symbol: Symbol) -> bool:
        """Whether a base class in the repository had tests, before any was hidden."""
        bases = (self.codebase.symbols().get(base.id) for base in self.uses.resolver.bases(_entity(symbol)))
        return any(
            any(map(_is_test_function, self._members(base))) or self._inherited_tests(base)
            for base in bases
            if base is not None and base.symbol_id != symbol.symbol_id
        )

    def _inherits_tests(self, symbol: Symbol) -> bool:
        """Whether a base class in the repository still has tests, or cannot be resolved to a class."""
        for base in self.uses.resolver.bases(_entity(symbol)):
            found = self.codebase.symbols().get(base.id)
            plan = self.remover.plans.get(base.path)
            if found is None or self._inherits_tests(found):
                return True
            for member in self._members(found):
                if _is_test_function(member) and not (plan and plan.is_removed(member.start, member.end)):
                    return True
        return False

    def _is_used(self, symbol: Symbol) -> bool:
        """Whether code that stays refers to the class."""
        callers = self.codebase.callers(base_id(symbol))
        return any(not self._is_removed(c) for c in callers) or self.uses.is_named_from(symbol.path, symbol.name)

    def _is_removed(self, symbol_id: str) -> bool:
        symbol = self.codebase.symbols().get(symbol_id)
        return symbol is not None and self.remover.is_removed(symbol.path, symbol.start, symbol.end)

    def _empty_file(self, path: str) -> None:
        plan = self.remover.plan(path)
        name = path.rpartition("/")[2]
        if plan.deleted or name in {"conftest.py", "__init__.py"} or self.remover.is_imported(path):
            return
        left = [s for s in plan.module.symbols if s.qualname and not plan.is_removed(s.start, s.end)]
        bound = [b for b in plan.module.bindings if not b.klass and not plan.is_removed(b.start, b.end)]
        if not name.startswith("test") and not name.endswith(("_test.py", "_tests.py")):
            plan.deleted = bool(plan.statements) and not left and not bound
            return
        has_tests = any(_is_test_function(s) or s.kind is SymbolKind.CLASS for s in left)
        doctests = any(s.docstring.count(">>> ") for s in (*left, plan.module.symbols[0]))
        assigned = any(b.name.startswith(("test", "Test")) for b in bound)
        imports = (r for r in plan.module.imports if r not in plan.clauses)
        imported = any(r.bound.startswith(("test_", "Test")) or r.name == "*" for r in imports)
        if not (has_tests or doctests or assigned or imported):
            plan.deleted = True


def _is_always_reached(source: bytes, helper: Symbol, use: Reference) -> bool:
    """Whether a use is in a plain statement of a function, and no statement before it returns."""
    function, line = function_of(source, helper), source.count(b"\n", 0, use.start) + 1
    place = line, use.start - source.rfind(b"\n", 0, use.start) - 1
    for statement in function.body if function is not None else ():
        if statement.lineno <= line <= (statement.end_lineno or 0):
            left_out = (part for node in walk(statement) for part in _perhaps_left_out(node))
            return isinstance(statement, _PLAIN) and not any(_is_at(part, place) for part in left_out)
        if any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in walk(statement)):
            return False
    return False


def _perhaps_left_out(node: ast.AST) -> list[ast.expr]:
    """The parts of an expression that need not be executed with it."""
    match node:
        case ast.BoolOp(values=values):
            return values[1:]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Lambda(body=body):
            return [body]
    return []


def _is_at(node: ast.expr, place: tuple[int, int]) -> bool:
    return (node.lineno, node.col_offset) <= place < (node.end_lineno or 0, node.end_col_offset or 0)


def by_functions(test_ids: Iterable[str]) -> dict[str, set[str]]:
    """Ids of test functions, without parameters, to those of their tests."""
    found: dict[str, set[str]] = {}
    for test_id in test_ids:
        found.setdefault(without_parameter(test_id), set()).add(test_id)
    return found


def rows_of(codebase: PythonCodebase, by_function: Mapping[str, Collection[str]]) -> Iterator[tuple[str, RowsApart]]:
    """(function, what goes) where rows of parameters can go without the test function; by ids, as of tests."""
    for function, ids in by_function.items():
        symbol = codebase.symbols().get(symbol_of_test(function))
        if function in ids or symbol is None or not codebase.is_test(symbol.path):
            continue
        if is_defined_again(codebase, symbol):
            continue
        parameters = [each.removeprefix(function)[1:-1] for each in ids]
        found = rows_apart(codebase.modules[symbol.path], symbol, parameters)
        if found is not None and not any(_is_imported(codebase, symbol.path, name) for name in found.constants):
            yield function, found


def is_defined_again(codebase: PythonCodebase, test: Symbol) -> bool:
    """Whether a file has several definitions of a test, or of a class that it is in: pytest takes one of them, and
    nothing here tells which."""
    parts = test.qualname.split(".")
    names = (".".join(parts[:number]) for number in range(1, len(parts) + 1))
    return "#" in test.qualname or any(f"{test.path}::{name}#2" in codebase.symbols() for name in names)


def _is_imported(codebase: PythonCodebase, path: str, name: str) -> bool:
    """Whether another file may import a name of a file."""
    stem = path.rpartition("/")[2].removesuffix(".py")
    return any(
        record.name == name or (record.name == "*" and record.module.rpartition(".")[2] in {stem, ""})
        for other, module in codebase.modules.items()
        for record in module.imports
        if other != path
    )


def id_of_test(function: Symbol) -> str:
    """The id of a test function, without parameters."""
    return "::".join([function.path, *function.qualname.split(".")])


def _entity(symbol: Symbol) -> Entity:
    return Entity(symbol.path, symbol.qualname)


def _is_test_function(symbol: Symbol) -> bool:
    is_function = symbol.is_callable
    return is_function and (symbol.name.startswith("test") or symbol.name == "runTest")


def _owner(member: Entity) -> Entity:
    """The class or module of a member."""
    return Entity(member.path, member.qualname.rpartition(".")[0])
