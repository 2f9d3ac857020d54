"""One parsed Rust file: its symbols, modules, and what each definition refers to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.compiled_codebase import CompiledModule, Definition, DefinitionKind
from excise.extractors.rust.analysis.grammar import (
    BEFORE_ITEMS,
    BRANCHES,
    COMMENTS,
    NAMES,
    TYPES,
    attributes_of,
    before_item,
    descendants,
    field_text,
    is_test_code,
    is_test_function,
    named_in_attribute,
    parse_tree,
    text,
)
from excise.types import Symbol, SymbolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A use of a name."""

    owner: str
    """Qualified name of the definition that it is in; empty at the level of the file."""
    name: str
    """The name."""
    qualifier: str
    """What stands before ``::``, as far as it is one name; ``.`` for a field or method; empty without either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFile:
    """A declaration of a module in a file of its own."""

    names: tuple[str, ...]
    """Names of the modules around it in this file, and its own."""
    path: str
    """The attribute ``path``; empty without."""
    is_test: bool
    """Whether it, or a module around it, exists for tests only."""
    is_public: bool
    """Whether it, and each module around it in this file, is ``pub``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a file or of a module in it."""

    kind: str
    """Type of its node."""
    modules: tuple[str, ...]
    """Names of the modules around it in this file."""
    name: str
    """Its name; of an ``impl``, that of its type; empty for uses."""
    start: int
    """First byte of its lines, with attributes and documentation."""
    end: int
    """One past the last byte, with the rest of the line."""
    uses: frozenset[str]
    """All names in it."""
    is_test: bool
    """Whether it is a test function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RustModule(CompiledModule):
    """One parsed Rust file."""

    references: tuple[Reference, ...]
    """Uses of names, in order."""
    module_files: tuple[ModuleFile, ...]
    """Modules in files of their own that this file declares."""
    items: tuple[Item, ...]
    """Items in order, those in modules included; modules themselves are none."""
    exports: frozenset[str]
    """Names that ``pub use`` gives to others; with ``*``, those of all modules that it names."""
    fixed: frozenset[str]
    """Qualified names of functions that cannot be emptied: called at compile time, or with results of no known type."""


@lru_cache(maxsize=32)
def parse_file(path: str, source: bytes) -> RustModule:
    """Parse the content of a Rust file."""
    root = parse_tree(source).root_node
    reader = _Reader(path, source)
    reader.read(root, (), is_test=False, is_public=True)
    symbols = _numbered(sorted(reader.symbols, key=lambda s: (s.start, -s.end)))
    fixed_starts = reader.fixed
    return RustModule(
        path=path,
        source=source,
        symbols=(_module_symbol(path, source), *symbols),
        has_error=root.has_error,
        references=tuple(_references(root, source, symbols)),
        module_files=tuple(reader.module_files),
        items=tuple(reader.items),
        exports=frozenset(_exports(root, source)) if b"pub use" in source else frozenset(),
        definitions=tuple(_definitions(path, root, source, {(s.start, s.end): s.qualname for s in symbols})),
        fixed=frozenset(s.qualname for s in symbols if s.start in fixed_starts and s.is_callable),
    )


