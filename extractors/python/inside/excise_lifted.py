"""Builtins that lifted tests call: an observing run reports values, a judging run gets the reported ones.

The observing run's process is not trusted. The judging run's is: it runs the original code, and decodes only values of
builtin and standard types, and objects made of those classes and functions that the original code reported in the same
test. It imports and calls nothing that a report names.
"""

import builtins
import contextlib
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import sys
import types
import uuid

import excise_decode
import excise_values

MAX_VALUE = 200 << 10
"""Maximum number of characters of one reported value."""
SAFE = frozenset("c i f z s b ba k l t d S F od C q r sl re dd n new e opaque type".split())  # noqa: SIM905
"""Tags of values that can be decoded from a report."""
MADE = {
    excise_values.name_of(kind): kind
    for kind in (decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.datetime, datetime.date, datetime.time,
                 datetime.timedelta, datetime.timezone)
}  # fmt: skip
MADE.update({"pathlib:PurePath": pathlib.PurePath, "pathlib:Path": pathlib.Path})
"""Names of the types whose values are made by calling the type."""
FACTORIES = (int, list, dict, set, str, float, tuple)
"""Factories of the ``defaultdict`` objects that can be decoded."""
BASES = (str, int, float, bytes, list, tuple, dict, set, frozenset)


def number_tests(items, functions):
    """Number the parametrised tests of ``functions``: the id of each, to the one with its number as parameters."""
    counts, numbered = {}, {}
    for item in items:
        base = item.nodeid.partition("[")[0]
        if base in functions and base != item.nodeid:
            numbered[item.nodeid] = "%s[%d]" % (base, counts.get(base, 0))
            counts[base] = counts.get(base, 0) + 1
    return numbered


# --------------------------------------------------------------------------------- the observing run
class Observer:
    """Reports the values of operands, and what blocks raise, for the test that runs.

    ``removed``: names of classes and modules of which no object is reported, as a solution may represent their state
    freely.
    """

    def __init__(self, channel, removed=()):
        self.channel = channel
        self.removed = frozenset(removed)

    def install(self):
        builtins.__excise_see__ = self.see
        builtins.__excise_raising__ = self.raising

    def see(self, place, value, by_identity=False):
        names = global_names(value) if by_identity else ()
        self.report(place, ["global", list(names)] if names else encoded(value, self.removed))

    @contextlib.contextmanager
    def raising(self, place):
        caught = Caught()
        try:
            yield caught
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            caught.value = caught.exception = error
            caught.type = type(error)
            text = str(error)
            self.report(place, ["raised", names_of(type(error)), text[:MAX_VALUE]])
        else:
            self.report(place, ["nothing"])

    def report(self, place, node):
        if len(json.dumps(node)) > MAX_VALUE:
            node = ["opaque"]
        self.channel.write("see", place=place, value=node)


class Caught:
    """What a block that must raise gives to its test: as much of pytest's object as tests use."""

    value = exception = type = None


def encoded(value, removed=frozenset()):
    """A value as JSON; what cannot be reported is ``["opaque"]``, also within lists, tuples and dictionaries."""
    return Encoding(removed).encode(value)


class Encoder(excise_values.Encoder):
    """Encodes classes by all their names, and views of dictionaries as dictionaries."""

    def nested(self, value, kind, depth):
        return ["d", self.pairs(value, depth)] if kind is types.MappingProxyType else super().nested(value, kind, depth)

    def reference(self, value, depth):
        return ["type", names_of(value)] if isinstance(value, type) else super().reference(value, depth)


class Encoding:
    """Encodes one value."""

    def __init__(self, removed):
        self.removed = removed
        self.left = excise_values.MAX_NODES

    def is_removed(self, cls):
        names = {name for base in cls.__mro__ for name in (base.__name__, str(base.__module__).rpartition(".")[2])}
        return not names.isdisjoint(self.removed)

    def encode(self, value, depth=0):
        self.left -= 1
        if self.left < 0 or depth > excise_values.MAX_DEPTH:
            return ["opaque"]
        if isinstance(value, type):
            return ["type", names_of(value)]
        value = as_builtin(value)
        try:
            node = Encoder(opaque=self.is_removed).encode(value)
            check(node, None)
            return node
        except Exception:  # an object of the project may raise anything
            return self.items(value, depth + 1)

    def items(self, value, depth):
        if type(value) in (list, tuple):
            return ["l" if type(value) is list else "t", [self.encode(item, depth) for item in list(value)]]
        if type(value) is dict:
            return ["d", [[self.encode(key, depth), self.encode(item, depth)] for key, item in list(value.items())]]
        return ["opaque"]


def as_builtin(value):
    """The value as one of a builtin type, if its class is derived from it and compares in the same way."""
    kind = type(value)
    if kind.__module__ in ("builtins", "collections") or isinstance(value, enum.Enum):
        return value
    for base in BASES:
        if isinstance(value, base):
            return excise_values.PLAIN[base](value) if kind.__eq__ is base.__eq__ else value
    return value


def names_of(cls):
    """Names of a class and its bases, also those by which other modules of its package know it."""
    names = []
    for each in cls.__mro__:
        module = str(each.__module__)
        names.append("%s:%s" % (module, each.__qualname__))
        package = module.partition(".")[0]
        if package not in ("builtins", "typing", "abc"):
            for name, other in sorted(sys.modules.items()):
                if name.partition(".")[0] == package and vars(other).get(each.__name__) is each:
                    names.append("%s:%s" % (name, each.__name__))
    return names[:200]


