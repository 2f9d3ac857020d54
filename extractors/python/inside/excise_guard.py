"""Runs the tests in a child process, so that a test that hangs, kills its process or uses all memory fails alone.

The child reports over a pipe when a test begins and ends. If a test does not end, or the child dies during it, that
test has failed, every process that it started is killed, and a new child runs the remaining tests.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

GRACE_S = 5.0
"""Seconds beyond a test's time limit, which the child enforces, after which the child is killed."""
MAX_RESTARTS = 20
"""Maximum number of new children, each started after a test killed or blocked the last one."""
HIGH_FD = 1000
"""Lowest number of a descriptor that :func:`move_descriptor` chooses."""


def move_descriptor(fd):
    """Move a descriptor to a high number, since tests may close the low ones to close "all"; return the number."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return fd
    os.close(fd)
    return moved


class ProgressPipe:
    """The child's end of the pipe, on which it reports its progress."""

    def __init__(self, fd, may_restart):
        self.fd = fd
        self.pid = os.getpid()
        self.may_restart = may_restart

    def send(self, **message):
        os.write(self.fd, json.dumps(message).encode() + b"\n")

    def start(self, test):
        """Report that a test begins."""
        self.send(start=test)

    def end(self, test, timed_out):
        """Report that a test has ended; ``timed_out`` if it passed its time limit.

        Ends the process after a timeout, since threads of the test may still run, and in a process that a test forked
        and that returned from the test.
        """
        if os.getpid() != self.pid:
            os._exit(1)
        self.send(end=test, timed_out=timed_out)
        if timed_out and self.may_restart:
            os._exit(0)


class Guard:
    """Runs ``work(done, progress)`` in child processes until all tests have reported.

    ``until_failure``: a test that ends its process, or is killed, is the last one.
    """

    def __init__(self, report, limit_s, work, until_failure=False):
        self.report = report
        self.limit_s = limit_s
        self.work = work
        self.until_failure = until_failure
        self.done = set()
        self.restarts = 0

    def run(self):
        """Run all tests; return the exit code of pytest, or ``None`` if the run did not end regularly."""
        wakeup, signal_end = os.pipe()
        os.set_blocking(signal_end, False)
        signal.set_wakeup_fd(signal_end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            child = Child(self, wakeup)
            reason = child.watch()
            if child.code is not None:
                return child.code
            if child.test is not None:
                seconds = round(time.time() - child.began, 4)
                self.report.write("test", id=child.test, status="FAILED", dur=seconds, msg=reason)
                self.done.add(child.test)
            elif not child.timed_out and not child.killed:
                return None
            if self.until_failure:
                return 1
            if self.restarts == MAX_RESTARTS:
                return None
            self.restarts += 1


class Child:
    """One child process and its state."""

    def __init__(self, guard, wakeup):
        self.guard = guard
        self.wakeup = wakeup
        self.test = None
        self.began = 0.0
        self.code = None
        self.timed_out = self.killed = False
        self.pending = b""
        self.pipe, child_end = os.pipe()
        self.sources = [self.pipe, wakeup]
        self.pid = fork()
        if self.pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self.pipe)
            self.run_in_child(move_descriptor(child_end))
        os.close(child_end)

    def run_in_child(self, fd):
        """Run the tests in this process, the child; never returns."""
        code = 1
        try:
            os.setpgid(0, 0)
            progress = ProgressPipe(fd, self.guard.restarts < MAX_RESTARTS)
            self.guard.report.pid = os.getpid()
            code = self.guard.work(frozenset(self.guard.done), progress)
            sys.stdout.flush()
            sys.stderr.flush()
            if os.getpid() == progress.pid:
                progress.send(code=code)
        finally:
            # without exit handlers: threads and pools that tests left behind would block the exit
            os._exit(code)

    def watch(self):
        """Wait for the child's end, or kill it after a timeout; return why it ended."""
        while True:
            ready = select.select(self.sources, [], [], self.seconds_left())[0]
            if self.wakeup in ready:
                os.read(self.wakeup, 4096)
            if self.pipe in ready and not self.read_messages():
                self.sources.remove(self.pipe)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.clean_up()
                return "ended the test process (%s)" % describe(status)
            if self.seconds_left() == 0:
                self.killed = True
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.clean_up()
                return "did not end when told to"

    def seconds_left(self):
        """Seconds until the running test is killed with the child; ``None`` if no test runs."""
        if self.test is None:
            return None
        return max(0.0, self.began + self.guard.limit_s + GRACE_S - time.time())

    def read_messages(self):
        """Read messages of the child; return whether its end of the pipe is still open."""
        data = os.read(self.pipe, 65536)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "start" in message:
                self.test, self.began, self.timed_out = message["start"], time.time(), False
            elif "end" in message:
                self.test, self.timed_out = None, message["timed_out"]
                self.guard.done.add(message["end"])
            elif "code" in message:
                self.code = message["code"]
        return bool(data)

    def clean_up(self):
        """Kill the child's process group, wait until it is gone, and read the child's last messages.

        The wait is for fork bombs: while they die, the next test could not start processes.
        """
        with suppress(ProcessLookupError, PermissionError):
            for _ in range(100):
                os.killpg(self.pid, signal.SIGKILL)
                time.sleep(0.05)
        while self.pipe in self.sources and select.select([self.pipe], [], [], 0)[0] and self.read_messages():
            pass
        os.close(self.pipe)


def fork():
    """Fork, and try again for some seconds if there are too many processes: a fork bomb takes a while to die."""
    for _ in range(100):
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.05)
    return os.fork()


def wait_for(child, seconds):
    """Wait for the end of a process; return its wait status, or ``None`` if it has not ended after some seconds."""
    deadline = time.time() + seconds
    if hasattr(os, "pidfd_open"):
        fd = os.pidfd_open(child)
        select.select([fd], [], [], seconds)
        os.close(fd)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.time() > deadline:
            return None
        time.sleep(0.001)


def describe(status):
    """A wait status as text."""
    if os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return "exit code %d" % os.WEXITSTATUS(status)
