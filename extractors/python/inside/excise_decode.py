"""Decodes values of ``excise_values``, in the process of the code under test: decoding imports its modules."""

import base64
import builtins
import collections
import functools
import importlib
import io
import itertools
import marshal
import re
import struct
import types

import excise_values as values


def bits_float(text):
    return float("nan") if text == "nan" else struct.unpack(">d", bytes.fromhex(text))[0]


def decode(node):
    """Decode a value. Imports the modules that it names, so it is for use in the sandbox only."""
    tag, rest = node[0], node[1:]
    return DECODERS[tag](*rest)


def decode_all(nodes):
    return [decode(node) for node in nodes]


def mapping(kind, pairs):
    return kind((decode(k), decode(v)) for k, v in pairs)


def instance(name, base, state):
    return with_attributes(content(values.find(name), base), state)


def with_attributes(value, state):
    for attribute, node in state:
        object.__setattr__(value, attribute, decode(node))
    return value


numbered = {}
"""Number to value of those that are being made and hold themselves."""


EMPTY = {"l": list, "d": dict, "od": collections.OrderedDict, "S": set}
"""Tag of a container to its class: objects of classes that are based on it are made before what they hold."""


def cyclic(number, node):
    """A value that holds itself, as ``["back", number]``."""
    tag, *parts = node
    base = parts[1] if tag == "obj" and parts[1] is not None and parts[1][0] in EMPTY else None
    if tag != "obj":
        value = EMPTY[tag]()
    elif base is not None:
        value = EMPTY[base[0]].__new__(values.find(parts[0]))
    else:
        value = content(values.find(parts[0]), parts[1])
    around = dict(numbered)  # values within this one may have the same number
    numbered[number] = value
    try:
        if tag == "obj":
            with_attributes(value if base is None else filled(value, decode(base)), parts[2])
        else:
            filled(value, DECODERS[tag](*parts))
    finally:
        numbered.clear()
        numbered.update(around)
    return value


def content(cls, base):
    """An object of a class without attributes; ``base``: its value as one of a builtin base class, if it has one."""
    if base is None:
        value = cls.__new__(cls) if cls.__new__ is object.__new__ else object.__new__(cls)
    else:
        plain = decode(base)
        value = filled(type(plain).__new__(cls, plain), plain)
    return value


def filled(value, plain):
    """A container of a class of its own, with the content of a plain one."""
    if isinstance(value, list):
        list.extend(value, plain)
    elif isinstance(value, set):
        set.update(value, plain)
    elif isinstance(value, collections.deque):
        collections.deque.__init__(value, plain, plain.maxlen)
    elif isinstance(value, collections.defaultdict):
        collections.defaultdict.__init__(value, plain.default_factory, plain)
    elif isinstance(value, dict):
        (collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict).update(value, plain)
    return value


failed_steps = []
"""Methods that raised an exception while an object was made again."""


def rebuilt_object(name, args, kwargs, history):
    """An object of a removed class: constructed like the original, then the calls that it had received are repeated."""
    value = values.find(name)(*decode_all(args), **{k: decode(v) for k, v in kwargs})
    for method, more, named in history:
        try:
            getattr(value, method)(*decode_all(more), **{k: decode(v) for k, v in named})
        except Exception:  # expected if the original raised, too; otherwise the comparison shows it
            failed_steps.append(method)
    return value


def function(module, code, parts, used=None):
    """A function of a module; with the values of the names that it ``used``, of one that may be missing."""
    defaults, keywords, cells = decode_all(parts)
    if used is None:
        names = importlib.import_module(module).__dict__
    else:
        names = {"__builtins__": builtins, "__name__": module}
        names.update((name, decode(node)) for name, node in used if node is not None)
    made = types.FunctionType(
        marshal.loads(base64.b64decode(code)), names, None, defaults, tuple(types.CellType(value) for value in cells)
    )
    made.__kwdefaults__ = keywords
    names.update((name, made) for name, node in used or () if node is None)
    made_functions.append(made)
    return made


nodes_of = {}
"""``module:qualname`` of the classes that were defined, to what they were made of."""
made_functions = []
"""The functions that were made, in which classes may be pending."""


class Pending:
    """Stands for a class that is not made yet."""

    def __init__(self, name):
        self.name = name


