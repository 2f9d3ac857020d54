"""Opens the sandboxes of one repository: for installing, with the network on, and for checking, with it off."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_sandbox import CACHE, UV, install_environ, install_mounts
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, base_env, open_to_all, project_mounts
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Mount, Policy, Sandbox, Session
from excise.types import Recipe, Repo, Worker

BIN = "/excise/bin"
"""``uv``, and a ``pip`` that is uv's."""
LOCK = f"{CACHE}/lock.txt"
_SHIMS = {"uv": f'exec {UV} "$@"', "pip": f'exec {UV} pip "$@"', "pip3": f'exec {UV} pip "$@"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One repository, and how its sandboxes are opened."""

    sandbox: Sandbox
    """Backend."""
    policy: Policy
    """Limits; the network is switched here."""
    interpreter: Interpreter
    """What the environment is made with."""
    repo: Repo
    """The snapshot."""
    recipe: Recipe
    """What was planned without a model: layout, variables, how tests are run."""
    sources: Path
    """Layer with the pristine sources."""
    relay: IndexRelay
    """The way to the package indexes: what the host knows of them, passwords too, stays outside."""
    work: Path
    """Folder for layers, emptied by its owner."""

    def installing(self, env: Sequence[Path] = (), built: Sequence[Path] = (), lock: Sequence[str] = ()) -> Session:
        """A session with the network on in which checkout and environment can be written.

        ``env`` and ``built`` are layers to start from, topmost first. ``lock`` binds the versions of what is installed.
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
        session = self._open(mounts, variables, network=True)
        if lock:
            session.put(LOCK, "".join(f"{line}\n" for line in lock).encode())
        return session

    def install(self, session: Session, line: str, timeout_s: float) -> Completed:
        """Run a bash line in an installing session, with the package indexes within reach."""
        argv = ("/bin/bash", "-c", f"set -euo pipefail\n{line}")
        return session.exec(self.relay.command(str(self.interpreter.executable), argv), timeout_s=timeout_s)

    def checking(self, env: Sequence[Path], built: Sequence[Path] = (), extra: Sequence[Mount] = ()) -> Session:
        """A session as tests get it: no network, a read-only environment."""
        mounts = project_mounts(self.interpreter, [*built, self.sources], env)
        variables = base_env() | dict(self.recipe.env)
        return self._open([*mounts, *extra], variables, network=False)

    def _open(self, mounts: Sequence[Mount], variables: Mapping[str, str], *, network: bool) -> Session:
        policy = replace(self.policy, network=network)
        return self.sandbox.open(mounts, policy, env=variables, system_packages=self.recipe.system_packages)

    def new_layer(self, name: str) -> Path:
        """A new folder for a layer."""
        folder = Path(tempfile.mkdtemp(dir=self.work, prefix=f"{name}-"))
        folder.chmod(0o755)
        return folder

    def bare(self) -> Path:
        """A layer with an environment that holds nothing but the interpreter."""
        layer = self.new_layer("bare")
        with self.installing() as session:
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
    if done.worker is not Worker.OK or done.rc != 0:
        detail = done.stderr.decode(errors="replace").strip()[-500:]
        raise EnvironmentFailure(f"Python {interpreter.version} makes no environment: {detail}", reason="infra")
