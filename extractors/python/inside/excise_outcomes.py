"""What calls come to, so that it can be compared: results, exceptions, printed text, and arguments afterwards.

How a result is made is the solver's to choose: iterators are drained, context managers entered, and objects that a call
changed are written down as others see them.
"""

import contextlib
import functools
import io
import types

import excise_values as values


def drained(value):
    """The first items of an iterator, and how it ended: ``end``, ``more``, or the name of an exception."""
    items = []
    try:
        for item in value:
            items.append(item)
            if len(items) >= values.MAX_ITEMS:
                return items, "more"
    except Exception as error:
        return items, values.name_of(type(error))
    return items, "end"


def brings_items(kind):
    """An iterator of another kind: written as a class, or made by a library."""
    files = kind.__module__ in ("io", "_io", "tempfile", "unittest.mock")
    return not files and all(any(name in vars(c) for c in kind.__mro__) for name in ("__iter__", "__next__"))


def is_manager(kind, opaque):
    """A context manager of a class that nobody names: made by ``contextlib``, private, or the solver's own."""
    entered = all(any(name in vars(c) for c in kind.__mro__) for name in ("__enter__", "__exit__"))
    unnamed = kind.__module__ == "contextlib" or kind.__name__.startswith("_") or "<locals>" in kind.__qualname__
    return entered and kind.__module__ not in values.MADE_IN_C and (unnamed or opaque(kind))


def managed(manager, opaque):
    """What a block is given, and how it ends."""
    try:
        with manager as given:
            try:
                node, lost = ResultEncoder(opaque).encode(None if given is manager else given), None
            except values.Unserialisable as error:  # none of the manager's business
                lost = error
    except Exception as error:
        return ["cm", None, values.name_of(type(error))]
    if lost is not None:
        raise lost
    return ["cm", node, "end"]


def is_function(value, kind):
    """Something to be called that has no public name: a closure, a partial, a bound method or an object of a private
    class are the solver's choice."""
    if isinstance(value, type) or not callable(value):
        return False
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        try:
            name = values.name_of(value)
        except values.Unserialisable:
            return True
        return "._" in name.replace(":", ".") or values.find_or_none(name) is not value
    wraps = kind in (functools.partial, types.MethodType) or kind.__module__ in ("functools", "operator")
    return wraps or kind.__name__.startswith("_") or "<locals>" in kind.__qualname__


class ResultEncoder(values.Encoder):
    """A result: iterators are drained and context managers are entered, since how they are made is the solver's to
    choose."""

    def nested(self, value, kind, depth):
        if is_manager(kind, self.opaque):
            return managed(value, self.opaque)
        if values.is_iterator(value) or (brings_items(kind) and not self.opaque(kind)):
            items, end = drained(value)
            return ["it", [ResultEncoder(self.opaque).encode(item, depth) for item in items], end]
        if is_function(value, kind):
            return ["fn"]
        return super().nested(value, kind, depth)


def outcome_of(call, arguments, opaque):
    """What a call came to: result or exception, what it printed, and its arguments afterwards."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="", write_through=True)
    found = {}
    with contextlib.redirect_stdout(printed):
        try:
            value = call()
        except (Exception, SystemExit) as error:
            try:
                said = values.Encoder(opaque).all(error.args, 0)
            except values.Unserialisable:
                said = None
            found = {"raised": values.name_of(type(error)), "said": said}
        else:
            found = {"result": ResultEncoder(opaque).encode(value)}
    return {**found, "printed": said_by(printed), "after": after(arguments, opaque)}


def said_by(printed):
    """Text and bytes that were written; nothing if the call closed the stream."""
    if printed.closed:
        return ""
    printed.flush()
    return printed.buffer.getvalue().decode("utf-8", "replace")[: values.MAX_TEXT]


class AfterEncoder(values.Encoder):
    """An argument afterwards: private attributes are an object's own affair, and how far iterators were read is."""

    def shows(self, attribute):
        return not str(attribute).startswith("_")

    def nested(self, value, kind, depth):
        return ["used"] if values.is_iterator(value) else super().nested(value, kind, depth)


def after(arguments, opaque):
    """The arguments after the call, as far as they can be changed and carried."""
    return [changed_argument(value, opaque) for value in arguments]


def changed_argument(value, opaque):
    if values.is_iterator(value):
        return ["used"]
    try:
        node = AfterEncoder(opaque).encode(value)
        return observed(value, node, opaque) if node[0] == "obj" else node
    except values.Unserialisable:
        return ["?"]


def observed(value, node, opaque):
    """An object as others see it: its items, or else its public attributes. How it keeps them is its own affair."""
    kind = type(value)
    name, base, state = node[1:]

    def has(*names):
        return all(any(n in vars(c) for c in kind.__mro__) for n in names)

    try:
        if has("keys", "__getitem__", "__iter__"):
            return ["seen", name, ["d", [[ResultEncoder(opaque).encode(v) for v in (k, value[k])] for k in value]]]
        if has("__iter__") and (has("__len__") or brings_items(kind)):
            items, end = drained(iter(value))
            return ["seen", name, [ResultEncoder(opaque).encode(item) for item in items], end]
    except values.Unserialisable:
        raise
    except Exception as error:
        return ["seen", name, values.name_of(type(error))]
    return ["seen", name, base, state]
