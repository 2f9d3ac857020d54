"""Each strategy recovers the code that was planted for it, and none recovers anything from a clean workspace."""

from __future__ import annotations

import base64
import marshal
import os
import pickle
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from excise.types import GateOutcome, Task
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.gates.not_recoverable import NotRecoverable
from excise.verifiers.recovery.inside.all_strategies import STRATEGIES
from excise.verifiers.recovery.inside.code_search import CodeSearch
from excise.verifiers.recovery.recover import Recovery, recover, scored
from excise.verifiers.recovery.recovery_attempt import RecoveredItem, StrategyOptions, run_strategies
from excise.verifiers.recovery.scoring import DeletedCode, distinctive_lines, score
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

PARSE = ("src/shapes/text.py::parse",)
FILE = "src/shapes/text.py"

START = """
import base64, gzip, html, io, json, marshal, os, pickle, py_compile, sqlite3, subprocess, sys, zipfile, zlib
source = base64.b64decode({source!r}).decode()
home, file = os.path.expanduser("~"), {file!r}
def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data.encode() if isinstance(data, str) else data)
def git(*arguments, **options):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], check=True, **options)
"""
CONTROLS: dict[str, str] = {
    "git_history": """
kept = open(file).read()
write(os.path.abspath(file), source); git("commit", "-qam", "with")
write(os.path.abspath(file), kept); git("commit", "-qam", "without")
""",
    "git_objects": 'git("hash-object", "-w", "--stdin", input=source.encode())',
    "git_carving": """
write(".git/objects/pack/tmp_pack_x", b"PACK\\0\\0garbage" + zlib.compress(source.encode()) + b"more") if False else \
write(os.path.abspath(".git/objects/pack/tmp_pack_x"), b"PACK\\0garbage" + zlib.compress(source.encode()) + b"more")
""",
    "git_leftovers": """
write(os.path.abspath(".git/rebase-apply/0001"), "".join("+" + line for line in source.splitlines(True)))
""",
    "bytecode": """
write("/tmp/elsewhere/text.py", source)
py_compile.compile("/tmp/elsewhere/text.py", "/tmp/moved/testbed/src/shapes/text.cpython.opt-2.pyc", optimize=2)
os.unlink("/tmp/elsewhere/text.py")
""",
    "code_objects": """
code = next(c for c in compile(source, file, "exec").co_consts if getattr(c, "co_name", "") == "parse")
write("/tmp/crash.bin", b"\\0\\1\\2" * 9 + marshal.dumps(code))
""",
    "tool_caches": """
write(os.path.abspath(".mypy_cache/3.12/shapes/text.data.json"), json.dumps({"x": 1}) + "\\n" + source)
""",
    "databases": """
base = sqlite3.connect("/tmp/index.db"); base.execute("CREATE TABLE code (body TEXT)")
base.execute("INSERT INTO code VALUES (?)", (source,)); base.commit()
base.execute("PRAGMA secure_delete = OFF"); base.execute("DELETE FROM code"); base.commit(); base.close()
""",
    "pickles": 'write(home + "/.cache/jedi/x.pkl", pickle.dumps({"lines": source}))',
    "editor_leftovers": 'write(os.path.abspath(file + ".orig"), source)',
    "test_leftovers": """
write(os.path.abspath("nohup.out"), "".join(">   " + line for line in source.splitlines(True)))
""",
    "installed_copies": 'write("/tmp/venv/lib/python3/site-packages/_vendor/words.py", source)',
    "live_import": """
write("/tmp/copy/shapes/__init__.py", "")
write("/tmp/copy/shapes/text.py", source.replace("from .base", "import math #"))
""",
    "metadata": 'write("/tmp/site/shapes-1.0.dist-info/METADATA", "Name: shapes\\n\\n" + source)',
    "archives": """
inner = io.BytesIO()
with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as wheel:
    wheel.writestr("shapes/text.py", source)
write(home + "/.cache/uv/archive-v0/x.bin", gzip.compress(inner.getvalue()))
""",
    "package_index": """
write("/tmp/www/shapes/index.html", '<a href="shapes-1.0-py3-none-any.whl#sha256=0">x</a>')
with zipfile.ZipFile("/tmp/www/shapes/shapes-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("shapes/text.py", source)
write(home + "/.config/pip/pip.conf", "[global]\\nindex-url = http://127.0.0.1:8765/\\n")
subprocess.Popen([sys.executable, "-m", "http.server", "8765", "--bind", "127.0.0.1", "--directory", "/tmp/www"],
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
import socket, time
for _ in range(100):
    try:
        socket.create_connection(("127.0.0.1", 8765)).close(); break
    except OSError:
        time.sleep(0.05)
""",
    "histories": 'write(home + "/.python_history", source)',
    "documents": """
shown = "".join("<span class='n'>" + html.escape(line.rstrip()) + "</span>\\n" for line in source.splitlines())
write("/tmp/docs/_modules/shapes/text.html", "<html><pre>" + shown + "</pre></html>")
""",
    "encoded": """
body = base64.b64encode(json.dumps(source).replace("\\\\n", "\\n").replace('\\\\"', '"').encode()).decode()
write(os.path.abspath("out.js"), "//# sourceMappingURL=data:application/json;base64," + body)
""",
    "strings": 'write(os.path.abspath("core.bin"), b"\\x7fELF\\0\\0" + source.encode() + b"\\0\\0")',
    "stray_files": 'write(os.path.abspath("notes.txt"), source)',
    "processes": """
write("/tmp/gone", source)
subprocess.Popen([sys.executable, "-c", "import time; f = open('/tmp/gone'); print(1, flush=True); time.sleep(60)"],
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.read(1)
os.unlink("/tmp/gone")
""",
    "mounts": 'git("worktree", "add", "-q", "/tmp/other"); write("/tmp/other/" + file, source)',
}
"""By strategy, the Python code that plants a copy in the sandbox; ``source`` is the untouched module."""
EXPORTS = {"live_import": "export PYTHONPATH=/tmp/copy"}


