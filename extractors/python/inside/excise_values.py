"""Encodes values as JSON without loss: exact types, floats by their bits. A value that cannot be encoded is refused.

``encode`` returns nested lists that begin with a tag; ``excise_decode`` restores the value. A value that holds itself
is numbered (``at``), and referred to by that number (``back``). Objects of the project are encoded as class and state;
objects of removed classes (``opaque``) as their class alone, as a solution may represent their state freely. Functions
without an importable name are encoded by their code in arguments of calls, and only as "a function" in outcomes. Pickle
is not used.
"""

import base64
import collections
import contextlib
import copy
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import io
import itertools
import marshal
import pathlib
import re
import struct
import sys
import types
import uuid

MAX_NODES = 5000
"""Maximum number of nested values in one encoded value."""
MAX_DEPTH = 40
"""Maximum depth of nesting."""
MAX_TEXT = 64 << 10
"""Maximum number of characters or bytes of one text."""
MAX_ITEMS = 1000
"""Maximum number of items of an iterator."""
ITERATORS = (
    types.GeneratorType, map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())), type(iter("")),
    type(iter({})), type(iter(set())), type(iter(range(0))), type(iter({}.values())), type(iter({}.items())),
    type(iter(b"")), type(reversed([])), itertools.chain, itertools.islice, itertools.count, itertools.cycle,
    itertools.repeat, itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile,
    itertools.zip_longest, itertools.product, itertools.permutations, itertools.combinations, type(iter(int, 1)),
    itertools.combinations_with_replacement, itertools.compress, itertools.filterfalse, itertools.groupby,
)  # fmt: skip

COPIED = tuple(
    type(iter(of)) for of in ([], (), "", b"", bytearray(), range(0), {}, {}.values(), {}.items(), set(), reversed([]))
)
"""Types of iterators that can be copied, so that the copy is read and the original stays unread."""
MADE_IN_C = ("builtins", "itertools", "io", "threading", "_io", "_thread", "weakref", "ctypes")
TIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)
STREAMS = (io.StringIO, io.BytesIO)
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
WRAPPERS = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel")}
"""What wraps functions in classes, to the attributes with these."""
NOT_CARRIED = frozenset(
    ["__dict__", "__weakref__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__",
     "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__",
     "_abc_impl"]
)  # fmt: skip
"""Names in a class that Python gives values to."""
CYCLIC = ("obj", "l", "d")
"""Tags of values that are made before what they hold, so that this may be they themselves."""
SEARCHES = ("match", "fullmatch", "search")
"""Methods of patterns that find a match; others are counted among all matches."""


class Unserialisable(Exception):
    """Raised for a value that cannot be encoded; the message says why."""


def name_of(thing):
    """``module:qualname`` of a class or function. Raises :class:`Unserialisable` for a local one."""
    module, qualname = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not module or "<" in qualname or not qualname:
        raise Unserialisable("local %s" % type(thing).__name__)
    return "%s:%s" % (module, qualname)


carried_classes = {}
"""``module:qualname`` of the classes of missing files that ``excise_decode`` has made, to these."""


def find(name):
    """The class or function of the name ``module:qualname``; imports the module, unless the class was carried."""
    if name in carried_classes:
        return carried_classes[name]
    module, _, qualname = name.partition(":")
    found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


