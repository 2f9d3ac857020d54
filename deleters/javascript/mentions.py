"""Comments and documents of a project in JavaScript lose what they say of removed functions, methods and classes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.lost_names import LeftSources, LostName, WithoutNames, without_lost_names
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.statement.project_docs import is_document
from excise.extractors.javascript.analysis.codebase import MANIFEST, JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import parse_tree
from excise.types import Symbol, SymbolKind

OF_THE_LANGUAGE = frozenset(
    (
        "add", "append", "apply", "assign", "bind", "call", "catch", "charAt", "charCodeAt", "clear", "close",
        "codePointAt", "concat", "constructor", "copyWithin", "create", "debug", "default", "defineProperty",
        "delete", "destroy", "emit", "end", "endsWith", "entries", "error", "every", "exec", "fetch", "fill",
        "filter", "finally", "find", "findIndex", "findLast", "flat", "flatMap", "forEach", "freeze", "from", "get",
        "has", "includes", "indexOf", "info", "isArray", "join", "json", "keys", "lastIndexOf", "length", "listen",
        "log", "map", "match", "matchAll", "name", "next", "normalize", "off", "once", "open", "padEnd", "padStart",
        "parse", "pause", "pipe", "pop", "push", "read", "reduce", "reduceRight", "reject", "remove", "repeat",
        "replace", "replaceAll", "resolve", "resume", "reverse", "send", "set", "shift", "slice", "some", "sort",
        "splice", "split", "startsWith", "stringify", "substring", "test", "then", "toFixed", "toJSON", "toLowerCase",
        "toString", "toUpperCase", "trim", "unshift", "valueOf", "values", "warn", "write",
    )
)  # fmt: skip
"""Methods of JavaScript's and node's own objects: documents may mean these."""


def left_sources(codebase: JavaScriptCodebase, changed: Changed) -> LeftSources:
    """The modules that stay, as a removal changes them, without tests, and changed declarations of types."""
    files = {path: module.source for path, module in codebase.modules.items()}
    left = {**files, **{path: after for path, (_, after) in changed.items()}}
    return LeftSources(
        {path: data for path, data in left.items() if data is not None and not codebase.is_test(path)}, parse_tree
    )


def without_mentions(codebase: JavaScriptCodebase, gone: Collection[Symbol], changed: Changed) -> WithoutNames:
    """The files that a removal of definitions changes, and documents, without text that names these.

    ``changed`` are the files that its edits change.
    """
    left = left_sources(codebase, changed)
    names = {name: left.have(name) for name in sorted({qualified_name(symbol)[-1] for symbol in gone})}
    untagged = {
        path: (before, after and _without_properties(after, names)) for path, (before, after) in changed.items()
    }
    documents = {
        path: data
        for path, data in sorted(codebase.others.items())
        if is_document(path) and not codebase.is_vendored(path)
    }
    objects = _names_of_package(codebase, documents)
    kept = {qualified_name(symbol)[-1] for symbol in codebase.symbols().values() if symbol not in gone}
    lost = [_lost_name(symbol, objects, kept) for symbol in gone]
    return without_lost_names(left_sources(codebase, untagged), lost, documents, untagged)


def _names_of_package(codebase: JavaScriptCodebase, documents: Mapping[str, bytes]) -> frozenset[str]:
    """The names by which documents call what the package exports: ``const box = require('boxes')``."""
    try:
        name = json.loads(codebase.others.get(MANIFEST, b"{}"))["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return frozenset()
    module = rb"['\"]%s['\"]" % re.escape(str(name).encode())
    forms = (
        rb"\b(?:const|let|var)\s+(\w{1,100})\s*=\s*require\(\s*%s" % module,
        rb"\bimport\s+(?:\*\s+as\s+)?(\w{1,100})\s+from\s+%s" % module,
    )
    texts = documents.values()
    return frozenset(name.decode() for form in forms for text in texts for name in re.findall(form, text))


def _lost_name(symbol: Symbol, objects: frozenset[str], kept: Collection[str]) -> LostName:
    *owners, name = qualified_name(symbol)
    return LostName(
        name=name,
        owners=frozenset(owners[-1:]) or objects,
        is_member=symbol.kind is SymbolKind.METHOD,
        is_common=name in OF_THE_LANGUAGE,
        is_only=name not in kept,
    )


def qualified_name(symbol: Symbol) -> list[str]:
    """The parts of the name of a definition, without the numbers that tell those of the same name apart."""
    return [part.partition("#")[0] for part in symbol.qualname.split(".")]


def _without_properties(source: bytes, names: Mapping[str, bool]) -> bytes:
    """A file whose comments lack ``@property {function} name - …`` for names that its code has no more; types that
    comments define keep names that other code has, as ``names`` say."""
    file = LeftSources({}, parse_tree)
    lost = [name for name in names if name.encode() in source and not file.has(source, name)]
    edits = [
        edit
        for node in file.comments(source)
        for name in lost
        if not names[name] or b"@typedef" not in source[node.start_byte : node.end_byte]
        for edit in _tags(node, source, name.encode())
    ]
    return apply_edits(source, edits)


def _tags(comment: Node, source: bytes, name: bytes) -> Iterator[Edit]:
    """The edits that take the tags of a property out of a comment, with the lines that go on with them."""
    text = source[comment.start_byte : comment.end_byte]
    head = rb"[ \t]*\*[ \t]*@prop(?:erty)?[ \t]+(?:\{[^{}\n]{0,200}\}[ \t]+)?\[?"
    tag = re.compile(head + rb"%s(?![\w$])" % re.escape(name))
    start = comment.start_byte
    is_lost = False
    for line in text.splitlines(keepends=True):
        goes_on = is_lost and re.match(rb"[ \t]*\*[ \t]*(?!@|/)\S", line) is not None
        is_lost = tag.match(line) is not None or goes_on
        if is_lost:
            closing = line.find(b"*/")
            yield Edit(start, start + len(line)) if closing < 0 else Edit(start, start + closing, b" ")
        start += len(line)
