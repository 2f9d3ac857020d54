"""Runs uv inside an open sandbox session until an environment stands."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.index_relay import IndexRelay
from excise.envs.install_attempts import Attempt, first_attempt, next_attempt
from excise.envs.install_env import UV
from excise.envs.install_failures import InstallFailure, classify, decisive
from excise.envs.interpreters import Interpreter
from excise.envs.layout import ENV, REPO
from excise.envs.lockfile import lock_text, read_hashes
from excise.envs.manifests.manifest import Manifest, table, words
from excise.envs.manifests.pyproject import load_pyproject
from excise.envs.system_packages import what_to_install
from excise.errors import EnvironmentFailure
from excise.protocols import Completed, Session
from excise.types import Recipe, Repo, Worker

_PYTHON = f"{ENV}/bin/python"
_LOCK = "/tmp/excise-lock.txt"
_CONSTRAINTS = "/tmp/excise-constraints.txt"
_MAX_ATTEMPTS = 8


class Installer:
    """Installs in one session. Nothing of it runs outside the sandbox."""

    def __init__(
        self,
        session: Session,
        relay: IndexRelay,
        interpreter: Interpreter,
        repo: Repo,
        manifest: Manifest,
        sources: Path,
        deadline: float,
    ) -> None:
        self.session, self.relay, self.interpreter = session, relay, interpreter
        self.repo, self.manifest, self.sources = repo, manifest, sources
        self.deadline = deadline

    # ------------------------------------------------------------------------- finding out what to install
    def install(self, recipe: Recipe) -> Recipe:
        """Make the environment from nothing but the recipe; returns the recipe as it was really carried out.

        Raises :class:`EnvironmentFailure` with the class of the first failure that no retry got around.
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
            following = next_attempt(attempt, failure)
            if following is None:
                break
            attempt = following
        assert first is not None
        detail = [f"{self.repo.repo}: cannot be installed.", first.detail]
        if first.reason == "missing_system_lib":
            detail.append(what_to_install(first.detail, recipe.system_packages))
        raise EnvironmentFailure("\n".join(filter(None, detail)), reason=first.reason)

    def add(self, requirements: Sequence[str], recipe: Recipe) -> bool:
        """Install more into the environment as it stands; whether that worked."""
        return self._pip("install", *_cutoff(recipe.cutoff), *requirements).rc == 0

    def relocate(self, recipe: Recipe) -> Recipe:
        """Replace an installed copy of the project by a line that puts its folders on the path."""
        if self.manifest.name:
            self._pip("uninstall", self.manifest.name)
        self._write_path(recipe.roots)
        return replace(
            recipe,
            editable="path",
            evidence=(*recipe.evidence, "installer: an installed copy hid the checkout and was removed"),
        )

    def freeze(self) -> tuple[str, ...]:
        """``name==version`` of everything installed but the project itself, sorted."""
        listed = self._pip("freeze").stdout.decode(errors="replace").splitlines()
        own = re.sub(r"[-_.]+", "-", self.manifest.name).lower()
        lines = [
            line.strip() for line in listed if line.strip() and "file://" not in line and not line.startswith("-e")
        ]
        return tuple(sorted(line for line in lines if re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() != own))

    def hashes(self, lock: Sequence[str], cutoff: str) -> dict[str, str]:
        """The hashes of the files of a lock, as the index gives them; empty if it gives none."""
        self._put_lock(lock, {})
        done = self._uv(
            "pip", "compile", "--quiet", "--generate-hashes", "--no-deps", "--no-header", "--no-annotate",
            "--python", _PYTHON, *_cutoff(cutoff), _LOCK,
        )  # fmt: skip
        found = read_hashes(done.stdout.decode(errors="replace")) if done.rc == 0 else {}
        return {line: found[line] for line in lock} if all(found.get(line) for line in lock) else {}

    # ------------------------------------------------------------------------------------ from a lock alone
    def install_lock(self, recipe: Recipe, lock: Sequence[str], hashes: Mapping[str, str]) -> None:
        """A fresh environment with exactly the distributions of a lock; with ``hashes``, only from those files.

        Raises :class:`EnvironmentFailure`.
        """
        self._fresh_venv()
        how: tuple[str, ...] = ("--require-hashes",) if hashes else ()
        if recipe.editable == "legacy":  # everything is built with these, so they come first
            tools = [line for line in lock if line.partition("==")[0] in self._tool_names()]
            self._install_lines(tools, hashes, (*how, *_cutoff(recipe.cutoff)))
            how = (*how, "--no-build-isolation")
        self._install_lines(lock, hashes, (*how, *_cutoff(recipe.cutoff)))

    def place(self, recipe: Recipe) -> None:
        """Put the project itself into an environment that has all it requires.

        Raises :class:`EnvironmentFailure`.
        """
        if recipe.editable == "path":
            self._write_path(recipe.roots)
            self._build_extensions()
            return
        how = ["--no-build-isolation"] if recipe.editable == "legacy" else []
        done = self._pip("install", "--no-deps", *_cutoff(recipe.cutoff), *how, "-e", REPO)
        self._require(done)

    def _install_lines(self, lock: Sequence[str], hashes: Mapping[str, str], how: Iterable[str]) -> None:
        self._put_lock(lock, hashes)
        self._require(self._pip("install", "--no-deps", *how, "-r", _LOCK))

    def _require(self, done: Completed) -> None:
        if done.rc != 0:
            failure = classify(_output(done), index_failed=bool(self.relay.failures))
            raise EnvironmentFailure(
                f"{self.repo.repo}: cannot be installed from its lock.\n{failure.detail}", reason=failure.reason
            )

    def _put_lock(self, lock: Sequence[str], hashes: Mapping[str, str]) -> None:
        self.session.put(_LOCK, lock_text(lock, hashes).encode())

    def _tool_names(self) -> set[str]:
        named = (re.match(r"[\w.-]+", text.strip()) for text in self._build_requires())
        return {"setuptools", "wheel"} | {re.sub(r"[-_.]+", "-", match[0]).lower() for match in named if match}

    # --------------------------------------------------------------------------------- attempts
    def _try(self, attempt: Attempt, recipe: Recipe) -> InstallFailure | None:
        self._fresh_venv()
        if attempt.mode == "legacy" or (attempt.mode == "path" and self._has_extensions()):
            prepared = self._pip("install", _old_setuptools(self.interpreter), "wheel", *self._build_requires())
            if prepared.rc != 0 and attempt.mode == "legacy":
                return replace(self._classify(prepared), of_project=True, missing=())
        self.session.put(_CONSTRAINTS, "".join(f"{line}\n" for line in attempt.constraints).encode())
        what = (
            ["-c", _CONSTRAINTS, *self._what(attempt, recipe)] if attempt.constraints else self._what(attempt, recipe)
        )
        done = self._pip("install", *_cutoff(attempt.cutoff), *what)
        if done.rc != 0:
            return self._classify(done)
        if attempt.mode == "path":
            self._write_path(recipe.roots)
            self._build_extensions()
        return self._check_runner()

    def _classify(self, done: Completed) -> InstallFailure:
        return classify(_output(done), index_failed=bool(self.relay.failures))

    def _fresh_venv(self) -> None:
        self._run("/usr/bin/find", ENV, "-mindepth", "1", "-delete")  # the folder itself is a mount
        python = str(self.interpreter.executable)
        made = self._run(UV, "venv", "--quiet", "--allow-existing", "--no-project", "--python", python, ENV)
        if made.rc != 0:
            raise EnvironmentFailure(
                f"Python {self.interpreter.version} makes no venv: {decisive(_output(made))}", reason="infra"
            )

    def _what(self, attempt: Attempt, recipe: Recipe) -> list[str]:
        if attempt.mode == "path":
            extras = [r for extra in recipe.extras for r in self.manifest.extras.get(extra, ())]
            return [*self.manifest.dependencies, *extras, *attempt.requirements]
        extras_text = f"[{','.join(recipe.extras)}]" if recipe.extras else ""
        how = ["--no-build-isolation"] if attempt.mode == "legacy" else []
        return [*how, "-e", f"{REPO}{extras_text}", *attempt.requirements]

    def _check_runner(self) -> InstallFailure | None:
        """An old pin may install a pytest that cannot start on this interpreter."""
        done = self._run(_PYTHON, "-m", "pytest", "--version", "-p", "no:cacheprovider", cwd="/tmp")
        if done.rc == 0:
            return None
        return InstallFailure(reason="resolve_conflict", detail=f"pytest does not start: {decisive(_output(done))}")

    def _has_extensions(self) -> bool:
        return self.manifest.has_extensions and (self.sources / "setup.py").is_file()

    def _build_extensions(self) -> None:
        """Compile in place, if it can be done; whether the project needs it is seen when it is imported."""
        if self._has_extensions():
            self._relayed(_PYTHON, "setup.py", "build_ext", "--inplace")

    def _build_requires(self) -> list[str]:
        requires = words(table(load_pyproject(self.sources), "build-system").get("requires"))
        return [text for text in requires if not re.match(r"(setuptools|wheel)\b(?![-_])", text.strip())]

    def _write_path(self, roots: Sequence[str]) -> None:
        """A ``.pth`` file with the import roots, and a minimal record so that the version can be asked for."""
        packages = (
            self._run(_PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.decode().strip()
        )
        lines = [REPO if root == "." else f"{REPO}/{root}" for root in roots]
        self.session.put(f"{packages}/excise_checkout.pth", "".join(f"{line}\n" for line in lines).encode())
        if self.manifest.name:
            name, version = self.manifest.name, self.repo.version or "0.0.0"
            folder = f"{packages}/{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
            self.session.put(
                f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
            )
            self.session.put(f"{folder}/INSTALLER", b"excise\n")

    def _carried_out(self, recipe: Recipe, attempt: Attempt) -> Recipe:
        return replace(
            recipe,
            requirements=attempt.requirements,
            constraints=attempt.constraints,
            cutoff=attempt.cutoff,
            editable=attempt.mode,
            evidence=(*recipe.evidence, *attempt.evidence),
        )

    # ------------------------------------------------------------------------------------- runs
    def _pip(self, action: str, *arguments: str) -> Completed:
        return self._uv("pip", action, "--python", _PYTHON, *arguments)

    def _uv(self, *arguments: str) -> Completed:
        return self._relayed(UV, *arguments)

    def _relayed(self, *argv: str) -> Completed:
        return self._run(*self.relay.command(str(self.interpreter.executable), argv), what=" ".join(argv[:3]))

    def _run(self, *argv: str, cwd: str = REPO, what: str = "") -> Completed:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise EnvironmentFailure(f"{self.repo.repo}: the installation ran out of time", reason="timeout")
        done = self.session.exec(argv, timeout_s=left, cwd=cwd)
        if done.worker is Worker.TIMEOUT:
            raise EnvironmentFailure(
                f"{self.repo.repo}: the installation ran out of time in `{what or ' '.join(argv[:3])}`",
                reason="timeout",
            )
        if done.worker is Worker.OOM:
            raise EnvironmentFailure(
                f"{self.repo.repo}: the installation needs more memory than it is given", reason="oom"
            )
        if done.worker is not Worker.OK:
            raise EnvironmentFailure(f"{self.repo.repo}: the installation was killed from outside", reason="infra")
        return done


def _cutoff(cutoff: str) -> list[str]:
    return ["--exclude-newer", cutoff] if cutoff else []


def _old_setuptools(interpreter: Interpreter) -> str:
    """The newest setuptools that still has ``pkg_resources`` and tolerates old set-up scripts."""
    return "setuptools>=66,<72" if interpreter.minor >= (3, 12) else "setuptools>=64,<69"


def _output(done: Completed) -> str:
    return (done.stdout + b"\n" + done.stderr).decode(errors="replace")
