"""Details in a problem statement: which ones tests need, where a solver finds them, and lines for the others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from excise.deleters.statement.base_classes import base_classes, class_of, defines
from excise.deleters.statement.related_code import (
    has_more_texts,
    known_from_rest,
    lost_branches,
    passes_keyword,
    related_code,
)
from excise.protocols import Codebase
from excise.types import (
    FILLED_IN,
    Deletion,
    GivenBy,
    Need,
    NeedKind,
    Symbol,
    SymbolKind,
    is_sign,
    joined,
    name_in_file,
    path_of,
)

MAX_DETAILS = 40
"""Maximum number of details of one kind that a statement adds for one definition; more would be its data."""
MAX_CALLS_BETWEEN = 4
"""Number of calls from a shown function to one that is not shown, up to which details of the latter stand below it."""
_IDENTIFIERS = frozenset({NeedKind.USED, NeedKind.NAME, NeedKind.ATTRIBUTE, NeedKind.KEYWORD, NeedKind.EXCEPTION})
_TEXTS = frozenset({NeedKind.MESSAGE, NeedKind.KEY, NeedKind.TEXT})
_BEHAVIOUR = frozenset(map(NeedKind, ("result", "order", "format", "handled", "chained", "called")))
_OF_BRANCHES = frozenset({NeedKind.TEXT, NeedKind.NUMBER})
_ITEM_ERRORS = frozenset({"KeyError", "IndexError"})
_CONVENTIONS: Mapping[str, frozenset[str]] = {
    "__getattr__": frozenset({"AttributeError"}),
    "__getattribute__": frozenset({"AttributeError"}),
    "__getitem__": _ITEM_ERRORS,
    "__delitem__": _ITEM_ERRORS,
    "__missing__": _ITEM_ERRORS,
    "pop": _ITEM_ERRORS,
    "popitem": _ITEM_ERRORS,
    "popleft": _ITEM_ERRORS,
    "remove": frozenset({"ValueError", "KeyError"}),
    "index": frozenset({"ValueError"}),
    "__next__": frozenset({"StopIteration"}),
    "__anext__": frozenset({"StopAsyncIteration"}),
    "__hash__": frozenset({"TypeError"}),
}
"""Method to the exceptions that every method of this name raises, as those of Python's own types do."""
_DOCSTRING = re.compile(r"""\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}""")
"""A docstring among code, or another text in triple quotes."""
PLACEHOLDERS = {
    f"`{FILLED_IN}`": re.compile(FILLED_IN),
    "`${name}`": re.compile(r"\$\{[\w!:.<>^+#?,%-]*\}"),
    "`{name}`": re.compile(r"(?<!\$)\{[\w!:.<>^+#?,%-]+\}"),
    "`{}`": re.compile(r"(?<![${])\{\}"),
    "`%s`": re.compile(r"%[-+#0-9.*]*[a-zA-Z(]"),
}
"""What stands for something that is filled in, as statements spell it, to what finds it in a line of details."""
TIME_FORMAT = re.compile(r"""`(['"])(?=[^`\n]{0,80}%-?[YmbBHMSyj])(?:%-?[a-zA-Z]|[^%`\w\n]|T){1,80}\1`""")
"""A text that is a format of times and nothing else."""
SENTINEL = re.compile(r"(?:[a-z]\w*\.)?(?:Err[A-Z]\w*|EOF)")
"""The name of an error that is a value, as in Go."""
_CHOICE = re.compile(r"(['\"])[^\n]*\1 if \w+ else (['\"])[^\n]*\2")
"""Two texts, and the name that decides between them."""
_FILE_MODE = re.compile(r"[rwax][bt]?\+?[bt]?")
"""How a file is opened: the second argument of ``open``."""
_KEYWORD = re.compile(r"\W*\w+=\W*")
"""A text that looks like a keyword argument."""
_ON_ERRORS = re.compile(r"(?:messages?|errors?|raises?|exceptions?|warn(?:s|ings?)?|fails?)\b", re.IGNORECASE)
_ON_MESSAGES = re.compile(r"\bmessages?\b", re.IGNORECASE)
_QUOTED = re.compile(r"""(?<!\w)(['"`])([^'"`\n]+)\1""")
"""A text in quotes, or as code, in one line."""
_ORDER = re.compile(r"\b(?:sort|order|ascending|descending|alphabetical)", re.IGNORECASE)
"""A word on the order of things; descendants and alphabetic characters have none."""
_NO_ORDER = re.compile(
    r"(?i)\bin[\s>]+order[\s>]+to\b|\b(?:an?|any|some|this|what)[\s>]+sort[\s>]+of\b|\border[\s>]+of[\s>]+magnitude"
    r"|[\"`]sort[\"`]"
)
"""Phrases with such a word that are not about order, also over two lines of a quoted docstring; a package of Go."""
_SOURCE_FOLDERS = frozenset({"src", "lib"})
_TITLES = {
    NeedKind.CHAINED: "How exceptions are chained",
    NeedKind.NAME: "Names in the module",
    NeedKind.ATTRIBUTE: "Attributes",
    NeedKind.KEYWORD: "Keyword arguments",
    NeedKind.KEY: "Keys that it reads or makes, as far as tests name them",
    NeedKind.TEXT: "Texts that it reads or writes",
    NeedKind.NUMBER: "Numbers",
    NeedKind.FORMAT: "Writes values as texts with",
    NeedKind.ORDER: "Sorts what it returns or goes through",
    NeedKind.HANDLED: "Exceptions inside it, and what it returns then",
    NeedKind.CALLED: "Calls what it is given",
    NeedKind.USED: "Names in this file that only the missing code used",
    NeedKind.REPLACED: "Names that tests replace, so that it must use them",
}


