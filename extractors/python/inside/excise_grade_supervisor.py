"""Supervisor of a graded run: starts the worker processes that run the tests and alone reports their results.

Started as ``python -I -S excise_grade_supervisor.py`` with the request on stdin. It imports nothing of the project, is
protected against inspection by other processes, and shares no memory with its workers. Its report is one line, written
to a descriptor that no worker inherits and signed (HMAC) with a key that is read from stdin before any worker starts.
"""

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
from contextlib import suppress

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "excise_grade_worker.py")
GRACE_S = 5.0
START_S = 120.0
MAX_RESTARTS = 5
MAX_MESSAGE = 1 << 20
PR_SET_DUMPABLE = 4


def close_to_others():
    """No other process may read our memory or descriptors through /proc."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class Process:
    """One process with tests in it, and what it says."""

    def __init__(self, request, done, results, deadline):
        self.results = results
        self.deadline = deadline
        self.limit_s = request["test_timeout_s"]
        self.current = None
        self.began = time.time()
        self.collected = False
        self.code = None
        self.changed = []
        self.pending = b""
        self.wanted = set(request["ids"]) | set(request["canaries"])
        self.pipe, theirs = os.pipe()
        os.set_inheritable(theirs, True)
        flags = ["-P"] if request["safe_path"] and sys.version_info >= (3, 11) else []
        self.process = subprocess.Popen(
            [request["python"], *flags, RUNNER, str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)
        body = dict(request, done=sorted(done))
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(body).encode())
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def watch(self):
        """Hear it out; why it ended, or nothing if it came to its end."""
        why = ""
        while True:
            left = self.left()
            ready = select.select([self.pipe], [], [], max(0.0, min(left, 1.0)))[0]
            if ready and not self.hear():
                break
            if left <= 0:
                why = "did not end when told to"
                break
            if not ready and self.process.poll() is not None:
                break
        self.kill()
        while select.select([self.pipe], [], [], 0)[0] and self.hear():
            pass
        os.close(self.pipe)
        if self.code is not None and self.process.returncode == 0:
            return ""
        return why or "the test process ended (%s)" % self.process.returncode

    def left(self):
        """Seconds until it must be ended."""
        limit = START_S if self.current is None else self.limit_s + GRACE_S
        return min(self.began + limit, self.deadline) - time.time()

    def hear(self):
        """Take in what it says; whether it can say more."""
        data = os.read(self.pipe, 65536)
        *lines, self.pending = (self.pending + data).split(b"\n")
        if len(self.pending) > MAX_MESSAGE:
            return False
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self.take(message)
        return bool(data)

    def take(self, message):
        """One message: a test counts if it was begun, is the one that runs, and was asked for."""
        kind = message.get("t")
        if kind == "start" and message.get("id") in self.wanted and message["id"] not in self.results:
            self.current, self.began = message["id"], time.time()
        elif kind == "test" and message.get("id") == self.current and self.current not in self.results:
            kept = {name: message.get(name) for name in ("id", "status", "dur", "msg")}
            self.results[self.current] = kept
        elif kind == "end":
            self.current, self.began = None, time.time()
        elif kind == "changed" and isinstance(message.get("names"), list):
            self.changed += [str(name)[:200] for name in message["names"][:50]]
        elif kind == "code":
            self.code = message.get("code")

    def kill(self):
        """End it and all that it left in its session."""
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


def run(request):
    """Every test's answer, and what else is to be reported."""
    results, changed = {}, []
    deadline = time.time() + request.pop("timeout_s")
    why, code, restarts = "", None, 0
    while True:
        process = Process(request, set(results), results, deadline)
        why = process.watch()
        changed += process.changed
        code = process.code
        if not why:
            break
        if process.current is not None and process.current not in results:
            results[process.current] = {"id": process.current, "status": "FAILED", "dur": 0.0, "msg": why}
        elif process.current is None:
            break
        restarts += 1
        if restarts > MAX_RESTARTS or time.time() > deadline:
            break
    return {
        "results": list(results.values()),
        "changed": sorted(set(changed))[:100],
        "finished": not why,
        "code": code,
        "why": why,
        "restarts": restarts,
    }


def main():
    """Run what stdin asks for, and report it."""
    request = json.load(sys.stdin)
    close_to_others()
    key = request.pop("key").encode()
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    body = json.dumps(run(request)).encode()
    line = b"%s %s\n" % (hmac.new(key, body, hashlib.sha256).hexdigest().encode(), body)
    while line:
        line = line[os.write(report, line) :]
    os._exit(0)


if __name__ == "__main__":
    main()
