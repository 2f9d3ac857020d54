"""Which removed definitions the project describes: by docstrings, comments, documents, callers, conventions."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from excise.deleters.statement.base_classes import base_classes, class_of, defines
from excise.deleters.statement.project_docs import Quote, is_code
from excise.extractors.languages import scan_rules_of
from excise.protocols import Codebase, Inherited, Module
from excise.types import Symbol

MAX_DOC_CHARS = 8000
"""Maximum number of characters of one docstring."""
MIN_WORDS = 2
"""Minimum number of words, besides those of the code's own name, of a docstring or comment that says what it does."""
MIN_CLASS_WORDS = 10
"""Minimum number of words of a removed class's docstring that says what its methods do."""
MIN_COMMENT_WORDS = 6
"""Minimum number of words of the comments in a function's body that say what it does; at least one for each line."""
MAX_COMMENT_CHARS, COMMENT_CHARS_OF_LINE = 800, 60
"""Number of characters of these after which no more of them are quoted, or so many for each line of the function if
that is more."""
_STEP = re.compile(r"\d{1,2}[.)] ")
"""How a numbered step begins."""
MAX_GUARD_LINES = 8
"""Number of lines in which a condition and what follows are looked for."""
_PLAN = re.compile(r"(?:TODO|FIXME|XXX|HACK)\b|not sure\b|[^?\n]{0,300}\?(?: *not sure\b[^\n]*)?$")
"""How comments begin that say what code does not do, and lines of comments that ask."""
_PLACEHOLDER = re.compile(
    r"(?:(?:@\w+(?: +[\w<>.]+)?|:\w+(?: +[\w*]+)?:)[ \t]*)?(?:[-:][ \t]*)?"
    r"(?:(?:no |missing |the )?(?:description|documentation|docs?|javadoc|docstring|comment)s?"
    r"(?: is| are)? (?:omitted|missing|here|needed|required|pending|yet|available|provided|to (?:come|be \w+))"
    r"|no (?:description|documentation|javadoc|docstring|comment)s?(?: available| provided)?(?: yet)?"
    r"|(?:not |un)documented(?: yet)?|document me"
    r"|auto-?generated \w+ stub|(?:TODO|FIXME|TBD|XXX)\b.*)[.!…]*",
    re.IGNORECASE,
)
"""A line, without blanks at its ends, that says that there is no description, also of a parameter or a result."""
_FIELD = re.compile(
    r"(?::(?:returns?|rtype|type|param|yields?|ytype|var|ivar|cvar)\b[^:\n]{0,80}:"
    r"|@(?:return|rtype|param \w+|type \w+):?)"
)
"""A field of a docstring with nothing behind it."""
_DIRECTIVE = re.compile(
    r"\W*|(?:noqa|nosec|nolint|eslint|istanbul|c8|noinspection)\b.*"
    r"|(?:type|pragma|pylint|fmt|isort|mypy|ruff|pyright|flake8|yapf|pytype|docstr-coverage|interrogate|cspell|codespell):.*"
)
"""What comments say to tools, or rulers."""
_ON_TOOLS = re.compile(
    r"\b(?:coverage\.py|pylint|mypy|pyright|flake8|pyflakes|pycharm|eslint|istanbul|clippy|golint|checkstyle|findbugs)\b",
    re.IGNORECASE,
)
"""Tools that look at code, not at what it does: comments that name one explain why code is written as it is."""
_STATEMENT = re.compile(r"[)\w\]'\"];$|[;{]\s*\}?$|^\}")
"""The end of a line of code that is commented out, in a language with braces."""
_GUARD = re.compile(
    r"[ \t]*if\b(?:[^{}\n]{1,300}?\{|[^;{}\n]{1,300}?[):]|\s*\(\n[^;{}]{1,300}?\n\s*\)[ \t]*[{:]?)"
    r"\s*(?:return|throw|raise|continue|break)\b"
)
"""A condition under which code is left at once."""
_OF_ONE_LINE = re.compile(r"(?m)^([ \t]*)/\*+[ \t]*((?:[^*\n]|\*(?!/))*?)[ \t]*\**\*/[ \t]*$")
"""A comment between marks that is alone on its line."""
_ADDRESS = re.compile(r"\b[a-z]+://\S+")
_TYPED = re.compile(r"@\w+[ \t]*\{(?:[^{}\n]|\{[^{}\n]*\}){0,300}\}(?:[ \t]+\[?[\w.$]+\]?)?")
"""A tag of JSDoc with a type, and the name of a parameter."""
_STRING_BELOW = (
    r"""[ \t]*(?:\#[^\n]*)?\n[ \t]*[rRuU]?"""
    r"""(?:"{3}([\s\S]*?)"{3}|'{3}([\s\S]*?)'{3}|"([^"\n]*)"|'([^'\n]*)')[ \t]*$"""
)
"""The end of the line of an assignment, and a string below it."""
_GIVEN = re.compile(
    r"""[\w.$>\-\[\]"']+\s*(?::\s*[\w.\[\], |]+)?\s*:?=\s*"""
    r"""(?:[rbuf]?"[^"]*"|[rbuf]?'[^']*'|[+-]?\d[\w.]*|true|false|null|nil|(?:\w+\.)*[A-Z]\w*)\s*[;,]?"""
)
"""An assignment of a literal, or of a constant of another name."""
MIN_GIVEN, GIVEN_SHARE = 4, 0.6
"""Number of such lines, and share of the lines of a function's body, from which on the function is data."""
_NO_CONVENTION = frozenset(
    {"__init__", "__new__", "__call__", "__post_init__", "__enter__", "__exit__"}
    | {"__lt__", "__le__", "__gt__", "__ge__"}
)
"""Special methods whose names do not say what they do, or by what they compare."""

