"""Outcomes of calls in a form that can be compared: result or exception, printed text, and arguments afterwards.

Details that a solution may choose freely are left out: iterators are exhausted, context managers entered, and objects
that a call changed are recorded by their public state.
"""

import collections.abc
import contextlib
import functools
import io
import types

import excise_values as values


def has(kind, *names):
    """Whether a class or its bases define all the names."""
    return all(any(name in vars(c) for c in kind.__mro__) for name in names)


def names_of(kind):
    """Names of a class and its bases, the most specific first: those by which an exception can be caught."""
    return ["%s:%s" % (c.__module__, c.__qualname__) for c in kind.__mro__[:-1]]


def is_unnamed(kind):
    """Whether a class is private or local, so that other code cannot name it."""
    return kind.__name__.startswith("_") or "<locals>" in kind.__qualname__


def exhaust(value):
    """The first items of an iterator, and how it ended: ``end``, ``more`` (too many items), or an exception's name."""
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


def is_custom_iterator(kind):
    """Whether a class is an iterator, but no file or mock."""
    files = kind.__module__ in ("io", "_io", "tempfile", "unittest.mock")
    return not files and has(kind, "__iter__", "__next__")


def is_manager(kind, opaque):
    """Whether a class is a context manager that other code cannot name: of ``contextlib``, private, or removed."""
    unnamed = kind.__module__ == "contextlib" or is_unnamed(kind)
    entered = has(kind, "__enter__", "__exit__")
    return entered and kind.__module__ not in values.MADE_IN_C and (unnamed or opaque(kind))


def enter(manager, opaque):
    """The value that a context manager yields, and how the block ends."""
    try:
        with manager as entered:
            try:
                node, lost = ResultEncoder(opaque).encode(None if entered is manager else entered), None
            except values.Unserialisable as error:  # must not reach the manager's __exit__
                lost = error
    except Exception as error:
        return ["cm", None, values.name_of(type(error))]
    if lost is not None:
        raise lost
    return ["cm", node, "end"]


def is_function(value, kind):
    """Whether a value is a callable without a public name.

    A solution may return any of them: a closure, a partial, a bound method or an object of a private class.
    """
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


class PublicStateEncoder(values.Encoder):
    """Encodes objects by their public state: by their items, or by their attributes if they have no items."""

    def instance(self, value, kind, depth):
        node = super().instance(value, kind, depth)
        if node[0] != "obj":
            return node
        return ["seen", names_of(kind), *(self.items(value, kind) or node[2:])]

    def told_by(self, error, args, depth):
        """The public attributes of an exception, without texts for people: those among its arguments."""
        found = super().told_by(error, args, depth)
        return [[name, node] for name, node in found if not name.startswith("_") and node not in args]

    def again(self, value):
        return ["up"]

    def plain_object(self, value):
        return ["new", "builtins:object", []]

    def match(self, value, depth):
        """A match, by what it tells: another pattern may have found it."""
        return ["match", *(self.encode(each, depth) for each in (value.span(), value.groups(), value.groupdict()))]

    def inner(self):
        """An encoder for what a value yields."""
        encoder = type(self)(self.opaque)
        encoder.ancestors = self.ancestors
        return encoder

    def attributes(self, value, kind, state):
        return {} if self.has_items(kind) else self.shown(state)

    def shown(self, state):
        """The public attributes; all attributes if none is public."""
        return {name: value for name, value in state.items() if not str(name).startswith("_")} or state

    def has_items(self, kind):
        return has(kind, "__iter__", "__len__") or is_mapping(kind) or is_custom_iterator(kind)

    def items(self, value, kind):
        """Encoded pairs or items, and how the iteration ended; empty for an object without items."""
        encoder = self.inner()
        try:
            if is_mapping(kind):
                return [["d", [[encoder.encode(k), encoder.encode(value[k])] for k in value]]]
            if self.has_items(kind):
                items, end = exhaust(iter(value))
                nodes = [encoder.encode(item) for item in items]
                is_set = issubclass(kind, collections.abc.Set) and not issubclass(kind, collections.abc.Reversible)
                return [["S", sorted(nodes, key=repr)] if is_set else ["l", nodes], end]
        except values.Unserialisable:
            raise
        except Exception as error:
            return [names_of(type(error))]
        return []


class ResultEncoder(PublicStateEncoder):
    """Encodes results: iterators are exhausted and context managers entered, as solutions may use any kind of them."""

    def nested(self, value, kind, depth):
        if is_manager(kind, self.opaque):
            return enter(value, self.opaque)
        if values.is_iterator(value) or (is_custom_iterator(kind) and not self.opaque(kind)):
            items, end = exhaust(value)
            return ["it", [self.inner().encode(item, depth) for item in items], end]
        if is_function(value, kind):
            return ["fn"]
        return super().nested(value, kind, depth)


class AfterEncoder(PublicStateEncoder):
    """Encodes arguments after a call, without the positions of iterators and without private attributes."""

    def nested(self, value, kind, depth):
        return ["used"] if values.is_iterator(value) else super().nested(value, kind, depth)

    def shown(self, state):
        return {name: value for name, value in state.items() if not str(name).startswith("_")}


def outcome_of(call, arguments, opaque):
    """Make a call; return its result or exception, the text that it printed, and its arguments afterwards."""
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
    return {**found, "printed": printed_text(printed), "after": after(arguments, opaque)}


def printed_text(printed):
    """Text that was written to the stream; empty if the call closed it."""
    if printed.closed:
        return ""
    printed.flush()
    return printed.buffer.getvalue().decode("utf-8", "replace")[: values.MAX_TEXT]


def after(arguments, opaque):
    """The arguments after the call, as far as they can be encoded."""
    return [changed_argument(value, opaque) for value in arguments]


def changed_argument(value, opaque):
    try:
        return AfterEncoder(opaque).encode(value)
    except values.Unserialisable:
        return ["?"]
