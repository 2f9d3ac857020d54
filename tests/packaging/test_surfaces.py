"""The files that newcomers use first: the two commands, the lock files, the demo set."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from excise.config import load
from excise.pipeline.cli.generate_command import GENERATE_CODES
from excise.pipeline.cli.main import app
from excise.pipeline.cli.options import settings_of
from excise.pipeline.cli.reference import PAGES
from excise.pipeline.exit_codes import FAILED, INFRA, INTERRUPTED, OK, PARTIAL, USAGE
from excise.pipeline.run.progress import limits_text

from .test_layout import ROOT

FOLDERS = "src|pipeline|extractors|deleters|verifiers|envs|agents|datasets|trainer|tests|docs"
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
DOCUMENTS += sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "lab-notes.md")
LOCK = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_readme_names_the_two_commands_on_its_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:25]
    for command in ("./demo", "./check"):
        assert any(line.startswith(command) for line in first_screen)
        assert os.access(ROOT / command, os.X_OK)


def test_the_manual_names_every_command_and_every_exit_code() -> None:
    manual = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert commands == set(re.findall(r"^\| \[`excise (\w+)`", manual, flags=re.MULTILINE))
    codes = set(map(int, re.findall(r"^\| (\d+) \|", manual, flags=re.MULTILINE)))
    assert codes == {OK, FAILED, USAGE, PARTIAL, INFRA, INTERRUPTED}
    assert codes - {INFRA} == set(map(int, re.findall(r"\b\d+\b", GENERATE_CODES)))


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_pages_are_up_to_date(page: str) -> None:
    written = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert written == PAGES[page](), f"run python -m excise.pipeline.cli.reference {page} > docs/{page}.md"


def test_every_setting_has_a_docstring() -> None:
    pages = {name: PAGES[name]() for name in PAGES}
    assert [line for page in pages.values() for line in page.splitlines() if line.endswith("|  |")] == []


def test_the_documents_name_files_that_exist() -> None:
    named = {
        (document.name, path)
        for document in DOCUMENTS
        for path in re.findall(rf"`((?:{FOLDERS})/[\w/.-]*)`", document.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert {(document, path) for document, path in named if not (ROOT / path).exists()} == set()


def test_links_between_documents_lead_somewhere() -> None:
    links = {
        (document.name, link)
        for document in DOCUMENTS
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / link).exists()
    }
    assert links == set()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 1000


@pytest.mark.parametrize("document", ["docs/configuration.md", "docs/model.md"])
def test_every_configuration_that_is_shown_is_valid(tmp_path: Path, document: str) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert examples
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example)
    settings = load([tmp_path / f"{number}.toml" for number in range(len(examples))], environ={})
    if document == "docs/model.md":
        assert settings.model.model == "some/model"
    else:
        assert [source.limit for source in settings.sources] == [None, 5]


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
    for text in [*project["dependencies"], *extras["dev"], *extras["agents"]]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text
    assert not {"torch", "vllm"} & set(locked)
    assert not [name for name in locked if name.startswith("nvidia")]


def test_the_demo_set_is_pinned_and_valid() -> None:
    settings = load([ROOT / "demo.toml"], environ={})
    assert len(settings.sources) >= 10
    assert all(re.fullmatch(r"pypi:[\w-]+==[\d.]+", source.spec) for source in settings.sources)
    assert settings.limit is not None
    assert limits_text(settings) == "At most 4 tasks per source (--limit)."
    first, *others = settings.sources
    limited = settings.model_copy(update={"sources": (replace(first, limit=2), *others)})
    assert limits_text(limited) == f"At most 4 tasks per source, 2 of {first.spec} (--limit)."
    more = settings_of([ROOT / "demo.toml"], None, limit=50)
    assert {source.limit or more.limit for source in more.sources} == {50}


def test_the_demo_set_of_other_languages_has_three_projects_of_each() -> None:
    specs = [source.spec for source in load([ROOT / "demo-languages.toml"], environ={}).sources]
    assert sum(spec.startswith("npm:") and "@" in spec for spec in specs) >= 3
    assert sum(spec.startswith("debsrc:golang-") for spec in specs) >= 3
    assert sum(spec.startswith("debsrc:") and "golang" not in spec for spec in specs) >= 3, "in Java"
    crates = re.search(r'^CRATES="(.+)"$', (ROOT / "scripts/setup.sh").read_text(encoding="utf-8"), re.MULTILINE)
    assert crates is not None
    assert len(crates[1].split()) >= 3


def test_the_hooks_download_nothing() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.+)", text) == ["local"]
    assert set(re.findall(r"language: (.+)", text)) == {"system"}


def test_the_module_behind_the_command_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, _ = project["scripts"]["excise"].partition(":")
    assert module == "excise.pipeline.cli.main"
    assert sys.version_info >= tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
