"""Serves test runs from a process that has collected the whole suite: a run costs a fork and the tests themselves.

Started as ``python excise_collected.py SUITE`` in the checkout, where SUITE is what all requests have in common, as
JSON. With ``--serve N``, it collects the suite and then serves runs (``excise_fork_server.py``); without, it makes the
one run that is requested on stdin, like ``excise_run.py``. In a served run, the project is already imported: what
differs in the checkout is adapted (``excise_swap.py``), or the run is refused with a line ``refused`` in its report.
The run can also record calls (``excise_recorder.py``), and watch what tests do (``excise_watch.py``).
"""

import contextlib
import gc
import json
import os
import random
import stat
import sys
import tempfile
import time

INSIDE = sys.path[0]

import excise_fork_server  # noqa: E402
import excise_recorder  # noqa: E402
import excise_watch  # noqa: E402
from excise_swap import Executed, LoadedCode, NeedsImport, real  # noqa: E402

# isort: split
import excise_run  # noqa: E402  (it puts the checkout in the place of INSIDE on the path)
import pytest  # noqa: E402

HARMLESS = frozenset(["/dev/null", "/dev/urandom", "/dev/zero"])
"""Files that may be open before runs are forked; the position in any other file would be shared between the runs."""
SEEDED = os.path.realpath(random.__file__)
"""File with the code that runs if the project seeds the random numbers when it is imported."""
CACHES = frozenset([".git", ".hypothesis", ".benchmarks", "__pycache__"])
"""Folders of the checkout that may be lost, with what is in them."""
WRITABLE = ("/tmp", "/home/agent", "/dev/shm", "/excise/out")
"""Folders whose content is lost when the first run begins."""


class KeptLines:
    """What is written to the report while the suite is collected, for the reports of all runs."""

    def __init__(self):
        self.lines = []

    def write(self, kind, **fields):
        """Keep a line."""
        self.lines.append((kind, fields))


class Traces:
    """What this process had made when this object was: files, open files, threads. Runs would share or miss more."""

    def __init__(self, root):
        self.root = root
        self.before, self.files = self.found(), set(open_files().values())

    def found(self):
        """Files and folders, as name to a stamp, the number of threads, and shared memory."""
        found = {"threads": len(os.listdir("/proc/self/task"))}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in CACHES]
            for path in (os.path.join(folder, name) for name in names + folders):
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    content = () if stat.S_ISDIR(status.st_mode) else (status.st_mtime_ns, status.st_size)
                    found[path] = (status.st_mode, *content)
        with open("/proc/self/maps") as maps:
            found["shared memory"] = [line.split()[0] for line in maps if line.split()[1].endswith("s")]
        for folder in WRITABLE:
            found[folder] = sorted(os.listdir(folder)) if os.path.isdir(folder) else None
        return found

    def more(self, expected):
        """Describe what there is more by now, besides open files with the ``expected`` numbers; empty if nothing."""
        now = self.found()
        changed = {name for name in now.keys() | self.before.keys() if now.get(name) != self.before.get(name)}
        opened = {file for number, file in open_files().items() if number not in expected}
        more = sorted(changed | opened - self.files - HARMLESS)
        if more:
            return "changed or opened by imports: %s" % ", ".join(more[:3])
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
            return "imports have started processes"
        return ""


class Server:
    """A pytest plugin that serves runs when the suite is collected. ``plugin`` is the one that reports tests."""

    def __init__(self, number, root, plugin):
        self.number, self.root, self.plugin = number, root, plugin
        self.traces, self.executed = Traces(root), Executed()
        self.executed.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Serve runs, and make the one of this process."""
        reason, capture, code = "", None, None
        try:
            gc.unfreeze()  # what is frozen is not found
            self.executed.stop()
            code = LoadedCode(self.root, self.executed.keys)
            for item in session.items:
                if type(item).__name__ == "DoctestItem":
                    code.doctest_names.setdefault(real(str(item.fspath)), []).append(item.dtest.globs)
            require_own_loop(session, self)
            capture = Capture(session.config)
            reason = self.traces.more(capture.descriptors())
        except NeedsImport as refusal:
            reason = str(refusal)
        except Exception as error:  # another version of pytest
            reason = "%s: %s" % (type(error).__name__, error)
        where = os.getcwd()
        is_seeded = any(name == "seed" and file == SEEDED for file, _, name in self.executed.keys)
        places = {item.nodeid: place for place, item in enumerate(session.items)}

        def prepare(request):
            """Parse the edited files where all runs profit from it."""
            for path in request["edited"]:
                code.prepare(path)
            return ""

        asked = excise_fork_server.serve(self.number, reason, prepare)
        os.chdir(where)
        excise_fork_server.forget_folders(self.root)
        if not is_seeded:
            random.seed()
        os._exit(run_served(session, self.plugin, places, code, asked["edited"], capture))


def open_files():
    """Number and name of each open file."""
    found = {}
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the list itself
            found[number] = os.readlink("/proc/self/fd/%d" % number)
    return found


def require_own_loop(session, server):
    """Raise ``NeedsImport`` if something else than pytest itself and the server runs the tests."""
    for found in session.config.hook.pytest_runtestloop.get_hookimpls():
        wraps = found.hookwrapper or getattr(found, "wrapper", False)
        if not wraps and found.plugin is not server and found.plugin_name != "main":
            raise NeedsImport("%s runs the tests" % found.plugin_name)


class Unguarded:
    """Takes the reports of a test's progress where nobody watches over it; see ``excise_guard.ProgressPipe``."""

    def __init__(self, until_failure=False):
        self.pid = os.getpid()
        self.until_failure = until_failure

    def start(self, test):
        """A test begins."""

    def end(self, test, timed_out):
        """End the process after a timeout, since threads of the test may still run, and in a fork that a test made.

        Not after a timeout if no test follows anyway.
        """
        if (timed_out and not self.until_failure) or os.getpid() != self.pid:
            os._exit(1)


