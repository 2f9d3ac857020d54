"""The Dockerfile of an environment and the files of its build context."""

from __future__ import annotations

import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from excise.envs.dockerfile import dockerfile_text, run_command, write_dockerfile
from excise.envs.task_image import task_image_text
from excise.types import Environment, Recipe, Repo

REPO = Repo(repo="me/Kit_X", base_commit="0" * 40, tree="1" * 40, source="git+https://x.invalid/kit@0", version="1.5")


def environment(**recipe: object) -> Environment:
    made = Recipe(python="3.11.7", packages=("kit",), roots=("src",), cutoff="2025-01-01T00:00:00Z", **recipe)  # type: ignore[arg-type]
    lock = ("iniconfig==2.0.0", "pytest==8.0.0")
    hashes = dict.fromkeys(lock, f"sha256:{'a' * 64}")
    return Environment(env_id="e" * 16, repo=REPO.repo, tree=REPO.tree, recipe=made, lock=lock, hashes=hashes)


def instructions(text: str) -> list[str]:
    """The instructions, with continuation lines joined and comments gone."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()


def test_all_files_of_the_build_context_are_written(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    (sources / "src/kit").mkdir(parents=True)
    (sources / "src/kit/__init__.py").write_text("x = 1\n")
    (sources / "run.sh").write_text("#!/bin/sh\n")
    (sources / "run.sh").chmod(0o777)
    written = write_dockerfile(tmp_path / "image" / "Dockerfile", REPO, environment(), sources)
    assert written.tag == "excise-me-kit-x:eeeeeeeeeeee"
    text = written.dockerfile.read_text()
    copied = [line.split()[1] for line in instructions(text) if line.startswith(("COPY", "ADD"))]
    assert copied == [written.lock.name, written.project.name]
    assert {p.name for p in written.dockerfile.parent.iterdir()} == {"Dockerfile", *copied}
    assert written.lock.read_text().count(f"--hash=sha256:{'a' * 64}") == 2
    with tarfile.open(written.project) as archive:
        modes = {m.name: oct(m.mode) for m in archive.getmembers() if m.isfile()}
    assert modes == {"src/kit/__init__.py": "0o644", "run.sh": "0o755"}
    first = written.project.read_bytes()
    write_dockerfile(written.dockerfile, REPO, environment(), sources)
    assert written.project.read_bytes() == first, "equal input gives equal files"


def test_the_dockerfile_follows_the_recipe() -> None:
    recipe = {"test_args": ("-k", "not slow"), "test_paths": ("tests",), "env": (("KIT", 'a "b"'),)}
    text = dockerfile_text(REPO, environment(system_packages=("libpq-dev", "$(evil)"), **recipe), lock="l", project="p")
    lines = instructions(text)
    assert lines[0] == "FROM python:3.11-slim"
    assert [line.split()[0] for line in lines if line and not line.startswith(" ")] == [
        "FROM", "ARG", "RUN", "RUN", "ENV", "COPY", "RUN", "ADD", "WORKDIR", "RUN", "RUN", "USER", "CMD",
    ]  # fmt: skip
    assert "libpq-dev" in text
    assert "evil" not in text
    assert r'KIT="a \"b\""' in text
    assert "--require-hashes" in text
    assert "--exclude-newer 2025-01-01T00:00:00Z" in text
    assert json.loads(lines[-1].removeprefix("CMD ")) == run_command(environment(**recipe).recipe)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("editable", "--no-deps --no-cache --exclude-newer 2025-01-01T00:00:00Z -e ."),
        ("legacy", "--no-deps --no-build-isolation --no-cache"),
        ("wheel", "uv build --wheel"),
        ("path", "printf '%s\\n' /testbed/src > "),
    ],
)
def test_the_project_is_placed_as_in_the_sandbox(mode: str, words: str) -> None:
    assert words in dockerfile_text(REPO, environment(editable=mode), lock="l", project="p")


def test_without_hashes_none_are_required() -> None:
    assert "--require-hashes" not in dockerfile_text(REPO, replace(environment(), hashes={}), lock="l", project="p")


@pytest.mark.parametrize("mode", ["editable", "legacy", "wheel", "path"])
def test_the_image_of_tasks_ends_without_sources(mode: str) -> None:
    hostile = replace(REPO, version="1.5\nRUN evil")
    text = task_image_text(hostile, environment(editable=mode, system_packages=("libpq-dev",)))
    lines = instructions(text)
    assert [line.split()[0] for line in lines if line.startswith("RUN evil")] == []
    first, second, last = (number for number, line in enumerate(lines) if line.startswith("FROM "))
    assert 'ARG SYSTEM_PACKAGES="build-essential git pkg-config libpq-dev"' in lines[first:second]
    assert any(line.startswith("ADD project.tar.xz") for line in lines[second:last])
    copied = [line.split()[:2] for line in lines[last:] if line.startswith(("COPY", "ADD"))]
    assert copied == [["COPY", "--from=build"], ["COPY", "--from=build"]]
    assert lines[-2] == "USER 1000:1000"
