"""Jobs of the continuous integration systems: which interpreters they use and which shell lines they run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from excise.envs.manifests.read_text import read_text

_NO_TESTS = re.compile(
    r"lint|doc|mypy|typ(e|ing)|pre-?commit|style|format|release|publish|wheel|deploy|bench|pages|codeql"
)
_TESTS = re.compile(r"pytest|py\.test|\btox\b|\bnox\b|unittest|nosetests|hatch (run |test)|setup\.py test|\btest")
_SHELL = frozenset(
    ("run", "script", "before_script", "before_install", "install", "command", "bash", "after_install", "test")
)
"""Keys whose texts are shell lines."""
_RESERVED = frozenset(("default", "include", "stages", "variables", "workflow", "image", "services", "cache"))
_VERSION = re.compile(r"(?<![\d.])3\.\d{1,2}(?![\d])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job that may run tests."""

    file: str
    """The file that describes it, inside the repository."""
    pythons: tuple[str, ...]
    """Minor versions of the interpreters."""
    script: str
    """Its shell lines, continuation lines joined."""
    system_packages: tuple[str, ...] = ()
    """Packages that are named outside the shell lines."""


def read_jobs(root: Path) -> list[Job]:
    """All jobs that seem to run tests: GitHub, GitLab, Travis, CircleCI, Azure."""
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
    """Plain data; numbers stay texts (``3.10`` is a version), and tags of other programs mean nothing."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(("float", "int", "timestamp"))]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_multi_constructor("!", lambda *_: None)


def _by_name(file: str, data: Mapping[str, Any]) -> Iterator[Job]:
    """GitHub and CircleCI: a table of jobs."""
    jobs = data.get("jobs")
    matrix = data.get("workflows") or {}
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and not _NO_TESTS.search(str(name).lower()):
            yield from _job(file, [job, matrix])


def _gitlab(file: str, data: Mapping[str, Any]) -> Iterator[Job]:
    """Every top-level table with a script is a job; what stands beside them belongs to all."""
    common = {key: value for key, value in data.items() if key in {"image", "before_script", "default", "variables"}}
    for name, job in data.items():
        if isinstance(job, dict) and name not in _RESERVED and not _NO_TESTS.search(str(name).lower()):
            yield from _job(file, [common, job])


def _whole(file: str, data: Mapping[str, Any]) -> Iterator[Job]:
    """The file is one job, or is read as one."""
    yield from _job(file, [data])


def _job(file: str, nodes: list[Any]) -> Iterator[Job]:
    leaves = [leaf for node in nodes for leaf in _leaves(node)]
    script = "\n".join(re.sub(r"\\\n", " ", text) for key, text in leaves if key in _SHELL)
    if not _TESTS.search(script):
        return
    versions = [v for key, text in leaves if _tells_python(key, text) for v in _versions(text)]
    packages = [word for key, text in leaves if key == "packages" for word in text.split()]
    yield Job(
        file=file,
        pythons=tuple(dict.fromkeys(versions)),
        script=script,
        system_packages=tuple(dict.fromkeys(p for p in packages if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", p))),
    )


def _tells_python(key: str, text: str) -> bool:
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