class Capture:
    """The files to which pytest captures output. All runs would share them, if they were not replaced."""

    def __init__(self, config):
        captures = config.pluginmanager.getplugin("capturemanager")._global_capturing
        self.parts = [part for part in (captures.in_, captures.out, captures.err) if part is not None]
        for part in self.parts:
            if not isinstance(part.targetfd, int) or not hasattr(part, "targetfd_save"):
                raise AttributeError("output is not captured in the usual way")

    def descriptors(self):
        """Numbers of all descriptors."""
        return {part.tmpfile.fileno() for part in self.parts} | {part.targetfd_save for part in self.parts}

    def renew(self):
        """Replace the files by new ones, and what they were opened for by the streams of this process."""
        for part in self.parts:
            os.dup2(part.targetfd, part.targetfd_save)
            if part.targetfd:
                with tempfile.TemporaryFile() as file:
                    os.dup2(file.fileno(), part.tmpfile.fileno())
            os.dup2(part.tmpfile.fileno(), part.targetfd)


def run_served(session, plugin, places, code, edited, capture):
    """Make the run that is requested on stdin; return the exit code of this process.

    ``places`` are the places of all tests in the order in which they were collected. Memory that a run does not touch
    need not be copied, so it does not look at all of them. There is no guard: if a test ends or blocks this process,
    the report has no end.
    """
    with open(0, closefd=False) as stdin:
        request = json.load(stdin)
    capture.renew()
    report = excise_run.Report(request["report"])
    began = time.time()
    try:
        for path in edited:
            code.adapt(path)
        choose(session, plugin, places, request, report)
        watch = start_watch(session, request, code)
        recorder = excise_recorder.start(request["record"]) if "record" in request else None
        programs = excise_run.trivial_programs(request, report)
        exit_code = programs[0].try_all(session) if programs else run_loop(session)
        if recorder is not None:
            excise_recorder.finish(recorder, request["record"], watch.finish() if watch is not None else None)
    except BaseException as error:
        report.write("refused", reason=str(error) if isinstance(error, NeedsImport) else repr(error))
        return 1
    cpu = os.times()
    report.write("end", exit=exit_code, wall=time.time() - began, cpu=sum(cpu[:4]))
    return 0


def start_watch(session, request, code):
    """Watch what the tests do, if that is requested; return the watch or ``None``."""
    asked = request.get("record", {}).get("watch")
    if not asked:
        return None
    watch = excise_watch.Watch(asked)
    session.config.pluginmanager.register(watch)
    watch.start(code.functions)
    return watch


def choose(session, plugin, places, request, report):
    """Reduce the session to the tests of a request, and prepare the plugin for it."""
    for kind, fields in plugin.report.lines:
        if kind == "collect_error" and is_requested(fields["path"], request):
            report.write(kind, **fields)
    plugin.begin(request, report)
    until_failure = request.get("until_failure", False)
    limits = excise_run.TimeLimits(plugin, request["test_timeout_s"], Unguarded(until_failure), until_failure)
    session.config.pluginmanager.register(limits)
    wanted = places if request["ids"] is None else [test for test in request["ids"] if test in places]
    session.items = [session.items[place] for place in sorted(places[test] for test in wanted)]
    plugin.choose(session.items)
    session.testscollected = len(session.items)
    report.write("collected", n=len(session.items))


def is_requested(path, request):
    """Whether a run with this request would collect the file."""
    return request["ids"] is None or any(test.partition("::")[0] == path for test in request["ids"])


def run_loop(session):
    """Run the chosen tests as pytest's own session does; return its exit code."""
    from _pytest.main import pytest_runtestloop

    pytest_runtestloop(session)
    code = 1 if session.testsfailed else 0 if session.testscollected else 5
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=code)
    return code


def serve_runs(number, suite):
    """Collect the suite and serve runs of it on the socket with this number; never returns."""
    os.chdir(suite["root"])  # what is mounted there now
    loaded = excise_fork_server.loaded_from(suite["root"])
    if loaded:
        excise_fork_server.serve(number, "%s is imported from the checkout" % loaded, lambda request: "")
    plugin = excise_run.Plugin(suite, KeptLines())
    plugins = [plugin, Server(number, suite["root"], plugin)]
    try:
        reason = "pytest ended with exit code %s" % excise_run.run_pytest(suite, plugins)
    except BaseException as error:
        reason = "%s: %s" % (type(error).__name__, error)
    reason = "the suite could not be collected: %s" % reason
    excise_fork_server.serve(number, reason, lambda request: reason)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--serve"]:
        gc.disable()  # until the suite is collected
        serve_runs(int(sys.argv[3]), json.loads(sys.argv[1]))
    os.execv(sys.executable, [sys.executable, os.path.join(INSIDE, "excise_run.py")])
