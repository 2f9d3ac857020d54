"""The Docker sandbox: sessions in containers, for machines whose container engine is preferred to bubblewrap.

There is one image per environment and none per task. Commands run under an unprivileged uid without capabilities and
without network, in a read-only root with writable folders of limited size, under the engine's filter of system calls
and excise's own. podman offers the same interface (``podman system service``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from excise.config import DockerSettings
from excise.envs.docker.base_image import HOST
from excise.envs.docker.container import ContainerRequest
from excise.envs.docker.docker_engine import INSTALL, connect, engine_errors, remove_orphaned_containers
from excise.envs.docker.docker_session import DockerSession
from excise.envs.docker.images import environment_image, packages_to_install
from excise.envs.sandbox.limits import require_limits
from excise.envs.sandbox.seccomp import filter_program
from excise.envs.sandbox.system_root import usr_mounts
from excise.errors import SandboxError
from excise.protocols import Capabilities, ForkServer, Mount, Policy, Session, SystemRequest
from excise.system.process_identity import remove_orphaned_folders

ADVICE = "See `docker info` for what the engine's kernel and control groups lack."


class DockerSandbox:
    """Sessions in containers; see :class:`excise.protocols.Sandbox`."""

    name = "docker"

    def __init__(self, settings: DockerSettings | None = None, *, lenient: bool = False) -> None:
        self.settings, self.lenient = settings or DockerSettings(), lenient

    def capabilities(self) -> Capabilities:
        """What the engine reports that it can enforce. Not tested: a session may first have to make a large image."""
        try:
            info = engine_info()
            remove_leftovers()
        except SandboxError as error:
            return Capabilities(available=False, detail=str(error).removesuffix(INSTALL).strip(), advice=INSTALL)
        how = enforced_limits(self.settings.runtime)
        return Capabilities(
            available=True,
            detail=f"engine {info['ServerVersion']}, {info['Driver']}, base image {self.settings.base_image}",
            how=how,
            snapshot=True,
            system_packages=True,
            advice="" if {"memory", "pids", "cpus"} <= set(how) else ADVICE,
        )

    def system(self) -> str:
        """The base image, to which system packages may be added."""
        return f"docker:{self.settings.base_image}"

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
        system: SystemRequest | None = None,
        fork_server: ForkServer | None = None,  # noqa: ARG002
    ) -> Session:
        """Open a session in a container of its own; makes the environment's image if the engine lacks it.

        There are no fork servers in containers.
        """
        client = connect()
        system = system or SystemRequest()
        lenient = policy.lenient or self.lenient
        require_limits(policy, enforced_limits(self.settings.runtime), self.name, ADVICE, lenient=lenient)
        remove_leftovers()
        network = self.settings.network or network_of(client)
        shown = self._shown(mounts, system)
        image = environment_image(client, self.settings.base_image, shown, system, network)
        container = ContainerRequest(
            image=image, mounts=shown, policy=policy, network=network, runtime=self.settings.runtime
        )
        session = DockerSession(client, container, env=env, cwd=cwd, edits=edits or {})
        reopen = functools.partial(self.open, policy=policy, env=env, cwd=cwd, system=system)
        session.enable_forking(mounts, reopen)
        return session

    def _shown(self, mounts: Sequence[Mount], system: SystemRequest) -> list[Mount]:
        """The mounts of a session. What an installation only reads is shown as it is on this host, without an image:
        it sees the whole ``/usr``, as in bubblewrap's sandboxes, unless packages must be added to it."""
        base = self.settings.base_image
        if base != HOST or not system.building or packages_to_install(base, system):
            return list(mounts)
        everything = [*usr_mounts(system), *mounts]
        return [replace(m, live=True) if len(m.layers) == 1 and not m.writable else m for m in everything]


@cache
def engine_info() -> dict[str, Any]:
    """The engine's description of itself; queried once per process."""
    client = connect()
    with engine_errors("The Docker engine does not say what it can do"):
        return dict(client.info())


@cache
def remove_leftovers() -> int:
    """Remove containers and result folders of processes that have ended; runs once per process. Return how many."""
    return remove_orphaned_containers() + remove_orphaned_folders("out")


def network_of(client: Any) -> str:
    """The network for installations: the engine's own, or the host's if it has none."""
    with engine_errors("The engine does not list its networks"):
        names = {network["Name"] for network in client.api.networks()}
    return next((name for name in ("bridge", "podman") if name in names), "host")


def enforced_limits(runtime: str) -> dict[str, str]:
    """Limit to the mechanism by which the engine enforces it."""
    info = engine_info()
    found = {
        "network_off": "a network namespace",
        "disk": "a tmpfs for each place, and a look at all of them every 100 ms",
        "separate_uid": "uid 1000, mapped by the engine where it is set up so",
    }
    found |= {
        name: "a control group"
        for name, key in (("memory", "MemoryLimit"), ("pids", "PidsLimit"), ("cpus", "CpuCfsQuota"))
        if info.get(key)
    }
    if filter_program():
        found["syscalls"] = "the engine's seccomp filter and our own"
    if runtime in {"runsc", "kata", "kata-runtime"}:
        found["kernel"] = runtime
    return found