def define(classes):
    """Make the classes of missing files: ``module:qualname`` to encoded bases and members, see ``excise_values``.

    Raises ``LookupError`` if one is based on itself.
    """
    known = values.carried_classes.items()
    if any(type(cls) is Pending or (name in classes and classes[name] != nodes_of[name]) for name, cls in known):
        values.carried_classes.clear()  # those of other calls, such as of another run of the same test
    nodes_of.update(classes)
    left = {name: node for name, node in classes.items() if name not in values.carried_classes}
    values.carried_classes.update((name, Pending(name)) for name in left)
    while left:
        ready = {name: decode_all(node[0]) for name, node in left.items()}
        ready = {name: bases for name, bases in ready.items() if not any(type(base) is Pending for base in bases)}
        if not ready:
            raise LookupError(sorted(left))
        for name, bases in ready.items():
            values.carried_classes[name] = made_class(name, tuple(bases), left.pop(name)[1])
    for function in made_functions:
        names = function.__globals__
        names.update((name, settled(value)) for name, value in list(names.items()) if type(value) is Pending)
        for cell in function.__closure__ or ():
            cell.cell_contents = settled(cell.cell_contents)
    for cls in (values.carried_classes[name] for name in classes):
        for name, value in list(vars(cls).items()):
            if type(value) is Pending:
                setattr(cls, name, settled(value))
    del made_functions[:]


def settled(value):
    return values.carried_classes[value.name] if type(value) is Pending else value


def made_class(name, bases, members):
    module, _, qualname = name.partition(":")
    content = {"__module__": module, "__qualname__": qualname}
    for member, wrap, nodes in members:
        parts = decode_all(nodes)
        wrapper = next((kind for kind in values.WRAPPERS if kind.__name__ == wrap), None)
        content[member] = wrapper(*parts) if wrapper is not None else parts[0]
    return types.new_class(qualname.rpartition(".")[2], bases, {}, lambda names: names.update(content))


def partial(nodes):
    call, args, keywords = decode_all(nodes)
    return functools.partial(call, *args, **keywords)


def view(which, nodes):
    items = decode_all(nodes)
    if which == "keys":
        return dict.fromkeys(items).keys()
    return dict(items).items() if which == "items" else dict(enumerate(items)).values()


def stream(kind, node, place, attributes=()):
    value = {"StringIO": io.StringIO, "BytesIO": io.BytesIO}[kind](decode(node))
    value.seek(place)
    for name, found in attributes:
        setattr(value, decode(name), decode(found))
    return value


def match(pattern, how, *place):
    """A match by its search: a method's name, or its number among all matches."""
    found = getattr(decode(pattern), how if isinstance(how, str) else "finditer")(*decode_all(place))
    return found if isinstance(how, str) else next(itertools.islice(found, how, None))


def exception(name, args, state=()):
    cls = values.find(name)
    value = cls.__new__(cls, *decode_all(args))
    value.args = tuple(decode_all(args))
    return with_attributes(value, state)


DECODERS = {
    "c": lambda value: value,
    "i": lambda text: int(text, 0),
    "f": bits_float,
    "z": lambda real, imag: complex(bits_float(real), bits_float(imag)),
    "s": lambda text: text,
    "b": lambda text: base64.b64decode(text),
    "ba": lambda text: bytearray(base64.b64decode(text)),
    "k": lambda text: {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[text],
    "l": decode_all,
    "t": lambda nodes: tuple(decode_all(nodes)),
    "d": lambda pairs: mapping(dict, pairs),
    "S": lambda nodes: set(decode_all(nodes)),
    "F": lambda nodes: frozenset(decode_all(nodes)),
    "od": lambda pairs: mapping(collections.OrderedDict, pairs),
    "dd": lambda factory, pairs: collections.defaultdict(decode(factory), mapping(dict, pairs)),
    "C": lambda pairs: collections.Counter(mapping(dict, pairs)),
    "q": lambda nodes, length: collections.deque(decode_all(nodes), length),
    "r": lambda nodes: range(*decode_all(nodes)),
    "sl": lambda nodes: slice(*decode_all(nodes)),
    "n": lambda name, text: values.find(name)(text),
    "new": lambda name, nodes: values.find(name)(*decode_all(nodes)),
    "re": lambda pattern, flags: re.compile(decode(pattern), flags),
    "e": lambda name, member: values.find(name)[member],
    "ref": values.find,
    "m": importlib.import_module,
    "x": exception,
    "nt": lambda name, nodes: values.find(name)(*decode_all(nodes)),
    "obj": instance,
    "at": cyclic,
    "back": numbered.__getitem__,
    "ma": match,
    "made": rebuilt_object,
    "it": lambda nodes: iter(decode_all(nodes)),
    "dv": view,
    "io": stream,
    "pa": partial,
    "bm": lambda node, name: getattr(decode(node), name),
    "fn": function,
}
