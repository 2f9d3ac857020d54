"""Values as JSON and back, honestly: exact types, floats by their bits, what cannot be carried is refused, not guessed.

``encode`` gives nests of lists that begin with a tag; ``decode`` makes the value again, in a process that is the code's
own. Objects of the project travel as their class and state; objects of classes that were removed (``opaque``) travel
as their class alone, since how they keep their state is the solver's to choose. Nothing here is pickle.
"""

import base64
import collections
import datetime
import decimal
import enum
import fractions
import importlib
import itertools
import pathlib
import re
import struct
import types
import uuid

MAX_NODES = 5000
MAX_DEPTH = 40
MAX_TEXT = 64 << 10
MAX_ITEMS = 1000
ITERATORS = (
    types.GeneratorType, map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())), type(iter("")),
    type(iter({})), type(iter(set())), type(iter(range(0))), type(iter({}.values())), type(iter({}.items())),
    type(iter(b"")), type(reversed([])), itertools.chain, itertools.islice, itertools.count, itertools.cycle,
    itertools.repeat, itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile,
    itertools.zip_longest, itertools.product, itertools.permutations, itertools.combinations, type(iter(int, 1)),
    itertools.combinations_with_replacement, itertools.compress, itertools.filterfalse, itertools.groupby,
)  # fmt: skip


class Unserialisable(Exception):
    """A value that cannot be carried; the message says what."""


def name_of(thing):
    """``module:qualname`` of a class or function that can be found again by it."""
    module, qualname = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not module or "<" in qualname or not qualname:
        raise Unserialisable("local %s" % type(thing).__name__)
    return "%s:%s" % (module, qualname)


def find(name):
    """What ``module:qualname`` stands for."""
    module, _, qualname = name.partition(":")
    found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


class Encoder:
    """One value's way out; ``opaque`` says of a class whether its state is the solver's."""

    def __init__(self, opaque=lambda cls: False, made=lambda value: None):
        self.opaque = opaque
        self.made = made
        self.nodes = 0
        self.on_the_way = set()

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
        if id(value) in self.on_the_way:
            raise Unserialisable("cycle")
        self.on_the_way.add(id(value))
        try:
            return self.nested(value, kind, depth + 1)
        finally:
            self.on_the_way.discard(id(value))

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
        if kind in (range, slice):
            parts = (value.start, value.stop, value.step)
            return ["r" if kind is range else "sl", self.all(parts, depth)]
        if kind in (decimal.Decimal, fractions.Fraction, uuid.UUID):
            return ["n", name_of(kind), str(value)]
        if kind in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone):
            return ["new", name_of(kind), self.all(value.__reduce__()[1], depth)]
        if isinstance(value, pathlib.PurePath):
            return ["n", "pathlib:PurePath" if not isinstance(value, pathlib.Path) else "pathlib:Path", str(value)]
        if isinstance(value, re.Pattern):
            return ["re", self.encode(value.pattern, depth), value.flags]
        if isinstance(value, enum.Enum):
            return ["e", name_of(kind), value.name]
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self.reference(value)
        if isinstance(value, types.ModuleType):
            return ["m", value.__name__]
        if isinstance(value, BaseException):
            return ["x", name_of(kind), self.all(value.args, depth)]
        return self.instance(value, kind, depth)

    def reference(self, value):
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(
            value.__self__, (types.ModuleType, type(None))
        ):
            raise Unserialisable("bound builtin")
        name = name_of(value)
        try:
            same = find(name) is value
        except (ImportError, AttributeError):
            same = False
        if not same:
            raise Unserialisable("local %s" % type(value).__name__)
        return ["ref", name]

    def instance(self, value, kind, depth):
        if self.opaque(kind):
            return ["o", name_of(kind)]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["nt", name_of(kind), self.all(value, depth)]
        if kind.__module__ in ("builtins", "itertools", "io", "threading", "_io", "_thread", "weakref", "ctypes"):
            raise Unserialisable(kind.__name__)
        name = name_of(kind)
        if find_or_none(name) is not kind:
            raise Unserialisable("local class")
        base = None
        state = state_of(value)
        if state is None:
            raise Unserialisable(kind.__name__)
        for plain in PLAIN[1:]:
            if isinstance(value, plain):
                base = self.encode(plain(value), depth)
        return ["obj", name, base, [[str(k), self.encode(v, depth)] for k, v in sorted(state.items())]]


def state_of(value):
    """Attributes of a plain object; nothing for what keeps its state elsewhere."""
    kind = type(value)
    if any(base not in PLAIN and base.__flags__ & (1 << 9) == 0 for base in kind.__mro__):
        return None  # made in C: there is state that no attribute shows
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


PLAIN = (object, int, float, str, bytes, list, tuple, dict, set, frozenset)
"""Classes made in C whose whole state can be carried."""


def find_or_none(name):
    try:
        return find(name)
    except (ImportError, AttributeError):
        return None


def float_bits(value):
    return "nan" if value != value else struct.pack(">d", value).hex()