class _Reader:
    """Collects what a file defines."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.symbols: list[Symbol] = []
        self.module_files: list[ModuleFile] = []
        self.items: list[Item] = []
        self.fixed: set[int] = set()

    def read(self, parent: Node, modules: tuple[str, ...], *, is_test: bool, is_public: bool) -> None:
        """Read the items of a file, or of a module in it."""
        for node in parent.named_children:
            if node.type == "mod_item":
                self._module(node, modules, is_test=is_test, is_public=is_public)
            elif node.type not in COMMENTS and node.type not in {"attribute_item", "inner_attribute_item", "ERROR"}:
                self._item(node, modules)

    def _module(self, node: Node, modules: tuple[str, ...], *, is_test: bool, is_public: bool) -> None:
        names = (*modules, field_text(node, "name", self.source))
        attributes, body = attributes_of(node, self.source), node.child_by_field_name("body")
        is_test, is_public = is_test or is_test_code(attributes), is_public and _is_public(node, self.source)
        if body is not None:
            self.read(body, names, is_test=is_test, is_public=is_public)
            return
        explicit = next((a.partition('"')[2].rstrip('"') for a in attributes if a.startswith("path")), "")
        self.module_files.append(ModuleFile(names=names, path=explicit, is_test=is_test, is_public=is_public))

    def _item(self, node: Node, modules: tuple[str, ...]) -> None:
        attributes = attributes_of(node, self.source)
        name = field_text(node, "name", self.source) or type_name(node.child_by_field_name("type"), self.source)
        is_test = node.type == "function_item" and is_test_function(attributes)
        start, end = whole_lines(node, self.source)
        self.items.append(
            Item(
                kind=node.type,
                modules=modules,
                name=name,
                start=start,
                end=end,
                uses=frozenset(text(leaf, self.source) for leaf in descendants(node) if leaf.type in NAMES),
                is_test=is_test,
            )
        )
        if node.type == "function_item":
            self._function(node, modules, SymbolKind.FUNCTION, is_public=_is_public(node, self.source))
        elif node.type in TYPES:
            self._type(node, modules)
        if node.type == "impl_item":
            of_trait = node.child_by_field_name("trait") is not None
            self._methods(node, (*modules, name), is_public=True if of_trait else None)
        elif node.type == "trait_item":
            self._methods(node, (*modules, name), is_public=_is_public(node, self.source))

    def _methods(self, node: Node, around: tuple[str, ...], *, is_public: bool | None) -> None:
        body = node.child_by_field_name("body")
        for each in body.named_children if body is not None else ():
            if each.type == "function_item":
                public = _is_public(each, self.source) if is_public is None else is_public
                self._function(each, around, SymbolKind.METHOD, is_public=public)

    def _function(self, node: Node, around: tuple[str, ...], kind: SymbolKind, *, is_public: bool) -> None:
        body, name = node.child_by_field_name("body"), field_text(node, "name", self.source)
        if body is None or not name:
            return
        inside = [each for each in body.named_children if each.type not in COMMENTS]
        first = inside[0] if inside else None
        signature = _one_line(self.source[node.start_byte : body.start_byte])
        if _is_fixed(signature):
            self.fixed.add(node.start_byte)
        self.symbols.append(
            Symbol(
                path=self.path,
                qualname=".".join((*around, name)),
                kind=kind,
                start=node.start_byte,
                end=node.end_byte,
                body_start=first.start_byte if first else node.end_byte,
                code_start=first.start_byte if first else node.end_byte,
                start_line=node.start_point[0] + 1,
                end_line=node.end_point[0] + 1,
                body_line=first.start_point[0] + 1 if first else 0,
                signature=signature,
                docstring=documentation(node, self.source),
                is_public=is_public,
                loc=_loc(text(node, self.source)),
                complexity=1 + sum(_is_branch(found) for found in descendants(body)),
            )
        )

    def _type(self, node: Node, modules: tuple[str, ...]) -> None:
        name, body = field_text(node, "name", self.source), node.child_by_field_name("body")
        end = body.start_byte if body is not None else node.end_byte
        self.symbols.append(
            Symbol(
                path=self.path,
                qualname=".".join((*modules, name)),
                kind=SymbolKind.CLASS,
                start=node.start_byte,
                end=node.end_byte,
                body_start=node.end_byte,
                code_start=node.start_byte,
                start_line=node.start_point[0] + 1,
                end_line=node.end_point[0] + 1,
                body_line=0,
                signature=_one_line(self.source[node.start_byte : end]),
                docstring=documentation(node, self.source),
                is_public=_is_public(node, self.source),
                loc=_loc(text(node, self.source)),
            )
        )


def type_name(node: Node | None, source: bytes) -> str:
    """Name of a type without its parameters: ``S`` of ``&a::S<T>``."""
    if node is None:
        return ""
    if node.type in {"generic_type", "reference_type", "pointer_type"}:
        return type_name(node.child_by_field_name("type"), source)
    if node.type == "scoped_type_identifier":
        return field_text(node, "name", source)
    return re.sub(r"\W+", "", text(node, source))


def whole_lines(node: Node, source: bytes) -> tuple[int, int]:
    """The bytes of an item with attributes, documentation and the rest of its lines, if nothing else is there."""
    above = before_item(node)
    first = (above[0] if above else node).start_byte
    start = source.rfind(b"\n", 0, first) + 1
    start = first if source[start:first].strip() else start
    end = source.find(b"\n", node.end_byte)
    end = len(source) if end < 0 else end
    rest = source[node.end_byte : end].strip()
    return (start, min(len(source), end + 1)) if not rest or rest.startswith(b"//") else (start, node.end_byte)


# ------------------------------------------------------------------------------------------- definitions
_KINDS = {
    "function_item": DefinitionKind.FUNCTION,
    **dict.fromkeys((*TYPES, "type_item"), DefinitionKind.TYPE),
    "impl_item": DefinitionKind.PART,
}
_NO_DEFINITIONS = BEFORE_ITEMS | {"inner_attribute_item", "ERROR", "use_declaration", "extern_crate_declaration"}


def _definitions(path: str, parent: Node, source: bytes, symbols: dict[tuple[int, int], str]) -> Iterator[Definition]:
    """The definitions below a node, in order; ``symbols`` maps bytes of symbols to their names."""
    for node in parent.named_children:
        body = node.child_by_field_name("body")
        if node.type == "mod_item":
            yield from _definitions(path, body, source, symbols) if body is not None else ()
        elif node.type not in _NO_DEFINITIONS:
            found = _definition(path, node, source, symbols, None)
            yield found
            yield from (_definition(path, each, source, symbols, found) for each in _members(node))


def _members(node: Node) -> list[Node]:
    """What of an ``impl`` or trait can be taken out: of a trait, functions with a body."""
    body = node.child_by_field_name("body") if node.type in {"impl_item", "trait_item"} else None
    kinds = {"function_item", "const_item", "type_item"} if node.type == "impl_item" else {"function_item"}
    return [each for each in (body.named_children if body is not None else ()) if each.type in kinds]


def _parameters(node: Node, source: bytes) -> set[str]:
    """Names of the parameters of a generic item."""
    declared = node.child_by_field_name("type_parameters")
    inside = declared.named_children if declared is not None else []
    names = (each.child_by_field_name("name") for each in inside)
    return {text(name, source) for name in names if name is not None}


def _is_in_trait_impl(node: Node) -> bool:
    block = node.parent.parent if node.parent is not None else None
    return block is not None and block.type == "impl_item" and block.child_by_field_name("trait") is not None


def _definition(
    path: str, node: Node, source: bytes, symbols: dict[tuple[int, int], str], around: Definition | None
) -> Definition:
    start, end = whole_lines(node, source)
    name = field_text(node, "name", source)
    is_associated = around is not None and node.type == "type_item"
    kind = DefinitionKind.VALUE if is_associated else _KINDS.get(node.type, DefinitionKind.VALUE)
    qualname = symbols.get((node.start_byte, node.end_byte)) or f"{name or node.type}@{node.start_byte}"
    body = node.child_by_field_name("body")
    inner = _members(node)
    head, uses = set[str](), set[str]()
    for leaf in (*descendants(node), *(leaf for each in before_item(node) for leaf in descendants(each))):
        words = {text(leaf, source)} if leaf.type in NAMES else {name for _, name in named_in_attribute(leaf, source)}
        if words and not any(each.start_byte <= leaf.start_byte < each.end_byte for each in inner):
            uses |= words
            if body is None or not body.start_byte <= leaf.start_byte < body.end_byte:
                head |= words
    in_trait_impl = around is not None and _is_in_trait_impl(node)
    is_plain = kind is DefinitionKind.FUNCTION and not in_trait_impl
    is_loose = kind is DefinitionKind.VALUE and node.type not in {"const_item", "static_item"}
    return Definition(
        path=path,
        qualname=qualname,
        kind=kind,
        names=frozenset({name} if name else filter(None, [type_name(node.child_by_field_name("trait"), source)])),
        start=start,
        code=node.start_byte,
        end=end,
        uses=frozenset(uses),
        head=frozenset(head),
        holder=around.qualname if around is not None else "",
        about=frozenset(head - _parameters(node, source)) if kind is DefinitionKind.PART else frozenset(),
        group=f"{path}::{re.sub(r'#.*', '', qualname)}" if is_plain else "",
        is_private=bool(name) and not in_trait_impl and not _is_public(node, source),
        is_fixed=in_trait_impl or is_loose,
    )


# ------------------------------------------------------------------------------------------- symbols
def _module_symbol(path: str, source: bytes) -> Symbol:
    return Symbol(
        path=path,
        qualname="",
        kind=SymbolKind.MODULE,
        start=0,
        end=len(source),
        body_start=0,
        code_start=0,
        start_line=1,
        end_line=source.count(b"\n") + 1,
        body_line=1,
        loc=_loc(source.decode("utf-8", "replace")),
    )


def _numbered(symbols: list[Symbol]) -> list[Symbol]:
    """The symbols; of several with one name, such as ``fmt`` of two traits, all but the first have a number."""
    seen: dict[str, int] = {}
    found = []
    for symbol in symbols:
        seen[symbol.qualname] = count = seen.get(symbol.qualname, 0) + 1
        found.append(symbol if count == 1 else replace(symbol, qualname=f"{symbol.qualname}#{count}"))
    return found


def _is_public(node: Node, source: bytes) -> bool:
    return any(child.type == "visibility_modifier" and text(child, source) == "pub" for child in node.children)


def _is_fixed(signature: str) -> bool:
    """Whether a body of ``unimplemented!()`` would not compile, or only where it is not called at compile time."""
    result = signature.rpartition("->")[2] if "->" in signature else ""
    return bool(re.search(r"\bconst (?:unsafe )?(?:extern \S+ )?fn\b", signature) or re.search(r"\bimpl\b", result))


def _is_branch(node: Node) -> bool:
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in {"&&", "||"}
    return node.type in BRANCHES or node.type == "try_expression"


def _one_line(data: bytes) -> str:
    """Code on one line; of a list on several, without the comma at its end."""
    joined: list[str] = []
    for line in filter(None, map(str.strip, data.decode("utf-8", "replace").splitlines())):
        if line.startswith(")") and joined:
            joined[-1] = joined[-1].removesuffix(",")
        elif joined and not joined[-1].endswith("("):
            joined.append(" ")
        joined.append(line)
    return " ".join("".join(joined).split())


def _loc(code: str) -> int:
    """Lines that are neither blank nor comments."""
    code = re.sub(r"(?s)/\*.*?\*/", "", code)
    return sum(1 for line in code.splitlines() if (plain := line.strip()) and not plain.startswith("//"))


def documentation(node: Node, source: bytes) -> str:
    """The documentation of an item, without the marks of comments."""
    lines: list[str] = []
    for comment in (each for each in before_item(node) if each.type in COMMENTS):
        plain = text(comment, source).strip()
        if plain.startswith("/*"):
            lines += [line.strip().removeprefix("*").strip() for line in plain[2:-2].lstrip("*!").splitlines()]
        else:
            lines.append(plain.lstrip("/").removeprefix("!").removeprefix(" "))
    return "\n".join(lines).strip()


def _exports(root: Node, source: bytes) -> Iterator[str]:
    """See :attr:`RustModule.exports`; of a module with another name there, also its own."""
    every = list(descendants(root))
    found = {*_exported_names(every, source), *_names_exported_in_macros(every, source)}
    yield from found
    for node in every:
        alias = field_text(node, "alias", source) if node.type == "use_as_clause" else ""
        if alias in found:
            yield field_text(node, "path", source).rpartition("::")[2]


def _names_exported_in_macros(nodes: Iterable[Node], source: bytes) -> Iterator[str]:
    """All names of ``pub use`` among the arguments of macros, in which there are tokens only."""
    for node in nodes:
        if node.type == "use" and node.prev_sibling is not None and node.prev_sibling.type == "pub":
            after = node.next_sibling
            while after is not None and after.type != ";":
                yield from (text(leaf, source) for leaf in descendants(after) if leaf.type in NAMES)
                after = after.next_sibling


def _exported_names(nodes: Iterable[Node], source: bytes) -> Iterator[str]:
    for node in nodes:
        if node.type != "use_declaration" or not _is_public(node, source):
            continue
        inside = list(descendants(node))
        is_whole = any(n.type == "use_wildcard" or (n.type == "self" and _is_in_list(n)) for n in inside)
        for leaf in (each for each in inside if each.type in NAMES):
            parent = leaf.parent
            path = parent.child_by_field_name("path") if parent is not None else None
            is_last = path is None or not path.start_byte <= leaf.start_byte < path.end_byte
            if is_last or is_whole or (parent is not None and parent.type == "use_as_clause"):
                yield text(leaf, source)


def _is_in_list(leaf: Node) -> bool:
    return leaf.parent is not None and leaf.parent.type == "use_list"


# ------------------------------------------------------------------------------------------- references
def _references(root: Node, source: bytes, symbols: list[Symbol]) -> Iterator[Reference]:
    functions = [symbol for symbol in symbols if symbol.is_callable]
    types = [symbol for symbol in symbols if not symbol.is_callable]
    place = 0
    for leaf in descendants(root):
        named = named_in_attribute(leaf, source)
        if leaf.type in NAMES and leaf.parent is not None and not _is_declared_name(leaf):
            named = [(_qualifier(leaf, source), text(leaf, source))]
        if not named:
            continue
        at = leaf.start_byte
        while place < len(functions) and functions[place].end <= at:
            place += 1
        inside = place < len(functions) and functions[place].start <= at
        owner = functions[place].qualname if inside else _holder(types, at)
        yield from (Reference(owner=owner, name=name, qualifier=qualifier) for qualifier, name in named)


def _holder(types: list[Symbol], at: int) -> str:
    return next((symbol.qualname for symbol in types if symbol.start <= at < symbol.end), "")


def _is_declared_name(leaf: Node) -> bool:
    """Whether a leaf is the name that its item gives."""
    parent = leaf.parent
    if parent is None or parent.type not in TYPES | {"function_item", "function_signature_item", "mod_item"}:
        return False
    name = parent.child_by_field_name("name")
    return name is not None and name.start_byte == leaf.start_byte


def _qualifier(leaf: Node, source: bytes) -> str:
    parent = leaf.parent
    if leaf.type == "field_identifier":
        return "."
    if parent is not None and parent.type in {"scoped_identifier", "scoped_type_identifier"}:
        path = parent.child_by_field_name("path")
        if path is not None and path.start_byte != leaf.start_byte:
            return re.sub(r"<.*", "", text(path, source)).rpartition("::")[2] or "?"
    before = leaf.prev_sibling  # in the arguments of a macro there are tokens only
    if before is not None and parent is not None and parent.type == "token_tree":
        if before.type == ".":
            return "."
        if before.type == "::":
            first = before.prev_sibling
            return text(first, source) if first is not None and first.type in NAMES else "?"
    return ""
