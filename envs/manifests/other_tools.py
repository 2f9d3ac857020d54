"""Reader of Pipfile and of conda's environment files.

conda's package names may differ from those of Python distributions, so its files give hints only.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from excise.envs.manifests.manifest import Manifest, read_text, table
from excise.envs.manifests.pyproject import poetry_requirements
from excise.envs.manifests.requirements import parse_line, valid_requirement

_CONDA = ("environment*.y*ml", "conda*/environment*.y*ml", "ci/environment*.y*ml", "ci/requirements/*.y*ml")


def read_other_tools(root: Path) -> Manifest:
    """Merge what both kinds of files declare."""
    pipfile, conda = _pipfile(root), _conda(root)
    return Manifest(
        tested_pythons=tuple(dict.fromkeys((*pipfile.tested_pythons, *conda.tested_pythons))),
        groups=pipfile.groups,
        dependencies=pipfile.dependencies,
        hints=conda.hints,
        evidence=(*pipfile.evidence, *conda.evidence),
    )


def _pipfile(root: Path) -> Manifest:
    """``[dev-packages]`` becomes the group ``dev``; ``[packages]`` are the dependencies of an application."""
    try:
        data: dict[str, object] = tomllib.loads(read_text(root / "Pipfile"))
    except tomllib.TOMLDecodeError:
        return Manifest()
    develop = poetry_requirements(table(data, "dev-packages"))
    version = str(table(data, "requires").get("python_version", ""))
    return Manifest(
        tested_pythons=(version,) if re.fullmatch(r"3\.\d+", version) else (),
        groups={"dev": develop} if develop else {},
        dependencies=poetry_requirements(table(data, "packages")),
        evidence=(f"Pipfile: dev-packages {', '.join(develop)}",) if develop else (),
    )


def _conda(root: Path) -> Manifest:
    pythons: list[str] = []
    hints: list[str] = []
    files: list[str] = []
    for path in sorted(p for pattern in _CONDA for p in root.glob(pattern)):
        try:
            data = yaml.safe_load(read_text(path))
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        entries = data.get("dependencies") if isinstance(data, dict) else None
        if not isinstance(entries, list):
            continue
        files.append(path.relative_to(root).as_posix())
        for entry in entries:
            if isinstance(entry, dict):
                hints += [r for text in entry.get("pip") or () for r in parse_line(root, str(text)).requirements]
            elif match := re.fullmatch(r"(?:[\w-]+::)?([\w.-]+)\s*([=<>!~].*)?", str(entry)):
                pythons += re.findall(r"3\.\d+", match[2] or "")[:1] if match[1] == "python" else []
                hints += [match[1]] if match[1] != "python" and valid_requirement(match[1]) else []
    return Manifest(
        tested_pythons=tuple(dict.fromkeys(pythons)),
        hints=tuple(dict.fromkeys(hints)),
        evidence=tuple(f"{name}: hints at {len(hints)} packages" for name in files),
    )
