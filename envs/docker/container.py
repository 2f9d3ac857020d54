"""What a sandbox's container may do: everything that is not named here, the engine's defaults refuse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.docker.docker_engine import OWNER, is_podman, owner
from excise.protocols import Mount, Policy

INSIDE = Path(__file__).resolve().parent / "inside"
MODULES = ("excise_wire", "excise_command", "excise_places", "excise_init")
"""Programs that make up the first process, each importing only those before it."""
USER = "1000:1000"
OWN_PIDS = 2
"""Processes of ours that count in a container: its first one, and a child of it on its way to become the command."""
BYTES_PER_FILE = 2048
FIXED_PLACES = ("/tmp", "/home/agent", "/dev/shm")
"""Places that may be written in every sandbox, besides its mounts and the results."""
_HIDDEN = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats", "/proc/interrupts", "/sys/firmware", "/sys/kernel", "/sys/devices",
    "/sys/class", "/sys/block", "/sys/bus", "/sys/dev", "/sys/module", "/sys/power", "/sys/hypervisor",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@cache
def first_program() -> str:
    """The program of a container's first process: our modules, one after the other, then their ``main``."""
    texts = [(name, (INSIDE / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return (
        "import sys\n"
        f"for name, text in {texts!r}:\n"
        "    sys.modules[name] = module = type(sys)(name)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        "sys.modules['excise_init'].main()\n"
    )


def create_container(
    client: Any, image: str, mounts: Sequence[Mount], policy: Policy, *, network: str, runtime: str
) -> str:
    """Create a container for one session; its id. It is removed by the engine when its first process ends."""
    writable = [mount.target for mount in mounts if mount.writable]
    api = client.api
    host: dict[str, Any] = api.create_host_config(
        auto_remove=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", *([f"mask={':'.join(_HIDDEN)}"] if is_podman() else ())],
        read_only=True,
        tmpfs=_places(writable, policy),
        binds={mount.layers[0]: {"bind": mount.target, "mode": "ro"} for mount in mounts if mount.live},
        network_mode=network if policy.network else "none",
        pids_limit=policy.pids + OWN_PIDS,
        mem_limit=policy.memory_bytes,
        memswap_limit=policy.memory_bytes,
        nano_cpus=round(policy.cpus * 1e9) if policy.cpus is not None else None,
        ipc_mode="private",
        log_config={"Type": "none", "Config": {}},
        ulimits=process_limits(),
        runtime=runtime or None,
    )
    host |= {"MaskedPaths": list(_HIDDEN), "ReadonlyPaths": list(_READ_ONLY), "OomScoreAdj": 0}
    created = api.create_container(
        image,
        ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-I", "-S", "-c", first_program()],
        hostname="sandbox",
        user=USER,
        working_dir="/",
        stdin_open=True,
        labels={OWNER: owner(), "excise": "session"},
        host_config=host,
    )
    return str(created["Id"])


def _places(writable: Sequence[str], policy: Policy) -> dict[str, str]:
    """A tmpfs for each place that may be written, each no larger than all of them together may grow."""
    sizes = dict.fromkeys([*writable, *FIXED_PLACES], policy.disk_bytes) | {"/excise/out": policy.disk_bytes // 2}
    common = "rw,exec,nosuid,nodev,mode=0777"
    if is_podman():  # version 4 knows no more options
        closed = dict.fromkeys(("/run", "/var/tmp"), "ro,nosuid,nodev,mode=0755,size=4k")  # otherwise it opens them
        return {p: f"{common},size={n}" for p, n in sizes.items()} | closed
    common += ",uid=1000,gid=1000"
    return {p: f"{common},size={n},nr_inodes={max(4096, n // BYTES_PER_FILE)}" for p, n in sizes.items()}


def process_limits() -> list[dict[str, int | str]] | None:
    """For podman: little enough to be granted. It would ask for more, and be refused where it is in a container."""
    if not is_podman():
        return None
    return [{"Name": name, "Soft": most, "Hard": most} for name, most in (("nofile", 4096), ("nproc", 16384))]
