"""Moves a process's clock on, so that what depends on the date shows. Standard library only, Python 3.8 and later.

What is imported afterwards sees ``time`` and ``datetime`` as they will be some day. Durations are as they are.
"""

import datetime
import time

REAL_DATE, REAL_DATETIME = datetime.date, datetime.datetime


def move(seconds):
    """From here on it is so many seconds later."""
    real = {name: getattr(time, name) for name in ("time", "time_ns", "localtime", "gmtime", "ctime")}
    time.time = lambda: real["time"]() + seconds
    time.time_ns = lambda: real["time_ns"]() + int(seconds) * 10**9
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, at_default(real[name]))
    datetime.date = Date
    datetime.datetime = DateTime


def at_default(function):
    return lambda when=None: function(time.time() if when is None else when)


class Kind(type):
    """Takes objects of the real class for its own."""

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
