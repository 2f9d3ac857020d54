"""The read-only system of every sandbox: the host's ``/usr`` without its Python packages, and a little of ``/etc``."""

from __future__ import annotations

import contextlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.sandbox.mount_points import masked_in
from excise.system.locks import host_folder

_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "ca-certificates", "ca-certificates.conf", "alternatives",
    "localtime", "timezone", "mime.types", "services", "protocols", "nsswitch.conf", "terminfo",
)  # fmt: skip
_NETWORK = ("resolv.conf", "hosts", "gai.conf", "host.conf")
_TEXTS = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hostname": "sandbox\n",
    "hosts": "127.0.0.1 localhost sandbox\n",
}


def rootfs_plan() -> dict[str, Any]:
    """What :class:`holder_root.Root` builds. Python packages of the host, and wheels of interpreters, are masked."""
    links, folders = {}, []
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            links[name] = os.readlink(path).lstrip("/")
        elif path.is_dir():
            folders.append(name)
    return {
        "links": links,
        "folders": folders,
        "masks": masked_folders(),
        "etc": _ETC,
        "network": _NETWORK,
        "texts": _TEXTS,
    }


@cache
def masked_folders() -> tuple[str, ...]:
    """Folders under /usr that hold other projects' Python code, or that tell of the host.

    Besides the known places: every folder directly below ``lib`` or ``share`` that brings a ``site-packages`` of its
    own (SDKs do), since anything may be vendored in there.
    """
    found = [Path("/usr/lib/python3/dist-packages")]
    for base in (Path("/usr/lib"), Path("/usr/local/lib")):
        for python in sorted(base.glob("python3*")):
            found += masked_in(python)
    found += [Path("/usr/share/python-wheels"), Path("/usr/share/doc")]
    found += _bundles()
    return tuple(str(folder) for folder in found if folder.is_dir() and not folder.is_symlink())


def _bundles() -> list[Path]:
    """Folders that carry a Python environment; looked for once, then remembered until a package is installed."""
    bases = [Path(p) for p in ("/usr/lib", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share")]
    bases = [base for base in bases if base.is_dir() and not base.is_symlink()]
    stamp = ",".join(f"{base}:{base.stat().st_mtime_ns}" for base in bases)
    memory = host_folder() / "bundles.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(memory.read_text())
        if known["stamp"] == stamp:
            return [Path(folder) for folder in known["folders"]]
    children = [
        child for base in bases for child in sorted(base.iterdir()) if child.is_dir() and not child.is_symlink()
    ]
    folders = [str(child) for child in children if not child.name.startswith("python3") and _has_packages(child)]
    with contextlib.suppress(OSError):
        scratch = memory.with_name(f".bundles.{os.getpid()}")
        scratch.write_text(json.dumps({"stamp": stamp, "folders": folders}))
        scratch.rename(memory)
    return [Path(folder) for folder in folders]


def _has_packages(root: Path) -> bool:
    return any("site-packages" in folders or "dist-packages" in folders for _, folders, _ in os.walk(root))