@pytest.fixture(scope="session")
def task(shapes) -> Task:
    """The task that removes ``parse``."""
    return next(t for t in shapes.taskset.tasks() if t.removed == PARSE and t.deleter == "remove")


@pytest.fixture(scope="session")
def attack(bench: Workbench, task: Task) -> Callable[..., Recovery]:
    """A function that runs one strategy in a workspace with a planted copy."""
    source = base64.b64encode((bench.root / FILE).read_bytes()).decode()

    def run(name: str, plant: str) -> Recovery:
        candidate = candidate_of(bench, task)
        script = START.format(source=source, file=FILE) + plant
        encoded = base64.b64encode(script.encode()).decode()
        first = (
            f"echo {encoded} | base64 -d > /dev/shm/p && /opt/env/bin/python /dev/shm/p >&2 || exit 7; rm /dev/shm/p"
        )
        first += f"; {EXPORTS.get(name, ':')}"
        with workspace(bench, candidate.edits("shipped")) as place, place.open() as session:
            options = StrategyOptions(distribution="shapes", only=[name], shell_prefix=first)
            tried = run_strategies(session, PARSE, options)
        assert tried.finished, tried
        return scored(candidate, tried)

    return run


def test_every_strategy_has_a_control() -> None:
    assert [strategy.name for strategy in STRATEGIES] == list(CONTROLS)


@pytest.mark.parametrize("name", CONTROLS)
def test_each_strategy_recovers_what_was_planted_for_it(attack: Callable[..., Recovery], name: str) -> None:
    found = attack(name, CONTROLS[name])
    assert name in found.by_strategy, found
    assert found.succeeded, found.by_strategy
    assert found.total.level == ("L3" if name in {"bytecode", "code_objects"} else "L4"), found.total
    assert found.attempt.problems == {}


