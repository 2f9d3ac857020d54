"""Answers of a scripted model for ``tests/repos/lookup``, whose tests need a generated file and an absent module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..agents.scripted_server import Answer, calls

REPO = Path(__file__).resolve().parents[1] / "repos" / "lookup"
PYTEST = "python -m pytest -q -p no:cacheprovider"


def goal(cmd: str, kind: str, source: str, regex: str = "") -> dict[str, Any]:
    return {"cmd": cmd, "kind": kind, "expect_rc": 0, "expect_regex": regex, "why": "it needs it", "source": source}


GOALS = [
    goal(f"{PYTEST} tests/test_tables.py", "unit", "tests/test_tables.py:1", r"\d+ passed"),
    goal(f"{PYTEST} tests/test_tables.py -k squares", "unit", "tests/test_tables.py:11", "4 passed"),
    goal(f"{PYTEST} tests/test_tables.py -k cubes", "unit", "tests/test_tables.py:16", "passed"),
    goal(f"{PYTEST} tests/test_tables.py -k total", "unit", "tests/test_tables.py:41", "passed"),
    goal("python -c 'import lookup; print(lookup.find(\"squares\", 3))'", "import", "src/lookup/__init__.py:3", "^9$"),
    goal("python -c 'from lookup import tables; print(len(tables.TABLES))'", "import", "src/lookup/tables.py:6", "2"),
    goal(f"{PYTEST} --collect-only tests/test_tables.py", "collect", "tests/test_tables.py:6", "test_names"),
    goal("python -c 'import lookup.remote'", "import", "src/lookup/remote.py:3"),
    goal("test -s src/lookup/tables.json", "build", "tools/make_tables.py:8"),
    goal("pytest --version", "cli", "tests/test_tables.py:1", "pytest"),
]
READ = calls(
    ("list_files", {}), ("read_file", {"path": "README.md"}), ("search", {"pattern": "import", "path": "tests"})
)
PROPOSE = calls(("finish", {"goals": GOALS}))
INSTALL, GENERATE = "pip install -e . pytest", "python tools/make_tables.py"
MOCK = {
    "path": "vendor_tables.py",
    "reason": "the client of a server that is not here",
    "content": "class Server:\n    def read(self, name):\n        return (2, 3, 5)\n\n\n"
    "def connect(name):\n    return Server()\n",
}
FINISH = calls(("finish", {"summary": "done"}))


def bash(*lines: str) -> Answer:
    return calls(*(("bash", {"cmd": line}) for line in lines))


SECOND_TRY = [
    READ,
    PROPOSE,
    bash("cat README.md", INSTALL, GENERATE),
    FINISH,  # the first attempt: one test file cannot be collected
    bash(INSTALL),
    calls(("snapshot", {})),
    bash("touch src/lookup/tables.json", "pip install colorama"),
    calls(("rollback", {}), ("run_goals", {})),
    bash(GENERATE, "false"),
    calls(("write_mock", MOCK | {"path": "lookup/remote.py"}), ("write_mock", MOCK)),
    calls(("run_goals", {})),
    FINISH,
]
"""Success at the second try, with a rollback on the way."""
