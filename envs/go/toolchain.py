"""The toolchain of Go, from Debian's package ``golang-go``; see :class:`excise.envs.toolchains.Toolchain`.

The programs and the standard library come into the sandboxes' ``/usr`` like any system package. The environment's own
layer has only the interpreter of excise's programs, and a link to the checkout whose path ends with the import path, as
in a workspace of Go. The layer of build outputs has the compiled packages that the
tests use, made from the untouched sources, without those of the project.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from excise.envs.debian_archive import DebianArchive
from excise.envs.debian_toolchain import (
    RECORD,
    DebianToolchain,
    install_once,
    own_interpreter,
    require_done,
    require_version,
    version_numbers,
)
from excise.envs.go.debian_modules import find_modules
from excise.envs.go.manifests import IMPORT_PATH, GoManifest, read_manifest
from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.envs.interpreters import interpreter_of
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import OUTPUTS, REPO, base_env, open_to_all, project_mounts, system_request
from excise.envs.sandbox.system_root import debian_packages
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Mount, Session
from excise.types import Environment, Recipe, Repo, SourceSpec, content_id, to_dict, to_json

VERSION = 6
"""Part of every cache key. Raise it when the same recipe would give a different environment."""
PACKAGE = "golang-go"
"""The Debian package with the toolchain."""
VARIABLES = {
    "CGO_ENABLED": "0",
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "GOTOOLCHAIN": "local",
    "GOENV": "off",
    "GOWORK": "off",
    "GO111MODULE": "on",
}
"""No network, no C compiler, and no settings but the module's own."""
_ENTRY = re.compile(rb"v1 [0-9a-f]+ [0-9a-f]+ +\d+( +\d+)\n")
"""An entry of go's build cache: hashes, size, and a time in nanoseconds."""
_VERSIONED = re.compile(r"golang-(\d+\.\d+)-go")
_FOREIGN = (
    "{{if .Standard}}{{.ImportPath}}{{else}}{{with .Module}}{{if not .Main}}{{$.ImportPath}}{{end}}{{end}}{{end}}"
)
"""Template of ``go list`` for the import path of a package that is not the project's."""
_OF_VERSION = re.compile(r"invalid go version|requires [Gg]o\b|errors parsing go\.mod|unknown directive: toolchain")
"""What go says where a newer one is asked for."""
_MODULES = "{{with .Module}}{{if not .Main}}{{.Path}}=={{.Version}}{{end}}{{end}}"


