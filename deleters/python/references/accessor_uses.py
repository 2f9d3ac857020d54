"""Uses of the setters and deleters of properties: assignments to an attribute that can still be read."""

from __future__ import annotations

from collections.abc import Iterator

from excise.deleters.python.references.dependent_paths import LaterUse
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.name_uses import LostBinding
from excise.extractors.python.analysis.parsed_file import Reference


def accessor_uses(remover: DependentRemover) -> Iterator[LaterUse]:
    """The uses in functions of sources of removed setters and deleters whose properties stay."""
    for symbol in remover.accessors:
        lost = LostBinding(symbol.path, without_numbers(symbol.qualname))
        if lost in remover.lost:
            continue
        found = {*remover.uses.later_references_to(lost), *remover.uses.likely_references_to(lost)}
        for path, ref in sorted(found):
            if ref.is_assigned and ref.chain.rpartition(".")[2] == lost.name and _is_left(remover, path, ref):
                yield LaterUse(lost, path, ref)


def _is_left(remover: DependentRemover, path: str, ref: Reference) -> bool:
    """Whether a reference is in a source that stays."""
    if remover.codebase.is_test(path) or remover.is_script(path):
        return False
    plan = remover.plans.get(path)
    return plan is None or not plan.is_removed(ref.start, ref.end)
