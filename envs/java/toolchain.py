"""The toolchain of Java, from Debian's packages; see :class:`excise.envs.toolchains.Toolchain`.

The compiler and the virtual machine come into the sandboxes' ``/usr`` like any system package. The environment's own
layer has the interpreter of excise's programs, the libraries of the project (``lib/*.jar``), and how it is compiled
(``java/project.json``). The layer of build outputs has the launcher of tests and the agent that measures coverage.
Maven and Gradle are not used: a module, with those that it needs, asks for a class path and a compiler.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from excise.envs.debian_archive import DebianArchive
from excise.envs.debian_toolchain import (
    RECORD,
    DebianToolchain,
    install_once,
    own_interpreter,
    require_done,
    require_version,
)
from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.envs.interpreters import Interpreter, interpreter_of
from excise.envs.java.debian_jars import Libraries, agent_jars, find_libraries
from excise.envs.java.project_layout import HIGHEST, ProjectLayout, read_layout
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import (
    ENV,
    INSIDE,
    OUTPUTS,
    REPO,
    base_env,
    open_to_all,
    project_mounts,
    system_request,
)
from excise.envs.sandbox.system_root import debian_packages
from excise.errors import EnvironmentFailure
from excise.protocols import Mount
from excise.types import Environment, Recipe, Repo, SourceSpec, content_id, to_dict, to_json

VERSION = 2
"""Part of every cache key. Raise it when the same recipe would give a different environment."""
PACKAGE = "openjdk-17-jdk-headless"
"""The Debian package with the compiler."""
VARIABLES = {"CLASSPATH": "/opt/env/lib/*"}
"""What agents need to compile by hand."""
_INSIDE = Path(__file__).parents[2] / "extractors" / "java" / "inside"
"""The programs that run in the sandbox."""
_MAX_LEFT_OUT = 0.5
"""Share of a project's test files that may be left out."""


class JavaToolchain(DebianToolchain):
    """Environments of Java projects: of one module, with those that it needs."""

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:  # noqa: ARG002
        """The recipe of a project. Raises :class:`EnvironmentFailure`."""
        packages = debian_packages()
        version, layout = installed_version(packages), read_layout(root)
        if spec.requirements or spec.extras:
            raise EnvironmentFailure("Java projects take no requirements and no extras.", reason="bad_option")
        if layout.release > HIGHEST:
            raise EnvironmentFailure(
                f"{repo.repo} is written in Java {layout.release}, and {PACKAGE} compiles up to {HIGHEST}.",
                reason="toolchain_unavailable",
            )
        libraries = find_libraries(layout, packages, repo, DebianArchive(cache))
        agent_jars(packages)
        return Recipe(
            python=own_interpreter().version,
            requirements=(f"java=={version}",),
            editable="path",
            roots=layout.roots,
            packages=layout.packages,
            env=tuple(sorted(VARIABLES.items())),
            test_paths=layout.test_roots,
            system_packages=(PACKAGE,),
            evidence=(*layout.evidence, f"{PACKAGE}: java {version}", *libraries.evidence),
        )

    def install(
        self,
        request: InstallRequest,
        *,
        missing_modules: MissingModules | None = None,  # noqa: ARG002
        previous: Environment | None = None,
    ) -> Installed:
        """Make the layers, or take them from the cache. Raises :class:`EnvironmentFailure`."""
        recipe = request.recipe if previous is None else previous.recipe
        packages = debian_packages()
        require_version(f"java=={installed_version(packages)}", recipe.requirements[0])
        open_to_all(request.sources)
        layout = read_layout(request.sources)
        libraries = find_libraries(layout, packages, request.repo, DebianArchive(request.cache))
        versions = [f"{jar.package}=={jar.version}" for jar in libraries.jars]
        programs = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_INSIDE.glob("*.java")))).hexdigest()
        parts = (VERSION, programs, request.repo.tree, to_dict(recipe), versions, *system_identity(request.sandbox))

        def fill(final: Path) -> None:
            _install(request, recipe, layout, libraries, final)

        return install_once(request, previous, content_id("install java", *parts), fill, what="libraries")

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """The versions of Java and JUnit."""
        locked = dict(line.split("==", 1) for line in environment.lock)
        return {name: locked[name] for name in ("java", "junit4", "junit5") if name in locked}


def installed_version(packages: DebianPackages | None = None) -> str:
    """Version of the compiler that Debian's packages have on this machine: ``17.0.15+6``.

    Raises :class:`EnvironmentFailure` (``toolchain_unavailable``).
    """
    packages = packages or debian_packages()
    if PACKAGE not in packages.installed:
        raise EnvironmentFailure(
            f"This is a Java project, and this machine has no compiler for it: install Debian's package {PACKAGE} "
            f"(apt-get install -y --no-install-recommends {PACKAGE}), and run again.",
            reason="toolchain_unavailable",
        )
    return re.sub(r"^\d+:|[-~].*$", "", packages.installed[PACKAGE].version)


