"""The toolchain of Rust, from Debian's packages ``cargo`` and ``rustc``; see :class:`excise.envs.toolchains.Toolchain`.

The programs and the standard library come into the sandboxes' ``/usr`` like any system package. The environment's own
layer has a registry of the crates that the project uses, copied out of Debian's ``librust-*-dev`` packages on this
machine, and the interpreter of excise's programs. Over the checkout lie the manifest, reduced to what tests need, and
``Cargo.lock``. The layer of build outputs has the compiled crates of others, made beside an empty crate in the place of
the project's.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
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
from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.envs.interpreters import interpreter_of
from excise.envs.rust.debian_crates import REGISTRY, available_crates, copy_crates, locked_crates, registries_for
from excise.envs.rust.manifests import CrateManifest, read_manifest
from excise.envs.sandbox.debian_packages import DebianPackages
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, REPO, base_env, open_to_all, project_mounts, system_request
from excise.envs.sandbox.system_root import debian_packages
from excise.errors import EnvironmentFailure
from excise.protocols import Mount, Session
from excise.system.folders import temporary_folder_beside
from excise.system.toml_text import toml_text
from excise.types import Environment, Recipe, Repo, SourceSpec, content_id, to_dict, to_json

VERSION = 1
"""Part of every cache key. Raise it when the same recipe would give a different environment."""
PACKAGES = ("cargo", "rustc")
"""The Debian packages with the toolchain."""
VARIABLES = {
    "CARGO_HOME": f"{ENV}/cargo",
    "CARGO_NET_OFFLINE": "true",
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_TERM_COLOR": "never",
    "RUSTC": "/usr/bin/rustc",
    "RUSTFLAGS": "-C linker=gcc --cap-lints=warn",
    "RUST_BACKTRACE": "0",
}
"""No network, no debug information, and warnings that never forbid: stubs leave code unused."""
_CONFIG = """[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "%s"

[net]
offline = true
"""
_EDITIONS = {"2015": "1", "2018": "1.31", "2021": "1.56", "2024": "1.85"}
"""Editions of the language to the first compiler that knows them."""
_MACHINE_REGISTRY = "/excise/registry"
"""Where an installation sees the crates of this machine."""
_LOCK = (
    'mkdir -p "$CARGO_HOME" && cat > "$CARGO_HOME/config.toml" && rm -f Cargo.lock && cargo generate-lockfile --offline'
)


class RustToolchain(DebianToolchain):
    """Environments of Rust crates."""

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:  # noqa: ARG002
        """The recipe of a crate. Raises :class:`EnvironmentFailure` (``toolchain_unavailable``, and what
        :func:`~excise.envs.rust.manifests.read_manifest` raises)."""
        version = installed_version()
        if spec.requirements or spec.extras:
            raise EnvironmentFailure("Rust projects take no requirements and no extras.", reason="bad_option")
        manifest, _ = _read(root, repo, DebianArchive(cache))
        _require_new_enough(manifest, version)
        evidence = [f"Cargo.toml: package {manifest.name}", f"rustc: {version}"]
        if manifest.dependencies:
            evidence.append(f"Debian's packages: {', '.join(manifest.dependencies)}")
        evidence += [f"{path}: left out, since a crate that it needs is not there" for path in manifest.left_out]
        return Recipe(
            python=own_interpreter().version,
            requirements=(f"rustc=={version}",),
            editable="path",
            packages=(manifest.library,),
            env=tuple(sorted(VARIABLES.items())),
            system_packages=PACKAGES,
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
        require_version(f"rustc=={installed_version()}", recipe.requirements[0])
        open_to_all(request.sources)
        parts = (VERSION, request.repo.tree, to_dict(recipe), *system_identity(request.sandbox))
        key = content_id("install rust", *parts)
        return install_once(request, previous, key, lambda final: _install(request, recipe, final), what="crates")

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """The compiler, and the interpreter of excise's programs."""
        lock = dict(line.partition("==")[::2] for line in environment.lock)
        return {"rustc": lock.get("rustc", ""), "python": environment.recipe.python}


def installed_version(packages: DebianPackages | None = None) -> str:
    """Version of the compiler that Debian's packages have on this machine: ``1.63.0``.

    Raises :class:`EnvironmentFailure` (``toolchain_unavailable``).
    """
    packages = packages or debian_packages()
    if any(name not in packages.installed for name in PACKAGES):
        raise EnvironmentFailure(
            "This is a Rust project, and this machine has no Rust of Debian's: install its packages "
            "(apt-get install -y --no-install-recommends cargo rustc), and run again.",
            reason="toolchain_unavailable",
        )
    return re.sub(r"^\d+:|[-+~].*$", "", packages.installed["rustc"].version)


def _require_new_enough(manifest: CrateManifest, version: str) -> None:
    """Raise :class:`EnvironmentFailure` (``toolchain_unavailable``) if a crate says that it needs a newer compiler."""
    package = manifest.reduced["package"]
    wanted = str(package.get("rust-version") or _EDITIONS.get(str(package.get("edition")), "1"))
    if version_numbers(wanted) > version_numbers(version):
        raise EnvironmentFailure(
            f"The crate needs Rust {wanted}, and Debian's packages on this machine have {version}: take an earlier "
            f"release of it.",
            reason="toolchain_unavailable",
        )


def _read(root: Path, repo: Repo, archive: DebianArchive) -> tuple[CrateManifest, tuple[Path, ...]]:
    """The manifest of a crate, and folders of crates: this machine's, and those of Debian's archive if one that sources
    or tests name is missing here. Raises :class:`EnvironmentFailure`."""
    every = read_manifest(root, _Everything())
    registries: tuple[Path, ...] = (REGISTRY,)
    if set(every.dependencies) - available_crates(registries) - {every.name}:
        registries = registries_for(every.described(), repo, archive)
    try:
        return read_manifest(root, available_crates(registries) - {every.name}), registries
    except EnvironmentFailure as failure:
        if failure.reason == "missing_dependency":
            raise archive.failure(str(failure)) from None
        raise


class _Everything(frozenset[str]):
    """A set that has every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _install(request: InstallRequest, recipe: Recipe, final: Path) -> None:
    """Fill the folder of an environment: ``env``, ``built``, ``outputs``, ``tools`` and its record."""
    began = time.monotonic()
    interpreter = interpreter_of(recipe.python)
    archive = DebianArchive(request.cache)
    manifest, registries = _read(request.sources, request.repo, archive)
    for name in ("env", "built", "outputs", "tools"):
        (final / name).mkdir(mode=0o755)
    for name in ("bin", "cargo", "registry"):
        (final / "env" / name).mkdir(mode=0o755)
    os.symlink(interpreter.executable, final / "env" / "bin" / "python")
    (final / "env" / "cargo" / "config.toml").write_text(_CONFIG % f"{ENV}/registry")
    open_to_all(final / "built")
    mounts = project_mounts(interpreter, [final / "built", request.sources], [final / "env"])
    variables, system = base_env({}) | dict(recipe.env), system_request(interpreter, recipe.system_packages)

    def resolved(manifest: CrateManifest, registries: Sequence[Path]) -> str:
        (final / "built" / "Cargo.toml").write_text(toml_text(manifest.reduced))
        with temporary_folder_beside(final) as work:
            layers = [str(each) for each in (REGISTRY, _joined(registries, work)) if each.is_dir()]
            seen = Mount(target=_MACHINE_REGISTRY, layers=tuple(layers))
            with request.sandbox.open([*mounts, seen], request.policy, env=variables, system=system) as session:
                return _resolved(session, request, manifest.members)

    failures: list[EnvironmentFailure] = []
    for manifest, registries in _ways(manifest, registries, request.repo, archive):  # noqa: B020
        try:
            lock = resolved(manifest, registries)
            break
        except EnvironmentFailure as failure:
            failures.append(failure)
    else:
        raise failures[0]
    crates = locked_crates(lock)
    if manifest.name in {name for name, _ in crates}:
        raise EnvironmentFailure(
            f"{request.repo.repo}: a crate that it needs itself needs {manifest.name}.", reason="installs_itself"
        )
    hashes = copy_crates(crates, final / "env" / "registry", registries)
    (final / "built" / "Cargo.lock").write_text(lock)
    open_to_all(final / "built")
    mounts.append(Mount(target=OUTPUTS, layers=(), writable=True))
    if crates:
        with request.sandbox.open(mounts, request.policy, env=variables, system=system) as session:
            _build_others(session, request, manifest, lock)
            session.snapshot(OUTPUTS, final / "outputs")
    _remove_own(final / "outputs", manifest)
    open_to_all(final / "outputs")
    lines = (recipe.requirements[0], *hashes)
    built = ("Cargo.lock", "Cargo.toml")
    parts = (request.repo.tree, to_dict(recipe), interpreter.version, lines, built, hashes)
    environment = Environment(
        env_id=content_id("environment", *parts),
        repo=request.repo.repo,
        tree=request.repo.tree,
        recipe=recipe,
        lock=lines,
        hashes=hashes,
        shared_id=content_id("rust outputs", VERSION, *parts),
        built_files=built,
        install_s=round(time.monotonic() - began, 1),
    )
    (final / RECORD).write_bytes(to_json(environment, indent=2))


def _ways(
    manifest: CrateManifest, registries: tuple[Path, ...], repo: Repo, archive: DebianArchive
) -> Iterator[tuple[CrateManifest, tuple[Path, ...]]]:
    """Manifests and folders of crates to resolve with, in order: as they are; with all that the archive has; and with
    any version of what only tests need, as Debian's own packages do it."""
    yield manifest, registries
    more = registries_for(manifest.described(), repo, archive)
    if more != registries:
        yield manifest, more
    yield manifest.with_any_for_tests(), more


def _joined(registries: Sequence[Path], work: Path) -> Path:
    """One folder with the crates of all folders but this machine's own."""
    for registry in registries:
        if registry != REGISTRY and registry.is_dir():
            shutil.copytree(registry, work, dirs_exist_ok=True)
    return work


def _resolved(session: Session, request: InstallRequest, members: Sequence[str]) -> str:
    """``Cargo.lock``, resolved with the crates of this machine. Raises :class:`EnvironmentFailure`: ``workspace`` where
    one of ``members``, of the same repository, may be what is missing, as this machine has other versions of them."""
    config = (_CONFIG % _MACHINE_REGISTRY).encode()
    variables = {"CARGO_HOME": "/tmp/cargo"}
    done = session.exec(["sh", "-c", _LOCK], timeout_s=request.timeout_s, cwd=REPO, stdin=config, env=variables)
    try:
        require_done(done, f"{request.repo.repo}: this machine has not the crates that it needs")
    except EnvironmentFailure as failure:
        if failure.reason != "missing_dependency" or not any(name in str(failure) for name in members):
            raise
        raise EnvironmentFailure(
            f"{request.repo.repo} needs {', '.join(members)} of its own repository, and only crates that need no other "
            f"member of their workspace can be built: name the folder of one (`subdir` of a source).\n{failure}",
            reason="workspace",
        ) from failure
    done = session.exec(["cat", "Cargo.lock"], timeout_s=60, cwd=REPO)
    require_done(done, f"{request.repo.repo}: cargo wrote no Cargo.lock")
    return done.stdout.decode()


def _build_others(session: Session, request: InstallRequest, manifest: CrateManifest, lock: str) -> None:
    """Build the crates of others beside an empty crate that needs the same. Raises :class:`EnvironmentFailure`."""
    reduced = {key: value for key, value in manifest.reduced.items() if key not in {"bin", "test"}}
    reduced["package"] = {**reduced["package"], "build": False, "autobins": False}
    reduced["package"].pop("links", None)
    reduced["lib"] = {"path": "lib.rs", "name": manifest.library}
    folder = "/tmp/empty"
    for name, text in (("Cargo.toml", toml_text(reduced)), ("Cargo.lock", lock), ("lib.rs", "")):
        words = ["sh", "-c", f"mkdir -p {folder} && cat > {folder}/{name}"]
        require_done(session.exec(words, timeout_s=60, stdin=text.encode()), f"{name} cannot be written")
    done = session.exec(
        ["cargo", "test", "--offline", "--no-run", "--lib"],
        timeout_s=request.timeout_s,
        cwd=folder,
        env={"CARGO_TARGET_DIR": OUTPUTS},
    )
    require_done(done, f"{request.repo.repo}: the crates that it uses do not compile with Debian's compiler")


def _remove_own(outputs: Path, manifest: CrateManifest) -> None:
    """Delete what was made of the empty crate."""
    for kind in ("deps", ".fingerprint", "incremental", "build"):
        folder = outputs / "debug" / kind
        for path in folder.glob("*") if folder.is_dir() else ():
            if re.fullmatch(rf"(?:lib)?(?:{manifest.library}|{manifest.name})-[0-9a-f]{{16}}.*", path.name):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


TOOLCHAIN = RustToolchain()
