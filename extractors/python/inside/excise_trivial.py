"""Tries trivial programs in place of removed code: constants, an argument, its length, the object, a similar function.

Bodies that call the builtin :data:`NAME` stand for the removed code; what it returns depends on the program that is
tried. Each program is tried in a forked process of its own, since code may keep results. It ends at the first test that
fails. Programs are reported like tests.
"""

import builtins
import difflib
import os
import signal
import sys
import time
import types

import pytest
from excise_guard import wait_for

NAME = "__excise_trivial_program__"
"""Name of the builtin that stands for the removed code."""
MAX_KILLED = 2
"""Number of programs that did not end in time after which no more are tried: a test waits for the right result."""
MAX_ID = 300
"""Number of bytes of the id of a test that are reported: messages are no longer."""
NOT_RUN = 77
"""Exit status of a process in which pytest itself failed, so that nothing is known of the program."""
ALIKE = 0.5
"""Minimum similarity of two names, from 0 to 1, for one to be tried in place of the other."""


class NoResult(Exception):
    """Raised by a program that has nothing to return here."""


def nth_argument(number):
    """A program that returns an argument, the object itself not counted."""

    def program(call):
        if number >= len(call.arguments):
            raise NoResult("no such argument")
        return call.arguments[number]

    return program


def length(call):
    """Returns the length of the first argument."""
    try:
        return len(nth_argument(0)(call))
    except TypeError:
        raise NoResult("no length") from None


def identity(call):
    """Returns a function that returns its argument, as a decorator might."""
    return lambda value=None, *_, **__: value


def the_object(call):
    """Returns the object on which a method is called, or the class."""
    if call.receiver is None:
        raise NoResult("no method")
    return call.receiver


def new_object(call):
    """Returns a new object of the receiver's class, made without arguments."""
    if call.receiver is None:
        raise NoResult("no method")
    return (call.receiver if isinstance(call.receiver, type) else type(call.receiver))()


def namesake(call):
    """Calls a function that stayed, with the same arguments: the base class's, or the one whose name is most alike."""
    for function in call.namesakes():
        return function(*call.arguments, **call.keywords)
    raise NoResult("no namesake")


PROGRAMS = {
    "None": lambda call: None,
    "True": lambda call: True,
    "False": lambda call: False,
    "0": lambda call: 0,
    "1": lambda call: 1,
    "''": lambda call: "",
    "b''": lambda call: b"",
    "()": lambda call: (),
    "[]": lambda call: [],
    "{}": lambda call: {},
    "set()": lambda call: set(),
    "iter(())": lambda call: iter(()),
    "first argument": nth_argument(0),
    "second argument": nth_argument(1),
    "third argument": nth_argument(2),
    "len(first argument)": length,
    "lambda x: x": identity,
    "self": the_object,
    "type(self)()": new_object,
    "namesake": namesake,
}
"""Description of each program to the function that gives its result for a :class:`Call`."""


class Call:
    """One call of removed code: ``variables`` are the local variables at its beginning, that is, its parameters."""

    def __init__(self, variables, module, name, is_method):
        self.module, self.name = module, name
        code = sys._getframe(2).f_code
        count = code.co_argcount
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        values = [variables.get(each) for each in names[:count]]
        if code.co_flags & 0x4:  # *args
            values += variables.get(code.co_varnames[len(names)], ())
        self.receiver = values.pop(0) if is_method and values else None
        self.arguments = values
        self.keywords = {each: variables.get(each) for each in names[count:]}
        if code.co_flags & 0x8:  # **kwargs
            place = len(names) + bool(code.co_flags & 0x4)
            self.keywords.update(variables.get(code.co_varnames[place], {}))

    def namesakes(self):
        """Functions that may be tried in place of this one, the nearest first."""
        if self.receiver is not None:
            kind = self.receiver if isinstance(self.receiver, type) else type(self.receiver)
            owners = [each for each in kind.__mro__ if self.name in vars(each)]
            if len(owners) > 1:
                yield getattr(super(owners[0], self.receiver), self.name)
            found = {name: value for name, value in vars(kind).items() if isinstance(value, types.FunctionType)}
        else:
            found = {name: value for name, value in self.module.items() if isinstance(value, types.FunctionType)}
        stayed = [name for name, value in found.items() if NAME not in value.__code__.co_names]
        for name in difflib.get_close_matches(self.name, stayed, n=1, cutoff=ALIKE):
            yield getattr(self.receiver, name) if self.receiver is not None else found[name]


class Program:
    """What the removed code does as long as one program is tried."""

    def __init__(self, name):
        self.result = PROGRAMS[name]
        self.running = False

    def __call__(self, variables, module, name, is_method):
        if name == "__init__":  # anyone would store the arguments under their names
            first, *rest = variables
            for each in rest:
                setattr(variables[first], each, variables[each])
            return None
        if self.running:
            raise NoResult("called by itself")
        self.running = True
        try:
            return self.result(Call(variables, module, name, is_method))
        finally:
            self.running = False


def install(name="None"):
    """Let the removed code do what a program does, in this process."""
    setattr(builtins, NAME, Program(name))


class TrivialPrograms:
    """A pytest plugin that tries all programs in place of running the tests once."""

    def __init__(self, request, report):
        self.report = report
        self.seconds = request["program_timeout_s"]
        self.order = {test: place for place, test in enumerate(request["ids"])}
        install()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Try the programs, and run nothing more."""
        self.try_all(session)
        return True

    def try_all(self, session):
        """Try each program in a process of its own; return pytest's exit code of a complete run."""
        session.items.sort(key=lambda item: self.order.get(item.nodeid, 0))
        killed = 0
        for name in PROGRAMS:
            began = time.time()
            status, test = self.outcome_of(session, name) if session.items and killed < MAX_KILLED else ("SKIPPED", "")
            killed += status == "ERROR"
            self.report.write("test", id=name, status=status, dur=time.time() - began, msg=test)
        return 0

    def outcome_of(self, session, name):
        """``PASSED`` if all tests pass with a program, ``FAILED`` if one does not, ``ERROR`` if they do not end.

        ``SKIPPED`` if pytest itself failed. With the id of the test that does not pass, empty if that is not known.
        """
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                install(name)
                failing = first_failing(session)
                os.write(write_end, failing.encode(errors="replace")[:MAX_ID])
                os._exit(1 if failing else 0)
            finally:
                os._exit(NOT_RUN)
        os.close(write_end)
        with open(read_end, "rb") as reported:
            ended = wait_for(child, self.seconds)
            if ended is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "ERROR", ""
            os.set_blocking(read_end, False)  # a process that it left may still hold the other end
            if os.WIFEXITED(ended) and os.WEXITSTATUS(ended) == NOT_RUN:
                return "SKIPPED", ""
            return ("FAILED", (reported.read() or b"").decode(errors="replace")) if ended else ("PASSED", "")


def unexplained(excinfo, style=None):
    """What stands in place of a failure's traceback, which nobody reads here."""
    return ""


def first_failing(session):
    """Run the tests until one does not pass; return its id, which is empty if all pass."""
    from _pytest.runner import runtestprotocol

    for place, item in enumerate(session.items):
        item.repr_failure = item._repr_failure_py = unexplained
        following = session.items[place + 1] if place + 1 < len(session.items) else None
        if {report.outcome for report in runtestprotocol(item, nextitem=following, log=False)} != {"passed"}:
            return item.nodeid
    return ""