def _install(request: InstallRequest, recipe: Recipe, layout: ProjectLayout, libraries: Libraries, final: Path) -> None:
    """Fill the folder of an environment: ``env``, ``built``, ``outputs``, ``tools`` and its record."""
    began, packages = time.monotonic(), debian_packages()
    interpreter = interpreter_of(recipe.python)
    for name in ("env", "built", "outputs", "tools", "env/bin", "env/lib", "env/java"):
        (final / name).mkdir(mode=0o755)
    os.symlink(interpreter.executable, final / "env" / "bin" / "python")
    hashes = libraries.write(final / "env" / "lib")
    write_agent(packages, final / "outputs" / "agent.jar")
    open_to_all(final / "outputs")
    answer = _check(request, recipe, interpreter, layout, libraries, final)
    (final / "env" / "java" / "project.json").write_text(json.dumps(answer, indent=1, sort_keys=True) + "\n")
    left_out = sorted(set(answer["left_out"]).difference(libraries.left_out, layout.replacements))
    reasons = [f"{path}: left out, since it does not compile ({answer['reasons'].get(path, '')})" for path in left_out]
    recipe = replace(recipe, evidence=(*recipe.evidence, *reasons))
    locked = {jar.package: f"{jar.package}=={jar.version}" for jar in libraries.jars}
    lock = (recipe.requirements[0], *locked.values())
    parts = (request.repo.tree, to_dict(recipe), interpreter.version, lock, hashes)
    environment = Environment(
        env_id=content_id("environment", *parts),
        repo=request.repo.repo,
        tree=request.repo.tree,
        recipe=recipe,
        lock=lock,
        hashes={locked[package]: f"sha256:{digest}" for package, digest in hashes.items()},
        shared_id=content_id("java libraries", VERSION, *parts),
        install_s=round(time.monotonic() - began, 1),
    )
    (final / RECORD).write_bytes(to_json(environment, indent=2))


def write_agent(packages: DebianPackages, target: Path) -> None:
    """Make the agent for coverage: Debian's jars of JaCoCo in one, with the entry that virtual machines look for.

    Raises :class:`EnvironmentFailure` (``toolchain_unavailable``).
    """
    manifest = "Manifest-Version: 1.0\nPremain-Class: org.jacoco.agent.rt.internal.PreMain\n\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as into:
        into.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
        names: set[str] = set()
        for jar in agent_jars(packages):
            with zipfile.ZipFile(jar.path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith(".class") and name != "module-info.class" and name not in names:
                        names.add(name)
                        into.writestr(zipfile.ZipInfo(name), archive.read(name))
    target.write_bytes(made.getvalue())


def _check(
    request: InstallRequest,
    recipe: Recipe,
    interpreter: Interpreter,
    layout: ProjectLayout,
    libraries: Libraries,
    final: Path,
) -> dict[str, Any]:
    """Compile the launcher and the project in a sandbox; return the layout as runs read it.

    Raises :class:`EnvironmentFailure` (``missing_dependency``, ``timeout``).
    """
    body = {
        "root": REPO,
        "roots": list(layout.roots),
        "test_roots": list(layout.test_roots),
        "resources": list(layout.resources),
        "test_resources": list(layout.test_resources),
        "release": layout.release,
        "encoding": layout.encoding,
        "left_out": sorted({*libraries.left_out, *layout.replacements}),
        "not_run": list(layout.not_run),
        "reasons": {},
    }
    mounts = project_mounts(interpreter, [final / "built", request.sources], [final / "env"], inside=_INSIDE)
    mounts.append(Mount(target=OUTPUTS, layers=(str(final / "outputs"),), writable=True))
    variables = base_env({}) | dict(recipe.env)
    system = system_request(interpreter, recipe.system_packages)
    with request.sandbox.open(mounts, request.policy, env=variables, system=system) as session:
        command = [f"{ENV}/bin/python", f"{INSIDE}/excise_java_check.py"]
        done = session.exec(command, timeout_s=request.timeout_s, stdin=json.dumps(body).encode())
        require_done(done, f"{request.repo.repo}: it could not be compiled")
        answer = json.loads(done.stdout)
        session.snapshot(OUTPUTS, final / "compiled")
    if answer["problem"]:
        raise EnvironmentFailure(f"{request.repo.repo}: {answer['problem']}", reason="missing_dependency")
    compiled = final / "compiled"
    os.rename(compiled / "launcher", final / "outputs" / "launcher")
    shutil.rmtree(compiled)
    open_to_all(final / "outputs")
    found: dict[str, Any] = answer["layout"]
    require_most_tests(request.repo.repo, layout, libraries, found)
    return found


def require_most_tests(project: str, layout: ProjectLayout, libraries: Libraries, found: Mapping[str, Any]) -> None:
    """Raise :class:`EnvironmentFailure` (``missing_dependency``) if many test files were left out, with a reason."""
    left_out = [path for path in found["left_out"] if path not in layout.replacements]
    if len(left_out) <= _MAX_LEFT_OUT * len(layout.tests):
        return
    reasons = {**found["reasons"], **{path: f"{what} is not there" for path, what in libraries.left_out.items()}}
    first = next((path for path in left_out if path in reasons), "")
    why = f"; {first}: {reasons[first]}" if first else ""
    raise EnvironmentFailure(
        f"{project}: {len(left_out)} of {len(layout.tests)} test files do not compile: {', '.join(left_out[:3])}{why}.",
        reason="missing_dependency",
    )


TOOLCHAIN = JavaToolchain()
