"""The distribution's packages that a recipe names, installed into an image."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from excise.errors import EnvironmentFailure

_STATE = ("/etc/apt", "/var/lib/dpkg", "/var/lib/apt", "/etc/debconf.conf", "/etc/ca-certificates.conf")
"""What apt must know of the host's packages, where the image is made of the host; gone again before it is kept."""
_SCRIPT = """
set -e
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y --no-install-recommends -o Dir::Cache::archives=/tmp"
test -f /etc/debian_version || test -d /var/lib/dpkg || { echo "no dpkg in this image" >&2; exit 1; }
mkdir -p /var/lib/dpkg/updates /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt /etc/apt
mkdir -p /excise/ours
for name in passwd group; do cp /etc/$name /excise/ours/; cp /excise/host/$name /etc/; done 2>/dev/null || true
$install "$@" || { apt-get update && $install "$@"; }
ldconfig
cp /excise/ours/* /etc/
if [ -d /excise/host ]; then rm -rf /etc/apt /var/lib/apt /var/lib/dpkg /etc/debconf.conf; fi
rm -rf /excise/ours /excise/host /tmp/*.deb /tmp/partial /var/lib/apt/lists /var/log/apt
"""


def install_packages(client: Any, container: str, packages: Sequence[str], *, of_host: bool) -> None:
    """Install packages in a container that is not started yet, and leave it stopped.

    ``of_host``: the image is this host's own system, without what apt knows of it.

    Raises :class:`EnvironmentFailure` (``missing_system_lib``) with the end of what apt said.
    """
    if of_host:
        client.api.put_archive(container, "/", _host_state())
    client.api.start(container)
    line = ["/bin/sh", "-c", _SCRIPT, "sh", *sorted(packages)]
    job = client.api.exec_create(container, line, user="0", environment={"PATH": _PATH, "LC_ALL": "C.UTF-8"})["Id"]
    said = client.api.exec_start(job)
    if client.api.exec_inspect(job)["ExitCode"] != 0:
        raise EnvironmentFailure(
            f"The system packages {', '.join(sorted(packages))} cannot be installed in the sandbox's image: "
            f"{said[-800:].decode(errors='replace').strip()}",
            reason="missing_system_lib",
        )
    client.api.stop(container, timeout=0)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _host_state() -> bytes:
    """An archive of the host's package lists and sources of packages; empty where the host has none of that kind."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name in ("passwd", "group"):  # packages of the host name its users; the sandbox gets its own back
            archive.add(f"/etc/{name}", f"excise/host/{name}")
        for name in _STATE:
            if os.access(name, os.R_OK):
                archive.add(name, name.lstrip("/"), filter=_readable)
    return sink.getvalue()


def _readable(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return info if info.isdir() or os.access(Path("/", info.name), os.R_OK) else None
