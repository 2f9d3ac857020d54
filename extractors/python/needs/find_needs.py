"""The details that tests need from removed code: what the tests mention and the removed code supplies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.chained_raises import chained_raises
from excise.extractors.python.needs.common_texts import MIN_PART, bounded, common_words
from excise.extractors.python.needs.removed_words import words_of
from excise.extractors.python.needs.replaced_names import NAMESPACES
from excise.extractors.python.needs.seeded_tests import compares_drawn, draws
from excise.extractors.python.needs.supplied_words import Format, Piece, Role, Words
from excise.extractors.python.needs.test_uses import Place, TestUses, Uses
from excise.extractors.python.needs.unexecuted_raises import unexecuted_raises
from excise.extractors.python.needs.watching import watched_uses
from excise.types import GivenBy, Need, NeedKind, Watched, is_sign

UNKNOWN = "?"
"""Shape of a value that is no plain one."""
MAX_ANSWER = 160
"""Length of a text above which it is no detail any more: to name it would be to give the code."""
MIN_SHOWN_LOC = 3
"""Lines of a function up to which a text with its placeholders would be its code."""
MIN_PARTS = 2
"""Number of texts of the removed code in a text of a test from which on the latter is told whole."""
MAX_WHOLE = 3
"""Maximum number of such texts of one test."""
MAX_PRINTED = 6
"""Number of texts that a function prints which are told whatever its tests want: graders compare what calls print."""
MAX_GIVEN = 6
"""Number of texts of a function that only recorded calls give which are told."""
MAX_MESSAGES = 4
"""Number of messages of one exception of a function up to which all are told where a test wants the exception."""
MAX_WHOLE_OF_OWNER = 6
"""Maximum number of such texts of one definition: these show how its parts are joined."""
MAX_SIGNS = 8
"""Number of signs of a function that are told."""
COMMON_NUMBERS = frozenset({"0", "1", "2", "0.0", "1.0"})
"""Numbers that any code has."""
_NAME = re.compile(r"[\w-]+:?")
"""A text that is no more than a name, as those of keys, attributes and types are."""
_LAYOUT = re.compile(r'["\']\s*:\s|\n[ \t]+\S')
"""What a text has that a value was written as: keys and values, or indented lines."""
_NO_TEXT = Piece("", Role.TEXT)
_OF_ALL_OWNERS = frozenset({NeedKind.EXCEPTION, NeedKind.CHAINED, NeedKind.REPLACED})
"""Kinds of details that are told of all code that supplies them."""
_WATCHED_PLACES = {
    NeedKind.ATTRIBUTE: frozenset({"attribute", "item"}),
    NeedKind.KEY: frozenset({"item"}),
    NeedKind.KEYWORD: frozenset({"call"}),
}
"""Kind of a detail to the kinds of places at which a run shows whose detail it is."""
_KINDS = {Role.TEXT: NeedKind.TEXT, Role.KEY: NeedKind.KEY, Role.MESSAGE: NeedKind.MESSAGE}


def find_needs(
    codebase: PythonCodebase,
    uses: TestUses,
    removed: Sequence[str],
    tests: Sequence[str],
    watched: Watched | None = None,
) -> tuple[Need, ...]:
    """The details that ``tests`` need from the symbols ``removed``, sorted by owner and kind.

    Parts of one text are in its order.

    ``watched`` adds what the tests were seen to use, and shows which details they use on values of other code only.
    """
    supplied = words_of(codebase, removed)
    defined = {name for words in supplied for name in (words.symbol.name.partition("#")[0],) if name}
    found, told = _Found(), defaultdict[str, set[str]](set)
    unexecuted = unexecuted_raises(codebase, supplied, tests, watched)
    by_function: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_function[test.partition("[")[0]].append(test)
    drawing = next((words.symbol for words in supplied if draws(codebase, words.symbol)), None)
    for function, cases in by_function.items():
        used = uses.of(function)
        seen = _seen(cases, watched) if watched is not None else None
        for words in supplied:
            known_texts = told[words.symbol.symbol_id]
            syntactic = list(_needed(words, used, defined, known_texts, unexecuted))
            known = {(kind, word) for kind, word, _, _ in syntactic}
            for kind, word, piece, is_answer in syntactic:
                places = uses.places_of(function, word) if watched is not None and watched.foreign else ()
                is_other = watched is not None and _is_foreign(kind, places, watched.foreign)
                found.add((kind, word), _Detail(words.symbol.symbol_id, piece, is_answer, is_other), cases)
            observed = _needed(words, seen, defined, known_texts, unexecuted) if seen is not None else ()
            for kind, word, piece, is_answer in observed:
                if not _is_known(kind, word, known):
                    detail = _Detail(words.symbol.symbol_id, piece, is_answer, is_watched=True)
                    found.add((kind, word), detail, cases)
        found.shapes |= seen.shapes if seen is not None else set()
        if drawing is not None and compares_drawn(codebase, function):
            found.add((NeedKind.DRAWN, drawing.name), _Detail(drawing.symbol_id, is_answer=True), cases)
    for words in supplied:
        for word in _used_alone(codebase, words, removed):
            found.add((NeedKind.USED, word), _Detail(words.symbol.symbol_id), tests)
    for words, word in (*_results(supplied, watched), *_compared(supplied, watched)):
        found.add((NeedKind.RESULT, word), _Detail(words.symbol.symbol_id, is_watched=True), tests)
    if watched is not None and watched.given:
        for words, word, piece in _given(supplied, watched, found.texts()):
            found.add((NeedKind.TEXT, word), _Detail(words.symbol.symbol_id, piece, is_watched=True), ())
    return found.needs()


def _given(supplied: Sequence[Words], watched: Watched, known: Collection[str]) -> Iterator[tuple[Words, str, Piece]]:
    """Texts of the code in what recorded calls give, with the function and the piece, that no test has.

    No test needs one, but a solution with another text fails where calls are compared.
    """
    seen = Uses(texts=set(watched.given))
    for words in (each for each in supplied if each.symbol.loc > MIN_SHOWN_LOC):
        phrases = ((piece.text.strip(), piece) for piece in words.best_pieces.values() if _is_phrase(piece))
        untold = ((text, piece) for text, piece in phrases if not any(text in other for other in known))
        found = ((text, piece) for text, piece in untold if text in common_words(piece, seen))
        for text, piece in islice(found, MAX_GIVEN):
            shown = piece.template if len(piece.template) <= MAX_ANSWER else ""
            yield words, text, replace(piece, template=shown, within=shown)


def _is_phrase(piece: Piece) -> bool:
    """Whether a piece is a text of several words that may be told."""
    is_short = len(piece.text) <= MAX_ANSWER and not piece.is_whole_code
    return piece.role is Role.TEXT and is_short and " " in piece.text.strip()


def _compared(supplied: Sequence[Words], watched: Watched | None) -> Iterator[tuple[Words, str]]:
    """Functions whose results graders compare, with their names and what is returned, where the code says that."""
    compared = watched.compared if watched is not None else ()
    for words in supplied:
        name = words.symbol.name.partition("#")[0]
        if words.symbol.qualname.partition("#")[0] in compared and not _is_dunder(name):
            gives = (("bool", words.gives_truth), ("self", words.gives_self))
            yield from ((words, f"{name} {kind}") for kind, is_given in gives if is_given)


def _is_known(kind: NeedKind, word: str, known: Collection[tuple[NeedKind, str]]) -> bool:
    """Whether a detail, or a text that has it, is among the known ones."""
    is_text = kind in {NeedKind.MESSAGE, NeedKind.TEXT}
    return (kind, word) in known or (is_text and any(kind is other and word in text for other, text in known))


def _results(supplied: Sequence[Words], watched: Watched | None) -> Iterator[tuple[Words, str]]:
    """Functions that make what they return, with their names and the type or number on which tests rely."""
    for path, line, name, kind in sorted(watched.results) if watched is not None else ():
        for words in supplied:
            symbol = words.symbol
            is_here = symbol.path == path and symbol.start_line <= line <= symbol.end_line
            makes = kind in words.made or kind == "mapping" or (kind.isdigit() and "tuple" in words.made)
            if is_here and makes and symbol.name.partition("#")[0] == name and not _is_dunder(name):
                yield words, f"{name} {kind}"


def _seen(cases: Sequence[str], watched: Watched) -> Uses | None:
    """What the cases of a test were seen to use; ``None`` if nothing is known."""
    seen = Uses()
    for words in (watched.words[case] for case in cases if case in watched.words):
        seen.add(watched_uses(words))
    return seen if seen != Uses() else None


class _Detail(NamedTuple):
    """What is known of a detail besides its kind and word."""

    owner: str
    piece: Piece = _NO_TEXT
    is_answer: bool = False
    is_other: bool = False
    is_watched: bool = False


class _Found:
    """Details that were found, each in the first definition that supplies it, with the tests that need it."""

    def __init__(self) -> None:
        self.details: dict[tuple[NeedKind, str], _Detail] = {}
        self.tests: dict[tuple[NeedKind, str], dict[str, None]] = defaultdict(dict)
        self.owners: dict[tuple[NeedKind, str], set[str]] = defaultdict(set)
        self.shapes: set[str] = set()
        """Attributes, a blank, and what is in their values."""

    def add(self, key: tuple[NeedKind, str], detail: _Detail, tests: Iterable[str]) -> None:
        """Add a detail; one that several tests need is of other code only if each of them uses it so."""
        first = self.details.setdefault(key, detail)
        is_other, is_watched = first.is_other and detail.is_other, first.is_watched and detail.is_watched
        self.details[key] = first._replace(is_other=is_other, is_watched=is_watched)
        self.tests[key].update(dict.fromkeys(tests))
        self.owners[key].add(detail.owner)

    def texts(self) -> frozenset[str]:
        """All texts that are details, and those that they are parts of."""
        kinds = {NeedKind.TEXT, NeedKind.MESSAGE, NeedKind.KEY}
        own = {word: detail for (kind, word), detail in self.details.items() if kind in kinds}
        return frozenset(own).union(detail.piece.template for detail in own.values())

    def needs(self) -> tuple[Need, ...]:
        """The details, sorted, parts of one text in their order; a text that is a key, too, is listed once."""
        found = {
            (kind, word): detail
            for (kind, word), detail in self.details.items()
            if kind is not NeedKind.KEY or (NeedKind.TEXT, word) not in self.details
        }
        needs = (
            Need(
                kind=kind,
                word=word,
                owner=detail.owner,
                others=tuple(sorted(self.owners[kind, word] - {detail.owner})) if kind in _OF_ALL_OWNERS else (),
                tests=tuple(self.tests[kind, word]),
                exception=detail.piece.exception,
                template=self._shaped(word) if kind is NeedKind.ATTRIBUTE else detail.piece.template,
                is_answer=detail.is_answer,
                is_watched=detail.is_watched,
                given=GivenBy.OTHER if detail.is_other else GivenBy.ANSWER if kind is NeedKind.DRAWN else None,
            )
            for (kind, word), detail in sorted(found.items(), key=_place)
        )
        return tuple(needs)

    def _shaped(self, attribute: str) -> str:
        """``rows: list[tuple[int, str]]``, if all values that tests saw in an attribute, but ``None``, are alike; else
        empty."""
        shapes = {shape for name, _, shape in (each.partition(" ") for each in self.shapes) if name == attribute}
        telling = {shape for shape in shapes if not any(other.startswith(f"{shape}[") for other in shapes)}
        some, none = sorted(telling - {"None"}), sorted(telling & {"None"})
        return f"{attribute}: {' | '.join([*some, *none])}" if len(some) == 1 and some != [UNKNOWN] else ""


def _place(found: tuple[tuple[NeedKind, str], _Detail]) -> tuple[str, NeedKind, str, int, str]:
    """What details are sorted by."""
    (kind, word), detail = found
    text = detail.piece.within
    return detail.owner, kind, text or word, text.find(word), word


def _is_foreign(kind: NeedKind, places: Iterable[Place], foreign: Collection[tuple[str, str, int, int]]) -> bool:
    """Whether a run saw all places that may need a detail of this kind, and only values of other code there."""
    wanted = _WATCHED_PLACES.get(kind, frozenset())
    found = [place for place in places if place.kind in wanted or place.kind != "call"]
    return bool(wanted and found) and all(place.kind in wanted and place in foreign for place in found)


_FILLERS = "(?:add|append|appendleft|clear|discard|extend|insert|pop|remove|reverse|setdefault|sort|update)"
"""Methods that change what they are called on."""


def _used_alone(codebase: PythonCodebase, words: Words, removed: Sequence[str]) -> Iterator[str]:
    """Names that the file of removed code binds and that nothing but removed code uses; a statement of the file that
    fills or sorts what a name is bound to is part of its binding."""
    symbols = codebase.symbols()
    module = codebase.modules[words.symbol.path]
    gone = [symbols[s] for s in removed if s in symbols and symbols[s].path == module.path]
    bound = {b.name: b for b in module.bindings if not b.klass and b.name in words.identifiers}
    for name, binding in bound.items():
        spans = [(s.start, s.end) for s in gone] + [(b.start, b.end) for b in module.bindings if b.name == name]
        word = re.escape(name)
        pattern = rf"\b(?!(?<![^\n]){word}(?:\.{_FILLERS}\(|\[[^\]\n]{{0,80}}\][ \t]*=(?!=))){word}\b"
        places = [match.start() for match in re.finditer(pattern.encode(), module.source)]
        inside = all(any(start <= place < end for start, end in spans) for place in places)
        is_removed = any(s.start <= binding.start < s.end for s in gone)
        others = (other for other in codebase.modules.values() if other is not module)
        if inside and not is_removed and not any(name.encode() in other.source for other in others):
            yield name


MAX_CALLED = 100
"""Number of characters of a call that is told."""
MAX_HANDLED = 2
"""Number of handled exceptions of a function that are told."""


def _needed(
    words: Words, used: Uses, defined: set[str], told: set[str], unexecuted: Collection[tuple[str, str]]
) -> Iterator[tuple[NeedKind, str, Piece, bool]]:
    """(kind, word, text with it, whether it is the answer) of each detail of one definition that a test needs.

    ``told`` are the whole texts of tests that its details have so far; those that are new are added. Exceptions that
    are ``unexecuted`` are no details, with their messages.
    """
    owner = words.symbol.symbol_id
    mentioned = used.attributes | used.names | used.texts
    name = words.symbol.name.partition("#")[0]
    yield from ((NeedKind.NAME, word, _NO_TEXT, False) for word in (words.names & mentioned) - defined)
    yield from (
        (NeedKind.ATTRIBUTE, word, _NO_TEXT, False)
        for word in _attributes(words, used) - defined
        if not _is_dunder(word)
    )
    called = {name, words.symbol.qualname.split(".")[-2]} if name == "__init__" else {name}
    keywords = {word for function, word in used.keywords if function in called}
    known = words.parameters | words.attributes | words.identifiers | {piece.text for piece in words.pieces}
    yield from ((NeedKind.KEYWORD, word, _NO_TEXT, False) for word in keywords & known)
    raised = (words.exceptions & used.exceptions) - ({"SystemExit"} if words.exits else set())
    raised = raised or {name for name, bases in words.bases.items() if bases & used.exceptions}
    raised = {name for name in raised if (owner, name) not in unexecuted}
    yield from ((NeedKind.EXCEPTION, word, _NO_TEXT, False) for word in raised)
    yield from ((NeedKind.CHAINED, line, _NO_TEXT, False) for line in chained_raises(words, used, raised))
    if "SystemExit" in used.exceptions:
        yield from ((NeedKind.EXCEPTION, word, _NO_TEXT, False) for word in _most_telling(words.exits))
    if words.gives_none and name in used.nones:
        yield NeedKind.RESULT, f"{name} None", _NO_TEXT, False
    if words.gives_truth and name in used.truths and not _is_dunder(name):
        yield NeedKind.RESULT, f"{name} bool", _NO_TEXT, False
    if words.gives_self and name in used.attributes and not _is_dunder(name):
        yield NeedKind.RESULT, f"{name} self", _NO_TEXT, False
    if any(map(_LAYOUT.search, used.texts)):
        yield from ((NeedKind.FORMAT, word, _NO_TEXT, False) for word in words.writers)
    yield from ((NeedKind.ORDER, word, _NO_TEXT, False) for word in words.sorts)
    yield from ((NeedKind.HANDLED, word, _NO_TEXT, False) for word in sorted(words.handled)[:MAX_HANDLED])
    given = {keyword for _, keyword in used.keywords} & words.called.keys() - defined
    calls = (words.called[word] for word in given)
    yield from ((NeedKind.CALLED, call, _NO_TEXT, False) for call in calls if len(call) <= MAX_CALLED)
    yield from (
        (NeedKind.NUMBER, word, _stored(words, word), words.numbers[word])
        for word in (used.numbers & words.numbers.keys()) - COMMON_NUMBERS
    )
    for written, target in used.replaced:  # the code may import the module by the same alias
        if target.rpartition(".")[2] not in defined and (_reads(words, written) or _reads(words, target)):
            yield NeedKind.REPLACED, target, _NO_TEXT, False
    texts = [each for each in _needed_texts(words, used, told) if (owner, each[2].exception) not in unexecuted]
    yield from texts
    yield from ((NeedKind.TEXT, text, _NO_TEXT, False) for text in _needed_blanks(words, used))
    signs = _needed_signs(words, used, {word for kind, word, _, _ in texts if kind is NeedKind.TEXT})
    yield from ((NeedKind.TEXT, sign, _NO_TEXT, False) for sign in signs)
    yield from ((NeedKind.TEXT, text, _NO_TEXT, False) for text in sorted(_beside(words, {each[1] for each in texts})))
    known_messages = {piece.template or word for kind, word, piece, _ in texts if kind is NeedKind.MESSAGE}
    for piece in (piece for word in sorted(raised) for piece in _when_raised(words, word)):
        if (piece.template or piece.text) not in known_messages:
            yield NeedKind.MESSAGE, piece.text.strip(), piece, False


def _reads(words: Words, target: str) -> bool:
    """Whether the code reads what a test replaces, as far as the names before the last one tell.

    Of ``shop.bank.rate``, the code reads ``bank.rate``, or is in ``bank.py`` and reads ``rate``; of a test's variable
    ``account.rate``, a method may read ``self.rate``.
    """
    *before, owner, last = ["", *target.split(".")]
    owners = words.owners.get(last, set())
    path = PurePosixPath(words.symbol.path)
    homes = {path.parent.name if path.stem == "__init__" else path.stem, "builtins"}
    if "" in owners and owner in homes and last not in words.parameters:
        return True
    if owners & {"self", "cls"} and (len(before) <= 1 or owner in words.symbol.qualname.split(".")):
        return True
    return bool(owner) and owner.strip("_") in {each.strip("_") for each in owners}


def _needed_blanks(words: Words, used: Uses) -> list[str]:
    """Texts of blanks alone that tests have in theirs: ends of lines of other systems, tabulators."""
    blank = {piece.text for piece in words.pieces if piece.role is Role.TEXT and not piece.text.strip()}
    return sorted(each for each in blank if set(each) - {" ", "\n"} and any(each in text for text in used.texts))


def _needed_signs(words: Words, used: Uses, told: Collection[str]) -> list[str]:
    """Texts of one sign that tests have in what they compare results with, and that no told text has."""
    own = {piece.text for piece in words.pieces if piece.role is Role.TEXT and not piece.template}
    signs = sorted(each for each in own if is_sign(each) and not any(each in text for text in told))
    return [each for each in signs if any(each in text for text in used.compared)][:MAX_SIGNS]


def _beside(words: Words, needed: set[str]) -> set[str]:
    """The other texts of conditions in which a needed one stands: one alone would tell a half of these."""
    groups = (group for group in words.groups if not needed.isdisjoint(group))
    return {
        text for group in groups for text in group if text not in needed and text.strip() and len(text) <= MAX_ANSWER
    }


def _stored(words: Words, number: str) -> Piece:
    """``name = number`` as the template, if the code gives a number to one attribute of its own object."""
    names = words.stored.get(number, set())
    return replace(_NO_TEXT, template=f"{next(iter(names))} = {number}") if len(names) == 1 else _NO_TEXT


def _when_raised(words: Words, exception: str) -> list[Piece]:
    """The messages of an exception, one part of each: they say when it is raised. None if there are many."""
    own = (p for p in words.pieces if p.role is Role.MESSAGE and p.exception == exception and not p.is_whole_code)
    by_message: dict[str, Piece] = {}
    for piece in sorted(own, key=lambda piece: (-len(piece.text), piece.order)):
        by_message.setdefault(piece.template or piece.text, piece)
    is_shown = words.symbol.loc > MIN_SHOWN_LOC and len(by_message) <= MAX_MESSAGES
    return [piece for text, piece in sorted(by_message.items()) if is_shown and len(text) <= MAX_ANSWER]


def _most_telling(exits: Collection[str]) -> list[str]:
    """Of two ways to end the process with one code, the one that says for which exception."""
    return [each for each in exits if not any(other.startswith(f"{each} ") for other in exits)]


def _attributes(words: Words, used: Uses) -> set[str]:
    """Attributes that tests name and the definition sets, or were seen to read from what it makes or changes; and those
    of objects that tests make of keywords alone."""
    named = words.attributes & (used.attributes | used.texts)
    made = {word for function, word in used.keywords if function in NAMESPACES}
    read = {word for word, owners in words.owners.items() if owners != {""}} | {piece.text for piece in words.pieces}
    return named | (words.fields & used.own) | (words.elsewhere & used.settled) | (made & read)


def _needed_texts(words: Words, used: Uses, told: set[str]) -> Iterator[tuple[NeedKind, str, Piece, bool]]:
    whole = {piece.text for piece in words.pieces if piece.is_whole_code}
    best = words.best_pieces
    wholes = []
    for text in _whole_texts(best.values(), used, is_short=words.symbol.loc <= MIN_SHOWN_LOC):
        if text in told or len(told) < MAX_WHOLE_OF_OWNER:
            told.add(text)
            wholes.append(text)
    yield from ((NeedKind.TEXT, text, _NO_TEXT, False) for text in wholes)
    if words.symbol.loc > MIN_SHOWN_LOC:
        formats = [*words.formats, *_hidden_by_longer(words)]
        wanted = {each.template: _is_around(each) for each in formats if _is_filled_in(each, used)}
        shown = sorted(wanted, key=lambda template: (wanted[template], template))
        yield from ((NeedKind.TEXT, text, _NO_TEXT, False) for text in shown[:MAX_WHOLE] if len(text) <= MAX_ANSWER)
        printed = sorted(text for text in words.printed if len(text) <= MAX_ANSWER)
        yield from ((NeedKind.TEXT, text, _NO_TEXT, False) for text in printed[:MAX_PRINTED])
    for piece in best.values():
        role = Role.KEY if piece.role is Role.TEXT and piece.text in used.keys else piece.role
        for word in common_words(piece, used):
            if role is Role.TEXT and any(word in text for text in wholes):
                continue
            if piece.role is Role.MESSAGE and word in words.parameters:
                continue  # the name of what is filled in
            is_answer = len(word) > MAX_ANSWER or word in whole or piece.text in whole
            template = piece.template or (piece.text if word != piece.text else "")
            is_shown = len(template) <= MAX_ANSWER and words.symbol.loc > MIN_SHOWN_LOC
            yield _KINDS[role], word, replace(piece, template=template if is_shown else "", within=template), is_answer


def _whole_texts(pieces: Iterable[Piece], used: Uses, *, is_short: bool) -> list[str]:
    """Texts of the tests that are put together of several texts of the removed code: these alone do not tell how.

    In a short function, whose templates are not shown, the parts of one template count as texts; two of them tell their
    order by themselves.
    """
    own = {
        piece.text.strip(): piece.text if is_short else piece.template or piece.text
        for piece in pieces
        if piece.role is Role.TEXT and not piece.is_whole_code
    }
    parts = [t for t in own if len(t) >= MIN_PART and any(map(str.isalnum, t)) and not _NAME.fullmatch(t)]
    found = []
    for text in sorted(used.texts - used.keys):
        within = {part for part in parts if part in text and re.search(bounded(part), text)}
        apart = {own[part] for part in within if not any(part in other for other in within - {part})}
        if len(apart) >= MIN_PARTS + is_short and len(text) <= MAX_ANSWER and text.strip() not in own:
            found.append(text)
    return found[:MAX_WHOLE]


def _hidden_by_longer(words: Words) -> Iterator[Format]:
    """The texts with placeholders all of whose parts are parts of longer ones, which are told instead."""
    told = {piece.template for piece in words.best_pieces.values()}
    parts: dict[str, set[str]] = defaultdict(set)
    for piece in words.pieces:
        if piece.role is Role.TEXT and piece.template and piece.template not in told:
            parts[piece.template].add(piece.text)
    for template, texts in parts.items():
        yield Format(template, tuple(sorted(texts, key=template.find)))


def _is_around(written: Format) -> bool:
    """Whether a text is one value with something before and after it."""
    around = written.separators
    return len(around) == 2 and written.template.startswith(around[0]) and written.template.endswith(around[1])


def _is_filled_in(written: Format, used: Uses) -> bool:
    """Whether a text of a test, or a line of one, has the separators of a format, in order."""
    has_lines = any("\n" in separator for separator in written.separators)
    texts = used.texts - used.keys
    lines = texts if has_lines else {line for text in texts for line in text.splitlines()}
    return any(_has_in_order(line, written.separators) for line in lines)


def _has_in_order(line: str, parts: Iterable[str]) -> bool:
    place = 0
    for part in parts:
        found = line.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
