"""What the toolchains share that come from Debian's packages and keep what they build beside the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.interpreters import Interpreter, find_interpreters
from excise.envs.packed_image import packed_image
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, TaskImage
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Repo, WorkerOutcome, from_json

RECORD = "environment.json"
"""File with the record of an environment, in its folder."""


class DebianToolchain:
    """A part of :class:`excise.envs.toolchains.Toolchain`: the layers lie beside each other in one folder."""

    def outputs(self, cache: Path, installed: Installed) -> Path:  # noqa: ARG002
        """What was built of others' code, and excise's own programs."""
        return installed.env_layer.parent / "outputs"

    def tools(self, cache: Path, installed: Installed) -> Path:  # noqa: ARG002
        """None."""
        return installed.env_layer.parent / "tools"

    def variables(self) -> Mapping[str, str]:
        """None besides those of the recipe."""
        return {}

    def image(
        self, repo: Repo, environment: Environment, sources: Path, layers: Callable[[], Mapping[str, Path]]
    ) -> TaskImage:
        """An image that holds the installed layers."""
        return packed_image(repo, environment, sources, layers())


def install_once(
    request: InstallRequest,
    previous: Environment | None,
    key: str,
    fill: Callable[[Path], None],
    *,
    what: str,
) -> Installed:
    """The environment of a cache key: made by ``fill`` in an empty folder, unless it is there.

    ``what`` is what the lock names. Raises :class:`EnvironmentFailure`, ``unreproducible`` if the lock is not that of
    ``previous``.
    """
    folder = request.cache / "envs" / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_lock(folder):
        if not (folder / RECORD).is_file():
            with temporary_folder_beside(folder) as work:
                final = work / "final"
                final.mkdir(mode=0o755)
                fill(final)
                publish_folder(final, folder)
    environment = from_json(Environment, (folder / RECORD).read_bytes())
    if previous is not None and (previous.lock, previous.hashes) != (environment.lock, environment.hashes):
        raise EnvironmentFailure(
            f"{request.repo.repo}: Debian's packages on this machine give other {what} than the lock names: "
            f"{', '.join(environment.lock)} instead of {', '.join(previous.lock)}.",
            reason="unreproducible",
        )
    return Installed(environment=environment, env_layer=folder / "env", built_layer=folder / "built")


def require_version(found: str, wanted: str) -> None:
    """Raise :class:`EnvironmentFailure` (``toolchain_unavailable``) unless this machine has the wanted version."""
    if found != wanted:
        raise EnvironmentFailure(
            f"The environment needs {wanted}, and this machine has {found}.", reason="toolchain_unavailable"
        )


def own_interpreter() -> Interpreter:
    """The interpreter of excise's programs: the system's, which every sandbox has, else the newest.

    Raises :class:`EnvironmentFailure` (``python_unavailable``).
    """
    found = find_interpreters()
    ours = [each for each in found if each.prefix == Path("/usr")]
    if not found:
        raise EnvironmentFailure("No Python for excise's own programs was found.", reason="python_unavailable")
    return (ours or list(found))[-1]


def version_numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, to compare it."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:3])


def require_done(done: Completed, what: str) -> None:
    """Raise :class:`EnvironmentFailure` (``timeout``, ``missing_dependency``) unless a command ended well."""
    if done.worker is WorkerOutcome.OK and done.rc == 0:
        return
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-1500:]
    reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT else "missing_dependency"
    raise EnvironmentFailure(f"{what}.\n{said}", reason=reason)
