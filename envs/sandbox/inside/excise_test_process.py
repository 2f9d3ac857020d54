"""Runs in the sandbox, for compiled languages: how a graded test is run, and how runs report; programs import it.

What a test binary prints, and how it ends, is no evidence. A test has passed if a generated harness, after the test has
returned, sends the random token of this one run of this one test. Standard library only; Python 3.8.
"""

import base64
import ctypes
import hashlib
import hmac
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress

PR_SET_DUMPABLE = 4
"""Number of the ``prctl`` option that protects a process's memory and descriptors."""
TOKEN, RESULT = 100, 101
"""Descriptors in a test process: where the harness reads its token, and where it sends the result."""
MAX_RESULT = 4096


class Report:
    """The report of a trusted run; each line is written at once, so that a killed run leaves what it has."""

    def __init__(self, path):
        self.file = open(path, "w")  # noqa: SIM115
        self.places = {}

    def add(self, kind, **fields):
        """Write a line."""
        self.file.write(json.dumps(dict(fields, t=kind)) + "\n")
        self.file.flush()

    def executed(self, test, places):
        """Write what a test executed; an empty id stands for what runs without any test."""
        first = len(self.places)
        new = [place for place in places if place not in self.places]
        for place in new:
            self.places[place] = len(self.places)
        numbers = sorted({self.places[place] for place in places})
        self.add("lines", id=test, first=first, new=[list(place) for place in new], places=numbers)


def run_test(command, folder, environment, limit_s):
    """Run one test by its harness; return (status, seconds, message). Only the harness's token makes it pass."""
    token = secrets.token_hex(32)
    token_read, token_write = os.pipe()
    result_read, result_write = os.pipe()
    os.write(token_write, token.encode())
    os.close(token_write)
    os.dup2(token_read, TOKEN)
    os.dup2(result_write, RESULT)
    began = time.time()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[TOKEN, RESULT],
        start_new_session=True,
    )
    for fd in (token_read, result_write, TOKEN, RESULT):
        os.close(fd)
    answer, message = b"", ""
    while True:
        left = began + limit_s - time.time()
        if left <= 0:
            message = "the test did not end within %g s" % limit_s
            break
        if select.select([result_read], [], [], min(left, 1.0))[0]:
            data = os.read(result_read, MAX_RESULT)
            if not data or len(answer) > MAX_RESULT:
                break
            answer += data
        elif process.poll() is not None:
            break
    with suppress(subprocess.TimeoutExpired):
        if not message:
            process.wait(5)
    for _ in range(50):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            break
        if process.poll() is not None:
            time.sleep(0.01)
    code = process.wait()
    os.close(result_read)
    seconds = time.time() - began
    for status in ("PASSED", "SKIPPED"):
        expected = ("%s %s\n" % (status, token)).encode()
        if code == 0 and not message and hmac.compare_digest(answer, expected):
            return status, seconds, ""
    return "FAILED", seconds, message or "no result of the harness; the process ended with %d" % code


def ordered(request):
    """The ids of all tests of a request, with the canaries at their places."""
    ids = list(request["ids"])
    size = len(ids)
    for canary, place in sorted(request["canaries"].items(), key=lambda pair: -pair[1]):
        ids.insert(min(size, int(place * size + 0.5)), canary)
    return ids


def supervise(run):
    """Pass the request on stdin to ``run``, and write the report that it returns to the original stdout, signed.

    The key comes with the request, and the report goes to a descriptor that no test inherits. Other processes cannot
    read this one's memory or descriptors through /proc.
    """
    request = json.load(sys.stdin)
    with suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    key = request.pop("key").encode()
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    body = base64.b64encode(zlib.compress(json.dumps(run(request)).encode()))
    line = b"%s %s\n" % (hmac.new(key, body, hashlib.sha256).hexdigest().encode(), body)
    while line:
        line = line[os.write(report, line) :]
    os._exit(0)
