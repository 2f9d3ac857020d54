"""An environment from a recipe of commands alone: a fresh sandbox, an empty environment, nothing of the agent's."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.import_check import check_imports
from excise.envs.install.install_job import Installed
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.layer_contents import prune_built_layer, remove_vendored_twins
from excise.envs.interpreters import interpreter_of
from excise.envs.model_driven.checkout_integrity import require_pristine
from excise.envs.model_driven.goals import output_of, said
from excise.envs.model_driven.install_context import Site, make_venv
from excise.envs.model_driven.mock_files import put_mocks
from excise.envs.model_driven.strays import require_honest
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, REPO, open_to_all
from excise.errors import EnvironmentFailure
from excise.protocols import Policy, Sandbox, Session
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Recipe, Repo, Worker, content_id, from_json, to_dict, to_json

VERSION = 1
"""Raise this when the same recipe would give another environment."""


def carry_out(
    recipe: Recipe,
    sources: Path,
    repo: Repo,
    sandbox: Sandbox,
    policy: Policy,
    cache: Path,
    timeout_s: float,
    lock: Sequence[str] = (),
) -> Installed:
    """Carry out ``recipe.commands``, or take what they made from the cache.

    ``lock``, where it is given, binds the version of everything that is installed.

    Raises :class:`EnvironmentFailure`: ``unreproducible`` (a command fails), ``source_modified``, ``import_error``
    (the packages do not come from the checkout), ``timeout``, ``oom``, ``infra``.
    """
    open_to_all(sources)
    interpreter = interpreter_of(recipe.python)
    where = (interpreter.version, uv_version(), *system_identity(sandbox))
    folder = cache / "envs" / content_id("commands", VERSION, repo.tree, to_dict(recipe), where, lock)
    record = folder / "environment.json"
    with folder_lock(folder):
        if not record.is_file():
            with temporary_folder_beside(folder) as work, IndexRelay(cache) as relay:
                site = Site(
                    sandbox=sandbox, policy=policy, interpreter=interpreter, repo=repo, recipe=recipe, sources=sources,
                    relay=relay, work=work / "work",
                )  # fmt: skip
                final = work / "final"
                for part in (site.work, final):
                    part.mkdir(mode=0o755)
                environment = _make(site, final / "env", final / "built", time.monotonic() + timeout_s, lock)
                (final / "environment.json").write_bytes(to_json(environment, indent=2))
                shutil.rmtree(folder, ignore_errors=True)
                publish_folder(final, folder)
    return Installed(
        environment=from_json(Environment, record.read_bytes()),
        env_layer=folder / "env",
        built_layer=folder / "built",
    )


def _make(site: Site, env: Path, built: Path, deadline: float, lock: Sequence[str]) -> Environment:
    began = time.monotonic()
    with site.installing(lock=lock) as session:
        make_venv(session, site.interpreter)
        put_mocks(session, site.interpreter, site.recipe.mocks)
        for line in site.recipe.commands:
            _run_line(site, session, line, deadline)
        frozen = freeze(session, site.repo)
        session.snapshot(ENV, env)
        session.snapshot(REPO, built)
    require_pristine(built, site.sources, site.repo.repo)
    files = prune_built_layer(built, site.sources)
    twins = remove_vendored_twins(env, site.recipe.packages)
    require_honest(env, built, site)
    _require_checkout(site, env, built)
    recipe = site.recipe
    if twins:
        line = f"environment: removed vendored copies of the project: {', '.join(twins)}"
        recipe = replace(recipe, evidence=(*recipe.evidence, line))
    parts = (site.repo.tree, to_dict(recipe), site.interpreter.version, frozen, files)
    return Environment(
        env_id=content_id("environment", *parts),
        repo=site.repo.repo,
        tree=site.repo.tree,
        recipe=recipe,
        lock=frozen,
        stage="model",
        built_files=files,
        install_s=round(time.monotonic() - began, 1),
    )


def _run_line(site: Site, session: Session, line: str, deadline: float) -> None:
    left = deadline - time.monotonic()
    done = site.install(session, line, left) if left > 0 else None
    if done is None or done.worker is Worker.TIMEOUT:
        raise EnvironmentFailure(f"{site.repo.repo}: the recipe ran out of time in `{line[:200]}`", reason="timeout")
    if done.worker is Worker.OK and done.rc == 0:
        return
    unreachable = done.worker is Worker.OK and bool(site.relay.failures)
    reason = "infra" if unreachable else {Worker.OK: "unreproducible", Worker.OOM: "oom"}.get(done.worker, "infra")
    raise EnvironmentFailure(
        f"{site.repo.repo}: run again from nothing, a command of the recipe fails [{said(done)}]: {line[:300]}\n"
        f"{output_of(done).strip()[-1500:]}",
        reason=reason,
    )


def freeze(session: Session, repo: Repo) -> tuple[str, ...]:
    """``name==version`` of everything installed but the project itself, sorted."""
    done = session.exec(["/excise/uv", "pip", "freeze", "--python", f"{ENV}/bin/python"], timeout_s=120.0)
    if done.worker is not Worker.OK or done.rc != 0:
        raise EnvironmentFailure(
            f"{repo.repo}: what is installed cannot be listed: {output_of(done)[-300:]}", reason="unreproducible"
        )
    lines = (line.strip() for line in done.stdout.decode(errors="replace").splitlines())
    return tuple(sorted(line for line in lines if re.fullmatch(r"[A-Za-z0-9][\w.-]*==\S+", line)))


def _require_checkout(site: Site, env: Path, built: Path) -> None:
    """The packages must import, and from the checkout; a copy of them in the environment is a failure."""
    repo, packages = site.repo.repo, site.recipe.packages
    if copies := _copies(env, packages, site.interpreter.minor):
        raise EnvironmentFailure(
            f"{repo}: {', '.join(copies)} is installed as a copy of its own in place of the checkout. Install the "
            "checkout itself: pip install -e .",
            reason="import_error",
        )
    found = check_imports(site.sandbox, site.policy, site.interpreter, site.recipe, [built, site.sources], env)
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
    """Packages whose source files lie in the environment's own folder."""
    library = env / "lib" / f"python{minor[0]}.{minor[1]}" / "site-packages"
    places = {name: library / name.replace(".", "/") for name in packages}
    return [n for n, at in places.items() if at.with_name(f"{at.name}.py").exists() or next(at.rglob("*.py"), None)]
