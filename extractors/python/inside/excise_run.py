"""Runs a project's tests inside the sandbox and writes a structured report. Standard library and pytest only.

Started as ``python excise_run.py`` in the checkout, with the request as JSON on stdin; with ``--serve N``, it serves
many such runs (``excise_fork_server.py``). A run can also record calls (``excise_recorder.py``). Runs on Python 3.8 and
later, with any version of pytest for it. The report is JSON lines in the file that the request names: ``test``,
``collect_error``, ``collected``, ``imported``, ``lines`` (what tests executed) and, last, ``end``. Without ``end`` the
run did not finish. A test that hangs or kills its process fails alone (``excise_guard.py``).
"""

import contextlib
import errno
import gc
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time

from excise_guard import Guard, move_descriptor

if __name__ == "__main__":
    gc.disable()  # until Plugin.pytest_collection: a tenth of the time in which pytest is imported and set up
INSIDE = sys.path[0]
sys.path[0] = os.getcwd()

import pytest  # noqa: E402  (from the project's environment, with the checkout first on the path)


def find_in_plain_folder(path):
    """Path hook: modules of a folder such as ``tests/..``, which tests put on ``sys.path``, have the names of files
    that others have. Else nobody would know whose code they run."""
    plain = os.path.abspath(path)
    if plain == path:
        raise ImportError("a plain name")
    return folder_hook(plain)


folder_hook = sys.path_hooks[-1]
sys.path_hooks.insert(0, find_in_plain_folder)

MESSAGE_LENGTH = PATH_LENGTH = 300
"""Maximum number of characters of a message."""
WORST = ["MISSING", "PASSED", "XFAIL", "SKIPPED", "FAILED", "ERROR"]
"""Statuses; of the phases of a test, the status that is last here counts."""

COLLECTING = frozenset(["python", "unittest", "fixtures", "funcmanage", "anyio"])
"""Names of the plugins whose hooks make tests from names as pytest itself does."""


class Report:
    """The report file. Lines are written without a buffer, so that a killed run keeps its results.

    Only one process can write: in processes that tests fork, ``write`` does nothing.
    """

    def __init__(self, path):
        self.fd = move_descriptor(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_EXCL, 0o666))
        self.path = path
        self.pid = os.getpid()

    def write(self, kind, **fields):
        if os.getpid() != self.pid:
            return
        data = json.dumps(dict(fields, t=kind)).encode() + b"\n"
        while data:
            try:
                data = data[os.write(self.fd, data) :]
            except OSError as error:
                if error.errno != errno.ENOSPC or not self.free_space():
                    raise

    def free_space(self):
        """Delete files that tests left in the report's folder, to free space; return whether there were any."""
        folder, mine = os.path.split(self.path)
        others = [name for name in os.listdir(folder) if name != mine and not name.startswith("report-")]
        for name in others:
            os.remove(os.path.join(folder, name))
        return bool(others)


def status_of(report):
    """The status of one phase of a test: a name of :class:`excise.types.Status`."""
    if hasattr(report, "wasxfail"):
        return "XFAIL"
    if report.skipped:
        return "SKIPPED"
    if report.failed:
        return "FAILED" if report.when == "call" else "ERROR"
    return "PASSED"


def message_of(report):
    """The first line of a failure's exception."""
    text = ""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        text = crash.message
    elif isinstance(report.longrepr, tuple):
        text = str(report.longrepr[-1])
    elif report.longrepr:
        text = str(report.longrepr).strip().rpartition("\n")[2]
    return text.strip().partition("\n")[0][:MESSAGE_LENGTH]


