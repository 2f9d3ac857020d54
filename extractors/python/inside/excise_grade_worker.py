"""Worker of a graded run: the process in which the code under test and its tests run. Its reports are not trusted.

Started by ``excise_grade_supervisor.py`` with the descriptor to report to as its argument and the request on stdin.
Measures that make a forged report hard are taken here before anything of the project is imported: hidden tests are read
from stdin and never lie in a file, functions of the tests and of pytest are compared with their originals, and canary
tests run among the others. Measures that make a forged report useless are taken by the host: it also runs the tests
with wrong expectations, replays recorded calls, and compares what lifted tests report (``excise_lifted.py``).
"""

import ast
import gc
import json
import os
import sys
import types

gc.disable()  # until excise_run.Plugin.pytest_collection
INSIDE = os.path.dirname(os.path.abspath(__file__))
if sys.path and sys.path[0] != INSIDE:
    sys.path.insert(0, INSIDE)

import _pytest.assertion.rewrite as rewrite  # noqa: E402
import excise_lifted  # noqa: E402
import excise_run  # noqa: E402
import pytest  # noqa: E402

HOOK = rewrite.AssertionRewritingHook


class Channel:
    """Sends messages to the supervisor. Processes that tests fork cannot use it.

    ``numbered``: ids of lifted tests, to those that messages use.
    """

    def __init__(self, fd):
        self.fd = excise_run.move_descriptor(fd)
        self.pid = os.getpid()
        self.numbered = {}

    def write(self, kind, **fields):
        if os.getpid() == self.pid:
            if "id" in fields:
                fields["id"] = self.numbered.get(fields["id"], fields["id"])
            data = json.dumps(dict(fields, t=kind)).encode() + b"\n"
            while data:
                data = data[os.write(self.fd, data) :]

    def start(self, test):
        self.write("start", id=test)

    def end(self, test, timed_out):
        if os.getpid() != self.pid:
            os._exit(1)
        self.write("end", id=test)
        if timed_out:
            os._exit(3)


# --------------------------------------------------------------------------- hidden tests in memory
def seal(sources):
    """Make pytest load hidden test files from memory (``sources``: path to text); on disk they are empty."""
    original = HOOK.exec_module

    def exec_module(self, module):
        path = getattr(module.__spec__, "origin", None)
        source = sources.get(os.path.realpath(path)) if path else None
        if source is None:
            return original(self, module)
        data = source.encode()
        tree = ast.parse(data, filename=path)
        rewrite.rewrite_asserts(tree, data, path, self.config)
        code = compile(tree, path, "exec", dont_inherit=True)
        return exec(code, module.__dict__)

    HOOK.exec_module = exec_module


# -------------------------------------------------------------------- integrity of the test runner
WATCHED = ("_pytest", "pluggy", "pytest", "unittest", "builtins", "excise_run", "json", "importlib._bootstrap")


def watched_modules():
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, types.ModuleType) and any(name == w or name.startswith(w + ".") for w in WATCHED):
            yield name, module


