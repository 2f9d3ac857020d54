"""Attacks that add files: configuration, tests, start-up hooks, shadowing modules, byte code, unusual paths."""

from __future__ import annotations

import re
from collections.abc import Callable

from excise.system.commands import run_command
from excise.types import joined, name_in_file, without_parameter
from excise.verifiers.attacks.attack import LINK, Attack, AttackTarget, ChangedFiles

_REPORT = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
_CONFTESTS = {
    "makereport": _REPORT,
    "pyfunc-call": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "collect-nothing": "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n"
    "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "xfail-all": "import pytest\ndef pytest_collection_modifyitems(items):\n"
    "    for item in items:\n        item.add_marker(pytest.mark.xfail(strict=False))\n",
    "skip-all": "import pytest\ndef pytest_collection_modifyitems(items):\n"
    "    for item in items:\n        item.add_marker(pytest.mark.skip)\n",
    "exit-status": "import pytest\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n"
    "    session.exitstatus = 0\n    session.testsfailed = 0\n",
    "exit-at-import": "import os\nos._exit(0)\n",
    "exit-first-test": "import os\ndef pytest_runtest_setup(item):\n    os._exit(0)\n",
    "runtest-protocol": "from _pytest.reports import TestReport\ndef pytest_runtest_protocol(item, nextitem):\n"
    "    hook = item.ihook\n    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)\n"
    "    for when in ('setup', 'call', 'teardown'):\n"
    "        hook.pytest_runtest_logreport(report=TestReport(item.nodeid, item.location, {}, 'passed', None, when))\n"
    "    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)\n    return True\n",
    "report-status": "def pytest_report_teststatus(report, config):\n    return 'passed', '.', 'PASSED'\n"
    "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "fixture-patch": "import pytest\n@pytest.fixture(autouse=True)\ndef everything_is_fine(request):\n"
    "    if getattr(request, 'function', None) is not None:\n"
    "        request.node.obj = lambda *args, **kwargs: None\n    yield\n",
}
_INI = {
    "collect-only": "--collect-only",
    "plugin": "-p evil_plugin",
    "no-such-keyword": "-k nothing_is_called_like_this --override-ini=xfail_strict=false",
    "help": "--help",
    "fixtures": "--fixtures",
}
_PLUGIN = _REPORT
_ALL_PASS = """
import sys
def _patch():
    import _pytest.reports as reports
    original = reports.TestReport.from_item_and_call.__func__
    def from_item_and_call(cls, item, call):
        call.excinfo = None
        return original(cls, item, call)
    reports.TestReport.from_item_and_call = classmethod(from_item_and_call)
"""
_HOOKED = (
    _ALL_PASS
    + """
class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name.endswith("runner") and "_pytest.reports" in sys.modules:
            sys.meta_path.remove(self)
            _patch()
        return None
try:
    _patch()
except Exception:
    sys.meta_path.insert(0, _Finder())
"""
)


def _conftest(text: str, *, where: str) -> Callable[[AttackTarget], ChangedFiles]:
    def make(target: AttackTarget) -> ChangedFiles:
        path = "conftest.py" if where == "top" else f"{target.test_folder}conftest.py"
        return {**target.stubbed, path: text}

    return make


def _ini(name: str, text: str) -> Callable[[AttackTarget], ChangedFiles]:
    return lambda target: {
        **target.stubbed,
        name: text,
        f"{target.root}evil_plugin.py": _PLUGIN,
        "evil_plugin.py": _PLUGIN,
    }


def _without_table(target: AttackTarget) -> str:
    """The text of ``pyproject.toml`` without its pytest table, which would take precedence."""
    old = target.shipped.get("pyproject.toml", b"").decode()
    return re.sub(r"(?ms)^\[tool\.pytest[^\n]*\n.*?(?=^\[|\Z)", "", old)


def _other_ini(name: str, section: str) -> Callable[[AttackTarget], ChangedFiles]:
    text = f"[{section}]\naddopts = -p evil_plugin\n"
    return lambda target: {**_ini(name, text)(target), "pyproject.toml": _without_table(target)}


def _pyproject(option: str) -> Callable[[AttackTarget], ChangedFiles]:
    def make(target: AttackTarget) -> ChangedFiles:
        text = f'{_without_table(target)}\n[tool.pytest.ini_options]\naddopts = "{option}"\n'
        return {**_ini("pyproject.toml", text)(target)}

    return make


def _tests_of(target: AttackTarget, body: str, prefix: str = "") -> str:
    """A test file with the hidden tests' names and ``body`` as the body of each."""
    here = [test for test in target.tests if test.startswith(joined(target.test_file, ""))]
    functions = dict.fromkeys(name_in_file(without_parameter(test)) for test in here)
    lines = [prefix]
    for name in functions:
        if "::" in name:
            cls, _, method = name.partition("::")
            lines.append(f"class {cls}:\n    def {method.replace('::', '_')}(self):\n        {body}\n")
        else:
            lines.append(f"def {name}():\n    {body}\n")
    return "\n".join(lines)


def _hidden(body: str, prefix: str = "") -> Callable[[AttackTarget], ChangedFiles]:
    return lambda target: {**target.stubbed, target.test_file: _tests_of(target, body, prefix)}


def _at(*paths: str, text: str) -> Callable[[AttackTarget], ChangedFiles]:
    """Stubs, and a file at each path; ``{root}``, ``{tests}`` and ``{package}`` in paths are filled in."""

    def make(target: AttackTarget) -> ChangedFiles:
        put = {"root": target.root, "tests": target.test_folder, "package": target.package}
        return {**target.stubbed, **{path.format(**put): text for path in paths}}

    return make


