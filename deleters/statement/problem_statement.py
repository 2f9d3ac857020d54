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

from excise.deleters.code_editors import editor_of
from excise.deleters.edits.removed_parts import lines_of_parts
from excise.deleters.patches.git_patches import touched
from excise.deleters.patches.patch_reader import parse_patch, removed_lines
from excise.deleters.statement.assignments import assigned_names, assignments, is_plain_data
from excise.deleters.statement.descriptions import (
    described,
    description,
    is_data,
    overridden,
    quoted,
    without_example,
)
from excise.deleters.statement.details import HAS_PLACEHOLDER, lines_by_symbol, locate, place_of, related_code
from excise.deleters.statement.how_checked import how_checked
from excise.deleters.statement.offered_names import also_importable
from excise.deleters.statement.project_docs import Quote, is_quoted, quotes, removed_text, rendered
from excise.protocols import Codebase, Module, StatementWords
from excise.types import (
    FILLED_IN,
    Deletion,
    GivenBy,
    Need,
    Repo,
    Symbol,
    SymbolKind,
    Visibility,
    is_inside,
    is_whole_file,
    name_in_file,
    path_of,
)

MAX_CALL_SITES = 6
"""Maximum number of call sites in a statement."""
MAX_CALL_SITE = 160
"""Maximum length of a line of code that is shown as one."""
GUESSED_LINES = 2
"""Lines of a function up to which its name and its neighbours may say what it does."""
_WITH_IMPORTS = "; imports that only this code used are gone as well"
_HOW_PARTS_ARE_GONE = {
    "path": "the branch that ran under the condition `{condition}` is missing",
    "proposed": "functions that are still there do less than they did, others may be missing",
    "remove_and_stub": "of some definitions only names and signatures are there, others are missing",
}
"""What a deleter of :data:`PARTLY_KEPT` did."""
_BEFORE_PARAMETERS = re.compile(r"^(?:async )?(?:def|class) \w+ ?(?:\[.*?\])?(?=\(|$)")


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
) -> Statement:
    """Write the problem statement.

    ``documents`` maps paths of the project's documentation to texts, see
    :func:`~excise.deleters.statement.project_docs.read_documents`. ``needs`` are the details that the tests need; those
    of tests in sight are given by the tree. ``examples`` are lines of code with results of the original.
    """
    symbols, words = codebase.symbols(), editor_of(repo.language).words
    removed = [symbols[s] for s in deletion.removed if s in symbols]
    callers = _callers(codebase, removed)
    named = _words_of_tests(codebase, fail_to_pass)
    shown = _interface(codebase, removed, named, callers)
    listed = _with_overriding(codebase, removed, shown)
    assigned = assigned_names(codebase, deletion, shown, words)
    gone = removed_text(documents or {}, codebase, [i for i, _ in deletion.text], deletion.source_patch)
    found = quotes(documents or {}, codebase, shown, [text for _, text in deletion.text])
    told = [*shown, *(s for symbol in removed for s in _with_members(codebase, symbol) if is_data(codebase, s))]
    silent, share = described(codebase, list(dict.fromkeys(told)), found, named, callers)
    rest = (
        _documented(found, gone, shown, visibility),
        _where_used(codebase, removed, callers, deletion),
        _registered(deletion),
        _used(deletion),
        _examples(examples, words.fence),
        also_importable(codebase, shown, assigned, deletion, words),
        how_checked(codebase, fail_to_pass, deletion, visibility),
    )

    def written(details: Mapping[str, Sequence[str]]) -> str:
        parts = (
            _title(codebase, repo, shown, deletion, words),
            _missing(codebase, deletion, listed, assigned, visibility, details, words),
            *rest,
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    partly = lines_of_parts(deletion.text) if deletion.deleter not in {"line", "expression"} else deletion.removed
    along = [symbols[i] for i, _ in deletion.text if i in symbols]
    whole = [s for s in dict.fromkeys([*removed, *along]) if s.symbol_id not in partly]
    data = _data_lines(codebase, whole, listed, words, written({}))
    located = locate(needs, written(data), related_code(codebase, deletion), codebase) if needs else []
    details = lines_by_symbol(located, listed, codebase)
    spelled = _bare if visibility is Visibility.BEHAVIOUR else _signature
    return Statement(
        text=written({place: [*details.get(place, ()), *data.get(place, ())] for place in {**details, **data}}),
        interface="\n".join(dict.fromkeys(f"{symbol.path}: {spelled(symbol)}" for symbol in shown)),
        needs=tuple(located),
        described_share=share,
        undescribed=tuple(symbol.symbol_id for symbol in silent if symbol.loc > GUESSED_LINES),
        without_example=tuple(symbol.symbol_id for symbol in without_example(shown, found)),
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
        for inner in _with_members(codebase, symbol):
            name = inner.name.partition("#")[0]
            made = name == "__init__" and inner.symbol_id.removesuffix(".__init__") in chosen
            is_needed = made or name.encode() in named or callers.get(inner.symbol_id)
            if inner.is_public or inner.symbol_id == symbol.symbol_id or is_needed:
                chosen.setdefault(inner.symbol_id, inner)
    return sorted(chosen.values(), key=lambda s: (s.path, s.start))


def _with_overriding(codebase: Codebase, removed: Sequence[Symbol], shown: Sequence[Symbol]) -> list[Symbol]:
    """What a statement shows, with private methods of removed classes that override methods of classes that stay."""
    gone = {inner.symbol_id: inner for symbol in removed for inner in _with_members(codebase, symbol)}
    private = (s for s in gone.values() if not s.is_public and s not in shown and s.holder_id in gone)
    found = [s for s in private if (base := overridden(codebase, s)) is not None and base.symbol_id not in gone]
    return sorted([*shown, *found], key=lambda s: (s.path, s.start))


def _with_members(codebase: Codebase, symbol: Symbol) -> Iterable[Symbol]:
    yield symbol
    if not symbol.is_callable:
        for inner in codebase.modules[symbol.path].symbols:
            if symbol.start <= inner.start and inner.end <= symbol.end and inner.symbol_id != symbol.symbol_id:
                yield inner


def _title(codebase: Codebase, repo: Repo, shown: Sequence[Symbol], deletion: Deletion, words: StatementWords) -> str:
    outer = [s for s in shown if s.symbol_id in deletion.removed]
    owned = {s.symbol_id: f"the {kind} of " for s in outer if (kind := _accessor(s))}
    names = list(
        dict.fromkeys(f"{owned.get(s.symbol_id, '')}`{_name_in_title(codebase, s, deletion.removed)}`" for s in outer)
    )
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    version = f" {repo.version}" if repo.version else ""
    if deletion.deleter == "expression":
        return (
            f"# Complete {listed}\n\nIn this checkout of {repo.repo}{version} one `return` of the code below is gone: "
            f"`{words.placeholder}` stands in its place. Return an expression with which the code does what is "
            "described here. Everything else in the project works and must keep working."
        )
    removed = removed_lines(deletion.source_patch)
    defining = {s.path for s in outer if s.kind is not SymbolKind.MODULE}
    unused = any(re.match(words.imports, line) for path in defining for line in removed.get(path, ()))
    if deletion.deleter in {"stub", "line"}:
        return (
            f"# Implement {listed}\n\nIn this checkout of {repo.repo}{version} the code below is only a stand-in: "
            f"names and signatures are there, what they do is gone{_WITH_IMPORTS if unused else ''}. Write it again so "
            "that it does what is described here. Everything else in the project works and must keep working."
        )
    if lines_of_parts(deletion.text):
        return (
            f"# Complete {listed}\n\nIn this checkout of {repo.repo}{version} the code below is there only in part: "
            f"{_how_parts_are_gone(deletion)}{_WITH_IMPORTS if unused else ''}. Write the rest again so that all of it "
            "does what is described here. Everything else in the project works and must keep working."
        )
    others = (codebase.modules.keys() & touched(deletion.source_patch)).difference(map(path_of, deletion.removed))
    also = ", together with the imports and exports that named it" if others else ""
    return (
        f"# Bring back {listed}\n\n{repo.repo}{version} used to offer what is described below; in this checkout it is "
        f"missing{also}{_WITH_IMPORTS if unused else ''}. Write it again, under the same names and in the same places. "
        "Everything else in the project works and must keep working."
    )


def _name_in_title(codebase: Codebase, symbol: Symbol, removed: Collection[str]) -> str:
    """The name of a definition; with its parameters where an overload of it stays."""
    name = _numberless(symbol.qualname)
    overloads = (each for each in codebase.modules[symbol.path].symbols if each.holder_id == symbol.holder_id)
    bare = _numberless(symbol.name)
    if not _accessor(symbol) and any(_numberless(o.name) == bare and o.symbol_id not in removed for o in overloads):
        parameters = re.search(rf"\b{re.escape(bare)}(\([^()]*\))", symbol.signature)
        return name + (parameters[1] if parameters else "")
    return name or symbol.path


def _accessor(symbol: Symbol) -> str:
    """``setter`` or ``deleter`` for one of a property, whose name it has; empty for other symbols."""
    return next((k for k in ("setter", "deleter") if any(d.endswith(f".{k}") for d in symbol.decorators)), "")


def _how_parts_are_gone(deletion: Deletion) -> str:
    return _HOW_PARTS_ARE_GONE[deletion.deleter].format(condition=deletion.feature.name.partition(": ")[2])


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
    emptied = {part.path for part in parse_patch(deletion.source_patch) if part.deletes}
    for path, symbols in by_path.items():
        whole = any(s.kind is SymbolKind.MODULE for s in symbols)
        note = " (the whole file)" if whole else " (the file is gone as well)" if path in emptied else ""
        lines.append(f"\n### `{path}`{note}")
        entries = (
            _head(symbol, visibility, codebase.modules[symbol.path], words)
            + _once(_docstring(symbol, visibility, codebase), told)
            + _detail_lines(details.get(symbol.symbol_id, ()))
            for symbol in symbols
        )
        lines += dict.fromkeys([*entries, *assignments(names[path], codebase.modules[path], visibility, words.fence)])
    if any(HAS_PLACEHOLDER.search(line) for each in details.values() for line in each):
        lines.append(f"\nIn texts and messages, `{FILLED_IN}`, `{{name}}` and `%s` stand for what is filled in.")
    return "\n".join(lines)


def _data_lines(
    codebase: Codebase, removed: Sequence[Symbol], listed: Sequence[Symbol], words: StatementWords, told: str
) -> dict[str, list[str]]:
    """Id of a listed definition to the line with the data of the removed functions that stands below it."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for symbol in dict.fromkeys(inner for each in removed for inner in _with_members(codebase, each)):
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
        return f"\n{_bare(symbol)}"
    marks = "".join(f"\n@{decorator}" for decorator in symbol.decorators)
    head = f"{marks}\n{words.declaration(module, symbol) or _signature(symbol)}".strip()
    owner = _numberless(symbol.qualname.rpartition(".")[0])
    return f"\n```{words.fence}\n{head}\n```" + (f"\n(in `{owner}`)" if owner else "")


def _docstring(symbol: Symbol, visibility: Visibility, codebase: Codebase) -> str:
    """The docstring, or the comment or the words of what it overrides in its place."""
    lead, docstring = description(codebase, symbol)
    if not docstring or visibility is Visibility.SIGNATURE:
        return ""
    if visibility is Visibility.BEHAVIOUR:
        docstring = _without_parameters(docstring, [symbol])
    return f"\n{lead}".rstrip("\n") + quoted(docstring)


def _once(description: str, told: set[str]) -> str:
    """A description; of one that several definitions inherit, only whose it is from the second time on."""
    lead = description.partition(":\n")[0]
    if not lead.startswith("\nAs `") or description not in told:
        told.add(description)
        return description
    return f"{lead} (see above)."


def _numberless(name: str) -> str:
    """A name without the numbers that tell definitions of the same name apart."""
    return re.sub(r"#\d+", "", name)


def _bare(symbol: Symbol) -> str:
    """Kind and name of a symbol, without its parameters."""
    if symbol.kind is SymbolKind.MODULE:
        return "module"
    name = _numberless(symbol.qualname)
    marks = {decorator.partition("(")[0].rpartition(".")[2] for decorator in symbol.decorators}
    kind = str(symbol.kind)
    if symbol.kind is SymbolKind.CLASS:
        bases = _parameters(symbol)[1:-1]
        return f"class `{name}`" + (f" (of `{bases}`)" if bases else "")
    if marks & {"property", "cached_property"}:
        kind = "property"
    elif accessor := _accessor(symbol):
        kind = f"{accessor} of property"
    elif marks & {"classmethod", "staticmethod"}:
        kind = "class method" if "classmethod" in marks else "static method"
    return f"{'async ' if symbol.is_async else ''}{kind} `{name}`"


def _parameters(symbol: Symbol) -> str:
    """The parameters of a function, such as ``(a, b=1)``, or the bases of a class."""
    rest = _BEFORE_PARAMETERS.sub("", symbol.signature)
    end = rest.rfind(" -> ") if " -> " in rest and symbol.is_callable else len(rest)
    return rest[: rest.rfind(")", 0, end) + 1]


def _without_parameters(text: str, symbols: Iterable[Symbol]) -> str:
    """The text without the signatures of ``symbols``, and without a first line that repeats the signature."""
    for symbol in symbols:
        name, parameters = _numberless(symbol.name), _parameters(symbol)
        if symbol.is_callable and len(parameters) > 2:
            own = re.sub(r"^\((?:self|cls)(?:, )?", "(", parameters)
            for spelled in {parameters, own} - {"()"}:
                text = text.replace(name + spelled, name)
            text = re.sub(rf"\A{re.escape(name)}\(.*\).*\n", "", text)
    return text


def _signature(symbol: Symbol) -> str:
    return symbol.signature or symbol.path


def _documented(
    found: Sequence[Quote], gone: Mapping[str, str], shown: Sequence[Symbol], visibility: Visibility
) -> str:
    """The section with quotes of the project's documentation, and with what is ``gone`` from it."""
    if visibility is Visibility.SIGNATURE:
        return ""
    found = [quote for quote in found if not is_quoted(quote, gone.get(quote.path, ""))]
    if visibility is Visibility.BEHAVIOUR:
        found = [replace(quote, text=_without_parameters(quote.text, shown)) for quote in found]
        gone = {path: _without_parameters(text, shown) for path, text in gone.items()}
    lost = [f"From `{path}`, where it is gone as well:\n{quoted(text)}" for path, text in gone.items()]
    parts = [*([rendered(found)] if found else []), *lost]
    return "\n\n".join(["## What the documentation says", *parts]) if parts else ""


def _where_used(
    codebase: Codebase, removed: Sequence[Symbol], callers: Mapping[str, Sequence[str]], deletion: Deletion
) -> str:
    """The section with call sites in the remaining code, which show how the removed code is used."""
    gone = {line.strip() for lines in removed_lines(deletion.source_patch).values() for line in lines}
    lines: list[str] = []
    for symbol in removed:
        for caller in callers.get(symbol.symbol_id, ()):
            line = _line_naming(codebase, caller, symbol)
            shown = f"- `{_numberless(caller)}`: `{line}`"
            if line and line not in gone and shown not in lines and len(lines) < MAX_CALL_SITES:
                lines.append(shown)
    return "## Where it is used\n\n" + "\n".join(lines) if lines else ""


def _registered(deletion: Deletion) -> str:
    """The section with calls and entries of tables that named the removed code, and files that only it read."""
    files = {each.path for each in parse_patch(deletion.source_patch) if each.deletes}
    found = [(path, text) for path, text in deletion.registrations if is_plain_data(text) or path in files]
    return _by_file(
        "## Where it was registered\n\nThese calls, entries of tables and files are gone as well.",
        [each for each in found if not any(_is_part(each, other) for other in found)],
    )


def _is_part(entry: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether a registration is told by another one of the same file and place, which is longer."""
    (path, text), (where, longer) = entry, other
    place, _, inner = text.partition(": ")
    return path == where and len(longer) > len(text) and longer.startswith(f"{place}: ") and inner in longer


def _used(deletion: Deletion) -> str:
    """The section with uses in functions that stay, whose branches are gone."""
    return _by_file(
        "## Where it was used\n\nThese functions are still there; what they did with it is gone as well.",
        [(path, text) for path, text in deletion.uses if "```" not in text],
    )


def _by_file(intro: str, found: Iterable[tuple[str, str]]) -> str:
    """A section that shows texts below the paths of their files; empty if there are none."""
    by_path: dict[str, list[str]] = defaultdict(list)
    for path, text in found:
        by_path[path].append(text)
    blocks = ["`{}`:\n\n```\n{}\n```".format(path, "\n".join(texts)) for path, texts in by_path.items()]
    return "\n\n".join([intro, *blocks]) if blocks else ""


def _callers(codebase: Codebase, removed: Sequence[Symbol]) -> dict[str, list[str]]:
    """Id of each removed symbol, and of each inside one, to its callers that stayed, without tests."""
    inner = {s.symbol_id: s for symbol in removed for s in _with_members(codebase, symbol)}
    found = {}
    for symbol_id in inner:
        callers = (c for c in codebase.callers(symbol_id) if c not in inner and not is_whole_file(c))
        found[symbol_id] = sorted(c for c in callers if not codebase.is_test(path_of(c)))
    return found


def _names_of(codebase: Codebase, symbol: Symbol) -> list[str]:
    """The names by which code refers to a symbol: of a module, those of its definitions."""
    if symbol.kind is not SymbolKind.MODULE:
        return [symbol.name.partition("#")[0]]
    return [s.name for s in codebase.modules[symbol.path].symbols if s.qualname and "." not in s.qualname]


def _line_naming(codebase: Codebase, caller: str, symbol: Symbol) -> str:
    """The line of a caller that uses a symbol most plainly; empty if there is none that a statement can show.

    Lines with a method's class come first, then calls of functions and methods of objects, then the first ones.
    """
    where = codebase.symbols()[caller]
    source = codebase.modules[where.path].source
    begin, end = (symbol.start, symbol.end) if is_inside(symbol.symbol_id, caller) else (where.end, where.end)
    text = (source[where.code_start : begin] + source[end : where.end]).decode(errors="replace")
    names = "|".join(map(re.escape, _names_of(codebase, symbol)))
    if not names:
        return ""
    is_method = symbol.kind is SymbolKind.METHOD  # else what is around it is a function
    owner = symbol.qualname.rpartition(".")[0].rpartition(".")[2].partition("#")[0] if is_method else ""
    lines = [line.strip() for line in text.splitlines() if re.search(rf"\b(?:{names})\b", line)]
    usable = [line for line in lines if len(line) <= MAX_CALL_SITE and "`" not in line and not line.startswith("#")]

    def plainness(line: str) -> tuple[bool, bool]:
        of_class = bool(owner) and re.search(rf"\b{re.escape(owner)}\b", line) is not None
        form = rf"\.(?:{names})\b" if owner else rf"(?<![.\w])(?:{names})\("
        return of_class, re.search(form, line) is not None

    return max(usable, key=plainness, default="")


def _examples(lines: Sequence[str], fence: str) -> str:
    """The section with examples."""
    intro = f"## Examples\n\nCalls, and what the original code gave:\n\n```{fence}"
    return "\n".join([intro, *lines, "```"]) if lines else ""
