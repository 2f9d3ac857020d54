"""Reads what the manifests of a Python project say about it, without running any of its code."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from excise.extractors.license_texts import license_name
from excise.system.manifest_texts import manifest_table, manifest_text
from excise.types import ProjectInfo

_CLASSIFIERS = {
    "mit license": "MIT",
    "bsd license": "BSD",
    "apache software license": "Apache-2.0",
    "isc license (iscl)": "ISC",
    "python software foundation license": "PSF-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "the unlicense (unlicense)": "Unlicense",
    "zope public license": "ZPL",
    "gnu general public license v2 (gplv2)": "GPL-2.0-only",
    "gnu general public license v2 or later (gplv2+)": "GPL-2.0-or-later",
    "gnu general public license v3 (gplv3)": "GPL-3.0-only",
    "gnu general public license v3 or later (gplv3+)": "GPL-3.0-or-later",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "gnu lesser general public license v3 or later (lgplv3+)": "LGPL-3.0-or-later",
    "gnu affero general public license v3": "AGPL-3.0-only",
}
"""Last part of a trove classifier, in lower case, to the SPDX expression."""


def read_manifests(root: Path) -> ProjectInfo:
    """Read pyproject.toml, setup.cfg, PKG-INFO and setup.py of ``root``, in this order."""
    found = list(_manifests(root))

    def first(field: str) -> str:
        return next((info for entry in found if (info := getattr(entry, field))), "")

    name = first("name")
    return ProjectInfo(name=name, version=first("version") or _version_in_code(root, name), license=first("license"))


def _manifests(root: Path) -> Iterator[ProjectInfo]:
    yield _from_pyproject(root / "pyproject.toml")
    yield _from_setup_cfg(root / "setup.cfg")
    yield _from_pkg_info(root / "PKG-INFO")
    yield _from_setup_py(root / "setup.py")


def _from_pyproject(path: Path) -> ProjectInfo:
    data = manifest_table(path)
    project = _table(data.get("project"))
    poetry = _table(_table(data.get("tool")).get("poetry"))
    flit = _table(_table(_table(data.get("tool")).get("flit")).get("metadata"))
    tables = (project, poetry, flit)
    licence = next(filter(None, (_license_field(table.get("license")) for table in tables)), "")
    classifiers: list[object] = next(
        (table["classifiers"] for table in tables if isinstance(table.get("classifiers"), list)), []
    )
    return ProjectInfo(
        name=_first(project.get("name"), poetry.get("name"), flit.get("dist-name"), flit.get("module")),
        version=_without_placeholder(_first(project.get("version"), poetry.get("version"))),
        license=license_name(licence) or _by_classifier("\n".join(map(str, classifiers))),
    )


def _from_setup_cfg(path: Path) -> ProjectInfo:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(manifest_text(path))
    except configparser.Error:
        return ProjectInfo()
    metadata = dict(parser["metadata"]) if parser.has_section("metadata") else {}
    version = metadata.get("version", "")
    return ProjectInfo(
        name=metadata.get("name", ""),
        version="" if ":" in version else version.strip(),
        license=_by_classifier(metadata.get("classifiers") or metadata.get("classifier", ""))
        or license_name(metadata.get("license", "")),
    )


def _from_pkg_info(path: Path) -> ProjectInfo:
    message: Message = HeaderParser().parsestr(manifest_text(path))
    classifiers = "\n".join(message.get_all("Classifier") or [])
    return ProjectInfo(
        name=message.get("Name", ""),
        version=message.get("Version", ""),
        license=message.get("License-Expression", "")
        or _by_classifier(classifiers)
        or license_name(message.get("License", "")),
    )


def _from_setup_py(path: Path) -> ProjectInfo:
    text = manifest_text(path)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ProjectInfo()
    arguments: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                if keyword.arg and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
                    arguments[keyword.arg] = keyword.value.value
    return ProjectInfo(
        name=arguments.get("name", ""),
        version=arguments.get("version", ""),
        license=_by_classifier(text) or license_name(arguments.get("license", "")),
    )


def _version_in_code(root: Path, name: str) -> str:
    """The value of ``__version__`` in the package that has the project's name; empty if there is none."""
    module = re.sub(r"[-.]+", "_", name).lower()
    if not module:
        return ""
    for parent in (root, root / "src", root / "lib"):
        for path in (f"{module}/__init__.py", f"{module}/__version__.py", f"{module}/_version.py", f"{module}.py"):
            text = manifest_text(parent / path)
            if match := re.search(r"^__version__(?:\s*:\s*\w+)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE):
                return match[1]
    return ""


def _by_classifier(text: str) -> str:
    names = re.findall(r"License :: (?:OSI Approved :: )?([^\n'\"]+)", text)
    known = [_CLASSIFIERS.get(name.strip().lower(), name.strip()) for name in names if name.strip() != "OSI Approved"]
    return " OR ".join(dict.fromkeys(known))


def _without_placeholder(version: str) -> str:
    """The version; empty for ``0.0.0``, a placeholder for tools that take the version from git tags."""
    return "" if version in ("0", "0.0", "0.0.0") else version


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _license_field(value: object) -> str:
    """The text of a licence field, which is a string, or a table as in the first form of PEP 621."""
    return _first(value.get("text") if isinstance(value, dict) else value)


def _first(*values: object) -> str:
    """The first value that is a string and not empty; manifests may hold values of any type."""
    return next((value for value in values if isinstance(value, str) and value), "")