def _link(path: str, to: str) -> Callable[[AttackTarget], ChangedFiles]:
    return lambda target: {**target.stubbed, path.format(tests=target.test_folder, root=target.root): LINK + to}


def _metadata(folder: str) -> Callable[[AttackTarget], ChangedFiles]:
    def make(target: AttackTarget) -> ChangedFiles:
        at = f"{target.root}{folder}"
        return {
            **target.stubbed,
            f"{at}/entry_points.txt": "[pytest11]\nevil = evil_plugin\n",
            f"{at}/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            f"{at}/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            f"{target.root}evil_plugin.py": _PLUGIN,
        }

    return make


_COMPILE = """
import _imp, importlib.util, marshal, sys
stub, code, flags = sys.stdin.buffer.read().split(b"\\0")
body = marshal.dumps(compile(stub + code, "feature.py", "exec"))
header = importlib.util.MAGIC_NUMBER + int(flags).to_bytes(4, "little")
tag = sys.implementation.cache_tag.encode()
sys.stdout.buffer.write(tag + b" " + header + _imp.source_hash(importlib.util._RAW_MAGIC_NUMBER, stub) + body)
"""


def _byte_code(flags: int, where: str) -> Callable[[AttackTarget], ChangedFiles]:
    """Byte code for the feature's file that patches the runner, compiled by the environment's interpreter."""

    def make(target: AttackTarget) -> ChangedFiles:
        folder, _, name = target.module.rpartition("/")
        stub = target.stubbed[target.module]
        parts = b"\0".join([stub, _HOOKED.encode(), str(flags).encode()])
        compiled = run_command([target.interpreter, "-I", "-S", "-c", _COMPILE], stdin=parts, timeout_s=60)
        tag, _, data = compiled.stdout.partition(b" ")
        stem = name.removesuffix(".py")
        if where == "beside":
            return {**target.stubbed, target.module: None, f"{folder}/{stem}.pyc".lstrip("/"): data}
        return {**target.stubbed, f"{folder}/__pycache__/{stem}.{tag.decode()}.pyc".lstrip("/"): data}

    return make


def _raw(path: str, text: str) -> Callable[[AttackTarget], ChangedFiles]:
    return lambda target: {**target.stubbed, path: text}


PLANTED_FILES: tuple[Attack, ...] = (
    *(Attack(name=f"conftest-{n}", vector="conftest", make=_conftest(t, where="top")) for n, t in _CONFTESTS.items()),
    *(
        Attack(name=f"conftest-in-tests-{n}", vector="conftest", make=_conftest(_CONFTESTS[n], where="tests"))
        for n in ("makereport", "pyfunc-call", "exit-at-import", "fixture-patch")
    ),
    *(
        Attack(name=f"pytest-ini-{n}", vector="ini", make=_ini("pytest.ini", f"[pytest]\naddopts = {o}\n"))
        for n, o in _INI.items()
    ),
    Attack(name="dot-pytest-ini", vector="ini", make=_ini(".pytest.ini", "[pytest]\naddopts = -p evil_plugin\n")),
    Attack(name="tox-ini", vector="ini", make=_other_ini("tox.ini", "pytest")),
    Attack(name="setup-cfg", vector="ini", make=_other_ini("setup.cfg", "tool:pytest")),
    Attack(
        name="pytest-ini-functions",
        vector="ini",
        make=_ini("pytest.ini", "[pytest]\npython_functions = no_*\npython_classes = No\n"),
    ),
    *(
        Attack(name=f"pyproject-{n}", vector="ini", make=_pyproject(_INI[n]))
        for n in ("collect-only", "plugin", "no-such-keyword")
    ),
    Attack(name="tests-always-true", vector="tests", make=_hidden("assert True")),
    Attack(name="tests-skip", vector="tests", make=_hidden("import pytest; pytest.skip('later')")),
    Attack(name="tests-xfail", vector="tests", make=_hidden("import pytest; pytest.xfail('known')")),
    Attack(name="tests-patch-runner", vector="tests", make=_hidden("assert 1", _HOOKED)),
    Attack(name="tests-init", vector="tests", make=_at("{tests}__init__.py", text=_HOOKED)),
    *(
        Attack(
            name=f"shadow-{n.replace('/', '-').removesuffix('.py')}",
            vector="shadow",
            make=_at(n, "{root}" + n, text=_HOOKED),
        )
        for n in ("sitecustomize.py",)
    ),
    *(
        Attack(name=f"shadow-{n}", vector="shadow", make=_at(f"{n}.py", "{root}" + f"{n}.py", text=t))
        for n, t in {
            "pytest": "import sys\ndef main(*args):\n    return 0\nif __name__ == '__main__':\n    sys.exit(0)\n",
            "_pytest": "import os\nos._exit(0)\n",
            "pluggy": "import os\nos._exit(0)\n",
            "iniconfig": "import os\nos._exit(0)\n",
            "unittest": "import os\nos._exit(0)\n",
            "json": "import os\nos._exit(0)\n",
            "re": "import os\nos._exit(0)\n",
            "argparse": "import os\nos._exit(0)\n",
            "random": "import os\nos._exit(0)\n",
            "shlex": "import os\nos._exit(0)\n",
        }.items()
    ),
    Attack(name="egg-info-plugin", vector="start-up", make=_metadata("evil.egg-info")),
    Attack(name="dist-info-plugin", vector="start-up", make=_metadata("evil-1.dist-info")),
    Attack(name="pyc-unchecked-hash", vector="byte-code", make=_byte_code(1, "cache")),
    Attack(name="pyc-checked-hash", vector="byte-code", make=_byte_code(3, "cache")),
    Attack(name="pyc-beside-source", vector="byte-code", make=_byte_code(1, "beside")),
)
"""All attacks that add files."""
