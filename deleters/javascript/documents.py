"""Documents of a project in JavaScript lose what they say of removed functions, methods and classes."""

from __future__ import annotations

from collections.abc import Collection

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.document_text import GoneCode
from excise.deleters.documents.gone_names import GoneNames
from excise.deleters.documents.sections import shortened_documents
from excise.deleters.javascript.names_left import is_left, qualified_name
from excise.deleters.statement.project_docs import is_document
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.types import Symbol, SymbolKind

MIN_NAME = 3
"""Number of characters of a name from which on documents are searched for it."""
_OF_THE_LANGUAGE = frozenset(
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


def documents_without(codebase: JavaScriptCodebase, gone: Collection[Symbol], sources: Changed) -> Changed:
    """Path to (content before, content after) of documents without text about names that nothing has any more.

    ``sources`` are the source files that the removal changes.
    """
    dotted: set[str] = set()
    names: set[str] = set()
    methods: set[str] = set()
    for symbol in gone:
        *_, name = parts = qualified_name(symbol)
        if len(name) >= MIN_NAME and name not in _OF_THE_LANGUAGE and not is_left(codebase, name, sources):
            names.add(name)
            dotted.add(".".join(parts))
            methods.update({name} if symbol.kind is SymbolKind.METHOD else ())
    mentioned = GoneNames(tuple(sorted(names)), frozenset(dotted), frozenset(methods))
    documents = {path: data for path, data in sorted(codebase.others.items()) if is_document(path)}
    return shortened_documents(documents, GoneCode(mentioned, frozenset(dotted))) if names else {}
