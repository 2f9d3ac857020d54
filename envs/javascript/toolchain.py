"""The toolchain of JavaScript: packages of npm beside Debian's node; see :class:`excise.envs.toolchains.Toolchain`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.envs.interpreters import find_interpreters, interpreter_of
from excise.envs.javascript.loaded_packages import drop_unloaded, loaded_packages
from excise.envs.javascript.npm import NODE_PACKAGE, install_lock, link_programs, node_version, resolve
from excise.envs.javascript.package_manifest import read_project
from excise.envs.packed_image import packed_image
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, open_to_all
from excise.errors import EnvironmentFailure
from excise.protocols import TaskImage
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Recipe, Repo, SourceSpec, content_id, from_json, to_dict, to_json

VERSION = 9
"""Part of every cache key. Raise it when the same recipe would give a different environment."""
_IN_NODE = frozenset({"acorn", "acorn-walk", "amaro", "cjs-module-lexer", "minimatch", "undici"})
"""Packages that node itself holds, as sources in its program: every sandbox would show them."""
_RUNNERS = ("tape", "tap", "mocha", "jest", "vitest")
"""Packages of test runners."""
_SMALL = frozenset({"tape", "tap"})
"""Those of which test files load a part."""
_COMPILERS = ("typescript", "tsx", "ts-node", "ts-jest")
_NODE = "node"
"""Name of the lock's line with the version of node."""


class JavaScriptToolchain:
    """Environments of JavaScript projects.

    A recipe's ``requirements`` are ``name@range``, a lock's lines ``PATH==VERSION``, with paths inside
    ``node_modules``, and ``node==VERSION``. Node finds the packages by ``NODE_PATH``.
    """

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:
        """The packages that the manifest names and that sources or tests import. Raises :class:`EnvironmentFailure`."""
        node_version()
        project = read_project(root)
        if project.name in _IN_NODE:
            raise EnvironmentFailure(
                f"node holds the sources of {project.name} itself.", reason="part_of_the_toolchain"
            )
        interpreters = find_interpreters()
        own = [each for each in interpreters if each.prefix.is_relative_to("/usr")] or interpreters
        return Recipe(
            python=own[-1].version,
            requirements=(*(f"{name}@{wanted}" for name, wanted in project.packages.items()), *spec.requirements),
            editable="path",
            env=(("NODE_PATH", f"{ENV}/node_modules"),),
            test_args=(*project.options, *spec.test_args),
            test_paths=project.tests,
            system_packages=(NODE_PACKAGE,),
            cutoff=cutoff,
            evidence=project.evidence,
        )

    def install(
        self,
        request: InstallRequest,
        *,
        missing_modules: MissingModules | None = None,
        previous: Environment | None = None,
    ) -> Installed:
        """Find a lock, and install from it alone. Raises :class:`EnvironmentFailure`."""
        open_to_all(request.sources)
        node = node_version()
        recipe = request.recipe if previous is None else previous.recipe
        if previous is not None:
            _require_node(previous, node)
        inputs = to_dict(recipe) if previous is None else [to_dict(recipe), previous.lock, previous.hashes]
        system = system_identity(request.sandbox)
        envs = request.cache / "envs"
        folder = envs / content_id("install", "javascript", VERSION, request.repo.tree, inputs, node, system)
        with folder_lock(folder):
            if not (folder / "environment.json").is_file():
                with temporary_folder_beside(folder) as work:
                    _install(request, recipe, previous, node, work)
                    shutil.rmtree(folder, ignore_errors=True)
                    publish_folder(work / "final", folder)
        environment = from_json(Environment, (folder / "environment.json").read_bytes())
        return Installed(environment=environment, env_layer=folder / "env", built_layer=folder / "built")

    def outputs(self, cache: Path, installed: Installed) -> Path:
        """An empty layer: sources are what runs."""
        return _empty(cache)

    def tools(self, cache: Path, installed: Installed) -> Path:
        """An empty layer."""
        return _empty(cache)

    def variables(self) -> Mapping[str, str]:
        """None besides the recipe's."""
        return {}

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """Those of node, and of the test runners and compilers that are installed."""
        lock = dict(line.rpartition("==")[::2] for line in environment.lock)
        return {name: lock[name] for name in (_NODE, *_RUNNERS, *_COMPILERS) if name in lock}

    def image(
        self, repo: Repo, environment: Environment, sources: Path, layers: Callable[[], Mapping[str, Path]]
    ) -> TaskImage:
        """An image that holds the installed layers."""
        return packed_image(repo, environment, sources, layers())


