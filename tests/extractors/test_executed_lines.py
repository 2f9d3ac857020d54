"""Which lines of removed code each test executes, with ``sys.monitoring`` and without."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.extractors.python.execution.pytest_runner import INSIDE

CODE = """\
import threading


def chosen(n):
    if n:
        return 1
    return 2


def numbers():
    for n in range(3):
        yield n
    yield 5


class Box:
    def close(self):
        self.closed = True


def stays(n):
    return n + 1


def in_thread(work, *args):
    thread = threading.Thread(target=work, args=args)
    thread.start()
    thread.join()
"""
PROGRAM = """\
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import excise_lines, code_under_test as code
removed = {code.chosen.__code__, code.numbers.__code__, code.Box.close.__code__}
lines = excise_lines.Lines(lambda each: each in removed)
lines.start()
def first():
    for n in range(9000):
        code.stays(code.chosen(1))
def second():
    code.in_thread(code.chosen, 0)
    left = code.numbers()
    next(left)
    return left
def third(left):
    list(left)
    code.Box().close()
def fourth():
    code.stays(1)
lines.begin("first")
first()
lines.begin("second")
left = second()
lines.begin("third")
third(left)
lines.begin("fourth")
fourth()
lines.stop()
code.chosen(0)
print(json.dumps([lines.report(sys.argv[2]), sorted(lines.unfinished)]))
"""


def interpreters() -> Iterator[object]:
    """The interpreters of this machine: at least one of them."""
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        if (found := shutil.which(name)) is not None and subprocess.run([found, "-c", ""], check=False).returncode == 0:
            yield pytest.param(found, id=name)


@pytest.mark.parametrize("python", list(interpreters()))
def test_lines_of_removed_code_are_noted_for_each_test(python: str, tmp_path: Path) -> None:
    (tmp_path / "code_under_test.py").write_text(CODE)
    command = [python, "-c", PROGRAM, str(INSIDE), str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found, unfinished = json.loads(done.stdout)
    expected = {"first": [5, 6], "second": [5, 7, 11, 12], "third": [11, 12, 13, 18]}
    expected = {test: expected[test] for test in expected if test not in unfinished}
    assert found == {test: {"code_under_test.py": lines} for test, lines in expected.items()}
    assert set(unfinished) <= {"first"}, "only calls of many are not followed, and only below Python 3.12"
