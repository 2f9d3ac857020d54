"""The read-only root file system of sandboxes except ``/usr``, and what is hidden where the host's is shown."""

from __future__ import annotations

import contextlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.sandbox.mount_points import hidden_folders
from excise.system.files import replace_file
from excise.system.locks import host_folder

_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "ca-certificates", "ca-certificates.conf", "alternatives",
    "localtime", "timezone", "mime.types", "services", "protocols", "nsswitch.conf", "terminfo",
)  # fmt: skip
"""Names in ``/etc``; besides them, the folders of Java, whose virtual machine does not start without its settings."""
_NETWORK = ("resolv.conf", "hosts", "gai.conf", "host.conf")
_TEXTS = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hostname": "sandbox\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n",
}
_LINKS = {"node_modules": "opt/env/node_modules"}
"""Links in the root into the environment: node and its tools look for packages in folders above a program's file."""
_UNREAD = tuple(
    Path("/usr", name) for name in ("share/doc", "share/man", "share/info", "share/locale", "src", "lib/debug")
)
"""Parts of ``/usr`` that no test reads: a tenth of its size."""


def rootfs_plan() -> dict[str, Any]:
    """Return the parts of the root file system: links, folders to bind, and files of ``/etc`` (some of fixed text)."""
    links, folders = dict(_LINKS), []
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            links[name] = os.readlink(path).lstrip("/")
        elif path.is_dir():
            folders.append(name)
    return {
        "links": links,
        "folders": folders,
        "etc": (*_ETC, *sorted(path.name for path in Path("/etc").glob("java-*-openjdk"))),
        "network": _NETWORK,
        "texts": _TEXTS,
    }


@cache
def masked_folders() -> tuple[str, ...]:
    """Folders that are empty in sandboxes that show the host's ``/usr``: third-party Python code, documentation.

    Besides the usual folders, these are folders directly below ``lib`` or ``share`` that contain a ``site-packages``
    (as some SDKs do), since any package may be vendored in it.
    """
    found = [Path("/usr/lib/python3/dist-packages")]
    for base in (Path("/usr/lib"), Path("/usr/local/lib")):
        for python in sorted(base.glob("python3*")):
            found += hidden_folders(python)
    found += [Path("/usr/share/python-wheels"), *_UNREAD]
    found += _bundled_environments()
    return tuple(str(folder) for folder in found if folder.is_dir() and not folder.is_symlink())


def _bundled_environments() -> list[Path]:
    """Folders with a Python environment of their own; the search is cached until a package is installed."""
    bases = [Path(p) for p in ("/usr/lib", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share")]
    bases = [base for base in bases if base.is_dir() and not base.is_symlink()]
    stamp = ",".join(f"{base}:{base.stat().st_mtime_ns}" for base in bases)
    cached = host_folder() / "bundles.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(cached.read_text())
        if known["stamp"] == stamp:
            return [Path(folder) for folder in known["folders"]]
    children = [
        child for base in bases for child in sorted(base.iterdir()) if child.is_dir() and not child.is_symlink()
    ]
    folders = [str(child) for child in children if not child.name.startswith("python3") and _has_packages(child)]
    with contextlib.suppress(OSError):
        replace_file(cached, json.dumps({"stamp": stamp, "folders": folders}).encode())
    return [Path(folder) for folder in folders]


def _has_packages(root: Path) -> bool:
    return any("site-packages" in folders or "dist-packages" in folders for _, folders, _ in os.walk(root))
