"""What the code of tests mentions: attributes, keyword arguments, texts, numbers, expected exceptions, replaced names.

A test's code is its function with what it uses of the tests: fixtures, set-up methods, helpers, and constants of its
file. Everything is found by syntax.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from excise.extractors.python.analysis.ast_walk import first_line, last_name, last_names, statements_below, texts_of
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.needs.replaced_names import assigned, replaced_names
from excise.types import Symbol

Function = ast.FunctionDef | ast.AsyncFunctionDef
SET_UP = frozenset(
    (
        "setUp", "tearDown", "setUpClass", "tearDownClass", "setup_method", "teardown_method", "setup_class",
        "teardown_class", "setup", "teardown", "asyncSetUp", "asyncTearDown",
    )
)  # fmt: skip
"""Methods of a test class that run with each of its tests."""
RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "warns", "assertWarns",
                    "assertWarnsRegex", "deprecated_call"})  # fmt: skip
"""Functions that expect an exception or a warning."""
_EQUALITIES = re.compile(r"assert(?:Almost|List|Dict|Tuple|Set|Sequence|Count|MultiLine)?Equals?$")
_KEY = re.compile(r"\w[\w.-]*")
"""Texts that may be keys where a test says that they are in something; others are parts of a text."""
_MATCHING = frozenset({"match", "fullmatch", "search", "compile", "findall", "finditer"})
"""Functions of ``re`` whose first argument is a regular expression."""
_REGEX_ASSERTIONS = frozenset({"assertRegex", "assertNotRegex", "assertRegexpMatches"})
"""Assertions whose second argument is one."""
_METACHARACTERS = re.compile(r"\\[a-zA-Z0-9]|(?<!\\)\[[^\[\]]*\]|(?<!\\)\(\?[^()]*\)|(?<!\\)[.*+?^$(){}|]+")


class Place(NamedTuple):
    """A place in a test file, known by the end of its expression."""

    path: str
    """The file."""
    kind: str
    """``attribute``, ``call``, ``item``, or ``text``, which has no position."""
    line: int
    """Last line."""
    column: int
    """Column after its last character, in bytes."""


@dataclass(slots=True)
class Uses:
    """What a piece of test code mentions."""

    names: set[str] = field(default_factory=set)
    """Names that it reads or imports."""
    attributes: set[str] = field(default_factory=set)
    """Attributes of any object."""
    keywords: set[tuple[str, str]] = field(default_factory=set)
    """(last name of the called function, keyword argument)."""
    texts: set[str] = field(default_factory=set)
    """Texts, documentation strings excluded."""
    patterns: set[str] = field(default_factory=set)
    """Literal parts of regular expressions that messages must match."""
    expressions: set[str] = field(default_factory=set)
    """These regular expressions."""
    exceptions: set[str] = field(default_factory=set)
    """Names of expected exceptions, without modules."""
    keys: set[str] = field(default_factory=set)
    """Texts that are keys: in subscripts, in displays of dictionaries, or before ``in``."""
    numbers: set[str] = field(default_factory=set)
    """Numbers that results are compared with, as they are written by ``repr``."""
    compared: set[str] = field(default_factory=set)
    """Texts that results must be equal to."""
    replaced: set[tuple[str, str]] = field(default_factory=set)
    """(dotted name that is replaced, as far as the test says; the same with the module for which an alias stands)."""
    nones: set[str] = field(default_factory=set)
    """Names of functions and attributes of which a test says that they give ``None``; ``__getitem__`` for items."""
    truths: set[str] = field(default_factory=set)
    """Names of functions whose results a test takes for true or false."""
    own: set[str] = field(default_factory=set)
    """Attributes that were read from objects of removed classes and the like; only a run shows them."""
    settled: set[str] = field(default_factory=set)
    """Attributes that were read from objects of classes which stay, and which removed code got or gave."""
    shapes: set[str] = field(default_factory=set)
    """Attributes whose values are containers, a blank, and what is in them: ``rows list[tuple[int, str]]``."""

    def add(self, other: Uses) -> None:
        """Add what another piece mentions."""
        for name in Uses.__slots__:
            getattr(self, name).update(getattr(other, name))


class TestUses:
    """Finds what tests of one codebase use; each definition is read once."""

    __test__ = False

    def __init__(self, codebase: PythonCodebase) -> None:
        self.codebase = codebase
        self._files: dict[str, _TestFile | None] = {}
        self._uses: dict[tuple[str, str], Uses] = {}
        self._kept: dict[str, list[tuple[str, str]]] = {}

    def of(self, test_id: str) -> Uses:
        """What a test uses, together with its fixtures, set-up methods, helpers and constants."""
        found = Uses()
        for piece in self._pieces_of(test_id):
            found.add(self._own(piece))
        return found

    def functions_of(self, test_id: str) -> Iterator[tuple[str, int, int]]:
        """Path, first and last line of the functions that a test uses: its own, fixtures, set-up methods, helpers."""
        for path, qualname in self._pieces_of(test_id):
            file = self._file(path)
            node = file.nodes.get(qualname) if file is not None else None
            if isinstance(node, Function):
                yield path, node.lineno, node.end_lineno or node.lineno

    def places_of(self, test_id: str, word: str) -> Iterator[Place]:
        """Where a test has a word: as an attribute, a keyword argument, a key, or in another way."""
        for path, qualname in self._pieces_of(test_id):
            file = self._file(path)
            if file is not None:
                yield from file.places(path, qualname, word)

    # -------------------------------------------------------------------------------------- pieces
    def _pieces_of(self, test_id: str) -> list[tuple[str, str]]:
        """(path, dotted name) of the test's function and of all that it uses of the tests; kept."""
        if test_id not in self._kept:
            path, _, rest = test_id.partition("::")
            self._kept[test_id] = self._pieces(path, rest.partition("[")[0].split("::") if rest else [])
        return self._kept[test_id]

    def _pieces(self, path: str, names: list[str]) -> list[tuple[str, str]]:
        """(path, dotted name) of the test's function and of all that it uses of the tests."""
        pending = list(self._first(path, names))
        seen: dict[tuple[str, str], None] = {}
        while pending:
            piece = pending.pop()
            file = self._file(piece[0])
            if piece in seen or file is None or piece[1] not in file.nodes:
                continue
            seen[piece] = None
            pending += self._used_by(file, *piece)
        return list(seen)

    def _first(self, path: str, names: list[str]) -> Iterator[tuple[str, str]]:
        """The test's function, and the set-up methods and class-level code of its class and the class's bases."""
        if not names:
            return
        yield self.codebase.place_of(path, names)
        owner = Entity(path, ".".join(names[:-1]))
        for klass in self._with_bases(owner) if owner.qualname else ():
            yield klass.path, klass.qualname
            for method in SET_UP:
                yield klass.path, f"{klass.qualname}.{method}"

    def _with_bases(self, klass: Entity) -> Iterator[Entity]:
        pending, seen = [klass], set()
        while pending:
            entity = pending.pop()
            if entity in seen or entity.path not in self.codebase.modules:
                continue
            seen.add(entity)
            yield entity
            pending += self.codebase.resolver.bases(entity)

    def _used_by(self, file: _TestFile, path: str, qualname: str) -> Iterator[tuple[str, str]]:
        """Definitions of the tests that a piece of code names: by its code, or as a fixture by a parameter."""
        uses = self._own((path, qualname))
        parameters = file.parameters(qualname)
        for name in sorted(uses.names | parameters):
            if name in file.nodes:
                yield path, name
            elif name in parameters:
                yield from ((conftest, name) for conftest in self._conftests(path))
            else:
                entity = self.codebase.resolver.name(path, name) if path in self.codebase.modules else None
                if entity is not None and entity.qualname and self.codebase.is_test(entity.path):
                    yield entity.path, entity.qualname
        owner = Entity(path, qualname.rpartition(".")[0])
        for klass in self._with_bases(owner) if owner.qualname else ():
            yield from ((klass.path, f"{klass.qualname}.{name}") for name in sorted(uses.attributes))

    def _conftests(self, path: str) -> Iterator[str]:
        """The ``conftest.py`` files whose fixtures a test file may use, the nearest first."""
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            name = f"{folder}/conftest.py" if folder else "conftest.py"
            if name in self.codebase.modules:
                yield name

    def _own(self, piece: tuple[str, str]) -> Uses:
        if piece not in self._uses:
            file = self._file(piece[0])
            node = file.nodes[piece[1]] if file is not None else None
            self._uses[piece] = uses_of(node, file.aliases, file.nodes) if file and node else Uses()
        return self._uses[piece]

    def _file(self, path: str) -> _TestFile | None:
        if path not in self._files:
            module = self.codebase.modules.get(path)
            tree = parsed(module.source) if module is not None else None
            self._files[path] = _TestFile(tree) if tree is not None else None
        return self._files[path]