def global_names(value):
    """The names by which loaded modules know an object, such as a marker of which there is one; none for others."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, type, types.FunctionType, types.ModuleType)):
        return []
    found = [
        "%s:%s" % (module, name)
        for module, loaded_module in sorted(sys.modules.items())
        for name, other in list(getattr(loaded_module, "__dict__", {}).items())
        if other is value
    ]
    return sorted(found)[:200]


# --------------------------------------------------------------------------------- the judging run
class Opaque:
    """Stands for a value that was not reported: it exists, and cannot be compared."""

    __hash__ = None

    def __eq__(self, other):
        raise AssertionError("the value cannot be compared")


class Judge:
    """Gives each test the values that were reported for it, in their order. Raises ``AssertionError`` without one.

    ``names``: test to the classes and functions that it accepts in objects. ``nested``: test to what functions within
    it, whose places are negative, reported on the original code.
    """

    def __init__(self, seen, names=None, nested=None):
        self.seen = seen
        self.names = names or {}
        self.nested = nested or {}
        self.accepted = frozenset()
        self.left = {}
        self.original = {}

    def install(self):
        builtins.__excise_seen__ = self.value
        builtins.__excise_raise__ = self.raise_again
        builtins.__excise_all_seen__ = self.end

    def begin(self, test):
        """Begin a test: its reported values, by place."""
        self.accepted = frozenset(self.names.get(test, ()))
        self.left = by_place(self.seen.get(test, ()))
        self.original = by_place(self.nested.get(test, ()))

    def next(self, place):
        listed = self.left.get(place)
        if not listed:
            raise AssertionError("nothing was reported")
        return listed.pop(0)

    def value(self, place, by_identity=False):
        node = self.next(place)
        if by_identity and isinstance(node, list) and node[:1] == ["global"]:
            return known_global(node[1])
        check(node, self.accepted)
        return excise_decode.decode(node)

    def end(self):
        """Compare what functions within the test reported and the judging form did not ask for with the original's."""
        for place, listed in self.left.items():
            if place < 0 and listed and listed != self.original.get(place):
                raise AssertionError("a value was not compared")

    def raise_again(self, place):
        node = self.next(place)
        if node[0] == "raised":
            _, names, text = node
            raise same_exception(known_class(names, BaseException), str(text))


def by_place(reported):
    """Reported values by place, in their order."""
    found = {}
    for place, node in reported:
        found.setdefault(place, []).append(node)
    return found


def known_class(names, base):
    """The first class of these names that is loaded. Raises ``AssertionError`` if there is none."""
    for name in names:
        found = loaded(name)
        if isinstance(found, type) and (base is type or issubclass(found, base)):
            return found
    raise AssertionError("no class has this name")


def known_global(names):
    """The first object of these names that is loaded, for comparison by identity. Raises ``AssertionError``."""
    for name in names:
        found = loaded(name)
        if found is not None:
            return found
    raise AssertionError("nothing has this name")


def loaded(name):
    """What a loaded module has under the name ``module:qualname``; ``None`` if there is nothing."""
    module, _, qualname = str(name).partition(":")
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    return found


def same_exception(cls, text):
    """An exception of a class, with a given text."""
    made = types.new_class(cls.__name__, (cls,), {}, lambda body: body.update(__str__=lambda self: text))
    made.__module__ = cls.__module__
    builtin = next(each for each in cls.__mro__ if each.__module__ == "builtins")
    error = builtin.__new__(made)
    error.args = (text,)
    return error


def check(node, names=frozenset(), within=False):
    """Refuse a node of which decoding would import or call something. Raises ``AssertionError``.

    ``names``: the classes and functions that are accepted in objects, ``None`` for all; ``within`` an object.
    """
    if not isinstance(node, list):
        return
    if node and isinstance(node[0], str) and not is_accepted(node, names, within):
        raise AssertionError("a value of this type is not accepted")
    if node[:1] == ["type"]:
        return
    if node[:1] == ["obj"]:
        node, within = [node[2], *(part for _, part in node[3])], True
    for part in node:
        check(part, names, within)


def is_accepted(node, names, within):
    """Whether a node is accepted, apart from the nodes in it."""
    tag = node[0]
    if tag == "type":
        return names is None or not within or node[1][0] in names
    if tag == "nt":
        return names is None or node[1] in names
    if tag in ("obj", "ref"):
        attributes = node[3] if tag == "obj" else ()
        hidden = any(str(attribute).startswith("__") for attribute, _ in attributes)
        return (within or tag == "obj") and (names is None or node[1] in names) and not hidden
    if tag == "dd":
        return node[1] == ["c", None] or known_class(node[1][1], type) in FACTORIES
    if tag in ("n", "new"):
        return node[1] in MADE
    if tag == "e":
        return isinstance(loaded(node[1]), enum.EnumMeta)
    return tag in SAFE


def object_of(name, base, state):
    """An object of a loaded class, with its content and attributes, without calling any of its methods."""
    cls = loaded(name)
    if not isinstance(cls, type) or issubclass(cls, type):
        raise AssertionError("no class has this name")
    value = excise_decode.content(cls, base)
    slots = {slot: found for each in cls.__mro__ for slot, found in vars(each).items() if is_slot(found)}
    for attribute, node in state:
        if attribute in slots:
            slots[attribute].__set__(value, excise_decode.decode(node))
        else:
            value.__dict__[attribute] = excise_decode.decode(node)
    return value


def tuple_of(name, nodes):
    """A named tuple of a loaded class, without calling any of its methods."""
    cls = loaded(name)
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        raise AssertionError("no named tuple has this name")
    return tuple.__new__(cls, excise_decode.decode_all(nodes))


def is_slot(found):
    return isinstance(found, types.MemberDescriptorType)


excise_decode.DECODERS.update(
    {"opaque": Opaque, "type": lambda names: known_class(names, type), "obj": object_of, "nt": tuple_of, "ref": loaded}
)
