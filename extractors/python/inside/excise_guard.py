"""Keeps a run going where a test would end it: one that hangs for good, kills its process, or eats all memory.

The tests run in a child. It says over a pipe which test it begins and ends; when one does not end, or the child dies
in it, that test has failed, whatever it started is killed, and a new child runs the others.
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
MAX_RESTARTS = 20
HIGH_FD = 1000


def out_of_reach(fd):
    """Move a descriptor to where programs that close "all" of theirs do not look."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return fd
    os.close(fd)
    return moved


class Teller:
    """The child's end of the pipe."""

    def __init__(self, fd, may_restart):
        self.fd = fd
        self.pid = os.getpid()
        self.may_restart = may_restart

    def tell(self, **message):
        os.write(self.fd, json.dumps(message).encode() + b"\n")

    def start(self, test):
        """A test begins."""
        self.tell(start=test)

    def end(self, test, rang):
        """A test has reported; ``rang`` if it ran out of time.

        Ends the process after such a one, since what it started may still be running, and wherever a fork came
        back out of its test.
        """
        if os.getpid() != self.pid:
            os._exit(1)
        self.tell(end=test, rang=rang)
        if rang and self.may_restart:
            os._exit(0)


class Guard:
    """Runs ``work(done, teller)`` in children until all tests have reported."""

    def __init__(self, report, limit_s, work):
        self.report = report
        self.limit_s = limit_s
        self.work = work
        self.done = set()
        self.restarts = 0

    def run(self):
        """The runner's exit code, or None if the run did not come to its end."""
        bell, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            child = Child(self, bell)
            reason = child.watch()
            if child.code is not None:
                return child.code
            if child.test is not None:
                seconds = round(time.time() - child.began, 4)
                self.report.write("test", id=child.test, status="FAILED", dur=seconds, msg=reason)
                self.done.add(child.test)
            elif not child.rang and not child.killed:
                return None
            if self.restarts == MAX_RESTARTS:
                return None
            self.restarts += 1


class Child:
    """One child and what is known of it."""

    def __init__(self, guard, bell):
        self.guard = guard
        self.bell = bell
        self.test = None
        self.began = 0.0
        self.code = None
        self.rang = self.killed = False
        self.pending = b""
        self.pipe, theirs = os.pipe()
        self.sources = [self.pipe, bell]
        self.pid = fork()
        if self.pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self.pipe)
            self.be_child(out_of_reach(theirs))
        os.close(theirs)

    def be_child(self, fd):
        """Run the tests; never returns."""
        code = 1
        try:
            os.setpgid(0, 0)
            teller = Teller(fd, self.guard.restarts < MAX_RESTARTS)
            self.guard.report.pid = os.getpid()
            code = self.guard.work(frozenset(self.guard.done), teller)
            sys.stdout.flush()
            sys.stderr.flush()
            if os.getpid() == teller.pid:
                teller.tell(code=code)
        finally:
            # Threads, pools and exit handlers that tests left behind must not keep a finished run from ending.
            os._exit(code)

    def watch(self):
        """Wait for the child's end, or bring it about; why it ended."""
        while True:
            ready = select.select(self.sources, [], [], self.left())[0]
            if self.bell in ready:
                os.read(self.bell, 4096)
            if self.pipe in ready and not self.hear():
                self.sources.remove(self.pipe)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.end()
                return "ended the test process (%s)" % how(status)
            if self.left() == 0:
                self.killed = True
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.end()
                return "did not end when told to"

    def left(self):
        """Seconds until the running test must be ended from outside; None if none runs."""
        if self.test is None:
            return None
        return max(0.0, self.began + self.guard.limit_s + GRACE_S - time.time())

    def hear(self):
        """Take in what the child says; whether it can say more."""
        data = os.read(self.pipe, 65536)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "start" in message:
                self.test, self.began, self.rang = message["start"], time.time(), False
            elif "end" in message:
                self.test, self.rang = None, message["rang"]
                self.guard.done.add(message["end"])
            elif "code" in message:
                self.code = message["code"]
        return bool(data)

    def end(self):
        """Kill what the child left in its group, wait until it is gone, and hear the child's last words.

        A fork bomb that is still dying leaves no room for the processes of the next test.
        """
        with suppress(ProcessLookupError, PermissionError):
            for _ in range(100):
                os.killpg(self.pid, signal.SIGKILL)
                time.sleep(0.05)
        while self.pipe in self.sources and select.select([self.pipe], [], [], 0)[0] and self.hear():
            pass
        os.close(self.pipe)


def fork():
    """Fork, with patience: a fork bomb takes a moment to die."""
    for _ in range(100):
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.05)
    return os.fork()


def how(status):
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return "exit code %d" % os.WEXITSTATUS(status)
