"""Per-test coverage: every test runs in a forked process of its own, measured by coverage.py.

A test measured after others misses what they left in caches: a function behind a memo shows only its first
caller. In a fork nothing is left over, so memoised functions are seen by all their tests. What importing and
collecting executes is measured apart. Where a fork per test would take too long the request says ``fork: false``,
and tests run in one process.

One collector is started before collection and serves all forks, by dynamic contexts: what it knows about which
files to trace is then warm in every child. Its core must be the C tracer, since sysmon loses contexts. Long tests get a
collector of their own with sysmon, where Python has it.
"""

import gc
import os
import select
import signal
import sys
import time
import traceback

import pytest

from __main__ import TimeLimit

GRACE_S = 10.0


class Mapping:
    """A pytest plugin that runs each item apart and reports the lines it executed."""

    def __init__(self, request, report):
        self.request = request
        self.report = report
        self.timeout = request["test_timeout_s"]
        self.prefix = request["root"] + "/"
        self.slow = set(request["slow"]) if sys.version_info >= (3, 12) else set()
        sys.path.append(request["tools"])
        self.measured = self.collector("ctrace")
        self.measured.start()

    def collector(self, core):
        """A collector of the checkout's lines, tests left out."""
        import coverage

        os.environ["COVERAGE_CORE"] = core
        made = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[self.prefix + "*"],
            omit=[self.prefix + path for path in self.request["omit"]],
            context="",
            messages=False,
        )
        del os.environ["COVERAGE_CORE"]
        warnings = ["no-data-collected", "module-not-measured", "couldnt-parse", "already-imported"]
        made.set_option("run:disable_warnings", warnings)
        return made

    def lines(self, measured, context):
        """File (inside the checkout) to the lines executed in a context."""
        data = measured.get_data()
        data.set_query_context(context)
        found = {}
        for path in data.measured_files():
            if path.startswith(self.prefix):
                lines = data.lines(path)
                if lines:
                    found[path[len(self.prefix) :]] = sorted(lines)
        return found

    def pytest_collection_finish(self, session):
        self.measured.switch_context("-")
        self.report.write("lines", id="", lines=self.lines(self.measured, ""))
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if self.request.get("fork", True):
            self.fork(item)
        else:
            self.measure(item, nextitem)
        return True

    def measure(self, item, nextitem):
        """Run one item here, and report what it executed."""
        from _pytest.runner import runtestprotocol

        limit = TimeLimit(self.timeout)
        alone = self.request.get("fork", True) and item.nodeid in self.slow
        measured, context = self.monitored() if alone else (self.measured, item.nodeid)
        if not alone:
            measured.switch_context(context)
        limit.start()
        try:
            runtestprotocol(item, nextitem=nextitem, log=True)
        finally:
            limit.stop()
            measured.stop() if alone else measured.switch_context("-")
        self.report.write("lines", id=item.nodeid, lines=self.lines(measured, context))
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def monitored(self):
        """A collector for one long test in a child of its own: dear to start, nearly free while it runs."""
        self.measured.stop()
        measured = self.collector("sysmon")
        measured.start()
        return measured, ""

    def fork(self, item):
        """Run one item in a child; kill it if it does not end."""
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
        """Wait for the child, a little longer than its own limit; whether it ended."""
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
