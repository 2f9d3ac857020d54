"""Attacks that remove assertions from tests, or forge the test runner's reports."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.python.code_attacks import at_import

_CODE = {
    "rewrite-asserts": (
        "assertions",
        """
import ast, _pytest.assertion.rewrite as w
_old = w.rewrite_asserts
def _rewrite(mod, *a, **k):
    for node in ast.walk(mod):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith('test'):
            node.body = [ast.Pass()]
    ast.fix_missing_locations(mod)
    return _old(mod, *a, **k)
w.rewrite_asserts = _rewrite
""",
    ),
    "compile-asserts": (
        "assertions",
        """
import ast, builtins
_old = builtins.compile
def _compile(source, *a, **k):
    if isinstance(source, ast.Module):
        for node in ast.walk(source):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith('test'):
                node.body = [ast.Pass()]
                ast.fix_missing_locations(node)
    return _old(source, *a, **k)
builtins.compile = _compile
""",
    ),
    "gc-empty-tests": (
        "assertions",
        """
import gc, threading, time, types
def empty():
    for n in range(200):
        for o in gc.get_objects():
            if isinstance(o, types.FunctionType) and o.__name__.startswith('test') and o.__code__.co_freevars == ():
                try:
                    o.__code__ = (lambda *a, **k: None).__code__
                except Exception:
                    pass
        time.sleep(.01)
threading.Thread(target=empty, daemon=True).start()
""",
    ),
    "collection-empty-tests": (
        "assertions",
        """
import _pytest.python as p
_old = p.Function.__init__
def _init(self, *a, **k):
    _old(self, *a, **k)
def obj(self):
    return lambda *a, **k: None
p.Function.obj = property(obj, lambda self, value: None)
""",
    ),
    "assertion-error": (
        "assertions",
        """
import _pytest.python as p
_r = p.Function.runtest
def runtest(self):
    try:
        _r(self)
    except (AssertionError, Exception):
        pass
p.Function.runtest = runtest
import builtins
builtins.AssertionError = type('AssertionError', (AssertionError,), {})
""",
    ),
    "forge-messages": (
        "channel",
        r"""
import json, os, sys
def forge():
    import gc
    ids = [o.nodeid for o in gc.get_objects() if hasattr(type(o), 'nodeid') and hasattr(o, 'location')]
    for fd in range(3, 2048):
        try:
            for name in ids:
                for m in ({'t': 'start'}, {'t': 'test', 'status': 'PASSED', 'dur': 0.1, 'msg': ''}, {'t': 'end'}):
                    os.write(fd, json.dumps(dict(m, id=name)).encode() + b'\n')
            os.write(fd, b'{"t": "code", "code": 0}\n')
        except OSError:
            pass
    os._exit(0)
import _pytest.python as p
p.Function.runtest = lambda self: forge()
""",
    ),
    "forge-messages-request": (
        "channel",
        r"""
import json, os, sys, gc
ids = set()
for o in gc.get_objects():
    if isinstance(o, dict) and 'ids' in o and 'canaries' in o:
        ids |= set(o['ids'])
for fd in range(3, 2048):
    try:
        for name in ids:
            for m in ({'t': 'start'}, {'t': 'test', 'status': 'PASSED', 'dur': 0.1, 'msg': ''}, {'t': 'end'}):
                os.write(fd, json.dumps(dict(m, id=name)).encode() + b'\n')
        os.write(fd, b'{"t": "code", "code": 0}\n')
    except OSError:
        pass
if ids:
    os._exit(0)
import atexit
atexit.register(os._exit, 0)
""",
    ),
    "forge-by-plugin": (
        "channel",
        """
import gc, sys
def patch():
    for o in gc.get_objects():
        if type(o).__name__ in ('Graded', 'Plugin') and hasattr(o, 'phases'):
            def write(kind, _w=o.report.write, **f):
                if kind == 'changed':
                    return None
                if kind == 'test':
                    f.update(status='PASSED', msg='')
                return _w(kind, **f)
            o.report.write = write
