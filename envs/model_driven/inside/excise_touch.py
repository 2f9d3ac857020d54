"""Pytest plugin that records which tests use a mock. Runs in the sandbox.

A test uses a mock when a function of the mock is called, or one of its files is opened, between the test's set-up and
tear-down. The report is a JSON object of test id to the paths of the mocks.
"""

import json
import os
import sys
import threading

import pytest

FOLDER = os.environ["EXCISE_MOCKS"].rstrip("/") + "/"
REPORT = os.environ["EXCISE_TOUCHED"]


class Recorder:
    def __init__(self):
        self.test = None
        self.used = {}

    def record(self, path):
        if self.test is not None and isinstance(path, str) and path.startswith(FOLDER):
            self.used.setdefault(self.test, []).append(path[len(FOLDER) :])

    def on_call(self, frame, event, arg):
        if event == "call":
            self.record(frame.f_code.co_filename)

    def on_audit_event(self, event, args):
        if event == "open" and self.test is not None and args and isinstance(args[0], (str, bytes)):
            self.record(os.path.abspath(os.fsdecode(args[0])))


RECORDER = Recorder()
sys.addaudithook(RECORDER.on_audit_event)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    RECORDER.test = item.nodeid
    sys.setprofile(RECORDER.on_call)
    threading.setprofile(RECORDER.on_call)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        RECORDER.test = None


def pytest_sessionfinish(session):
    with open(REPORT, "w") as file:
        json.dump({test: sorted(set(paths)) for test, paths in RECORDER.used.items()}, file)
