"""Runs tests on the original code and records calls (``excise_recorder.py``), in a process of its own.

Started as ``python excise_record.py`` in the checkout, with the request on stdin; the calls go to the report file that
it names.
"""

import json
import os
import sys

INSIDE = sys.path[0]
sys.path[0] = os.getcwd()

import pytest  # noqa: E402

sys.path.append(INSIDE)
import excise_recorder  # noqa: E402
import excise_watch  # noqa: E402
from excise_run import profile_of  # noqa: E402

sys.path.remove(INSIDE)


class Plugin:
    """Selects the requested tests, and lets them be watched when they are collected."""

    def __init__(self, ids, watch):
        self.ids, self.watch = set(ids), watch

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        items[:] = [item for item in items if item.nodeid in self.ids]

    def pytest_collection_finish(self, session):
        if self.watch is not None:
            self.watch.start()


def main():
    request = json.load(sys.stdin)
    recorder = excise_recorder.start(request)
    sys.argv = ["pytest"]
    arguments = ["-p", "no:cacheprovider", "-p", "no:randomly", "--continue-on-collection-errors", "-qq", "--tb=no"]
    arguments += ["--rootdir", request["root"], "-o", "addopts=", *profile_of(request["args"])[1]]
    paths = sorted({test.partition("::")[0] for test in request["ids"]})
    watch = excise_watch.Watch(request["watch"]) if request.get("watch") else None
    plugins = [Plugin(request["ids"], watch), *([watch] if watch is not None else [])]
    pytest.main(arguments + [path for path in paths if os.path.exists(path)], plugins=plugins)
    excise_recorder.finish(recorder, request, watch.finish() if watch is not None else None)


if __name__ == "__main__":
    main()
    os._exit(0)
