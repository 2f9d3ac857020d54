"""Tells which values come from removed code. Standard library only.

These are: objects of removed classes; what removed functions return and yield; their arguments, which they may change;
exceptions that they raise; and what is read from, or computed of, such values where the reader says so
(:meth:`Origins.mark`). Numbers and texts are known by their value, for the duration of one test.
"""

import collections
import collections.abc
import os
import sys
import threading
import types
import weakref

from excise_swap import real

TOOL = 4
"""Number of the tool for ``sys.monitoring``; ``excise_swap.Executed`` has given it back by then."""
MAX_CALLS = 500
"""Number of calls of one piece of removed code after which no more of its calls are noted."""
MAX_MARKED = 20000
"""Number of values that are marked at the same time."""
MAX_ITEMS = 50
"""Number of items of a container that are marked with it."""
MAX_TEXT = 10000
"""Length of a text above which it is not marked."""
ATOMS = frozenset([int, float, complex, str, bytes])
NEVER = frozenset([bool, type(None), type(Ellipsis), type(NotImplemented), types.ModuleType, types.FunctionType,
                   types.BuiltinFunctionType, types.MethodType, type])  # fmt: skip
"""Types whose objects say nothing of where they come from."""
TRIVIAL = ("", b"", 0, 1, 2)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
REMOVED, STAYING, FOREIGN = "removed", "staying", "foreign"
"""Kinds of classes: of the removed code, of other code of the project, of the tests and of others."""
RECORDED = "<recorded>"
"""File name in the code with which the recorder replaces that of functions."""
OPTIMIZED, VARARGS, VARKEYWORDS, GENERATORS = 0x1, 0x4, 0x8, 0x20 | 0x80 | 0x100 | 0x200
"""Flags of code: a function; it has ``*args``; it has ``**kwargs``; it is a generator or asynchronous."""


def kind_of_container(value):
    """``list``, ``tuple``, ``dict``, or ``mapping`` for another one; empty for other values."""
    cls = type(value)
    if cls in (list, tuple, dict):
        return cls.__name__
    return "mapping" if collections.abc.Mapping in type.__dict__["__mro__"].__get__(cls) else ""


