"""The sections of a statement about uses of the removed code: by code that stays, and by what went with it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from excise.deleters.deletion_record import PLACE
from excise.deleters.patches.patch_reader import parse_patch, removed_lines
from excise.deleters.statement.assignments import is_plain_data
from excise.deleters.statement.place_names import places_of_name
from excise.deleters.statement.spelling import unnumbered
from excise.protocols import Codebase, StatementWords
from excise.types import CoverageMap, Deletion, Symbol, SymbolKind, Visibility, is_inside, is_whole_file, path_of

MAX_CALL_SITES = 6
"""Maximum number of call sites in a statement."""
MAX_CALL_SITE = 160
"""Maximum length of a line of code that is shown as one."""

_DEFINES = re.compile(r"(?:async\s+)?def\s+\w+\s*\(")
"""The beginning of a definition in Python."""
_PARAMETER = re.compile(r"([(,]\s*\*{0,2})\w+(?=\s*[:=,)])")
"""A parameter of a definition, behind what is before it."""
_IMPORT = re.compile(r"(?:from\s+\S+\s+import|import|(?:pub(?:\([^()]*\))?\s+)?use)\s")
"""The beginning of an import."""


def with_members(codebase: Codebase, symbol: Symbol) -> Iterable[Symbol]:
    """A definition and, if it is no function, those in it."""
    yield symbol
    if not symbol.is_callable:
        for inner in codebase.modules[symbol.path].symbols:
            if symbol.start <= inner.start and inner.end <= symbol.end and inner.symbol_id != symbol.symbol_id:
                yield inner


def callers_of(codebase: Codebase, removed: Sequence[Symbol]) -> dict[str, list[str]]:
    """Id of each removed symbol, and of each inside one, to its callers that stayed, without tests."""
    inner = {s.symbol_id: s for symbol in removed for s in with_members(codebase, symbol)}
    found = {}
    for symbol_id in inner:
        callers = (c for c in codebase.callers(symbol_id) if c not in inner and not is_whole_file(c))
        found[symbol_id] = sorted(c for c in callers if not codebase.is_test(path_of(c)))
    return found


def _is_another(symbol: Symbol, caller: str, line: str, coverage: CoverageMap | None) -> bool:
    """Whether the method that a line of a caller calls has only the name: tests execute both, but none the two; or the
    caller has name and type of the method, and calls it of another object, to which it passes the call on."""
    if symbol.kind is not SymbolKind.METHOD:
        return False
    name = re.escape(symbol.name.partition("#")[0])
    if re.search(rf"\b(?:self|cls|this|super\(\))\.{name}\b", line):
        return False
    if unnumbered(caller) == unnumbered(symbol.symbol_id) and re.search(rf"[\w)\]?]\.{name}\(", line):
        return True
    if coverage is None or symbol.name.startswith("_"):
        return False
    tests = [coverage.executing([each]) for each in (symbol.symbol_id, caller)]
    return all(tests) and tests[0].isdisjoint(tests[1])


def _names_of(codebase: Codebase, symbol: Symbol) -> list[str]:
    """The names by which code refers to a symbol: of a module, those of its definitions."""
    if symbol.kind is not SymbolKind.MODULE:
        return [symbol.name.partition("#")[0]]
    return [s.name for s in codebase.modules[symbol.path].symbols if s.qualname and "." not in s.qualname]


def _line_naming(codebase: Codebase, caller: str, symbol: Symbol, gone: Collection[str]) -> str:
    """The line of a caller that uses a symbol most plainly; empty if there is none that a statement can show.

    A call that goes on below is one line. Those in ``gone`` are not shown.

    Lines that name its place come first, then those with a method's class, then calls of functions and methods of
    objects, then the first ones; imports come last, and lines in which only parameters have the name are none.
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
    every = [line.strip() for line in text.splitlines()]
    named = re.compile(rf"\b(?:{names})\b")
    lines = [_whole_call(every[n:]) for n, line in enumerate(every) if named.search(line) and line not in gone]
    is_field = is_method and re.search(rf"\bself\.(?:{names})\b[^=\n]*[^=!<>\n]=[^=]", source.decode(errors="replace"))
    if is_field or (symbol.is_callable and where.path.endswith(".java")):  # something else may have its name
        call = re.compile(rf"\b(?:{names})\s*(?:<[^()]*>)?\s*\(|::(?:{names})\b")
        lines = [line for line in lines if call.search(line)]
    usable = [
        line for line in lines if len(line) <= MAX_CALL_SITE and "`" not in line and not line.startswith(("#", *")]}"))
    ]
    own, others = places_of_name(codebase, symbol)
    before = re.compile(rf"(?:\b(\w+)\s*(?:::|\.)\s*)?\b(?:{names})\b")
    usable = [line for line in usable if not others.issuperset(before.findall(line))]
    usable = [line for line in usable if named.search(_PARAMETER.sub(r"\1", line) if _DEFINES.match(line) else line)]
    alias = rf"\w+\s*=\s*(?:{names})\s*(?:#.*)?" if owner and is_inside(symbol.symbol_id, caller) else "(?!)"

    def plainness(line: str) -> tuple[bool, bool, bool]:
        if re.fullmatch(alias, line):
            return True, True, True
        of_class = bool(owner) and re.search(rf"\b{re.escape(owner)}\b", line) is not None
        form = rf"\.(?:{names})\b" if owner else rf"(?<![.\w])(?:{names})\("
        return not own.isdisjoint(before.findall(line)), of_class, re.search(form, line) is not None

    best = max(usable, key=lambda line: (_IMPORT.match(line) is None, *plainness(line)), default="")
    is_unbound = bool(owner) and where.path.endswith(".py") and not any(plainness(best))
    return "" if is_unbound else best  # in Python, a method is used of an object: ``str`` alone is another one


