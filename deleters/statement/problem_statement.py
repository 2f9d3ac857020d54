"""Problem statements, written from signatures, docstrings, documentation and call sites, without a model.

A statement contains every name that the hidden tests use and the visible tree lacks, but none of the deleted code.
Further contents depend on the task's visibility:

=============  ==========  ==========  ====
level          signatures  docstrings  docs
=============  ==========  ==========  ====
``tests``      yes         yes         yes
``docstring``  yes         yes         yes
``signature``  yes         no          no
``behaviour``  names only  yes         yes
=============  ==========  ==========  ====

With ``tests``, the failing tests stay in the tree, and the statement says in which files they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from excise.deleters.code_editors import editor_of
from excise.deleters.edits.removed_parts import lines_of_parts, symbol_of_part
from excise.deleters.patches.patch_reader import parse_patch
from excise.deleters.statement.assignments import assigned_names, assignments
from excise.deleters.statement.descriptions import (
    BY_COMMENTS_INSIDE,
    barely_described,
    described,
    description,
    is_data,
    overridden,
    quoted,
    without_example,
)
from excise.deleters.statement.details import (
    PLACEHOLDERS,
    TIME_FORMAT,
    lines_by_symbol,
    locate_all,
    place_of,
)
from excise.deleters.statement.how_checked import how_checked
from excise.deleters.statement.lost_text import removed_text
from excise.deleters.statement.offered_names import also_importable
from excise.deleters.statement.project_docs import Quote, is_quoted, one_line, quotes, rendered
from excise.deleters.statement.spelling import (
    exported_by,
    kind_and_name,
    signature_or_path,
    unnumbered,
    without_parameters,
)
from excise.deleters.statement.test_assertions import assertions_of_tests
from excise.deleters.statement.test_words import FROM_TESTS, parts_of_tests, rows_of_tests, words_of_tests
from excise.deleters.statement.title import title
from excise.deleters.statement.uses import callers_of, registered, used, where_used, with_members
from excise.protocols import Codebase, Module, StatementWords
from excise.types import (
    CoverageMap,
    Deletion,
    GivenBy,
    Need,
    Repo,
    Symbol,
    SymbolKind,
    Visibility,
    name_in_file,
    path_of,
)

GUESSED_LINES = 2
"""Lines of a function up to which its name and its neighbours may say what it does."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that cannot be seen, such as those of a terminal's colours; they are written as in Python's literals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A problem statement, and what it gives."""

    text: str
    """The statement (Markdown)."""
    interface: str
    """One ``path: signature`` on each line."""
    needs: tuple[Need, ...]
    """The details that the tests need, each with the place where a solver finds it."""
    described_share: float
    """The share of the removed functions, by lines of code, that the project describes in words: from 0 to 1."""
    undescribed: tuple[str, ...]
    """Ids of the functions of more than :data:`GUESSED_LINES` lines that are not."""
    without_example: tuple[str, ...]
    """Ids of the functions whose descriptions show no example."""
    barely_described: tuple[str, ...]
    """Ids of the functions that only callers and comments in their code describe."""

    @property
    def untold_tests(self) -> frozenset[str]:
        """Tests that need a detail which only the code itself could give."""
        return frozenset(test for need in self.needs if need.given is GivenBy.ANSWER for test in need.tests)