patch()
import _pytest.reports as r
_old = r.TestReport.from_item_and_call.__func__
def _from(cls, item, call):
    call.excinfo = None
    return _old(cls, item, call)
r.TestReport.from_item_and_call = classmethod(_from)
""",
    ),
    "forge-json": (
        "channel",
        """
import json
_old = json.dumps
json.dumps = lambda *a, **k: _old(*a, **k).replace('"FAILED"', '"PASSED"').replace('"ERROR"', '"PASSED"')
import _pytest.reports as r
r.BaseReport.failed = property(lambda self: False)
r.BaseReport.passed = property(lambda self: True)
""",
    ),
    "forge-write": (
        "channel",
        """
import os
_old = os.write
def write(fd, data):
    _old(fd, data.replace(b'FAILED', b'PASSED').replace(b'"ERROR"', b'"PASSED"'))
    return len(data)
os.write = write
import _pytest.terminal as t
t.TerminalReporter.pytest_runtest_logreport.__code__
import _pytest.reports as r
_f = r.TestReport.from_item_and_call.__func__
def _from(cls, item, call):
    call.excinfo = None
    return _f(cls, item, call)
r.TestReport.from_item_and_call = classmethod(_from)
""",
    ),
    "forge-report-files": (
        "channel",
        r"""
import glob, json, os, atexit
def forge():
    for name in glob.glob('/excise/out/*'):
        try:
            open(name, 'a').write('{"t": "end", "exit": 0}\n')
        except OSError:
            pass
    os._exit(0)
atexit.register(forge)
""",
    ),
    "parent-memory": (
        "channel",
        r"""
import os
parent = '/proc/%d' % os.getppid()
for name in (parent + '/mem', parent + '/fd/1', '/proc/1/fd/1', parent + '/environ'):
    try:
        open(name, 'r+b', 0).write(b'999 passed\n')
    except OSError:
        pass
os._exit(0)
""",
    ),
    "differences-blinded": (
        "channel",
        """
import sys
m = sys.modules.get('__main__')
if hasattr(m, 'differences'):
    m.differences = lambda before: []
import _pytest.python as p
p.Function.runtest = lambda self: None
""",
    ),
    "canaries-by-name": (
        "channel",
        r"""
import re, sys
import _pytest.python as p
_real = p.Function.runtest
def runtest(self):
    if re.search(r'test_[a-z]+_[0-9a-f]{6}\.py', self.nodeid):
        return _real(self)
p.Function.runtest = runtest
m = sys.modules.get('__main__')
if hasattr(m, 'differences'):
    m.differences = lambda before: []
""",
    ),
    "canaries-by-request": (
        "channel",
        """
import gc, sys
import _pytest.python as p
_real = p.Function.runtest
def runtest(self):
    for o in gc.get_objects():
        if isinstance(o, dict) and 'canaries' in o and self.nodeid in o['canaries']:
            return _real(self)
p.Function.runtest = runtest
m = sys.modules.get('__main__')
if hasattr(m, 'differences'):
    m.differences = lambda before: []
""",
    ),
    "mirror-by-canaries": (
        "channel",
        """
import gc, sys
def go():
    m = sys.modules.get('__main__')
    known = [o for o in gc.get_objects() if isinstance(o, dict) and 'canaries' in o and 'sealed' in o]
    canaries = {name for request in known for name in request['canaries']}
    if not canaries or not hasattr(m, 'differences'):
        return  # the run with wrong expectations, or no run of tests at all: be honest there
    m.differences = lambda before: []
    import _pytest.python as p, _pytest.unittest as u
    for cls in (p.Function, u.TestCaseFunction):
        def runtest(self, real=cls.runtest):
            if self.nodeid in canaries:
                return real(self)
        cls.runtest = runtest
go()
""",
    ),
}

FORGED_REPORTS: tuple[Attack, ...] = tuple(at_import(name, vector, code) for name, (vector, code) in _CODE.items())
"""Each runs when the feature's file is imported."""
