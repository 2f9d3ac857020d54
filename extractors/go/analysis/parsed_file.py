"""One parsed Go file: its symbols, imports, declarations, and what each definition refers to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.compiled_codebase import CompiledModule, Definition, DefinitionKind
from excise.extractors.go.analysis.assignments import assignments_in
from excise.extractors.go.analysis.grammar import (
    BRANCHES,
    DECLARATIONS,
    FUNCTIONS,
    NAMES,
    descendants,
    names_in,
    parse_tree,
    statements,
    text,
)
from excise.types import Symbol, SymbolKind

_MAJOR = re.compile(r"v\d+")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoImport:
    """One imported package."""

    path: str
    """Import path."""
    name: str
    """The name that the file gives it; empty if it gives none. ``_`` and ``.`` have their own meaning."""
    start: int
    """First byte of its line or declaration, as far as that goes with it."""
    end: int
    """One past the last byte of that."""

    @property
    def used_names(self) -> frozenset[str]:
        """The names under which the file may use the package, as far as its path tells."""
        if self.name:
            return frozenset({self.name})
        parts = self.path.split("/")
        last = parts[-2] if len(parts) > 1 and _MAJOR.fullmatch(parts[-1]) else parts[-1]
        last = re.sub(r"\.v\d+$", "", last)
        guesses = {last, last.removeprefix("go-"), last.removesuffix("-go"), last.removeprefix("golang-"), parts[-1]}
        return frozenset(guess.replace("-", "") for guess in guesses) | frozenset(filter(_PLAIN.fullmatch, guesses))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A use of a name."""

    owner: str
    """Qualified name of the definition that it is in; empty at the level of the file."""
    name: str
    """The name."""
    qualifier: str
    """What stands before the dot, if that is a plain name; ``?`` for anything else; empty without a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModule(CompiledModule):
    """One parsed Go file."""

    package: str
    """Name in the package clause."""
    imports: tuple[GoImport, ...]
    """Imported packages in order."""
    references: tuple[Reference, ...]
    """Uses of names, in order."""


@lru_cache(maxsize=32)
def parse_file(path: str, source: bytes) -> GoModule:
    """Parse the content of a Go file."""
    root = parse_tree(source).root_node
    symbols = [_module_symbol(path, source)]
    for node in root.named_children:
        if node.type in FUNCTIONS and (found := _function(path, node, source)) is not None:
            symbols.append(found)
        elif node.type == "type_declaration":
            symbols += (_type(path, spec, node, source) for spec in node.named_children if spec.type == "type_spec")
    symbols = symbols[:1] + _numbered(sorted(symbols[1:], key=lambda s: s.start))
    clause = next((node for node in root.named_children if node.type == "package_clause"), None)
    return GoModule(
        path=path,
        source=source,
        symbols=tuple(symbols),
        has_error=root.has_error,
        package=text(clause.named_children[0], source) if clause is not None and clause.named_children else "",
        imports=tuple(_imports(root, source)),
        references=tuple(_references(root, source, symbols)),
        definitions=tuple(_definitions(path, root, source, {s.start: s.qualname for s in symbols[1:]})),
    )


def receiver_of(node: Node, source: bytes) -> str:
    """Name of the type that a method belongs to."""
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return ""
    return next((text(leaf, source) for leaf in descendants(receiver) if leaf.type == "type_identifier"), "")


def name_of(node: Node, source: bytes) -> str:
    """Qualified name of a function or method: ``F`` or ``T.M``."""
    name = node.child_by_field_name("name")
    plain = text(name, source) if name is not None else ""
    receiver = receiver_of(node, source) if node.type == "method_declaration" else ""
    return f"{receiver}.{plain}" if receiver else plain


def is_exported(qualname: str) -> bool:
    """Whether every part of a name begins with a capital letter."""
    return all(part[:1].isupper() for part in qualname.split("."))


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


def _function(path: str, node: Node, source: bytes) -> Symbol | None:
    body, name = node.child_by_field_name("body"), name_of(node, source)
    if body is None or not name:
        return None
    inside = statements(body)
    first = inside[0] if inside else None
    return Symbol(
        path=path,
        qualname=name,
        kind=SymbolKind.METHOD if node.type == "method_declaration" else SymbolKind.FUNCTION,
        start=node.start_byte,
        end=node.end_byte,
        body_start=first.start_byte if first else node.end_byte,
        code_start=first.start_byte if first else node.end_byte,
        start_line=node.start_point[0] + 1,
        end_line=node.end_point[0] + 1,
        body_line=first.start_point[0] + 1 if first else 0,
        signature=_one_line(source[node.start_byte : body.start_byte]),
        docstring=comment_above(node, source),
        is_public=is_exported(name),
        loc=_loc(text(node, source)),
        complexity=1 + sum(_is_branch(found) for found in descendants(body)),
    )


def _type(path: str, spec: Node, declaration: Node, source: bytes) -> Symbol:
    name = spec.child_by_field_name("name")
    plain = text(name, source) if name is not None else ""
    alone = len(declaration.named_children) == 1
    whole = declaration if alone else spec
    kind = spec.child_by_field_name("type")
    head = kind.type.removesuffix("_type") if kind is not None and kind.type in _HEADS else ""
    signature = f"type {plain} {head}" if head else f"type {_one_line(source[spec.start_byte : spec.end_byte])}"
    return Symbol(
        path=path,
        qualname=plain,
        kind=SymbolKind.CLASS,
        start=whole.start_byte,
        end=whole.end_byte,
        body_start=spec.end_byte,
        code_start=spec.start_byte,
        start_line=whole.start_point[0] + 1,
        end_line=whole.end_point[0] + 1,
        body_line=0,
        signature=signature,
        docstring=comment_above(whole, source),
        is_public=is_exported(plain),
        loc=_loc(text(whole, source)),
    )


_HEADS = frozenset({"struct_type", "interface_type"})


def _numbered(symbols: list[Symbol]) -> list[Symbol]:
    """The symbols; of several with one name, such as ``init``, all but the first have a number."""
    seen: dict[str, int] = {}
    found = []
    for symbol in symbols:
        seen[symbol.qualname] = count = seen.get(symbol.qualname, 0) + 1
        found.append(symbol if count == 1 else _renamed(symbol, f"{symbol.qualname}#{count}"))
    return found


def _renamed(symbol: Symbol, qualname: str) -> Symbol:
    return replace(symbol, qualname=qualname)


def _is_branch(node: Node) -> bool:
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in {"&&", "||"}
    return node.type in BRANCHES


def _one_line(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())


def _loc(code: str) -> int:
    """Lines that are neither blank nor comments."""
    code = re.sub(r"(?s)/\*.*?\*/", "", code)
    return sum(1 for line in code.splitlines() if (plain := line.strip()) and not plain.startswith("//"))


def _comments_above(node: Node) -> list[Node]:
    """The comments directly above a node, without a blank line between, in order."""
    found: list[Node] = []
    line, above = node.start_point[0], node.prev_sibling
    while above is not None and (above.type == "comment" or not above.is_named):
        if above.type == "comment":
            if above.end_point[0] < line - 1 or above.end_point[0] == line:
                break
            before = above.prev_named_sibling
            if before is not None and before.end_point[0] == above.start_point[0]:
                break  # it stands behind code
            found.insert(0, above)
            line = above.start_point[0]
        above = above.prev_sibling
    return found


def comment_above(node: Node, source: bytes) -> str:
    """The documentation of a declaration, without the marks of comments and without directives."""
    lines: list[str] = []
    for comment in _comments_above(node):
        plain = text(comment, source)
        if plain.startswith("/*"):
            lines += [line.strip().removeprefix("*").strip() for line in plain[2:-2].splitlines()]
        elif not re.match(r"//(?:go:|\s*\+build|nolint|line )", plain):
            lines.append(plain[2:].removeprefix(" "))
    return "\n".join(lines).strip()


# ------------------------------------------------------------------------------------------- imports, references
def _imports(root: Node, source: bytes) -> Iterator[GoImport]:
    for declaration in (node for node in root.named_children if node.type == "import_declaration"):
        specs = [node for node in descendants(declaration) if node.type == "import_spec"]
        for spec in specs:
            path, name = spec.child_by_field_name("path"), spec.child_by_field_name("name")
            whole = declaration if len(specs) == 1 else spec
            start, end = _whole_lines(whole, source)
            yield GoImport(
                path=text(path, source).strip('"`') if path is not None else "",
                name=text(name, source) if name is not None else "",
                start=start,
                end=end,
            )


def _whole_lines(node: Node, source: bytes) -> tuple[int, int]:
    """The bytes of a node with the rest of its lines, as far as nothing else stands on them but a comment."""
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    if source[start : node.start_byte].strip():
        start = node.start_byte
    end = source.find(b"\n", node.end_byte)
    end = len(source) if end < 0 else end
    rest = source[node.end_byte : end].strip()
    is_comment = rest.startswith(b"//") or (rest.startswith(b"/*") and rest.find(b"*/") == len(rest) - 2)
    return (start, min(len(source), end + 1)) if not rest or is_comment else (start, node.end_byte)


def _references(root: Node, source: bytes, symbols: list[Symbol]) -> Iterator[Reference]:
    functions = sorted((s for s in symbols if s.qualname), key=lambda s: s.start)
    place = 0
    for leaf in descendants(root):
        if leaf.type not in NAMES or leaf.parent is None or leaf.parent.type == "package_clause":
            continue
        while place < len(functions) and functions[place].end <= leaf.start_byte:
            place += 1
        inside = place < len(functions) and functions[place].start <= leaf.start_byte
        owner = functions[place].qualname if inside else ""
        if _is_declared_name(leaf):
            continue
        yield Reference(owner=owner, name=text(leaf, source), qualifier=_qualifier(leaf, source))


def _is_declared_name(leaf: Node) -> bool:
    """Whether a leaf is the name that its declaration gives."""
    parent = leaf.parent
    if parent is None or parent.type not in FUNCTIONS | {"type_spec", "type_alias"}:
        return False
    name = parent.child_by_field_name("name")
    return name is not None and name.start_byte == leaf.start_byte


def _qualifier(leaf: Node, source: bytes) -> str:
    parent = leaf.parent
    if parent is None or parent.type not in {"selector_expression", "qualified_type"}:
        return "?" if leaf.type == "field_identifier" else ""
    first = parent.child_by_field_name("operand") or parent.child_by_field_name("package")
    if first is None or first.start_byte == leaf.start_byte:
        return ""
    return text(first, source) if first.type in {"identifier", "package_identifier"} else "?"


def _definitions(path: str, root: Node, source: bytes, symbols: dict[int, str]) -> Iterator[Definition]:
    """The definitions of a file without its imports; ``symbols`` maps first bytes of symbols to their names."""
    for node in root.named_children:
        if node.type in FUNCTIONS:
            yield _of_function(path, node, source, symbols)
        elif node.type in DECLARATIONS:
            specs = [spec for spec in descendants(node) if spec.type in _SPECS and _is_of(spec, node)]
            if len(specs) < 2 or _is_numbered(node, specs):
                yield _of_specs(path, node, specs, source)
            else:
                yield from (_of_specs(path, spec, [spec], source) for spec in specs)


_SPECS = {
    "type_spec": DefinitionKind.TYPE,
    "type_alias": DefinitionKind.TYPE,
    "const_spec": DefinitionKind.VALUE,
    "var_spec": DefinitionKind.VALUE,
}


def _is_of(spec: Node, declaration: Node) -> bool:
    """Whether a specification is one of a declaration of the file, and not of one in a function."""
    holder = spec.parent
    return holder == declaration or (holder is not None and holder.type == "var_spec_list")


def _is_numbered(declaration: Node, specs: list[Node]) -> bool:
    """Whether what a group declares depends on the order: without one of them, the values of others change."""
    constants = declaration.type == "const_declaration"
    return constants and any(
        spec.child_by_field_name("value") is None or any(leaf.type == "iota" for leaf in descendants(spec))
        for spec in specs
    )


def _of_function(path: str, node: Node, source: bytes, symbols: dict[int, str]) -> Definition:
    start, end = lines_with_comments(node, source)
    qualname, body = symbols.get(node.start_byte) or name_of(node, source), node.child_by_field_name("body")
    receiver, _, name = name_of(node, source).rpartition(".")
    called_by_go = not receiver and name in {"init", "main", "_"}
    return Definition(
        path=path,
        qualname=qualname,
        kind=DefinitionKind.FUNCTION,
        names=frozenset({name}),
        start=start,
        code=node.start_byte,
        end=end,
        uses=frozenset(names_in(node, source)),
        head=frozenset(_names_before(node, body, source)),
        about=frozenset({receiver} if receiver else ()),
        group="" if called_by_go else name_of(node, source),
        assignments=tuple(assignments_in(node, source)) if b"=" in source[node.start_byte : end] else (),
        is_private=not is_exported(name) and not called_by_go,
        is_fixed=called_by_go or body is None,
    )


def _names_before(node: Node, body: Node | None, source: bytes) -> Iterator[str]:
    end = body.start_byte if body is not None else node.end_byte
    return (text(leaf, source) for leaf in descendants(node) if leaf.type in NAMES and leaf.end_byte <= end)


def _of_specs(path: str, node: Node, specs: list[Node], source: bytes) -> Definition:
    start, end = lines_with_comments(node, source)
    names = [text(name, source) for spec in specs for name in spec.children_by_field_name("name") if name.is_named]
    uses = frozenset(names_in(node, source))
    plain = [name for name in names if name != "_"]
    is_type = specs[0].type in {"type_spec", "type_alias"} if specs else False
    return Definition(
        path=path,
        qualname=plain[0] if plain else f"_{node.start_byte}",
        kind=_SPECS[specs[0].type] if specs else DefinitionKind.VALUE,
        names=frozenset(plain),
        start=start,
        code=node.start_byte,
        end=end,
        uses=uses,
        head=uses,
        about=uses if names and not plain else frozenset(),
        group=plain[0] if is_type else "",
        is_private=bool(plain) and not any(map(is_exported, plain)),
        is_fixed=not names,
    )


def lines_with_comments(node: Node, source: bytes) -> tuple[int, int]:
    """The bytes of a declaration with the comments directly above it and the rest of its lines."""
    above = _comments_above(node)
    start = source.rfind(b"\n", 0, (above[0] if above else node).start_byte) + 1
    return start, _whole_lines(node, source)[1]