def write_statement(
    codebase: Codebase,
    deletion: Deletion,
    repo: Repo,
    fail_to_pass: Sequence[str],
    visibility: Visibility = Visibility.DOCSTRING,
    *,
    documents: Mapping[str, str] | None = None,
    needs: Sequence[Need] = (),
    examples: Sequence[str] = (),
    tested: Mapping[str, Collection[str]] = MappingProxyType({}),
    compares_calls: bool = False,
    coverage: CoverageMap | None = None,
) -> Statement:
    """Write the problem statement.

    ``documents`` maps paths of the project's documentation to texts, see
    :func:`~excise.deleters.statement.project_docs.read_documents`. ``needs`` are the details that the tests need; those
    of tests in sight are given by the tree. ``examples`` are lines of code with results of the original,
    ``tested`` are ids of functions that parts of hidden tests describe, if these can be shown, to those tests.
    ``compares_calls``: graders compare what calls of hidden tests give. ``coverage`` tells the callers of a method from
    those of another one with its name.
    """
    symbols, words = codebase.symbols(), editor_of(repo.language).words
    removed = [symbols[s] for s in deletion.removed if s in symbols]
    callers = callers_of(codebase, removed)
    named = _words_of_tests(codebase, fail_to_pass)
    shown = _interface(codebase, removed, named, callers)
    partly = lines_of_parts(deletion.text) if deletion.deleter not in {"line", "expression"} else deletion.removed
    along = [symbols[i] for i, _ in deletion.text if i in symbols and i not in {*partly, *deletion.removed}]
    assigned = assigned_names(codebase, deletion, shown, words)
    listed = _with_overriding(codebase, removed, [*shown, *_used_along(deletion, along, shown, assigned.values())])
    gone = removed_text(documents or {}, codebase, [i for i, _ in deletion.text], deletion.source_patch)
    found = quotes(documents or {}, codebase, shown, [text for _, text in deletion.text])
    told = [*shown, *(s for symbol in removed for s in with_members(codebase, symbol) if is_data(codebase, s))]
    silent, share = described(codebase, list(dict.fromkeys(told)), found, named, callers)
    has_examples = bool(examples) or any(">>> " in symbol.docstring for symbol in removed)
    by_symbol = {s: tested[s.symbol_id] for s in shown if s.symbol_id in tested}
    unseen = set(fail_to_pass) & set(deletion.hidden) - set(deletion.shortened)
    plain = without_example(shown, found)
    rows = rows_of_tests(codebase, unseen, words, visibility, removed)
    checks = assertions_of_tests(codebase, unseen, words, visibility, removed, plain)
    rest = (
        _documented(found, gone, shown, visibility),
        where_used(codebase, removed, callers, deletion, words, coverage),
        registered(codebase, deletion, visibility),
        used(deletion),
        _examples(examples, words.fence),
        words_of_tests(codebase, unseen, visibility, removed),
        parts_of_tests(codebase, by_symbol, words, visibility, deletion.removed),
        rows,
        checks.removeprefix(f"{FROM_TESTS}\n\n") if rows else checks,
        also_importable(codebase, shown, assigned, deletion, words),
        how_checked(
            codebase, fail_to_pass, deletion, visibility, compares_calls=compares_calls, has_examples=has_examples
        ),
    )

    def written(details: Mapping[str, Sequence[str]]) -> str:
        parts = (
            title(codebase, repo, shown, deletion, words),
            _missing(codebase, deletion, listed, assigned, visibility, details, words),
            *rest,
        )
        text = "\n\n".join(part for part in parts if part) + "\n"
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)

    whole = [s for s in dict.fromkeys([*removed, *along]) if s.symbol_id not in partly]
    data = _data_lines(codebase, whole, listed, words, written({}))
    located = locate_all(needs, deletion, written(data), codebase)
    details = lines_by_symbol(located, listed, codebase)
    spelled = kind_and_name if visibility is Visibility.BEHAVIOUR else signature_or_path
    return Statement(
        text=written({place: [*details.get(place, ()), *data.get(place, ())] for place in {**details, **data}}),
        interface="\n".join(dict.fromkeys(f"{symbol.path}: {spelled(symbol)}" for symbol in shown)),
        needs=tuple(located),
        described_share=share,
        undescribed=tuple(symbol.symbol_id for symbol in silent if symbol.loc > GUESSED_LINES),
        without_example=tuple(symbol.symbol_id for symbol in plain),
        barely_described=tuple(symbol.symbol_id for symbol in barely_described(codebase, shown, found)),
    )


def _words_of_tests(codebase: Codebase, fail_to_pass: Sequence[str]) -> set[bytes]:
    files = {path_of(test) for test in fail_to_pass} & codebase.modules.keys()
    return {word for path in files for word in re.findall(rb"\w+", codebase.modules[path].source)}


