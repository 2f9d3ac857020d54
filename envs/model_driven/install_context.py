"""Opens the sandboxes for one repository: with a network for installing, and without for checking."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_job import InstallRequest
from excise.envs.install.install_sandbox import CACHE, UV, install_environ, install_mounts
from excise.envs.install.uv_runner import BYTE_CODE
from excise.envs.install.variables import VIRTUAL_ENVIRONMENT
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, base_env, open_to_all, project_mounts, system_request
from excise.envs.sandbox.system_root import linked_packages
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Mount, Session
from excise.types import Recipe, Repo, WorkerOutcome

BIN = "/excise/bin"
"""Folder inside the sandbox with ``uv``, and with a ``pip`` that calls uv."""
LOCK = f"{CACHE}/lock.txt"
"""Path of the lock inside the sandbox."""
_SHIMS = {"uv": f'exec {UV} "$@"', "pip": f'exec {UV} pip "$@"', "pip3": f'exec {UV} pip "$@"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallContext:
    """The repository that is installed, and access to its sandboxes."""

    request: InstallRequest
    """Repository, sources, sandbox and limits. Its recipe gives layout, variables, and how tests are run."""
    interpreter: Interpreter
    """The environment's interpreter."""
    relay: IndexRelay
    """Access to the package indexes; the host's index settings and passwords stay outside the sandbox."""
    work: Path
    """Folder for layers; the caller makes and removes it."""

    @property
    def recipe(self) -> Recipe:
        """The planned recipe."""
        return self.request.recipe

    @property
    def repo(self) -> Repo:
        """The repository snapshot."""
        return self.request.repo

    @property
    def sources(self) -> Path:
        """Layer with the pristine sources."""
        return self.request.sources

    def open_installing(
        self, env: Sequence[Path] = (), built: Sequence[Path] = (), lock: Sequence[str] = ()
    ) -> Session:
        """Open a session with a network in which the checkout and the environment can be written.

        ``env`` and ``built`` are layers to start from, topmost first. ``lock`` fixes the versions that are installed.
        """
        recipe = replace(self.recipe, build_network=True)
        mounts = install_mounts(self.interpreter, [*built, self.sources], self.relay, recipe, env)
        variables = install_environ(self.repo, recipe, self.relay)
        variables["PATH"] = f"{BIN}:{variables['PATH']}"
        if self.recipe.cutoff:
            variables["UV_EXCLUDE_NEWER"] = self.recipe.cutoff
        if lock:
            variables["UV_CONSTRAINT"] = LOCK
        mounts.append(Mount(target=BIN, layers=(str(self._shims()),)))
        session = self._open(mounts, variables, self.recipe.system_packages, network=True)
        if lock:
            session.put(LOCK, "".join(f"{line}\n" for line in lock).encode())
        return session

    def run_line(self, session: Session, line: str, timeout_s: float) -> Completed:
        """Run a bash line in an installing session, with access to the package indexes."""
        argv = ("/bin/bash", "-c", f"set -euo pipefail\n{line}")
        return session.exec(self.relay.command(str(self.interpreter.executable), argv), timeout_s=timeout_s)

    def open_checking(self, env: Sequence[Path], built: Sequence[Path] = (), extra: Sequence[Mount] = ()) -> Session:
        """Open a session like those of test runs: without a network, with a read-only environment.

        Byte code is kept as long as the session: its commands start the same programs again and again.
        """
        mounts = project_mounts(self.interpreter, [*built, self.sources], env)
        mounts.append(Mount(target=OUTPUTS, layers=(), writable=True))
        variables = base_env(VIRTUAL_ENVIRONMENT) | BYTE_CODE | dict(self.recipe.env)
        packages = (*self.recipe.system_packages, *linked_packages([*env, *built]))
        return self._open([*mounts, *extra], variables, packages, network=False)

    def _open(
        self, mounts: Sequence[Mount], variables: Mapping[str, str], packages: Sequence[str], *, network: bool
    ) -> Session:
        policy = replace(self.request.policy, network=network)
        system = system_request(self.interpreter, packages, building=network)
        return self.request.sandbox.open(mounts, policy, env=variables, system=system)

    def new_layer(self, name: str) -> Path:
        """Make a folder for a layer."""
        folder = Path(tempfile.mkdtemp(dir=self.work, prefix=f"{name}-"))
        folder.chmod(0o755)
        return folder

    def bare_environment(self) -> Path:
        """Make a layer with an environment that holds only the interpreter."""
        layer = self.new_layer("bare")
        with self.open_installing() as session:
            make_venv(session, self.interpreter)
            session.snapshot(ENV, layer)
        return layer

    def _shims(self) -> Path:
        folder = self.work / "bin"
        if not folder.is_dir():
            folder.mkdir()
            for name, line in _SHIMS.items():
                (folder / name).write_text(f"#!/bin/sh\n{line}\n")
                (folder / name).chmod(0o755)
            open_to_all(folder)
        return folder


def make_venv(session: Session, interpreter: Interpreter) -> None:
    """Make the environment's folder a virtual environment. Raises :class:`EnvironmentFailure` (``infra``)."""
    command = [UV, "venv", "--quiet", "--allow-existing", "--no-project", "--python", str(interpreter.executable), ENV]
    done = session.exec(command, timeout_s=120.0)
    if done.worker is not WorkerOutcome.OK or done.rc != 0:
        detail = done.stderr.decode(errors="replace").strip()[-500:]
        raise EnvironmentFailure(f"Python {interpreter.version} makes no environment: {detail}", reason="infra")