# ------------------------------------------------------------------------------------ where they are
def locate(
    needs: Sequence[Need],
    statement: str,
    related: str,
    codebase: Codebase,
    branches: Mapping[str, str] = MappingProxyType({}),
) -> list[Need]:
    """The needs with the place where a solver finds each; those found nowhere are to become details or are answers.

    ``statement`` is the text without details, ``related`` the shipped code that belongs to the removed code;
    ``branches`` maps functions that lost a branch to its text: another branch does not tell what that one writes or
    counts. Details of other code stay as they are.
    """
    counts: dict[tuple[str, NeedKind], int] = defaultdict(int)
    found = []
    ordered = sorted(needs, key=lambda need: (-len(need.tests), need.label))
    for need in (_with_untold_owners(need, statement, codebase) for need in ordered):
        is_of_branch = need.kind in _OF_BRANCHES and is_named(need, branches.get(need.owner, ""), is_code=True)
        given = need.given or _found_in(need, statement, "" if is_of_branch else related, codebase)
        if given is None:
            counts[need.owner, need.kind] += 1
            too_many = counts[need.owner, need.kind] > MAX_DETAILS
            given = GivenBy.ANSWER if need.is_answer or too_many else GivenBy.DETAILS
        found.append(need.given_by(given))
    return sorted(found, key=lambda need: (need.owner, need.kind, _position(need, codebase), need.word))


def locate_all(needs: Sequence[Need], deletion: Deletion, statement: str, codebase: Codebase) -> list[Need]:
    """The needs of a deletion's tests with the places where a statement, or the shipped tree, gives them."""
    if not needs:
        return []
    related, branches = related_code(codebase, deletion), lost_branches(deletion)
    return locate(known_from_rest(needs, deletion), statement, related, codebase, branches)


def _position(need: Need, codebase: Codebase) -> int:
    """Where the code first has an attribute, since tests may use fields by their position, or a text; 0 for others."""
    owner = codebase.symbols().get(need.owner)
    if owner is None or need.kind not in {NeedKind.ATTRIBUTE, NeedKind.MESSAGE, NeedKind.TEXT}:
        return 0
    source = codebase.modules[owner.path].source
    word = re.escape(need.word)
    pattern = rf"\b{word}\b" if need.kind is NeedKind.ATTRIBUTE else word
    found = re.compile(pattern.encode()).search(source, owner.start, owner.end)
    return found.start() if found is not None else 0


