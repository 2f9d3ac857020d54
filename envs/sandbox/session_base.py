"""What every session can do once it can run commands and be snapshotted: move files, go on twice, say what changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.sandbox.overlay_layers import changed_paths, find_in_layers
from excise.errors import SandboxError
from excise.protocols import Completed, Mount, Session

COMPARE_S = 300.0
"""Seconds for a comparison."""
MAX_PATCH_BYTES = 32 << 20
"""What is kept of a patch; no grader takes one that is as large."""


class CommonSession:
    """Files, forks and diffs in terms of ``exec`` and ``snapshot``; a backend's session inherits from it.

    ``begin_forking`` is called once by the backend's ``open``.
    """

    _mounts: Sequence[Mount] = ()
    _reopen: Callable[[Sequence[Mount]], Session] | None = None
    _scratch: Path | None = None

    def begin_forking(self, mounts: Sequence[Mount], reopen: Callable[[Sequence[Mount]], Session]) -> None:
        """Remember the mounts, and how to open a session like this one on others."""
        self._mounts, self._reopen = mounts, reopen

    def __enter__(self) -> Session:
        return self  # type: ignore[return-value]

    def __exit__(self, *exc: object) -> None:
        self.close()

    def snapshot(self, target: str, into: Path) -> None:
        """See :class:`excise.protocols.Session`; the backend's."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove what forking left; the backend's own ``close`` calls it last."""
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
        """See :class:`excise.protocols.Session`; the backend's."""
        raise NotImplementedError

    def put(self, path: str, data: bytes | None) -> None:
        """Write or delete a file, from inside, so that no link can lead out."""
        script = 'rm -f -- "$1"' if data is None else 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"'
        done = self.exec(["/bin/sh", "-c", script, "sh", path], timeout_s=60, stdin=data or b"", cwd="/")
        if done.rc != 0:
            raise SandboxError(f"{path} cannot be written: {done.stderr.decode(errors='replace').strip()}")

    def get(self, path: str) -> bytes:
        """Read a file, from inside."""
        done = self.exec(["/bin/cat", "--", path], timeout_s=60, cwd="/")
        if done.rc != 0:
            raise FileNotFoundError(path)
        return done.stdout

    def fork(self) -> Session:
        """A second session that begins with everything that was written to this one's mounts so far."""
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
        """What was written to the mount ``target``, as a patch for ``git apply``. Raises :class:`SandboxError`."""
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
            return compare(Path(folder))


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a link, if there is one."""
    if not os.path.lexists(source) or not (source.is_symlink() or source.is_file()):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def compare(folder: Path) -> bytes:
    """The patch from ``a`` to ``b`` of a folder; a huge one is cut off. Raises :class:`SandboxError`."""
    command = ["git", "diff", "--no-index", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
    command += ["--src-prefix=", "--dst-prefix=", "a", "b"]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    with tempfile.TemporaryFile() as patch:
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=patch, stderr=subprocess.PIPE,
                check=False, timeout=COMPARE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SandboxError(f"git did not compare the files within {COMPARE_S:.0f} s.") from None
        if done.returncode > 1:
            raise SandboxError(f"git cannot compare the files: {done.stderr.decode(errors='replace').strip()}")
        patch.seek(0)
        return patch.read(MAX_PATCH_BYTES)
