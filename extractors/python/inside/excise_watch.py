"""Watches what tests do with values that come from removed code (``excise_origins.py``). Standard library and pytest.

The functions of the tests are rewritten (``excise_observed.py``) when the suite has been collected. What they do with
such values is noted as words, by test: ``attributes``, ``settled`` (attributes of objects whose class stays), ``keys``,
``shapes`` (of plain values, ``?`` for others, after the name of the attribute and a blank), ``keywords`` (after the
name of the function and a blank), ``texts``, ``expressions`` (regular ones, that texts match), ``numbers``,
``exceptions`` and ``patterns`` (regular expressions that messages match).
Places where a word of interest was used on nothing but values that have nothing to do with removed code are reported,
too.
"""

import builtins
import functools
import gc
import itertools
import operator
import types

import excise_observed
import pytest
from excise_lines import Lines
from excise_origins import REMOVED, STAYING, Origins, items_of, kind_of_container
from excise_swap import key_of, real

MAX_WORDS = 500
"""Maximum number of words of one kind and test."""
MAX_PARTS = 300
"""Maximum number of parts of one value that are looked at."""
MAX_EVENTS = 20000
"""Number of attributes, calls and comparisons of one test after which the rest of it is not watched: loops of tens of
thousands of steps would take a minute."""
MAX_LENGTH = 2000
"""Length of a text above which it is left out."""
SHAPED = frozenset([bool, bytes, dict, float, frozenset, int, list, set, str, tuple, type(None)])
"""Types of values whose shapes are noted."""
MAX_SHAPED = 20
"""Number of items of a container that its shape is told by."""
MAX_KINDS = 3
"""Number of kinds of items of a container up to which its shape tells them."""
RAISING = frozenset(["raises", "warns", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "assertWarns",
                     "assertWarnsRegex"])  # fmt: skip
"""Functions that expect exceptions or warnings."""
LOOK_UP = frozenset(["get", "pop", "setdefault", "getlist"])
"""Methods whose first argument is a key."""
ATTRIBUTE_READERS = (getattr, hasattr)
OF_MAPPINGS = frozenset(["items", "keys", "values"])
"""Methods that mappings have, and few other types."""
BOUND = (types.MethodType, types.BuiltinMethodType, type({}.get), type("".join))
FUNCTIONS = (*BOUND, types.FunctionType)
WRAPPERS = (types.FunctionType, type(functools.lru_cache()(len)))
"""Types of functions that may keep the one which they call as ``__wrapped__``."""
NONE_KNOWN = {}
"""Its ``get`` returns the second of its arguments, and costs next to nothing."""
NOTHING = object()
"""Stands for a value that is not there."""