def place_of(report):
    """The path of the file in which a failure's exception was raised; empty if pytest does not tell."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.path)[-PATH_LENGTH:] if crash is not None else ""


class Plugin:
    """A pytest plugin that selects, orders and reports tests."""

    def __init__(self, request, report, done=frozenset()):
        self.done = done
        self.phases = {}
        self.finished = None
        self.begin(request, report)
        self.leading = None if self.ids is None else names_leading_to(self.ids)
        self.asked = None, False

    def begin(self, request, report):
        """Take a request, and the report for its results."""
        self.request = request
        self.report = report
        self.ids = None if request.get("ids") is None else set(request["ids"])
        self.without = set(request.get("without", ()))

    # selection and order -------------------------------------------------------------------
    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        """Make hypothesis, if the project uses it, draw the same examples in every run and stop at a failing one.

        To look for a simpler one, and for what those that fail have in common, would take far longer.
        """
        try:
            from hypothesis import settings

            with contextlib.suppress(Exception):  # no profile is named, or it is not registered
                settings.load_profile(profile_of(self.request.get("args", []))[0])
            parent = settings.default
            settings.register_profile(
                "excise",
                parent=parent,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[phase for phase in parent.phases if phase.name not in ("shrink", "explain")],
            )
            settings.load_profile("excise")
        except Exception:
            pass
        with contextlib.suppress(ImportError):  # pytest 8.4 and later collects garbage five times at the end
            from _pytest.unraisableexception import gc_collect_iterations_key

            config.stash[gc_collect_iterations_key] = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self):
        """Turn the garbage collector on for the project's code; what pytest has made until now is left out."""
        gc.freeze()
        gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector, name):
        """Make no tests from names that lead to none of the requested ones, which is most of a long file."""
        if self.leading is None or collector.nodeid + "::" + name in self.leading:
            return None
        if self.asked[0] is not collector:
            self.asked = collector, is_collected_by_pytest(collector.ihook)
        return [] if self.asked[1] else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        deselected = [item for item in items if not self.is_wanted(item.nodeid)]
        if deselected:
            config.hook.pytest_deselected(items=deselected)
        self.choose(items)

    def choose(self, items):
        """Reduce the tests to those of the request, in its order."""
        items[:] = [item for item in items if self.is_wanted(item.nodeid)]
        seed = self.request.get("shuffle_seed")
        if seed is not None:
            shuffle(items, random.Random(seed))
        items[:] = [item for item in items if item.nodeid not in self.done]

    def is_wanted(self, nodeid):
        return nodeid not in self.without and (self.ids is None or nodeid in self.ids)

    def pytest_collection_finish(self, session):
        self.report.write("collected", n=len(session.items))
        if self.request.get("load_stress"):
            start_load_stress()

    def pytest_collectreport(self, report):
        if report.failed:
            self.report.write("collect_error", path=report.nodeid, message=last_line(report.longrepr))

    # results -------------------------------------------------------------------------------
    def pytest_runtest_logreport(self, report):
        state = self.phases.setdefault(report.nodeid, {"status": "MISSING", "dur": 0.0, "msg": "", "place": ""})
        status = status_of(report)
        if WORST.index(status) > WORST.index(state["status"]):
            state["status"] = status
            is_failure = status not in ("PASSED", "XFAIL")
            state["msg"], state["place"] = (message_of(report), place_of(report)) if is_failure else ("", "")
        state["dur"] += getattr(report, "duration", 0.0)

    def pytest_runtest_logfinish(self, nodeid):
        state = self.phases.pop(nodeid, None)
        if state is not None:
            self.report.write("test", id=nodeid, **state)
            self.finished = nodeid

    def pytest_sessionfinish(self, session):
        for name in self.request.get("packages", ()):
            module = sys.modules.get(name)
            if module is not None:
                where = getattr(module, "__file__", None) or str(list(getattr(module, "__path__", [])))
                self.report.write("imported", name=name, file=where)


def names_leading_to(ids):
    """Ids of tests without their parameters, and of the classes that they are in."""
    found = set()
    for plain in {test_id.partition("[")[0] for test_id in ids}:
        parts = plain.split("::")
        found.update("::".join(parts[:count]) for count in range(2, len(parts) + 1))
    return found


def is_collected_by_pytest(hook):
    """Whether pytest alone makes tests from names: those of a plugin may have other ids, or it may miss some."""
    for maker in hook.pytest_pycollect_makeitem.get_hookimpls() + hook.pytest_generate_tests.get_hookimpls():
        wraps = maker.hookwrapper or getattr(maker, "wrapper", False)
        if not wraps and maker.plugin_name not in COLLECTING and not isinstance(maker.plugin, Plugin):
            return False
    return True


