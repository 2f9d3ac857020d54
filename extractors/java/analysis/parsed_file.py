"""One parsed Java file: its symbols, imports, members, and what each definition refers to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.compiled_codebase import CompiledModule, Definition, DefinitionKind
from excise.extractors.java.analysis.grammar import (
    BRANCHES,
    CONSTRUCTORS,
    FUNCTIONS,
    NAMES,
    TYPES,
    annotations_of,
    comments_above,
    descendants,
    has_modifier,
    line_end,
    members_of,
    modifiers_of,
    name_of,
    parse_tree,
    statements,
    text,
)
from excise.types import Symbol, SymbolKind

_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_STRINGS = frozenset({"string_fragment", "string_literal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaImport:
    """One import."""

    path: str
    """Qualified name of the type, or of the member of a static import; without ``.*``."""
    is_wildcard: bool
    """Whether it imports all types or members of ``path``."""
    is_static: bool
    """Whether it imports static members."""
    start: int
    """First byte of its line."""
    end: int
    """One past the last byte of its line."""

    @property
    def name(self) -> str:
        """The name that it brings; empty for a wildcard."""
        return "" if self.is_wildcard else self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A use of a name."""

    owner: str
    """Qualified name of the definition that it is in; empty at the level of the file."""
    name: str
    """The name."""
    qualifier: str
    """What stands before the dot, if that is a plain name; ``?`` for anything else; empty without a dot."""
    num_arguments: int = -1
    """Number of arguments of a call; -1 where the name is not called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Definition):
    """A member of a type, or a type of the file; those in bodies of functions are none.

    The words of its strings are among what it uses: tests name methods in strings of annotations.
    """

    node: str
    """Type of its node."""
    annotations: tuple[str, ...]
    """Names of its annotations."""
    is_of_file: bool
    """Whether nothing outside the file can use it by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaModule(CompiledModule):
    """One parsed Java file."""

    package: str
    """Name of its package; empty for the unnamed one."""
    imports: tuple[JavaImport, ...]
    """Imports in order."""
    references: tuple[Reference, ...]
    """Uses of names, in order."""
    definitions: tuple[Member, ...]
    types_of_names: dict[str, frozenset[str]]
    """Name of a variable, field or parameter to the names of the types that the file declares it with."""
    supertypes: dict[str, tuple[str, ...]]
    """Qualified name of a type to the names of what it extends or implements."""


@lru_cache(maxsize=32)
def parse_file(path: str, source: bytes) -> JavaModule:
    """Parse the content of a Java file."""
    root = parse_tree(source).root_node
    symbols = [_module_symbol(path, source)]
    supertypes: dict[str, tuple[str, ...]] = {}
    for node in root.named_children:
        if node.type in TYPES:
            _add_type(path, node, source, "", True, symbols, supertypes)
    symbols = symbols[:1] + _numbered(sorted(symbols[1:], key=lambda s: (s.start, -s.end)))
    package = next((node for node in root.named_children if node.type == "package_declaration"), None)
    names = _WORD.findall(text(package, source).partition("package")[2]) if package is not None else []
    return JavaModule(
        path=path,
        source=source,
        symbols=tuple(symbols),
        has_error=root.has_error,
        package=".".join(names),
        imports=tuple(_imports(root, source)),
        references=tuple(_references(root, source, symbols)),
        definitions=tuple(_members(path, root, source, {(s.start, s.end): s.qualname for s in symbols[1:]})),
        types_of_names=_types_of_names(root, source),
        supertypes=supertypes,
    )


# ------------------------------------------------------------------------------------------- symbols
def _add_type(
    path: str,
    node: Node,
    source: bytes,
    holder: str,
    is_public: bool,
    symbols: list[Symbol],
    supertypes: dict[str, tuple[str, ...]],
) -> None:
    name = name_of(node, source)
    qualname = f"{holder}.{name}" if holder else name
    of_interface = bool(symbols) and node.parent is not None and node.parent.type == "interface_body"
    is_public = is_public and (of_interface or has_modifier(node, "public", "protected"))
    symbols.append(_type(path, node, source, qualname, is_public))
    supertypes[qualname] = tuple(_supertypes(node, source))
    in_interface = node.type in {"interface_declaration", "annotation_type_declaration"}
    for member in members_of(node):
        if member.type in TYPES:
            _add_type(path, member, source, qualname, is_public, symbols, supertypes)
        elif member.type in FUNCTIONS and member.child_by_field_name("body") is not None:
            visible = is_public and (in_interface or has_modifier(member, "public", "protected"))
            symbols.append(_function(path, member, source, qualname, visible))