def _found_in(need: Need, statement: str, related: str, codebase: Codebase) -> GivenBy | None:
    if need.kind in _BEHAVIOUR:
        return GivenBy.STATEMENT if _is_behaviour_told(need, statement, codebase) else None
    is_exception = need.kind is NeedKind.EXCEPTION
    is_sign_alone = need.kind is NeedKind.TEXT and is_sign(need.word)
    is_told = is_named(need, statement) or (is_sign_alone and _is_sign_shown(need, statement))
    if is_told and (not is_exception or _is_told_of(need.owner, need.word, statement, codebase)):
        return GivenBy.STATEMENT
    if _is_convention(need, codebase):
        return GivenBy.CONVENTION
    if need.kind in {NeedKind.MESSAGE, NeedKind.EXCEPTION} or is_sign_alone or _is_set_by_method(need, codebase):
        return None  # that other code raises, writes or sets it does not say that this code does
    if need.kind is NeedKind.KEYWORD and (owner := codebase.symbols().get(need.owner)) and "**" in owner.signature:
        return GivenBy.TREE if passes_keyword(need.word, owner, related) else None
    return GivenBy.TREE if is_named(need, related, is_code=True) else None


def _with_untold_owners(need: Need, statement: str, codebase: Codebase) -> Need:
    """An exception as a detail of the code of which the statement does not say that it raises it, if there is some."""
    owners = (need.owner, *need.others) if need.kind is NeedKind.EXCEPTION else ()
    untold = [owner for owner in owners if not _is_told_of(owner, need.word, statement, codebase)]
    if not untold:
        return need
    return replace(need, owner=untold[0], others=tuple(untold[1:]))


def _is_told_of(owner_id: str, exception: str, statement: str, codebase: Codebase) -> bool:
    """Whether a statement that names an exception says that this code raises it: its docstring or that of its class, a
    detail, or two lines one below the other with both names."""
    owner = codebase.symbols().get(owner_id)
    if owner is None or _raises(exception) in statement:
        return True
    holder = class_of(codebase, owner)
    described = [each for each in (owner, holder) if each is not None and exception in each.docstring]
    if any(each.docstring.strip().partition("\n")[0] in statement for each in described):
        return True
    name = owner.name.partition("#")[0]
    called = re.compile(rf"\b{re.escape(holder.name if holder is not None and name.startswith('__') else name)}\b")
    raised = re.compile(rf"\b{re.escape(exception)}(?!\w)")
    near = map("\n".join, pairwise([*statement.splitlines(), ""]))
    return any(called.search(pair) and raised.search(pair) for pair in near)


def _is_sign_shown(need: Need, statement: str) -> bool:
    """Whether the result of an example of the code has a sign."""
    name = name_in_file(need.owner).rpartition(".")[2].partition("#")[0]
    call = r"\w" if name.startswith("__") else rf"\b{re.escape(name)}"
    shown = r"[^\n]{0,300}"
    return bool(re.search(rf"{call}\({shown}(?:# |\n[> ]*|== ?)['\"]{shown}{re.escape(need.word)}", statement))


def _is_set_by_method(need: Need, codebase: Codebase) -> bool:
    """Whether a method sets an attribute that a test reads: one that makes no object."""
    owner = codebase.symbols().get(need.owner) if need.kind is NeedKind.ATTRIBUTE else None
    if owner is None or owner.kind is not SymbolKind.METHOD or owner.name in {"__init__", "__new__", "__post_init__"}:
        return False
    source = codebase.modules[owner.path].source[owner.code_start : owner.end]
    word = re.escape(need.word.encode())
    return re.search(rb"\bself\.%s(?:\s*,\s*self\.\w+)*\s*[-+*/|&]?=(?!=)" % word, source) is not None


