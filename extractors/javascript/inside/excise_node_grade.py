"""Supervisor of a graded run: starts the node processes that run the tests and alone reports their results.

Started as ``python -I -S excise_node_grade.py`` with the request on stdin. It runs nothing of the project, is protected
against inspection by other processes, and shares no memory with node. Its report is one line, written to a descriptor
that no node process inherits and signed (HMAC) with a key that is read from stdin before any of them starts.

What a node process reports is not trusted: hidden tests are passed to it in memory, canary tests run among the others
in every process, and the functions of test runners are compared with their originals around each test. The host also
runs the tests with wrong expectations, and copies that fail after what they do.
"""

import base64
import ctypes
import hashlib
import hmac
import json
import os
import re
import sys
import time
import zlib
from contextlib import suppress

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import excise_node_run

PR_SET_DUMPABLE = 4
"""Number of the ``prctl`` option that protects a process's memory and descriptors."""
OWN = re.compile(r"""(?:\brequire\(\s*|\bfrom\s*|\bimport\s*\(?\s*)['"](tape|tap)['"]""")
"""What a test file has that uses tape or tap."""
IN_TEXT = {"jest", "vitest"}
"""Test runners that canaries reach in the text of the test file only: it is run in a context of its own."""
COMMENTS = re.compile(r"\A(?:#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
"""The comments at the beginning of a file."""
HEAD = re.compile(r"""\A(?:\#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/|(['"])use\ \w+\1;?)*""", re.DOTALL | re.VERBOSE)
"""The comments and directives that must stay at the beginning of a file."""
MAX_VALUES = 16 << 20
"""Number of characters of all values that the tests of a run report."""
WORST = ["MISSING", "FAILED", "ERROR", "SKIPPED", "XFAIL", "PASSED"]
"""Statuses of canaries; of several runs of one, the status that is last here counts: none of them may pass."""


class GradedResults:
    """The results of the tests, and of the canaries in every process."""

    def __init__(self, request):
        self.canaries = request["canaries"]
        self.wanted = set(request["ids"])
        self.results = {}
        self.canary_results = {}
        self.names = set()
        self.errors = []

    def result(self, entry):
        """Keep the first result of a test that is wanted, and the best of a canary."""
        test = entry["id"]
        canary = self.canary_of(test)
        if canary is not None:
            before = self.canary_results.get(canary)
            status = entry.get("status") if entry.get("status") in WORST else "PASSED"
            if before is None or WORST.index(status) > WORST.index(before["status"]):
                self.canary_results[canary] = dict(entry, id=canary, status=status)
        elif test in self.wanted and test not in self.results:
            self.results[test] = entry

    def canary_of(self, test):
        """The id that the host knows a canary by; in a process it is reported as a test of the process's file."""
        if test in self.wanted:
            return None
        _, separator, title = test.partition(excise_node_run.SEPARATOR)
        return next((each for each in self.canaries if each.endswith(separator + title)), None)

    def collect_error(self, path, message):
        self.errors.append("%s: %s" % (path, message))

    def cover(self, path, title, rows):
        """Graded runs measure no coverage."""

    def changed(self, names):
        if isinstance(names, list):
            self.names.update(str(name)[:200] for name in names[:50])

    def value(self, test, number, text):
        """Only lifted tests report values."""


class ReportedValues:
    """The values that lifted tests report, and whether they returned. They are not believed: nobody need know them."""

    def __init__(self, request):
        self.wanted = set(request["ids"])
        self.values = {}
        self.passed = {}
        self.opaque = set()
        self.size = 0
        self.errors = []

    def result(self, entry):
        self.passed.setdefault(entry["id"], entry.get("status") == "PASSED")

    def value(self, test, number, text):
        """Keep a value; a test one of whose values has no text cannot be compared."""
        self.size += len(text) if isinstance(text, str) else 0
        if not isinstance(number, int) or not isinstance(text, str) or self.size > MAX_VALUES:
            self.opaque.add(test)
        else:
            self.values.setdefault(test, []).append([str(number)[:9], "", text])

    def collect_error(self, path, message):
        self.errors.append("%s: %s" % (path, message))

    def cover(self, path, title, rows):
        """Graded runs measure no coverage."""

    def changed(self, names):
        """Not asked for."""

    def reported(self):
        """Test to what it reported, in the order of its checks in the file: code may call back at any time."""
        return {
            test: {"returned": passed, "values": sorted(self.values.get(test, []), key=lambda value: int(value[0]))}
            for test, passed in self.passed.items()
            if test in self.wanted and test not in self.opaque
        }


def kind_of(request, source):
    """How a test file is run."""
    runner = excise_node_run.runner_of(request, source)
    found = OWN.search(source)
    return found[1] if runner == "node" and found else runner


def canary_texts(request, source):
    """The canary file, and which of its tests run before a test file and which after it.

    ``None`` for a file that uses another test runner than the canaries.
    """
    if not request["canaries"]:
        return None
    file = next(iter(request["canaries"])).partition(excise_node_run.SEPARATOR)[0]
    text = request["sealed"].get(file)
    if text is None:
        with open(os.path.join(request["root"], file)) as opened:
            text = opened.read()
    if kind_of(request, source) != kind_of(request, text):
        return None
    titles = [test.partition(excise_node_run.SEPARATOR)[2] for test in request["canaries"]]
    first = [title for title, place in zip(titles, request["canaries"].values(), strict=True) if place < 0.5]
    return {
        "file": os.path.join(request["root"], file),
        "text": text,
        "first": first,
        "last": [title for title in titles if title not in first],
    }


def with_canaries(source, text, runner):
    """The text of a test file with the canaries at its beginning and at its end, without checks of types."""
    if runner == "vitest":
        text = text.replace("Reflect.get(globalThis,", "Reflect.get(await import('vitest'),", 1)
        text = text.replace("(name) =>", "async (name) =>").replace("= found(", "= await found(")
        text = text.replace("|| found(", "|| await found(").replace("(found('expect') || expect)", "expect")
    comments = COMMENTS.match(source).end()
    source = source[:comments] + "// @ts-nocheck\n" + source[comments:]  # canaries have no types
    head = HEAD.match(source).end()
    return "%s\n%s\n%s\n%s" % (source[:head], text, source[head:], text)


def run(request):
    """Run the requested tests and return the report."""
    listener = GradedResults(request)
    deadline = time.time() + request["timeout_s"]
    root = request["root"]
    sealed = {os.path.join(root, path): text for path, text in request["sealed"].items()}
    finished = True
    for path in excise_node_run.files_of(dict(request, shuffle_seed=None)):
        if time.time() > deadline:
            finished = False
            break
        source = request["sealed"].get(path)
        if source is None:
            with open(os.path.join(root, path), errors="replace") as opened:
                source = opened.read()
        name = os.path.join(root, path)
        asked = dict(request, watch=True, sealed={name: sealed[name]} if name in sealed else {})
        runner = excise_node_run.runner_of(request, source)
        canaries = canary_texts(request, source)
        if canaries is not None and runner in IN_TEXT:
            asked["sealed"] = {name: with_canaries(source, canaries["text"], runner)}
            asked["textual"] = {"first": canaries["first"], "last": canaries["last"]}
        else:
            asked["inserted"] = canaries
        excise_node_run.TestFile(path, asked, listener, deadline).run()
    return {
        "results": [*listener.results.values(), *listener.canary_results.values()],
        "changed": sorted(listener.names)[:100],
        "finished": finished and time.time() <= deadline,
        "why": "; ".join(listener.errors)[:300],
    }


def observe(request):
    """Run the observing forms of tests, as often as asked; what differs between two runs is not reported."""
    deadline = time.time() + request["timeout_s"]
    found, errors, finished = [], [], True
    for _ in range(request["times_observed"]):
        listener = ReportedValues(request)
        asked = dict(request, observe=True, shuffle_seed=None, timeout_s=max(0.0, deadline - time.time()))
        finished = excise_node_run.run_files(asked, listener) and finished
        found.append(listener.reported())
        errors += listener.errors
    same = {test: each for test, each in found[0].items() if all(other.get(test) == each for other in found)}
    results = [{"id": test, "status": "PASSED", "dur": 0.0, "reported": each} for test, each in same.items()]
    return {"results": results, "changed": [], "finished": finished, "why": "; ".join(errors)[:300]}


def forbid_inspection():
    """Forbid other processes to read this one's memory or descriptors through /proc."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def main():
    """Run the request on stdin and write the signed report to the original stdout; never returns."""
    request = json.load(sys.stdin)
    forbid_inspection()
    key = request.pop("key").encode()
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    body = base64.b64encode(
        zlib.compress(json.dumps((observe if request.get("times_observed") else run)(request)).encode())
    )
    line = b"%s %s\n" % (hmac.new(key, body, hashlib.sha256).hexdigest().encode(), body)
    while line:
        line = line[os.write(report, line) :]
    os._exit(0)


if __name__ == "__main__":
    main()
