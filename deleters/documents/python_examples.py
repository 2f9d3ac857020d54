"""Examples in Python, scripts and sessions, lose the statements that use what is gone, and what only these need."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import NamedTuple

from excise.deleters.documents.code_examples import GoneUses
from excise.deleters.documents.gone_names import GoneCode, with_owner
from excise.deleters.documents.list_elements import without_elements
from excise.deleters.documents.running_text import indent_of

_BLOCKS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.With, ast.AsyncWith)
_COMMENT = re.compile(r"\s*(?:>>>\s*)?#")
_LAST = "_"
"""The name of the last result in a session."""
_CONFIGURED = frozenset({"locale", "logging", "logging.config", "random", "sys", "warnings"})
"""Modules of the standard library that examples configure."""
_CONFIGURING = frozenset(
    {"basicConfig", "captureWarnings", "dictConfig", "disable", "filterwarnings", "getLogger", "seed", "setlocale",
     "setrecursionlimit", "simplefilter"}
)  # fmt: skip
"""Their functions for that: an example that does no more than to call these shows nothing."""
MAX_ROUNDS = 4
"""How often names are looked for that only statements used which went in the round before."""
MAX_PARTS = 10
"""Number of parts of a dotted name that are looked at."""


class _Statement(NamedTuple):
    """A statement of an example, with the comments above it and the results below it: ``lines[start:end]``."""

    node: ast.stmt
    start: int
    end: int


def without_statements(lines: Sequence[str], lost: LostInExamples) -> list[str] | None:
    """The lines of an example that do not use what is gone; ``None`` if none does, or it is no code that can be read.

    Nothing is left if there is nothing but imports and assignments for what is gone. Imports lose the names that only
    lost statements used, and values that only these used are not made.
    """
    bound, unused = set(lost.bound), frozenset[str]()
    left = _left_of_statements(lines, lost)
    for _ in range(MAX_ROUNDS):
        more = lost.unused_names(left.nodes) - unused if left is not None else ()
        if not more:
            break
        unused |= more
        lost.bound = set(bound)
        left = _left_of_statements(lines, lost, unused)
    if left is None:
        return None
    if (lost.depends_on_lost and not _is_session(lines)) or all(map(lost.only_prepares, left.nodes)):
        return []
    while left.lines and not left.lines[-1].strip():
        left.lines.pop()
    return left.lines


class _Left(NamedTuple):
    """What is left of an example."""

    lines: list[str]
    nodes: list[ast.stmt]


def _left_of_statements(
    lines: Sequence[str], lost: LostInExamples, unused: frozenset[str] = frozenset()
) -> _Left | None:
    """The statements that do not use what is gone, without those that bring or make ``unused`` names alone; ``None`` if
    all stay."""
    lost.begin(unused)
    kept: list[str] = []
    nodes: list[ast.stmt] = []
    end = 0
    is_after_lost = False
    is_script = not _is_session(lines)
    statements = list(_statements(lines))
    lost.stateful = frozenset() if is_script else _stateful_names(statements, lines)
    for statement in statements:
        kept += _between(lines[end : statement.start], kept, is_after_lost=is_after_lost)
        end = statement.end
        left = lost.rest_of(statement.node, list(lines[statement.start : statement.end]), is_script=is_script)
        is_after_lost = not left
        nodes += [statement.node] if left else []
        kept += left
    if not lost.has_lost:
        return None
    return _Left([*kept, *_between(lines[end:], kept, is_after_lost=is_after_lost)], nodes)


def _between(lines: Sequence[str], above: Sequence[str], *, is_after_lost: bool) -> list[str]:
    """The lines between two statements; of the blank ones around a statement that is gone, those above it stay."""
    if not is_after_lost or (above and above[-1].strip()):
        return list(lines)
    return list(dropwhile(lambda line: not line.strip(), lines))


def _statements(lines: Sequence[str]) -> Iterator[_Statement]:
    """The statements of an example; none if it cannot be read."""
    if _is_session(lines):
        yield from _examples(lines)
        return
    tree = _parsed("\n".join(lines)) if not any("\r" in line or "\f" in line for line in lines) else None
    yield from _placed(tree.body if tree is not None else (), lines, 0)


def _placed(nodes: Iterable[ast.stmt], lines: Sequence[str], end: int) -> list[_Statement]:
    """Statements with their lines, from line ``end`` on; none if two of them share a line."""
    found: list[_Statement] = []
    for node in nodes:
        first = _first_line(node)
        if first < end:
            return []
        while first > end and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        end = node.end_lineno or node.lineno
        end += _result_below(lines[end:])
        found.append(_Statement(node, first, end))
    return found


def _first_line(node: ast.stmt) -> int:
    """Number of the line, from 0, on which a statement or its first decorator begins."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)]) - 1


