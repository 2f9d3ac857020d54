"""Per-test coverage: which functions of the checkout each test executes.

If all tests share a process, code whose result an earlier test left in a cache is not executed by later tests. So every
test runs in a forked process of its own, or, with ``fork: false``, all run in one process: with ``reverse`` in reverse
order, and with ``both_orders`` in that order in a process that was forked when the suite had been collected, too. What
runs during imports and collection is reported separately.

From Python 3.12 on, the interpreter itself tells when a function starts (:class:`StartedCode`), at so little cost that
an ordinary run of the tests can note it, too (:class:`NotingTests`). Before, coverage.py notes all lines
(:class:`ExecutedLines`).
"""

import gc
import os
import re
import signal
import sys
import traceback
import warnings

import pytest
from excise_guard import wait_for

from __main__ import TimeLimit, empty

MAX_PATTERN = 1 << 15
"""Maximum number of characters of a reported regular expression."""
MAX_PATTERNS = 1000
"""Maximum number of reported regular expressions: the longest ones."""
MAX_CACHED_PATTERNS = 10_000
"""Regular expressions that a process under measurement keeps; Python itself keeps 512."""
GRACE_S = 10.0
"""Seconds beyond a test's time limit, which its process enforces, after which the process is killed."""
TEMPORARY = "/tmp"
"""Folder whose new files are deleted between two passes."""
MAX_NOTED = 20_000_000
"""Places that an ordinary run reports at most, each once for each test; beyond, nothing is noted."""


class Places:
    """Gives each place, a path (relative to the checkout) and a line, a number, so that it is reported once."""

    def __init__(self):
        self.numbers = {}
        self.new = []

    def number(self, path, line):
        place = path, line
        if place not in self.numbers:
            self.numbers[place] = len(self.numbers)
            self.new.append(place)
        return self.numbers[place]

    def entry(self, numbers):
        """Fields of a report for the places with these numbers: ``new`` ones begin with the number ``first``."""
        new, self.new = self.new, []
        return {"places": numbers, "first": len(self.numbers) - len(new), "new": new}


class StartedCode:
    """Notes code of the checkout when it starts, by ``sys.monitoring``. A test costs one call for each function.

    Two tools are used, since an event that is disabled for one piece of code cannot be enabled for it alone: ``FINDER``
    hears of all code, once, and hands that of the checkout over to ``NOTER``, which hears of it once in each test.
    """

    FINDER, NOTER = 3, 4
    FUNCTION = 0x1
    """Flag of code: it is a function's, with local variables in slots, and no module's or class's body."""

    def __init__(self, prefix, omit):
        self.prefix, self.omit = prefix, frozenset(omit)
        self.monitoring = sys.monitoring
        self.events = self.monitoring.events.PY_START | self.monitoring.events.PY_RESUME
        self.started = []
        self.places = Places()
        self.known = {}
        for tool in (self.FINDER, self.NOTER):
            self.monitoring.use_tool_id(tool, "excise")
        for event in (self.monitoring.events.PY_START, self.monitoring.events.PY_RESUME):
            self.monitoring.register_callback(self.FINDER, event, self.find)
            self.monitoring.register_callback(self.NOTER, event, self.note)

    def start(self):
        """Begin to note."""
        self.monitoring.set_events(self.FINDER, self.events)

    def find(self, code, offset):
        """Note code that starts for the first time, if it is the checkout's."""
        if code.co_filename.startswith(self.prefix) and code.co_filename[len(self.prefix) :] not in self.omit:
            self.monitoring.set_local_events(self.NOTER, code, self.events)
            self.started.append(code)
        return self.monitoring.DISABLE

    def note(self, code, offset):
        """Note code that starts for the first time since :meth:`forget`."""
        self.started.append(code)
        return self.monitoring.DISABLE

    def forget(self):
        """Forget what has started."""
        for code in self.started:
            self.monitoring.set_local_events(self.NOTER, code, 0)  # which ends the event's being disabled
            self.monitoring.set_local_events(self.NOTER, code, self.events)
        self.started.clear()

    def entry(self):
        """Fields of a report: a place in each piece of code that has started since :meth:`forget`."""
        return self.places.entry([self.place_of(code) for code in self.started])

    def place_of(self, code):
        """Number of the code's place: of a function its last line, since the first may belong to what is around it."""
        try:
            return self.known[id(code)][1]
        except KeyError:
            line = code.co_firstlineno
            if code.co_flags & self.FUNCTION:
                line = max([line] + [line for _, _, line in code.co_lines() if line])
            number = self.places.number(code.co_filename[len(self.prefix) :], max(line, 1))
            self.known[id(code)] = code, number  # code keeps its id
            return number

    def restart_if_replaced(self):
        """Nothing that tests do usually ends this."""