def _whole_call(lines: Sequence[str]) -> str:
    """The first line, with those below it up to the bracket that closes the first one which it leaves open."""
    joined = ""
    for line in lines:
        joined = re.sub(r",$", "", joined) if line[:1] in {")", "]", "}"} else joined
        joined += line if not joined or joined[-1] in "([{" or line[:1] in {")", "]", "}", "."} else f" {line}"
        if sum(map(joined.count, "([{")) <= sum(map(joined.count, ")]}")):
            return joined
        if len(joined) > MAX_CALL_SITE or joined.endswith("{") or "#" in line or "//" in line:  # a block, a comment
            break
    return lines[0]


def where_used(
    codebase: Codebase,
    removed: Sequence[Symbol],
    callers: Mapping[str, Sequence[str]],
    deletion: Deletion,
    words: StatementWords,
    coverage: CoverageMap | None = None,
) -> str:
    """The section with call sites in the remaining code, which show how the removed code is used.

    ``coverage`` tells those of a method from those of another one with its name.
    """
    gone = {line.strip() for lines in removed_lines(deletion.source_patch).values() for line in lines}
    lines: list[str] = []
    for symbol in removed:
        named = {caller: _line_naming(codebase, caller, symbol, gone) for caller in callers.get(symbol.symbol_id, ())}
        for caller, line in named.items():
            if any(line == other and inner != caller and is_inside(inner, caller) for inner, other in named.items()):
                continue  # what is in it says where
            if _is_another(symbol, caller, line, coverage) or words.is_foreign_use(codebase, symbol, caller, line):
                continue
            unnamed = words.unnamed(codebase.modules[path_of(caller)])
            named_as = (
                re.sub(rf"::{re.escape(unnamed)}(?:\.|$)", "::", caller).removesuffix("::") if unnamed else caller
            )
            shown = f"- `{unnumbered(named_as)}`: `{line}`"
            if line and shown not in lines and len(lines) < MAX_CALL_SITES:
                lines.append(shown)
    return "## Where it is used\n\n" + "\n".join(lines) if lines else ""


def registered(codebase: Codebase, deletion: Deletion, visibility: Visibility) -> str:
    """The section with calls, entries of tables and declarations that named the removed code, and files that only it
    read. Where signatures are not told, those of declarations beside the code (files that are not parsed) are cut."""
    files = {each.path for each in parse_patch(deletion.source_patch) if each.deletes}
    found = [
        (path, text)
        for path, text in deletion.registrations
        if is_plain_data(text.partition(PLACE)[0]) or path in files or text.startswith("if __name__")
    ]
    if visibility is Visibility.BEHAVIOUR:
        found = [(path, text if path in codebase.modules else text.partition("(")[0]) for path, text in found]
    whole = ", and so are these files" if any(path in files for path, _ in found) else ""
    return _by_file(
        f"## Where it was registered\n\nThese lines, which named it, are gone as well{whole}.",
        [each for each in found if not any(_is_part(each, other) for other in found)],
    )


def _is_part(entry: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether a registration is told by another one of the same file and place, which is longer."""
    (path, text), (where, longer) = entry, other
    place, _, inner = text.partition(": ")
    return path == where and len(longer) > len(text) and longer.startswith(f"{place}: ") and inner in longer


def used(deletion: Deletion) -> str:
    """The section with uses in functions that stay, whose branches are gone, and with fields of types that stay."""
    return _by_file(
        "## Where it was used\n\nThese lines are gone from code that is still there.",
        [(path, text) for path, text in deletion.uses if "```" not in text],
    )


def _by_file(intro: str, found: Iterable[tuple[str, str]]) -> str:
    """A section that shows texts below the paths of their files; empty if there are none."""
    by_path: dict[str, list[str]] = defaultdict(list)
    for path, text in found:
        by_path[path].append(text)
    blocks = ["`{}`:\n\n```\n{}\n```".format(path, "\n".join(texts)) for path, texts in by_path.items()]
    return "\n\n".join([intro, *blocks]) if blocks else ""
