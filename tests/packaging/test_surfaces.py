"""What a newcomer touches first: the two commands, the lock, the demo set."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from excise.config import load
from excise.pipeline.cli.main import CODES, app
from excise.pipeline.cli.options import FAILED, INFRA, INTERRUPTED, OK, PARTIAL, USAGE, settings_of
from excise.pipeline.run.progress import caps

from .test_layout import ROOT

LOCK = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_readme_names_the_two_commands_on_its_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:25]
    for command in ("./demo", "./check"):
        assert any(line.startswith(command) for line in first_screen)
        assert os.access(ROOT / command, os.X_OK)


def test_the_readme_names_every_command_and_every_exit_code() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert commands == set(re.findall(r"^\| `excise (\w+)", readme, flags=re.MULTILINE))
    codes = set(map(int, re.findall(r"^\| (\d+) \|", readme, flags=re.MULTILINE)))
    assert codes == {OK, FAILED, USAGE, PARTIAL, INFRA, INTERRUPTED}
    assert codes - {INFRA} == set(map(int, re.findall(r"\b\d+\b", CODES)))


@pytest.mark.parametrize("document", ["README.md", "docs/model.md"])
def test_every_configuration_that_is_shown_is_valid(tmp_path: Path, document: str) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert examples
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example)
    settings = load([tmp_path / f"{number}.toml" for number in range(len(examples))], environ={})
    assert settings.model.model == "some/model"
    assert [source.limit for source in settings.sources] in ([None, 5], [])


def test_ci_runs_the_command_of_the_readme() -> None:
    assert '"$(dirname "$0")/../check"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    "script", ["check", "demo", ".ci/run", "scripts/setup.sh", "scripts/vllm.sh", "scripts/lock.sh"]
)
def test_the_scripts_are_well_formed(script: str) -> None:
    subprocess.run(["sh", "-n", str(ROOT / script)], check=True)


def test_every_locked_package_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    without = [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]
    assert len(entries) > 40
    assert without == []
    assert "://" not in LOCK


def test_the_lock_covers_the_dependencies_and_no_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", LOCK, flags=re.MULTILINE))
    for text in [*project["dependencies"], *extras["dev"], *extras["view"], *extras["agents"]]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text
    assert not {"torch", "vllm"} & set(locked)
    assert not [name for name in locked if name.startswith("nvidia")]


def test_the_demo_set_is_pinned_and_valid() -> None:
    settings = load([ROOT / "demo.toml"], environ={})
    assert len(settings.sources) >= 10
    assert all(re.fullmatch(r"pypi:[\w-]+==[\d.]+", source.spec) for source in settings.sources)
    assert settings.limit is not None
    assert "At most 4 tasks per source, 2 of pypi:networkx" in caps(settings)
    more = settings_of([ROOT / "demo.toml"], None, limit=50)
    assert {source.limit or more.limit for source in more.sources} == {50}


def test_the_hooks_download_nothing() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.+)", text) == ["local"]
    assert set(re.findall(r"language: (.+)", text)) == {"system"}


def test_the_module_behind_the_command_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, _ = project["scripts"]["excise"].partition(":")
    assert module == "excise.pipeline.cli.main"
    assert sys.version_info >= tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
