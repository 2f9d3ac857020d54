"""Paths inside a sandbox, and the mounts and environment variables of a project's sandbox."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from excise.protocols import Mount, SystemRequest
from excise.system.folders import make_folder_once
from excise.system.locks import host_folder

REPO = "/testbed"
"""The checkout; the working directory of tests."""
ENV = "/opt/env"
"""The virtual environment."""
OUTPUTS = "/excise/outputs"
"""Folder of build outputs of the project and of all that it uses, such as byte code; agents never get it."""
OUT = "/excise/out"
"""Folder for results: the only one that the host reads."""
HOME = "/home/agent"
"""Home folder; initially empty."""
INSIDE = "/excise/inside"
"""Folder of excise's own programs that run in the sandbox, such as the plugin of the test runner."""
SHARED = "/excise/shared"
"""Folder of those of these programs that several languages use."""
SHARED_PROGRAMS = Path(__file__).resolve().parent / "inside"
"""That folder on the host."""
TOOLS = "/excise/tools"
"""Folder of packages that only excise's programs import (coverage), apart from the project's environment."""


class InterpreterLike(Protocol):
    """The attributes of an interpreter that its mounts depend on."""

    @property
    def version(self) -> str:
        """Full version, ``3.12.1``."""
        ...

    @property
    def executable(self) -> Path:
        """The real executable."""
        ...

    @property
    def prefix(self) -> Path:
        """``sys.base_prefix``."""
        ...


def hidden_folders(library: Path) -> list[Path]:
    """Folders of an interpreter's library that sandboxes do not show.

    They hold third-party code (installed packages, bundled wheels), or the interpreter as a static library of 60 MB,
    which no project needs and each leak scan would have to read.
    """
    names = ("site-packages", "dist-packages", "ensurepip/_bundled")
    folders = [*(library / name for name in names), *library.glob("config-*")]
    return [folder for folder in folders if folder.is_dir()]


def library_of(interpreter: InterpreterLike) -> Path:
    """Folder of the interpreter's standard library."""
    return interpreter.prefix / "lib" / f"python{'.'.join(interpreter.version.split('.')[:2])}"


def system_request(
    interpreter: InterpreterLike, packages: Sequence[str] = (), *, building: bool = False
) -> SystemRequest:
    """What ``/usr`` contains in the sandboxes of a project: packages, and what the interpreter needs.

    An interpreter below ``/usr`` is itself part of it.
    """
    prefix, library = interpreter.prefix, library_of(interpreter)
    shared = sorted((prefix / "lib").glob(f"libpython{library.name.removeprefix('python')}*.so*"))
    if prefix.is_relative_to("/usr"):
        headers = prefix / "include" / library.name
        paths = [interpreter.executable, library, *shared, *([headers] if headers.is_dir() else [])]
    else:
        paths = [interpreter.executable, library / "lib-dynload", *shared]
    return SystemRequest(packages=tuple(packages), paths=tuple(map(str, paths)), building=building)


def interpreter_mounts(interpreter: InterpreterLike) -> list[Mount]:
    """Mount the interpreter at its own path, read-only and without third-party packages."""
    prefix = interpreter.prefix
    if prefix.is_relative_to("/usr"):
        return []
    mounts = [Mount(target=str(prefix), layers=(str(prefix),))]
    library = library_of(interpreter)
    mounts += [Mount(target=str(masked), layers=()) for masked in hidden_folders(library)]
    if (library / "test" / "support").is_dir():
        mounts.append(Mount(target=str(library / "test"), layers=(str(_test_support(library)),)))
    return mounts


def _test_support(library: Path) -> Path:
    """A copy of ``test`` with :mod:`test.support` only, which tests of projects import.

    The interpreter's own tests are 130 MB that leak scans would have to read. Debian's interpreters come without them,
    too.
    """
    source = library / "test"

    def copy(folder: Path) -> None:
        shutil.copytree(source / "support", folder / "support", symlinks=True)
        for path in source.glob("__init__.py"):
            shutil.copy2(path, folder)

    stamp = repr([(path, path.stat().st_mtime_ns) for path in (source / "support", source / "support/__init__.py")])
    folder = host_folder() / "test-support" / hashlib.sha256(stamp.encode()).hexdigest()[:24]
    return make_folder_once(folder, copy, is_complete=lambda found: (found / "support/__init__.py").is_file())


def project_mounts(
    interpreter: InterpreterLike,
    sources: Sequence[Path],
    environment: Sequence[Path],
    *,
    inside: Path | None = None,
    tools: Path | None = None,
    writable_env: bool = False,
) -> list[Mount]:
    """All mounts of a project's sandbox.

    ``sources`` and ``environment`` are layers, topmost first. The checkout is writable (in the session's own upper
    layer). ``writable_env`` makes the environment writable too, for installing. ``inside`` and ``tools`` are the host
    folders for :data:`INSIDE` and :data:`TOOLS`; with ``inside``, :data:`SHARED` is there, too.
    """
    mounts = interpreter_mounts(interpreter)
    mounts.append(Mount(target=REPO, layers=tuple(map(str, sources)), writable=True))
    mounts.append(Mount(target=ENV, layers=tuple(map(str, environment)), writable=writable_env))
    if inside is not None:
        mounts.append(Mount(target=INSIDE, layers=(str(inside),)))
        mounts.append(Mount(target=SHARED, layers=(str(SHARED_PROGRAMS),)))
    if tools is not None:
        mounts.append(Mount(target=TOOLS, layers=(str(tools),)))
    return mounts


def base_env(language: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of every sandbox: none of the host's, equal on every machine; and those of a language."""
    return {
        **language,
        "PATH": f"{ENV}/bin:/usr/bin:/bin",
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "CI": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def open_to_all(root: Path) -> None:
    """Make a layer readable and writable by every user, since sandboxes run under uids of their own.

    Writes go to an upper layer, never here. The parent folder in the cache keeps other users out; git does not record
    these mode bits.
    """
    for path in (root, *root.rglob("*")):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode & 0o777
        target_mode = 0o777 if path.is_dir() or mode & 0o100 else 0o666
        if mode != target_mode:
            path.chmod(target_mode)
