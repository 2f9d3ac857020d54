"""Creates the container of a session, with the limits of its policy and without any privilege."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.docker.docker_engine import OWNER, is_podman, owner
from excise.protocols import Mount, Policy

INSIDE = Path(__file__).resolve().parent / "inside"
MODULES = ("excise_messages", "excise_command", "excise_folders", "excise_init")
"""Modules of the first process; each imports only those before it."""
USER = "1000:1000"
OWN_PIDS = 2
"""Processes of excise that count in a container: the first one, and its child before it executes the command."""
BYTES_PER_FILE = 2048
"""A tmpfs of n bytes may hold n / 2048 files."""
FIXED_WRITABLE_FOLDERS = ("/tmp", "/home/agent", "/dev/shm")
"""Folders that are writable in every sandbox, besides its mounts and the results folder."""
_HIDDEN = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats", "/proc/interrupts", "/sys/firmware", "/sys/kernel", "/sys/devices",
    "/sys/class", "/sys/block", "/sys/bus", "/sys/dev", "/sys/module", "/sys/power", "/sys/hypervisor",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@cache
def first_program() -> str:
    """Source of the first process: defines all its modules, and calls the last one's ``main``."""
    texts = [(name, (INSIDE / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return (
        "import sys\n"
        f"for name, text in {texts!r}:\n"
        "    sys.modules[name] = module = type(sys)(name)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        "sys.modules['excise_init'].main()\n"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """What the container of one session is made of."""

    image: str
    """The image of the environment."""
    mounts: Sequence[Mount]
    """The mounts of the session; those that are neither live nor writable are in the image."""
    policy: Policy
    """Resource limits."""
    network: str
    """The engine's network, used if the policy admits one."""
    runtime: str
    """The container runtime; empty for the engine's default."""

    @property
    def writable(self) -> list[str]:
        """Paths of the writable mounts."""
        return [mount.target for mount in self.mounts if mount.writable]


def create_container(client: Any, request: ContainerRequest) -> str:
    """Create a container for one session and return its id. The engine removes it when its first process ends."""
    api, policy = client.api, request.policy
    host: dict[str, Any] = api.create_host_config(
        auto_remove=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", *([f"mask={':'.join(_HIDDEN)}"] if is_podman() else ())],
        read_only=True,
        tmpfs=_writable_folders(request.writable, policy) | _masks(request.mounts),
        binds={mount.layers[0]: {"bind": mount.target, "mode": "ro"} for mount in request.mounts if mount.live},
        network_mode=request.network if policy.network else "none",
        pids_limit=policy.pids + OWN_PIDS,
        mem_limit=policy.memory_bytes,
        memswap_limit=policy.memory_bytes,
        nano_cpus=round(policy.cpus * 1e9) if policy.cpus is not None else None,
        ipc_mode="private",
        log_config={"Type": "none", "Config": {}},
        ulimits=process_limits(),
        runtime=request.runtime or None,
    )
    host |= {"MaskedPaths": list(_HIDDEN), "ReadonlyPaths": list(_READ_ONLY), "OomScoreAdj": 0}
    created = api.create_container(
        request.image,
        ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-I", "-S", "-c", first_program()],
        hostname="sandbox",
        user=USER,
        working_dir="/",
        stdin_open=True,
        labels={OWNER: owner(), "excise": "session"},
        host_config=host,
    )
    return str(created["Id"])


def _writable_folders(writable: Sequence[str], policy: Policy) -> dict[str, str]:
    """Options of a tmpfs for each writable folder. Each may grow to the limit of all; the sum is checked inside."""
    sizes = dict.fromkeys([*writable, *FIXED_WRITABLE_FOLDERS], policy.disk_bytes)
    sizes["/excise/out"] = policy.disk_bytes // 2
    common = "rw,exec,nosuid,nodev,mode=0777"
    if is_podman():  # version 4 supports no further options
        # podman would make these two folders writable.
        closed = dict.fromkeys(("/run", "/var/tmp"), "ro,nosuid,nodev,mode=0755,size=4k")
        return {p: f"{common},size={n}" for p, n in sizes.items()} | closed
    common += ",uid=1000,gid=1000"
    return {p: f"{common},size={n},nr_inodes={max(4096, n // BYTES_PER_FILE)}" for p, n in sizes.items()}


def _masks(mounts: Sequence[Mount]) -> dict[str, str]:
    """Options of an empty tmpfs over each folder of a live mount that must be empty; elsewhere the image's is."""
    live = tuple(f"{mount.target}/" for mount in mounts if mount.live)
    hidden = (mount.target for mount in mounts if not mount.layers and not mount.writable)
    return {path: "ro,nosuid,nodev,mode=0755,size=4k" for path in hidden if path.startswith(live)}


def process_limits() -> list[dict[str, int | str]] | None:
    """Process limits for podman, None for other engines.

    podman's own defaults are so high that they are refused where podman itself runs in a container.
    """
    if not is_podman():
        return None
    return [{"Name": name, "Soft": most, "Hard": most} for name, most in (("nofile", 4096), ("nproc", 16384))]
