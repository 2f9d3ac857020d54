"""Checks that the project's packages import in the finished environment, from the checkout, without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.envs.install.variables import VIRTUAL_ENVIRONMENT
from excise.envs.interpreters import Interpreter
from excise.envs.sandbox.mount_points import ENV, REPO, base_env, project_mounts, system_request
from excise.envs.sandbox.system_root import linked_packages
from excise.errors import EnvironmentFailure
from excise.protocols import Policy, Sandbox
from excise.types import Recipe, WorkerOutcome

_SCRIPT = """
import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        where = getattr(module, "__file__", None) or (list(getattr(module, "__path__", [])) or [""])[0]
        found[name] = {"file": where}
    except BaseException as error:
        missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
        found[name] = {"error": "%s: %s" % (type(error).__name__, error), "missing": missing}
sys.stdout.write("\\n\\0" + json.dumps(found))
sys.stdout.flush()
import os
os._exit(0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of importing the project's packages."""

    elsewhere: tuple[str, ...] = ()
    """Packages that were imported from outside the checkout."""
    missing: tuple[str, ...] = ()
    """Modules whose absence made an import fail."""
    errors: dict[str, str]
    """Package to the error of its import."""


def check_imports(
    sandbox: Sandbox,
    policy: Policy,
    interpreter: Interpreter,
    recipe: Recipe,
    sources: Sequence[Path],
    environment: Path,
) -> ImportReport:
    """Import every package of the recipe in a fresh session.

    ``sources`` are the layers of the checkout, topmost first; the last one holds the pristine sources.
    Raises :class:`EnvironmentFailure` (``import_error``) if the interpreter ends before it has reported.
    """
    mounts = project_mounts(interpreter, sources, [environment])
    variables = base_env(VIRTUAL_ENVIRONMENT) | dict(recipe.env)
    packages = (*recipe.system_packages, *linked_packages([environment, *sources[:-1]]))
    system = system_request(interpreter, packages)
    with sandbox.open(mounts, policy, env=variables, cwd="/tmp", system=system) as session:
        done = session.exec([f"{ENV}/bin/python", "-c", _SCRIPT, *recipe.packages], timeout_s=120.0)
    _, marker, text = done.stdout.decode(errors="replace").rpartition("\n\0")
    if done.worker is not WorkerOutcome.OK or not marker:
        detail = done.stderr.decode(errors="replace").strip()[-500:]
        raise EnvironmentFailure(
            f"importing {', '.join(recipe.packages)} did not end by itself: {detail}", reason="import_error"
        )
    found: dict[str, dict[str, str | None]] = json.loads(text)
    return ImportReport(
        elsewhere=tuple(n for n, f in found.items() if "file" in f and not str(f["file"]).startswith(f"{REPO}/")),
        missing=tuple(dict.fromkeys(m for f in found.values() if (m := f.get("missing")))),
        errors={n: str(f["error"]) for n, f in found.items() if "error" in f},
    )