class TimeLimit:
    """Fails a test that takes too long: raises in it every second from its time limit on, until it ends."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.message = "ran for more than %g s" % seconds
        self.timed_out = False

    def raise_timeout(self, number, frame):
        self.timed_out = True
        pytest.fail(self.message, pytrace=False)

    def start(self):
        self.timed_out = False
        signal.signal(signal.SIGALRM, self.raise_timeout)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, 1.0)

    def stop(self):
        signal.setitimer(signal.ITIMER_REAL, 0)


def last_line(longrepr):
    """The last error line of a collection failure."""
    lines = [line.strip() for line in str(longrepr).splitlines() if line.strip()]
    errors = [line[2:].strip() for line in lines if line.startswith("E ")] or lines or [""]
    return errors[-1][:MESSAGE_LENGTH]


def shuffle(items, rng):
    """Shuffle the files, and the tests within each file."""
    groups = {}
    for item in items:
        groups.setdefault(item.nodeid.partition("::")[0], []).append(item)
    order = list(groups.values())
    rng.shuffle(order)
    for group in order:
        rng.shuffle(group)
    items[:] = [item for group in order for item in group]


class TimeLimits:
    """A pytest plugin that gives each test a time limit, and reports its progress to the guard.

    A test that passes its limit has ``FAILED``, in whichever phase: the exception is raised again every second, and may
    hit the fixtures' clean-up too. ``until_failure``: no test is run after one that does not pass.
    """

    def __init__(self, plugin, seconds, progress, until_failure=False):
        self.plugin, self.progress = plugin, progress
        self.limit = TimeLimit(seconds)
        self.until_failure, self.has_failed = until_failure, False

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        limit = self.limit
        self.progress.start(item.nodeid)
        limit.start()
        try:
            yield
        finally:
            limit.stop()
            if limit.timed_out and self.plugin.finished != item.nodeid:  # raised again while pytest made its report
                self.plugin.report.write("test", id=item.nodeid, status="FAILED", dur=limit.seconds, msg=limit.message)
            if self.until_failure and (limit.timed_out or self.has_failed):
                with contextlib.suppress(ValueError):  # a plugin has taken it out
                    del item.session.items[item.session.items.index(item) + 1 :]  # pytest's loop ends with the list
            self.progress.end(item.nodeid, limit.timed_out)

    def pytest_runtest_logreport(self, report):
        self.has_failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid):
        state = self.plugin.phases.get(nodeid)
        if self.limit.timed_out and state is not None:
            state.update(status="FAILED", msg=self.limit.message)


def paths_of(request):
    """Paths to collect: the existing files of the requested tests, or the configured paths if all tests are to run."""
    if request.get("ids") is None:
        return [path for path in request.get("paths", ()) if os.path.exists(path)]
    files = sorted({test_id.partition("::")[0] for test_id in request["ids"]})
    return [path for path in files if os.path.exists(path)]


def profile_of(args):
    """The hypothesis profile that the arguments name, and the other arguments.

    The option is not passed to pytest, which would fail if the profile is registered by tests that are missing.
    """
    name, rest = "", []
    waiting = False
    for arg in args:
        if waiting or arg.startswith("--hypothesis-profile="):
            name, waiting = arg.rpartition("=")[2], False
        elif arg == "--hypothesis-profile":
            waiting = True
        else:
            rest.append(arg)
    return name, rest


def run_pytest(request, plugins):
    """Run pytest and return its exit code."""
    sys.argv = ["pytest"]
    # "line" shows errors of collection whole; "short" parses a whole module for each line of a failure's traceback
    arguments = ["-p", "no:cacheprovider", "-p", "no:randomly", "--continue-on-collection-errors", "-qq", "--tb=line"]
    arguments += ["--rootdir", request["root"], "-o", "addopts="]
    arguments += profile_of(request.get("args", []))[1]
    return int(pytest.main(arguments + paths_of(request), plugins=plugins))


def start_load_stress():
    """Imitate a busy machine from here on. Raises ``ImportError`` on a Python without ctypes."""
    sys.path.append(INSIDE)
    import excise_load_stress

    sys.path.remove(INSIDE)
    excise_load_stress.start()


def run_with_coverage(request, report):
    """Run with per-test coverage; without a guard, since a run that a test ends is made in another way."""
    sys.path.append(INSIDE)
    from excise_map import CoverageMapping

    sys.path.remove(INSIDE)
    return run_pytest(request, [Plugin(request, report), CoverageMapping(request, report)])


def run_with_recorder(request, report):
    """Run, record calls, and watch what the tests do if that is requested; without a guard."""
    sys.path.append(INSIDE)
    import excise_recorder
    import excise_watch

    sys.path.remove(INSIDE)
    gc.enable()  # the project is imported before pytest collects its tests
    asked = request["record"]
    watch = excise_watch.Watch(asked["watch"]) if asked.get("watch") else None
    recorder = excise_recorder.start(asked)
    code = run_pytest(request, [Plugin(request, report), *([WatchOnceCollected(watch), watch] if watch else [])])
    excise_recorder.finish(recorder, asked, watch.finish() if watch else None)
    return code


class WatchOnceCollected:
    """A pytest plugin that starts a watch when the tests are collected."""

    def __init__(self, watch):
        self.watch = watch

    def pytest_collection_finish(self, session):
        self.watch.start()


def run_under_guard(request, report):
    """Run under the guard; return the exit code, or ``None`` if the run did not end regularly."""

    def work(done, progress):
        if done and INSIDE == "/excise/inside":  # only in a sandbox may everything there be deleted
            empty("/tmp")
        plugin = Plugin(request, report, done)
        limits = TimeLimits(plugin, request["test_timeout_s"], progress, until_failure)
        plugins = [plugin, limits, *noting_tests(request, report)]
        return run_pytest(request, plugins + trivial_programs(request, report))

    until_failure = request.get("until_failure", False)
    return Guard(report, request["test_timeout_s"], work, until_failure).run()


def noting_tests(request, report):
    """The plugin that notes what tests execute, if the request wants that and it costs next to nothing; in a list."""
    if not request.get("executed") or sys.version_info < (3, 12):
        return []
    sys.path.append(INSIDE)
    from excise_map import NotingTests

    sys.path.remove(INSIDE)
    return [NotingTests(request, report)]


def trivial_programs(request, report):
    """The plugin that tries trivial programs, if the request wants that; in a list."""
    if request.get("program_timeout_s") is None:
        return []
    sys.path.append(INSIDE)
    from excise_trivial import TrivialPrograms

    sys.path.remove(INSIDE)
    return [TrivialPrograms(request, report)]


def empty(folder, keep=frozenset()):
    """Delete what tests left in a folder, as far as possible, except entries with the names ``keep``."""
    for entry in os.scandir(folder):
        if entry.name in keep:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            try:
                os.remove(entry.path)
            except OSError:  # another process has deleted it
                continue


def main():
    """Run the request on stdin."""
    request = json.load(sys.stdin)
    report = Report(request["report"])
    began = time.time()
    if request.get("ids") is not None and not paths_of(request):
        code = 5
    else:
        run = run_with_coverage if request.get("map") else run_with_recorder if "record" in request else run_under_guard
        code = run(request, report)
    if code is not None:
        cpu = os.times()
        report.write("end", exit=code, wall=time.time() - began, cpu=sum(cpu[:4]))
    return 1 if code is None else 0


def import_plugins():
    """Import the plugins that pytest always loads."""
    from _pytest.config import default_plugins

    for name in set(default_plugins) - {"stepwise"}:  # which is left out together with cacheprovider
        with contextlib.suppress(ImportError):
            importlib.import_module("_pytest." + name)


def serve_runs(number):
    """Import what all runs need, and serve them on the socket with this number; returns in every run."""
    sys.path.append(INSIDE)
    import excise_fork_server

    sys.path.remove(INSIDE)
    import_plugins()
    root = os.getcwd()
    del sys.argv[1:]
    excise_fork_server.serve_importers(number, root)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve_runs(int(sys.argv[2]))
    status = main()
    # without exit handlers: threads and pools that tests left behind would block the exit
    sys.stdout.flush()
    os._exit(status)