def bits_float(text):
    return float("nan") if text == "nan" else struct.unpack(">d", bytes.fromhex(text))[0]


# ------------------------------------------------------------------------------------------- back
def decode(node):
    """The value again. Imports what it names; for the sandbox only."""
    tag, rest = node[0], node[1:]
    return DECODERS[tag](*rest)


def many(nodes):
    return [decode(node) for node in nodes]


def mapping(kind, pairs):
    return kind((decode(k), decode(v)) for k, v in pairs)


def instance(name, base, state):
    cls = find(name)
    if base is None:
        value = cls.__new__(cls) if cls.__new__ is object.__new__ else object.__new__(cls)
    else:
        plain = decode(base)
        value = type(plain).__new__(cls, plain)
        if isinstance(value, (list, set)):
            (value.extend if isinstance(value, list) else value.update)(plain)
        elif isinstance(value, dict):
            dict.update(value, plain)
    for attribute, node in state:
        object.__setattr__(value, attribute, decode(node))
    return value


def made_again(name, args, kwargs, history):
    """An object of a removed class: made by its public face, then brought to where it was by the calls it had."""
    value = find(name)(*many(args), **{k: decode(v) for k, v in kwargs})
    for method, more, named in history:
        try:
            getattr(value, method)(*many(more), **{k: decode(v) for k, v in named})
        except Exception:  # the original raised here, too, or the comparison will show
            continue
    return value


def exception(name, args):
    cls = find(name)
    value = cls.__new__(cls, *many(args))
    value.args = tuple(many(args))
    return value


DECODERS = {
    "c": lambda value: value,
    "i": lambda text: int(text, 0),
    "f": bits_float,
    "z": lambda real, imag: complex(bits_float(real), bits_float(imag)),
    "s": lambda text: text,
    "b": lambda text: base64.b64decode(text),
    "ba": lambda text: bytearray(base64.b64decode(text)),
    "k": lambda text: {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[text],
    "l": many,
    "t": lambda nodes: tuple(many(nodes)),
    "d": lambda pairs: mapping(dict, pairs),
    "S": lambda nodes: set(many(nodes)),
    "F": lambda nodes: frozenset(many(nodes)),
    "od": lambda pairs: mapping(collections.OrderedDict, pairs),
    "dd": lambda factory, pairs: collections.defaultdict(decode(factory), mapping(dict, pairs)),
    "C": lambda pairs: collections.Counter(mapping(dict, pairs)),
    "q": lambda nodes, length: collections.deque(many(nodes), length),
    "r": lambda nodes: range(*many(nodes)),
    "sl": lambda nodes: slice(*many(nodes)),
    "n": lambda name, text: find(name)(text),
    "new": lambda name, nodes: find(name)(*many(nodes)),
    "re": lambda pattern, flags: re.compile(decode(pattern), flags),
    "e": lambda name, member: find(name)[member],
    "ref": find,
    "m": importlib.import_module,
    "x": exception,
    "nt": lambda name, nodes: find(name)(*many(nodes)),
    "obj": instance,
    "made": made_again,
    "it": lambda nodes: iter(many(nodes)),
}


# ---------------------------------------------------------------------------------------- outcomes
def drained(value):
    """The first items of an iterator, and how it ended: ``end``, ``more``, or the name of an exception."""
    items = []
    try:
        for item in value:
            items.append(item)
            if len(items) >= MAX_ITEMS:
                return items, "more"
    except Exception as error:
        return items, name_of(type(error))
    return items, "end"


def is_iterator(value):
    return isinstance(value, ITERATORS)


def brings_items(kind):
    """An iterator of another kind: written as a class, or made by a library."""
    files = kind.__module__ in ("io", "_io", "tempfile", "unittest.mock")
    return not files and all(any(name in vars(c) for c in kind.__mro__) for name in ("__iter__", "__next__"))


def encode_result(value, opaque):
    """A result: iterators are drained, since how they are made is the solver's to choose."""
    if is_iterator(value) or (brings_items(type(value)) and not opaque(type(value))):
        items, end = drained(value)
        return ["it", [encode_result(item, opaque) for item in items], end]
    return Encoder(opaque).encode(value)


def outcome_of(call, arguments, opaque):
    """What a call came to: result or exception, and its arguments afterwards."""
    try:
        value = call()
    except Exception as error:
        try:
            said = Encoder(opaque).all(error.args, 0)
        except Unserialisable:
            said = None
        return {"raised": name_of(type(error)), "said": said, "after": after(arguments, opaque)}
    return {"result": encode_result(value, opaque), "after": after(arguments, opaque)}


def after(arguments, opaque):
    """The arguments after the call, as far as they can be changed and carried."""
    return [changed_argument(value, opaque) for value in arguments]


def changed_argument(value, opaque):
    if is_iterator(value):
        return ["used"]
    try:
        return Encoder(opaque).encode(value)
    except Unserialisable:
        return ["?"]