def is_named(need: Need, text: str, *, is_code: bool = False) -> bool:
    """Whether a text names the detail in a form that points to it: a word of prose is no attribute."""
    word = need.word
    is_whole = need.template and repr(need.template) in text and not is_code
    told = "panic" if word == "panic" else _raises(need.exception or word)  # prose says that code panics
    if is_whole or (need.kind is NeedKind.EXCEPTION and told in text):
        return True
    is_own = need.kind is NeedKind.MESSAGE and _is_own_name(word, need.owner)
    is_message = need.kind is NeedKind.MESSAGE and need.template
    if is_own or (is_message and not _is_in_a_message(word, need.template, text)):
        return is_own and _is_in_a_quoted_message(word, need.template, text)
    if need.kind in _IDENTIFIERS:
        is_told = need.kind is NeedKind.ATTRIBUTE and not is_code
        return _has_attribute(word, text) if is_told else _has_identifier(word, text, is_code=is_code)
    if need.kind is NeedKind.NUMBER or (need.kind is NeedKind.TEXT and is_sign(word)):
        own, marks = re.escape(word), "`'\"".replace(word, "")
        signs = (rf"(?<![\w{mark}]){mark}{own}{mark}(?![\w{mark}])" for mark in marks)  # no part of a fence
        number = rf"(?<![\w.]){own}(?![\w]|\.\d)"
        return re.search(number if need.kind is NeedKind.NUMBER else "|".join(signs), text) is not None
    if need.kind is NeedKind.REPLACED:
        return ".".join(word.split(".")[-2:]) in text
    looks_like_keyword = _KEYWORD.fullmatch(word) is not None  # a call that the statement shows may have it
    is_shown = need.kind is NeedKind.TEXT and not is_code and _ends_an_outcome(word, text)
    return is_shown or repr(word) in text or (not looks_like_keyword and _has_text(word, text, is_code=is_code))


def _is_in_a_message(word: str, message: str, text: str) -> bool:
    """Whether a text has a word of a message beside another one of it, or in a line on errors: elsewhere, a word such
    as ``'json'`` says nothing of the message."""
    told = " ".join(text.split())
    is_beside = any(phrase in told for phrase in _phrases(word, message))
    return is_beside or any(word in line and _ON_ERRORS.search(line) for line in text.splitlines())


def _phrases(word: str, message: str) -> list[str]:
    """A word of a message with the one before it, and with the one after it."""
    before, _, after = message.partition(word)
    phrases = [found[0] + word for found in re.finditer(r"[^\W_]+\W+$", before)]
    phrases += [word + found[0] for found in re.finditer(r"^\W+[^\W_]+", after)]
    return [" ".join(phrase.split()) for phrase in phrases]


def _is_own_name(word: str, owner: str) -> bool:
    """Whether a word is the name of a definition, or of a class that it makes, with or without the classes around."""
    return f".{name_in_file(owner).partition('#')[0].removesuffix('.__init__')}".endswith(f".{word.strip()}")


def _is_in_a_quoted_message(word: str, message: str, text: str) -> bool:
    """Whether a line on messages has a word, or a quoted text has it beside another one of the message."""
    quoted = [found[2] for found in _QUOTED.finditer(text)]
    if any(phrase in each for each in quoted for phrase in _phrases(word, message) if " " in phrase):
        return True
    return any(word in line and _ON_MESSAGES.search(line) for line in text.splitlines())


def _is_behaviour_told(need: Need, statement: str, codebase: Codebase) -> bool:
    """Whether a statement says what code returns, in which order, or how it writes a value."""
    if need.kind is NeedKind.ORDER:
        return _ORDER.search(_NO_ORDER.sub("", statement)) is not None
    if need.kind is NeedKind.HANDLED:
        owner = codebase.symbols().get(need.owner)
        caught = {name.rpartition(".")[2] for name in re.findall(r"[\w.]+", need.word.partition(":")[0])}
        is_said = owner is not None and any(re.search(rf"\b{name}\b", owner.docstring) for name in caught)
        return is_said or need.word in statement
    if need.kind in {NeedKind.FORMAT, NeedKind.CHAINED, NeedKind.CALLED}:
        return (need.word.partition("(")[0] if need.kind is NeedKind.FORMAT else need.word) in statement
    return _is_result_told(need, statement, codebase)


