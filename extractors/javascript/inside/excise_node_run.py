"""Runs a JavaScript project's tests inside the sandbox and reports on them. Standard library only.

Started as ``python -I -S excise_node_run.py`` with the request as JSON on stdin. One node process per test file runs
``excise_node_hook.cjs`` before it; that reports each test on a pipe. A test that hangs, kills its process or uses all
memory fails alone: a new process runs the remaining tests of its file. Exit codes and printed output are never read.

A plain run writes its report as JSON lines into the file that the request names: ``test``, ``collect_error``, ``cover``
and, last, ``end``. A graded run (the request has a ``key``) writes one signed line to stdout instead; see
``excise_node_grade.py``.
"""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "excise_node_hook.cjs")
IDLE = os.path.join(os.path.dirname(HOOK), "excise_idle.cjs")
"""The main program where the hook starts the test runner."""
OWN_RUNNER = re.compile(r"""(?:\brequire\(\s*|\bfrom\s*|\bimport\s*\(?\s*)(['"])(?:node:test|tape|tap|test)\1""")
"""What a file has that runs its tests itself, whatever else the project uses."""
TAP = re.compile(r"""(?:\brequire\(\s*|\bfrom\s*|\bimport\s*\(?\s*)(['"])tap\1""")
"""What a file has that uses tap."""
ESM = re.compile(r"^\s*(?:import\b(?!\s*\()|export\b)", re.MULTILINE)
"""What ECMAScript modules have, and scripts have not."""
GRACE_S = 5.0
"""Seconds beyond a test's time limit, which the hook enforces, after which the process is killed."""
START_S = 180.0
"""Time limit in seconds of a process outside tests: to load its file, and to end."""
MAX_RESTARTS = 20
"""Maximum number of new processes for one file, each started after a test ended or blocked the last one."""
MAX_MESSAGE = 8 << 20
"""Maximum size of one message in bytes."""
SEPARATOR = "::"


class TestFile:
    """One test file, and the processes that run its tests."""

    def __init__(self, path, request, listener, deadline):
        self.path = path
        self.request = request
        self.listener = listener
        self.deadline = deadline
        self.wanted = titles_of(request.get("ids"), path)
        self.without = titles_of(request.get("without") or (), path)
        source = source_of(request, path)
        self.runner = runner_of(request, source)
        self.uses_tap = TAP.search(source) is not None
        self.is_esm = is_module(request["root"], path, source, self.runner)
        self.done = set()
        self.reported = 0

    def run(self):
        """Run all tests of the file that are wanted."""
        for _ in range(MAX_RESTARTS + 1):
            process = NodeProcess(self)
            why = process.watch()
            problem = process.crash or why
            if problem and not self.reported and not process.running:
                self.listener.collect_error(self.path, problem)
                return
            if not process.running and not (why and process.progress):
                return
            if process.running:
                self.fail(process.running[-1], process.crash or why or "ended the test process")
            if time.time() > self.deadline or (self.wanted is not None and self.done >= set(self.wanted)):
                return

    def fail(self, title, why):
        """Report that a test failed with its process."""
        self.done.add(title)
        self.report({"id": title, "status": "FAILED", "dur": 0.0, "msg": why})

    def report(self, message):
        """Report a result, with the id that the host knows the test by."""
        self.reported += 1
        self.listener.result(dict(message, id=self.path + SEPARATOR + str(message.get("id"))))


