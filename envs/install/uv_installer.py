"""Installs a project and its requirements with uv in an open sandbox session, with fallbacks after failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from excise.envs.install.install_attempts import Attempt, first_attempt, next_attempt
from excise.envs.install.install_failures import InstallFailure, error_lines
from excise.envs.install.install_sandbox import version_variables
from excise.envs.install.system_packages import what_to_install
from excise.envs.install.uv_runner import BYTE_CODE, CONSTRAINTS, LOCK, PYTHON, UvRunner, cutoff_option, output
from excise.envs.interpreters import Interpreter
from excise.envs.manifests.manifest import Manifest, table, words
from excise.envs.manifests.pyproject import load_pyproject, static_metadata
from excise.envs.sandbox.mount_points import REPO
from excise.errors import EnvironmentFailure
from excise.protocols import Completed
from excise.types import Recipe, Repo

_WHEEL, _PLACER, _STATIC = "/tmp/excise-wheel", "/tmp/excise-place.py", "/tmp/excise-project"
_MAX_ATTEMPTS = 8
PLACER = Path(__file__).resolve().parent / "inside" / "place_wheel.py"
"""Program, run in the sandbox, that copies a wheel's files into the checkout."""


class UvInstaller:
    """Installs in one session; every command runs in the sandbox."""

    def __init__(self, runner: UvRunner, repo: Repo, manifest: Manifest, sources: Path) -> None:
        self.runner, self.repo, self.manifest, self.sources = runner, repo, manifest, sources

    # ------------------------------------------------------------------------------- finding a lock
    def resolve(self, recipe: Recipe) -> tuple[tuple[str, ...], dict[str, str]] | None:
        """Return the lock and its hashes (see :class:`LockedRecipe`) by resolution, without installing anything.

        ``None`` if the recipe must be tried out: it cannot be resolved, or the project is built with tools that are
        installed first.
        """
        attempt = first_attempt(recipe)
        if attempt.mode == "legacy" or (attempt.mode == "path" and self._has_extensions()):
            return None
        wanted = self._requirements(attempt, recipe)
        hashes = self._resolve_static(attempt, recipe)
        if hashes is None:
            lines = [f"-e {wanted[1]}", *wanted[2:]] if wanted[:1] == ["-e"] else wanted
            hashes = self.runner.resolve(lines, attempt.constraints, attempt.cutoff)
        if hashes is None:
            return None
        own = canonicalize_name(self.manifest.name)
        lock = tuple(sorted(line for line in hashes if canonicalize_name(line.partition("==")[0]) != own))
        return (lock, {line: hashes[line] for line in lock}) if all(hashes[line] for line in lock) else None

    def _resolve_static(self, attempt: Attempt, recipe: Recipe) -> dict[str, str] | None:
        """Resolve with the requirements in the project's pyproject.toml, without building the project to learn them."""
        version = version_variables(self.repo)["PBR_VERSION"]
        text = static_metadata(self.sources, version) if attempt.mode == "editable" else ""
        if not text:
            return None
        self.runner.session.put(f"{_STATIC}/pyproject.toml", text.encode())
        _, project, *others = self._requirements(attempt, recipe)
        lines = [f"-e {project.replace(REPO, _STATIC, 1)}", *others]
        return self.runner.resolve(lines, attempt.constraints, attempt.cutoff)

    # ------------------------------------------------------------------------------- finding a lock by trying
    def install(self, recipe: Recipe) -> Recipe:
        """Make the environment from the recipe alone; return the recipe as it was carried out, after fallbacks.

        Raises :class:`EnvironmentFailure` with the class of the first failure if no fallback works.
        """
        attempt, first = first_attempt(recipe), None
        for _ in range(_MAX_ATTEMPTS):
            failure = self._try(attempt, recipe)
            if failure is None:
                return self._carried_out(recipe, attempt)
            if failure.reason in {"infra", "network_required"}:
                first = failure
                break
            first = first or failure
            following = next_attempt(attempt, failure, setuptools=self._uses_setuptools())
            if following is None:
                break
            attempt = following
        assert first is not None
        detail = [f"{self.repo.repo}: cannot be installed.", first.detail]
        if first.reason == "missing_system_lib":
            detail.append(what_to_install(first.detail, recipe.system_packages))
        raise EnvironmentFailure("\n".join(filter(None, detail)), reason=first.reason)

    def add(self, requirements: Sequence[str], recipe: Recipe) -> bool:
        """Install more requirements into the environment; return whether that worked."""
        return self.runner.pip("install", *cutoff_option(recipe.cutoff), *requirements).rc == 0

    def relocate(self, recipe: Recipe) -> Recipe:
        """Replace an installed copy of the project by a ``.pth`` line with the checkout's import roots."""
        if self.manifest.name:
            self.runner.pip("uninstall", self.manifest.name)
        self._write_path(recipe.roots)
        return replace(
            recipe,
            editable="path",
            evidence=(*recipe.evidence, "installer: an installed copy hid the checkout and was removed"),
        )

    def lock(self, cutoff: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the lock and its hashes: all installed distributions but the project; see :class:`LockedRecipe`."""
        found = self.freeze()
        return found, self.runner.hashes(found, cutoff)

    def freeze(self) -> tuple[str, ...]:
        """``name==version`` of everything installed except the project, sorted."""
        return self.runner.freeze(self.manifest.name)

    # ------------------------------------------------------------------------------- installing from a lock
    def install_lock(self, recipe: Recipe, lock: Sequence[str], hashes: Mapping[str, str]) -> None:
        """Make a fresh environment with exactly the distributions of a lock; with ``hashes``, only from those files.

        Raises :class:`EnvironmentFailure`.
        """
        self.runner.fresh_venv()
        how: tuple[str, ...] = ("--require-hashes",) if hashes else ()
        if recipe.editable == "legacy":  # everything is built with these, so they come first
            tools = [line for line in lock if line.partition("==")[0] in self._tool_names()]
            self._install_lines(tools, hashes, (*how, *cutoff_option(recipe.cutoff)))
            how = (*how, "--no-build-isolation")
        self._install_lines(lock, hashes, (*how, *cutoff_option(recipe.cutoff)))

    def place(self, recipe: Recipe) -> None:
        """Install the project itself into an environment that has all its requirements.

        Raises :class:`EnvironmentFailure`.
        """
        if recipe.editable == "path":
            self._write_path(recipe.roots)
            self._build_extensions()
            return
        if recipe.editable == "wheel":
            self._require(self._place_wheel(recipe, recipe.cutoff))
            return
        how = ["--no-build-isolation"] if recipe.editable == "legacy" else []
        done = self.runner.pip("install", "--no-deps", *cutoff_option(recipe.cutoff), *how, "-e", REPO)
        self._require(done)

    def _install_lines(self, lock: Sequence[str], hashes: Mapping[str, str], how: Iterable[str]) -> None:
        self.runner.put_lock(lock, hashes)
        self._require(self.runner.pip("install", "--no-deps", *how, "-r", LOCK))

    def _require(self, done: Completed) -> None:
        if done.rc != 0:
            failure = self.runner.classify(done)
            raise EnvironmentFailure(
                f"{self.repo.repo}: cannot be installed from its lock.\n{failure.detail}", reason=failure.reason
            )

    def _tool_names(self) -> set[str]:
        named = (re.match(r"[\w.-]+", text.strip()) for text in self._build_requires())
        return {"setuptools", "wheel"} | {canonicalize_name(match[0]) for match in named if match}

    # --------------------------------------------------------------------------------------- one attempt
    def _try(self, attempt: Attempt, recipe: Recipe) -> InstallFailure | None:
        self.runner.fresh_venv()
        if attempt.mode == "legacy" or (attempt.mode == "path" and self._has_extensions()):
            prepared = self.runner.pip(
                "install", _old_setuptools(self.runner.interpreter), "wheel", *self._build_requires()
            )
            if prepared.rc != 0 and attempt.mode == "legacy":
                return replace(self.runner.classify(prepared), of_project=True, missing=())
        self.runner.session.put(CONSTRAINTS, "".join(f"{line}\n" for line in attempt.constraints).encode())
        requirements = (
            ["-c", CONSTRAINTS, *self._requirements(attempt, recipe)]
            if attempt.constraints
            else self._requirements(attempt, recipe)
        )
        done = self.runner.pip("install", *cutoff_option(attempt.cutoff), *requirements)
        if done.rc != 0:
            return self.runner.classify(done)
        if attempt.mode == "path":
            self._write_path(recipe.roots)
            self._build_extensions()
        if attempt.mode == "wheel" and self.manifest.name:
            self.runner.pip("uninstall", self.manifest.name)  # a requirement may have brought a released copy along
        if attempt.mode == "wheel" and (placed := self._place_wheel(recipe, attempt.cutoff)).rc != 0:
            return replace(self.runner.classify(placed), of_project=True)
        return self.check_runner()

    def _place_wheel(self, recipe: Recipe, cutoff: str) -> Completed:
        how = ["--quiet", "--wheel", "--out-dir", _WHEEL, "--python", PYTHON, *cutoff_option(cutoff)]
        built = self.runner.uv("build", *how, REPO)
        if built.rc != 0:
            return built
        self.runner.session.put(_PLACER, PLACER.read_bytes())
        return self.runner.run(PYTHON, _PLACER, _WHEEL, REPO, ",".join(recipe.roots), ",".join(recipe.packages))

    def _uses_setuptools(self) -> bool:
        return "setuptools" in self.manifest.build_backend

    def _requirements(self, attempt: Attempt, recipe: Recipe) -> list[str]:
        if attempt.mode in ("path", "wheel"):
            extras = [r for extra in recipe.extras for r in self.manifest.extras.get(extra, ())]
            return [*self.manifest.dependencies, *extras, *attempt.requirements]
        extras_text = f"[{','.join(recipe.extras)}]" if recipe.extras else ""
        how = ["--no-build-isolation"] if attempt.mode == "legacy" else []
        return [*how, "-e", f"{REPO}{extras_text}", *attempt.requirements]

    def check_runner(self) -> InstallFailure | None:
        """Check that pytest starts: an old pin may install one that does not support this interpreter."""
        done = self.runner.run(PYTHON, "-m", "pytest", "--version", "-p", "no:cacheprovider", cwd="/tmp", env=BYTE_CODE)
        if done.rc == 0:
            return None
        return InstallFailure(reason="resolve_conflict", detail=f"pytest does not start: {error_lines(output(done))}")

    def _has_extensions(self) -> bool:
        return self.manifest.has_extensions and (self.sources / "setup.py").is_file()

    def _build_extensions(self) -> None:
        """Compile extensions in place. A failure is ignored here: the import check shows whether they are needed."""
        if self._has_extensions():
            self.runner.relayed(PYTHON, "setup.py", "build_ext", "--inplace")

    def _build_requires(self) -> list[str]:
        requires = words(table(load_pyproject(self.sources), "build-system").get("requires"))
        return [text for text in requires if not re.match(r"(setuptools|wheel)\b(?![-_])", text.strip())]

    def _write_path(self, roots: Sequence[str]) -> None:
        """Write a ``.pth`` file with the import roots, and metadata from which the version can be read."""
        packages = (
            self.runner.run(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
            .stdout.decode()
            .strip()
        )
        lines = [REPO if root == "." else f"{REPO}/{root}" for root in roots]
        self.runner.session.put(f"{packages}/excise_checkout.pth", "".join(f"{line}\n" for line in lines).encode())
        if self.manifest.name:
            name, version = self.manifest.name, self.repo.version or "0.0.0"
            folder = f"{packages}/{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
            self.runner.session.put(
                f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
            )
            self.runner.session.put(f"{folder}/INSTALLER", b"excise\n")

    def _carried_out(self, recipe: Recipe, attempt: Attempt) -> Recipe:
        return replace(
            recipe,
            requirements=attempt.requirements,
            constraints=attempt.constraints,
            cutoff=attempt.cutoff,
            editable=attempt.mode,
            evidence=(*recipe.evidence, *attempt.evidence),
        )


def _old_setuptools(interpreter: Interpreter) -> str:
    """Requirement for a setuptools that still has ``pkg_resources`` and accepts old ``setup.py`` files."""
    return "setuptools>=66,<72" if interpreter.minor >= (3, 12) else "setuptools>=64,<69"