class Encoder:
    """Encodes one value.

    ``opaque(cls)`` is true for a removed class, whose state is left out. ``made(value)`` returns the recipe of an
    object that must be constructed again, or ``None``. ``carried(function)`` is true if the code of a function without
    an importable name may be encoded; without it, no code is. ``alone(thing)`` is true of a function or class whose
    module may be missing where it is decoded, so that what it uses must be encoded, too: of classes, in ``classes``,
    by name.
    """

    def __init__(self, opaque=lambda cls: False, made=lambda value: None, carried=None, alone=lambda thing: False):
        self.opaque = opaque
        self.made = made
        self.carried = carried
        self.alone = alone
        self.nodes = 0
        self.ancestors = set()
        self.numbers, self.marked = {}, 0
        self.modules, self.classes, self.named = set(), {}, {}
        self.losing = frozenset()
        """Files whose names may be missing where the value is decoded."""

    def encode(self, value, depth=0):
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Unserialisable("too large")
        kind = type(value)
        if value is None or kind is bool:
            return ["c", value]
        if kind is int:
            return ["i", self.text(hex(value) if abs(value) >= 1 << 63 else str(value))]
        if kind is float:
            return ["f", float_bits(value)]
        if kind is complex:
            return ["z", float_bits(value.real), float_bits(value.imag)]
        if kind is str:
            return ["s", self.text(value)]
        if kind in (bytes, bytearray):
            return ["b" if kind is bytes else "ba", base64.b64encode(self.text(bytes(value))).decode()]
        if value is Ellipsis or value is NotImplemented:
            return ["k", repr(value)]
        if id(value) in self.ancestors:
            return self.again(value)
        self.ancestors.add(id(value))
        try:
            node = self.nested(value, kind, depth + 1)
        finally:
            self.ancestors.discard(id(value))
        number = self.numbers.pop(id(value), None)
        if number is None:
            return node
        if node[0] not in CYCLIC:
            raise Unserialisable("cycle")
        return ["at", number, node]

    def again(self, value):
        """A value within itself; a class, by its name."""
        if isinstance(value, type) and self.is_alone(value):
            return ["ref", self.class_name(value, MAX_DEPTH)]
        if id(value) not in self.numbers:
            self.numbers[id(value)] = self.marked
            self.marked += 1
        return ["back", self.numbers[id(value)]]

    def name(self, thing):
        """The name of a class or function, whose module is added to those that decoding needs."""
        name = name_of(thing)
        self.modules.add(name.partition(":")[0])
        return name

    def text(self, value):
        if len(value) > MAX_TEXT:
            raise Unserialisable("too large")
        return value

    def all(self, values, depth):
        return [self.encode(value, depth) for value in values]

    def pairs(self, mapping, depth):
        return [[self.encode(k, depth), self.encode(v, depth)] for k, v in mapping.items()]

    def nested(self, value, kind, depth):
        recipe = self.made(value)
        if recipe is not None:
            return recipe
        if kind in (list, tuple):
            return ["l" if kind is list else "t", self.all(value, depth)]
        if kind is dict:
            return ["d", self.pairs(value, depth)]
        if kind in (set, frozenset):
            return ["S" if kind is set else "F", sorted(self.all(value, depth), key=repr)]
        if kind is collections.OrderedDict:
            return ["od", self.pairs(value, depth)]
        if kind is collections.defaultdict:
            return ["dd", self.encode(value.default_factory, depth), self.pairs(value, depth)]
        if kind is collections.Counter:
            return ["C", self.pairs(value, depth)]
        if kind is collections.deque:
            return ["q", self.all(value, depth), value.maxlen]
        if kind in COPIED:
            return ["it", self.all(first_items(copy.copy(value)), depth)]
        if kind in VIEWS:
            return ["dv", VIEWS[kind], self.all(value, depth)]
        if kind in (range, slice):
            parts = (value.start, value.stop, value.step)
            return ["r" if kind is range else "sl", self.all(parts, depth)]
        if kind in (decimal.Decimal, fractions.Fraction, uuid.UUID):
            return ["n", name_of(kind), str(value)]
        if kind is itertools.count:
            return self.count(value, depth)
        if kind in STREAMS and not value.closed:
            return self.stream(value, kind, depth)
        if kind in TIMES or kind in (datetime.datetime, datetime.date):
            plain = next(base for base in kind.__mro__ if base in TIMES)  # a frozen clock has classes of its own
            return ["new", name_of(plain), self.all(value.__reduce__()[1], depth)]
        if isinstance(value, pathlib.PurePath):
            return ["n", "pathlib:PurePath" if not isinstance(value, pathlib.Path) else "pathlib:Path", str(value)]
        if isinstance(value, re.Pattern):
            return ["re", self.encode(value.pattern, depth), value.flags]
        if isinstance(value, re.Match):
            return self.match(value, depth)
        if isinstance(value, enum.Enum):
            return ["e", self.name(kind), value.name]
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self.reference(value, depth)
        if isinstance(value, types.MethodType):
            return ["bm", self.encode(value.__self__, depth), value.__func__.__name__]
        if kind is functools.partial:
            return ["pa", self.all((value.func, value.args, value.keywords), depth)]
        if isinstance(value, types.ModuleType):
            return ["m", value.__name__]
        if kind.__module__ == "logging" and kind.__name__ in ("Logger", "RootLogger"):
            return ["new", "logging:getLogger", [self.encode(value.name, depth)]]
        if value is sys.stdout or value is sys.stderr:
            return ["ref", "sys:stdout" if value is sys.stdout else "sys:stderr"]
        if isinstance(value, BaseException):
            args = self.all(value.args, depth)
            return [
                "x",
                self.class_name(kind, depth),
                args,
                [] if self.opaque(kind) else self.told_by(value, args, depth),
            ]
        return self.instance(value, kind, depth)

    def told_by(self, error, args, depth):
        """(name, encoded value) of the attributes of an exception, as far as they can be encoded."""
        found = []
        for name, value in sorted(vars(error).items()):
            with contextlib.suppress(Unserialisable):
                node = self.encode(value, depth)
                if self.numbers.pop(id(error), None) is None:  # made before its attributes, it holds none with itself
                    found.append([name, node])
        return found

    def stream(self, value, kind, depth):
        """A stream in memory, with its attributes if it has any. Raises :class:`Unserialisable` if it translates ends
        of lines."""
        state = value.__getstate__()
        if kind is io.StringIO and state[1] != "\n":
            raise Unserialisable(kind.__name__)
        made = ["io", kind.__name__, self.encode(value.getvalue(), depth), value.tell()]
        return [*made, self.pairs(state[-1], depth)] if state[-1] else made

    def count(self, value, depth):
        """An ``itertools.count``, which tells its numbers in its text alone. Raises :class:`Unserialisable`."""
        found = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(value))
        if found is None:
            raise Unserialisable("count")
        return ["new", "itertools:count", self.all([int(each) for each in found.groups() if each], depth)]

    def match(self, value, depth):
        """A match, by the search that finds it. Raises :class:`Unserialisable` if none does."""
        place = value.string, value.pos, value.endpos
        fitting = (value.start() == value.pos, value.span() == (value.pos, value.endpos), True)
        tried = itertools.compress(SEARCHES, fitting)  # another search might take ages
        how = (name for name in tried if spans_of(getattr(value.re, name)(*place)) == value.regs)
        found = next(how, None)
        if found is None:
            matches = enumerate(itertools.islice(value.re.finditer(*place), MAX_ITEMS))
            found = next((number for number, match in matches if match.regs == value.regs), None)
        if found is None:
            raise Unserialisable("Match")
        return ["ma", self.encode(value.re, depth), found, *self.all(place, depth)]

    def reference(self, value, depth):
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(
            value.__self__, (types.ModuleType, type(None))
        ):
            return ["bm", self.encode(value.__self__, depth), value.__name__]
        is_function = isinstance(value, types.FunctionType)
        if self.is_alone(value):
            return self.function(value, depth) if is_function else ["ref", self.class_name(value, depth)]
        try:
            name = self.name(value)
            same = find_or_none(name) is value
        except Unserialisable:
            same = False
        if same:
            return ["ref", name]
        if is_function:
            return self.function(value, depth)
        raise Unserialisable("local %s" % type(value).__name__)

    def is_alone(self, value):
        """Whether a function or class must be encoded with what it consists of."""
        is_code = isinstance(value, (type, types.FunctionType))
        return is_code and self.carried is not None and self.alone(value)

    def class_name(self, cls, depth):
        """The name of a class, which is added to ``classes`` if its module may be missing."""
        name = "%s:%s" % (cls.__module__, cls.__qualname__)
        if self.carried is not None and self.named.setdefault(name, cls) is not cls:
            raise Unserialisable("classes of one name")
        if name in carried_classes or name in self.classes:
            return name
        if self.is_alone(cls):
            self.classes[name] = None  # it may use itself
            try:
                self.classes[name] = [self.all(cls.__bases__, depth), [*self.members(cls, depth)]]
            except Unserialisable:
                del self.classes[name]
                raise
            return name
        if find_or_none(self.name(cls)) is not cls:
            raise Unserialisable("local class")
        return name

    def members(self, cls, depth):
        """(name, how it is wrapped, encoded value) of what a class of a missing file defines."""
        for name, value in vars(cls).items():
            if name in NOT_CARRIED or isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
                continue
            wrap = type(value).__name__ if type(value) in WRAPPERS else ""
            parts = [getattr(value, part) for part in WRAPPERS.get(type(value), ())] or [value]
            for part in parts:
                if isinstance(part, types.FunctionType) and not self.alone(part):
                    raise Unserialisable("class with functions that something has made")
            yield [name, wrap, self.all(parts, depth)]

    def function(self, value, depth):
        if self.carried is None:
            return ["fn"]
        if not self.carried(value):
            raise Unserialisable("function of removed code")
        if not isinstance(value.__module__, str):
            raise Unserialisable("function of no module")
        try:
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError:
            raise Unserialisable("cycle") from None
        code = rewritten.get(value.__code__, value.__code__)
        text = base64.b64encode(self.text(marshal.dumps(code))).decode()
        parts = (value.__defaults__, value.__kwdefaults__, tuple(cells))
        node = ["fn", value.__module__, text, self.all(parts, depth)]
        if self.alone(value):
            return [*node, list(self.names_used(value, code, depth))]
        self.modules.add(value.__module__)
        return node

    def names_used(self, function, code, depth):
        """(name, encoded value) of each name of its module that a function uses; ``None`` for the function itself."""
        for name in sorted(names_in(code) & function.__globals__.keys()):
            value = function.__globals__[name]
            if value is function:
                yield [name, None]
            elif id(value) not in self.ancestors or isinstance(value, type):
                try:
                    is_class = isinstance(value, type) and self.is_alone(value)
                    node = ["ref", self.class_name(value, depth)] if is_class else self.encode(value, depth)
                except Unserialisable:  # it may not need it where it is called
                    continue
                yield [name, node]

    def plain_object(self, value):
        """An object without anything: by a name that a module has for it, or another one. Raises
        :class:`Unserialisable` if the name may be missing."""
        for name, module in list(sys.modules.items()):
            for attribute, found in list(getattr(module, "__dict__", {}).items()):
                if found is value:
                    if getattr(module, "__file__", None) in self.losing:
                        raise Unserialisable("object")
                    self.modules.add(name)
                    return ["ref", "%s:%s" % (name, attribute)]
        return ["new", "builtins:object", []]

    def attributes(self, value, kind, state):
        """The attributes to encode."""
        return state

    def instance(self, value, kind, depth):
        if self.opaque(kind):
            if kind.__name__.startswith("_"):
                raise Unserialisable("object of a private class")
            return ["o", name_of(kind)]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["nt", self.name(kind), self.all(value, depth)]
        if kind is object:
            return self.plain_object(value)
        if kind.__module__ in MADE_IN_C:
            raise Unserialisable(kind.__name__)
        name = self.class_name(kind, depth)
        base = None
        state = state_of(value)
        if state is None:
            raise Unserialisable(kind.__name__)
        for plain, content in PLAIN.items():
            if isinstance(value, plain) and content is not None:
                base = self.encode(content(value), depth)
        state = self.attributes(value, kind, state)
        return ["obj", name, base, [[str(k), self.encode(v, depth)] for k, v in sorted(state.items())]]