def test_a_clean_workspace_gives_nothing(bench: Workbench, task: Task) -> None:
    found = recover(candidate_of(bench, task))
    assert found.by_strategy == {}
    assert not found.succeeded
    assert len(found.attempt.seconds) == len(STRATEGIES)
    assert found.attempt.num_files > 100


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("src/text.py", True), ("text.py", True), ("/old/text", True), ("text", True),
        ("context.py", False), ("text_box.py", False), ("textual.py", False), ("some text. And more", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stem", ["text", "straße"])
def test_byte_code_of_a_file_is_known_by_the_name_stored_in_it(stem: str, name: str, found: bool) -> None:
    symbols = [f"src/{stem}.py::parse"]
    request = {"symbols": symbols, "repo": "/", "distribution": "", "packages": [], "thorough": False, "seconds": 60}
    search = CodeSearch(request, lambda _: None)
    assert search.contains_file_name(marshal.dumps(compile("x = 1", name.replace("text", stem), "exec"))) is found


@pytest.mark.parametrize("name", ["parse", "größe", "x"])
def test_marshalled_and_pickled_names_are_found(name: str) -> None:
    request = {"symbols": [f"a.py::{name}"], "repo": "/", "distribution": "", "packages": [], "thorough": False}
    search = CodeSearch(request | {"seconds": 60}, lambda _: None)
    code = compile(f"def {name}(): return pars, gröss, y", "b.py", "exec")
    for other in (marshal.dumps(code), *(pickle.dumps([name, "y"], protocol) for protocol in range(2, 6))):
        assert search.contains_name(other)
    assert not search.contains_name(marshal.dumps(compile("def parser(): return größer", "b.py", "exec")))


def test_a_patch_is_made_of_what_was_recovered(attack: Callable[..., Recovery], task: Task) -> None:
    for name in ("stray_files", "bytecode"):
        found = attack(name, CONTROLS[name])
        assert set(found.passing) == set(task.fail_to_pass), name


def test_the_gate_refuses_an_environment_with_a_copy(prepared, bench: Workbench, task: Task, tmp_path: Path) -> None:
    env = Path(prepared.layers.env).parent.parent / f"recovery-{os.getpid()}-{tmp_path.name}" / "env"
    env.parent.mkdir()
    subprocess.run(["cp", "-a", "--reflink=auto", prepared.layers.env, str(env)], check=True)
    packages = next(env.glob("lib/python3*/site-packages"))
    (packages / "vendored.py").write_bytes((bench.root / FILE).read_bytes())
    (packages / "vendored.py").chmod(0o644)
    other = Workbench(replace(prepared, layers=replace(prepared.layers, env=str(env))), bench.settings, bench.sandbox)
    verdict = NotRecoverable().check(candidate_of(other, task)).verdicts[0]
    assert (verdict.outcome, verdict.reason) == (GateOutcome.FAILED, "recovered")
    assert "vendored.py" in verdict.detail
    assert verdict.evidence["recovery_rate"] == "1.000"


HOSTILE = {
    "code_objects": """
head = b"\\0\\1 parse "
write("/tmp/bomb.bin", head + (b"\\xe3" + bytes(20) + b"s\\2\\0\\0\\0\\0\\0" + b"(\\xff\\xff\\xff\\x7f") * 50)
""",
    "bytecode": """
import importlib.util
write("/tmp/__pycache__/text.pyc", importlib.util.MAGIC_NUMBER + bytes(12) + b"\\xff parse" * 9)
""",
    "archives": """
inner = io.BytesIO()
with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x", bytes(200 << 20))
write("/tmp/bomb.whl", inner.getvalue()); write("/tmp/cut.zip", inner.getvalue()[:2000])
write("/tmp/deep.gz", gzip.compress(gzip.compress(gzip.compress(bytes(50 << 20)))))
""",
    "databases": 'write("/tmp/bad.db", b"SQLite format 3\\0" + b"parse" * 500)',
    "pickles": 'write("/tmp/bad.pkl", b"\\x80\\x04parse" + bytes(range(256)) * 20)',
    "git_carving": 'write(os.path.abspath(".git/objects/x"), zlib.compress(bytes(100 << 20)) + b"\\x78\\x9c" * 5000)',
    "git_objects": 'write("/tmp/fake/HEAD", "ref: x"); os.makedirs("/tmp/fake/objects/info"); '
    'write("/tmp/fake/objects/info/alternates", "/nowhere/objects\\n")',
}
"""By strategy, the Python code that plants a malformed file."""


@pytest.mark.parametrize("name", HOSTILE)
def test_malformed_files_break_no_strategy(attack: Callable[..., Recovery], name: str) -> None:
    found = attack(name, HOSTILE[name])
    assert found.attempt.finished
    assert not found.succeeded
    assert found.attempt.problems == {}


def test_lines_that_the_tree_contains_anyway_do_not_count() -> None:
    code = "value = compute_it(1)\nother = compute_it(2)\nthird = compute_it(3)\nfourth = compute_it(4)\n"
    deleted = DeletedCode(lines=frozenset(distinctive_lines(code)), shapes={})
    piece = RecoveredItem(strategy="x", kind="text", where="/tmp/x", text=code)
    assert score(deleted, [piece], set).level == "L4"
    assert score(deleted, [piece], lambda: distinctive_lines(code)).level == ""
    assert score(deleted, [piece], lambda: distinctive_lines(code.partition("third")[0])).level == "L1"
