"""Removal of what only removed code used: imports, and private constants of modules."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit, apply_edits, merged
from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.made_data import fillers, is_constant, pure_functions
from excise.deleters.python.references.name_uses import UseIndex
from excise.deleters.python.references.remaining_words import TYPE_COMMENT, words_in, words_of
from excise.deleters.python.references.symbol_tables import names_used_in_code
from excise.extractors.python.analysis.grammar import field, of_types, parse_tree, statements, text_of
from excise.extractors.python.analysis.parsed_file import Import, Phase, PythonModule
from excise.extractors.python.analysis.parser import parse_text

_EXAMPLE = re.compile(rb"\s*(>>>|\.\.\.)")
_LITERAL = re.compile(rb"""(?<![\w'"])([a-zA-Z]{0,2})(?:'(?:[^'\\\n]|\\.)*'(?!')|"(?:[^"\\\n]|\\.)*"(?!"))""")
"""A text on one line of an example, and what stands before it: one that is filled in (``f"{x}"``) uses names."""
_EXAMPLE_IMPORT = re.compile(rb"\s*(>>>|\.\.\.)\s*(from|import)\s")
_TYPING_CALLS = frozenset({b"cast", b"TypeVar", b"ForwardRef", b"NewType", b"NamedTuple", b"TypedDict"})


# ------------------------------------------------------------------------------------------- imports
def drop_unused_imports(plan: FilePlan, uses: UseIndex, plans: Mapping[str, FilePlan]) -> None:
    """Remove the imports of a file that only the removed code used; ``plans``: path to plan of all changed files.

    Not removed are names in ``__all__`` and other lists of names of the module, names that code which stays takes from
    here, names that tests replace here, star and ``__future__`` imports, lines with ``noqa``, plain imports of
    submodules of other packages, and names that the file did not use before. A ``try`` statement that only imports, and
    binds what tells whether that worked, is removed as a whole or not at all; so is one, or an ``if`` with an ``else``,
    that defines what it does not import.
    """
    if plan.deleted or not plan.is_changed:
        return
    words = words_of(plan)
    exported = {e.name for e in plan.module.exports} | _listed(plan)

    def is_reached(name: str) -> bool:
        return name in exported or is_reached_from_elsewhere(plan.path, name, uses, plans)

    for record in plan.module.imports:
        name = record.bound
        if record.owner or record in plan.clauses or record.phase is Phase.MAIN or record.module == "__future__":
            continue
        if name not in words.removed or _is_special_import(plan, record) or not is_used_in(plan.source, name):
            continue  # a name that nothing in the file used before is there for others
        if is_reached(name):
            continue
        choice = _choice_around(plan, record)
        is_alone = not record.in_try or _is_one_of_several(plan, record)
        if choice is not None and not (record.in_try and is_alone) and _is_for_nothing(plan, choice, name, is_reached):
            plan.remove_statement(choice)
            drop_unused_imports(plan, uses, plans)  # and those that only it used
            return
        if is_alone and (choice is None or record.in_try or not _is_given_again(plan, record)):
            own = words_in(plan.source[record.start : record.end]).count(name)
            if words.kept.get(name, 0) <= own or not is_used_in(words.after, name):
                plan.remove_clause(record)


def _listed(plan: FilePlan) -> set[str]:
    """The texts in lists that a module assigns, if all of a list are its names: generated code may import them.

    Modules that it imports are none: ``["json", "yaml"]`` are words for formats.
    """
    module = plan.module
    known = {each.bound for each in module.imports if each.name}
    known |= {each.name for each in module.bindings} | {each.name for each in module.symbols}
    found: set[str] = set()
    for statement in statements(plan.root):
        value = statement.named_children[0].child_by_field_name("right") if statement.named_children else None
        if value is not None and value.type in {"list", "tuple", "set"}:
            texts = {text_of(each) for each in of_types(value, "string_content")}
            found |= texts if texts <= known else set()
    return found


def _is_for_nothing(plan: FilePlan, choice: Node, name: str, is_reached: Callable[[str], bool]) -> bool:
    """Whether a statement that imports ``name`` only binds names, of which no code outside of it uses one any more."""
    bound = _bound_by(plan, choice)
    if bound is None or name not in bound.names:
        return False
    own = Edit(choice.start_byte, choice.end_byte)
    rest = apply_edits(plan.source, merged([*plan.edits(), own]))
    return not any(is_used_in(rest, each) or is_reached(each) for each in bound.names)


def _is_one_of_several(plan: FilePlan, record: Import) -> bool:
    """Whether a statement imports other names that stay, so that it still tries the same; and nothing else binds this
    one."""
    span, name = (record.stmt_start, record.stmt_end), record.bound
    others = [r for r in plan.module.imports if (r.stmt_start, r.stmt_end) == span and r not in plan.clauses]
    is_bound_again = any(each.bound == name and each is not record for each in plan.module.imports)
    return len(others) > 1 and not is_bound_again and not _is_given_again(plan, record)


def _is_given_again(plan: FilePlan, record: Import) -> bool:
    """Whether an assignment or a definition in the file has the name of an import."""
    names = {each.name for each in plan.module.bindings}.union(each.name for each in plan.module.symbols)
    return record.bound in names


def _choice_around(plan: FilePlan, record: Import) -> Node | None:
    """The ``try`` statement, or the ``if`` with other branches, at module level around an import; ``None`` if that is
    removed, or there is none."""
    node: Node | None = plan.root.descendant_for_byte_range(record.start, record.end)
    while node is not None and node.parent is not None and node.parent.type != "module":
        node = node.parent
    is_if = node is not None and node.type == "if_statement" and node.child_by_field_name("alternative") is not None
    if node is None or not (is_if or node.type == "try_statement"):
        return None
    return None if plan.is_removed(node.start_byte, node.end_byte) else node


class _Bound(NamedTuple):
    """The names that a statement binds."""

    imported: frozenset[str] = frozenset()
    """By imports."""
    data: frozenset[str] = frozenset()
    """By assignments of data."""
    defined: frozenset[str] = frozenset()
    """By definitions."""

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return self.imported | self.data | self.defined

    def with_those_of(self, other: _Bound) -> _Bound:
        """These and those of another statement."""
        return _Bound(self.imported | other.imported, self.data | other.data, self.defined | other.defined)


def _bound_by(plan: FilePlan, choice: Node) -> _Bound | None:
    """The names that what is left of a ``try`` or ``if`` statement binds; ``None`` if it does more than to import, to
    bind data, and to define what it imports in another case, or what only it can see."""
    found = _Bound()
    clauses = (child for child in choice.named_children if child.type.endswith("_clause"))
    blocks = [b for node in (choice, *clauses) for b in node.named_children if b.type == "block"]
    for statement in (each for block in blocks for each in statements(block)):
        inner = statement.named_children[0] if statement.type == "expression_statement" else statement
        if plan.is_removed(statement.start_byte, statement.end_byte) or statement.type == "pass_statement":
            continue
        if statement.type in {"try_statement", "if_statement"}:
            if (inside := _bound_by(plan, statement)) is None:
                return None
            found = found.with_those_of(inside)
        elif statement.type in {"import_statement", "import_from_statement"}:
            found = found.with_those_of(
                _Bound(imported=frozenset(map(_bound_name, statement.children_by_field_name("name"))))
            )
        elif inner.type == "assignment" and is_constant(inner):
            found = found.with_those_of(_Bound(data=frozenset([text_of(field(inner, "left"))])))
        elif statement.type == "function_definition" or _is_plain_class(statement):
            found = found.with_those_of(_Bound(defined=frozenset([text_of(field(statement, "name"))])))
        else:
            return None
    is_own = all(name in found.imported or name.startswith("_") for name in found.defined)
    return found if is_own or choice.parent is None or choice.parent.type != "module" else None


def _is_plain_class(statement: Node) -> bool:
    """Whether a statement defines a class without a metaclass or other arguments."""
    bases = statement.child_by_field_name("superclasses")
    return statement.type == "class_definition" and not any(
        each.type == "keyword_argument" for each in (bases.named_children if bases is not None else ())
    )


def _bound_name(clause: Node) -> str:
    target = clause.child_by_field_name("alias") or clause
    text = (target.text or b"").decode(errors="replace")
    return text.partition(".")[0] if target.parent is not None and target.parent.type == "import_statement" else text


def _is_special_import(plan: FilePlan, record: Import) -> bool:
    line_start = plan.source.rfind(b"\n", 0, record.stmt_start) + 1
    line_end = plan.source.find(b"\n", record.end)
    line = plan.source[record.start : line_end if line_end >= 0 else None]
    reexport = bool(record.alias) and record.alias == record.name
    submodule = not record.name and not record.alias and "." in record.module
    foreign = record.module.partition(".")[0] not in sys.stdlib_module_names
    shares_line = plan.source[line_start : record.stmt_start].strip() != b""
    return b"noqa" in line or reexport or (submodule and foreign) or shares_line


def is_reached_from_elsewhere(path: str, name: str, uses: UseIndex, plans: Mapping[str, FilePlan]) -> bool:
    """Whether code that stays in another file imports the name from ``path``, by name or star, uses it as an attribute
    of the module, or replaces it."""

    def stays(other: str, start: int, end: int) -> bool:
        return other not in plans or not plans[other].is_removed(start, end)

    module = uses.codebase.modules[path]
    if module.has_all and module.exports and name in {entry.name for entry in module.exports}:
        return True
    if any(stays(*place) for place in uses.replacements_of(path, name)):
        return True
    for source in {path, *_star_importers(path, name, uses, plans)}:
        if source != path and is_used_in(_left_of(source, uses, plans), name):
            return True
        named = uses.named_from(source, name)
        if any(stays(other, r.start, r.end) and not _is_dropped(plans, other, r) for other, r in named):
            return True
        if any(stays(other, ref.start, ref.end) for other, ref in uses.attribute_reads(source, name)):
            return True
    return False


def _star_importers(path: str, name: str, uses: UseIndex, plans: Mapping[str, FilePlan]) -> set[str]:
    """The files that get a name of a file by star imports, from it or from each other."""
    found: set[str] = set()
    queue = [path]
    while queue:
        source = queue.pop()
        module = uses.codebase.modules[source]
        if name.startswith("_") or (module.has_all and module.exports):
            continue
        for importer in uses.star_importers(source):
            if importer not in found and not (importer in plans and plans[importer].deleted):
                found.add(importer)
                queue.append(importer)
    return found - {path}


def _left_of(path: str, uses: UseIndex, plans: Mapping[str, FilePlan]) -> bytes:
    plan = plans.get(path)
    return words_of(plan).after if plan is not None and plan.is_changed else uses.codebase.modules[path].source


def _is_dropped(plans: Mapping[str, FilePlan], path: str, record: Import) -> bool:
    return path in plans and record in plans[path].clauses


def is_used_in(source: bytes, name: str) -> bool:
    """Whether a file uses a name of the module, see :func:`used_names`, which is asked only where code does not."""
    return name.encode() in source and (name in names_used_in_code(source) or name in used_names(source))


@lru_cache(maxsize=256)
def used_names(source: bytes) -> frozenset[str]:
    """Names of the module that a file uses: in code, ``__all__``, annotations as strings and comments, and examples."""
    module = parse_text(source)
    used = {ref.chain.partition(".")[0] for ref in module.references if ref.via < 0}
    used.update(entry.name for entry in module.exports)
    root = parse_tree(source).root_node
    for comment in of_types(root, "comment") if b"type:" in source else ():
        if found := TYPE_COMMENT.match(source, comment.start_byte, comment.end_byte):
            used.update(words_in(found[1]))
    for node in of_types(root, "string"):
        text = source[node.start_byte : node.end_byte]
        lines = [line for line in text.splitlines() if _EXAMPLE.match(line)]
        own = {word for line in lines if _EXAMPLE_IMPORT.match(line) for word in words_in(line)}
        example = _LITERAL.sub(lambda text: text[0] if b"f" in text[1].lower() else b"''", b"\n".join(lines))
        used.update(words_in(text) if _is_annotation(node, source) else set(words_in(example)) - own)
    return frozenset(used)


_MADE_TYPE = re.compile(rb"=\s*(?:\w+\.)?(?:namedtuple|NamedTuple|TypedDict|NewType)\(")
_TYPE_ALIAS = re.compile(
    rb"[A-Z]\w*(?:\s*:\s*(?:\w+\.)?TypeAlias)?\s*=\s*(?:\w+\.)?(?:Annotated|Callable|Dict|Iterable|List|Literal|Mapping"
    rb"|Optional|Sequence|Set|Tuple|Type|Union|dict|frozenset|list|set|tuple|type)\["
)
_MORE = re.compile(rb"\w+\s*[+|]=")
"""The beginning of a statement that adds to what a name is bound to."""
_TYPE_VARIABLE = re.compile(rb"=\s*(?:\w+\.)?(?:TypeVar|ParamSpec|TypeVarTuple)\(")
_NAMED_TYPES = frozenset({b"TypeVar", b"NewType", b"NamedTuple", b"TypedDict"})
"""Functions whose first argument is the name that their result is bound to."""


def _is_annotation(string: Node, source: bytes) -> bool:
    """Whether a string is, or is a part of, an annotation or an argument of a function of ``typing``."""
    node = string.parent
    while node is not None and not node.type.endswith(("_statement", "_definition", "block", "module")):
        if node.type == "type":
            return True
        head = node.child_by_field_name("function" if node.type == "call" else "value")
        text = source[head.start_byte : head.end_byte].rpartition(b".")[2] if head is not None else b""
        if node.type == "call" and text in _TYPING_CALLS:
            arguments = node.child_by_field_name("arguments")
            first = arguments.named_children[:1] if arguments is not None else []
            return text not in _NAMED_TYPES or string not in first  # its own name
        if node.type == "subscript" and text[:1].isupper():
            return True
        node = node.parent
    return False


# ----------------------------------------------------------------------------------------- constants
class UnusedConstants(NamedTuple):
    """What was removed with constants that only removed code used."""

    constants: Sequence[tuple[str, str]] = ()
    """(id, source text) of each."""
    statements: Sequence[tuple[str, str]] = ()
    """(path, text) of statements in functions that stay."""


def drop_unused_constants(plan: FilePlan, uses: UseIndex, plans: Mapping[str, FilePlan]) -> UnusedConstants:
    """Remove constants of a source file that only the removed code used: dead, they would tell how it worked.

    What fills them goes, too. A constant is a name that one statement at module level binds to data, or to what such a
    function makes of it (:data:`~.made_data.MAKERS`). It must be a type variable, or private, since its name says so or
    ``__all__`` leaves it out, or, without ``__all__``, in capitals, a type made by a call or the name of a type that no
    document has, and replaced by no test.
    """
    if plan.deleted or not plan.is_changed:
        return UnusedConstants()
    words = words_of(plan)
    module = plan.module
    exported = {entry.name for entry in module.exports}
    names = [b.name for b in module.bindings if not (b.klass or _MORE.match(module.source, b.start))]
    makers = cache(lambda: _own_makers(plan, uses))
    found: list[tuple[str, str]] = []
    changed: list[tuple[str, str]] = []
    for binding in module.bindings:
        name = binding.name
        is_private = name.startswith("_") or (module.has_all and bool(exported) and name not in exported)
        is_private |= (
            name not in exported and _TYPE_VARIABLE.search(module.source, binding.start, binding.end) is not None
        )
        is_made = _MADE_TYPE.search(module.source, binding.start, binding.end) is not None
        is_alias = _TYPE_ALIAS.match(module.source, binding.start, binding.end) is not None
        is_made |= is_alias and name not in uses.codebase.others.words
        if not is_private and not module.has_all and (name.isupper() or is_made):
            is_private = not any(True for _ in uses.replacements_of(plan.path, name))
        if binding.klass or not is_private or names.count(name) != 1 or name.startswith("__"):
            continue
        node = plan.node_at(binding.start, binding.end)
        statement = statement_of_module(node)
        if (
            statement is None
            or plan.is_removed(binding.start, binding.end)
            or name not in words.removed
            or not (is_constant(node) or is_constant(node, makers=makers()))
        ):
            continue
        filling = fillers(plan, name) if _is_new_object(field(node, "right")) else []
        more = [Edit(each.start_byte, each.end_byte) for each in filling]
        rest = apply_edits(plan.source, merged([*plan.edits(), *more])) if more else words.after
        if not is_used_in(rest, name) and not is_reached_from_elsewhere(plan.path, name, uses, plans):
            for each in (statement, *filling):
                plan.remove_statement(each)
            changed += _in_functions(plan, filling)
            if name == "TYPE_CHECKING":
                continue  # it chose imports, and nothing that a solution needs
            texts = [plan.source[binding.start : binding.end].decode("utf-8", "replace")]
            in_order = sorted(filling, key=lambda each: each.start_byte)
            texts += [text_of(each) for each in in_order if each.parent is not None and each.parent.type == "module"]
            found.append((f"{plan.path}::{name}", "\n".join(texts)))
    return UnusedConstants(found, changed)


def _in_functions(plan: FilePlan, nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """The path and the text of each statement that is in a function, and of which."""
    for node in nodes:
        inside = [
            s for s in plan.module.symbols if s.is_callable and s.start <= node.start_byte and node.end_byte <= s.end
        ]
        for symbol in inside[-1:]:
            yield plan.path, f"in {symbol.qualname}: {text_of(node)}"


def statement_of_module(assignment: Node) -> Node | None:
    """The statement that an assignment is, if it stands at module level."""
    statement = assignment.parent
    is_top = statement is not None and statement.parent is not None and statement.parent.type == "module"
    return statement if is_top else None


def _is_new_object(expression: Node) -> bool:
    """Whether nothing else can have what an expression gives: it is no name of it."""
    return expression.type not in {"identifier", "attribute", "subscript"}


def _own_makers(plan: FilePlan, uses: UseIndex) -> set[bytes]:
    """Names of a file for :func:`pure_functions` of its own and of other modules."""
    bound, modules = _bound_once(plan.module), uses.codebase.modules
    found = {name for name in pure_functions(plan.root) if name.decode() in bound}
    for record in plan.module.imports:
        if record.owner or record.in_try or record.bound not in bound:
            continue
        entity = uses.codebase.resolver.imported(plan.path, record)
        module = modules.get(entity.path) if entity is not None and entity.qualname.startswith("_") else None
        if entity is None or module is None or entity.qualname not in _bound_once(module):
            continue
        if entity.qualname.encode() in pure_functions(parse_tree(module.source).root_node):
            found.add(record.bound.encode())
    return found


def _bound_once(module: PythonModule) -> set[str]:
    """The names that a module binds at its level in one place."""
    bound = Counter(symbol.name for symbol in module.symbols if symbol.qualname == symbol.name)
    bound.update(binding.name for binding in module.bindings if not binding.klass)
    bound.update(record.bound for record in module.imports if not record.owner)
    return {name for name, times in bound.items() if times == 1}
