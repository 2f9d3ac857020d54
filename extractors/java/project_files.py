"""Tells from its files whether a project is written in Java, and what its manifest says."""

from __future__ import annotations

import re
from pathlib import Path

from excise.extractors.fetch.trees import share_of_files
from excise.extractors.java.analysis.suite_files import SUFFIX
from excise.extractors.license_texts import license_name, license_of_text
from excise.system.manifest_texts import manifest_text
from excise.system.plain_xml import read_xml
from excise.types import ProjectInfo

_POM = "pom.xml"
_OF_ALL = re.compile(r"(?<=\w)-(?:parent|site|aggregator|root|reactor|pom|all|multi)$")
"""What ends the name of a ``pom.xml`` above modules."""
MANIFESTS = (_POM, "build.gradle", "build.gradle.kts", "build.xml")


def detect(root: Path) -> float:
    """1 with a manifest of Maven, Gradle or Ant and Java files, else the share of files that are Java."""
    share = share_of_files(root, SUFFIX)
    return 1.0 if share and any((root / name).is_file() for name in MANIFESTS) else share


def read_manifest(root: Path) -> ProjectInfo:
    """Name, version and licence of a ``pom.xml``; the version may be that of its parent, and the name of one that has
    only modules loses what says so (``gson-parent``)."""
    project = read_xml(manifest_text(root / _POM))
    if project is None:
        return ProjectInfo()
    name, version, inherited, license_text = (
        project.findtext(place, "").strip()
        for place in ("artifactId", "version", "parent/version", "licenses/license/name")
    )
    version = version or inherited
    name = _OF_ALL.sub("", name) if project.find("modules") is not None else name
    known = license_of_text(license_text) or license_name(license_text)
    return ProjectInfo(name=name, version="" if "${" in version else version, license=known)
