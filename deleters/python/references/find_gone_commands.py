"""Commands that go with their entry points, or with ``__main__.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from excise.deleters.documents.gone_commands import GoneCommands
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.entry_points import SETUP, LostNames, scripts_in
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Symbol, SymbolKind

_SUBCOMMAND = re.compile(rb"@[\w.]+\.command\b(?:\(\s*(?:name\s*=\s*)?[\"']([\w-]+)[\"'])?")
"""A decorator of click or typer that makes a command, and the name that it may give it."""


def gone_commands(
    remover: DependentRemover,
    gone: Iterable[Symbol],
    changed: Mapping[str, tuple[bytes, bytes]],
    lost: LostNames,
) -> GoneCommands:
    """The commands that are gone; ``changed`` are the manifests that lose entry points, before and after."""
    codebase = remover.codebase
    manifests = {path: data for path, data in codebase.manifests.items() if not codebase.is_test(path)}
    setup = codebase.modules.get(SETUP)
    before = {name: entry for data in manifests.values() for name, entry in scripts_in(data)}
    left = {name for path, data in manifests.items() for name, _ in scripts_in(changed.get(path, (data, data))[1])}
    if setup is not None:
        found = dict(scripts_in(setup.source))
        before |= found
        left |= {name for name, entry in found.items() if not lost.has(f"{name} = {entry}")}
    mains = [path for path in codebase.modules if path.endswith("/__main__.py") and not codebase.is_test(path)]
    gone_mains = [path for path in mains if path in remover.plans and remover.plans[path].deleted]
    subcommands = {f"{script} {name}" for name in _subcommands(codebase, gone) for script in left}
    return GoneCommands(
        scripts=tuple(sorted((before.keys() - left) | subcommands)),
        modules=tuple(sorted(codebase.names.name_of(path).removesuffix(".__main__") for path in gone_mains)),
        packages=frozenset(_top_levels(map(codebase.names.name_of, codebase.modules))),
        is_last=bool(before or mains) and not left and len(gone_mains) == len(mains),
    )


def _subcommands(codebase: PythonCodebase, gone: Iterable[Symbol]) -> Iterator[str]:
    """The names of commands whose functions are gone, as click and typer make them."""
    for symbol in gone:
        if symbol.kind is SymbolKind.FUNCTION:
            head, _, _ = codebase.modules[symbol.path].source[symbol.start : symbol.end].partition(b"def ")
            if found := _SUBCOMMAND.search(head):
                yield found[1].decode() if found[1] else symbol.name.replace("_", "-")


def _top_levels(dotted: Iterable[str]) -> Iterable[str]:
    return (name.partition(".")[0].lower() for name in dotted)
