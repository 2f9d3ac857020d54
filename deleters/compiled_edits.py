"""Edits of compiled languages: what each language adds to the deleters that they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from tree_sitter import Node, Tree

from excise.deleters.deletion_record import Changed, patch_of
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar
from excise.deleters.test_mentions import Mentions
from excise.errors import DeletionRefused
from excise.extractors.compiled_codebase import CompiledCodebase, CompiledModule, Definition
from excise.extractors.field_uses import FieldGrammar
from excise.protocols import EMPTY, Codebase
from excise.types import Feature, Symbol, SymbolKind

C = TypeVar("C", bound=CompiledCodebase[Any])


class BuildError(NamedTuple):
    """What a compiler says of one place."""

    path: str
    line: int
    """1-based."""
    text: str
    """The message, with what the compiler adds to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledEdits(Generic[C]):
    """The edits of one language."""

    language: str
    """Name of the language in messages."""
    codebase: type[C]
    """Class of its codebases."""
    parse_file: Callable[[str, bytes], CompiledModule]
    parse_tree: Callable[[bytes], Tree]
    body: Callable[[C, Node, Symbol, str], Edit]
    """The edit that gives a function, whose tree is given by its root, a body of a kind of :data:`EMPTY`; ``raise`` is
    also the stub of a task. Raises :class:`DeletionRefused` if it has none."""
    tidied: Callable[[Any, bytes], bytes]
    """An edited file without what it only needed for what is gone, such as imports; the file before is given."""
    hide: Callable[[C, Iterable[str], Mentions], tuple[Changed, set[str]]]
    """(test files before and after, ids of the hidden tests) without some tests, and all that mentions what is gone."""
    mentions: Callable[[C, Sequence[Definition]], Mapping[str, list[Edit]]]
    """Edits of files that name what is gone where no code needs it: imports, exports, links in comments."""
    goes_whole: Callable[[C, str], bool]
    """Whether a file without definitions goes, when all of its definitions are gone."""
    documents_by_lines: bool = False
    """Whether ``//`` above a definition is its documentation."""
    build_errors: Callable[[str], Iterable[BuildError]]
    """What a compiler's output says."""
    parts: PartGrammar | None = None
    """How the language writes what tests should notice the lack of; without one, nobody looks whether they do."""
    returns: ReturnGrammar | None = None
    """How the language writes results of functions, for the deleters ``line`` and ``expression``."""
    fields: FieldGrammar | None = None
    """How the language writes fields of types; without one, types that stay keep all of theirs."""

    def own(self, codebase: object) -> C:
        """The codebase as one of this language. Raises :class:`DeletionRefused` for others."""
        if not isinstance(codebase, self.codebase):
            raise DeletionRefused(
                f"this deleter understands {self.language} codebases only", reason="unsupported_language"
            )
        return codebase

    def edited(self, codebase: C, edits: Mapping[str, Sequence[Edit]]) -> dict[str, tuple[bytes, bytes | None]]:
        """Path to (content before, content after) of files with edits.

        Raises :class:`DeletionRefused` if a file no longer parses.
        """
        changed: dict[str, tuple[bytes, bytes | None]] = {}
        for path, chosen in edits.items():
            module = codebase.modules[path]
            after = self.tidied(module, apply_edits(module.source, chosen))
            parsed = self.parse_file(path, after)
            if parsed.has_error and not module.has_error:
                raise DeletionRefused(f"{path}: would no longer parse", reason="syntax_error")
            if module.definitions and not parsed.definitions and self.goes_whole(codebase, path):
                changed[path] = (module.source, None)
            elif after != module.source:
                changed[path] = (module.source, after)
        return changed

    def edited_again(self, codebase: C, changed: Changed, edits: Mapping[str, Sequence[Edit]]) -> Changed:
        """Changed files, and others, after edits that take fields out of what they are then."""
        found = dict(changed)
        for path, chosen in edits.items():
            module = codebase.modules[path]
            before, now = changed.get(path, (module.source, module.source))
            edited = apply_edits(now or b"", chosen)
            after = self.tidied(module, self.fields.evened(now or b"", edited) if self.fields else edited)
            if self.parse_file(path, after).has_error and not module.has_error:
                raise DeletionRefused(f"{path}: would no longer parse", reason="syntax_error")
            found[path] = before, after
        return found

    def bodies(self, codebase: C, functions: Iterable[Symbol], kind: str) -> dict[str, list[Edit]]:
        """Path to the edits that give functions bodies of a kind; those that the language itself calls keep theirs."""
        by_path: dict[str, list[Symbol]] = defaultdict(list)
        for function in functions:
            if codebase.is_removable(function.symbol_id):
                by_path[function.path].append(function)
        edits = {}
        for path, chosen in by_path.items():
            root = self.parse_tree(codebase.modules[path].source).root_node
            edits[path] = [self.body(codebase, root, symbol, kind) for symbol in chosen]
        return edits

    def with_bodies(self, codebase: C, functions: Iterable[Symbol], kind: str) -> Changed:
        """The files whose functions get bodies of a kind. Raises :class:`DeletionRefused`."""
        return self.edited(codebase, self.bodies(codebase, functions, kind))

    def stand_ins(self, codebase: Codebase, symbol_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """(kind, patch) for each kind of stand-in; see :meth:`excise.protocols.CodeEditor.stand_ins`."""
        own = self.own(codebase)
        functions = functions_of(own, symbol_ids)
        return tuple((kind, patch_of(own, self.with_bodies(own, functions, kind))) for kind in EMPTY)


def functions_of(codebase: CompiledCodebase[Any], symbol_ids: Iterable[str]) -> list[Symbol]:
    """The functions with a body among symbols, and in types and files among them; without those inside others."""
    symbols, found = codebase.symbols(), dict[str, Symbol]()
    for symbol in (symbols[each] for each in symbol_ids if each in symbols):
        for other in codebase.modules[symbol.path].symbols:
            inside = symbol.start <= other.start and other.end <= symbol.end
            of_type = symbol.kind is SymbolKind.CLASS and other.holder_id == symbol.symbol_id
            if other.is_callable and (inside or of_type):
                found[other.symbol_id] = other
    outer: list[Symbol] = []
    for each in sorted(found.values(), key=lambda s: (s.path, s.start, -s.end)):
        if not outer or outer[-1].path != each.path or outer[-1].end <= each.start:
            outer.append(each)
    return outer


def chosen_symbols(codebase: CompiledCodebase[Any], feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The symbols of a feature, or ``only`` these. Raises :class:`DeletionRefused` if one cannot be deleted."""
    symbols = codebase.symbols()
    ids = [s for s in feature.symbols if only is None or s in only]
    if unknown := [s for s in ids if s not in symbols]:
        raise DeletionRefused(f"no such symbol: {unknown[0]}", reason="unknown_symbol")
    for symbol in map(symbols.__getitem__, ids):
        if codebase.is_test(symbol.path):
            raise DeletionRefused(f"{symbol.symbol_id} belongs to the tests", reason="symbol_in_tests")
        if codebase.modules[symbol.path].has_error:
            raise DeletionRefused(f"{symbol.path}: has syntax errors", reason="syntax_error")
    return [symbols[each] for each in ids]
