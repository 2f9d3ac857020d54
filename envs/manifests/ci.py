"""Reader of what a project's automation does: CI jobs, Dockerfiles, .python-version and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from excise.envs.manifests.ci_jobs import read_jobs
from excise.envs.manifests.commands import pytest_commands
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.read_text import read_text
from excise.envs.manifests.requirements import parse_install

_INSTALL = re.compile(r"(?:^|[\s;&|])(?:uv\s+)?pip3?\s+install\s+([^;&|\n]+)")
_APT = re.compile(r"(?:^|[\s;&|])apt(?:-get)?\s+(?:-\S+\s+)*install\s+([^;&|\n]+)")
_GROUP = re.compile(r"--(?:only-)?(?:group|with)[= ]([\w.-]+)")
_EXTRA = re.compile(r"--extras?[= ]\"?([\w.-]+)")


def read_ci(root: Path) -> Manifest:
    """What the project's own automation installs, on which interpreters, and how it runs the tests."""
    jobs = read_jobs(root)
    docker = [re.sub(r"\\\n", " ", read_text(p)) for p in sorted([*root.glob("Dockerfile*"), *_dev_containers(root)])]
    pythons = [version for job in jobs for version in job.pythons]
    pythons += [v for text in docker for v in re.findall(r"(?im)^FROM\s+\S*python:(3\.\d+)", text)]
    pythons += _pinned(root)
    script = "\n".join([*(job.script for job in jobs), *docker])
    installs = [parse_install(root, match) for match in _INSTALL.findall(script)]
    packages = [*(p for job in jobs for p in job.system_packages), *_system_packages(script)]
    extras = [*(x for found in installs for x in found.extras), *_EXTRA.findall(script)]
    commands = [(job.file, command) for job in jobs for command in pytest_commands(job.script)]
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(pythons)),
        test_requirements=tuple(dict.fromkeys(r for found in installs for r in found.requirements)),
        test_extras=tuple(dict.fromkeys(extras)),
        test_groups=tuple(dict.fromkeys(_GROUP.findall(script))),
        test_commands=tuple(dict.fromkeys(command for _, command in commands)),
        system_packages=tuple(dict.fromkeys(packages)),
        evidence=tuple(
            dict.fromkeys(
                [
                    *(f"{job.file}: python-version {', '.join(job.pythons)}" for job in jobs if job.pythons),
                    *(f"{file}: pytest {' '.join(command)}" for file, command in commands if command),
                ]
            )
        ),
    )


def _dev_containers(root: Path) -> Iterator[Path]:
    yield from root.glob(".devcontainer/Dockerfile*")
    yield from root.glob("docker/Dockerfile*")


def _pinned(root: Path) -> list[str]:
    """.python-version (pyenv, uv), .tool-versions (asdf), runtime.txt (Heroku)."""
    found = re.findall(r"(?m)^(3\.\d+)", read_text(root / ".python-version"))
    found += re.findall(r"(?m)^python\s+(3\.\d+)", read_text(root / ".tool-versions"))
    return found + re.findall(r"(?m)^python-(3\.\d+)", read_text(root / "runtime.txt"))


def _system_packages(script: str) -> Iterable[str]:
    for arguments in _APT.findall(script):
        for word in arguments.split():
            if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", word):
                yield word
