"""The base images of environments: this host's root file system, a bootstrapped one, or any image by name.

The image ``host`` holds the same files of the host's system as bubblewrap's sandboxes, so that this machine's
interpreters find the libraries that they were linked with. Nothing is fetched from a registry.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.docker.docker_engine import engine_errors
from excise.envs.sandbox.rootfs import masked_folders, rootfs_plan
from excise.envs.sandbox.system_root import SystemRoot
from excise.errors import SandboxError
from excise.system.commands import run_command
from excise.system.locks import host_lock

REPOSITORY = "excise-base"
HOST, BOOTSTRAP = "host", "debootstrap"
BOOTSTRAP_TIMEOUT_S = 3600.0
"""Seconds for debootstrap, which downloads a whole system."""
_VERSION = 4
_EXACT_TIMES = ("--format=posix", "--pax-option=delete=atime,delete=ctime")
"""Options of tar that keep modification times to the nanosecond: the leak scan recognises the host's files by
them, reads them on the host, and so shares its indexes with bubblewrap's sandboxes."""
_EMPTY = ("proc", "sys", "dev", "tmp", "run", "home/agent", "var/tmp", "excise", "root")
_MODES = {"tmp": 0o1777, "var/tmp": 0o1777, "home/agent": 0o777}
"""Modes of folders that are mounted over: podman gives the mount the mode of the folder below."""


def base_image(client: Any, name: str, root: SystemRoot | None) -> str:
    """Return the name of a base image in the engine; ``host`` and ``debootstrap`` are made if missing.

    ``root`` is the ``/usr`` of the image ``host``; without one, it is the host's.

    Raises :class:`SandboxError`.
    """
    if name not in {HOST, BOOTSTRAP}:
        with engine_errors(f"The image {name} is not there; pull or load it first"):
            return str(client.images.get(name).id)
    tag = f"{REPOSITORY}:{host_hash(root) if name == HOST else bootstrap_hash()}"
    with host_lock(tag):
        if not has_image(client, tag):
            with engine_errors("The base image cannot be made"), tempfile.TemporaryDirectory() as folder:
                if name == HOST:
                    _import(client, tag, host_archive(Path(folder), root))
                else:
                    _import(client, tag, bootstrapped(Path(folder)))
    return tag


def has_image(client: Any, tag: str) -> bool:
    """Whether the engine has an image with this name."""
    import docker

    try:
        client.api.inspect_image(tag)
    except docker.errors.ImageNotFound:
        return False
    return True


def _import(client: Any, tag: str, command: list[str]) -> None:
    """Import the archive that a command writes to its output as an image."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        assert process.stdout is not None
        labels = ["LABEL excise=base"]  # podman 4 accepts the tag only as part of the name
        client.api.import_image_from_stream(process.stdout, repository=tag, changes=labels)
        process.stdout.close()
        log.seek(0)
        if process.wait() > 1:  # 1: files that this user may not read are left out, as in bubblewrap
            raise SandboxError(f"The base image cannot be packed: {log.read()[-500:].decode(errors='replace')}")


# ---------------------------------------------------------------------------------------------- host
@cache
def host_hash(root: SystemRoot | None) -> str:
    """A hash of what the image of this host holds: the name of its root, or the state of the host's packages."""
    digest = hashlib.sha256(f"{_VERSION}{os.geteuid()}".encode())
    if root is not None:
        digest.update(f"{root.folder.name}{rootfs_plan()}".encode())
        return digest.hexdigest()[:24]
    for path in ("/etc/os-release", "/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/lib/apk/db/installed"):
        with contextlib.suppress(OSError):
            digest.update(Path(path).read_bytes())
    for folder in ("/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/share"):
        with contextlib.suppress(OSError):
            digest.update(f"{folder}{os.stat(folder).st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def host_archive(folder: Path, root: SystemRoot | None) -> list[str]:
    """The command that writes the root file system of sandboxes on this host as an archive."""
    plan = rootfs_plan()
    skeleton = folder / "skeleton.tar"
    with tarfile.open(skeleton, "w") as archive:
        for name in (*_EMPTY, "etc"):
            _add_folder(archive, name, _MODES.get(name, 0o755))
        for name, target in plan["links"].items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        for name, text in plan["texts"].items():
            info = tarfile.TarInfo(f"etc/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    parts = [*plan["folders"], *(f"etc/{n}" for n in plan["etc"] if Path("/etc", n).exists())]
    parts += [f"--directory={root.folder}" if root is not None else "--directory=/", "usr"]
    line = ["tar", "--create", *_EXACT_TIMES, "--directory=/", "--ignore-failed-read", "--owner=0", "--group=0"]
    line += ["--numeric-owner", "--sort=name", "--warning=none"]
    line += [] if root is not None else [f"--exclude={path.lstrip('/')}/*" for path in masked_folders()]
    skeleton.write_bytes(without_end_blocks(skeleton.read_bytes()))
    script = 'cat "$1"; shift; exec "$@"'
    return ["sh", "-c", script, "sh", str(skeleton), *line, *parts]


def without_end_blocks(archive: bytes) -> bytes:
    """Remove the empty blocks at the end of an archive, so that another archive can be appended."""
    return archive.rstrip(b"\0") + bytes(-len(archive.rstrip(b"\0")) % 512)


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    archive.addfile(info)


# ----------------------------------------------------------------------------------------- bootstrap
def bootstrap_hash() -> str:
    """A hash that identifies what debootstrap makes on this host."""
    return hashlib.sha256(f"debootstrap {_VERSION} {_distribution_suite()}".encode()).hexdigest()[:24]


def _distribution_suite() -> str:
    found = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return found.get("VERSION_CODENAME", "").strip('"') or "stable"


def bootstrapped(folder: Path) -> list[str]:
    """Make a minimal system of this host's distribution; return the command that writes it as an archive.

    Raises :class:`SandboxError`.
    """
    program = shutil.which("debootstrap") or shutil.which("debootstrap", path="/usr/sbin")
    if program is None or os.geteuid() != 0:
        raise SandboxError(
            'debootstrap needs root, and apt-get install debootstrap. Or use docker.base_image = "host".'
        )
    root = folder / "root"
    packages = "--include=python3,ca-certificates,build-essential"
    done = run_command(
        [program, "--variant=minbase", packages, _distribution_suite(), str(root)], timeout_s=BOOTSTRAP_TIMEOUT_S
    )
    if done.returncode != 0:
        raise SandboxError(f"debootstrap failed: {done.stdout[-500:].decode(errors='replace').strip()}")
    for name, text in rootfs_plan()["texts"].items():
        (root / "etc" / name).write_text(text)
    for name in _EMPTY:
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(_MODES.get(name, 0o755))
    return ["tar", "--create", f"--directory={root}", "--numeric-owner", "--exclude=./var/cache/apt/*", "."]