rewritten = {}
"""Code of tests that is watched, to the code in whose place it stands (``excise_observed.py``)."""


def names_in(code):
    """The names that code uses, with that in it."""
    return set(code.co_names).union(*(names_in(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def spans_of(match):
    """The spans of a match and of its groups; ``None`` without one."""
    return match.regs if match is not None else None


def state_of(value):
    """Attributes of an object; ``None`` if it has state that no attribute shows."""
    kind = type(value)
    if any(base not in PLAIN and made_in_c(base) for base in kind.__mro__):
        return None
    state = dict(getattr(value, "__dict__", {}))
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot in ("__dict__", "__weakref__"):
                continue
            private = slot.startswith("__") and not slot.endswith("__")
            name = "_%s%s" % (cls.__name__.lstrip("_"), slot) if private else slot
            if hasattr(value, name):
                state[name] = getattr(value, name)
    return state


def made_in_c(cls):
    """Whether a class is implemented in C, so that its instances may hold more than attributes.

    The flag of heap types does not tell: since Python 3.9 more and more classes in C have it.
    """
    if cls.__flags__ & (1 << 9) == 0 or cls.__base__ is None:
        return True
    shown = [name for name, got in vars(cls).items() if isinstance(got, types.MemberDescriptorType)]
    shown += [name for name in ("__dict__", "__weakref__") if name in vars(cls)]
    word = struct.calcsize("P")
    return cls.__basicsize__ - cls.__base__.__basicsize__ > word * len(shown) or cls.__flags__ & (1 << 8) != 0


FACTORY = vars(collections.defaultdict)["default_factory"]
PLAIN = {
    object: None,
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    bytes: lambda value: b"".join([value]),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    collections.OrderedDict: lambda value: collections.OrderedDict(collections.OrderedDict.items(value)),
    collections.defaultdict: lambda value: collections.defaultdict(FACTORY.__get__(value), dict.items(value)),
    collections.deque: lambda value: collections.deque(collections.deque.__iter__(value), value.maxlen),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""Builtin classes whose whole state can be encoded, to a function that reads it past any override in a subclass."""


def find_or_none(name):
    try:
        return find(name)
    except (ImportError, AttributeError):
        return None


def float_bits(value):
    return "nan" if value != value else struct.pack(">d", value).hex()


def first_items(value):
    """All items of an iterator. Raises :class:`Unserialisable` if there are more than :data:`MAX_ITEMS`."""
    items = list(itertools.islice(value, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise Unserialisable("endless iterator")
    return items


def is_iterator(value):
    return issubclass(type(value), ITERATORS)
