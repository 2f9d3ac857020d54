"""Which modules of a repository need which others, as the manifests of Maven and Gradle say; nothing of it is run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from excise.system.manifest_texts import manifest_text
from excise.system.plain_xml import read_xml

_GRADLE = ("build.gradle", "build.gradle.kts")
_PROJECT = re.compile(r"\bproject\s*\(\s*(?:path\s*[:=]\s*)?[\"']:?([\w:.-]+)[\"']")
"""How a script of Gradle names another module."""


def needed_modules(root: Path, modules: Collection[str]) -> dict[str, list[str]]:
    """Each of ``modules`` to those of them that it needs, also through others, and itself first.

    Modules are folders relative to ``root`` with a trailing slash; the main folder is empty.
    """
    artifacts = {name: base for base in sorted(modules) if (name := _artifact(root / base))}
    needed = {module: sorted(_needed(root, module, artifacts).intersection(modules)) for module in modules}
    return {module: _closure(module, needed) for module in modules}


def _closure(module: str, needed: Mapping[str, Sequence[str]]) -> list[str]:
    found = {module: None}
    pending = [module]
    for each in pending:  # grows meanwhile
        more = [other for other in needed[each] if other not in found]
        found.update(dict.fromkeys(more))
        pending += more
    return list(found)


def _artifact(folder: Path) -> str:
    """The name under which others depend on the module of a ``pom.xml``; empty without one."""
    project = read_xml(manifest_text(folder / "pom.xml"))
    return project.findtext("artifactId", "").strip() if project is not None else ""


def _needed(root: Path, module: str, artifacts: Mapping[str, str]) -> set[str]:
    """The folders of the modules that the manifests of one name."""
    project = read_xml(manifest_text(root / module / "pom.xml"))
    named = project.findall("dependencies/dependency/artifactId") if project is not None else []
    found = {artifacts[name] for each in named if (name := (each.text or "").strip()) in artifacts}
    for script in _GRADLE:
        paths = _PROJECT.findall(manifest_text(root / module / script))
        found |= {path.strip(":").replace(":", "/") + "/" for path in paths}
    return found
