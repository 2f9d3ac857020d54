"""Schedules for GitHub Actions and Kubernetes: what is in the files, and what their commands run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from excise.config import load
from excise.errors import ConfigError
from excise.pipeline.services.schedule_files import (
    MARK,
    cron_job,
    github_workflow,
    portable_refresh,
    write_schedule,
)

CONFIG = 'sources = ["pypi:toolz", "./own"]\nout = "sets/x"\n'
MODEL = '[model]\nmodel = "m"\nbase_url = "http://localhost:1/v1"\napi_key_env = "MODEL_KEY"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration in a repository, with a name that a shell would take apart."""
    path = tmp_path / "repository" / "nightly" / "it's $(touch pwned) mine.toml"
    path.parent.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    path.write_text(CONFIG + MODEL)
    return path


def workflow_of(config: Path, when: str = "03:30", **options: Any) -> tuple[str, dict[Any, Any]]:
    text = github_workflow(portable_refresh(config, load([config], environ={}), when, **options))
    return text, yaml.safe_load(text)


def cron_job_of(config: Path, when: str = "03:30", **options: Any) -> tuple[str, dict[Any, Any]]:
    plan = portable_refresh(config, load([config], environ={}), when, has_checkout=False, **options)
    text = cron_job(plan)
    _, job = yaml.safe_load_all(text)
    return text, job


def container_of(job: dict[Any, Any]) -> dict[Any, Any]:
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return container


def test_a_workflow_has_few_rights_and_pinned_actions(config: Path) -> None:
    _, workflow = workflow_of(config, "Sun 04:05")
    assert workflow[True] == {"schedule": [{"cron": "5 4 * * 0"}], "workflow_dispatch": {}}  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is False
    (job,) = workflow["jobs"].values()
    steps = {step.get("name") or step["uses"].partition("@")[0]: step for step in job["steps"]}
    assert steps["Refresh"]["timeout-minutes"] < job["timeout-minutes"] < 360
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert len(used) == 5
    assert all(re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", name) for name in used)
    assert steps["actions/cache/restore"]["with"]["path"].split() == [".excise/cache", "nightly/sets/x"]
    assert steps["actions/cache/save"]["if"] == steps["actions/upload-artifact"]["if"] == "always()"
    assert job["env"]["MODEL_KEY"] == "${{ secrets.MODEL_KEY }}"


def test_a_cron_job_never_overlaps_and_ends(config: Path) -> None:
    config.write_text(CONFIG.replace(', "./own"', "") + MODEL)
    _, job = cron_job_of(config, image="registry.example/excise:1")
    spec = job["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("30 3 * * *", "Etc/UTC", "Forbid")
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] > 3600
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    container = container_of(job)
    assert container["image"] == "registry.example/excise:1"
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["args"][1] == "/data/set"
    assert container["envFrom"] == [{"secretRef": {"name": job["metadata"]["name"]}}]


def test_no_file_holds_a_secret_or_a_path_of_this_machine(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-secret")
    config.write_text(CONFIG.replace(', "./own"', "").replace("sets/x", "s3://bucket/nightly") + MODEL)
    (text, workflow), (other, job) = workflow_of(config), cron_job_of(config)
    for found in (text, other):
        assert "sk-secret" not in found
        assert "aws-secret" not in found
        assert str(tmp_path) not in found
        assert str(Path.home()) not in found or Path.home() == Path("/")
    assert container_of(job)["args"][1] == "s3://bucket/nightly"
    (steps,) = (found["steps"] for found in workflow["jobs"].values())
    installed = next(step["run"] for step in steps if step.get("name") == "Install excise")
    assert "excise[agents,s3]==" in installed
    assert "nightly/sets" not in text, "a set in an object store is not cached"


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (3, 0), (1, 1)])
def test_the_commands_run_the_refresh_of_the_file(config: Path, tmp_path: Path, code: int, ends: int) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    excise = programs / "excise"
    excise.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\nexit {code}\n')
    excise.chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    _, workflow = workflow_of(config)
    (steps,) = (found["steps"] for found in workflow["jobs"].values())
    line = next(step["run"] for step in steps if step.get("name") == "Refresh")
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", line], cwd=tmp_path, env=env, check=False)
    assert done.returncode == ends
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["refresh", f"nightly/{config.name}", "--report", ".excise/report"]

    config.write_text(CONFIG.replace(', "./own"', ""))
    container = container_of(cron_job_of(config)[1])
    done = subprocess.run([*container["command"], *container["args"]], env=env, check=False, capture_output=True)
    assert done.returncode == ends
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[:4] == ["refresh", f"/config/{config.name}", "--out", "/data/set"]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sources = ["pypi:toolz"]\nout = "/srv/sets/x"\n', "out is /srv/sets/x, which other machines do not have"),
        ('sources = ["dir:/srv/code"]\nout = "x"\n', "a source is /srv/code"),
        ('sources = ["pypi:toolz"]\nout = "x*"\n', "take some of its characters for a pattern"),
    ],
)
def test_what_only_this_machine_has_is_refused(config: Path, text: str, said: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)):
        workflow_of(config)


def test_a_cron_job_has_no_checkout(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"a source is .*/own"):
        cron_job_of(config)


def test_expressions_of_github_are_refused(config: Path) -> None:
    other = config.with_name("${{ secrets.X }}.toml")
    other.write_text(CONFIG)
    with pytest.raises(ConfigError, match="cannot be written into a schedule"):
        workflow_of(other)


def test_only_own_files_are_replaced(config: Path, excise: Any, tmp_path: Path) -> None:
    target = config.parents[1] / ".github" / "workflows" / "nightly.yml"
    for _ in range(2):
        done = excise("schedule", config, "--for", "github", "--to", target)
        assert done.returncode == 0, done.stderr
    assert target.read_text().startswith(MARK)
    (tmp_path / "mine.yml").write_text("name: mine\n")
    with pytest.raises(ConfigError, match="was not written by"):
        write_schedule(tmp_path / "mine.yml", target.read_text())
    assert (tmp_path / "mine.yml").read_text() == "name: mine\n"
