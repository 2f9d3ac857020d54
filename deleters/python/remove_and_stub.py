"""The deleter ``remove_and_stub``: deletes what no other code uses, and empties the bodies of the rest.

Features of several definitions are seldom used by nothing else. Where a function that stays uses a definition, its
removal would leave a name that is bound nowhere; so it keeps name, signature and docstring. What is deleted is what
these functions need: of definitions that have nothing to do with each other, no developer would empty some and delete
others.
"""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import USED_ELSEWHERE
from excise.deleters.python.deletion_builder import build_python_deletion, require_python, symbols_to_delete
from excise.deleters.python.edits.empty_bodies import functions_of, is_abstract
from excise.deleters.python.probed_tests import ShorteningTests
from excise.deleters.python.references.dependent_removal import without_numbers
from excise.deleters.python.references.name_uses import LostBinding
from excise.deleters.python.remove import Removal
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Codebase
from excise.types import Deletion, Feature, is_inside, name_in_file, path_of


class RemoveAndStub(ShorteningTests):
    """Deletes definitions like ``remove``, but for those that functions which stay use: their bodies are emptied."""

    name = "remove_and_stub"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`."""
        python = require_python(codebase)
        if feature.changed:
            raise DeletionRefused("a model has chosen what stays of it", reason="has_parts")
        wanted = [s.symbol_id for s in symbols_to_delete(python, feature, only)]
        kept: set[str] = set()
        while True:
            functions = [f for f in functions_of(python, sorted(kept)) if not f.is_overload and not is_abstract(f)]
            gone = frozenset(s for s in only or feature.symbols if not any(is_inside(s, holder) for holder in kept))
            hidden = hide or frozenset(feature.tests)
            removal = Removal(python, feature, gone, hidden, functions, parts=self.parts)
            files = removal.run()
            used = {_symbol_of(removal.remover.imported_from(use.lost), wanted) for use in removal.uses_left()}
            if not used:
                if files.uses_left:
                    path, text = next(iter(files.uses_left))
                    raise DeletionRefused(f"{path}: {text}", reason=USED_ELSEWHERE)
                if kept:
                    _require_helpers(python, gone, kept)
                return build_python_deletion(python, feature, files, name=self.name, version=self.version)
            if None in used or used <= kept:
                raise DeletionRefused("code that stays uses a name that nothing binds then", reason=USED_ELSEWHERE)
            kept.update(symbol for symbol in used if symbol is not None)
            if kept.issuperset(wanted):
                raise DeletionRefused("code that stays uses all of it", reason=USED_ELSEWHERE)


def _require_helpers(codebase: PythonCodebase, gone: Iterable[str], kept: Iterable[str]) -> None:
    """Raise :class:`DeletionRefused` if something is deleted that no emptied function needs, directly or not."""
    needed, left = set(kept), list(kept)
    while left:
        more = codebase.callees(left.pop()) - needed
        needed |= more
        left += more
    for symbol in sorted(gone):
        if not any(is_inside(symbol, each) or is_inside(each, symbol) for each in needed):
            raise DeletionRefused(f"{symbol} is no part of what stays as a stub", reason=USED_ELSEWHERE)


def _symbol_of(lost: LostBinding, symbols: Iterable[str]) -> str | None:
    """The one of the symbols that a lost binding is, or is in."""
    for symbol in symbols:
        name = without_numbers(name_in_file(symbol))
        if lost.path == path_of(symbol) and (not name or is_inside(lost.qualname, name)):
            return symbol
    return None