def _interface(
    codebase: Codebase, removed: Sequence[Symbol], named: Collection[bytes], callers: Mapping[str, Collection[str]]
) -> list[Symbol]:
    """The removed public definitions, with members of classes, and those private ones that somebody needs.

    These are the hidden tests, by name, and callers that stayed.
    """
    chosen: dict[str, Symbol] = {}
    for symbol in removed:
        for inner in with_members(codebase, symbol):
            name = inner.name.partition("#")[0]
            made = name == "__init__" and inner.symbol_id.removesuffix(".__init__") in chosen
            is_needed = made or name.encode() in named or callers.get(inner.symbol_id)
            if inner.is_public or inner.symbol_id == symbol.symbol_id or is_needed:
                chosen.setdefault(inner.symbol_id, inner)
    return sorted(chosen.values(), key=lambda s: (s.path, s.start))


def _with_overriding(codebase: Codebase, removed: Sequence[Symbol], shown: Sequence[Symbol]) -> list[Symbol]:
    """What a statement shows, with private methods of removed classes that override methods of classes that stay."""
    gone = {inner.symbol_id: inner for symbol in removed for inner in with_members(codebase, symbol)}
    private = (s for s in gone.values() if not s.is_public and s not in shown and s.holder_id in gone)
    found = [s for s in private if (base := overridden(codebase, s)) is not None and base.symbol_id not in gone]
    return sorted([*shown, *found], key=lambda s: (s.path, s.start))


def _used_along(
    deletion: Deletion, along: Iterable[Symbol], shown: Collection[Symbol], assigned: Iterable[str]
) -> list[Symbol]:
    """The definitions that went along and that the lines name which are gone from code that stays, or the assignments
    that are shown."""
    lines = (*(text for _, text in deletion.uses), *assigned)
    words = {word for text in lines for word in re.findall(r"\w+", text)}
    return [each for each in along if each not in shown and each.name.partition("#")[0] in words]


def _missing(
    codebase: Codebase,
    deletion: Deletion,
    shown: Sequence[Symbol],
    assigned: Mapping[str, str],
    visibility: Visibility,
    details: Mapping[str, Sequence[str]],
    words: StatementWords,
) -> str:
    by_path: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in shown:
        by_path[symbol.path].append(symbol)
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for name, text in assigned.items():
        path, qualname = path_of(name), name_in_file(name)
        by_path.setdefault(path, [])
        names[path][qualname] = text
    lines, told = ["## What is missing"], set[str]()
    parts: dict[str, str] = defaultdict(str)
    for text_id, text in deletion.text:
        if (symbol_id := symbol_of_part(text_id)) != text_id:
            parts[symbol_id] += text
    emptied = {part.path for part in parse_patch(deletion.source_patch) if part.deletes}
    for path, symbols in by_path.items():
        whole = any(s.kind is SymbolKind.MODULE for s in symbols)
        note = " (the whole file)" if whole else " (the file is gone as well)" if path in emptied else ""
        lines.append(f"\n### `{path}`{note}")
        entries = (
            _head(symbol, visibility, codebase.modules[symbol.path], words)
            + _once(_docstring(symbol, visibility, codebase, parts.get(symbol.symbol_id, "")), told)
            + _detail_lines(details.get(symbol.symbol_id, ()))
            for symbol in symbols
        )
        lines += dict.fromkeys([*entries, *assignments(names[path], codebase.modules[path], visibility, words.fence)])
    written = [
        TIME_FORMAT.sub("", line)
        for each in details.values()
        for line in each
        if not line.startswith(("- Sorts", "- Writes"))
    ]
    if found := [each for mark, form in PLACEHOLDERS.items() for each in _as_written(mark, form, written)]:
        listed = " and ".join(filter(None, [", ".join(found[:-1]), found[-1]]))
        stand = "stands" if len(found) == 1 else "stand"
        lines.append(f"\nIn texts and messages, {listed} {stand} for what is filled in.")
    return "\n".join(lines)


def _as_written(mark: str, form: re.Pattern[str], lines: Sequence[str]) -> list[str]:
    """What stands for what is filled in, as the lines have it; by the general mark if they have several."""
    found = list(dict.fromkeys(match[0] for line in lines for match in form.finditer(line)))
    return [f"`{found[0]}`" if len(found) == 1 and not found[0].endswith("(") else mark] if found else []


