"""Builds the environment of a recipe of bash commands, in a fresh sandbox."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.import_check import check_imports
from excise.envs.install.install import with_linked_packages
from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.layer_contents import link_scripts, prune_built_layer, remove_vendored_copies
from excise.envs.interpreters import interpreter_of
from excise.envs.model_driven.checkout_integrity import require_no_unowned_modules, require_pristine
from excise.envs.model_driven.goals import describe_end, output_of
from excise.envs.model_driven.install_context import InstallContext, make_venv
from excise.envs.model_driven.mock_files import put_mocks
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, REPO, open_to_all
from excise.errors import EnvironmentFailure
from excise.protocols import Session
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Repo, WorkerOutcome, content_id, from_json, to_dict, to_json

VERSION = 1
"""Part of the cache key. Raise it when the same recipe would give a different environment."""


def install_commands(request: InstallRequest, lock: Sequence[str] = ()) -> Installed:
    """Run the commands of a recipe in a fresh sandbox and an empty environment, or take the result from the cache.

    ``lock``, if given, fixes the version of everything that is installed.

    Raises :class:`EnvironmentFailure`: ``unreproducible`` (a command fails), ``source_modified``, ``import_error``
    (the packages do not come from the checkout), ``timeout``, ``oom``, ``infra``.
    """
    open_to_all(request.sources)
    interpreter = interpreter_of(request.recipe.python)
    platform = (interpreter.version, uv_version(), *system_identity(request.sandbox))
    inputs = (request.repo.tree, to_dict(request.recipe), platform, lock)
    folder = request.cache / "envs" / content_id("commands", VERSION, *inputs)
    record = folder / "environment.json"
    with folder_lock(folder):
        if not record.is_file():
            with temporary_folder_beside(folder) as work, IndexRelay(request.cache) as relay:
                context = InstallContext(request=request, interpreter=interpreter, relay=relay, work=work / "work")
                final = work / "final"
                for part in (context.work, final):
                    part.mkdir(mode=0o755)
                environment = _make(context, final / "env", final / "built", lock)
                (final / "environment.json").write_bytes(to_json(environment, indent=2))
                shutil.rmtree(folder, ignore_errors=True)
                publish_folder(final, folder)
    return Installed(
        environment=from_json(Environment, record.read_bytes()),
        env_layer=folder / "env",
        built_layer=folder / "built",
    )


def _make(context: InstallContext, env: Path, built: Path, lock: Sequence[str]) -> Environment:
    began = time.monotonic()
    with context.open_installing(lock=lock) as session:
        make_venv(session, context.interpreter)
        put_mocks(session, context.interpreter, context.recipe.mocks)
        for line in context.recipe.commands:
            _run_line(context, session, line, began + context.request.timeout_s)
        frozen = freeze(session, context.repo)
        session.snapshot(ENV, env)
        session.snapshot(REPO, built)
    require_pristine(built, context.sources, context.repo.repo)
    files = prune_built_layer(built, context.sources)
    copies = remove_vendored_copies(env, context.recipe.packages)
    link_scripts(env, context.sources)
    require_no_unowned_modules(env, built, context)
    _require_checkout(context, env, built)
    recipe = with_linked_packages(context.recipe, [env, built])
    if copies:
        line = f"environment: removed vendored copies of the project: {', '.join(copies)}"
        recipe = replace(recipe, evidence=(*recipe.evidence, line))
    parts = (context.repo.tree, to_dict(recipe), context.interpreter.version, frozen, files)
    return Environment(
        env_id=content_id("environment", *parts),
        repo=context.repo.repo,
        tree=context.repo.tree,
        recipe=recipe,
        lock=frozen,
        stage="model",
        built_files=files,
        install_s=round(time.monotonic() - began, 1),
    )


def _run_line(context: InstallContext, session: Session, line: str, deadline: float) -> None:
    remaining_s = deadline - time.monotonic()
    done = context.run_line(session, line, remaining_s) if remaining_s > 0 else None
    if done is None or done.worker is WorkerOutcome.TIMEOUT:
        raise EnvironmentFailure(f"{context.repo.repo}: the recipe ran out of time in `{line[:200]}`", reason="timeout")
    if done.worker is WorkerOutcome.OK and done.rc == 0:
        return
    unreachable = done.worker is WorkerOutcome.OK and bool(context.relay.failures)
    reason = (
        "infra"
        if unreachable
        else {WorkerOutcome.OK: "unreproducible", WorkerOutcome.OOM: "oom"}.get(done.worker, "infra")
    )
    raise EnvironmentFailure(
        f"{context.repo.repo}: run again from nothing, a command of the recipe fails [{describe_end(done)}]: "
        f"{line[:300]}\n{output_of(done).strip()[-1500:]}",
        reason=reason,
    )


def freeze(session: Session, repo: Repo) -> tuple[str, ...]:
    """``name==version`` of everything installed except the project, sorted."""
    done = session.exec(["/excise/uv", "pip", "freeze", "--python", f"{ENV}/bin/python"], timeout_s=120.0)
    if done.worker is not WorkerOutcome.OK or done.rc != 0:
        raise EnvironmentFailure(
            f"{repo.repo}: what is installed cannot be listed: {output_of(done)[-300:]}", reason="unreproducible"
        )
    lines = (line.strip() for line in done.stdout.decode(errors="replace").splitlines())
    return tuple(sorted(line for line in lines if re.fullmatch(r"[A-Za-z0-9][\w.-]*==\S+", line)))


def _require_checkout(context: InstallContext, env: Path, built: Path) -> None:
    """Require that the packages import from the checkout and that the environment holds no copy of them."""
    repo, packages = context.repo.repo, context.recipe.packages
    if copies := _copies(env, packages, context.interpreter.minor):
        raise EnvironmentFailure(
            f"{repo}: {', '.join(copies)} is installed as a copy of its own in place of the checkout. Install the "
            "checkout itself: pip install -e .",
            reason="import_error",
        )
    request = context.request
    layers = [built, request.sources]
    found = check_imports(request.sandbox, request.policy, context.interpreter, request.recipe, layers, env)
    if found.elsewhere:
        raise EnvironmentFailure(
            f"{repo}: {', '.join(found.elsewhere)} is imported from outside the checkout. Install the checkout itself: "
            "pip install -e .",
            reason="import_error",
        )
    if packages and len(found.errors) == len(packages):
        detail = "; ".join(f"{name}: {error}" for name, error in found.errors.items())
        raise EnvironmentFailure(f"{repo}: {detail}", reason="import_error")


def _copies(env: Path, packages: Sequence[str], minor: tuple[int, int]) -> list[str]:
    """Packages whose source files are in the environment's ``site-packages``."""
    library = env / "lib" / f"python{minor[0]}.{minor[1]}" / "site-packages"
    paths = {name: library / name.replace(".", "/") for name in packages}
    return [n for n, p in paths.items() if p.with_name(f"{p.name}.py").exists() or next(p.rglob("*.py"), None)]
