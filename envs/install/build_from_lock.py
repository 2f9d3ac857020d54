"""Builds the layers of an environment from a lock: third-party packages once per lock, the project once per tree.

This also tests the lock: each step runs in a fresh sandbox that holds only the recipe, the lock and the sources, and
the result must have the same files as the environment in which the lock was found.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from excise.envs.install.byte_code_store import ByteCodeStore
from excise.envs.install.install_job import InstallJob, LockedRecipe
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.layer_contents import (
    compose,
    link_scripts,
    missing_files,
    prune_built_layer,
    remove_vendored_copies,
)
from excise.envs.install.uv_runner import BYTE_CODE, PYTHON
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, REPO, open_to_all
from excise.errors import EnvironmentFailure
from excise.system.folders import make_folder_once
from excise.types import content_id

VERSION = 3
"""Part of the cache key. Raise it when the same lock would give different third-party packages."""
IMPORT_TIMEOUT_S = 120.0
"""Wall seconds for importing all third-party packages once."""
_ENTRY_POINTS = "lib/python*/site-packages/*.dist-info/entry_points.txt"
_IMPORT_ALL = """
import importlib, importlib.metadata as metadata
for name in sorted(getattr(metadata, "packages_distributions", dict)()):
    if name.isidentifier():
        try:
            importlib.import_module(name)
        except BaseException:
            pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltLayers:
    """The layers of an environment that was built from a lock."""

    env: Path
    """Layer of ``/opt/env``; files of third-party packages are hard links, shared with other trees."""
    built: Path
    """Layer over the sources."""
    shared_id: str
    """Cache key of the third-party packages."""
    built_files: tuple[str, ...]
    """Files of ``built``."""


def shared_id(job: InstallJob, locked_recipe: LockedRecipe) -> str:
    """Return the cache key of third-party packages: a hash of system, interpreter, uv, lock and build options."""
    recipe = locked_recipe.recipe
    how = (recipe.cutoff, recipe.editable == "legacy", recipe.build_network, recipe.packages)
    where = (*system_identity(job.sandbox), platform.machine(), job.interpreter.version)
    return content_id("third-party", VERSION, where, uv_version(), locked_recipe.lock, locked_recipe.hashes, how)


def build_from_lock(job: InstallJob, locked_recipe: LockedRecipe, work: Path) -> BuiltLayers:
    """Build the layers in the empty folder ``work``.

    Raises :class:`EnvironmentFailure`; ``unreproducible`` if other distributions than the lock's are installed.
    """
    third_party = _third_party(job, locked_recipe)
    own, built, env = work / "own", work / "built", work / "env"
    byte_code = third_party.with_name("pyc")
    with job.open(locked_recipe.recipe, [third_party], byte_code=byte_code) as (session, installer):
        installer.place(locked_recipe.recipe)
        _require_lock(job, locked_recipe, installer.freeze())
        session.snapshot(ENV, own)
        session.snapshot(REPO, built)
        if failure := installer.check_runner():
            raise EnvironmentFailure(f"{job.repo.repo}: {failure.detail}", reason=failure.reason)
    files = prune_built_layer(built, job.sources)
    link_scripts(own, job.sources)
    compose(third_party, own, env)
    shutil.rmtree(own)
    return BuiltLayers(env=env, built=built, shared_id=shared_id(job, locked_recipe), built_files=files)


def _third_party(job: InstallJob, locked_recipe: LockedRecipe) -> Path:
    """Return the layer with the lock's distributions; it is made once for all trees that have this lock.

    Beside it is the layer with their byte code (:func:`third_party_byte_code`), and that of the modules of the standard
    library that they import. No code of a project has run when these are made.
    """

    def make(folder: Path) -> None:
        with job.open(locked_recipe.recipe, with_sources=False) as (session, installer):
            installer.install_lock(locked_recipe.recipe, locked_recipe.lock, locked_recipe.hashes)
            _require_lock(job, locked_recipe, installer.freeze())
            session.snapshot(ENV, folder / "env")
        _compile(job, locked_recipe, folder)
        for part in ("env", "pyc"):
            remove_vendored_copies(folder / part, locked_recipe.recipe.packages)

    folder = _shared_folder(job.envs, shared_id(job, locked_recipe))
    return make_folder_once(folder, make, is_complete=lambda found: (found / "env").is_dir()) / "env"


