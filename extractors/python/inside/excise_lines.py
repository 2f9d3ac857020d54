"""Notes which lines of removed code each test executes. Standard library only."""

import sys
import threading

from excise_swap import real

MAX_CALLS = 2000
"""Number of calls of one function in one test that are followed."""


class Lines:
    """``is_removed_code`` tells whether code is removed."""

    def __init__(self, is_removed_code):
        self.is_removed_code = is_removed_code
        self.by_test, self.counts = {}, {}
        self.unfinished = set()
        """Tests that made more calls than were followed."""
        self.test, self.found = "", set()

    def start(self):
        """Note lines from now on, unless somebody else traces what runs."""
        if sys.gettrace() is None:
            threading.settrace(self.called)
            sys.settrace(self.called)

    def stop(self):
        """Note nothing more."""
        if sys.gettrace() == self.called:
            sys.settrace(None)
            threading.settrace(None)

    def begin(self, test):
        """A test begins."""
        self.test, self.found = test, self.by_test.setdefault(test, set())
        self.counts.clear()

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
