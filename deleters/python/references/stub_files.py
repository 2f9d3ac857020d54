"""Stub files for type checkers (``.pyi``): what they declare of removed code goes with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.name_uses import LostBinding
from excise.deleters.python.references.remaining_words import count_words, words_of
from excise.deleters.python.references.unused_code import is_used_in
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.parsed_file import Import
from excise.extractors.python.analysis.parser import parse_module


def stub_files_without(remover: DependentRemover) -> tuple[dict[str, tuple[bytes, bytes | None]], list[str]]:
    """Path to (content before, content after) of the stub files that declare, import or export what is lost.

    A file stays as it is if other declarations in it need what is lost: the paths of such files come second.
    """
    found: dict[str, tuple[bytes, bytes | None]] = {}
    needing: list[str] = []
    others = remover.codebase.others
    for path in sorted(others.paths - remover.other_files.keys()):
        if not path.endswith(".pyi") or not (source := others.read(path)):
            continue
        plan = FilePlan(parse_module(path, source))
        if plan.module.has_error:
            continue
        lost = {*_declared(remover, plan), *_imported(remover, plan)}
        lost |= set(_other_names(plan, lost))
        _drop_callers(remover, plan)
        if not plan.is_changed:
            continue
        if _is_needed(plan, lost):
            needing.append(path)
            continue
        _drop_exports(plan, lost)
        _drop_private(plan)
        _drop_imports(plan)
        try:
            found[path] = source, plan.result()
        except DeletionRefused:
            continue
    return found, needing


def _declared(remover: DependentRemover, plan: FilePlan) -> Iterator[str]:
    """Remove the declarations of what is lost in the file beside; yield their names, those of members excluded."""
    beside = plan.path.removesuffix("i")
    for symbol in plan.module.symbols:
        if LostBinding(beside, without_numbers(symbol.qualname)) in remover.lost and symbol.qualname:
            plan.remove_span(symbol.start, symbol.end)
            if "." not in symbol.qualname:
                yield without_numbers(symbol.qualname)
    for binding in plan.module.bindings:
        name = f"{binding.klass}.{binding.name}" if binding.klass else binding.name
        if LostBinding(beside, name) in remover.lost and binding.name != "__all__":
            plan.remove_span(binding.start, binding.end)
            if not binding.klass:
                yield name


def _imported(remover: DependentRemover, plan: FilePlan) -> Iterator[str]:
    """Remove the imports of what is lost, and those that offer a name which the file beside has lost; yield the names
    that they bind."""
    names, beside = remover.codebase.names, plan.path.removesuffix("i")
    for record in plan.module.imports:
        if not record.name or record.name == "*":
            continue
        module = names.relative(record.level, record.module, beside) if record.level else None
        module = module or names.absolute(record.module, beside)
        submodule = names.submodule(module, record.name) if module else None
        is_lost = module is not None and LostBinding(module, record.name) in remover.lost
        is_lost |= _is_offered(record) and LostBinding(beside, record.bound) in remover.lost
        if is_lost or (submodule is not None and LostBinding(submodule, "") in remover.lost):
            plan.remove_clause(record)
            yield record.bound


def _other_names(plan: FilePlan, lost: Collection[str]) -> Iterator[str]:
    """Remove the assignments that give other names to what is lost, ``Old = New``; yield these names."""
    for binding in plan.module.bindings:
        text = plan.source[binding.start : binding.end].decode(errors="replace")
        value = text.partition("=")[2].strip()
        if not binding.klass and value in lost and not plan.is_removed(binding.start, binding.end):
            plan.remove_span(binding.start, binding.end)
            yield binding.name


def _drop_callers(remover: DependentRemover, plan: FilePlan) -> None:
    """Remove the functions whose bodies use what a module loses, ``pkg.name`` after ``import pkg``, with all their
    signatures."""
    beside, names = plan.path.removesuffix("i"), remover.codebase.names
    imported = {r.bound: names.absolute(r.module, beside) for r in plan.module.imports if not r.name and not r.level}
    for ref in plan.module.references:
        root, _, name = ref.chain.partition(".")
        module = imported.get(root)
        if module is None or LostBinding(module, name) not in remover.lost or not ref.owner:
            continue
        for symbol in plan.module.symbols:
            if symbol.is_callable and without_numbers(symbol.qualname) == without_numbers(ref.owner):
                plan.remove_span(symbol.start, symbol.end)


def _is_needed(plan: FilePlan, lost: set[str]) -> bool:
    """Whether a declaration that stays uses a name that is lost."""
    uses = (ref for ref in plan.module.references if ref.chain.partition(".")[0] in lost)
    return any(not plan.is_removed(ref.start, ref.end) for ref in uses)


def _drop_exports(plan: FilePlan, lost: set[str]) -> None:
    for entry in plan.module.exports:
        node = plan.node_at(entry.start, entry.end)
        if entry.name in lost and node.parent is not None and node.parent.type in {"list", "tuple"}:
            plan.remove_element(node.parent, node)


def _drop_private(plan: FilePlan) -> None:
    """Remove private names, type variables most of all, that only removed declarations used."""
    words = words_of(plan)
    for binding in plan.module.bindings:
        is_private = binding.name.startswith("_") and not binding.name.endswith("_") and not binding.klass
        if not is_private or binding.name not in words.removed or plan.is_removed(binding.start, binding.end):
            continue
        own = count_words(plan.source[binding.start : binding.end]).get(binding.name, 0)
        if words.kept.get(binding.name, 0) <= own:
            plan.remove_span(binding.start, binding.end)


def _drop_imports(plan: FilePlan) -> None:
    """Remove the imports that only removed declarations used."""
    words = words_of(plan)
    for record in plan.module.imports:
        is_used = record.name == "*" or _is_offered(record) or record.module == "__future__"
        if record not in plan.clauses and not is_used and record.bound in words.removed:
            own = count_words(plan.source[record.start : record.end]).get(record.bound, 0)
            if words.kept.get(record.bound, 0) <= own or not is_used_in(words.after, record.bound):
                plan.remove_clause(record)


def _is_offered(record: Import) -> bool:
    """Whether other files may import the name from here, as ``from a import b as b`` says."""
    return bool(record.alias) and record.alias == record.name