class NodeProcess:
    """One node process and the messages that its hook sends."""

    def __init__(self, file):
        self.file = file
        self.running = []
        self.began = time.time()
        self.crash = ""
        self.code = None
        self.progress = False
        self.pending = b""
        self.key = os.urandom(16).hex()
        self.limit_s = file.request["test_timeout_s"]
        self.pipe, channel = os.pipe()
        question, ask = os.pipe()
        self.process = start_node(file, channel, question)
        os.close(channel)
        os.close(question)
        self.ask(ask)

    def ask(self, descriptor):
        """Send the hook its request."""
        file, request = self.file, self.file.request
        body = {
            "ids": file.wanted,
            "without": file.without,
            "done": sorted(file.done),
            "limit_s": self.limit_s,
            "cover": bool(request.get("map")),
            "root": request["root"],
            "key": self.key,
            "sealed": request.get("sealed") or {},
            "inserted": request.get("inserted"),
            "textual": request.get("textual"),
            "file": os.path.join(request["root"], file.path),
            "runner": file.runner,
            "esm": file.is_esm,
            "tap": file.uses_tap,
            "print": bool(request.get("print")),
            "mocha": request.get("mocha") or [],
            "watch": bool(request.get("watch")),
            "observe": bool(request.get("observe")),
            "load_stress": bool(request.get("load_stress")),
        }
        with suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as stream:
            stream.write(json.dumps(body).encode())

    def watch(self):
        """Wait for the end of the process; return why it failed, or an empty string after a regular end."""
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
        if not why and self.code is None:
            why = "the test process ended (%s)" % self.process.returncode
        return why

    def seconds_left(self):
        """Seconds until the process is killed."""
        limit = self.limit_s + GRACE_S if self.running else START_S
        return min(self.began + limit, self.file.deadline) - time.time()

    def read_messages(self):
        """Read messages of the hook; return whether its end of the pipe is still open."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.pending = (self.pending + data).split(b"\n")
        if len(self.pending) > MAX_MESSAGE:
            return False
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("key") == self.key:
                self.handle(message)
        return bool(data)

    def handle(self, message):
        """Handle one message. A result counts only if its test is the one that runs, and has none yet."""
        kind, title = message.get("t"), message.get("id")
        if kind == "start" and isinstance(title, str) and title not in self.file.done:
            self.running.append(title)
            self.began = time.time()
        elif kind == "test" and self.running and title == self.running[-1] and title not in self.file.done:
            self.file.done.add(title)
            self.progress = True
            self.file.report({name: message.get(name) for name in ("id", "status", "dur", "msg")})
        elif kind == "end" and title in self.running:
            self.running.remove(title)
            self.began = time.time()
        elif kind == "cover":
            self.file.listener.cover(self.file.path, title, message.get("rows"))
        elif kind == "crash":
            self.crash = str(message.get("msg"))[:300]
        elif kind == "changed":
            self.file.listener.changed(message.get("names"))
        elif kind == "value" and title in self.running:
            self.file.listener.value(self.file.path + SEPARATOR + title, message.get("number"), message.get("text"))
        elif kind == "code":
            self.code = message.get("code")

    def kill(self):
        """Kill the process and all that it started."""
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


def start_node(file, channel, question):
    """Start node with a test file; it reports on descriptor 3 (``channel``) and is asked on descriptor 4."""
    request = file.request

    def connect():
        low = [os.dup2(fd, 100 + n) for n, fd in enumerate((channel, question))]
        os.dup2(low[0], 3, inheritable=True)
        os.dup2(low[1], 4, inheritable=True)
        for fd in low:
            os.close(fd)

    arguments = list(request.get("args", ()))
    if file.is_esm and file.runner == "node":
        arguments += ["--import", "data:text/javascript,"]  # then node's loader of modules takes the main file, too
    main = os.path.join(request["root"], file.path) if file.runner == "node" else IDLE
    return subprocess.Popen(
        ["node", "--require", HOOK, *arguments, main],
        stdin=subprocess.DEVNULL,
        stdout=None if request.get("print") else subprocess.DEVNULL,
        stderr=None if request.get("print") else subprocess.DEVNULL,
        cwd=request["root"],
        close_fds=False,
        preexec_fn=connect,  # noqa: PLW1509  (there are no threads)
        start_new_session=True,
    )


def runner_of(request, source):
    """The test runner of a file: what the file itself imports, else the project's."""
    found = OWN_RUNNER.search(source)
    return "node" if found else request.get("runner") or "node"


def is_module(root, path, source, runner):
    """Whether a test file is loaded as an ECMAScript module; compilers make CommonJS of many that look like one."""
    if path.endswith((".mjs", ".mts")):
        return True
    if path.endswith((".cjs", ".cts")) or not ESM.search(source):
        return False
    folder = os.path.dirname(path)
    while True:
        try:
            with open(os.path.join(root, folder, "package.json"), encoding="utf-8") as opened:
                kind = json.load(opened).get("type")
        except (OSError, ValueError, AttributeError):
            kind = None
        if kind or not folder:
            return kind == "module" or (
                runner == "node" and path.endswith(".js")
            )  # node looks into files without a kind
        folder = os.path.dirname(folder)


def source_of(request, path):
    """Text of a test file: a hidden one's is in the request."""
    sealed = (request.get("sealed") or {}).get(os.path.join(request["root"], path))
    if sealed is not None:
        return sealed
    try:
        with open(os.path.join(request["root"], path), encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""


def titles_of(ids, path):
    """The titles of the tests of one file, without the path; ``None`` for all tests."""
    if ids is None:
        return None
    return [title for file, _, title in (test.partition(SEPARATOR) for test in ids) if file == path]


def files_of(request):
    """The files to run, in order: those of the requested tests, or all."""
    if request.get("ids") is None:
        files = list(request["files"])
    else:
        files = list(dict.fromkeys(test.partition(SEPARATOR)[0] for test in request["ids"]))
    files = [path for path in files if os.path.isfile(os.path.join(request["root"], path))]
    if request.get("shuffle_seed") is not None:
        random.Random(request["shuffle_seed"]).shuffle(files)
    return files[::-1] if request.get("reverse") else files


def run_files(request, listener):
    """Run all files of a request; return whether none was left out because the time was over."""
    deadline = time.time() + request["timeout_s"]
    for path in files_of(request):
        if time.time() > deadline:
            return False
        TestFile(path, request, listener, deadline).run()
    return time.time() <= deadline


class ReportFile:
    """Writes what happens into the report file, without a buffer, so that a killed run keeps its results."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.places = {}

    def write(self, kind, **fields):
        data = json.dumps(dict(fields, t=kind)).encode() + b"\n"
        while data:
            data = data[os.write(self.fd, data) :]

    def result(self, entry):
        self.write("test", **entry)

    def collect_error(self, path, message):
        self.write("collect_error", path=path, message=message)

    def changed(self, names):
        """Plain runs do not ask for this."""

    def value(self, test, number, text):
        """Nor for values."""

    def cover(self, path, title, rows):
        """Report the functions that a test executed (``title``), or loading its file; places are numbered."""
        if not isinstance(rows, list):
            return
        numbers = []
        for row in rows:
            place = tuple(row) if isinstance(row, list) and len(row) == 3 else None
            if place is None:
                continue
            if place not in self.places:
                self.places[place] = len(self.places)
                self.write("place", n=self.places[place], path=str(row[0]), start=row[1], end=row[2])
            numbers.append(self.places[place])
        self.write("cover", id=None if title is None else path + SEPARATOR + title, places=numbers)


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    report = ReportFile(request["report"])
    began = time.time()
    if run_files(request, report):
        cpu = os.times()
        report.write("end", exit=0, wall=time.time() - began, cpu=sum(cpu[:4]))


if __name__ == "__main__":
    main()
