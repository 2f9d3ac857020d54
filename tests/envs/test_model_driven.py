"""The model-driven installer against a scripted model over a real socket, in real sandboxes, on a real repository."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from excise.agents.transcript import read_events
from excise.config import Settings, load
from excise.pipeline.stages.error_boundary import is_conclusive
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.pipeline.stages.model_stage import model_stage
from excise.types import Rejection, SourceSpec, WorkerOutcome
from excise.verifiers.workbench import Prepared

from ..agents.scripted_server import Script, ScriptedServer, calls, fails, says
from .lookup_script import FINISH, GENERATE, GOALS, INSTALL, PROPOSE, READ, REPO, SECOND_TRY, bash, goal

REFUSED = Rejection(repo="lookup", stage="environment", subject="lookup", reason="import_error",
                    detail="lookup: FileNotFoundError: tables.json")  # fmt: skip
CHEAT = ["echo 'def test_more(): pass' >> tests/test_tables.py"]


@dataclass
class StageResult:
    """The answer of the stage, and the requests to the model."""

    answer: Prepared | Rejection
    server: ScriptedServer
    settings: Settings

    @property
    def refused(self) -> Rejection:
        assert isinstance(self.answer, Rejection), self.answer
        return self.answer

    @property
    def tool_results(self) -> list[str]:
        """Results of tools in the last request."""
        return [m["content"] for m in self.server.requests[-1]["messages"] if m["role"] == "tool"]

    def transcripts(self) -> list[Path]:
        return sorted((self.settings.cache / "transcripts").glob("*"))


Run = Callable[..., StageResult]


def settings_for(tmp_path: Path, url: str, **model: Any) -> Settings:
    lines = [f"model.{name}={value}" for name, value in {"base_url": url, "model": "scripted", **model}.items()]
    verdict = ["verdict.memory_mb=512", "verdict.disk_mb=256", "verdict.suite_timeout_s=120", "verdict.starved_runs=1"]
    return load(overrides=[*lines, *verdict], environ={}, out=tmp_path / "out", cache=tmp_path / "cache")


def run_stage(settings: Settings, repo: Path, refused: Rejection = REFUSED) -> Prepared | Rejection:
    spec = SourceSpec(spec=str(repo))
    sourced = fetch_stage(settings, spec.spec, spec)
    assert not isinstance(sourced, Rejection), sourced
    return model_stage(settings, spec.spec, spec, sourced, refused)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def runs(script: Script, repo: Path = REPO, **model: Any) -> StageResult:
        with ScriptedServer(script) as server:
            settings = settings_for(tmp_path, server.url, **model)
            return StageResult(run_stage(settings, repo), server, settings)

    return runs


@pytest.mark.slow
def test_success_at_the_second_try_and_its_replay(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "s3cret-value")
    ended = run(SECOND_TRY, api_key_env="THE_KEY")
    assert isinstance(ended.answer, Prepared), ended.answer
    environment = ended.answer.environment
    assert environment.stage == "model"
    assert environment.recipe.commands == (INSTALL, GENERATE)
    assert [path for path, _ in environment.recipe.mocks] == ["vendor_tables.py"]
    assert environment.mocked == ("tests/test_remote.py::test_fetch", "tests/test_remote.py::test_fetch_twice")
    assert "src/lookup/tables.json" in environment.built_files
    assert any(line.startswith("pytest==") for line in environment.lock)
    assert not any(line.startswith("colorama") for line in environment.lock)
    assert any("mock: vendor_tables.py: the client of a server" in line for line in environment.recipe.evidence)
    told = ended.tool_results
    assert any("does not hold (collect_error)" in text and "vendor_tables" in text for text in told)
    assert any(text.startswith("error: lookup is the package under test") for text in told)
    assert any(text.startswith("FAILS: ") or "\nFAILS: " in text for text in told)

    assert run_stage(ended.settings, REPO) == ended.answer, "kept: the server is gone"
    (path,) = ended.transcripts()
    assert "s3cret" not in path.read_text()
    assert {event["agent"] for event in read_events(path)} == {"", "goals", "install"}
    again = settings_for(tmp_path / "again", "", replay=path)
    for name in ("envs", "tools"):  # what the recipe made may be kept, what the agent does is done again
        shutil.copytree(ended.settings.cache / name, again.cache / name, symlinks=True, copy_function=os.link)
    answer = run_stage(again, REPO)
    assert isinstance(answer, Prepared), answer
    assert answer.environment.env_id == environment.env_id
    assert answer.environment.lock == environment.lock

    elsewhere = settings_for(tmp_path / "else", "", replay=path, temperature=0.5)
    differs = run_stage(elsewhere, REPO)
    assert isinstance(differs, Rejection)
    assert "temperature differs" in differs.detail
    assert differs.worker_outcome is WorkerOutcome.INFRA_ERROR


def test_edited_tests_are_refused_every_time(run: Run) -> None:
    ended = run([PROPOSE, *[bash(*CHEAT), FINISH] * 5])
    assert ended.refused.reason == "source_modified", ended.refused
    assert "changed files of the repository: tests/test_tables.py" in ended.refused.detail
    assert "5 attempts" in ended.refused.detail
    assert is_conclusive(ended.refused)
    again = run_stage(ended.settings, REPO)  # the server is gone: the answer is kept
    assert again == ended.answer


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("printf 'collect_ignore = []' > tests/conftest.py", "steer the tests: tests/conftest.py"),
        ("rm tests/test_remote.py", "changed files of the repository: tests/test_remote.py"),
        ("rm -r tests && mkdir tests && echo > tests/test_new.py", "changed files of the repository: tests/"),
        (
            "cp tools/make_tables.py /tmp/x; rm tools/*; install -m 755 /tmp/x tools/make_tables.py",
            "changed files of the repository: tools/make_tables.py",
        ),
        ("echo 'x = 1' > $(python -c 'import site; print(site.getsitepackages()[0])')/vendor_tables.py", "by hand"),
        ("echo 'x = 1' > src/vendor_tables.py", "put in place by hand: vendor_tables.py"),
    ],
)
def test_other_violations_are_refused(run: Run, line: str, said: str) -> None:
    ended = run([PROPOSE, bash(line), FINISH, says("I give up")])
    assert said in ended.tool_results[-1], ended.tool_results


def test_a_published_wheel_is_not_the_checkout(run: Run, tmp_path: Path) -> None:
    repo = tmp_path / "lookup"
    shutil.copytree(REPO, repo)
    (repo / "wheels").mkdir()
    with zipfile.ZipFile(repo / "wheels" / "lookup.data", "w") as wheel:  # a wheel would be left out
        for path in sorted((REPO / "src/lookup").glob("*.py")):
            wheel.write(path, f"lookup/{path.name}")
        wheel.writestr("lookup/tables.json", json.dumps({"squares": [], "cubes": []}))
        info = "lookup-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lookup\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = [*wheel.namelist(), f"{info}/RECORD"]
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))
    line = "cp wheels/lookup.data /tmp/lookup-1.0-py3-none-any.whl && pip install --no-index --find-links /tmp lookup"
    ended = run([PROPOSE, *[bash(line), FINISH] * 5], repo)
    assert ended.refused.reason == "import_error", ended.refused
    assert "lookup is installed as a copy of its own" in ended.refused.detail


def test_an_endless_loop_is_ended(run: Run) -> None:
    ended = run([PROPOSE, *[bash("true")] * 100])
    assert ended.refused.reason == "budget", ended.refused
    assert "step_limit after 40 steps, 0 attempts" in ended.refused.detail
    assert len(ended.server.requests) == 41


def test_malformed_calls_are_answered_and_finally_end_the_conversation(run: Run) -> None:
    broken = calls(("bash", '{"cmd": '), ("bash", {"command": "ls"}), ("shell", {}))
    ended = run([PROPOSE, broken, bash("true"), *[broken] * 10])
    assert ended.refused.reason == "budget", ended.refused
    assert "malformed_calls after 7 steps" in ended.refused.detail
    assert any("cmd: Field required" in text for text in ended.tool_results)


def test_vacuous_goals_are_refused(run: Run) -> None:
    installs = [*GOALS[:9], goal("pip install -e .", "build", "README.md:1")]
    nowhere = [*GOALS[:9], goal("pytest --version", "cli", "README.md:999")]
    vacuous = [goal(f"true {number}", "unit", "README.md:1") for number in range(10)]
    proposals = [calls(("finish", {"goals": goals})) for goals in (installs, nowhere, GOALS[:7], vacuous)]
    ended = run([READ, *proposals, *[calls(("list_files", {}))] * 20])
    assert ended.refused.reason == "vacuous_goals", ended.refused
    assert len(ended.server.requests) == 15
    told = ended.tool_results
    assert "tests" in told[0]
    assert "make_tables.py" in told[1]
    assert "test_remote.py:1:" in told[2]
    assert "command 10 installs something" in told[3]
    assert "no such line: README.md:999" in told[4]
    assert "exactly 10 commands, not 7" in told[5]
    assert "These work without any installation: true 0; true 1" in told[6]


def test_remaining_goals_may_be_sufficient(run: Run) -> None:
    vacuous = [*GOALS[:8], goal("true", "cli", "README.md:1"), goal("ls tests", "cli", "README.md:1")]
    ended = run([calls(("finish", {"goals": vacuous})), *[says("that is all")] * 10])
    assert ended.refused.reason == "budget", ended.refused
    shown = ended.server.requests[-1]["messages"][1]["content"].partition("Checks that must work:")[2]
    assert shown.count("\n- ") == 3


@pytest.mark.parametrize(
    ("script", "model", "reason", "kept"),
    [
        ([fails(500, retry_after="0")] * 10, {}, "infra", False),
        ([PROPOSE, *[fails(503, retry_after="0")] * 10], {}, "infra", False),
        ([fails(429, retry_after="900")], {"max_wall_s": 60}, "infra", False),
        ([PROPOSE, *[bash("true")] * 40], {"max_tokens": 300}, "budget", True),
    ],
)
def test_infrastructure_failures_are_not_cached(
    run: Run, script: Script, model: dict[str, Any], reason: str, kept: bool
) -> None:
    ended = run(script, **model)
    assert ended.refused.reason == reason
    assert (ended.refused.worker_outcome is WorkerOutcome.OK) is kept
    files = list((ended.settings.cache / "stages" / "model").rglob("*.json"))
    assert bool(files) is kept


def test_only_installing_sessions_have_a_network(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "s3cret-value")
    online = "test $(grep -c : /proc/net/dev) -gt 1"
    goals = [*GOALS[:9], goal(online, "cli", "README.md:1")]
    look = f"if {online}; then echo online; fi; env"
    ended = run([calls(("finish", {"goals": goals})), bash(look), *[says("no")] * 6], api_key_env="THE_KEY")
    assert "s3cret" not in ended.tool_results[-1]
    assert "online" in ended.tool_results[-1]
    assert not any(goal_["cmd"] == online for goal_ in GOALS)
    (path,) = ended.transcripts()
    told = [event["result"] for event in read_events(path) if event["event"] == "tool"]
    assert told[0] == "accepted", "without a network it fails, so it is not vacuous"