def _is_result_told(need: Need, statement: str, codebase: Codebase) -> bool:
    """Whether an annotation, the docstring, an example or a line of details says what a function returns."""
    name, kind = need.word.split(" ")
    if kind.endswith("{}") or _result_line(kind) in statement:
        return _result_line(kind) in statement
    owner = codebase.symbols().get(need.owner)
    signature, docstring = (owner.signature, owner.docstring.strip()) if owner is not None else ("", "")
    if kind == "bool":
        is_said = re.search(r"\b(?:true|false|bool(?:ean)?|whether|if|check(?:s|ed)?)\b", docstring, re.IGNORECASE)
        is_shown = re.search(rf"\b{name}\([^\n]*(?:# |\n[> ]*)(?:True|False)\b", statement)
        return bool(is_said or is_shown or _ASKS.match(name)) or " -> " in signature
    if kind == "None":
        is_said = re.search(r"\bNone\b", docstring) or re.search(r"-> .*\b(?:None|Optional)\b", signature)
        return bool(is_said) or re.search(rf"\b{name}\([^\n]*\)(?:  # |\n[> ]*|== ?)None\b", statement) is not None
    if " -> " in signature and signature in statement:
        return True
    words = _SAID_OF_RESULTS.get(kind, kind if kind[0].isupper() else r"tuple|pair|returns?\b[^.\n]{0,40}\(\w+,")
    shown = docstring.partition("\n")[0] in statement
    is_described = bool(docstring) and shown and re.search(rf"\b(?:{words})", docstring, re.IGNORECASE)
    if is_described or kind == "self":
        return bool(is_described)
    opening = {"list": r"\[", "dict": r"\{", "mapping": r"\{"}.get(kind, (kind if kind[0].isupper() else "") + r"\(")
    return re.search(rf"\b{name}\([^\n]*(?:\n[> ]*|# |== ?){opening}", statement) is not None


_RESULTS = {"None": "`None` in some cases", "bool": "`True` or `False`", "self": "the object itself (`self`)",
            "mapping": "a mapping, such as a `dict`", "{}": "or passes on `{}`, not `nil`, if it is empty"}  # fmt: skip
_SAID_OF_RESULTS = {"list": r"list", "self": r"self\b|itself\b|chain|same (?:object|instance)"} | dict.fromkeys(
    ("dict", "mapping"), r"dict|mapping")  # fmt: skip
"""Words of a docstring that say what is returned, besides those of tuples."""
_ASKS = re.compile(r"_*(?:is|are|was|has|have|can|may|should|must|does|contains|supports|exists|equals?)(?:_|$|[A-Z])")
"""The beginning of a name that asks a question."""


def what_is_returned(kind: str) -> str:
    """What a statement says of a result: of a type, a number of values, ``None``, ``bool``, or an empty literal."""
    form = "{} values" if kind.isdigit() else _RESULTS.get(kind[-2:], "a `{}`")
    return _RESULTS.get(kind) or form.format(kind)


def _result_line(kind: str) -> str:
    """The line of a statement about a result."""
    return f"- Returns {what_is_returned(kind)}."


def _has_identifier(word: str, text: str, *, is_code: bool) -> bool:
    if not (word.isalpha() and word.islower()):
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
    if is_code:  # a word of prose is none
        text = _DOCSTRING.sub("", text)
        return re.search(rf"\.{word}\b|\b{word}\s*(?:[=:(\[.]|\bin\b)|[\[(,=]\s*\*{{0,2}}{word}\b", text) is not None
    forms = (
        rf"(?m)^class .*\b{word}\b",
        rf"`[^`\n]*\b{word}\b[^`\n]*`",
        rf"[.:@*]{word}\b",
        rf"\b{word}\s*[=:(]",
        rf"[(,]\s*{word}\s*[,)=:]",
    )
    return any(re.search(form, text) for form in forms)


