"""Attacks that patch the test runner, in whose process the code under test is imported."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.python.code_attacks import at_import

_CODE = {
    "call-info-init": (
        "runner",
        """
import _pytest.runner as r
_old = r.CallInfo.__init__
def _init(self, result, excinfo, *a, **k):
    _old(self, None if excinfo else result, None, *a, **k)
r.CallInfo.__init__ = _init
""",
    ),
    "call-info-from-call": (
        "runner",
        """
import _pytest.runner as r
_old = r.CallInfo.from_call.__func__
def _from(cls, func, when, reraise=None):
    def quiet():
        try:
            func()
        except BaseException:
            pass
        return []
    return _old(cls, quiet if when == 'call' else func, when, reraise)
r.CallInfo.from_call = classmethod(_from)
""",
    ),
    "test-report-factory": (
        "runner",
        """
import _pytest.reports as r
_old = r.TestReport.from_item_and_call.__func__
def _from(cls, item, call):
    call.excinfo = None
    return _old(cls, item, call)
r.TestReport.from_item_and_call = classmethod(_from)
""",
    ),
    "test-report-init": (
        "runner",
        """
import _pytest.reports as r
_old = r.TestReport.__init__
def _init(self, nodeid, location, keywords, outcome, longrepr, when, *a, **k):
    _old(self, nodeid, location, keywords, 'passed', None, when, *a, **k)
r.TestReport.__init__ = _init
""",
    ),
    "report-failed": (
        "runner",
        """
import _pytest.reports as r
r.BaseReport.failed = property(lambda self: False)
r.BaseReport.passed = property(lambda self: True)
r.BaseReport.skipped = property(lambda self: False)
""",
    ),
    "function-runtest": (
        "runner",
        """
import _pytest.python as p
p.Function.runtest = lambda self: None
import _pytest.unittest as u
u.TestCaseFunction.runtest = lambda self: None
""",
    ),
    "pyfunc-call": (
        "runner",
        """
import _pytest.python as p
p.pytest_pyfunc_call = lambda pyfuncitem: True
import gc, pluggy
for o in gc.get_objects():
    if isinstance(o, pluggy._hooks.HookImpl) and o.function.__name__ == 'pytest_pyfunc_call':
        o.function = lambda pyfuncitem: True
        o.argnames = ('pyfuncitem',)
""",
    ),
    "hook-impl": (
        "runner",
        """
import gc, pluggy
for o in gc.get_objects():
    if type(o).__name__ == 'HookImpl' and getattr(o.function, '__name__', '') == 'pytest_runtest_call':
        o.function, o.argnames = (lambda item: None), ('item',)
    wraps = getattr(o, 'hookwrapper', 0) or getattr(o, 'wrapper', 0)
    if type(o).__name__ == 'HookImpl' and o.function.__name__ == 'pytest_runtest_makereport' and not wraps:
        def make(item, call, old=o.function):
            call.excinfo = None
            return old(item, call)
        o.function, o.argnames = make, ('item', 'call')
""",
    ),
    "multicall": (
        "runner",
        """
import pluggy._callers as c, pluggy._manager as m, gc
_old = c._multicall
def _multi(name, impls, kwargs, first):
    if name in ('pytest_pyfunc_call', 'pytest_runtest_call'):
        return True if first else []
    return _old(name, impls, kwargs, first)
c._multicall = _multi
for o in gc.get_objects():
    if type(o).__name__ == 'PluginManager' or type(o).__name__ == 'PytestPluginManager':
        o._inner_hookexec = _multi
""",
    ),
    "call-and-report": (
        "runner",
        """
import _pytest.runner as r
_old = r.call_and_report
def _call(item, when, log=True, **k):
    if when == 'call':
        item.obj = lambda *a, **k: None
    return _old(item, when, log, **k)
r.call_and_report = _call
""",
    ),
    "runtestprotocol": (
        "runner",
        """
import _pytest.runner as r
from _pytest.reports import TestReport
def _run(item, log=True, nextitem=None):
    reports = [TestReport(item.nodeid, item.location, {}, 'passed', None, w) for w in ('setup', 'call', 'teardown')]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return reports
r.runtestprotocol = _run
""",
    ),
    "unittest-and-items": (
        "runner",
        """
import unittest
unittest.TestCase.run = lambda self, result=None: result.addSuccess(self) if result else None
import _pytest.python as p
p.Function.setup = lambda self: setattr(self, 'obj', lambda *a, **k: None)
""",
    ),
    "late-patch": (
        "runner",
        """
import threading, time
def later():
    time.sleep(.15)
    import _pytest.python as p
    p.Function.runtest = lambda self: None
threading.Thread(target=later, daemon=True).start()
import sys
time.sleep(.3)
""",
    ),
    "plugin-registered": (
        "runner",
        """
import gc
class Evil:
    def pytest_pyfunc_call(self, pyfuncitem):
        return True
for o in gc.get_objects():
    if type(o).__name__ == 'PytestPluginManager':
        o.register(Evil(), 'evil')
""",
    ),
    "makereport-registered": (
        "runner",
        """
import gc, pytest
class Evil:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        report.outcome, report.longrepr = 'passed', None
for o in gc.get_objects():
    if type(o).__name__ == 'PytestPluginManager':
        o.register(Evil(), 'evil')
""",
    ),
    "logreport-registered": (
        "runner",
        """
import gc, pytest
class Evil:
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        report.outcome, report.longrepr = 'passed', None
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        session.testsfailed, session.exitstatus = 0, 0
for o in gc.get_objects():
    if type(o).__name__ == 'PytestPluginManager':
        o.register(Evil(), 'evil')
""",
    ),
    "session-exit": (
        "runner",
        """
import gc
import _pytest.main as m
_old = m.Session.__setattr__
def _set(self, name, value):
    _old(self, name, 0 if name in ('testsfailed', 'exitstatus') else value)
m.Session.__setattr__ = _set
""",
    ),
    "undo-before-check": (
        "runner",
        """
import gc
import _pytest.python as p
_real = p.Function.runtest
class Evil:
    def pytest_runtest_setup(self, item):
        p.Function.runtest = lambda self: None
    def pytest_runtest_teardown(self, item):
        p.Function.runtest = _real
for o in gc.get_objects():
    if type(o).__name__ == 'PytestPluginManager':
        o.register(Evil(), 'evil')
""",
    ),
}

PATCHED_RUNNERS: tuple[Attack, ...] = tuple(at_import(name, vector, code) for name, (vector, code) in _CODE.items())
"""Each runs when the feature's file is imported."""
