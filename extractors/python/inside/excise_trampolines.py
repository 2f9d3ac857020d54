"""Functions whose calls can be recorded, and the code in whose place theirs is put. Standard library only."""

import inspect
import types

NAME = "__excise_recorded_call__"
"""Name of the builtin that the replaced functions call."""


def is_plain_function(value):
    """Whether a value is a function that is no coroutine."""
    if type(value) is not types.FunctionType:  # nothing else is asked, as any object may answer with an exception
        return False
    return not (inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value))


def is_operator(name):
    return name.startswith("__") and name.endswith("__") and name not in NOT_CALLED


NOT_CALLED = {
    "__new__", "__init_subclass__", "__class_getitem__", "__getattribute__", "__getattr__", "__setattr__", "__del__",
    "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__subclasshook__", "__prepare__", "__dir__",
    "__set_name__", "__delattr__", "__sizeof__", "__class__", "__dict__", "__weakref__", "__doc__", "__module__",
    "__instancecheck__", "__subclasscheck__", "__copy__", "__deepcopy__", "__repr__", "__hash__",
}  # fmt: skip


def compile_trampoline(number, freevars):
    """Code that passes its arguments to the recorder, with as many free variables as the code that it replaces."""
    source = "def trampoline(*args, **kwargs):\n    return %s(%d, args, kwargs)\n" % (NAME, number)
    if freevars:
        inner = "".join("    " + line + "\n" for line in source.splitlines())
        uses = ", ".join(freevars)
        inner = inner.replace("return ", "(%s,) if False else None; return " % uses)
        assigned = "".join("    %s = None\n" % name for name in freevars)
        source = "def outer():\n%s%s    return trampoline\n" % (assigned, inner)
    found = {}
    exec(compile(source, "<recorded>", "exec"), found)
    function = found["outer"]() if freevars else found["trampoline"]
    return function.__code__
