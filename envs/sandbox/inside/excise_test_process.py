"""Runs in the sandbox, for compiled languages: how a graded test is run, and how runs report; programs import it.

What a test binary prints, and how it ends, is no evidence. A test has passed if a generated harness, after the test has
returned, sends the random token of this one run of this one test. Lifted tests report values instead, which nobody
needs to believe. Standard library only; Python 3.8.
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
MAX_RESULT, MAX_VALUES = 4096, 1 << 20
"""Bytes that are read of a test's result, and of the values that its observing form reports."""
READ_SIZE = 1 << 16


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


def start_test(command, folder, environment):
    """Start a test by its harness; return (process, descriptor with what it sends, token that its harness reads)."""
    token = secrets.token_hex(32)
    token_read, token_write = os.pipe()
    result_read, result_write = os.pipe()
    os.write(token_write, token.encode())
    os.close(token_write)
    os.dup2(token_read, TOKEN)
    os.dup2(result_write, RESULT)
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
    return process, result_read, token


def finish_test(process, result_read, limit_s, max_answer):
    """Read what a test sends, and end it with all that it started; return (answer, exit code, whether it was slow)."""
    answer, is_slow, end = [], False, time.time() + limit_s
    size = 0
    while True:
        left = end - time.time()
        if left <= 0:
            is_slow = True
            break
        if select.select([result_read], [], [], min(left, 1.0))[0]:
            data = os.read(result_read, READ_SIZE)
            if not data or size > max_answer:
                break
            answer.append(data)
            size += len(data)
        elif process.poll() is not None:
            break
    with suppress(subprocess.TimeoutExpired):
        if not is_slow:
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
    return b"".join(answer), code, is_slow


def run_test(command, folder, environment, limit_s):
    """Run one test by its harness; return (status, seconds, message). Only the harness's token makes it pass."""
    began = time.time()
    process, result_read, token = start_test(command, folder, environment)
    answer, code, is_slow = finish_test(process, result_read, limit_s, MAX_RESULT)
    seconds = time.time() - began
    for status in ("PASSED", "SKIPPED"):
        expected = ("%s %s\n" % (status, token)).encode()
        if code == 0 and not is_slow and hmac.compare_digest(answer, expected):
            return status, seconds, ""
    slow = "the test did not end within %g s" % limit_s
    return "FAILED", seconds, slow if is_slow else "no result of the harness; the process ended with %d" % code


def observe_test(command, folder, environment, limit_s, times):
    """Run the observing form of a test ``times`` times; return what it reports, or ``None`` if it cannot be compared.

    A line ``VALUE NUMBER KEY TEXT``, with the last two in hexadecimal (``-``: no key), is the value of a check, and
    ``OPAQUE`` one that has no text to compare. Whether a solution reports them honestly is not checked: it does not
    know which ones are right.
    """
    found = []
    for _ in range(times):
        process, result_read, _ = start_test(command, folder, environment)
        answer, code, is_slow = finish_test(process, result_read, limit_s, MAX_VALUES)
        found.append(None if is_slow else values_in(answer, code))
    return found[0] if all(each == found[0] for each in found) else None


def values_in(answer, code):
    """The values that a test sent, and whether it returned; ``None`` if some have no text, or they are too many."""
    *lines, rest = answer.split(b"\n")
    if len(answer) > MAX_VALUES or rest:
        return None
    values, returned = [], False
    for line in lines:
        words = line.split(b" ")
        if words[0] in {b"PASSED", b"FAILED", b"SKIPPED"}:
            returned = words[0] == b"PASSED" and code == 0
            break
        if len(words) != 4 or words[0] != b"VALUE" or not words[1].isdigit():
            return None
        try:
            key, text = (b"" if word == b"-" else bytes.fromhex(word.decode()) for word in words[2:])
        except ValueError:
            return None
        values.append([words[1].decode()[:9], key.decode("utf-8", "replace"), text.decode("utf-8", "replace")])
    return {"returned": returned, "values": sorted(values, key=lambda value: value[1])}


def result_of(request, command, folder, environment):
    """Run one test as the request says; return those fields of its result that its run tells."""
    limit_s, times = request["test_timeout_s"], request.get("times_observed")
    if times:
        reported = observe_test(command, folder, environment, limit_s, times)
        return {} if reported is None else {"reported": reported}
    status, seconds, message = run_test(command, folder, environment, limit_s)
    return {"status": status, "dur": seconds, "msg": message}


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
