"""Pytest plugin that notes which tests touch a file of the mocks folder. Runs in the sandbox; standard library only.

A test touches a mock when a function of it is called, or a file of it opened, between its set-up and its tear-down.
"""

import json
import os
import sys
import threading

import pytest

FOLDER = os.environ["EXCISE_MOCKS"].rstrip("/") + "/"
REPORT = os.environ["EXCISE_TOUCHED"]


class Watch:
    def __init__(self):
        self.test = None
        self.touched = {}

    def note(self, path):
        if self.test is not None and isinstance(path, str) and path.startswith(FOLDER):
            self.touched.setdefault(self.test, []).append(path[len(FOLDER) :])

    def called(self, frame, event, arg):
        if event == "call":
            self.note(frame.f_code.co_filename)

    def opened(self, event, args):
        if event == "open" and self.test is not None and args and isinstance(args[0], (str, bytes)):
            self.note(os.path.abspath(os.fsdecode(args[0])))


WATCH = Watch()
sys.addaudithook(WATCH.opened)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    WATCH.test = item.nodeid
    sys.setprofile(WATCH.called)
    threading.setprofile(WATCH.called)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        WATCH.test = None


def pytest_sessionfinish(session):
    with open(REPORT, "w") as file:
        json.dump({test: sorted(set(paths)) for test, paths in WATCH.touched.items()}, file)