def _data_lines(
    codebase: Codebase, removed: Sequence[Symbol], listed: Sequence[Symbol], words: StatementWords, told: str
) -> dict[str, list[str]]:
    """Id of a listed definition to the line with the data of the removed functions that stands below it."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for symbol in dict.fromkeys(inner for each in removed for inner in with_members(codebase, each)):
        data = words.data(codebase.modules[symbol.path], symbol)
        found[place_of(symbol.symbol_id, listed, codebase)].update({text: None for text in data if text not in told})
    return {
        place: ["- Data that it uses: " + ", ".join(f"`{text}`" for text in texts) + "."]
        for place, texts in found.items()
        if texts
    }


def _detail_lines(lines: Sequence[str]) -> str:
    """The lines of a definition's details, after a blank one."""
    return "".join(f"\n{line}" for line in ("", *lines)) if lines else ""


def _head(symbol: Symbol, visibility: Visibility, module: Module, words: StatementWords) -> str:
    if symbol.kind is SymbolKind.MODULE:
        return ""
    if visibility is Visibility.BEHAVIOUR:
        return f"\n{kind_and_name(symbol)}"
    marks = "".join(f"\n@{decorator}" for decorator in symbol.decorators)
    head = f"{marks}\n{words.declaration(module, symbol) or signature_or_path(symbol)}".strip()
    owner, condition = unnumbered(symbol.qualname.rpartition(".")[0]), words.condition(module, symbol)
    unnamed = words.unnamed(module) if owner else ""
    inner = owner.removeprefix(f"{unnamed}.") if unnamed else owner
    spelled = exported_by(symbol.path) if owner == unnamed else f"`{inner}`"
    places = [*([f"in {spelled}"] if owner else []), *([f"under `{condition}`"] if condition else [])]
    return f"\n```{words.fence}\n{head}\n```" + (f"\n({', '.join(places)})" if places else "")


def _docstring(symbol: Symbol, visibility: Visibility, codebase: Codebase, part: str) -> str:
    """The docstring, or the comment or the words of what it overrides in its place; ``part`` is all that is gone of a
    function, if some stays."""
    found = description(codebase, symbol, part)
    if not (found.lead or found.text) or visibility is Visibility.SIGNATURE:
        return ""
    docstring = without_parameters(found.text, [symbol]) if visibility is Visibility.BEHAVIOUR else found.text
    inside = f"\n\n{BY_COMMENTS_INSIDE}{quoted(found.inside)}" if found.inside else ""
    return f"\n{found.lead}".rstrip("\n") + quoted(docstring) + inside


def _once(description: str, told: set[str]) -> str:
    """A description; of one that several definitions inherit, or of comments that several have in their code, only
    whose it is from the second time on."""
    before, mark, comments = description.partition(BY_COMMENTS_INSIDE)
    if mark and comments in told:
        description = f"{before.rstrip()}\nThe comments in its code are those quoted above."
    told.add(comments)
    lead = description.partition(":\n")[0]
    if not lead.startswith("\nAs `") or description not in told:
        told.add(description)
        return description
    return f"{lead} (see above)."


def _documented(
    found: Sequence[Quote], gone: Mapping[str, str], shown: Sequence[Symbol], visibility: Visibility
) -> str:
    """The section with quotes of the project's documentation, and with what is ``gone`` from it."""
    if visibility is Visibility.SIGNATURE:
        return ""
    told = [" ".join(symbol.docstring.split()) for symbol in shown]
    found = [
        quote
        for quote in found
        if not is_quoted(quote, gone.get(quote.path, "")) and not any(quote.text in text for text in told)
    ]
    if visibility is Visibility.BEHAVIOUR:
        found = [replace(quote, text=without_parameters(quote.text, shown)) for quote in found]
        gone = {path: without_parameters(text, shown) for path, text in gone.items()}
    by_text: dict[str, list[str]] = {}
    for path, text in gone.items():
        by_text.setdefault(one_line(text), []).append(path)
    lost = [
        f"From {', '.join(f'`{path}`' for path in paths)} (removed from there as well; it need not be restored):\n"
        f"{quoted(gone[paths[0]])}"
        for paths in by_text.values()
    ]
    parts = [*([rendered(found)] if found else []), *lost]
    return "\n\n".join(["## What the documentation says", *parts]) if parts else ""


def _examples(lines: Sequence[str], fence: str) -> str:
    """The section with examples."""
    intro = f"## Examples\n\nCalls, and what the original code gave:\n\n```{fence}"
    return "\n".join([intro, *lines, "```"]) if lines else ""
