"""Supervisor of a graded run: starts the worker processes that run the tests and alone reports their results.

Started as ``python -I -S excise_grade_supervisor.py`` with the request on stdin. It imports nothing of the project, is
protected against inspection by other processes, and shares no memory with its workers. Its report is one line, written
to a descriptor that no worker inherits and signed (HMAC) with a key that is read from stdin before any worker starts.
It is compressed, since output is limited and some suites have a hundred thousand tests.
"""

import base64
import ctypes
import hashlib
import hmac
import json
import os
import select
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "excise_grade_worker.py")
GRACE_S = 5.0
"""Seconds beyond a test's time limit, which the worker enforces, after which the worker is killed."""
START_S = 120.0
"""Time limit in seconds of a worker outside tests: to start, to collect, and to end."""
MAX_RESTARTS = 5
"""Maximum number of new workers, each started after a test killed or blocked the last one."""
MAX_MESSAGE = 1 << 20
"""Maximum size of one message of a worker in bytes."""
MAX_SEEN = 32 << 20
"""Maximum size in bytes of all values that lifted tests report."""
MAX_NESTED = 300
"""Maximum depth of nested lists in a value; who reads a deeper one could run out of stack."""
PR_SET_DUMPABLE = 4
"""Number of the ``prctl`` option that protects a process's memory and descriptors."""


def forbid_inspection():
    """Forbid other processes to read this one's memory or descriptors through /proc."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def start_worker(request, channel):
    """Start a worker in an interpreter of its own; it reports to the descriptor ``channel``."""
    os.set_inheritable(channel, True)
    flags = ["-P"] if request["safe_path"] and sys.version_info >= (3, 11) else []
    process = subprocess.Popen(
        [request["python"], *flags, WORKER, str(channel)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[channel],
        start_new_session=True,
    )
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request).encode())
    with suppress(BrokenPipeError):
        process.stdin.close()
    return process


class Worker:
    """One worker process and the messages that it sends; ``start`` starts it as :func:`start_worker` does."""

    def __init__(self, request, done, results, lifted, deadline, start):
        self.results = results
        self.lifted = lifted
        self.deadline = deadline
        self.limit_s = request["test_timeout_s"]
        self.current = None
        self.began = time.time()
        self.collected = False
        self.code = None
        self.changed = []
        self.pending = b""
        self.wanted = set(request["ids"]) | set(request["canaries"])
        self.pipe, worker_end = os.pipe()
        self.process = start(dict(request, done=sorted(done)), worker_end)
        os.close(worker_end)

    def watch(self):
        """Wait for the worker's end; return why it failed, or an empty string if it ran all its tests."""
        why = ""
        while True:
            left = self.seconds_left()
            ready = select.select([self.pipe], [], [], max(0.0, min(left, 1.0)))[0]
            if ready and not self.read_messages():
                break
            if left <= 0:
                why = "did not end when told to"
                break
            if not ready and self.process.poll() is not None:
                break
        self.kill()
        while select.select([self.pipe], [], [], 0)[0] and self.read_messages():
            pass
        os.close(self.pipe)
        if self.code is not None and self.process.returncode == 0:
            return ""
        return why or "the test process ended (%s)" % self.process.returncode

    def seconds_left(self):
        """Seconds until the worker is killed."""
        limit = START_S if self.current is None else self.limit_s + GRACE_S
        return min(self.began + limit, self.deadline) - time.time()

    def read_messages(self):
        """Read messages of the worker; return whether its end of the pipe is still open."""
        data = os.read(self.pipe, 65536)
        *lines, self.pending = (self.pending + data).split(b"\n")
        if len(self.pending) > MAX_MESSAGE:
            return False
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                self.handle(message, len(line))
        return bool(data)

    def handle(self, message, size):
        """Handle one message. The result of a test counts only if the test was requested and is the one that runs."""
        kind = message.get("t")
        if kind == "start" and message.get("id") in self.wanted and message["id"] not in self.results:
            self.current, self.began = message["id"], time.time()
        elif kind == "test" and message.get("id") == self.current and self.current not in self.results:
            kept = {name: message.get(name) for name in ("id", "status", "dur", "msg")}
            self.results[self.current] = kept
        elif kind == "see" and self.current is not None and isinstance(message.get("place"), int):
            self.lifted.see(self.current, message["place"], message.get("value"), size)
        elif kind == "numbered":
            self.lifted.numbered[str(message.get("id"))[:1000]] = str(message.get("was"))[:1000]
        elif kind == "end":
            self.current, self.began = None, time.time()
        elif kind == "changed" and isinstance(message.get("names"), list):
            self.changed += [str(name)[:200] for name in message["names"][:50]]
        elif kind == "code":
            self.code = message.get("code")

    def kill(self):
        """Kill the worker and every process in its session."""
        with suppress(subprocess.TimeoutExpired):
            if self.code is not None:
                self.process.wait(GRACE_S)
        for _ in range(50):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
            if self.process.poll() is not None:
                time.sleep(0.01)
        self.process.wait()


class Lifted:
    """What the lifted tests of a run report."""

    def __init__(self):
        self.seen = {}
        self.numbered = {}
        self.size = 0

    def see(self, test, place, value, size):
        """Keep a value that a test reports, unless there are too many."""
        self.size += size
        if self.size <= MAX_SEEN:
            value = ["opaque"] if is_deep(value) else value
            self.seen.setdefault(test, []).append([place, value])


def is_deep(value):
    """Whether a value has more than :data:`MAX_NESTED` levels of lists and objects."""
    level = [value]
    for _ in range(MAX_NESTED):
        if not level:
            return False
        level = [
            part
            for each in level
            if isinstance(each, (list, dict))
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def run(request, start):
    """Run the requested tests, with new workers after failures, and return the report."""
    results, changed, lifted = {}, [], Lifted()
    deadline = time.time() + request.pop("timeout_s")
    why, code, restarts = "", None, 0
    while True:
        worker = Worker(request, set(results), results, lifted, deadline, start)
        why = worker.watch()
        changed += worker.changed
        code = worker.code
        if not why:
            break
        if worker.current is not None and worker.current not in results:
            results[worker.current] = {"id": worker.current, "status": "FAILED", "dur": 0.0, "msg": why}
        elif worker.current is None:
            break
        restarts += 1
        if restarts > MAX_RESTARTS or time.time() > deadline:
            break
    return {
        "results": list(results.values()),
        "changed": sorted(set(changed))[:100],
        "seen": lifted.seen,
        "numbered": lifted.numbered,
        "finished": not why,
        "code": code,
        "why": why,
        "restarts": restarts,
    }


def supervise(request, start=start_worker):
    """Run the request and write the signed report to the original stdout; never returns."""
    key = request.pop("key").encode()
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    body = base64.b64encode(zlib.compress(json.dumps(run(request, start)).encode()))
    line = b"%s %s\n" % (hmac.new(key, body, hashlib.sha256).hexdigest().encode(), body)
    while line:
        line = line[os.write(report, line) :]
    os._exit(0)


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    forbid_inspection()
    supervise(request)


if __name__ == "__main__":
    main()