def _supertypes(node: Node, source: bytes) -> Iterator[str]:
    kinds = {"superclass", "super_interfaces", "extends_interfaces"}
    for child in node.children:
        if child.type in kinds:
            yield from (text(leaf, source) for leaf in descendants(child) if leaf.type == "type_identifier")


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


def _function(path: str, node: Node, source: bytes, holder: str, is_public: bool) -> Symbol:
    body = node.child_by_field_name("body")
    assert body is not None
    inside = statements(body)
    first = inside[0] if inside else None
    return Symbol(
        path=path,
        qualname=f"{holder}.{name_of(node, source)}",
        kind=SymbolKind.METHOD,
        start=node.start_byte,
        end=node.end_byte,
        body_start=first.start_byte if first else node.end_byte,
        code_start=first.start_byte if first else node.end_byte,
        start_line=node.start_point[0] + 1,
        end_line=node.end_point[0] + 1,
        body_line=first.start_point[0] + 1 if first else 0,
        signature=_signature(node, body, source),
        docstring=documentation(node, source),
        decorators=annotations_of(node, source),
        is_public=is_public,
        loc=_loc(text(node, source)) if _has_own_code(node, inside) else 0,
        complexity=1 + sum(_is_branch(found) for found in descendants(body)),
    )


def _has_own_code(node: Node, statements_inside: Sequence[Node]) -> bool:
    """Whether a method has code that can be written again: a constructor, more than the call of another one, which
    stays."""
    return not is_constructor(node) or any(s.type != "explicit_constructor_invocation" for s in statements_inside)


def _type(path: str, node: Node, source: bytes, qualname: str, is_public: bool) -> Symbol:
    body = node.child_by_field_name("body")
    inside = statements(body) if body is not None else []
    first = inside[0] if inside else None
    return Symbol(
        path=path,
        qualname=qualname,
        kind=SymbolKind.CLASS,
        start=node.start_byte,
        end=node.end_byte,
        body_start=first.start_byte if first else node.end_byte,
        code_start=first.start_byte if first else node.end_byte,
        start_line=node.start_point[0] + 1,
        end_line=node.end_point[0] + 1,
        body_line=first.start_point[0] + 1 if first else 0,
        signature=_signature(node, body, source),
        docstring=documentation(node, source),
        decorators=annotations_of(node, source),
        is_public=is_public,
        loc=_loc(text(node, source)),
    )


def _numbered(symbols: list[Symbol]) -> list[Symbol]:
    """The symbols; of several with one name (overloads), all but the first have a number."""
    seen: dict[str, int] = {}
    found = []
    for symbol in symbols:
        seen[symbol.qualname] = count = seen.get(symbol.qualname, 0) + 1
        found.append(symbol if count == 1 else replace(symbol, qualname=f"{symbol.qualname}#{count}"))
    return found


def _is_branch(node: Node) -> bool:
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in {"&&", "||"}
    return node.type in BRANCHES


def _signature(node: Node, body: Node | None, source: bytes) -> str:
    """What stands before the body on one line, without annotations and comments."""
    modifiers = modifiers_of(node)
    words = [child.type for child in modifiers.children if not child.is_named] if modifiers is not None else []
    start = modifiers.end_byte if modifiers is not None else node.start_byte
    head = source[start : body.start_byte if body is not None else node.end_byte].decode("utf-8", "replace")
    head = re.sub(r"(?s)/\*.*?\*/|//[^\n]*", " ", head)
    return " ".join([*(word for word in words if not word.startswith("@")), *head.split()])


def _loc(code: str) -> int:
    """Lines that are neither blank nor comments."""
    code = re.sub(r"(?s)/\*.*?\*/", "", code)
    return sum(1 for line in code.splitlines() if (plain := line.strip()) and not plain.startswith("//"))


