"""What tests that are not in sight say, for code that words and examples do not describe: docstrings, and parts."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice, takewhile

from excise.deleters.statement.project_docs import is_code
from excise.protocols import Codebase, StatementWords
from excise.types import Symbol, TestId, Visibility, is_whole_file, path_of

MAX_SENTENCES = 8
"""Number of tests that are quoted."""
MAX_CHARS = 240
"""Length of a docstring up to which it is quoted."""
MIN_WORDS = 4
"""Number of words from which on a docstring says something."""
MIN_NAME_WORDS, MIN_LETTERS = 2, 3
"""Number of words of a test's name, beside those of the code that it tests, from which on the name says something, and
of the letters of each."""
MANY = 8
"""Number of tests from which on only those are quoted or named that name the code, or have a word of its name."""
MAX_NAMES, MAX_NAME, MAX_TITLE = 30, 80, 120
"""Number of tests that are named, and of characters of a name, or of a title in words."""
_PLAIN_WORDS = frozenset(
    {"test", "tests", "a", "an", "the", "of", "with", "and", "is", "basic", "simple", "case", "it"}
)
"""Words of names that say nothing of what is tested."""
MAX_EXCERPTS = 3
"""Number of tests of which a part is shown."""
MAX_TABLES = 3
"""Number of tests of which rows are shown."""
MAX_CALLS_BETWEEN = 3
"""Number of calls from a public function to one that no test names, up to which tests of the former show the latter."""
HIDDEN_FOR_EACH_SHOWN = 2
"""Number of tests of a function that are not shown, for one that is shown to its end."""
_ISSUE = re.compile(
    r"(?i)\bhttps?://\S+|[\w/-]*#\d+"
    r"|\b(?:gh|git ?hub|issues?|bugs?|fix(?:e[sd]|ing)?|tests?|regressions?|tickets?|for|see)\b|\W+"
)
"""Addresses, numbers of issues and the words around them, which say nothing to those who cannot read the issue."""
_TITLE = re.compile(r"(?i)tests? (?:of|for|the|case)\b|testing\b|examples? (?:from|of|in)\b")
"""How descriptions begin that name what is tested, and say nothing of it."""
_HERE = r"(?:unit )?(?:test )?(?:code|cases?|tests?|comments?|descriptions?)"
_PLACEHOLDER = re.compile(
    rf"(?i)(?:^|(?<=[.!?] ))(?:(?:your |the )?{_HERE} go(?:es)? here|(?:put|add|insert|write) your {_HERE} here"
    r"|(?:please )?replace this (?:comment|description|text)|(?:todo:? )?auto-?generated (?:method|test)(?: stub)?)"
    r"(?:[.!]+(?: |$)|$)"
)
"""A sentence that a tool or a template wrote in the place of a description."""
_FIELD = re.compile(r"(?:- ?)?(?::\w[\w ]{0,80}:|@\w+\b|>>>)")
"""How a line of a docstring begins that is on a parameter or a result, or an example."""
_REFERENCE = re.compile(r"`(`[^`]{1,200}`)`__?|(?<!`)`([^`<]{1,200}?)(?: <[^>`]{0,200}>)?`__?")
"""A link in reStructuredText."""
WITH_WORDS = frozenset({Visibility.DOCSTRING, Visibility.SAMPLE_TESTS})
"""Levels at which statements quote tests."""
FROM_TESTS = "## From the tests"
"""The heading above parts of tests, rows of tables, and assertions."""


def words_of_tests(
    codebase: Codebase, tests: Iterable[str], visibility: Visibility, removed: Iterable[Symbol] = ()
) -> str:
    """The section with the first paragraphs of the docstrings of ``tests``, and with the names and titles of others
    that have several words beside those of what is ``removed``, without names after code that is not; empty if there
    are none."""
    found: dict[str, None] = {}
    names: dict[str, None] = {}
    gone = list(removed)
    own = {word for each in gone for word in _words_of(each.qualname)} | _PLAIN_WORDS
    unseen = list(tests) if visibility in WITH_WORDS else []
    functions = list(_functions(codebase, unseen))
    if len(functions) > MANY:
        bare = {each.name.partition("#")[0] for each in gone}
        functions = [each for each in functions if _is_about(codebase, each, bare, own - _PLAIN_WORDS)]
    for symbol in functions:
        text = _described(symbol.docstring)
        is_title = _TITLE.match(text) is not None
        if len(_ISSUE.sub(" ", text).split()) >= MIN_WORDS and len(text) <= MAX_CHARS and not is_title:
            found[text] = None
        elif sum(len(word) >= MIN_LETTERS for word in {*_words_of(symbol.name)} - own) >= MIN_NAME_WORDS:
            names[symbol.name] = None
    others = _names_in_words(codebase, gone) if names else set()
    names = {name: None for name in names if not _is_after(name, own, others)}
    lines = [f"- {text}" for text in list(found)[:MAX_SENTENCES]]
    parts = ["Tests that are not in this checkout have these descriptions:\n\n" + "\n".join(lines)] if lines else []
    if called := [f"`{name}`" for name in list(names)[:MAX_NAMES] if len(name) <= MAX_NAME]:
        more = f" and {len(names) - len(called)} more" if len(names) > len(called) else ""
        some = "Others" if lines else "Some tests that are not in this checkout"
        one = "Another one" if lines else "One test that is not in this checkout"
        parts.append(f"{f'{some} are' if len(names) > 1 else f'{one} is'} called {', '.join(called)}{more}.")
    if titles := _titles(codebase, unseen, own):
        parts.append("Tests that are not in this checkout have these titles:\n\n" + "\n".join(titles))
    return "\n\n".join(["## What the tests say", *parts]) if parts else ""


def _titles(codebase: Codebase, tests: Iterable[str], own: Set[str]) -> list[str]:
    """The titles in words of tests that are no functions, as elements of a list: those that stand in their files as
    they are, and have several words beside those of the code that is gone (``own``), behind the title of the nearest
    suite that says more; of many, the longest ones."""
    found: dict[str, set[str]] = {}
    suites: dict[str, dict[str, None]] = {}
    for test in sorted(tests):
        parsed, module = TestId.parse(test), codebase.modules.get(path_of(test))
        title = parsed.names[-1] if parsed.names else ""
        if module is None or len(title) > MAX_TITLE or title.encode(errors="replace") not in module.source:
            continue
        if " " in title and codebase.definition_of_test(test) is None:
            found.setdefault(title, set()).update(_words_of(test))
            suites.setdefault(title, {})[_suite_of(parsed.names, module.source, own)] = None
    if len(found) > MANY:
        stems = tuple(word for word in own - _PLAIN_WORDS if len(word) > MIN_LETTERS)
        found = {
            title: words
            for title, words in found.items()
            if not words.isdisjoint(own - _PLAIN_WORDS) or any(word.startswith(stems) for word in words)
        }
    telling = {title: len({word for word in _words_of(title) if len(word) >= MIN_LETTERS} - own) for title in found}
    said = [title for title in found if telling[title] >= MIN_NAME_WORDS and not is_code(title)]
    entries = [(title, suite) for title in said for suite in suites[title]]
    best = sorted(entries, key=lambda entry: -telling[entry[0]])[:MAX_NAMES]
    more = [f"- … and {len(entries) - len(best)} more"] if len(entries) > len(best) else []
    return [*(f"- {' '.join(f'{suite}{title}'.split())}" for title, suite in entries if (title, suite) in best), *more]


def _suite_of(names: Sequence[str], source: bytes, own: Set[str]) -> str:
    """What stands before the last of a test's ``names``: the nearest suite's title, with a colon, that has a word which
    is neither one of this one nor one of ``own``, and that stands in the file as it is; empty if there is none."""
    known = {*_words_of(names[-1]), *own}
    for title in reversed(names[:-1]):
        is_literal = len(title) <= MAX_TITLE and title.encode(errors="replace") in source
        if is_literal and any(len(word) >= MIN_LETTERS and word not in known for word in _words_of(title)):
            return f"{title}: "
    return ""


_OPEN_ITEM = re.compile(r"\s*[-*+] [^\n]*[^\s.!?)]\s*$")
"""An item of a list that has no end."""


def _described(docstring: str) -> str:
    """The first paragraph of a docstring without fields, placeholders, and a sentence or item that goes on below it."""
    first, _, below = docstring.strip().partition("\n\n")
    lines = [*takewhile(lambda line: not _FIELD.match(line.strip()), first.splitlines())]
    if below and _OPEN_ITEM.match(lines[-1] if lines else ""):
        lines.pop()
    text = " ".join(_REFERENCE.sub(lambda link: link[1] or link[2], " ".join(lines)).split())
    text = _PLACEHOLDER.sub("", text).strip()
    return text if text[-1:] not in {",", ";", ":"} else text[: text.rfind(". ") + 1]


def _is_about(codebase: Codebase, test: Symbol, names: Collection[str], words: Collection[str]) -> bool:
    """Whether a test names one of the removed definitions, or has one of the words of their names in its own."""
    source = _source_of(codebase, test)
    is_named = any(re.search(rf"\b{re.escape(name)}\b", source) for name in names)
    return is_named or not {*_words_of(test.name)}.isdisjoint(words)


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def _names_in_words(codebase: Codebase, gone: Collection[Symbol]) -> set[tuple[str, ...]]:
    """The names of the definitions that stay, in words, without tests."""
    names = {each.name for each in codebase.symbols().values() if not codebase.is_test(each.path)}
    return {tuple(_words_of(name)) for name in names - {each.name for each in gone}}


def _is_after(name: str, own: Collection[str], others: Collection[tuple[str, ...]]) -> bool:
    """Whether a test is named after one of ``others``, and has none of the words of its own code that are ``own``."""
    words = _words_of(name)
    bare = words[1:] if words[:1] in (["test"], ["tests"]) else words
    is_about = any(word in own and word not in _PLAIN_WORDS for word in bare)
    return not is_about and any(tuple(bare[:end]) in others for end in range(1, len(bare) + 1))


def parts_of_tests(
    codebase: Codebase,
    tested: Mapping[Symbol, Collection[str]],
    words: StatementWords,
    visibility: Visibility,
    removed: Collection[str] = (),
) -> str:
    """The section with parts of tests that show what functions do, or what public ones that call them do; empty if
    there are none.

    ``tested`` maps the functions to the ids of tests that are not in sight and execute them; ``removed`` are the ids of
    all code that is gone.
    """
    found: dict[str, None] = {}
    for symbol, tests in tested.items():
        functions = _functions(codebase, tests if visibility in WITH_WORDS else ())
        name, using = _named_by(codebase, symbol, [_source_of(codebase, each) for each in functions], removed)
        whole = len(using) > HIDDEN_FOR_EACH_SHOWN
        parts = [part for text in using if (part := words.excerpt(text, name, whole=False))]
        parts = parts or [part for text in using if whole and (part := words.excerpt(text, name, whole=True))]
        found.update(dict.fromkeys(sorted(parts, key=len)[:1]))
    blocks = [f"```{words.fence}\n{part}\n```" for part in list(found)[:MAX_EXCERPTS]]
    what = "Parts of tests that are" if len(blocks) > 1 else "A part of a test that is"
    return "\n\n".join([FROM_TESTS, f"{what} not in this checkout:", *blocks]) if blocks else ""


def rows_of_tests(
    codebase: Codebase, tests: Iterable[str], words: StatementWords, visibility: Visibility, removed: Iterable[Symbol]
) -> str:
    """The section with rows of tables of ``tests`` that name what is ``removed``; empty if there are none."""
    names = {each.name.partition("#")[0] for each in removed}
    functions = _functions(codebase, tests if visibility in WITH_WORDS else ())
    found = (words.table_rows(codebase.modules[each.path], each, names) for each in functions)
    blocks = [f"```{words.fence}\n{part}\n```" for part in islice(filter(None, found), MAX_TABLES)]
    lead = "Some rows of tables in tests that are not in this checkout:"
    return "\n\n".join([FROM_TESTS, lead, *blocks]) if blocks else ""


def _named_by(
    codebase: Codebase, symbol: Symbol, sources: Sequence[str], removed: Collection[str]
) -> tuple[str, list[str]]:
    """The name of a function, or else of the nearest public one left that calls it, and the tests with the name."""
    symbols, own = codebase.symbols(), _called_as(symbol)
    names, near, seen = [own], {symbol.symbol_id}, {symbol.symbol_id}
    for _ in range(MAX_CALLS_BETWEEN + 1):
        for name in names:
            if using := [text for text in sources if re.search(rf"\b{re.escape(name)}\b", text)]:
                return name, using
        near = {caller for callee in near for caller in codebase.callers(callee)} - seen
        near = {each for each in near if each in symbols and not codebase.is_test(path_of(each))}
        seen |= near
        functions = (symbols[each] for each in sorted(near.difference(removed)))
        names = [_called_as(each) for each in functions if each.is_callable and each.is_public]
    return own, []


def _called_as(symbol: Symbol) -> str:
    """The name by which tests call a function: that of the builtin function for ``__str__`` and the like."""
    name = symbol.name.partition("#")[0]
    plain = name[2:-2]
    return plain if name == f"__{plain}__" and plain in vars(builtins) else name


def _source_of(codebase: Codebase, symbol: Symbol) -> str:
    return codebase.modules[symbol.path].source[symbol.start : symbol.end].decode(errors="replace")


def _functions(codebase: Codebase, tests: Iterable[str]) -> Iterator[Symbol]:
    """The functions of tests, in the order of their ids."""
    found = (codebase.definition_of_test(test) for test in sorted(tests) if not is_whole_file(test))
    yield from {each.symbol_id: each for each in found if each is not None}.values()