def _does_something(node: ast.stmt) -> bool:
    """Whether a statement of a block is neither a text, nor ``pass``, nor an import."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return not (is_text or isinstance(node, ast.Pass | ast.Import | ast.ImportFrom))


def _result_below(lines: Sequence[str]) -> int:
    """The number of lines below a statement that are comments with its result: ``# {'a': 1}``."""
    comments = list(takewhile(lambda line: line.lstrip().startswith("#"), lines))
    tree = _parsed("\n".join(line.lstrip().lstrip("#") for line in comments)) if comments else None
    value = (
        tree.body[0].value if tree is not None and len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) else None
    )
    return len(comments) if value is not None and all(isinstance(n, _DATA) for n in ast.walk(value)) else 0


_DATA = (ast.Expr, ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.UnaryOp, ast.USub, ast.Load)
"""The nodes of results that are literals."""


def is_python(lines: Sequence[str]) -> bool:
    """Whether an example can be read as a script in Python."""
    return _parsed("\n".join(lines)) is not None


def _is_session(lines: Sequence[str]) -> bool:
    """Whether an example shows a session of the interpreter, and is no script."""
    return any(line.lstrip().startswith(">>>") for line in lines)


def _examples(lines: Sequence[str]) -> Iterator[_Statement]:
    starts = [at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")]
    done = 0
    first = None
    """Where comments begin that are statements of the session, above the next one."""
    for start, following in zip(starts, [*starts[1:], len(lines)], strict=True):
        end = next((at for at in range(start + 1, following) if not lines[at].strip()), following)
        has_next = end == following < len(lines)
        while has_next and end > start + 1 and lines[end - 1].lstrip().startswith("#"):
            end -= 1  # it is said of the next one
        own = [lines[start], *(line for line in lines[start + 1 : end] if line.lstrip().startswith("..."))]
        tree = _parsed("\n".join(line.lstrip()[4:] for line in own))
        if tree is not None and len(tree.body) == 1:
            begin = start if first is None else first
            while begin > done and lines[begin - 1].lstrip().startswith("#"):
                begin -= 1
            yield _Statement(tree.body[0], begin, end)
        done = end
        is_comment = tree is not None and not tree.body and _COMMENT.match(lines[start]) and following == start + 1
        first = (start if first is None else first) if is_comment else None


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _stateful_names(statements: Iterable[_Statement], lines: Sequence[str]) -> frozenset[str]:
    """The names in statements that a session has more than once, each time with another result."""
    results: dict[str, set[str]] = {}
    for statement in statements:
        if not isinstance(statement.node, ast.Expr):
            continue
        shown = [line.strip() for line in lines[statement.start : statement.end]]
        result = "\n".join(line for line in shown if line and not line.startswith((">>>", "...", "#")))
        results.setdefault(ast.unparse(statement.node), set()).update({result} if result else ())
    changing = (ast.parse(code) for code, shown in results.items() if len(shown) > 1)
    return frozenset(n.id for tree in changing for n in ast.walk(tree) if isinstance(n, ast.Name))


def _has_output(lines: Sequence[str]) -> bool:
    """Whether something stands below a statement of a session, which is its result."""
    return any(line.strip() and not line.lstrip().startswith((">>>", "...", "#")) for line in lines)


class LostInExamples:
    """The names of the examples of a section that stand for what is gone, or were made with it."""

    def __init__(self, gone: GoneCode) -> None:
        self.dotted = gone.dotted
        self.commands = gone.commands
        self.calls = gone.calls
        self.names = {*gone.mentioned.names, *gone.local}
        self.members = gone.mentioned.methods | gone.members
        self.functions = frozenset(gone.mentioned.names) - gone.mentioned.methods
        self.qualified = frozenset(gone.mentioned.qualified)
        self.called = frozenset(gone.mentioned.called)
        self.roots = {name.partition(".")[0] for name in gone.dotted}
        self.bound: set[str] = set()
        """Names and attributes (:func:`_attributes_bound`) that lost statements gave to something, of this example or
        of one above."""
        self.not_objects = {*self.roots, *self.names, *dir(builtins)}
        """Names that stand for no object of the project's classes: of modules, functions and what is imported."""
        self.last_lines: Mapping[str, int] = {}
        """Words of the section to the numbers of the last lines that have them."""
        self.end = 0
        """Number of the line of the section at which the example ends."""
        self.begin()

    def begin(self, unused: frozenset[str] = frozenset()) -> None:
        """Forget what is known of the example before, but for the names that its lost statements gave.

        ``unused`` are names that its imports and assignments need not bring.
        """
        self.unused = unused
        self.stateful = frozenset[str]()
        """Names in statements of the session that have several results."""
        self.needed: set[str] = set()
        """Names in statements that are gone."""
        self.own: set[str] = set()
        """Names that the example itself gives to something else."""
        self.has_lost = False
        self.changed: set[str] = set()
        """Names of objects of the example of which lost statements call methods; in sessions, methods without a result,
        or of objects in :attr:`stateful`.

        What a session shows of them later is another value without the call.
        """
        self.lacks_effect = False
        """Whether a lost statement of the block, or of one around it, passed what is gone to a call for its effect."""
        self.depends_on_lost = False
        """Whether a statement that stays uses such an object later, or asserts something after such a call: the example
        makes no sense without the call."""

    def uses(self) -> GoneUses:
        """What examples in languages with braces cannot use."""
        return GoneUses(self.functions | self.called, self.members, self.qualified)

    def rest_of(self, node: ast.stmt, lines: list[str], *, is_script: bool) -> list[str]:
        """The lines of a statement that stay; in scripts, one may lose a part of it."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._imports(node, lines)
        binds = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        binds.update(_attributes_bound(node))
        binds.update({node.name} if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ())
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if isinstance(node, ast.Expr):
            binds.add(_LAST)
        is_unread = isinstance(node, ast.Assign | ast.AnnAssign) and bool(binds) and binds <= self.unused
        made_anew = self.bound & _bound_by_heads(node)
        self.bound -= made_anew
        loaded = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        is_stale = not is_script and not self.changed.isdisjoint(loaded - _bound_inside(node))
        if not is_unread and not is_stale and not any(map(self._is_lost, ast.walk(node))):
            self.changed -= set() if is_script else binds
            self.own |= binds
            self.bound -= binds
            self.depends_on_lost |= not self.changed.isdisjoint(used)
            self.depends_on_lost |= self.lacks_effect and any(isinstance(n, ast.Assert) for n in ast.walk(node))
            return lines
        self.bound |= made_anew
        self.has_lost = True
        if is_script and (left := self._rest_of_block(lines) or without_elements(lines, self._is_lost)):
            self.own |= binds
            self.needed |= used
            return left
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            root = _chain(node.value.func).partition(".")[0]
            is_query = not is_script and root not in self.stateful and _has_output(lines)
            root = "" if is_query else root
            is_effect = isinstance(node.value.func, ast.Attribute) and not self._is_lost(node.value.func)
            self.lacks_effect |= is_script and is_effect
            is_method = self._is_lost(node.value.func) and root not in self.not_objects
            is_object = root in self.own if is_script else is_method
            self.changed |= {root} if root and is_object else set()
        self.bound |= binds
        self.needed |= used
        return []

    def _rest_of_block(self, lines: list[str]) -> list[str]:
        """The lines of a class, a function or a ``with`` without the statements that use what is gone.

        Nothing if its head uses it, if what stays is no code, or if its last statement goes, except in a class.
        """
        tree = _parsed("\n".join(lines))
        if tree is None or len(tree.body) != 1 or not isinstance(block := tree.body[0], _BLOCKS):
            return []
        heads = (each for each in ast.iter_child_nodes(block) if each not in block.body)
        if any(self._is_lost(inner) for each in heads for inner in ast.walk(each)):
            return []
        before = (set(self.own), set(self.bound), set(self.needed), set(self.changed), self.depends_on_lost)
        head = _first_line(block.body[0])
        while lines[head - 1].lstrip().startswith("#"):
            head -= 1
        kept = lines[:head]
        left: list[ast.stmt] = []
        lacks_effect = self.lacks_effect
        end = len(kept)
        is_after_lost = False
        for statement in _placed(block.body, lines, end):
            kept += _between(lines[end : statement.start], kept if left else (), is_after_lost=is_after_lost)
            end = statement.end
            rest = self.rest_of(statement.node, lines[statement.start : end], is_script=True)
            is_after_lost = not rest
            left += [statement.node] if rest else []
            kept += rest
        self.lacks_effect = lacks_effect
        after = _parsed("\n".join([*kept, *lines[end:]])) if any(map(_does_something, left)) else None
        if not isinstance(block, ast.ClassDef) and is_after_lost:
            after = None  # it was there for its last statement
        returned = (any(isinstance(n, ast.Return) for n in ast.walk(each)) for each in (block, after) if each)
        if after is None or len(set(returned)) > 1:
            self.own, self.bound, self.needed, self.changed, self.depends_on_lost = before
            return []
        while not kept[-1].strip():
            kept.pop()
        return [*kept, *lines[end:]]

    def unused_names(self, nodes: Iterable[ast.stmt]) -> frozenset[str]:
        """The names that imports and assignments among the statements that stay bring for lost statements alone."""
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        brought = {alias.asname or alias.name for node in imports for alias in node.names}
        others = [n for node in nodes if node not in imports for n in ast.walk(node) if isinstance(n, ast.Name)]
        made = (node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign))
        brought |= {
            n.id for node in made for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        used = {n.id for n in others if isinstance(n.ctx, ast.Load)}
        later = {name for name in brought if self.last_lines.get(name, -1) >= self.end}
        return frozenset(brought & self.needed - used - later)

    def only_prepares(self, node: ast.stmt) -> bool:
        """Whether a statement that stays imports names, configures a module, or makes what only lost statements use."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return node.name in self.needed
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            owner, _, called = _chain(node.value.func).rpartition(".")
            if owner in _CONFIGURED and called in _CONFIGURING:
                return True
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return isinstance(node, ast.Assign | ast.AnnAssign) and names <= self.needed

    def _imports(self, node: ast.Import | ast.ImportFrom, lines: list[str]) -> list[str]:
        """An import without the names of what is gone."""
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
        is_own = module.partition(".")[0] in self.roots
        lost = [
            a
            for a in node.names
            if f"{module}{a.name}" in self.dotted
            or (is_own and a.name in self.names)
            or (a.asname or a.name) in self.unused
        ]
        self.not_objects.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        for alias in node.names:
            root = (module or alias.name).partition(".")[0]
            self.own.update({alias.asname or root} if alias not in lost and root not in self.roots else ())
        if not lost:
            return lines
        self.has_lost = True
        self.bound.update({alias.asname or alias.name for alias in lost} - self.unused)
        node.names = [alias for alias in node.names if alias not in lost]
        if not node.names:
            return []
        first = next((at for at, line in enumerate(lines) if not _COMMENT.match(line)), 0)
        head = lines[first][: indent_of(lines[first])] + (">>> " if lines[first].lstrip().startswith(">>>") else "")
        return [*lines[:first], f"{head}{ast.unparse(node)}"]

    def _is_lost(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and node.id in (self.names - self.own) | self.bound
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return node.target.id in self.bound
        if isinstance(node, ast.Call):
            return any(each.is_made_by(node) for each in self.calls)
        if not isinstance(node, ast.Attribute):
            return False
        chain = _chain(node)
        is_function = node.attr in self.functions and bool(chain) and chain.partition(".")[0] not in self.own
        is_owned = with_owner(chain) in self.qualified
        if isinstance(node.ctx, ast.Load) and not self.bound.isdisjoint((chain, f".{node.attr}")):
            return True
        return is_function or is_owned or node.attr in self.members or chain in self.dotted


def _attributes_bound(node: ast.stmt) -> Iterator[str]:
    """The attributes that a statement gives values to: ``a.b`` of an object with a name; ``.b`` of a class, and of what
    has more than a name: others have it from there (``Query.fn.b = b``)."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            is_shared = not isinstance(inner.value, ast.Name) or inner.value.id[:1].isupper()
            yield f".{inner.attr}" if is_shared else _chain(inner)


def _bound_inside(node: ast.stmt) -> set[str]:
    """The names that a statement gives to the items of what it goes through."""
    loops = (n for n in ast.walk(node) if isinstance(n, ast.comprehension))
    names = {n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return names | _bound_by_heads(node)


def _bound_by_heads(node: ast.stmt) -> set[str]:
    """The names that ``with`` statements and loops in a statement bind before their bodies run."""
    targets: list[ast.expr | None] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.With | ast.AsyncWith):
            targets += [item.optional_vars for item in inner.items]
        elif isinstance(inner, ast.For | ast.AsyncFor):
            targets.append(inner.target)
    return {n.id for each in targets if each is not None for n in ast.walk(each) if isinstance(n, ast.Name)}


def _chain(node: ast.expr) -> str:
    """``a.b.c`` for a name with attributes; else empty."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MAX_PARTS:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