def documentation(node: Node, source: bytes) -> str:
    """The documentation comment of a declaration as plain text."""
    comments = [text(comment, source) for comment in comments_above(node)]
    comment = next((each for each in reversed(comments) if each.startswith("/**")), "")
    if not comment:
        return ""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment[3:-2].splitlines()]
    plain = re.sub(r"\{@(?:code|link|linkplain|literal|value)\s+([^{}]*)\}", r"\1", "\n".join(lines))
    plain = re.sub(r"</?(?:p|code|em|i|b|strong|pre|ul|ol|li|a|br|tt|blockquote|h\d)\b[^>]*>", "", plain)
    plain = plain.replace("{@inheritDoc}", "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    kept = [line.rstrip() for line in plain.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


# ------------------------------------------------------------------------------------------- members, imports
def _members(
    path: str, root: Node, source: bytes, symbols: dict[tuple[int, int], str], holder: str = ""
) -> Iterator[Member]:
    """The types below a node with their members, in order; ``symbols`` maps their bytes to their names."""
    nodes = members_of(root) if holder else (node for node in root.named_children if node.type in TYPES)
    for node in sorted(nodes, key=lambda each: each.start_byte):
        member = _member(path, node, source, symbols, holder)
        yield member
        if node.type in TYPES:
            yield from _members(path, node, source, symbols, member.qualname)


def _member(path: str, node: Node, source: bytes, symbols: dict[tuple[int, int], str], holder: str) -> Member:
    above = comments_above(node)
    first = (above[0] if above else node).start_byte
    start = source.rfind(b"\n", 0, first) + 1
    declared = [name_of(node, source)] if node.type in TYPES | FUNCTIONS else []
    declared += [name_of(child, source) for child in node.named_children if child.type == "variable_declarator"]
    names = tuple(filter(None, declared))
    body = node.child_by_field_name("body") if node.type in FUNCTIONS else None
    uses = dict(_words_in(node, source))
    qualname = symbols.get((node.start_byte, node.end_byte), f"{holder}.{names[0] if names else ''}")
    is_field = node.type not in TYPES | FUNCTIONS
    is_unique = names and (body is not None or node.type in TYPES or (is_field and qualname not in symbols.values()))
    visible = has_modifier(node, "public", "protected") or _is_in_interface(node)
    kinds = {**dict.fromkeys(TYPES, DefinitionKind.TYPE), **dict.fromkeys(FUNCTIONS, DefinitionKind.FUNCTION)}
    return Member(
        path=path,
        qualname=qualname if is_unique else f"{qualname}@{node.start_byte}",
        kind=kinds.get(node.type, DefinitionKind.VALUE),
        names=frozenset(names),
        start=first if source[start:first].strip() else start,
        code=node.start_byte,
        end=line_end(node.end_byte, source),
        uses=frozenset(uses),
        head=frozenset(word for word, at in uses.items() if body is None or at < body.start_byte),
        holder=holder,
        is_private=not visible,
        is_fixed=node.type in CONSTRUCTORS or not names or _is_state(node),
        node=node.type,
        annotations=tuple(re.split(r"[\s(]", each, maxsplit=1)[0] for each in annotations_of(node, source)),
        is_of_file=has_modifier(node, "private"),
    )


def _is_state(node: Node) -> bool:
    """Whether a declaration is one of fields that objects have: they go with their type alone."""
    return node.type == "field_declaration" and not has_modifier(node, "static")


def _is_in_interface(node: Node) -> bool:
    return node.parent is not None and node.parent.type in {"interface_body", "annotation_type_body"}


def _words_in(node: Node, source: bytes) -> Iterator[tuple[str, int]]:
    """The names in a definition without those of its members, and the words of its strings, with their first places;
    from the last one to the first."""
    inner = [(each.start_byte, each.end_byte) for each in members_of(node)] if node.type in TYPES else []
    for leaf in reversed(list(descendants(node))):
        if any(start <= leaf.start_byte < end for start, end in inner):
            continue
        if leaf.type in NAMES:
            yield text(leaf, source), leaf.start_byte
        elif leaf.type in _STRINGS:
            yield from ((word, leaf.start_byte) for word in _WORD.findall(text(leaf, source)))


def _imports(root: Node, source: bytes) -> Iterator[JavaImport]:
    for node in root.named_children:
        if node.type == "import_declaration":
            words = text(node, source).removeprefix("import").rstrip("; \t\r\n").split()
            path = "".join(word for word in words if word != "static")
            yield JavaImport(
                path=path.removesuffix(".*"),
                is_wildcard=path.endswith(".*"),
                is_static="static" in words,
                start=source.rfind(b"\n", 0, node.start_byte) + 1,
                end=line_end(node.end_byte, source),
            )


# ------------------------------------------------------------------------------------------- references
def _references(root: Node, source: bytes, symbols: list[Symbol]) -> Iterator[Reference]:
    owners = [symbol for symbol in symbols if symbol.qualname]
    stack: list[Symbol] = []
    place = 0
    for leaf in descendants(root):
        if leaf.type not in NAMES or leaf.parent is None or _is_in_head(leaf):
            continue
        while stack and stack[-1].end <= leaf.start_byte:
            stack.pop()
        while place < len(owners) and owners[place].start <= leaf.start_byte:
            if owners[place].end > leaf.start_byte:
                stack.append(owners[place])
            place += 1
        while stack and stack[-1].end <= leaf.start_byte:
            stack.pop()
        if _is_declared_name(leaf):
            continue
        owner = stack[-1].qualname if stack else ""
        yield Reference(
            owner=owner,
            name=text(leaf, source),
            qualifier=_qualifier(leaf, source),
            num_arguments=_num_arguments(leaf),
        )


def _is_in_head(leaf: Node) -> bool:
    node: Node | None = leaf
    while node is not None and node.type in {"identifier", "scoped_identifier"}:
        node = node.parent
    return node is not None and node.type in {"package_declaration", "import_declaration"}


def _is_declared_name(leaf: Node) -> bool:
    """Whether a leaf is the name that its declaration gives."""
    parent = leaf.parent
    if parent is None or parent.type not in TYPES | FUNCTIONS | {"variable_declarator", "formal_parameter"}:
        return False
    name = parent.child_by_field_name("name")
    return name is not None and name.start_byte == leaf.start_byte


def _num_arguments(leaf: Node) -> int:
    """Number of arguments, where a leaf is the name of the method or class that its parent calls; else -1."""
    parent = leaf.parent
    field = {"method_invocation": "name", "object_creation_expression": "type"}.get(parent.type if parent else "")
    if parent is None or field is None or parent.child_by_field_name(field) != leaf:
        return -1
    given = parent.child_by_field_name("arguments")
    return sum(not child.type.endswith("comment") for child in given.named_children) if given is not None else -1


def _qualifier(leaf: Node, source: bytes) -> str:
    parent = leaf.parent
    if parent is None:
        return ""
    first = parent.child_by_field_name("object")
    if parent.type == "method_invocation" and parent.child_by_field_name("name") != leaf:
        return ""
    if parent.type == "scoped_type_identifier" and parent.named_children[0] != leaf:
        return text(parent.named_children[0], source).rpartition(".")[2]
    if parent.type == "method_reference" and parent.named_children[0] != leaf:
        first = parent.named_children[0]
    if first is None or first.start_byte == leaf.start_byte:
        return ""
    if first.type == "this":
        return ""
    return text(first, source) if first.type in NAMES else "?"


def _types_of_names(root: Node, source: bytes) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    kinds = {"local_variable_declaration", "field_declaration", "formal_parameter", "resource"}
    for node in descendants(root):
        if node.type not in kinds:
            continue
        kind = node.child_by_field_name("type")
        if kind is None:
            continue
        name = next((text(leaf, source) for leaf in descendants(kind) if leaf.type == "type_identifier"), "")
        declared = [name_of(child, source) for child in node.named_children if child.type == "variable_declarator"]
        for each in declared or [name_of(node, source)]:
            found[each].add(name)
    return {name: frozenset(types) for name, types in found.items()}


def is_constructor(node: Node) -> bool:
    """Whether a declaration is that of a constructor."""
    return node.type in CONSTRUCTORS
