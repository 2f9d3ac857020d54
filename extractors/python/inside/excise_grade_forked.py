"""Serves graded runs of the original code from a process that has imported pytest and nothing of the checkout.

With ``--serve N``, each run costs two forks in place of two interpreters, one of which imports pytest: one fork for the
supervisor (``excise_grade_supervisor.py``) and one for its worker (``excise_grade_worker.py``). A supervisor of what is
not trusted may share no memory with it: such runs never begin here. Nor are changes to the test runner reported here.
Without ``--serve``, the run is made as graders make it. The first argument tells servers apart.
"""

import json
import os
import subprocess
import sys
import time

INSIDE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__" and sys.argv[2:3] != ["--serve"]:
    supervisor = os.path.join(INSIDE, "excise_grade_supervisor.py")
    os.execv(sys.executable, [sys.executable, "-I", "-S", supervisor])

import excise_fork_server  # noqa: E402
import excise_grade_supervisor  # noqa: E402

# isort: split
import excise_grade_worker  # noqa: E402  (it takes INSIDE from the path)
import excise_run  # noqa: E402

POLL_S = 0.001
"""Seconds between two looks at whether a worker has ended."""


class ForkedWorker:
    """A worker that is forked from this process; what a supervisor needs of :class:`subprocess.Popen`."""

    def __init__(self, request, channel):
        self.returncode = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                take_place(channel)
                excise_grade_worker.run(request, channel, is_watched=False)
            finally:
                os._exit(1)

    def poll(self):
        """The exit code, negative for a signal; ``None`` if the worker still runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.returncode

    def wait(self, timeout=None):
        """Wait for the end and return the exit code. Raises ``subprocess.TimeoutExpired``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("worker", timeout)
            time.sleep(POLL_S)
        return self.returncode


def take_place(channel):
    """In a forked worker: have the session and the descriptors of one that a supervisor starts."""
    os.setsid()
    nothing, end = os.pipe()
    os.close(end)
    null = os.open(os.devnull, os.O_RDWR)
    for number, stream in enumerate((nothing, null, null)):
        os.dup2(stream, number)
    os.closerange(3, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    excise_run.import_plugins()
    where, served = os.getcwd(), int(sys.argv[3])
    del sys.argv[1:]
    excise_fork_server.serve_importers(served, where, [where])
    excise_grade_supervisor.supervise(json.load(sys.stdin), ForkedWorker)
