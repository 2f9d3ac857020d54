"""Reader of CI workflows, Dockerfiles and .python-version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.requirements import parse_install

_VERSION = re.compile(r"3\.\d{1,2}(?:\.\d+)?")
_INSTALL = re.compile(r"(?:^|[\s;&|])(?:uv\s+)?pip3?\s+install\s+([^;&|\n]+)")
_APT = re.compile(r"(?:^|[\s;&|])apt(?:-get)?\s+(?:-\S+\s+)*install\s+([^;&|\n]+)")
_GROUP = re.compile(r"--(?:only-)?group[= ]([\w.-]+)")
_EXTRA = re.compile(r"--extra[= ]([\w.-]+)")
_NO_TESTS = re.compile(
    r"lint|doc|mypy|typ(e|ing)|pre-?commit|style|format|release|publish|wheel|deploy|bench|pages|codeql"
)


def read_ci(root: Path) -> Manifest:
    """What the project's own automation installs and on which interpreters."""
    pythons: list[str] = []
    scripts: list[str] = []
    evidence: list[str] = []
    for path in sorted([*root.glob(".github/workflows/*.yml"), *root.glob(".github/workflows/*.yaml")]):
        found, runs = _workflow(path)
        if found:
            evidence.append(f"{path.relative_to(root)}: python-version {', '.join(found)}")
        pythons += found
        scripts += runs
    for path in sorted([*root.glob("Dockerfile*"), *root.glob(".devcontainer/Dockerfile")]):
        text = _read(path)
        scripts.append(re.sub(r"\\\n", " ", text))
        pythons += [_minor(version) for version in re.findall(r"(?im)^FROM\s+\S*python:(3\.\d+)", text)]
    pythons += [_minor(v) for v in re.findall(r"(?m)^(3\.\d+(?:\.\d+)?)", _read(root / ".python-version"))]
    script = "\n".join(scripts)
    installs = [parse_install(root, match) for match in _INSTALL.findall(script)]
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(pythons)),
        test_requirements=tuple(dict.fromkeys(r for found in installs for r in found.requirements)),
        test_extras=tuple(dict.fromkeys([*(x for found in installs for x in found.extras), *_EXTRA.findall(script)])),
        test_groups=tuple(dict.fromkeys(_GROUP.findall(script))),
        system_packages=tuple(dict.fromkeys(_system_packages(script))),
        evidence=tuple(evidence),
    )


def _workflow(path: Path) -> tuple[list[str], list[str]]:
    """(interpreters, shell scripts) of the jobs that may run tests."""
    try:
        data = yaml.safe_load(_read(path))
    except yaml.YAMLError:
        return [], []
    jobs = data.get("jobs") if isinstance(data, dict) else None
    pythons: list[str] = []
    scripts: list[str] = []
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        if not isinstance(job, dict) or _NO_TESTS.search(str(name).lower()):
            continue
        runs = [re.sub(r"\\\n", " ", text) for key, text in _leaves(job) if key == "run"]
        if re.search(r"pytest|tox|nox|unittest|\btest", "\n".join(runs)):
            scripts += runs
            pythons += [_minor(v) for key, text in _leaves(job) if "python" in key for v in _versions(text)]
    return list(dict.fromkeys(pythons)), scripts


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


def _versions(text: str) -> list[str]:
    return [] if "pypy" in text.lower() else _VERSION.findall(text)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _system_packages(script: str) -> Iterator[str]:
    for arguments in _APT.findall(script):
        for word in arguments.split():
            if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", word):
                yield word


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