LONG, FEW_WORDS = 10, 12
"""Number of lines of a function from which on fewer words than these are no more than its title."""
_BY_COMMENT = "A comment on it says:"
"""What introduces a comment in the place of a docstring."""
BY_COMMENTS_INSIDE = "Comments in its code (the authors' own words; where the tests differ, the tests decide):"
"""What introduces comments in a function's body."""


def described(
    codebase: Codebase,
    shown: Sequence[Symbol],
    found: Sequence[Quote],
    named: Collection[bytes],
    callers: Mapping[str, Collection[str]],
) -> tuple[list[Symbol], float]:
    """The functions of a statement (``shown``) that nothing describes, and by lines the share of the others.

    ``found`` are quotes of documents, ``named`` are the words of the hidden tests, ``callers`` maps ids of symbols to
    callers that stayed: these describe short functions, and others if words describe one of them. Functions that only
    removed code with a description needs do not count: what they do is told by what that is to do. Those that are no
    more than data do: nobody can know the values of a style.
    """
    wordless = undescribed(codebase, shown, found)
    helpers = _helpers(codebase, shown, wordless, named, callers)
    told = {s.symbol_id for s in wordless if _is_told_by_callers(codebase, s, callers.get(s.symbol_id, ()))}
    silent = [s for s in wordless if s.symbol_id not in helpers | told]
    return silent, _described_share([s for s in shown if s.symbol_id not in helpers], silent)


def _helpers(
    codebase: Codebase,
    shown: Sequence[Symbol],
    wordless: Sequence[Symbol],
    named: Collection[bytes],
    callers: Mapping[str, Collection[str]],
) -> set[str]:
    """The functions that only removed functions with a description call, or such helpers, and that no test names."""
    inner = [
        symbol
        for symbol in shown
        if symbol.is_callable
        and symbol.name.partition("#")[0].encode() not in named
        and not callers.get(symbol.symbol_id)
        and not is_data(codebase, symbol)
    ]
    told = {s.symbol_id for s in shown if s.is_callable}.difference(s.symbol_id for s in wordless)
    helpers: set[str] = set()
    while new := {s.symbol_id for s in inner if not told.isdisjoint(codebase.callers(s.symbol_id))} - told:
        told |= new
        helpers |= new
    return helpers