def _compile(job: InstallJob, locked_recipe: LockedRecipe, folder: Path) -> None:
    """Fill ``pyc`` of a folder of third-party packages, with byte code of other environments as far as there is any.

    pytest's plugins are imported in any case: it compiles them in its own way.
    """
    store = ByteCodeStore(job.envs.with_name("byte-code"), job.interpreter)
    env, known, more = folder / "env", folder / "known", folder / "more"
    known.mkdir()
    sources = store.sources(env)
    if wanted := store.link_known(sources, known):
        with job.open(locked_recipe.recipe, [env], with_sources=False) as (session, _):
            text = "\0".join(wanted).encode()
            session.exec(store.compiler, timeout_s=IMPORT_TIMEOUT_S, cwd="/tmp", stdin=text)
            session.snapshot(OUTPUTS, folder / "compiled")
        store.keep({source: sources[source] for source in wanted}, folder / "compiled")
        store.link_known({source: sources[source] for source in wanted}, known)
        shutil.rmtree(folder / "compiled")
    open_to_all(known)
    if store.has_all_packages(sources, known) and not _has_plugins(env):
        known.rename(folder / "pyc")
        return
    with job.open(locked_recipe.recipe, [env], with_sources=False, byte_code=known) as (session, installer):
        installer.check_runner()  # compiles it; it cannot start yet if the project is one of its requirements
        session.exec([PYTHON, "-c", _IMPORT_ALL], timeout_s=IMPORT_TIMEOUT_S, cwd="/tmp", env=BYTE_CODE)
        session.snapshot(OUTPUTS, more)
    store.note_imported(more)
    compose(known, more, folder / "pyc")
    for part in (known, more):
        shutil.rmtree(part)


def _has_plugins(env: Path) -> bool:
    """Whether an environment has plugins of pytest."""
    return any("[pytest11]" in path.read_text(errors="replace") for path in env.glob(_ENTRY_POINTS))


def third_party_byte_code(envs: Path, identity: str) -> Path:
    """The layer with the byte code of third-party packages; ``identity`` is an environment's ``shared_id``."""
    return _shared_folder(envs, identity) / "pyc"


def _shared_folder(envs: Path, identity: str) -> Path:
    return envs / f"shared-{identity}"


def _require_lock(job: InstallJob, locked_recipe: LockedRecipe, found: tuple[str, ...]) -> None:
    if found != locked_recipe.lock:
        more = sorted({*found} - {*locked_recipe.lock})
        less = sorted({*locked_recipe.lock} - {*found})
        raise EnvironmentFailure(
            f"{job.repo.repo}: rebuilt from its lock, the environment has {', '.join(more) or 'nothing'} "
            f"instead of {', '.join(less) or 'nothing'}.",
            reason="unreproducible",
        )


def require_same_files(job: InstallJob, first: Path, second: Path) -> None:
    """Require that two environments hold files of the same names.

    Raises :class:`EnvironmentFailure` (``unreproducible``) that names some of the files in only one of them.
    """
    gone, new = missing_files(first, second), missing_files(second, first)
    if gone or new:
        some = ", ".join([*(f"-{path}" for path in gone[:5]), *(f"+{path}" for path in new[:5])])
        raise EnvironmentFailure(
            f"{job.repo.repo}: rebuilt from its recipe, the environment lacks {len(gone)} files and has {len(new)} "
            f"others: {some}",
            reason="unreproducible",
        )
