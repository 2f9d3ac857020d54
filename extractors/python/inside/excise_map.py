"""Per-test coverage: every test runs in a forked process of its own, measured by coverage.py.

If all tests shared a process, code whose result an earlier test left in a cache would not be measured for later tests;
with forks it is. Lines that run during imports and collection are measured separately. If a fork for each test would
take too long, the request has ``fork: false``, and all tests run in one process.

One collector is started before collection and measures in all forks, so that every child inherits its cached decisions
about which files to trace. It uses the C tracer. Its lines are taken before coverage.py would write them to a database,
which costs more than most tests do.
Slow tests get a collector of their own with sysmon, if this Python has it.
"""

import gc
import os
import re
import select
import signal
import sys
import time
import traceback

import pytest

from __main__ import TimeLimit

MAX_PATTERN = 4096
"""Maximum number of characters of a reported regular expression."""
GRACE_S = 10.0
"""Seconds beyond a test's time limit, which its process enforces, after which the process is killed."""


class CoverageMapping:
    """A pytest plugin that runs each test separately and reports the lines that it executed."""

    def __init__(self, request, report):
        self.request = request
        self.report = report
        self.timeout = request["test_timeout_s"]
        self.prefix = request["root"] + "/"
        self.slow = set(request["slow"]) if sys.version_info >= (3, 12) else set()
        sys.path.append(request["tools"])
        self.measured = self.collector("ctrace")
        self.measured.start()
        self.tracer = sys.gettrace()

    def collector(self, core):
        """A coverage collector for the files of the checkout, without the tests."""
        import coverage

        os.environ["COVERAGE_CORE"] = core
        made = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[self.prefix + "*"],
            omit=[self.prefix + path for path in self.request["omit"]],
            messages=False,
        )
        del os.environ["COVERAGE_CORE"]
        warnings = ["no-data-collected", "module-not-measured", "couldnt-parse", "already-imported"]
        made.set_option("run:disable_warnings", warnings)
        return made

    def lines(self, measured):
        """Path (relative to the checkout) to the lines executed since the last :meth:`forget`."""
        found = {}
        for path, lines in list(measured._collector.data.items()):
            if lines and path.startswith(self.prefix):
                found[path[len(self.prefix) :]] = sorted(lines)
        return found

    def forget(self):
        """Forget the lines executed so far. The tracer goes on with the same sets."""
        for lines in list(self.measured._collector.data.values()):
            lines.clear()

    def pytest_collection_finish(self, session):
        self.report.write("lines", id="", lines=self.lines(self.measured))
        for pattern, flags in self.request.get("patterns", ()):
            try:
                re.compile(pattern, flags)
            except Exception:  # another version of Python
                continue
        gc.collect()
        gc.freeze()

    def pytest_sessionfinish(self):
        """Report the regular expressions that the tests compiled, for processes that do not share this one's cache."""
        found = [key[1:3] for key in list(getattr(re, "_cache", ())) if isinstance(key, tuple) and key[0] is str]
        self.report.write("patterns", patterns=[each for each in found if len(each[0]) < MAX_PATTERN])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if self.request.get("fork", True):
            self.fork(item)
        else:
            self.measure(item, nextitem)
        return True

    def measure(self, item, nextitem):
        """Run one test in this process and report the lines that it executed."""
        from _pytest.runner import runtestprotocol

        limit = TimeLimit(self.timeout)
        alone = item.nodeid in self.slow
        measured = self.monitored() if alone else self.measured
        self.forget()
        limit.start()
        try:
            runtestprotocol(item, nextitem=nextitem, log=True)
        finally:
            limit.stop()
        self.report.write("lines", id=item.nodeid, lines=self.lines(measured))
        if alone:
            measured.stop()
        if alone or sys.gettrace() is not self.tracer:  # the test replaced it
            self.measured.stop()
            self.measured.start()
            self.tracer = sys.gettrace()
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def monitored(self):
        """A collector with sysmon for one slow test: slow to start, then with little overhead."""
        self.measured.stop()
        measured = self.collector("sysmon")
        measured.start()
        return measured

    def fork(self, item):
        """Run one test in a child process, and kill it if it does not end."""
        pid = os.fork()
        if pid == 0:
            code = 1
            self.report.pid = os.getpid()
            try:
                self.measure(item, None)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        if not self.wait(pid):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.report.write("test", id=item.nodeid, status="FAILED", dur=self.timeout, msg="did not end when told to")

    def wait(self, pid):
        """Wait for the child until ``GRACE_S`` after its time limit; return whether it ended."""
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)
            ended = bool(select.select([fd], [], [], self.timeout + GRACE_S)[0])
            os.close(fd)
            if ended:
                os.waitpid(pid, 0)
            return ended
        deadline = time.time() + self.timeout + GRACE_S
        while time.time() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
            time.sleep(0.001)
        return False