def _has_attribute(word: str, text: str) -> bool:
    """Whether a text names an attribute as one: behind a dot, as code, in a class; a parameter of the name is none.

    As code alone, it may also be an argument of a call that the text shows.
    """
    is_argument = re.search(rf"\w\([^()\n]{{0,200}}\b{word}\b[^()\n]{{0,200}}\)", text) is not None
    forms = (
        rf"(?m)^class .*\b{word}\b",
        *([] if is_argument else [rf"`[^`\n(]*\b{word}\b[^`\n(]*`"]),
        rf"\.{word}\b",
        rf"(?m)^\s*{word}\s*(?::|=(?!=))",
        rf":(?:i?var|attr) {word}:",
        rf"Attributes:?\s*\n[^#`]*?\n>\s+{word}\b",
    )
    prose = rf"(?<![\w(,*])(?<!, )(?<!:param ){word}(?!\w|\s*[=:),])"
    is_word = word.isalpha() and word.islower()
    return any(re.search(form, text) for form in (*forms, *([] if is_word else [prose])))


def _has_text(word: str, text: str, *, is_code: bool) -> bool:
    """Whether a text occurs; a single word of prose, and one of punctuation, only in quotes or as code."""
    flat, wanted = " ".join(text.split()), " ".join(word.split())
    if len(wanted) > 3 and not wanted.isalpha() and not is_code:
        return wanted in flat
    if is_code and len(wanted) > 3:
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", flat) is not None
    return any(f"{mark}{wanted}{mark}" in flat for mark in ("`", "'", '"', "*")) or f"“{wanted}”" in flat


def _ends_an_outcome(word: str, text: str) -> bool:
    """Whether examples show a text of punctuation at the end of what they give: ``")`` of ``'Path("a")'``."""
    if len(word) < 2 or any(map(str.isalnum, word)):
        return False
    shown = re.escape(repr(word)[1:-1])
    return re.search(rf"(?m)  # (['\"]).*\w.*{shown}\1$", text) is not None


def _is_convention(need: Need, codebase: Codebase) -> bool:
    """Whether Python or its standard library implies the detail."""
    name = name_in_file(need.owner).rpartition(".")[2].partition("#")[0]
    if need.kind is NeedKind.EXCEPTION:
        return need.word in _CONVENTIONS.get(name, ())
    if need.kind is NeedKind.ATTRIBUTE:
        owner = codebase.symbols().get(need.owner)
        bases = base_classes(codebase, owner) if owner is not None else ()
        return any(isinstance(base, type) and defines(base, need.word) for base in bases)
    if need.kind is NeedKind.TEXT and _FILE_MODE.fullmatch(need.word):
        owner = codebase.symbols().get(need.owner)
        code = codebase.modules[owner.path].source[owner.start : owner.end] if owner is not None else b""
        return re.search(rb"\bopen\([^\n]*['\"]%s['\"]" % re.escape(need.word.encode()), code) is not None
    return False


# ---------------------------------------------------------------------------------------- the lines
def lines_by_symbol(needs: Iterable[Need], shown: Sequence[Symbol], codebase: Codebase) -> dict[str, list[str]]:
    """Symbol id to the lines of details that stand below the symbol: its own, and those of code that is not shown."""
    by_place: dict[str, list[Need]] = defaultdict(list)
    for need in needs:
        if need.given is GivenBy.DETAILS:
            for place in dict.fromkeys(place_of(owner, shown, codebase) for owner in (need.owner, *need.others)):
                by_place[place].append(need)
    return {
        place: list(_lines(own, {n.word for n in own if n.owner == place and _is_set_by_method(n, codebase)}, codebase))
        for place, own in by_place.items()
    }


def place_of(owner: str, shown: Sequence[Symbol], codebase: Codebase) -> str:
    """The shown symbol below which a detail of ``owner`` stands: itself, what is around or calls it, or one of its
    file."""
    ids = [symbol.symbol_id for symbol in shown]
    path, qualname = path_of(owner), name_in_file(owner)
    while qualname:
        if (found := joined(path, qualname)) in ids:
            return found
        qualname = qualname.rpartition(".")[0]
    near, seen = {owner}, {owner}
    for _ in range(MAX_CALLS_BETWEEN):
        near = {caller for callee in near for caller in codebase.callers(callee)} - seen
        if found := next((i for i in ids if i in near), ""):
            return found
        seen |= near
    return next((i for i in ids if path_of(i) == path), ids[0] if ids else owner)