def identity(value):
    """Ids that must not change of a function, class or property; ``None`` for other values, which may change."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        return (id(value.fget), id(value.fset))
    if isinstance(value, types.FunctionType):
        return (id(value), id(value.__code__), id(value.__closure__))
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return (id(value),)
    return None


def snapshot():
    """Identities of all functions, classes and class members of the runner, and references that keep the ids valid."""
    identities, keep = {}, []
    for name, module in watched_modules():
        for attribute, value in list(vars(module).items()):
            mark = identity(value)
            if mark is not None:
                identities[name, attribute] = mark
                keep.append((value, getattr(value, "__code__", None)))
            if isinstance(value, type) and value.__module__ == name:
                for inner, part in list(vars(value).items()):
                    mark = identity(part)
                    if mark is not None:
                        identities[name, attribute, inner] = mark
                        keep.append((part, getattr(part, "__code__", None)))
    return identities, keep


def differences(before):
    """Names of the functions, classes and members that are not those of the snapshot ``before``."""
    now = snapshot()[0]
    return [".".join(key) for key, mark in before.items() if now.get(key) != mark]


# ------------------------------------------------------------------------------------------ the run
class GradedRun(excise_run.Plugin):
    """The plugin of plain runs, which also orders the canaries and compares the test runner with its snapshot.

    The comparison is made before the first test and after the last one, by the worker.
    """

    def __init__(self, request, channel):
        self.lifted = request["lifted"]
        self.judge = None
        super().__init__(
            dict(request, ids=[*request["ids"], *request["canaries"]]), channel, frozenset(request["done"])
        )
        self.positions = request["canaries"]
        self.before = None
        self.keep = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        if self.lifted is not None:
            numbered = excise_lifted.number_tests(items, set(self.lifted["functions"]))
            for old, new in numbered.items():
                self.report.write("numbered", id=new, was=old)
            self.report.numbered = numbered
        super().pytest_collection_modifyitems(config, items)
        canaries = {item.nodeid: item for item in items if item.nodeid in self.positions}
        tests = [item for item in items if item.nodeid not in self.positions]
        ends = [n + 1 for n in range(len(tests)) if n + 1 == len(tests) or tests[n].fspath != tests[n + 1].fspath]
        ends = [0, *ends]
        by_position = {}
        for test, share in self.positions.items():
            if test in canaries:
                position = ends[0] if share <= 0 else ends[-1] if share >= 1 else ends[int(share * len(ends))]
                by_position.setdefault(position, []).append(canaries[test])
        order = []
        for n in range(len(tests) + 1):
            order += by_position.get(n, [])
            order += tests[n : n + 1]
        items[:] = order

    def is_wanted(self, nodeid):
        name = self.report.numbered.get(nodeid, nodeid)
        return super().is_wanted(name) and name not in self.done

    def install_lifted(self):
        """Make the builtins that lifted tests call."""
        if self.lifted is None:
            return
        if self.lifted["seen"] is None:
            excise_lifted.Observer(self.report, self.lifted["removed"]).install()
        else:
            self.judge = excise_lifted.Judge(self.lifted["seen"], self.lifted["names"], self.lifted["nested"])
            self.judge.install()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if self.judge is not None:
            self.judge.begin(self.report.numbered.get(item.nodeid, item.nodeid))
        yield

    def pytest_collection_finish(self, session):
        super().pytest_collection_finish(session)
        self.compare()

    def pytest_sessionfinish(self, session):
        self.compare()

    def compare(self):
        if self.before is None:
            return
        names = differences(self.before)
        if sys.gettrace() is not None or sys.getprofile() is not None:
            names.append("sys.settrace")
        if names:
            self.report.write("changed", names=names[:50])


def run(request, channel_fd, is_watched=True):
    """Run the request and report to the descriptor ``channel_fd``; never returns.

    ``is_watched``: report changes to the test runner.
    """
    channel = Channel(channel_fd)
    sys.path[:] = [entry for entry in sys.path if entry not in (INSIDE, "")]
    root = request["root"]
    if not request["safe_path"]:
        sys.path.insert(0, root)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if request["sealed"]:
        seal({os.path.realpath(os.path.join(root, path)): text for path, text in request["sealed"].items()})
    plugin = GradedRun(request, channel)
    plugin.install_lifted()
    limits = excise_run.TimeLimits(plugin, request["test_timeout_s"], channel)
    arguments = ["-c", request["ini"], "--rootdir", root, "--confcutdir", root, "-o", "addopts="]
    arguments += ["-p", "no:cacheprovider", "-p", "no:randomly", "--continue-on-collection-errors", "-qq", "--tb=no"]
    for name in request["plugins"]:
        arguments += ["-p", name]
    arguments += excise_run.profile_of(request["args"])[1]
    wanted = dict(request, ids=[*request["ids"], *request["canaries"]])
    sys.argv = ["pytest"]
    if is_watched:
        plugin.before, plugin.keep = snapshot()
    code = int(pytest.main(arguments + excise_run.paths_of(wanted), plugins=[plugin, limits]))
    if os.getpid() == channel.pid:
        channel.write("code", code=code)
    os._exit(0)


if __name__ == "__main__":
    run(json.load(sys.stdin), int(sys.argv[1]))
