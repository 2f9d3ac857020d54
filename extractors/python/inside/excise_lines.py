"""Notes which lines of removed code each test executes. Standard library only."""

import sys
import threading

from excise_swap import real

TOOL = 3
"""Number of the tool for ``sys.monitoring``."""
MAX_CALLS = 2000
"""Number of calls of one function in one test that are followed, below Python 3.12."""


class Lines:
    """``is_removed_code`` tells whether code is removed.

    With ``sys.monitoring``, a test costs one call for each line of removed code that it executes, and other code costs
    nothing; below Python 3.12, all calls are traced.
    """

    def __init__(self, is_removed_code):
        self.is_removed_code = is_removed_code
        self.by_test, self.counts = {}, {}
        self.unfinished = set()
        """Tests that made more calls than were followed."""
        self.test, self.found = "", set()
        self.monitoring = getattr(sys, "monitoring", None)
        self.codes = {}
        """Removed code that has run, by its identity."""

    def start(self):
        """Note lines from now on, unless somebody else traces what runs."""
        if self.monitoring is None:
            if sys.gettrace() is None:
                threading.settrace(self.called)
                sys.settrace(self.called)
        elif self.monitoring.get_tool(TOOL) is None:
            self.monitoring.use_tool_id(TOOL, "excise lines")
            self.monitoring.register_callback(TOOL, self.monitoring.events.PY_START, self.started)
            self.monitoring.register_callback(TOOL, self.monitoring.events.LINE, self.reached)
            self.monitoring.set_events(TOOL, self.monitoring.events.PY_START)
            self.monitoring.restart_events()

    def stop(self):
        """Note nothing more."""
        if self.monitoring is None:
            if sys.gettrace() == self.called:
                sys.settrace(None)
                threading.settrace(None)
        elif self.monitoring.get_tool(TOOL) == "excise lines":
            self.monitoring.set_events(TOOL, 0)
            for code in self.codes.values():
                self.monitoring.set_local_events(TOOL, code, 0)

    def begin(self, test):
        """A test begins."""
        self.test, self.found = test, self.by_test.setdefault(test, set())
        self.counts.clear()
        for code in self.codes.values():
            self.monitoring.set_local_events(TOOL, code, 0)  # which ends the event's being disabled
            self.monitoring.set_local_events(TOOL, code, self.monitoring.events.LINE)

    # ------------------------------------------------------------------------- with sys.monitoring
    def started(self, code, offset):
        if id(code) not in self.codes and self.is_removed_code(code):
            self.codes[id(code)] = code
            self.monitoring.set_local_events(TOOL, code, self.monitoring.events.LINE)
        return self.monitoring.DISABLE

    def reached(self, code, line):
        self.found.add((code.co_filename, line))
        return self.monitoring.DISABLE

    # -------------------------------------------------------------------------- below Python 3.12
    def called(self, frame, event, argument):
        code = frame.f_code
        if not self.is_removed_code(code):
            return None
        count = self.counts[code] = self.counts.get(code, 0) + 1
        if count > MAX_CALLS:
            self.unfinished.add(self.test)
            return None
        return self.executed

    def executed(self, frame, event, argument):
        if event == "line":
            self.found.add((frame.f_code.co_filename, frame.f_lineno))
        return self.executed

    def report(self, root):
        """Test to path, below ``root``, to the sorted lines that it executes, for those followed to their ends."""
        found = {}
        for test, executed in self.by_test.items():
            if test in self.unfinished:
                continue
            for path, line in sorted(executed):
                found.setdefault(test, {}).setdefault(real(path)[len(root) + 1 :], []).append(line)
        return found
