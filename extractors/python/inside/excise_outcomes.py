"""What calls come to, so that it can be compared: results, exceptions, printed text, and arguments afterwards.

How a result is made is the solver's to choose: iterators are drained, context managers entered, and objects that a call
changed are written down as others see them.
"""

import contextlib
import functools
import io
import types

import excise_values as values


def has(kind, *names):
    return all(any(name in vars(c) for c in kind.__mro__) for name in names)


def names_of(kind):
    """What a class may be taken for, an exception be caught as: from the most to the least particular."""
    return ["%s:%s" % (c.__module__, c.__qualname__) for c in kind.__mro__[:-1]]


def is_unnamed(kind):
    """A private or local class: nobody else names it."""
    return kind.__name__.startswith("_") or "<locals>" in kind.__qualname__


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


def is_mapping(kind):
    return has(kind, "keys", "__getitem__", "__iter__")


def brings_items(kind):
    """An iterator of another kind: written as a class, or made by a library."""
    files = kind.__module__ in ("io", "_io", "tempfile", "unittest.mock")
    return not files and has(kind, "__iter__", "__next__")


def is_manager(kind, opaque):
    """A context manager of a class that nobody names: made by ``contextlib``, private, or the solver's own."""
    unnamed = kind.__module__ == "contextlib" or is_unnamed(kind)
    entered = has(kind, "__enter__", "__exit__")
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
    return wraps or is_unnamed(kind)


class SeenEncoder(values.Encoder):
    """Objects as others see them: their items, or else their attributes. How they keep them is their own affair."""

    def instance(self, value, kind, depth):
        node = super().instance(value, kind, depth)
        if node[0] != "obj":
            return node
        return ["seen", names_of(kind), *(self.items(value, kind) or node[2:])]

    def attributes(self, value, kind, state):
        return {} if self.has_items(kind) else self.shown(state)

    def shown(self, state):
        """Public attributes; the others where there are no public ones."""
        return {name: value for name, value in state.items() if not str(name).startswith("_")} or state

    def has_items(self, kind):
        return has(kind, "__iter__", "__len__") or is_mapping(kind) or brings_items(kind)

    def items(self, value, kind):
        """Pairs or items, and how they ended; nothing for what has none."""
        again = type(self)(self.opaque)
        try:
            if is_mapping(kind):
                return [["d", [[again.encode(k), again.encode(value[k])] for k in value]]]
            if self.has_items(kind):
                items, end = drained(iter(value))
                return [["l", [again.encode(item) for item in items]], end]
        except values.Unserialisable:
            raise
        except Exception as error:
            return [names_of(type(error))]
        return []


class ResultEncoder(SeenEncoder):
    """A result: iterators are drained, context managers entered, since how they are made is the solver's to choose."""

    def nested(self, value, kind, depth):
        if is_manager(kind, self.opaque):
            return managed(value, self.opaque)
        if values.is_iterator(value) or (brings_items(kind) and not self.opaque(kind)):
            items, end = drained(value)
            return ["it", [ResultEncoder(self.opaque).encode(item, depth) for item in items], end]
        if is_function(value, kind):
            return ["fn"]
        return super().nested(value, kind, depth)


class AfterEncoder(SeenEncoder):
    """An argument afterwards: how far iterators were read is nobody's affair, nor are private attributes."""

    def nested(self, value, kind, depth):
        return ["used"] if values.is_iterator(value) else super().nested(value, kind, depth)

    def shown(self, state):
        return {name: value for name, value in state.items() if not str(name).startswith("_")}


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
            found = {"raised": names_of(type(error)), "said": said}
        else:
            found = {"result": ResultEncoder(opaque).encode(value)}
    return {**found, "printed": said_by(printed), "after": after(arguments, opaque)}


def said_by(printed):
    """Text and bytes that were written; nothing if the call closed the stream."""
    if printed.closed:
        return ""
    printed.flush()
    return printed.buffer.getvalue().decode("utf-8", "replace")[: values.MAX_TEXT]


def after(arguments, opaque):
    """The arguments after the call, as far as they can be changed and carried."""
    return [changed_argument(value, opaque) for value in arguments]


def changed_argument(value, opaque):
    try:
        return AfterEncoder(opaque).encode(value)
    except values.Unserialisable:
        return ["?"]
