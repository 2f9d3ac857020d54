"""Finds the Python interpreters of this machine."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from excise.errors import EnvironmentFailure
from excise.system.commands import CommandTimeout, run_command

OLDEST, NEWEST = (3, 8), (3, 14)
"""Range of minor versions that excise supports."""

_NAME = re.compile(r"python3(\.\d+)?")
_QUERY = """
import json, platform, sys, sysconfig
print(json.dumps({
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "executable": getattr(sys, "_base_executable", "") or sys.executable,
    "prefix": sys.base_prefix,
    "unusual": bool(sysconfig.get_config_var("Py_GIL_DISABLED") or sysconfig.get_config_var("Py_DEBUG")),
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One CPython installation that is not a virtual environment."""

    version: str
    """Full version, for example ``3.12.1``."""
    executable: Path
    """The real executable, not a shim or a link."""
    prefix: Path
    """``sys.base_prefix``, which a sandbox must mount to run it."""

    @property
    def minor(self) -> tuple[int, int]:
        """``(3, 12)``."""
        major, minor, *_ = Version(self.version).release
        return major, minor


@cache
def find_interpreters() -> tuple[Interpreter, ...]:
    """All usable CPython installations, oldest first, one per full version; searched once per process.

    Searches ``PATH``, the folders of pyenv and uv, the usual folders, and the interpreter that runs excise.
    """
    executables = sorted({os.path.realpath(path) for path in _candidates()} | {os.path.realpath(sys.executable)})
    with ThreadPoolExecutor(4) as pool:
        answers = [found for found in pool.map(_query, executables) if found]
    by_version: dict[str, Interpreter] = {}
    for found in sorted(answers, key=lambda i: (i.prefix.is_relative_to("/usr"), str(i.executable))):
        by_version.setdefault(found.version, found)
    return tuple(sorted(by_version.values(), key=lambda i: Version(i.version)))


def choose(requirement: str, interpreters: Sequence[Interpreter] | None = None) -> Interpreter:
    """Return the newest interpreter that fits ``requirement``: ``3.11``, ``3.11.7`` or a specifier (``>=3.9,<3.13``).

    Raises :class:`EnvironmentFailure` (``python_unavailable``) that lists the existing ones and how to install more.
    """
    present = find_interpreters() if interpreters is None else interpreters
    fitting = [i for i in present if fits(requirement, i.version)]
    if fitting:
        return fitting[-1]
    versions = ", ".join(i.version for i in present) or "none"
    raise EnvironmentFailure(
        f"no Python {requirement} on this machine (found: {versions}). "
        f"Install one with `uv python install`, `pyenv install` or the system's packages, and run again.",
        reason="python_unavailable",
    )


def interpreter_of(version: str) -> Interpreter:
    """Return the interpreter of a recipe: the exact version, else the newest of the same minor version.

    Raises :class:`EnvironmentFailure` (``python_unavailable``).
    """
    try:
        return choose(version)
    except EnvironmentFailure:
        return choose(".".join(version.split(".")[:2]))


def fits(requirement: str, version: str) -> bool:
    """Whether a full version fits a plain version (``3.11`` admits any 3.11.x) or a specifier."""
    text = requirement.strip()
    if re.fullmatch(r"\d+(\.\d+)*", text):
        return version == text or version.startswith(f"{text}.")
    try:
        return SpecifierSet(text).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def _candidates() -> Iterator[Path]:
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or _data_home(home) / "uv" / "python")
    on_path = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p and Path(p).name != "shims"]
    usual = [Path("/usr/bin"), Path("/usr/local/bin"), home / ".local" / "bin"]
    managed = [
        *_below(pyenv, "versions/*/bin"),
        *_below(uv, "*/bin"),
        *_below(Path("/opt"), "*/bin"),
        *_below(Path("/opt"), "*/*/bin"),
    ]
    for folder in (*on_path, *usual, *managed):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (folder / name for name in names if _NAME.fullmatch(name))


def _below(root: Path, pattern: str) -> list[Path]:
    """Paths that match; empty if this user may not read the folder."""
    try:
        return list(root.glob(pattern))
    except OSError:
        return []


def _data_home(home: Path) -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")


def _query(executable: str, *, follow: bool = True) -> Interpreter | None:
    try:
        answer = run_command([executable, "-I", "-S", "-c", _QUERY], timeout_s=20)
        facts = json.loads(answer.stdout)
    except (OSError, CommandTimeout, ValueError):
        return None
    real = os.path.realpath(facts["executable"])
    if not Path(executable).is_relative_to(facts["prefix"]) and real != executable:
        return _query(real, follow=False) if follow else None  # a virtual environment with a copied executable
    version = Version(facts["version"])
    usable = facts["implementation"] == "CPython" and not facts["unusual"] and not version.is_prerelease
    if not usable or not OLDEST <= version.release[:2] <= NEWEST:
        return None
    return Interpreter(
        version=facts["version"], executable=Path(executable), prefix=Path(os.path.realpath(facts["prefix"]))
    )
