"""The ``/usr`` of sandboxes: the files of named Debian packages, copied once per machine.

It is the same on every machine with the same release of Debian, however much is installed there: programs that
developers use, the libraries that an interpreter links to, and the packages that a recipe asks for. Machines without
dpkg show their whole ``/usr`` instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from excise.envs.sandbox.debian_packages import DATABASE, DebianPackages
from excise.envs.sandbox.linked_libraries import find_libraries, needed_libraries
from excise.envs.sandbox.rootfs import masked_folders
from excise.errors import SandboxError
from excise.protocols import Mount, SystemRequest
from excise.system.files import replace_file
from excise.system.folders import make_folder_once
from excise.system.locks import host_folder

PACKAGES = (
    "bzip2", "ca-certificates", "fd-find", "file", "gawk", "git", "jq", "less", "libgcc-s1", "libgomp1",
    "libstdc++6", "make", "mawk", "media-types", "nano", "netbase", "openssl", "patch", "procps", "python3",
    "ripgrep", "tree", "tzdata", "unzip", "vim-tiny", "xz-utils", "zip", "zlib1g", "zstd",
)  # fmt: skip
"""What every sandbox has, where it is installed on the machine, besides the packages that Debian calls essential."""
_REQUIRED = ("bash", "coreutils", "libc6")
_LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|info|locale|lintian|bug|doc-base|python-wheels)/"
    r"|^/usr/(lib/node_modules|include/node)/"
    r"|/(site-packages|dist-packages|ensurepip/_bundled|test/wheeldata)/"
    r"|/usr/share/go-[\d.]+/(api|misc|test|src/cmd)/|/usr/share/go-[\d.]+/src/.*/testdata/"
    r"|/usr/lib/jvm/[^/]+/(jmods|man|legal|demo)/|^/usr/share/(java|maven-repo|maven)/"
)
"""Documentation, translations, and third-party code of Python, JavaScript and Java, whichever package it belongs to; of
Go's sources, its own tools and data of its tests, and of Java what is for linking: leak scans would have to read it."""
_LINK_FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib/*-linux-gnu*", "/usr/local/bin")
"""Folders whose links into the root are kept: maintainer scripts make them, so that dpkg does not list them."""
_VERSION = 2
_MAX_AGE_S = 30 * 86_400
"""Seconds without use after which a root is removed."""


@dataclass(frozen=True, slots=True)
class SystemRoot:
    """A folder with the content of ``/usr``."""

    folder: Path
    """The folder on the host; never changed."""
    packages: tuple[str, ...]
    """Names of the Debian packages in it."""

    @property
    def usr(self) -> Path:
        """What sandboxes show as ``/usr``."""
        return self.folder / "usr"


@dataclass(frozen=True, slots=True)
class _Content:
    """What a root contains; its hash is the root's name."""

    packages: tuple[tuple[str, str], ...]
    """Names and versions; none where dpkg does not manage the machine's own system."""
    paths: tuple[tuple[str, int], ...]
    """Other files and folders below ``/usr``, and their modification times in nanoseconds."""


def usr_mounts(request: SystemRequest) -> list[Mount]:
    """The mounts of ``/usr`` for a sandbox that runs on this machine's files.

    What a build needs cannot be known before it is tried: it sees the whole ``/usr`` of the host.
    """
    root = None if request.building else system_root(request)
    if root is not None:
        return [Mount(target="/usr", layers=(str(root.usr),))]
    masks = (Mount(target=path, layers=()) for path in masked_folders())
    return [Mount(target="/usr", layers=("/usr",), live=True), *masks]


@cache
def system_root(request: SystemRequest) -> SystemRoot | None:
    """Return the root for a request; it is made if this machine has none yet. None on a machine without dpkg.

    Raises :class:`SandboxError` if it cannot be written.
    """
    merged = all(not path.is_dir() or path.is_symlink() for path in map(Path, ("/bin", "/sbin", "/lib", "/lib64")))
    if not merged or not (DATABASE / "status").is_file():
        return None
    try:
        roots = host_folder() / "roots"
        content = _known_content(request, roots)
        if content.packages == ():
            return None
        name = hashlib.sha256(repr((_VERSION, os.geteuid(), content)).encode()).hexdigest()[:24]
        folder, usual = roots / name, None
        if request != SystemRequest() and not _is_complete(folder):
            usual = system_root(SystemRequest())  # outside the lock: it may be the same folder
        make_folder_once(folder, lambda work: _make(work, content, usual), is_complete=_is_complete)
        os.utime(folder)
        _remove_unused(roots)
    except OSError as error:
        raise SandboxError(f"The files of sandboxes' /usr cannot be copied: {error}. See TMPDIR.") from error
    return SystemRoot(folder, tuple(name for name, _ in content.packages))


def content_identity() -> str:
    """A hash of the packages and versions in every root of this machine; empty on a machine without dpkg."""
    if not (DATABASE / "status").is_file():
        return ""
    content = _known_content(SystemRequest(), host_folder() / "roots")
    return hashlib.sha256(repr(content.packages).encode()).hexdigest()[:16] if content.packages else ""


@cache
def debian_packages() -> DebianPackages:
    """The packages of this machine; one object per process."""
    return DebianPackages()


def linked_packages(folders: Sequence[Path]) -> tuple[str, ...]:
    """The Debian packages of shared libraries that the compiled files in ``folders`` link to.

    Left out are those that every sandbox has, and libraries that lie in the folders themselves.
    """
    needed = needed_libraries(folders)
    if not needed:
        return ()
    packages = debian_packages()
    usual = {package.name for package in packages.closure(PACKAGES)}
    owners = {packages.owner_of_library(path) for path in find_libraries(needed).values()}
    return tuple(sorted(owners - usual - {""}))


# ------------------------------------------------------------------------------------------------ content
def _known_content(request: SystemRequest, roots: Path) -> _Content:
    """The content for a request, from the cache unless a package or an interpreter has been installed since."""
    status = (DATABASE / "status").stat()
    times = [(path, os.stat(path).st_mtime_ns) for path in request.paths if os.path.exists(path)]
    stamp = repr((_VERSION, request, PACKAGES, status.st_mtime_ns, status.st_size, times))
    cached = roots / f"{hashlib.sha256(stamp.encode()).hexdigest()[:24]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(cached.read_text())
        return _Content(
            tuple((name, version) for name, version in known["packages"]),
            tuple((path, changed) for path, changed in known["paths"]),
        )
    content = _content(request)
    roots.mkdir(mode=0o711, parents=True, exist_ok=True)
    replace_file(cached, json.dumps({"packages": content.packages, "paths": content.paths}).encode())
    return content


def _content(request: SystemRequest) -> _Content:
    packages = debian_packages()
    if not all(name in packages.installed for name in _REQUIRED):
        return _Content((), ())
    libraries = find_libraries(needed_libraries([Path(path) for path in request.paths])).values()
    owners = {path: packages.owner_of_library(path) for path in libraries}
    wanted = (*PACKAGES, *request.packages, *filter(None, owners.values()))
    paths = [path for path in request.paths if path.startswith("/usr/") and os.path.exists(path)]
    paths += [str(path) for path, owner in owners.items() if not owner and path.is_relative_to("/usr")]
    return _Content(
        tuple((package.name, package.version) for package in packages.closure(wanted)),
        tuple((path, os.stat(path).st_mtime_ns) for path in sorted({*paths})),
    )


# ------------------------------------------------------------------------------------------------ copying
def _make(work: Path, content: _Content, usual: SystemRoot | None) -> None:
    (work / "usr").mkdir(mode=0o755)
    copy = _Copy(work, usual)
    for name, _ in content.packages:
        for path in debian_packages().files(name):
            copy.add(path)
    for path, _ in content.paths:
        for found in _walk(path):
            copy.add(found)
    copy.add_byte_code()
    copy.add_links()
    (work / "files.json").write_text(json.dumps(_count_files(work)))


def _walk(path: str) -> Iterator[str]:
    yield path
    if os.path.isdir(path) and not os.path.islink(path):
        for folder, folders, files in os.walk(path):
            yield from (os.path.join(folder, name) for name in (*folders, *files))


def _is_complete(folder: Path) -> bool:
    """Whether a root has all its files; programs that clean the temporary folder may have removed some."""
    try:
        expected = json.loads((folder / "files.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(expected == _count_files(folder))


def _count_files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder / "usr"))


def _remove_unused(roots: Path) -> None:
    """Remove roots and cached contents that no process has used for :data:`_MAX_AGE_S`."""
    for path in roots.iterdir():
        with contextlib.suppress(OSError):  # another process removed it
            if time.time() - path.stat().st_mtime > _MAX_AGE_S:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


class _Copy:
    """Copies files of the host's ``/usr`` to the same places below a folder, with their modification times.

    Files that the root ``usual`` has are links to its copies: roots for other packages differ from it in few files.
    """

    def __init__(self, into: Path, usual: SystemRoot | None) -> None:
        self.into = str(into)
        self.usual = usual
        self._parents: dict[str, str] = {}
        self._added: set[str] = set()
        self._inodes: dict[tuple[int, int], str] = {}

    def add(self, path: str) -> None:
        """Copy one file, link or folder, if it exists and is readable; the content of a folder is not copied."""
        parent, _, name = path.rpartition("/")
        path = f"{self._real(parent)}/{name}"
        if not path.startswith("/usr/") or path in self._added or _LEFT_OUT.search(f"{parent}/"):
            return
        try:
            found = os.lstat(path)
            self._copy(path, found)
        except (FileNotFoundError, PermissionError):
            return
        self._added.add(path)

    def _real(self, folder: str) -> str:
        if folder not in self._parents:
            self._parents[folder] = os.path.realpath(folder or "/")
        return self._parents[folder]

    def _copy(self, path: str, found: os.stat_result) -> None:
        target = self.into + path
        kind = found.st_mode & 0o170000
        if kind == 0o040000:
            os.makedirs(target, 0o755, exist_ok=True)
            return
        os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        inode = (found.st_dev, found.st_ino)
        if kind == 0o120000:
            os.symlink(os.readlink(path), target)
        elif kind == 0o100000 and inode in self._inodes:
            os.link(self._inodes[inode], target)
        elif kind == 0o100000 and (known := self._known_copy(path, found)):
            os.link(known, target)
        elif kind == 0o100000:
            shutil.copyfile(path, target)
            os.chmod(target, (found.st_mode & 0o555) | 0o200)
            os.utime(target, ns=(found.st_mtime_ns, found.st_mtime_ns))
            self._inodes[inode] = target
        else:
            return

    def _known_copy(self, path: str, found: os.stat_result) -> str:
        """The copy of a file in the usual root; empty if that has none, or one of an older version."""
        if self.usual is None:
            return ""
        copy = f"{self.usual.folder}{path}"
        with contextlib.suppress(OSError):
            status = os.lstat(copy)
            if (status.st_size, status.st_mtime_ns) == (found.st_size, found.st_mtime_ns):
                return copy
        return ""

    def add_byte_code(self) -> None:
        """Copy the byte code of Python modules that were copied; dpkg does not list it."""
        stems: dict[str, set[str]] = {}
        for path in self._added:
            if path.endswith(".py"):
                folder, _, name = path.rpartition("/")
                stems.setdefault(folder, set()).add(name.removesuffix(".py"))
        for folder, names in stems.items():
            with contextlib.suppress(OSError):
                for compiled in os.listdir(f"{folder}/__pycache__"):
                    if compiled.partition(".")[0] in names:
                        self.add(f"{folder}/__pycache__/{compiled}")

    def add_links(self) -> None:
        """Copy the links whose target was copied."""
        for folder in self._link_folders():
            with os.scandir(folder) as entries:
                links = [entry.path for entry in entries if entry.is_symlink()]
            for link in links:
                if os.path.realpath(link) in self._added:
                    self.add(link)

    @staticmethod
    def _link_folders() -> Iterable[Path]:
        for pattern in _LINK_FOLDERS:
            yield from (path for path in Path("/").glob(pattern.lstrip("/")) if path.is_dir() and not path.is_symlink())