class ExecutedLines:
    """Notes lines with coverage.py and its C tracer.

    Its lines are taken before coverage.py would write them to a database, which costs more than most tests do.
    """

    def __init__(self, prefix, omit, tools):
        sys.path.append(tools)
        import coverage

        os.environ["COVERAGE_CORE"] = "ctrace"
        self.prefix = prefix
        self.measured = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[prefix + "*"],
            omit=[prefix + path for path in omit],
            messages=False,
        )
        del os.environ["COVERAGE_CORE"]
        warnings = ["no-data-collected", "module-not-measured", "couldnt-parse", "already-imported"]
        self.measured.set_option("run:disable_warnings", warnings)
        self.tracer = None
        self.places = Places()

    def start(self):
        """Begin to note."""
        self.measured.start()
        self.tracer = sys.gettrace()

    def entry(self):
        """Fields of a report: the lines executed since the last :meth:`forget`."""
        found = []
        for path, lines in list(self.measured._collector.data.items()):
            if lines and path.startswith(self.prefix):
                found += [self.places.number(path[len(self.prefix) :], line) for line in sorted(lines)]
        return self.places.entry(found)

    def forget(self):
        """Forget the lines executed so far. The tracer goes on with the same sets."""
        for lines in list(self.measured._collector.data.values()):
            lines.clear()

    def restart_if_replaced(self):
        """Begin again, if a test has put another trace function in the tracer's place."""
        if sys.gettrace() is not self.tracer:
            self.measured.stop()
            self.start()


def collector(request):
    """What notes executed code; not started yet."""
    prefix, omit = request["root"] + "/", request["omit"]
    if sys.version_info >= (3, 12):
        return StartedCode(prefix, omit)
    return ExecutedLines(prefix, omit, request["tools"])


def keep_patterns():
    """Keep more compiled regular expressions than Python does."""
    if isinstance(getattr(re, "_MAXCACHE", None), int):
        re._MAXCACHE = MAX_CACHED_PATTERNS


def compile_quietly(pattern, flags):
    """Compile a regular expression, so that others find it in the cache; one that warns is left to them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            re.compile(pattern, flags)
        except Exception:  # another version of Python
            return
    for cache in (getattr(re, "_cache", {}), getattr(re, "_cache2", {})) if said else ():
        cache.pop((str, pattern, flags), None)


def report_patterns(report):
    """Report the regular expressions that tests compiled, for processes that do not share this one's cache of them."""
    found = [key[1:3] for key in list(getattr(re, "_cache", ())) if isinstance(key, tuple) and key[0] is str]
    found = sorted((each for each in found if len(each[0]) < MAX_PATTERN), key=lambda each: -len(each[0]))
    report.write("warm_up", data=found[:MAX_PATTERNS])


class NotingTests:
    """A pytest plugin that reports what each test of an ordinary run executes, for Python 3.12 and later.

    What is reported is complete for tests that the run ends with ``lines`` for.
    """

    def __init__(self, request, report):
        keep_patterns()
        self.report = report
        self.num_noted = 0
        self.collector = StartedCode(request["root"] + "/", ())
        self.collector.start()

    def pytest_collection_finish(self):
        self.report.write("lines", id="", **self.collector.entry())

    def pytest_sessionfinish(self):
        report_patterns(self.report)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.collector.forget()
        yield
        self.num_noted += len(self.collector.started)
        if self.num_noted < MAX_NOTED:
            self.report.write("lines", id=item.nodeid, **self.collector.entry())


class CoverageMapping:
    """A pytest plugin that runs each test separately and reports what it executed.

    One collector is started before collection and goes on in all forks.
    """

    def __init__(self, request, report):
        self.request = request
        self.report = report
        self.timeout = request["test_timeout_s"]
        keep_patterns()
        self.collector = collector(request)
        self.collector.start()

    def pytest_collection_finish(self, session):
        self.report.write("lines", id="", **self.collector.entry())
        if self.request["reverse"]:
            session.items.reverse()
        for pattern, flags in self.request.get("patterns", ()):
            compile_quietly(pattern, flags)
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """If there are to be two passes, make the one in reverse order first; pytest makes the other one.

        What is reported between the two lines ``reversed`` belongs to the former.
        """
        if self.request["both_orders"]:
            self.report.write("reversed", on=True)
            if not self.run_reversed(session):
                raise session.Interrupted("a test ended the process of all tests")
            self.report.write("reversed", on=False)

    def run_reversed(self, session):
        """Let a forked process run the tests in reverse order; return whether it came to its end."""
        from _pytest.main import pytest_runtestloop

        def work():
            session.items.reverse()
            pytest_runtestloop(session)

        before = frozenset(os.listdir(TEMPORARY))
        sys.stdout.flush()
        sys.stderr.flush()
        ended = os.waitpid(self.start_child(work), 0)[1] == 0
        empty(TEMPORARY, keep=before)
        return ended

    def start_child(self, work):
        """Call ``work`` in a forked process, which ends with status 0 unless it raises; return the process's id."""
        child = os.fork()
        if child == 0:
            code = 1
            self.report.pid = os.getpid()
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return child

    def pytest_sessionfinish(self):
        report_patterns(self.report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if self.request["fork"]:
            self.fork(item)
        else:
            self.measure(item, nextitem)
        return True

    def measure(self, item, nextitem):
        """Run one test in this process and report what it executed."""
        from _pytest.runner import runtestprotocol

        limit = TimeLimit(self.timeout)
        self.collector.forget()
        limit.start()
        try:
            runtestprotocol(item, nextitem=nextitem, log=True)
        finally:
            limit.stop()
        self.report.write("lines", id=item.nodeid, **self.collector.entry())
        self.collector.restart_if_replaced()
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def fork(self, item):
        """Run one test in a child process, and kill it if it does not end."""
        pid = self.start_child(lambda: self.measure(item, None))
        if wait_for(pid, self.timeout + GRACE_S) is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.report.write("test", id=item.nodeid, status="FAILED", dur=self.timeout, msg="did not end when told to")
