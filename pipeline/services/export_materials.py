"""Files of exports that are made from a set's archives: checkouts, images of environments, plain graders."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import TracebackType

from excise.config import Settings, VerdictSettings, load
from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.envs.sandbox.mount_points import ENV, OUTPUTS, REPO, SHARED_PROGRAMS
from excise.envs.toolchains import toolchain_of
from excise.errors import StoreError
from excise.extractors.fetch.trees import git_tree_hash, import_commit, list_files, unpack
from excise.extractors.languages import get_language
from excise.pipeline.stages.environment_stage import rebuilt_environment
from excise.protocols import Checkout, GradingFiles, Language, TaskImage
from excise.types import Task, path_of
from excise.verifiers.shipped_tree import scrubbed
from excise.verifiers.stored_tasks import split_patch

PEERS = Path(__file__).resolve().parents[1] / "peers"
"""Folder of programs that run in the processes of other tools."""
COMMIT_MESSAGE = "Import"
"""Message of the one commit of a checkout; see :func:`excise.verifiers.shipped_tree.commit`."""
KEPT = frozenset({"test", "test_configuration", "manifest", "no_source", "binary"})
"""Why solutions may not change a file (:meth:`~excise.protocols.Grading.forbidden`) that graders put back."""
VENDORED = frozenset({"vendor", "node_modules"})
"""Folders of other projects' code, which is not put back."""


class SetMaterials:
    """See :class:`excise.protocols.ExportMaterials`; a context manager, which keeps unpacked sources until its end."""

    def __init__(self, taskset: TaskSet, settings: Settings | None = None, *, with_layers: bool = True) -> None:
        """``settings``: how environments are installed, for languages whose images hold them; default: the usual.

        Without ``with_layers``, none is, and images are empty (:data:`~excise.envs.packed_image.LAYERS`).
        """
        self.taskset, self._settings, self._with_layers = taskset, settings, with_layers
        self._folder = tempfile.TemporaryDirectory(prefix="excise-export-")
        self._task = lru_cache(maxsize=4)(taskset.task)

    def __enter__(self) -> SetMaterials:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def image(self, env_id: str) -> TaskImage:
        """The image of an environment."""
        environment, _ = self.taskset.environment(env_id)
        repo = next((r for r in self.taskset.repos() if r.tree == environment.tree), None)
        if repo is None:
            raise StoreError(f"The set has no sources of the environment {env_id}.")
        sources = self.taskset.blob(repo.blob)

        def layers() -> Mapping[str, Path]:
            if not self._with_layers:
                return {}
            found = rebuilt_environment(self._settings or load(), repo, environment, sources).layers
            return {ENV: Path(found.env), REPO: Path(found.built), OUTPUTS: Path(found.outputs)}

        return toolchain_of(repo.language).image(repo, environment, sources, layers)

    def checkout(self, instance_id: str) -> Checkout:
        """The tree that an agent gets."""
        task = self._task(instance_id)
        base = self._sources(task)
        edits = self._edits(base, task)
        paths = set(list_files(base)) | edits.keys()
        kept = [path for path in sorted(paths - scrubbed(paths, task.language)) if edits.get(path, b"") is not None]
        return Checkout(
            archive=_packed(base, kept, edits), commit=import_commit(git_tree_hash(base, edits=edits), COMMIT_MESSAGE)
        )

    def solved(self, instance_id: str) -> Checkout:
        """The untouched sources."""
        task = self._task(instance_id)
        base = self._sources(task)
        return Checkout(archive=_packed(base, list_files(base), {}), commit=import_commit(task.tree, COMMIT_MESSAGE))

    def bug_patch(self, instance_id: str) -> str:
        """The deletion patch without its part that hides tests."""
        return split_patch(self._task(instance_id))[0]

    def grading(self, instance_id: str) -> GradingFiles:
        """What a plain grader of the task needs."""
        task = self._task(instance_id)
        base = self._sources(task)
        settings = VerdictSettings().merged_with(self.taskset.certificate(instance_id).settings)
        environment, _ = self.taskset.environment(task.env_id)
        tests = [*task.fail_to_pass, *task.pass_to_pass]
        own, built = touched(task.patch), frozenset(environment.built_files)
        named = {path_of(test) for test in tests} | set(touched(task.test_patch))
        language = get_language(task.language)
        candidates = (path for path in list_files(base) if path not in own and path not in built)
        kept = [path for path in candidates if path in named or _is_kept(path, language)]
        run = language.plain_run(
            environment.recipe, tests, timeout_s=settings.suite_timeout_s, test_timeout_s=settings.test_timeout_s
        )
        return GradingFiles(
            kept=_packed(base, kept, {}),
            request={**run.request, "program": run.program, "settings": list(run.settings)},
            programs={**run.files, **{name: (SHARED_PROGRAMS / name).read_bytes() for name in run.shared}},
            solution_paths=own,
            timeout_s=settings.suite_timeout_s,
        )

    def program(self, name: str) -> bytes:
        """A program of excise that runs in another tool's process."""
        return (PEERS / name).read_bytes()

    def _sources(self, task: Task) -> Path:
        """The folder with the untouched sources. Raises :class:`StoreError` if the set holds others."""
        folder = Path(self._folder.name) / task.tree
        if not folder.exists():
            repo = next((r for r in self.taskset.repos() if r.tree == task.tree), None)
            if repo is None:
                raise StoreError(f"The set has no sources for {task.instance_id}.")
            unpack(self.taskset.blob(repo.blob), folder)
            if git_tree_hash(folder) != task.tree:
                raise StoreError(f"The source archive of {task.repo} does not hold the tree of {task.instance_id}.")
        return folder

    @staticmethod
    def _edits(base: Path, task: Task) -> Mapping[str, bytes | None]:
        """The changes from the untouched sources to the shipped tree."""
        paths = touched(task.deletion_patch)
        present = {path: (base / path).read_bytes() for path in paths if (base / path).exists()}
        return apply_patch(present, task.deletion_patch)


def _is_kept(path: str, language: Language) -> bool:
    """Whether a file belongs to the tests, or says how they run."""
    folders = PurePosixPath(path).parts[:-1]
    return language.grading.forbidden(path, ours=False) in KEPT and not VENDORED & set(folders)


def _packed(root: Path, paths: Iterable[str], edits: Mapping[str, bytes | None]) -> bytes:
    """The files as a reproducible tar.gz."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in paths:
            file, member = root / path, tarfile.TarInfo(path)
            member.mode = 0o755 if file.exists() and not file.is_symlink() and file.stat().st_mode & 0o100 else 0o644
            if path not in edits and file.is_symlink():
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(file.readlink()), 0o777
                tar.addfile(member)
                continue
            data = edits[path] if path in edits else file.read_bytes()
            assert data is not None
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()