def _lines(needs: Sequence[Need], changed: Collection[str], codebase: Codebase) -> Iterator[str]:
    """The lines of the details of one place; ``changed`` are the attributes of its object that a method sets."""
    messages: dict[str, list[str]] = defaultdict(list)
    for need in needs:
        if need.kind is NeedKind.EXCEPTION:
            messages.setdefault(need.exception or need.word, [])
        elif need.kind is NeedKind.MESSAGE:
            messages[need.exception].append(need.template or need.word)
    for exception, own in messages.items():
        found = [text for text in dict.fromkeys(own) if any(map(str.isalnum, text)) or not _is_part(text, own)]
        parts = ", ".join(map(_quoted, found))
        contain = "messages contain" if len(found) > 1 else "the message contains"
        if not exception:
            yield f"- {contain[0].upper()}{contain[1:]} {parts}."
        elif found:
            yield f"{_raises(exception)}; {contain} {parts}."
        else:
            yield f"{_raises(exception)}."
    yield from dict.fromkeys(_result_line(need.word.split(" ")[1]) for need in needs if need.kind is NeedKind.RESULT)
    texts = {text for listed in messages.values() for text in listed} | {_shown(n) for n in needs if n.kind in _TEXTS}
    for kind, title in _TITLES.items():
        of_kind = [need for need in needs if need.kind is kind]
        if kind is NeedKind.ATTRIBUTE and (attributes := [_shown(need) for need in of_kind if need.word in changed]):
            yield f"- Sets {', '.join(f'`self.{each}`' for each in dict.fromkeys(attributes))}."
            of_kind = [need for need in of_kind if need.word not in changed]
        words = dict.fromkeys(map(_shown, of_kind))
        if kind in _TEXTS:  # a text that ends with a blank may be the beginning of another one
            words = dict.fromkeys(word for word in words if word == word.strip() or not _is_part(word, texts))
        if words:
            listed = ", ".join(_quoted(word) if kind in _TEXTS else f"`{word}`" for word in words)
            more = ", among others" if kind is NeedKind.TEXT and has_more_texts(codebase, needs) else ""
            yield f"- {title}{more}: {listed}."


def _is_part(word: str, texts: Collection[str]) -> bool:
    return any(word in text for text in texts if text != word)


def _raises(exception: str) -> str:
    """How the detail of an exception or a warning begins; for ``X for Y``, with the exception that it handles; for
    ``f of X``, with the function that it is given to, or with ``return`` or ``new``."""
    taker, _, given = exception.partition(" of ")
    if given:
        done = {"return": "Returns", "new": "Makes"}.get(taker, f"Calls `{taker}` with")
        return f"- {done} {'an' if given[0] in 'AEIOU' else 'a'} `{given}`"
    raised, _, handled = exception.partition(" for ")
    if SENTINEL.fullmatch(raised):
        return f"- Returns the error `{raised}`"
    if raised == "panic":
        return "- Panics"
    verb = "Warns with" if raised.endswith("Warning") else "Raises"
    return f"- {verb} `{raised}`" + (f" for `{handled}`" if handled else "")


def _shown(need: Need) -> str:
    """What stands in the statement: the whole text that a detail is a part of, and names with their modules."""
    *owner, last = need.word.split(".")
    path = path_of(need.owner).removesuffix(".py").removesuffix("/__init__").split("/")
    if need.kind is NeedKind.REPLACED and owner and len(owner) < len(path) and path[-len(owner) :] == owner:
        return ".".join([*path[int(path[0] in _SOURCE_FOLDERS) :], last])
    return need.template or need.word


def _quoted(text: str) -> str:
    """A text as code: its Python literal, or two of them, between as many backticks as it needs."""
    literal = text if _CHOICE.fullmatch(text) else repr(text)
    mark = "``" if "`" in literal else "`"
    return f"{mark}{literal}{mark}"
