"""Supervisor of a graded run: compiles a solution and its tests, runs each test, alone reports the results.

Started as ``python -I -S excise_java_grade.py`` with the request on stdin. It is protected against inspection by other
processes. Its report is one line, written to a descriptor that no test inherits and signed (HMAC) with a key that is
read from stdin before anything of the project runs.

What the virtual machine prints, and how it ends, is no evidence. A test has passed if the launcher, after the test has
returned, asks for the random token of this one run of this one test and sends it back. Sources are compiled without the
tests, with annotation processors off, so that nothing of a solution runs meanwhile; the launcher and all libraries have
a class loader of their own. While tests run, neither their sources nor their class files are there: the launcher gets
them through its socket, and defines them before the first test. Lifted tests report values instead, which nobody needs
to believe. Standard library only; Python 3.8.
"""

import base64
import ctypes
import hashlib
import hmac
import json
import os
import secrets
import sys
import time
import zlib
from contextlib import suppress

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import excise_java_build as building
import excise_java_jvm as jvm
import excise_java_observe as observing

PR_SET_DUMPABLE = 4
"""Number of the ``prctl`` option that protects a process's memory and descriptors."""


def forbid_inspection():
    """Forbid other processes to read this one's memory or descriptors through /proc."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def hide_sources(project, tests):
    """Delete the sources of all tests: a solution could otherwise read there what is expected."""
    for path in tests:
        with suppress(OSError):
            os.unlink(os.path.join(project.root, path))


def take_classes(folder):
    """(name, bytes) of the classes in a folder, which are deleted there."""
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".class"):
                full = os.path.join(where, name)
                with open(full, "rb") as file:
                    found.append((os.path.relpath(full, folder)[: -len(".class")].replace("/", "."), file.read()))
                os.unlink(full)
    return found


def ordered(request):
    """The ids of all tests, with the canaries at their places."""
    ids = list(request["ids"])
    size = len(ids)
    for canary, place in sorted(request["canaries"].items(), key=lambda pair: -pair[1]):
        ids.insert(min(size, int(place * size + 0.5)), canary)
    return ids


class Tests:
    """Runs tests in a virtual machine, a new one after a test that ends it."""

    def __init__(self, project, paths):
        self.project, self.classes = project, take_classes(building.WORK + "/tests")
        self.machine = jvm.Machine(project.folder, classes=self.classes)
        # Listing initialises some test classes, and so perhaps code of the solution: that machine runs no tests.
        try:
            self.known = jvm.KnownTests(self.machine, paths)
        finally:
            self.machine.close()
        self.machine = None

    def run(self, test, limit_s):
        """Run one test; return (status, seconds, message). Only its token makes it pass."""
        unique = self.known.unique_id(test)
        if not unique:
            return "MISSING", 0.0, "there is no such test"
        token, began = secrets.token_hex(32), time.time()
        try:
            if self.machine is None:
                self.machine = jvm.Machine(self.project.folder, classes=self.classes)
                began = time.time()
            self.machine.send("run", jvm.encoded(unique))
            message, is_run = "", False
            while True:
                fields = self.machine.read_line(began + limit_s)
                if fields[0] == "RESULT" and len(fields) == 8 and fields[5] == "FAILED":
                    message = jvm.decoded(fields[7])[:300]
                elif fields[0] == "RAN" and not is_run:
                    is_run = True
                    self.machine.send(token)
                elif fields[0] == "DONE":
                    break
        except jvm.Ended as ended:
            if self.machine is not None:
                self.machine.close()
            self.machine = None
            return "FAILED", time.time() - began, str(ended)
        known = is_run and len(fields) == 3 and hmac.compare_digest(fields[1].encode(), token.encode())
        status = fields[2] if known and fields[2] in ("PASSED", "SKIPPED") else "FAILED"
        if not known:
            self.machine.close()
            self.machine = None
        return status, time.time() - began, message

    def close(self):
        """End the virtual machine."""
        if self.machine is not None:
            self.machine.close()


def run(request):
    """Compile and run the requested tests, and return the report."""
    project, deadline = building.Project(request["root"]), time.time() + request["timeout_s"]
    building.prepare()
    _, files = project.sources()
    if request["times_observed"]:
        failure = observing.compile_tests(project, files, request["ids"])
        paths = building.paths_of_types(project, files)
        hide_sources(project, files)
        found = (
            {}
            if failure
            else observing.observe(project, paths, take_classes(building.WORK + "/tests"), request, deadline)
        )
        results = [{"id": test, "status": "FAILED", "dur": 0.0, "msg": "", "reported": found[test]} for test in found]
        return {"results": results, "finished": True, "why": failure[:300]}
    wanted = ordered(request)
    failed, problem = building.build(project)
    if failed:
        results = [{"id": test, "status": "FAILED", "dur": 0.0, "msg": problem[:300]} for test in wanted]
        return {"results": results, "finished": True, "why": problem[:300]}
    paths = building.paths_of_types(project, files)
    hide_sources(project, files)
    results = []
    try:
        tests = Tests(project, paths)
    except jvm.Ended as ended:
        results = [{"id": test, "status": "FAILED", "dur": 0.0, "msg": str(ended)} for test in wanted]
        return {"results": results, "finished": True, "why": str(ended)}
    for test in wanted:
        if time.time() > deadline:
            break
        status, seconds, message = tests.run(test, request["test_timeout_s"])
        if status != "MISSING":
            results.append({"id": test, "status": status, "dur": seconds, "msg": message})
    tests.close()
    return {"results": results, "finished": time.time() <= deadline, "why": ""}


def main():
    """Run the request on stdin and write the signed report to the original stdout."""
    request = json.load(sys.stdin)
    forbid_inspection()
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


if __name__ == "__main__":
    main()