class Watch:
    """Hooks and notes of one run. ``request`` names the files, spans, classes and words of interest."""

    def __init__(self, request):
        self.request = request
        self.sites = []
        self.notes = {}
        self.seen, self.relied = {}, {}
        self.related, self.called, self.given, self.lefts = {}, {}, {}, {}
        self.asked = frozenset(request["words"])
        self.passed, self.failed = [], set()
        self.problem, self.test = "", ""
        self.is_running = self.is_paused = False
        self.events = 0
        spans, owners, tests = request["spans"], request["owners"], request["tests"]
        self.origins = Origins(request["root"], spans, owners, tests, self.note)
        self.lines = Lines(self.origins.is_removed_code)

    # ---------------------------------------------------------------------------------- the run
    def start(self, functions=None):
        """Rewrite the tests' functions and begin to watch.

        ``functions`` are those of the project by :func:`excise_swap.key_of`; without it, they are searched in memory.
        """
        try:
            self.set_hooks()
            found = functions_in_memory() if functions is None else functions
            for path, ranges in self.request["files"].items():
                excise_observed.rewrite(self.origins.root, path, ranges, found, self.sites)
            self.is_running = self.origins.start()
            self.problem = "" if self.is_running else "the project watches what runs, too"
            self.lines.start()
        except Exception as error:
            self.problem = "%s: %s" % (type(error).__name__, error)

    def set_hooks(self):
        """Let the rewritten code call the hooks, or nothing while the watch is paused."""
        for hook in excise_observed.HOOKS:
            called = NONE_KNOWN.get if self.is_paused else getattr(self, hook)
            setattr(builtins, excise_observed.builtin_name(hook), called)

    def count(self):
        """Count an event; after too many, let the rewritten code do nothing with values until the next test."""
        self.events += 1
        if self.events > MAX_EVENTS and not self.is_paused:
            self.is_paused, self.origins.is_complete = True, False
            self.origins.stop()
            self.set_hooks()

    def finish(self):
        """Watch nothing more, and return the report."""
        self.lines.stop()
        if self.is_running:
            self.origins.stop()
        foreign = [self.sites[site].place for site, only in self.seen.items() if only]
        return {
            "words": {test: {kind: sorted(found) for kind, found in own.items()} for test, own in self.notes.items()},
            "results": list(self.results()),
            "foreign": sorted(foreign) if self.origins.is_complete else [],
            "lines": self.lines.report(self.origins.root),
            "passed": [test for test in self.passed if test not in self.failed],
            "problem": self.problem,
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        """A test begins."""
        self.test = nodeid
        self.events = 0
        if self.is_paused:
            self.is_paused = False
            self.set_hooks()
            self.origins.resume()
        self.lines.begin(nodeid)
        for held in (self.given, self.lefts, self.called, self.origins.atoms, self.origins.results):
            held.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """A phase of a test has ended."""
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            self.failed.add(report.nodeid)
        elif report.when == "call":
            self.passed.append(report.nodeid)

    # ----------------------------------------------------------------------------------- notes
    def note(self, kind, word):
        """Note a word of the test that runs."""
        found = self.notes.setdefault(self.test, {}).setdefault(kind, set())
        if len(found) < MAX_WORDS:
            found.add(word)

    def note_text(self, kind, text):
        """Note a text, of bytes with one character for each."""
        if isinstance(text, bytes):
            text = bytes(text).decode("latin-1")
        if isinstance(text, str) and len(text) <= MAX_LENGTH:
            self.note(kind, str.__str__(text))

    def note_attribute(self, value, word):
        """Note that an attribute is read from a value of removed code, unless a class from elsewhere has it."""
        cls = value if isinstance(value, type) else type(value)
        owner = next((each for each in type.mro(cls) if word in vars(each)), cls)
        kind = self.origins.own_kind_of(owner) if owner is not cls else self.origins.kind_of(cls)
        if kind == STAYING:
            self.note("settled", word)
        elif kind == REMOVED or word not in vars(owner):
            self.note("attributes", word)

    def note_fields(self, value):
        """Note the names of the fields of a value that is used by position, if they are those of a removed class."""
        cls = type(value)
        if issubclass(cls, tuple) and cls is not tuple and self.origins.kind_of(cls) == REMOVED:
            for name in getattr(cls, "_fields", ()):
                self.note_text("attributes", name)

    def note_value(self, value):
        """Note the texts, numbers and keys of a value with which one of removed code is compared."""
        pending, count = [value], 0
        while pending and count < MAX_PARTS:
            each = pending.pop()
            cls = type(each)
            count += 1
            if issubclass(cls, (str, bytes)):
                self.note_text("texts", each)
            elif cls in (int, float):
                self.note("numbers", repr(each))
            elif issubclass(cls, dict):
                for key in list(dict.keys(each))[:MAX_PARTS]:
                    self.note_text("keys", key)
            elif cls.__name__.startswith("Approx"):
                pending.append(getattr(each, "expected", None))
            pending += items_of(each)

    def note_result(self, value, kind=""):
        """Note the type of a result of a removed function, on which a test relies, or another ``kind`` of it."""
        code = self.origins.maker_of(value)
        if code is not None:
            self.relied.setdefault(code, set()).add(kind or type(value).__name__)

    def results(self):
        """Path, line and name of each function on the types of whose results tests rely, if it always returns one."""
        for code, kinds in self.relied.items():
            if len(self.origins.returns.get(code, ())) == 1:
                path = real(code.co_filename)[len(self.origins.root) + 1 :]
                yield from ([path, code.co_firstlineno, code.co_name, kind] for kind in sorted(kinds))

    def look(self, site, value):
        """Note whether a place with a word of interest is used on nothing but foreign values."""
        self.seen[site] = self.seen.get(site, True) and self.origins.is_foreign(value)

    # ----------------------------------------------------------------- hooks: attributes and items
    def base(self, site, value):
        """The object whose attribute or item is loaded."""
        self.count()
        place = self.sites[site]
        self.related[site] = self.origins.is_from_removed(value)
        if self.related[site] and place.kind == "attribute":
            self.note_attribute(value, place.word)
            if place.word in OF_MAPPINGS:
                self.note_result(value, kind=kind_of_container(value))
        if place.word in self.asked:
            self.look(site, value)
        return value

    def key(self, site, value):
        """The key of an item that is loaded."""
        if self.related.get(site):
            self.note_text("keys", value)
        return value

    def got(self, site, value):
        """What was loaded."""
        if self.related.get(site):
            self.origins.mark(value)
            if self.sites[site].kind == "attribute":
                shape = shape_of(value) if type(value) in SHAPED else "?"
                self.note("shapes", "%s %s" % (self.sites[site].word, shape))
        return value

    # ------------------------------------------------------------------------------ hooks: calls
    def callee(self, site, function):
        """The function that is called."""
        self.count()
        receiver = function.__self__ if type(function) in BOUND else None
        inner = unwrapped(function)
        is_removed = self.origins.is_removed_function(inner)
        self.related[site] = is_removed or (receiver is not None and self.origins.is_from_removed(receiver))
        name = inner.__name__ if isinstance(inner, (*FUNCTIONS, type)) else ""
        if is_removed:
            self.called[site] = name
            for word in self.sites[site].keywords:
                self.note("keywords", "%s %s" % (name, word))
        if is_special(function, name):
            self.given[site] = (function, name, [])
        if not self.asked.isdisjoint(self.sites[site].keywords):
            self.look(site, inner)
        return function

    def argument(self, site, value):
        """An argument of a call."""
        if self.origins.is_from_removed(value):
            self.related[site] = True
            self.note_fields(value)
        if site in self.given:
            self.given[site][2].append(value)
        return value

    def options(self, site, value):
        """What stands after ``**`` in a call."""
        if site in self.called and isinstance(value, dict):
            for word in list(dict.keys(value)):
                self.note("keywords", "%s %s" % (self.called[site], word))
        return value

    def result(self, site, value):
        """The result of a call."""
        self.called.pop(site, None)
        function, name, arguments = self.given.pop(site, (None, "", ()))
        if function is not None:
            self.special(site, function, name, arguments)
        if self.related.get(site):
            self.origins.mark(value)
        return value

    def special(self, site, function, name, arguments):
        """Note what a call of a function of the tests' tools says."""
        keywords = self.sites[site].keywords
        count = len(arguments) - len(keywords)
        given, named = arguments[:count], dict(zip(keywords, arguments[count:]))  # noqa: B905  (Python 3.8)
        if is_reader(function):
            if self.origins.is_from_removed(given[0]) and isinstance(given[1], str):
                self.note_attribute(given[0], given[1])
        elif isinstance(function, operator.attrgetter):
            for value in given:
                if self.origins.is_from_removed(value):
                    for words in function.__reduce__()[1]:
                        self.note_attribute(value, words.partition(".")[0])
        elif name in LOOK_UP:
            if self.origins.is_from_removed(function.__self__):
                self.note_text("keys", given[0] if given else None)
        elif name in RAISING:
            self.expected(name, given, named)
        else:
            self.asserted(name, given)

    def expected(self, name, given, named):
        """Note the exceptions or warnings that a test expects, and their messages."""
        first = given[0] if given else named.get("expected_exception", named.get("expected_warning"))
        for cls in first if isinstance(first, tuple) else (first,):
            if isinstance(cls, type):
                self.note("exceptions", cls.__name__)
        pattern = named.get("match", named.get("expected_regex"))
        if "Regex" in name and len(given) > 1:
            pattern = given[1]
        self.note_text("patterns", getattr(pattern, "pattern", pattern))

    def asserted(self, name, given):
        """Note with what an assertion compares a value of removed code."""
        if len(given) < 2:
            return
        if name == "assertIn":
            self.contained(given[0], given[1])
        elif "Not" in name:
            pass
        elif "Regex" in name:
            if self.origins.is_from_removed(given[0]):
                self.note_text("expressions", getattr(given[1], "pattern", given[1]))
        else:
            self.compared(given[0], given[1])

    # ------------------------------------------------------------------------ hooks: comparisons
    def left(self, site, value):
        """The left side of a comparison."""
        self.count()
        self.lefts[site] = value
        return value

    def right(self, site, value):
        """The right side of a comparison."""
        left, sign = self.lefts.pop(site, NOTHING), self.sites[site].word
        if left is NOTHING:
            return value
        if sign == "Eq":
            self.compared(left, value)
        elif sign == "In":
            self.contained(left, value)
        return value

    def compared(self, left, right):
        """Two values are compared."""
        for value in (left, right):
            if type(left) is type(right) or self.origins.kind_of(type(value)) == STAYING:
                self.note_result(value)
        if self.origins.is_from_removed(left):
            self.note_fields(left)
            self.note_value(right)
        elif self.origins.is_from_removed(right):
            self.note_fields(right)
            self.note_value(left)

    def contained(self, item, container):
        """A value is looked for in another."""
        if self.origins.is_from_removed(container):
            is_text = isinstance(container, (str, bytes, list, tuple))
            self.note_text("texts" if is_text else "keys", item)
        elif self.origins.is_from_removed(item):
            self.note_value(container)

    def parts(self, site, value):
        """A value that is unpacked."""
        self.note_fields(value)
        self.note_result(value, kind=str(len(value)))
        return value


def shape_of(value, depth=3):
    """The type of a value, with those of what is in it: ``list[tuple[int, str]]``."""
    cls = type(value)
    if value is None:
        return "None"
    if cls not in (list, tuple, set, frozenset, dict) or not value or not depth:
        return public_name(cls)
    if cls is tuple and len(value) <= MAX_KINDS:
        return "tuple[%s]" % ", ".join(shape_of(item, depth - 1) for item in value)
    parts = [value.keys(), value.values()] if cls is dict else [value]
    kinds = [sorted({shape_of(item, depth - 1) for item in itertools.islice(part, MAX_SHAPED)}) for part in parts]
    if any(len(each) > MAX_KINDS for each in kinds):
        return cls.__name__
    return "%s[%s%s]" % (cls.__name__, ", ".join(map(" | ".join, kinds)), ", ..." if cls is tuple else "")


def public_name(cls):
    """The name of a class; ``object`` for one that is private, or has no name that is a text."""
    name = type.__dict__["__name__"].__get__(cls)
    return name if type(name) is str and not name.startswith("_") else "object"


def unwrapped(function):
    """The function behind partial calls, bound methods and wrappers."""
    for _ in range(10):
        if isinstance(function, functools.partial):
            function = function.func
        elif type(function) is types.MethodType:
            function = function.__func__
        elif type(function) in WRAPPERS and "__wrapped__" in function.__dict__:
            function = function.__wrapped__
        else:
            break
    return function


def is_reader(function):
    """Whether a function is ``getattr`` or ``hasattr``."""
    return any(function is each for each in ATTRIBUTE_READERS)


def is_special(function, name):
    """Whether the arguments of a function say what a test needs."""
    if is_reader(function) or isinstance(function, operator.attrgetter):
        return True
    return name in RAISING or name.startswith("assert") or (name in LOOK_UP and type(function) in BOUND)


def functions_in_memory():
    """All functions by :func:`excise_swap.key_of`."""
    gc.unfreeze()  # what is frozen is not found
    found = {}
    for function in gc.get_objects():
        if type(function) is types.FunctionType:
            found.setdefault(key_of(function.__code__), []).append(function)
    return found
