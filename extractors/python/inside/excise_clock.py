"""Sets the clock of a process ahead, to find results that depend on the date. Standard library only, Python 3.8+.

Modules that are imported afterwards get a later time from ``time`` and ``datetime``; compiled ones from ``time`` alone.
Durations do not change.
"""

import datetime
import time
from importlib.machinery import ExtensionFileLoader

REAL_DATE, REAL_DATETIME = datetime.date, datetime.datetime


def move(seconds):
    """Set the clock of this process ahead by ``seconds``."""
    real = {name: getattr(time, name) for name in ("time", "time_ns", "localtime", "gmtime", "ctime")}
    time.time = lambda: real["time"]() + seconds
    time.time_ns = lambda: real["time_ns"]() + int(seconds) * 10**9
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, at_default(real[name]))
    datetime.date = Date
    datetime.datetime = DateTime
    for name in ("create_module", "exec_module"):
        setattr(ExtensionFileLoader, name, with_real_classes(getattr(ExtensionFileLoader, name)))


def with_real_classes(function):
    """The function, called while the real classes are in their places: a compiled module may define classes based on
    them, and ends the process if it gets others."""

    def called(*args):
        replaced = datetime.date, datetime.datetime
        datetime.date, datetime.datetime = REAL_DATE, REAL_DATETIME
        try:
            return function(*args)
        finally:
            datetime.date, datetime.datetime = replaced

    return called


def at_default(function):
    """The function with the shifted time as the default of its argument."""
    return lambda when=None: function(time.time() if when is None else when)


class Kind(type):
    """Metaclass under which instances of the real class are instances of its replacement."""

    def __instancecheck__(cls, value):
        return isinstance(value, cls.real)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.real)


class Date(REAL_DATE, metaclass=Kind):
    real = REAL_DATE

    @classmethod
    def today(cls):
        return cls.fromtimestamp(time.time())


class DateTime(REAL_DATETIME, metaclass=Kind):
    real = REAL_DATETIME

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(time.time(), datetime.timezone.utc).replace(tzinfo=None)

    @classmethod
    def today(cls):
        return cls.fromtimestamp(time.time())


for made, name in ((Date, "date"), (DateTime, "datetime")):
    made.__name__ = made.__qualname__ = name
    made.__module__ = "datetime"
