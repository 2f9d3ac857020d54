"""Operations that all backends' sessions share: reading and writing files, forks, diffs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.sandbox.overlay_layers import changed_paths, find_in_layers
from excise.errors import SandboxError
from excise.protocols import Completed, Mount, Session
from excise.system.git import GitError, GitOptions, run_git

COMPARE_S = 300.0
"""Seconds for one comparison of files."""
MAX_PATCH_BYTES = 32 << 20
"""Maximum size of a patch; a larger one is cut off, and no grader accepts one of this size."""


class SessionBase:
    """Base class of the backends' sessions. A backend's ``open`` calls :meth:`enable_forking` once."""

    forks = False
    _mounts: Sequence[Mount] = ()
    _reopen: Callable[[Sequence[Mount]], Session] | None = None
    _scratch: Path | None = None

    def enable_forking(self, mounts: Sequence[Mount], reopen: Callable[[Sequence[Mount]], Session]) -> None:
        """Store the mounts, and a function that opens a session like this one on other mounts."""
        self._mounts, self._reopen = mounts, reopen

    def __enter__(self) -> Session:
        return self  # type: ignore[return-value]

    def __exit__(self, *exc: object) -> None:
        self.close()

    def snapshot(self, target: str, into: Path) -> None:
        """See :class:`excise.protocols.Session`; implemented by the backend."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove temporary layers of a fork; the backend's own ``close`` calls this last."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """See :class:`excise.protocols.Session`; implemented by the backend."""
        raise NotImplementedError

    def put(self, path: str, data: bytes | None) -> None:
        """Write a file, or delete it if ``data`` is None; by a command inside, so that no link can lead outside."""
        script = 'rm -f -- "$1"' if data is None else 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"'
        done = self.exec(["/bin/sh", "-c", script, "sh", path], timeout_s=60, stdin=data or b"", cwd="/")
        if done.rc != 0:
            raise SandboxError(f"{path} cannot be written: {done.stderr.decode(errors='replace').strip()}")

    def get(self, path: str) -> bytes:
        """Read a file with a command inside the sandbox. Raises ``FileNotFoundError``."""
        done = self.exec(["/bin/cat", "--", path], timeout_s=60, cwd="/")
        if done.rc != 0:
            raise FileNotFoundError(path)
        return done.stdout

    def fork(self) -> Session:
        """Open a second session whose mounts start with the present content of this session's mounts."""
        assert self._reopen is not None
        scratch = Path(tempfile.mkdtemp(prefix=f"excise-fork-{os.getpid()}-"))
        scratch.chmod(0o711)
        try:
            mounts = []
            for number, mount in enumerate(self._mounts):
                layer = scratch / str(number)
                if mount.writable:
                    self.snapshot(mount.target, layer)
                    mounts.append(replace(mount, layers=(str(layer), *mount.layers)))
                else:
                    mounts.append(mount)
            session = self._reopen(mounts)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        session._scratch = scratch  # type: ignore[attr-defined]
        return session

    def diff(self, target: str) -> bytes:
        """Return the changes in the mount ``target`` as a patch for ``git apply``. Raises :class:`SandboxError`."""
        mount = next((m for m in self._mounts if m.target == target and m.writable), None)
        if mount is None:
            raise SandboxError(f"{target} is no writable mount of this session.")
        with tempfile.TemporaryDirectory(prefix=f"excise-fork-{os.getpid()}-") as folder:
            layer, before, after = (Path(folder, name) for name in ("layer", "a", "b"))
            self.snapshot(target, layer)
            before.mkdir()
            after.mkdir()
            for path in changed_paths(layer, mount.layers):
                _copy(find_in_layers(path, mount.layers), before / path)
                _copy(layer / path, after / path)
            return diff_folders(Path(folder))


def _copy(source: Path, target: Path) -> None:
    """Copy a regular file or a link; do nothing for any other path."""
    if not os.path.lexists(source) or not (source.is_symlink() or source.is_file()):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def diff_folders(folder: Path) -> bytes:
    """The patch from ``a`` to ``b``, two folders in ``folder``; a huge one is cut off. Raises :class:`SandboxError`."""
    command = ["diff", "--no-index", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
    command += ["--src-prefix=", "--dst-prefix=", "a", "b"]
    with tempfile.TemporaryFile() as patch:
        try:
            run_git(command, cwd=folder, stdout=patch, options=GitOptions(accepted=(0, 1), timeout_s=COMPARE_S))
        except GitError as error:
            raise SandboxError(f"The changed files cannot be compared: {error}") from error
        patch.seek(0)
        return patch.read(MAX_PATCH_BYTES)