def _empty(cache: Path) -> Path:
    folder = cache / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _require_node(previous: Environment, node: str) -> None:
    """Raise :class:`EnvironmentFailure` if an environment was made for another major version of node."""
    made_for = next((line.partition("==")[2] for line in previous.lock if line.startswith(f"{_NODE}==")), node)
    if made_for.partition(".")[0] != node.partition(".")[0]:
        raise EnvironmentFailure(
            f"The environment is for node {made_for}, this machine has {node}.", reason="toolchain_unavailable"
        )


def _install(request: InstallRequest, recipe: Recipe, previous: Environment | None, node: str, work: Path) -> None:
    """Make the layers and the record below ``work / "final"``."""
    began = time.monotonic()
    cache, timeout_s = request.cache / "npm", request.timeout_s
    final, own = work / "final", f"{_NODE}=="
    if previous is None:
        packages = dict(each.rpartition("@")[::2] for each in recipe.requirements)
        trial = _new(work / "trial")
        lock, hashes = resolve(packages, trial, cache, timeout_s) if packages else ((), {})
    else:
        lock = tuple(line for line in previous.lock if not line.startswith(own) or line in previous.hashes)
        hashes = previous.hashes
    built = install_lock(lock, hashes, _new(work / "locked"), cache, timeout_s)
    env = _new(_new(final) / "env")
    built.rename(env / "node_modules")
    if (env / "node_modules" / "tap").is_dir():
        names = (each.rpartition("@")[0] for each in recipe.requirements)
        drop_unloaded(env / "node_modules", "tap", [name for name in names if name != "tap"])
    _remove_copies(env / "node_modules", request, lock)
    programs = _new(env / "bin")
    (programs / "python").symlink_to(interpreter_of(recipe.python).executable)
    (programs / "node").symlink_to("/usr/bin/node")
    link_programs(env / "node_modules", programs)
    open_to_all(env)
    _new(final / "built")
    lines = tuple(sorted({*lock, f"{own}{node}"}))
    shared = content_id("npm", VERSION, lines, hashes)
    environment = Environment(
        env_id=content_id("environment", request.repo.tree, to_dict(recipe), lines, hashes),
        repo=request.repo.repo,
        tree=request.repo.tree,
        recipe=recipe,
        lock=lines,
        hashes=dict(hashes),
        shared_id=shared,
        install_s=round(time.monotonic() - began, 3),
    )
    (final / "environment.json").write_bytes(to_json(environment, indent=2))


def _remove_copies(modules: Path, request: InstallRequest, lock: tuple[str, ...]) -> None:
    """Delete installed copies of the project itself, which dependants bring: they hold what tasks delete.

    Raises :class:`EnvironmentFailure` (``installs_itself``) if the test runner needs one.
    """
    name = _name_of(request.sources / "package.json")
    copies = [path for path in modules.rglob("node_modules/" + name) if name] + ([modules / name] if name else [])
    aliased = (line.partition("==npm:") for line in lock if "==npm:" in line)
    copies += [modules / path for path, _, other in aliased if name and other.rpartition("@")[0] == name]
    for path in copies:
        if path.is_dir():
            runner = next((each for each in _RUNNERS if _is_required(modules, each, name)), "")
            if runner:
                raise EnvironmentFailure(
                    f"The test runner {runner} itself needs {name}: a copy of the project would have to be installed.",
                    reason="installs_itself",
                )
            shutil.rmtree(path)


def _name_of(manifest: Path) -> str:
    try:
        found = json.loads(manifest.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return ""
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) and ".." not in name and not name.startswith("/") else ""


def _is_required(modules: Path, runner: str, name: str) -> bool:
    """Whether a test runner needs a package, itself or by one that it needs; tape, tap: apart from their commands."""
    if not (modules / runner).is_dir():
        return False
    if runner in _SMALL:
        return name in loaded_packages(modules, runner)
    queue = [runner]
    found: set[str] = set()
    while queue:
        package = queue.pop()
        if package not in found:
            found.add(package)
            queue += _dependencies(modules / package / "package.json")
    return name in found


def _dependencies(manifest: Path) -> list[str]:
    try:
        found = json.loads(manifest.read_text(encoding="utf-8")).get("dependencies", {})
    except (OSError, ValueError, AttributeError):
        return []
    return [str(name) for name in found] if isinstance(found, dict) else []


def _new(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o755)
    return path


TOOLCHAIN = JavaScriptToolchain()
"""The toolchain of the language."""