class Origins:
    """``spans`` are (path, first line, last line) of removed definitions below ``root``, ``owners`` (module, qualified
    name) of removed classes, ``tests`` the paths of test files. ``note`` is called with a kind and a word.
    """

    def __init__(self, root, spans, owners, tests, note):
        self.root = real(root)
        self.note = note
        self.spans = {}
        for path, first, last in spans:
            self.spans.setdefault(os.path.join(self.root, path), []).append((first, last))
        self.owners = [(module, name) for module, name in owners]
        self.tests = frozenset(os.path.join(self.root, path) for path in tests)
        self.codes, self.kinds, self.counts = {}, {}, {}
        self.marked, self.atoms = {}, set()
        self.returns, self.results, self.arguments = {}, {}, set()
        self.is_complete = True
        """Whether no call and no value was left out."""

    # ---------------------------------------------------------------------------------- watching
    def start(self):
        """Note the calls of removed code from now on. Returns whether that is possible."""
        if sys.version_info < (3, 12):
            if sys.getprofile() is not None:
                return False
            self.resume()
            return True
        monitoring = sys.monitoring
        if monitoring.get_tool(TOOL) is not None:
            return False
        monitoring.use_tool_id(TOOL, "excise")
        monitoring.register_callback(TOOL, monitoring.events.PY_START, self.started)
        monitoring.register_callback(TOOL, monitoring.events.PY_RETURN, self.returned)
        monitoring.register_callback(TOOL, monitoring.events.PY_YIELD, self.returned)
        self.resume()
        return True

    def resume(self):
        """Note the calls again, after a stop."""
        if sys.version_info < (3, 12):
            threading.setprofile(self.profiled)
            sys.setprofile(self.profiled)
        else:
            sys.monitoring.set_events(TOOL, sys.monitoring.events.PY_START)
            sys.monitoring.restart_events()

    def stop(self):
        """Note nothing more."""
        if sys.version_info < (3, 12):
            sys.setprofile(None)
            threading.setprofile(None)
        else:
            sys.monitoring.set_events(TOOL, 0)

    def profiled(self, frame, event, argument):
        code = frame.f_code
        if event == "call" and self.is_removed_code(code):
            if self.count(code):
                self.entered(frame)
        elif event == "return" and self.counts.get(code, MAX_CALLS) < MAX_CALLS:
            self.left(code, argument)

    def started(self, code, offset):
        if not self.is_removed_code(code):
            return sys.monitoring.DISABLE
        if code not in self.counts:
            events = sys.monitoring.events
            sys.monitoring.set_local_events(TOOL, code, events.PY_RETURN | events.PY_YIELD)
        if not self.count(code):
            return sys.monitoring.DISABLE
        self.entered(sys._getframe(1))
        return None

    def returned(self, code, offset, value):
        if self.counts.get(code, MAX_CALLS) >= MAX_CALLS:
            return sys.monitoring.DISABLE
        self.left(code, value)
        return None

    def left(self, code, value):
        """Mark what a call returns or yields, and note its type, unless it is an argument."""
        if not code.co_flags & GENERATORS and value is not None:
            kind = kind_of_container(value) if id(value) not in self.arguments else ""
            self.returns.setdefault(code, set()).add(kind)
            if kind:
                self.results[id(value)] = value, code
        self.mark(value)

    def count(self, code):
        """Count a call; return whether it is noted."""
        self.counts[code] = self.counts.get(code, 0) + 1
        if self.counts[code] < MAX_CALLS:
            return True
        self.is_complete = False
        return False

    def entered(self, frame):
        """Mark the arguments of a call, and note its keyword arguments beyond the parameters."""
        code, values = frame.f_code, frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count]:
            if name in values:
                self.mark(values[name], is_argument=True)
        if code.co_flags & VARARGS:
            for value in values.get(code.co_varnames[count], ())[:MAX_ITEMS]:
                self.mark(value, is_argument=True)
        if code.co_flags & VARKEYWORDS:
            more = values.get(code.co_varnames[count + bool(code.co_flags & VARARGS)], {})
            for name in list(more)[:MAX_ITEMS]:
                self.mark(more[name], is_argument=True)
                if not self.is_removed_code(caller_of(frame)):
                    self.note("keywords", "%s %s" % (code.co_name, name))

    # ------------------------------------------------------------------------------------ code
    def is_removed_code(self, code):
        """Whether the code is that of a function in one of the spans."""
        found = self.codes.get(code)
        if found is None:
            spans = self.spans.get(real(code.co_filename), ())
            line = code.co_firstlineno
            found = bool(code.co_flags & OPTIMIZED) and any(first <= line <= last for first, last in spans)
            self.codes[code] = found
        return found

    def kind_of(self, cls):
        """The kind of a class, by those that it is made of."""
        found = self.kinds.get(cls)
        if found is None:
            kinds = {self.own_kind_of(base) for base in type.mro(cls)} if isinstance(cls, type) else set()
            found = REMOVED if REMOVED in kinds else STAYING if STAYING in kinds else FOREIGN
            self.kinds[cls] = found
        return found

    def own_kind_of(self, cls):
        module, name = str(vars(cls).get("__module__")), cls.__qualname__
        for owner, prefix in self.owners:
            if module == owner and (not prefix or name == prefix or name.startswith(prefix + ".")):
                return REMOVED
        return STAYING if self.is_own(getattr(sys.modules.get(module), "__file__", None)) else FOREIGN

    # ----------------------------------------------------------------------------------- values
    def mark(self, value, is_argument=False, depth=2):
        """Remember that a value comes from removed code, and what is in it; of arguments, not numbers and texts."""
        cls = type(value)
        if cls in ATOMS:
            if not is_argument and value not in TRIVIAL and not (cls in (str, bytes) and len(value) > MAX_TEXT):
                self.atoms.add((cls, value))
            return
        if cls in NEVER or isinstance(value, type):
            return
        if is_argument and cls in (list, tuple):  # which stay marked, so that no other object gets the number
            self.arguments.add(id(value))
        if self.is_marked(value):
            return
        if len(self.marked) >= MAX_MARKED:
            self.is_complete = False
            self.results.clear()
            return
        try:
            self.marked[id(value)] = weakref.ref(value)
        except TypeError:
            self.marked[id(value)] = value
        if depth:
            for item in items_of(value):
                self.mark(item, is_argument, depth - 1)

    def is_marked(self, value):
        found = self.marked.get(id(value))
        return found is value or (type(found) is weakref.ref and found() is value)

    def is_from_removed(self, value):
        """Whether a value comes from removed code."""
        cls = type(value)
        if cls in ATOMS:
            return (cls, value) in self.atoms
        if cls in NEVER or cls is object:
            return False
        if self.is_marked(value) or self.kind_of(cls) is REMOVED:
            return True
        return (isinstance(value, type) and self.kind_of(value) is REMOVED) or self.was_raised(value)

    def maker_of(self, value):
        """The removed function that has made and returned a list, tuple or mapping; ``None`` for other values."""
        found, code = self.results.get(id(value), (None, None))
        return code if found is value and value is not None else None

    def was_raised(self, value):
        """Whether a value is an exception that has passed through removed code."""
        if not issubclass(type(value), BaseException):
            return False
        trace = value.__traceback__
        while trace is not None:
            if self.is_removed_code(trace.tb_frame.f_code):
                return True
            trace = trace.tb_next
        return False

    def is_removed_function(self, function):
        """Whether a function or class is removed; methods that the recorder follows count, too."""
        if isinstance(function, type):
            return self.kind_of(function) is REMOVED
        code = function.__code__ if type(function) is types.FunctionType else None
        return code is not None and (code.co_filename == RECORDED or self.is_removed_code(code))

    def is_foreign(self, value):
        """Whether a value certainly has nothing to do with removed code: no code of the project made its class."""
        cls = type(value)
        if cls is types.ModuleType:
            return not self.is_own(getattr(value, "__file__", None))
        if cls is types.FunctionType:
            return value.__code__.co_filename != RECORDED and not self.is_own(value.__code__.co_filename)
        if isinstance(value, type):
            return self.kind_of(value) is FOREIGN
        return self.kind_of(cls) is FOREIGN and not self.is_from_removed(value)

    def is_own(self, path):
        """Whether a file is the project's, and no test."""
        path = real(path or "/")
        return path.startswith(self.root + "/") and path not in self.tests


def caller_of(frame):
    """The code that called a function; the recorder's own is skipped."""
    frame = frame.f_back
    while frame is not None and os.path.basename(frame.f_code.co_filename) in ("excise_recorder.py", RECORDED):
        frame = frame.f_back
    return frame.f_code if frame is not None else caller_of.__code__


def items_of(value):
    """Some items of a container of Python's own."""
    cls = type(value)
    kind = next((each for each in CONTAINERS if issubclass(cls, each)), None)
    if kind is None:
        return []
    items = []
    for item in (dict.values if kind is dict else kind.__iter__)(value):
        if len(items) == MAX_ITEMS:
            break
        items.append(item)
    return items
