"""Reader of a project's automation: jobs of CI systems, Dockerfiles, .python-version and similar files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from excise.envs.manifests.manifest import Manifest, read_text
from excise.envs.manifests.pytest_calls import pytest_commands
from excise.envs.manifests.requirements import parse_install

_INSTALL = re.compile(r"(?:^|[\s;&|])(?:uv\s+)?pip3?\s+install\s+([^;&|\n]+)")
_APT = re.compile(r"(?:^|[\s;&|])apt(?:-get)?\s+(?:-\S+\s+)*install\s+([^;&|\n]+)")
_GROUP = re.compile(r"--(?:only-)?(?:group|with)[= ]([\w.-]+)")
_EXTRA = re.compile(r"--extras?[= ]\"?([\w.-]+)")


def read_ci(root: Path) -> Manifest:
    """Read which packages the project's automation installs, on which interpreters, and how it runs the tests."""
    jobs = _read_jobs(root)
    docker = [re.sub(r"\\\n", " ", read_text(p)) for p in sorted([*root.glob("Dockerfile*"), *_dev_containers(root)])]
    pythons = [version for job in jobs for version in job.pythons]
    pythons += [v for text in docker for v in re.findall(r"(?im)^FROM\s+\S*python:(3\.\d+)", text)]
    pythons += _pinned_pythons(root)
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


def _pinned_pythons(root: Path) -> list[str]:
    """Versions in .python-version (pyenv, uv), .tool-versions (asdf), runtime.txt (Heroku)."""
    found = re.findall(r"(?m)^(3\.\d+)", read_text(root / ".python-version"))
    found += re.findall(r"(?m)^python\s+(3\.\d+)", read_text(root / ".tool-versions"))
    return found + re.findall(r"(?m)^python-(3\.\d+)", read_text(root / "runtime.txt"))


def _system_packages(script: str) -> Iterable[str]:
    for arguments in _APT.findall(script):
        for word in arguments.split():
            if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", word):
                yield word


# ------------------------------------------------------------------------------------------ jobs of CI
_NON_TEST_JOBS = re.compile(
    r"lint|doc|mypy|typ(e|ing)|pre-?commit|style|format|release|publish|wheel|deploy|bench|pages|codeql"
)
_RUNS_TESTS = re.compile(r"pytest|py\.test|\btox\b|\bnox\b|unittest|nosetests|hatch (run |test)|setup\.py test|\btest")
_SHELL_KEYS = frozenset(
    ("run", "script", "before_script", "before_install", "install", "command", "bash", "after_install", "test")
)
"""Keys whose values are shell lines."""
_GITLAB_KEYWORDS = frozenset(("default", "include", "stages", "variables", "workflow", "image", "services", "cache"))
_VERSION = re.compile(r"(?<![\d.])3\.\d{1,2}(?![\d])")


@dataclass(frozen=True, slots=True, kw_only=True)
class CiJob:
    """One job that may run tests."""

    file: str
    """Path of its file in the repository."""
    pythons: tuple[str, ...]
    """Minor versions of the interpreters."""
    script: str
    """Its shell lines, with continuation lines joined."""
    system_packages: tuple[str, ...] = ()
    """System packages named outside the shell lines."""


def _read_jobs(root: Path) -> list[CiJob]:
    """All jobs that run tests: of GitHub, GitLab, Travis, CircleCI and Azure."""
    return [job for path, jobs in _files(root) for job in jobs(path.relative_to(root).as_posix(), _load(path))]


def _files(root: Path) -> Iterator[tuple[Path, Any]]:
    for pattern in (".github/workflows/*.yml", ".github/workflows/*.yaml"):
        yield from ((path, _by_name) for path in sorted(root.glob(pattern)))
    yield from ((path, _whole) for path in sorted(root.glob(".github/actions/*/action.y*ml")))
    for name, jobs in (
        (".gitlab-ci.yml", _gitlab),
        (".travis.yml", _whole),
        (".circleci/config.yml", _by_name),
        ("azure-pipelines.yml", _whole),
        (".azure-pipelines/azure-pipelines.yml", _whole),
    ):
        if (root / name).is_file():
            yield root / name, jobs


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = yaml.load(read_text(path), Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


class _Loader(yaml.SafeLoader):
    """Loads plain data; numbers stay strings (``3.10`` is a version), and unknown tags are ignored."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(("float", "int", "timestamp"))]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_multi_constructor("!", lambda *_: None)


def _by_name(file: str, data: Mapping[str, Any]) -> Iterator[CiJob]:
    """GitHub and CircleCI: a table of jobs."""
    jobs = data.get("jobs")
    matrix = data.get("workflows") or {}
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and not _NON_TEST_JOBS.search(str(name).lower()):
            yield from _job(file, [job, matrix])


def _gitlab(file: str, data: Mapping[str, Any]) -> Iterator[CiJob]:
    """GitLab: every top-level table with a script is a job; other keys apply to all jobs."""
    common = {key: value for key, value in data.items() if key in {"image", "before_script", "default", "variables"}}
    for name, job in data.items():
        if isinstance(job, dict) and name not in _GITLAB_KEYWORDS and not _NON_TEST_JOBS.search(str(name).lower()):
            yield from _job(file, [common, job])


def _whole(file: str, data: Mapping[str, Any]) -> Iterator[CiJob]:
    """The whole file is read as one job."""
    yield from _job(file, [data])


def _job(file: str, nodes: list[Any]) -> Iterator[CiJob]:
    leaves = [leaf for node in nodes for leaf in _leaves(node)]
    script = "\n".join(re.sub(r"\\\n", " ", text) for key, text in leaves if key in _SHELL_KEYS)
    if not _RUNS_TESTS.search(script):
        return
    versions = [v for key, text in leaves if _names_python(key, text) for v in _versions(text)]
    packages = [word for key, text in leaves if key == "packages" for word in text.split()]
    yield CiJob(
        file=file,
        pythons=tuple(dict.fromkeys(versions)),
        script=script,
        system_packages=tuple(dict.fromkeys(p for p in packages if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", p))),
    )


def _names_python(key: str, text: str) -> bool:
    return "python" in key.lower() or key in {"versionSpec", "image", "toxenv", "TOXENV"} or text.startswith("python")


def _versions(text: str) -> list[str]:
    if "pypy" in text.lower():
        return []
    short = [f"3.{digits}" for digits in re.findall(r"\bpy3(\d{1,2})\b", text)]
    return _VERSION.findall(text) + short


def _leaves(node: object, key: str = "") -> Iterator[tuple[str, str]]:
    """(nearest key, text) of every scalar below a YAML node."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value, key)
    elif node is not None:
        yield key, str(node)
