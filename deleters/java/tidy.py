"""Takes out of files what names code that is gone: imports that are no longer used, and links of documentation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.extractors.compiled_codebase import Definition, DefinitionKind
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import descendants, parse_tree
from excise.extractors.java.analysis.parsed_file import JavaModule, parse_file

_Overload: TypeAlias = tuple[str, str, tuple[str, ...]]
"""The type that has a function, its name, and the plain types of its parameters."""
_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$]*")
_NAMED = rb"([\w.]*)(?:#(\w+)(\([^()]*\))?)?"
_LINK = re.compile(rb"\{@link(?:plain)?\s+" + _NAMED + rb"(?:\s+([^{}]*))?\}")
_SEE = re.compile(
    rb"(?m)(?:^[ \t]*\*[ \t]*\n(?=[^\n]*\n[ \t]*\*/))?^[ \t]*\*?[ \t]*@see[ \t]+" + _NAMED + rb"(?![^\n]*\*/)[^\n]*\n"
)


def tidied(before: JavaModule, after: bytes) -> bytes:
    """The edited file ``after`` without the imports that it no longer uses, but did use ``before``.

    Imports of all members stay. A name that a comment has counts as used: documentation refers to types by it.
    """
    module = parse_file(before.path, after)
    used = _words(after, module)
    was_used = _words(before.source, before)
    gone = [each for each in module.imports if each.name and each.name in was_used and each.name not in used]
    return apply_edits(after, [Edit(each.start, each.end, b"") for each in gone]) if gone else after


def mentions(codebase: JavaCodebase, gone: Sequence[Definition]) -> Mapping[str, list[Edit]]:
    """Edits of the sources that name what is gone where no code needs it: imports, and links of documentation.

    A link becomes code, its label stays, and a line that only refers to what is gone goes.
    """
    keys = {each.key for each in gone}
    types = {name for each in gone if each.kind is DefinitionKind.TYPE for name in each.names}
    members = {(_holder(each), name) for each in gone if each.holder for name in each.names}
    members -= {
        (_holder(each), name)
        for path in {each.path for each in gone}
        for each in codebase.modules[path].definitions
        if each.key not in keys
        for name in each.names
    }
    names = {name for each in gone for name in each.names}
    staying = (each for each in codebase.definitions() if each.key not in keys and each.names & names)
    overloads = _overloads(codebase, gone) - _overloads(codebase, staying)
    lost_names = {*types, *(name for _, name in members), *(name for _, name, _ in overloads)}
    lost = {name.encode() for name in lost_names}
    edits: dict[str, list[Edit]] = defaultdict(list)
    for path, module in codebase.modules.items():
        if not codebase.is_test(path) and any(name in module.source for name in lost):
            edits[path] += _of_imports(codebase, module, types, members)
            edits[path] += _of_links(module, types, members, overloads)
    return {path: found for path, found in edits.items() if found}


def _holder(definition: Definition) -> str:
    return definition.holder.rpartition(".")[2].partition("#")[0]


def _of_imports(
    codebase: JavaCodebase, module: JavaModule, types: set[str], members: set[tuple[str, str]]
) -> Iterator[Edit]:
    for each in module.imports:
        holder = each.path.rpartition(".")[0].rpartition(".")[2]
        is_member = each.is_static and (holder, each.name) in members
        if codebase.is_own(each) and ((not each.is_static and each.name in types) or is_member or holder in types):
            yield Edit(each.start, each.end)


def _overloads(codebase: JavaCodebase, definitions: Iterable[Definition]) -> set[_Overload]:
    """The functions among definitions by the types of their parameters, as links of documentation tell them apart."""
    symbols = codebase.symbols()
    functions = (d for d in definitions if d.kind is DefinitionKind.FUNCTION and d.holder and d.key in symbols)
    known = [(each, symbols[each.key].signature) for each in functions]
    return {(_holder(each), name, _parameter_types(head)) for each, head in known for name in each.names}


def _of_links(
    module: JavaModule, types: set[str], members: set[tuple[str, str]], overloads: set[_Overload]
) -> Iterator[Edit]:
    own = {_simple(each.qualname) for each in module.symbols if not each.is_callable and each.qualname}

    def is_gone(match: re.Match[bytes]) -> bool:
        holder, name = _simple(match[1].decode()), (match[2] or b"").decode()
        places = [(each, name) for each in ({holder} if holder else own)]
        given = _types_in(match[3][1:-1].decode("utf-8", "replace")) if match[3] else ()
        named = {(*each, given) for each in places} if match[3] else set()
        return holder in types or not members.isdisjoint(places) or not overloads.isdisjoint(named)

    for match in filter(is_gone, _LINK.finditer(module.source)):
        label = b" ".join((match[4] or b"").split())
        plain = b".".join(filter(None, (match[1], (match[2] or b"") + (match[3] or b""))))
        yield Edit(match.start(), match.end(), label or b"{@code " + plain + b"}")
    for match in filter(is_gone, _SEE.finditer(module.source)):
        yield Edit(match.start(), match.end())


def _parameter_types(signature: str) -> tuple[str, ...]:
    """The plain names of the types of a function's parameters."""
    inside = descendants(parse_tree(f"class A {{ {signature} {{}} }}".encode()).root_node)
    given = next((each for each in inside if each.type == "formal_parameters"), None)
    found = []
    for each in given.named_children if given is not None else ():
        parts = [part for part in each.children if part.type not in {"modifiers", "variable_declarator", "identifier"}]
        found.append("".join((part.text or b"").decode() for part in parts))
    return tuple(map(_plain_type, found))


def _types_in(text: str) -> tuple[str, ...]:
    """The same of a link: ``String``, ``int[]`` of ``java.lang.String name, int... others``."""
    parts = re.sub(r"<[^<>]*>|\bfinal\b", "", text).split(",")
    return tuple(_plain_type(each.split()[0]) for each in parts if each.strip())


def _plain_type(name: str) -> str:
    without = re.sub(r"<.*>|\s", "", name).replace("...", "[]")
    return without.rpartition(".")[2]


def _simple(name: str) -> str:
    return name.rpartition(".")[2].partition("#")[0]


def _words(source: bytes, module: JavaModule) -> frozenset[str]:
    """All words of a file outside its imports."""
    rest, place = [], 0
    for each in module.imports:
        rest.append(source[place : each.start])
        place = each.end
    rest.append(source[place:])
    return frozenset(word.decode("utf-8", "replace") for word in _WORD.findall(b"\n".join(rest)))
