"""Uses of removed code by its name alone, which no reference tells: fixtures as parameters, names in messages."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.documents import is_documented
from excise.deleters.python.references.remaining_words import paths_of_words, source_left
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.grammar import comments, of_types, parse_tree
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.types import Symbol, SymbolKind, path_of

_BUILT = re.compile(
    r"""\bgetattr\(\s*\w+(?:\.\w+){0,3}\s*,\s*f?(?P<quote>["'])(?P<text>[^"'\n]{2,60})(?P=quote)\s*(?P<more>[%+,)])"""
)
"""A call that looks for an attribute whose name is put together."""
_GIVEN = re.compile(rb"\bgetattr\(\s*\w+(?:\.\w+){0,3}\s*,\s*[a-z_]\w*\s*[,)]")
"""A call that looks for an attribute whose name is the value of a variable."""
_CLASS_NAME = re.compile(
    rb"""["'](\w+?)(?:%s)?["']\s*[+%][^\n]{0,60}\b__name__\b|f["'](\w+)\{[^\n]{0,60}\b__name__\b"""
)
"""The first part of a name of which the rest is that of a class."""
_IS_CODE = re.compile(r"_\w+|\w*(?:[a-z0-9]_[a-z0-9]|[a-z0-9][A-Z])\w*")
"""A name that is no word of English."""
_COLLECTED = re.compile(rb"\bgetmembers\(|\bdir\(\s*(?:self|cls|type\(self\))\s*\)|\b(?:self|cls)\.__dict__\b")
"""Code that collects the methods of a class by their names."""
AROUND = 40
"""Number of characters around a name that a message shows."""
MIN_CLASS_NAME = 4
"""Number of letters from which on objects are known by the names of their classes."""
_OWN_LOOKUP = re.compile(rb"\bgetattr\(\s*(?:self|cls)\s*,\s*[a-zA-Z_]\w*\s*[,)]")
"""A class that looks for its own attributes by names that it is given."""
_PLACE = re.compile(r"%s|\{[^{}]*\}")
"""Where a part of a name stands in a text."""


def is_fixture(symbol: Symbol) -> bool:
    """Whether pytest gives what a function returns to the functions that have a parameter of its name."""
    return any("fixture" in decorator for decorator in symbol.decorators)


def fixture_users(remover: DependentRemover, fixture: Symbol) -> Iterator[Symbol]:
    """The fixtures, and the tests, that stay and have a parameter of a removed fixture's name."""
    name = fixture.name.partition("#")[0]
    parameter = re.compile(rf"[(,]\s*{re.escape(name)}\s*[,:)=]")
    if any(map(is_fixture, staying(remover, name))):
        return  # another one of the same name
    for path in paths_of_words(remover.codebase).get(name, ()):
        for symbol in remover.codebase.modules[path].symbols:
            is_test = symbol.name.startswith("test") and remover.codebase.is_test(path)
            is_asking = symbol.is_callable and (is_test or is_fixture(symbol)) and parameter.search(symbol.signature)
            if is_asking and not _is_removed(remover, symbol):
                yield symbol


def comments_naming(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The comments and docstrings in sources that stay with a removed name that is no word of English, if nothing that
    stays has it: tables and notes from which no sentence could go."""
    if not (name := _code_name(remover, removed)):
        return
    word = re.compile(rb"(?<!\w)%s(?!\w)" % re.escape(name.encode()))
    for path, _ in _sources_with(remover, name):
        source = source_left(remover.codebase, remover.plans, path)
        if not word.search(source):
            continue
        root = parse_tree(source).root_node
        strings = (node for node in of_types(root, "string") if _is_statement(node))
        for node in itertools.chain(comments(root), strings):
            if found := word.search(node.text or b""):
                yield (node.text or b"")[max(0, found.start() - AROUND) : found.end() + AROUND].decode(errors="replace")


def strings_naming(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The texts in sources that stay, docstrings aside, with a removed name behind those of its module or class."""
    dotted = f"{remover.codebase.names.name_of(removed.path)}.{without_numbers(removed.qualname)}"
    if not removed.qualname or "." not in dotted:
        return
    owner, name = dotted.split(".")[-2:]
    pattern = re.compile(rf"(?<!\w){re.escape(dotted)}(?!\w)|(?<![\w.]){re.escape(owner)}\.{re.escape(name)}(?!\w)")
    for node in _texts_left(remover, name, f"{owner}.{name}"):
        text = (node.text or b"").decode(errors="replace")
        if pattern.search(text):
            yield text


def texts_with_name(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The texts in sources that stay, docstrings aside, which have the name of a removed definition among other words,
    if it is no word of English and nothing that stays has it: messages, and code that is put together."""
    if not (name := _code_name(remover, removed)):
        return
    pattern = re.compile(rf"(?:[\s(`'\"]|[\w)\]]\.){re.escape(name)}(?=[\s(`'\".,:;!?]|\Z)")
    for node in _texts_left(remover, name, name):
        for part in (each for each in node.named_children if each.type == "string_content"):
            text = (part.text or b"").decode(errors="replace")
            if (" " in text.strip() or "(" in text) and pattern.search(f" {text}"):
                yield text.strip()


def _code_name(remover: DependentRemover, removed: Symbol) -> str:
    """The name of a removed definition if it is no word of English and nothing that stays has it; else empty."""
    name = without_numbers(removed.qualname).rpartition(".")[2]
    is_left = not _IS_CODE.fullmatch(name) or any(True for _ in staying(remover, name))
    return "" if is_left else name


def _texts_left(remover: DependentRemover, word: str, text: str) -> Iterator[Node]:
    """The strings that stay in sources with a word and with a text, docstrings aside."""
    for path, module in _sources_with(remover, word):
        if module.has_error or text.encode() not in module.source:
            continue
        for node in of_types(parse_tree(module.source).root_node, "string"):
            if not _is_statement(node) and not remover.is_removed(path, node.start_byte, node.end_byte):
                yield node


def visitors_of(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The functions in sources that stay which are found by the name of a removed class: ``visit_Name``, where
    ``getattr`` gets ``"visit_" + type(node).__name__``."""
    name = without_numbers(removed.qualname)
    prefixes = _prefixes_of_class_names(remover.codebase) if removed.kind is SymbolKind.CLASS and name else ()
    if removed.kind is SymbolKind.METHOD:
        yield from _classes_visited(remover, name.rpartition(".")[2])
    for prefix in prefixes:
        defined = re.compile(rb"\bdef[ ]+(%s)[ ]*\(" % re.escape(f"{prefix}{name}".encode()))
        for path, module in _sources_with(remover, f"{prefix}{name}"):
            for found in defined.finditer(module.source):
                if not remover.is_removed(path, *found.span()):
                    yield found[1].decode()


def _classes_visited(remover: DependentRemover, method: str) -> Iterator[str]:
    """The classes that stay whose names are the rest of the name of a removed method, which finds it."""
    for prefix in _prefixes_of_class_names(remover.codebase):
        visited = method.removeprefix(prefix) if method.startswith(prefix) else ""
        is_of_python = visited[:1].isupper() and hasattr(ast, visited)
        own = (s for s in staying(remover, visited) if s.kind is SymbolKind.CLASS) if visited else ()
        if is_of_python or any(True for _ in own):
            yield visited


def looked_up_methods(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The class of a removed method that nothing calls by its name, if the class looks up its own methods by names."""
    holder = remover.codebase.symbols().get(removed.holder_id)
    if holder is None or removed.name.startswith("__"):
        return
    source = remover.codebase.modules[holder.path].source[holder.start : holder.end]
    name = without_numbers(removed.qualname).rpartition(".")[2]
    callers = [i for i in remover.codebase.callers(removed.symbol_id) if not remover.codebase.is_test(path_of(i))]
    if _OWN_LOOKUP.search(source) and not callers and not removed.docstring and re.search(r"[A-Z]|_", name):
        yield holder.qualname


def getattr_lookups(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The calls in sources that stay which look up the name of a removed method, if nothing else has the name."""
    name = without_numbers(removed.qualname).rpartition(".")[2]
    call = re.compile(rf"""\b(?:get|has|del)attr\([^,()\n]{{1,80}},\s*["']{re.escape(name)}["']""".encode())
    if any(True for _ in staying(remover, name)):
        return
    for path, module in _sources_with(remover, name):
        for found in call.finditer(module.source):
            if not remover.is_removed(path, *found.span()):
                yield found[0].decode(errors="replace")


def passed_names(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The arguments and items in sources that stay which are the name of a removed method: ``self.do("evict", tag)``,
    where code of the same file looks for attributes by variables; special methods are listed for other reasons."""
    name = without_numbers(removed.qualname).rpartition(".")[2]
    argument = re.compile(rb"""(?:[({,]|(?<![\w\])])\[)\s*(["'])%s\1\s*[\])},]""" % re.escape(name.encode()))
    for path, module in _sources_with(remover, name) if not name.startswith("__") else ():
        if _GIVEN.search(module.source):
            for found in argument.finditer(module.source):
                if not remover.is_removed(path, *found.span()):
                    yield found[0].decode(errors="replace")


def collected_names(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The texts in sources that stay which are the name of a removed method, if code of its file collects methods by
    their names."""
    name = without_numbers(removed.qualname).rpartition(".")[2]
    is_collected = _COLLECTED.search(remover.codebase.modules[removed.path].source) and not name.startswith("_")
    text = re.compile(rb"""(["'])%s\1""" % re.escape(name.encode()))
    for path, module in _sources_with(remover, name) if is_collected else ():
        for found in text.finditer(module.source):
            if not remover.is_removed(path, *found.span()):
                yield found[0].decode(errors="replace")


def named_objects(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The uses in sources that stay of a removed method of an object that is named like its class:
    ``self.connection.send``, ``self._first_token().kind``."""
    owner, _, name = without_numbers(removed.qualname).rpartition(".")
    klass = owner.rpartition(".")[2].strip("_").lower()
    call = rb"(?:\((?:[^()\n]|\([^()\n]{0,80}\)){0,200}\))"
    use = re.compile(rb"\b(\w+)(%s?)\.%s\b(?!\s*=[^=])" % (call, re.escape(name.encode())))
    for path, module in _sources_with(remover, name):
        for found in use.finditer(module.source):
            called = found[1].decode(errors="replace")
            is_named = len(klass) >= MIN_CLASS_NAME and called.replace("_", "").lower().endswith(klass)
            is_object = found[2] if called == owner.rpartition(".")[2] else is_named
            if is_object and not remover.is_removed(path, *found.span()):
                yield found[0].decode(errors="replace")


def dispatch_keys(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The words in sources that stay from which the name of a removed method is built to find it: ``"rst"`` in a table,
    for ``getattr(self, f"write_{kind}")``."""
    codebase, name = remover.codebase, without_numbers(removed.qualname).rpartition(".")[2]
    found = (built.fullmatch(name) for built in _built_names(codebase))
    for part in sorted({match[1] for match in found if match}):
        word = re.compile(rf"""(["'])(?:{re.escape(part)}|{re.escape(part.upper())})\1""".encode())
        forms = (part, part.upper())
        if re.search(r"\d", part) and any(is_documented(codebase, form) for form in forms):  # a code, as E722
            yield part
            continue
        for path in dict.fromkeys(path for form in forms for path in paths_of_words(codebase).get(form, ())):
            places = word.finditer(codebase.modules[path].source) if not codebase.is_test(path) else ()
            if any(not remover.is_removed(path, *place.span()) for place in places):
                yield part
                break


_INDICES: WeakKeyDictionary[PythonCodebase, list[re.Pattern[str]]] = WeakKeyDictionary()
_PREFIXES: WeakKeyDictionary[PythonCodebase, list[str]] = WeakKeyDictionary()


def _prefixes_of_class_names(codebase: PythonCodebase) -> list[str]:
    """What sources put before the name of a class to find a function."""
    if codebase not in _PREFIXES:
        sources = (
            module.source
            for path, module in codebase.modules.items()
            if b"__name__" in module.source and b"getattr(" in module.source and not codebase.is_test(path)
        )
        found = (match for source in sources for match in _CLASS_NAME.finditer(source))
        _PREFIXES[codebase] = sorted({(match[1] or match[2]).decode(errors="replace") for match in found})
    return _PREFIXES[codebase]


def _built_names(codebase: PythonCodebase) -> list[re.Pattern[str]]:
    """The names of attributes that sources put together of a text and one word, which is the group."""
    if codebase not in _INDICES:
        found: set[str] = set()
        for path, module in codebase.modules.items():
            if b"getattr(" not in module.source or codebase.is_test(path):
                continue
            for built in _BUILT.finditer(module.source.decode(errors="replace")):
                text = built["text"] + ("{}" if built["more"] == "+" else "")
                pieces = [re.escape(piece) for piece in _PLACE.split(text)]
                found.update([r"(\w+)".join(pieces)] if len(pieces) == 2 and any(pieces) else ())
        _INDICES[codebase] = [re.compile(each) for each in sorted(found)]
    return _INDICES[codebase]


def staying(remover: DependentRemover, name: str) -> Iterator[Symbol]:
    """The definitions of a name that stay."""
    for path in paths_of_words(remover.codebase).get(name, ()):
        for symbol in remover.codebase.modules[path].symbols:
            if symbol.name == name and not _is_removed(remover, symbol):
                yield symbol


def _sources_with(remover: DependentRemover, word: str) -> Iterator[tuple[str, PythonModule]]:
    """The files with a word that a removal edits: no tests, no copies of other projects, no scripts."""
    codebase = remover.codebase
    for path in paths_of_words(codebase).get(word, ()):
        if not (codebase.is_test(path) or codebase.is_vendored(path) or remover.is_script(path)):
            yield path, codebase.modules[path]


def _is_statement(text: Node) -> bool:
    parent = text.parent
    while parent is not None and parent.type == "concatenated_string":
        parent = parent.parent
    return parent is not None and parent.type == "expression_statement"


def _is_removed(remover: DependentRemover, symbol: Symbol) -> bool:
    return remover.is_removed(symbol.path, symbol.start, symbol.end)