@lru_cache(maxsize=2)
def uses_in(codebase: PythonCodebase) -> TestUses:
    """What the tests of a codebase use; kept for the next candidate of the same project."""
    return TestUses(codebase)


@lru_cache(maxsize=16)
def parsed(source: bytes) -> ast.Module | None:
    """The syntax tree, which is kept and must not be changed; ``None`` if this interpreter cannot parse the file."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def function_of(source: bytes, symbol: Symbol) -> Function | None:
    """The function that a symbol of the file is; ``None`` if there is none, or the file cannot be parsed."""
    return _functions_by_lines(source).get((symbol.start_line, symbol.end_line))


@lru_cache(maxsize=64)
def _functions_by_lines(source: bytes) -> dict[tuple[int, int | None], Function]:
    """First line, decorators included, and last line of each function of a file to its node, which is kept."""
    tree = parsed(source)
    functions = [each for each in statements_below(tree) if isinstance(each, Function)] if tree is not None else []
    return {(first_line(each), each.end_lineno): each for each in functions}


class _TestFile:
    """The definitions of one test file: functions, classes, and module-level assignments."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: dict[str, ast.AST] = {}
        imports = (each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom))
        self.aliases = {name.asname: name.name for each in imports for name in each.names if name.asname}
        self._places: dict[str, list[tuple[str, Place]]] = {}
        self._add(tree.body, "")

    def _add(self, body: Iterable[ast.AST], prefix: str) -> None:
        for node in body:
            if isinstance(node, Function):
                self.nodes[prefix + node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.nodes[prefix + node.name] = node
                self._add(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    names = (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
                    self.nodes.update({prefix + name: node for name in names})
            elif isinstance(node, ast.If | ast.Try | ast.With | ast.For):
                self._add(ast.iter_child_nodes(node), prefix)

    def parameters(self, qualname: str) -> set[str]:
        """Names of the parameters of a function."""
        node = self.nodes.get(qualname)
        if not isinstance(node, Function):
            return set()
        arguments = node.args
        return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}

    def places(self, path: str, qualname: str, word: str) -> Iterator[Place]:
        """Where a definition has a word."""
        if qualname not in self._places:
            node = self.nodes.get(qualname)
            self._places[qualname] = list(_places(node, path)) if node is not None else []
        yield from (place for found, place in self._places[qualname] if found == word)


# -------------------------------------------------------------------------------------------- syntax
def _places(node: ast.AST, path: str) -> Iterator[tuple[str, Place]]:
    """Each attribute, keyword argument and text of a definition, with its place."""
    keys = set()
    for part in _walk(node):
        at = (getattr(part, "end_lineno", 0) or 0, getattr(part, "end_col_offset", 0) or 0)
        match part:
            case ast.Attribute(attr=name):
                yield name, Place(path, "attribute", *at)
            case ast.Call(keywords=keywords):
                yield from ((keyword.arg, Place(path, "call", *at)) for keyword in keywords if keyword.arg)
            case ast.Subscript(slice=key, ctx=ast.Load()) if texts_of(key):
                keys.add(id(key))
                yield from ((text, Place(path, "item", *at)) for text in texts_of(key))
    yield from (
        (text, Place(path, "text", 0, 0)) for part in _walk(node) if id(part) not in keys for text in texts_of(part)
    )


def uses_of(node: ast.AST, aliases: Mapping[str, str], nodes: Mapping[str, ast.AST] = MappingProxyType({})) -> Uses:
    """What a definition mentions; of a class, only the code outside its methods.

    ``aliases`` are those of imports, ``nodes`` the definitions of its file by their dotted names.
    """
    found = Uses()
    expressions: set[int] = set()
    parts = list(_walk(node))
    own = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    aliases = {name: module for name, module in aliases.items() if name not in own}
    for part in parts:
        if id(part) in expressions:
            found.texts.update(text for expression in texts_of(part) for text in literal_parts(expression))
        else:
            _note(part, found)
            expressions.update(map(id, _expressions(part)))
    own |= {part.arg for part in parts if isinstance(part, ast.arg)}
    found.replaced.update(replaced_names(parts, own, aliases, nodes))
    found.nones.update(_giving_none(parts))
    found.truths.update(_giving_truth(parts))
    return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but docstrings; of a class, those outside its methods."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        for child in ast.iter_child_nodes(part):
            is_method = isinstance(child, Function | ast.ClassDef) and isinstance(part, ast.ClassDef)
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if not is_method and not is_text:
                pending.append(child)


def _note(node: ast.AST, found: Uses) -> None:
    match node:
        case ast.Name(id=name):
            found.names.add(name)
        case ast.Attribute(attr=name):
            found.attributes.add(name)
        case ast.Import(names=imported) | ast.ImportFrom(names=imported):
            found.names.update(part for alias in imported for part in alias.name.split("."))
        case ast.Constant():
            found.texts.update(texts_of(node))
        case ast.Subscript(slice=key):
            found.keys.update(texts_of(key))
        case ast.Dict(keys=keys):
            found.keys.update(text for key in keys for text in texts_of(key))
        case ast.Compare():
            _note_comparison(node, found)
        case ast.Call():
            _note_call(node, found)
        case ast.ExceptHandler(type=ast.expr() as kind):
            found.exceptions.update(last_names(kind))


def _note_comparison(node: ast.Compare, found: Uses) -> None:
    _note_constants((node.left, *node.comparators), found, is_equality=isinstance(node.ops[0], ast.Eq))
    if isinstance(node.ops[0], ast.In):  # what is not in something is no key of it
        found.keys.update(text for text in texts_of(node.left) if _KEY.fullmatch(text))


def _note_call(node: ast.Call, found: Uses) -> None:
    function = last_name(node.func)
    found.keywords.update((function, keyword.arg) for keyword in node.keywords if keyword.arg)
    if function in RAISES:
        found.exceptions.update(name for arg in node.args[:1] for name in last_names(arg))
        wanted = [keyword.value for keyword in node.keywords if keyword.arg in {"match", "expected_regex"}]
        if "Regex" in function:
            wanted += node.args[1:2]
        texts = [text for each in wanted for part in ast.walk(each) for text in texts_of(part)]
        found.patterns.update(part for text in texts for part in literal_parts(text))
        found.expressions.update(text for each in wanted for text in texts_of(each))
    elif _EQUALITIES.match(function):
        _note_constants(node.args[:2], found, is_equality=True)


def _expressions(node: ast.AST) -> Sequence[ast.expr]:
    """The argument of a call that is a regular expression, if there is one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    if node.func.attr in _REGEX_ASSERTIONS:
        return node.args[1:2]
    return node.args[:1] if node.func.attr in _MATCHING and last_name(node.func.value) in {"re", "regex"} else ()


def _giving_none(parts: Sequence[ast.AST]) -> Iterator[str]:
    """The functions and attributes that give ``None``, as a definition says, also by way of a variable."""
    checked: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is) and is_none(part.comparators[0]):
            checked.append(part.left)
        elif isinstance(part, ast.Call) and last_name(part.func) == "assertIsNone":
            checked += part.args[:1]
    checked += list(assigned(parts, checked))
    for inner in (inner for each in checked for inner in ast.walk(each)):
        if isinstance(inner, ast.Call | ast.Attribute):
            yield last_name(inner.func if isinstance(inner, ast.Call) else inner)
        elif isinstance(inner, ast.Subscript):
            yield "__getitem__"


def _giving_truth(parts: Sequence[ast.AST]) -> Iterator[str]:
    """The functions whose results must be true or false, as a definition says, also by way of a variable."""
    checked: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.Assert):
            checked.append(part.test.operand if isinstance(part.test, ast.UnaryOp) else part.test)
        elif isinstance(part, ast.Call) and last_name(part.func) in {"assertTrue", "assertFalse"}:
            checked += part.args[:1]
    compared = [each.left for each in checked if isinstance(each, ast.Compare) and _is_truth(each.comparators[-1])]
    checked += compared
    for each in (*checked, *assigned(parts, checked)):
        if isinstance(each, ast.Call):
            yield last_name(each.func)


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def is_none(node: ast.expr) -> bool:
    """Whether an expression is the constant ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def _note_constants(sides: Sequence[ast.expr], found: Uses, *, is_equality: bool) -> None:
    """Note the constants of expressions, those in arguments of calls and in subscripts excluded."""
    left, constants = list[ast.AST](sides), list[ast.Constant]()
    while left:  # texts that are joined may be nested deeply
        node = left.pop()
        if isinstance(node, ast.Constant):
            constants.append(node)
        elif isinstance(node, ast.UnaryOp | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Starred | ast.BinOp):
            left += ast.iter_child_nodes(node)
    found.numbers.update(repr(each.value) for each in constants if type(each.value) in (int, float))
    found.compared.update(text for each in constants if is_equality for text in texts_of(each))


def literal_parts(pattern: str) -> list[str]:
    """The parts of a regular expression that stand for themselves, at least three characters each."""
    parts = (re.sub(r"\\(.)", r"\1", part) for part in _METACHARACTERS.split(pattern))
    return [part.strip() for part in parts if len(part.strip()) > 2]
