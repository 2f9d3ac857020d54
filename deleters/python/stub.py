"""The deleter ``stub``: replaces function bodies and keeps signatures and docstrings."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import EditedFiles
from excise.deleters.python.deletion_builder import (
    build_python_deletion,
    changed_files,
    empty_body_edits,
    require_python,
    symbols_to_delete,
)
from excise.deleters.python.edits.empty_bodies import functions_of, is_abstract
from excise.deleters.python.hidden_tests import hide_tests
from excise.deleters.python.probed_tests import ShorteningTests
from excise.deleters.python.references.dependent_removal import without_numbers
from excise.deleters.python.references.name_uses import LostBinding, use_index
from excise.deleters.python.references.unused_code import drop_unused_imports
from excise.deleters.python.shown_definitions import require_no_shown_definition
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parsed_file import Phase
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol

_MAKING_OBJECTS = frozenset({"__init__", "__new__", "__post_init__"})
"""Methods that a call of their class calls."""


class Stub(ShorteningTests):
    """Replaces the bodies of functions and methods by ``raise NotImplementedError``."""

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
        python = require_python(codebase)
        wanted = [s.symbol_id for s in symbols_to_delete(python, feature, only)]
        functions = [f for f in functions_of(python, wanted) if not f.is_overload and not is_abstract(f)]
        if not functions:
            raise DeletionRefused("no function with a body to empty", reason="nothing_to_stub")
        _require_no_import_time_call(python, functions)
        require_no_shown_definition(python, functions)
        names = {f.name.partition("#")[0] for f in functions}
        remover, hider = hide_tests(python, feature, hide, lambda test: self.parts.of(python, test, (), names))
        for path, edits in empty_body_edits(python, functions, "raise", keep_docstring=True).items():
            plan = remover.plan(path)
            for edit in edits:
                plan.empty_body(edit)
            drop_unused_imports(plan, remover.uses, remover.plans)
        files = EditedFiles(
            changed=changed_files(remover),
            removed=[f.symbol_id for f in functions],
            hidden=hider.hidden,
            shortened=hider.shortened_tests(),
            text=[(f.symbol_id, body_of(python, f)) for f in functions],
            stubs_of=wanted,
        )
        return build_python_deletion(python, feature, files, name=self.name, version=self.version)


def _require_no_import_time_call(codebase: PythonCodebase, functions: Iterable[Symbol]) -> None:
    """Raise :class:`DeletionRefused` if a module of the sources calls one of the functions while it is imported."""
    uses = use_index(codebase)
    for function in functions:
        if codebase.modules[function.path].source[function.start : function.end].lstrip().startswith(b"async "):
            continue  # a call makes a coroutine, which does nothing yet
        holder, _, name = without_numbers(function.qualname).rpartition(".")
        called = holder if name in _MAKING_OBJECTS else without_numbers(function.qualname)
        for path, ref in uses.references_to(LostBinding(function.path, called)):
            source = codebase.modules[path].source
            before, after = source[: ref.start].rstrip(b" "), source[ref.end : ref.end + 9].lstrip(b" ")
            is_called = after.startswith(b"(") or before.endswith(b"@")
            is_at_import = ref.phase is Phase.IMPORT and not (codebase.is_test(path) or uses.is_script(path))
            if is_called and is_at_import and ref.chain.rpartition(".")[2] == called.rpartition(".")[2]:
                line = source.count(b"\n", 0, ref.start) + 1
                raise DeletionRefused(
                    f"{path}:{line}: `{ref.chain}` is called while the module is imported",
                    reason="import_time_reference",
                )


def body_of(codebase: PythonCodebase, symbol: Symbol) -> str:
    """The source code of a function after its docstring."""
    source = codebase.modules[symbol.path].source
    return source[symbol.code_start : symbol.end].decode("utf-8", "replace")
