"""The deleter ``stub``: replaces function bodies and keeps names, parameters and comments above."""

from __future__ import annotations

from functools import partial

from excise.deleters.deletion_record import EditedFiles, build_deletion
from excise.deleters.javascript.hidden_tests import hide_tests
from excise.deleters.javascript.selection import body_text, require_javascript, symbols_to_delete
from excise.deleters.javascript.stand_ins import emptied, functions_of, stand_ins
from excise.deleters.javascript.unused_code import without_unused
from excise.errors import DeletionRefused
from excise.protocols import Codebase
from excise.types import Deletion, Feature


class Stub:
    """Replaces the bodies of functions and methods by ``throw new Error('not implemented')``."""

    name = "stub"
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
        javascript = require_javascript(codebase)
        wanted = [s.symbol_id for s in symbols_to_delete(javascript, feature, only)]
        functions = functions_of(javascript, wanted)
        if not functions:
            raise DeletionRefused("no function with a body to empty", reason="nothing_to_stub")
        kept = {symbol.qualname for symbol in functions}
        changed = {
            path: (before, without_unused(before, after, kept=kept) if after is not None else None)
            for path, (before, after) in emptied(javascript, functions, "raise").items()
        }
        hiding, hidden = hide_tests(javascript, hide or frozenset(feature.tests))
        files = EditedFiles(
            changed={**changed, **hiding},
            removed=[f.symbol_id for f in functions],
            hidden=hidden,
            text=[(f.symbol_id, body_text(javascript, f)) for f in functions],
            stubs_of=wanted,
        )
        made = partial(stand_ins, javascript)
        return build_deletion(
            javascript, feature, files, name=self.name, version=self.version, stand_ins=lambda ids: made(list(ids))
        )