def _is_told_by_callers(codebase: Codebase, symbol: Symbol, callers: Collection[str]) -> bool:
    """Whether the callers of a function that stayed say what it does: by their words, or by a call if it is short."""
    symbols = codebase.symbols()
    described = (_is_described(codebase, symbols[each], ()) for each in callers if each in symbols)
    return bool(callers) and (symbol.loc < LONG or any(described))


def is_data(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether most lines of a function's body give literal values to names."""
    if not symbol.is_callable:
        return False
    code = codebase.modules[symbol.path].source[symbol.code_start : symbol.end].decode("utf-8", "replace")
    lines = [line.strip() for line in code.splitlines() if any(map(str.isalnum, line))]
    given = sum(_GIVEN.fullmatch(line) is not None for line in lines)
    return given >= MIN_GIVEN and given >= GIVEN_SHARE * len(lines)


def undescribed(codebase: Codebase, shown: Sequence[Symbol], found: Iterable[Quote]) -> list[Symbol]:
    """The functions that a statement shows and no words of the project describe; ``found`` are quotes of documents."""
    quoted = {symbol_id for quote in found for symbol_id in quote.names}
    removed = {symbol.symbol_id for symbol in shown}
    return [
        symbol
        for symbol in shown
        if symbol.is_callable and symbol.symbol_id not in quoted and not _is_described(codebase, symbol, removed)
    ]


def barely_described(codebase: Codebase, shown: Sequence[Symbol], found: Iterable[Quote]) -> list[Symbol]:
    """The functions of a statement that only callers and comments in their code describe: without docstring, comment
    above or convention, and without ``found`` quotes of documents; and long ones with a few words only."""
    quoted = {symbol_id for quote in found for symbol_id in quote.names}
    functions = (s for s in shown if s.is_callable and s.symbol_id not in quoted and s.name not in vars(object))
    own = (s for s in functions if (above := inherited(codebase, s)) is None or above.is_of_type)
    return [s for s in own if not _has_own_words(codebase, s) or _is_thin(codebase, s)]


def _is_thin(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether the words that a long function has are those of a title."""
    texts = (symbol.docstring, comment_of(codebase.modules[symbol.path], symbol))
    return symbol.loc >= LONG and sum(len(text.split()) for text in texts) < FEW_WORDS


def _has_own_words(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether a docstring or a comment above a function says what it does."""
    texts = (symbol.docstring, comment_of(codebase.modules[symbol.path], symbol))
    return any(_has_words(text, symbol.name.partition("#")[0]) for text in texts)


def without_example(shown: Sequence[Symbol], found: Sequence[Quote]) -> list[Symbol]:
    """The functions that a statement shows without an example of a call: in docstrings, or quotes of documents."""
    texts = [*(symbol.docstring for symbol in shown), *(quote.text for quote in found)]

    def is_called(symbol: Symbol) -> bool:
        owner, _, name = symbol.qualname.rpartition(".")
        called = owner.rpartition(".")[2] if name in {"__init__", "__new__"} else name.partition("#")[0]
        return any(re.search(rf"(?<!def )\b{re.escape(called)}\([^)]", text) for text in texts)

    return [s for s in shown if s.is_callable and ">>> " not in s.docstring and not is_called(s)]


def _described_share(shown: Sequence[Symbol], silent: Sequence[Symbol]) -> float:
    """The share of the functions that a statement shows, by lines of code, that are not ``silent``; 1 for none."""
    lines = sum(max(symbol.loc, 1) for symbol in shown if symbol.is_callable)
    return 1 - sum(max(symbol.loc, 1) for symbol in silent) / lines if lines else 1.0


def _is_described(codebase: Codebase, symbol: Symbol, removed: Collection[str]) -> bool:
    """Whether a function's docstring or comment, its class or a convention says what it does.

    The docstring of a class that stays, which the statement does not show, says nothing about one of its methods.
    """
    name = symbol.name.partition("#")[0]
    owner = class_of(codebase, symbol)
    if _has_own_words(codebase, symbol):
        return True
    if owner is not None and name in {"__init__", "__new__"} and _has_words(owner.docstring, owner.name):
        return True
    if owner is not None and owner.symbol_id in removed and _has_words(owner.docstring, owner.name, MIN_CLASS_WORDS):
        return True
    if name.startswith("__") and name.endswith("__") and name not in _NO_CONVENTION:
        return True
    found = inherited(codebase, symbol)
    if found is not None and not found.is_of_type and (not found.text or _has_words(found.text, name)):
        return True
    return _has_words(body_comments(codebase, symbol), name, max(MIN_COMMENT_WORDS, symbol.loc))


class Description(NamedTuple):
    """What a statement quotes about a definition."""

    lead: str
    """What introduces the text; may be empty."""
    text: str
    """Its docstring, the comment above it, or what it inherits; else the comments in its code."""
    inside: str = ""
    """The comments in its code that the text does not hold, if it is none of these."""


def description(codebase: Codebase, symbol: Symbol, part: str = "") -> Description:
    """What the project says of a definition, in or above it; ``part`` is the only code of it that is gone, if some
    stays."""
    docstring = _without_placeholders(symbol.docstring)
    own = docstring or comment_of(codebase.modules[symbol.path], symbol)
    inside = body_comments(codebase, symbol, part)
    if own and inside and not docstring:
        lines = codebase.modules[symbol.path].source.decode(errors="replace").splitlines()
        if not _comment_above(lines, symbol):
            own, inside = "", f"{own}\n\n{inside}"  # it is about the first of several steps
    if _has_words(own, symbol.name):
        return Description("" if docstring else _BY_COMMENT, own, _not_in(own, inside))
    found = inherited(codebase, symbol) if not own else None
    if found is not None and found.text:
        return Description(f"As `{found.owner}` says:", _without_placeholders(found.text))
    if inside:
        return Description("", own, _not_in(own, inside)) if own else Description(BY_COMMENTS_INSIDE, inside)
    name = symbol.name.partition("#")[0]
    base = overridden(codebase, symbol) if found is None and not own else None
    owner = found.owner if found is not None else base.qualname if base is not None else ""
    is_telling = owner not in {"", name} and name not in vars(object)
    return Description(f"Implements or overrides `{owner}`.", "") if is_telling and not own else Description("", own)


def _not_in(text: str, comments: str) -> str:
    """The comments in a function's code that a text does not hold."""
    flat = " ".join(text.split())
    return "\n\n".join(each for each in comments.split("\n\n") if " ".join(each.split()) not in flat)


def inherited(codebase: Codebase, symbol: Symbol) -> Inherited | None:
    """What a method implements or overrides: of an interface, a trait, a base class, or by a convention."""
    if not symbol.is_callable:
        return None
    name = symbol.name.partition("#")[0]
    if (found := codebase.inherited(symbol.symbol_id)) is not None:
        return found
    method: Symbol | None = None
    for base in base_classes(codebase, symbol):
        if isinstance(base, type):
            if defines(base, name) and method is None:  # else one of the project's own is between them
                return Inherited(owner=f"{base.__name__}.{name}", text="")
            continue
        method = codebase.symbols().get(f"{base.symbol_id}.{name}") or method
        if method is not None and _has_words(method.docstring, name):
            is_of_it = _parameters_described(method) <= set(re.findall(r"\w+", symbol.signature))
            return Inherited(owner=method.qualname, text=method.docstring) if is_of_it else None
    return None


def _parameters_described(method: Symbol) -> set[str]:
    """The parameters of a method of which its docstring has an entry: ``name:``, ``name (int):``, ``:param name:``."""
    names = re.findall(r"[(,]\s*\*{0,2}(\w+)", method.signature)
    entry = r"(?m)(?:[:@]param\s+(?:\w+\s+)?|^\s*[-*]?\s*){}\s*[:(]"
    return {name for name in names if re.search(entry.format(name), method.docstring) and name not in vars(builtins)}


def overridden(codebase: Codebase, symbol: Symbol) -> Symbol | None:
    """The method of a base class of the project that a method takes the place of."""
    name = symbol.name.partition("#")[0]
    bases = (base for base in base_classes(codebase, symbol) if isinstance(base, Symbol))
    found = (codebase.symbols().get(f"{base.symbol_id}.{name}") for base in bases) if symbol.is_callable else ()
    return next((method for method in found if method is not None), None)


def _are_empty_fields(lines: Sequence[str]) -> list[bool]:
    """Of each line, whether it is the name of a field alone, ``:return:``, below which the next one comes, or none."""
    found: list[bool] = []
    below = ""
    for line in map(str.strip, reversed(lines)):
        found.append(_FIELD.fullmatch(line) is not None and (not below or below[0] in ":@"))
        below = line or below
    return found[::-1]


def _without_placeholders(text: str) -> str:
    """A description without lines such as ``description omitted.``, ``@param key TODO``."""
    lines = text.splitlines()
    empty = _are_empty_fields(lines)
    kept = [
        line
        for line, is_empty in zip(lines, empty, strict=True)
        if not is_empty and not _PLACEHOLDER.fullmatch(line.strip())
    ]
    return "\n".join(kept).strip("\n") if len(kept) < len(lines) else text


def _has_words(text: str, name: str, least: int = MIN_WORDS) -> bool:
    """Whether a text has enough words besides those of a definition's name, and those of types in JSDoc."""
    known = {part.lower() for part in re.findall(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+", name)}
    words = re.findall(r"[^\W\d_]{2,}", _TYPED.sub("", _ADDRESS.sub("", _without_placeholders(text))))
    return sum(word.lower() not in known for word in words) >= least


# ------------------------------------------------------------------------------------------ comments
def comment_of(module: Module, symbol: Symbol) -> str:
    """The comment above a function, or the one at the beginning of its body; empty if it is code or there is none."""
    if not symbol.is_callable:
        return ""
    lines = module.source.decode(errors="replace").splitlines()
    above = _comment_above(lines, symbol)
    first = symbol.body_line - 1
    inside = _comment(reversed(lines[symbol.start_line : first]))[::-1] if first > symbol.start_line else []
    if _PLAN.match("".join((above or inside)[:1])):
        return ""
    text = [line for line in (above or inside) if not _DIRECTIVE.fullmatch(line)]
    stripped = [line.strip() for line in text]
    return "" if any(map(is_code, [*stripped, "\n".join(stripped)])) else "\n".join(text)


def _comment_above(lines: Sequence[str], symbol: Symbol) -> list[str]:
    """The lines of the comment above a definition; ``lines`` are those of its file."""
    return _comment(reversed(lines[: symbol.start_line - 1]))[::-1]


def body_comments(codebase: Codebase, symbol: Symbol, part: str = "") -> str:
    """The comments on lines of their own in a function's body, or in a part of it, a paragraph each; code and plans are
    left out, and of a function with a docstring what stands directly above a guard."""
    if not symbol.is_callable:
        return ""
    every = tuple(mark.decode() for mark in scan_rules_of(symbol.path).comments)
    marks = tuple(mark for mark in every if mark != "/*")
    code = part or _code_with_head(codebase.modules[symbol.path].source, symbol, every)
    if marks != every:
        code = _OF_ONE_LINE.sub(rf"\1{marks[0]} \2", code)
    paragraphs: list[str] = []
    rest = code.splitlines()
    for is_comment, group in groupby(code.splitlines(), lambda line: line.strip().startswith(marks)):
        found = list(group)
        rest = rest[len(found) :]
        lines = [line.strip() for line in found] if is_comment else []
        is_on_guard = is_comment and symbol.docstring and _GUARD.match("\n".join(rest[:MAX_GUARD_LINES]))
        if is_on_guard or _is_block([line.removeprefix("#") for line in lines]):
            continue
        texts = [line.lstrip("#/").removeprefix(":").strip() for line in lines]
        said = [text for text in texts if not _DIRECTIVE.fullmatch(text)]
        is_step = bool(said) and _STEP.match(said[0]) is not None
        is_plain = is_step or not any(is_code(text) or _STATEMENT.search(text) for text in [*said, "\n".join(said)])
        is_plain = is_plain and not any(map(_ON_TOOLS.search, said))
        if said and not _PLAN.match(said[0]) and is_plain and _has_words(" ".join(said), "", 3):
            if sum(map(len, paragraphs)) > max(MAX_COMMENT_CHARS, COMMENT_CHARS_OF_LINE * symbol.loc):
                paragraphs.append("…")
                break
            paragraphs.append("\n".join(said))
    return "\n\n".join(dict.fromkeys(paragraphs))


def _code_with_head(source: bytes, symbol: Symbol, marks: tuple[str, ...]) -> str:
    """The code of a function from the comments on that stand before its first statement; without those that
    :func:`comment_of` gives."""
    code = source[symbol.code_start : symbol.end].decode(errors="replace")
    if "#" in marks and not symbol.docstring:
        return code
    *above, indent = source[symbol.start : symbol.code_start].decode(errors="replace").splitlines(keepends=True) or [""]
    if indent.strip():
        return code
    head = list(takewhile(lambda line: not line.strip() or line.strip().startswith(marks), reversed(above)))
    return "".join([*reversed(head), indent, code])


def _is_block(lines: Sequence[str]) -> bool:
    """Whether lines are statements of Python with others inside, or arms or cases of one, with their indentation."""
    code = textwrap.dedent("\n".join(lines))
    if sum(1 for line in code.splitlines() if line.strip()) < 2:
        return False  # words before a colon, and some behind it
    for whole in (
        code,
        f"if x: pass\n{code}" if code.startswith("el") else "",
        f"match x:\n{textwrap.indent(code, ' ')}",
    ):
        try:
            tree = ast.parse(whole)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        if any(hasattr(statement, "body") or isinstance(statement, ast.Match) for statement in tree.body):
            return True
    return False


def _comment(lines: Iterable[str]) -> list[str]:
    """The texts of the comment lines with which ``lines`` begin."""
    found = []
    for line in lines:
        bare = line.strip()
        if not bare.startswith("#"):
            break
        found.append(bare.lstrip("#").removeprefix(":").removeprefix(" "))
    return found


def assignment_docstring(source: str, assignment: str) -> str:
    """What documents an assignment: the string directly below it, else the comment above; empty if there is none."""
    found = re.search(rf"(?m)^[ \t]*{re.escape(assignment)}{_STRING_BELOW}", source)
    if found is not None:
        return inspect.cleandoc(next(filter(None, found.groups()), ""))
    place = re.search(rf"(?m)^[ \t]*{re.escape(assignment)}[ \t]*(?:#[^\n]*)?\r?$", source)
    above = _comment(reversed(source[: place.start()].splitlines()))[::-1] if place is not None else []
    text = [line.removeprefix(":").strip() for line in above if not _DIRECTIVE.fullmatch(line)]
    is_told = bool(text) and not _PLAN.match(text[0]) and not any(map(is_code, text))
    return "\n".join(text) if is_told else ""


def quoted(text: str) -> str:
    """The lines of a quote of a docstring; empty if it is."""
    shortened = _shortened(text.strip())
    return "\n" + textwrap.indent(shortened, "> ", lambda _: True) if shortened else ""


def _shortened(text: str) -> str:
    """A docstring of at most :data:`MAX_DOC_CHARS` characters: whole lines, and a mark where some are left out."""
    if len(text) <= MAX_DOC_CHARS:
        return text
    return text[:MAX_DOC_CHARS].rpartition("\n")[0] + "\n[…]"