class GoToolchain(DebianToolchain):
    """Environments of Go modules."""

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:  # noqa: ARG002
        """The recipe of a module. Raises :class:`EnvironmentFailure` (``toolchain_unavailable``, ``no_manifest``)."""
        version, manifest = installed_version(), read_manifest(root)
        if not manifest.import_path:
            raise EnvironmentFailure(
                f"{repo.repo}: no go.mod, and no file tells under which path the packages are imported.",
                reason="no_manifest",
            )
        others = {}
        if not manifest.has_vendor:
            others = find_modules(root, repo, manifest.import_path, DebianArchive(cache)).packages
        flags = "-mod=vendor" if manifest.has_vendor or others else "-mod=mod"
        evidence = [f"{manifest.evidence}: module {manifest.import_path}", f"{PACKAGE}: go {version}"]
        if others:
            evidence.append(f"Debian's packages: {', '.join(sorted(others))}")
        if spec.requirements or spec.extras:
            raise EnvironmentFailure("Go projects take no requirements and no extras.", reason="bad_option")
        return Recipe(
            python=own_interpreter().version,
            requirements=(f"go=={version}",),
            editable="path",
            packages=(manifest.import_path,),
            env=tuple(sorted({**VARIABLES, "GOFLAGS": flags}.items())),
            system_packages=(PACKAGE,),
            evidence=tuple(evidence),
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
        require_version(f"go=={installed_version()}", recipe.requirements[0])
        open_to_all(request.sources)
        parts = (VERSION, request.repo.tree, to_dict(recipe), *system_identity(request.sandbox))
        key = content_id("install go", *parts)
        return install_once(request, previous, key, lambda final: _install(request, recipe, final), what="modules")

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """Go, and the interpreter of excise's programs."""
        lock = dict(line.partition("==")[::2] for line in environment.lock)
        return {"go": lock.get("go", ""), "python": environment.recipe.python}


def installed_version(packages: DebianPackages | None = None) -> str:
    """Version of the Go toolchain that Debian's packages have on this machine: ``1.19.8``.

    Raises :class:`EnvironmentFailure` (``toolchain_unavailable``).
    """
    packages = packages or debian_packages()
    names = {package.name for package in packages.closure([PACKAGE]) if _VERSIONED.fullmatch(package.name)}
    if PACKAGE not in packages.installed or not names:
        raise EnvironmentFailure(
            f"This is a Go project, and this machine has no Go: install Debian's package {PACKAGE} "
            f"(apt-get install -y --no-install-recommends {PACKAGE}), and run again.",
            reason="toolchain_unavailable",
        )
    return re.sub(r"^\d+:|[-+~].*$", "", packages.installed[max(names)].version)


def _install(request: InstallRequest, recipe: Recipe, final: Path) -> None:
    """Fill the folder of an environment: ``env``, ``built``, ``outputs``, ``tools`` and its record."""
    began = time.monotonic()
    interpreter, manifest = interpreter_of(recipe.python), read_manifest(request.sources)
    for name in ("env", "built", "outputs", "tools"):
        (final / name).mkdir(mode=0o755)
    (final / "env" / "bin").mkdir(mode=0o755)
    os.symlink(interpreter.executable, final / "env" / "bin" / "python")
    link = final / "env" / "src" / recipe.packages[0]
    link.parent.mkdir(parents=True)
    os.symlink(REPO, link)
    vendored = _add_modules(request, manifest, final / "built")
    mounts = project_mounts(interpreter, [final / "built", request.sources], [final / "env"])
    mounts.append(Mount(target=OUTPUTS, layers=(), writable=True))
    variables = base_env({}) | dict(recipe.env) | {"GOCACHE": OUTPUTS, "GOPATH": "/tmp/gopath"}
    system = system_request(interpreter, recipe.system_packages)
    with request.sandbox.open(mounts, request.policy, env=variables, system=system) as session:
        foreign, modules = _dependencies(session, request)
        if foreign:
            done = session.exec(["go", "build", *foreign], timeout_s=request.timeout_s, cwd=REPO)
            _require_done(done, f"{request.repo.repo}: the packages that it uses do not compile", request)
        session.snapshot(OUTPUTS, final / "outputs")
    _equalise(final / "outputs")
    open_to_all(final / "outputs")
    lock = (recipe.requirements[0], *modules)
    files = (path.relative_to(final / "built").as_posix() for path in (final / "built").rglob("*") if path.is_file())
    built = tuple(sorted(files))
    parts = (request.repo.tree, to_dict(recipe), interpreter.version, lock, built, vendored)
    environment = Environment(
        env_id=content_id("environment", *parts),
        repo=request.repo.repo,
        tree=request.repo.tree,
        recipe=recipe,
        lock=lock,
        hashes=dict.fromkeys(modules, f"sha256:{vendored}") if vendored else {},
        shared_id=content_id("go outputs", VERSION, *parts),
        built_files=built,
        install_s=round(time.monotonic() - began, 1),
    )
    (final / RECORD).write_bytes(to_json(environment, indent=2))


def _equalise(outputs: Path) -> None:
    """Set the times in go's cache entries to the same one, so that equal environments have equal files."""
    for entry in outputs.glob("??/*-a"):
        text = entry.read_bytes()
        if found := _ENTRY.fullmatch(text):
            entry.write_bytes(text[: found.start(1)] + b"1".rjust(len(found[1])) + b"\n")


def _add_modules(request: InstallRequest, manifest: GoManifest, built: Path) -> str:
    """Put modules of Debian's packages over the checkout, if the project needs some, and a ``go.mod`` if it has none;
    return a hash of the modules, or ``""``. Raises :class:`EnvironmentFailure`."""
    made, digest = manifest.made, ""
    if not manifest.has_vendor:
        found = find_modules(request.sources, request.repo, manifest.import_path, DebianArchive(request.cache))
        if found.packages:
            made += found.require_all() if made else ""
            digest = found.write(built / "vendor")
    if made:
        (built / "go.mod").write_text(made)
        (built / "go.mod").chmod(0o666)
    open_to_all(built)
    return digest


def _require_done(done: Completed, what: str, request: InstallRequest) -> None:
    """Raise :class:`EnvironmentFailure` unless a command of go ended well: ``toolchain_unavailable`` if ``go.mod`` asks
    for a newer Go, else as :func:`require_done`."""
    try:
        require_done(done, what)
    except EnvironmentFailure as failure:
        asked, installed = read_manifest(request.sources).version, installed_version()
        is_newer = version_numbers(asked) > version_numbers(installed)
        if failure.reason != "missing_dependency" or not is_newer or not _OF_VERSION.search(str(failure)):
            raise
        raise EnvironmentFailure(
            f"{request.repo.repo}: go.mod asks for Go {asked}, and this machine has {installed}: "
            f"take an older release, or install a newer Go.\n{failure}",
            reason="toolchain_unavailable",
        ) from failure


def _dependencies(session: Session, request: InstallRequest) -> tuple[list[str], list[str]]:
    """Import paths of the packages of others that the tests use, and the modules that these come from.

    go writes the main files of tests into its cache meanwhile, which is not the one that is kept.
    """
    found = []
    for template in (_FOREIGN, _MODULES):
        words = ["go", "list", "-deps", "-test", "-f", template, "./..."]
        done = session.exec(words, timeout_s=request.timeout_s, cwd=REPO, env={"GOCACHE": "/tmp/go-list"})
        _require_done(done, f"{request.repo.repo}: a package that it needs is not there", request)
        lines = {line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()} - {""}
        found.append(sorted(line for line in lines if IMPORT_PATH.match(line)))
    return found[0], found[1]


TOOLCHAIN = GoToolchain()
