"""A bare mirror of a git repository, from which single commits are taken out byte by byte.

Nothing that the repository or its server says is executed: only plain transports, no hooks, no filters,
no checkout (blobs are read with ``cat-file``), no prompt for credentials, a deadline on every call.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

from git import Git
from git.exc import GitCommandError

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import leads_out
from excise.extractors.fetch.untrusted_archives import MAX_BYTES, MAX_FILES

NETWORK_TIMEOUT_S = 900.0
"""Deadline of one call that talks to a server."""
SHA = re.compile(r"[0-9a-f]{40}")
"""A full commit id."""

_OPTIONS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
# Given to fetches alone, never stored: git would otherwise go to the network for each missing object.
_PARTIAL = ("-c", "remote.origin.promisor=true", "-c", "remote.origin.partialclonefilter=blob:none")
# A shallow clone may be a source, too; its history then ends where the clone's does. What lies beyond is not asked for:
# without GIT_NO_LAZY_FETCH, git would start one fetch for it inside the other, without end.
_FETCH = (*_PARTIAL, "fetch", "--update-shallow", "--no-auto-gc")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


def is_repository(path: Path) -> bool:
    """Whether the folder is the root of a git checkout or a bare repository (looked at, not asked)."""
    return (path / ".git").exists() or all((path / part).exists() for part in ("HEAD", "objects", "refs"))


class Mirror:
    """The bare mirror of one URL below ``cache/mirrors``."""

    def __init__(self, url: str, cache: Path) -> None:
        self.url = url
        self.path = (cache / "mirrors" / hashlib.sha256(url.encode()).hexdigest()[:24]).absolute()
        if not (self.path / "HEAD").exists():
            with self._locked():
                self._create()

    def remote_commit(self, rev: str) -> str:
        """The commit of a branch or tag (``HEAD`` if empty) as the server has it now; empty if it has none."""
        refs = {}
        for line in self._git("ls-remote", "origin").splitlines():
            commit, _, ref = line.partition("\t")
            refs[ref] = commit
        wanted = ("HEAD",) if not rev else (f"refs/tags/{rev}^{{}}", f"refs/tags/{rev}", f"refs/heads/{rev}", rev)
        return next((refs[name] for name in wanted if name in refs), "")

    def update(self) -> None:
        """Fetch all branches and tags: commits and trees only where the server can filter, else everything."""
        with self._locked():
            self._git(*_FETCH, "--prune", "--force", "origin")

    def commit(self, rev: str) -> str:
        """The full id of the commit that ``rev`` names in the mirror; empty if there is none."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").strip()
        except SourceError:
            return ""

    def ensure(self, commit: str) -> None:
        """Have the commit and all its files in the mirror.

        Raises :class:`SourceError` (``no_such_revision``) if the server no longer has it.
        """
        if not self.commit(commit):
            self.update()
        with self._locked():
            if not self.commit(commit):
                try:  # not on any branch any more, yet most servers still give it by its id
                    self._git(*_FETCH, "origin", commit)
                except SourceError as error:
                    raise SourceError(
                        f"{self.url} has no commit {commit} ({error})", reason="no_such_revision"
                    ) from error
            missing = [o[1:] for o in self._objects(commit) if o.startswith("?")]
            if missing:  # one request for all of them; git on its own would ask for each
                self._git(
                    *("-c", "fetch.negotiationAlgorithm=noop", *_FETCH),
                    *("--no-tags", "--no-write-fetch-head", "--stdin", "origin"),
                    stdin="\n".join(missing) + "\n",
                )

    def created_at(self, commit: str) -> str:
        """The committer's date, ISO-8601 UTC."""
        text = self._git("show", "--no-patch", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", commit)
        return text.strip()

    def version(self, commit: str) -> str:
        """The newest tag at or before the commit that looks like a version, without its prefix; else empty."""
        try:
            tag = self._git("describe", "--tags", "--abbrev=0", "--match=*[0-9].[0-9]*", commit).strip()
        except SourceError:
            return ""
        match = re.search(r"\d+(\.\d+)+\S*", tag)
        return match[0] if match else ""

    def export(self, commit: str, into: Path) -> None:
        """Write the files of the commit into ``into``; submodules stay out, LFS pointers stay pointers.

        Raises :class:`SourceError` for trees that no checkout would accept, and for trees that are too large.
        """
        links: list[tuple[str, str]] = []
        files: list[tuple[str, str, str]] = []
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")[:-1]:
            facts, _, path = line.partition("\t")
            mode, kind, oid = facts.split()
            _check(path)
            if mode == "120000":
                links.append((oid, path))
            elif kind == "blob":
                files.append((mode, oid, path))
        if len(files) > MAX_FILES:
            raise SourceError(f"{self.url} has more than {MAX_FILES} files", reason="too_large")
        self._write_files(files, links, into)

    def _write_files(self, files: list[tuple[str, str, str]], links: list[tuple[str, str]], into: Path) -> None:
        wanted = [oid for _, oid, _ in files] + [oid for oid, _ in links]
        blobs = self._blobs(wanted)
        for mode, _, path in files:
            target = into / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(next(blobs))
            target.chmod(0o755 if mode == "100755" else 0o644)
        for _, path in links:  # last, so that no file is ever written through one
            target = into / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.fsdecode(next(blobs)))
        for _, path in links:
            if leads_out(into, path):
                (into / path).unlink()

    def _blobs(self, oids: list[str]) -> Iterator[bytes]:
        """The content of each blob, in order. One process; the pipe is fed from a file, so it cannot block."""
        total = 0
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{oid}\n" for oid in oids).encode())
            names.seek(0)
            argv = ["git", *_flags(), "cat-file", "--batch"]
            env = {**os.environ, **self._environment(self.path)}
            with subprocess.Popen(argv, cwd=self.path, env=env, stdin=names, stdout=subprocess.PIPE) as git:
                assert git.stdout is not None
                for oid in oids:
                    header = git.stdout.readline().split()
                    if len(header) != 3 or header[1] != b"blob":
                        raise SourceError(f"{self.url}: object {oid} is missing", reason="source_unavailable")
                    total += int(header[2])
                    if total > MAX_BYTES:
                        git.kill()
                        raise SourceError(f"{self.url} is larger than {MAX_BYTES >> 20} MiB", reason="too_large")
                    yield git.stdout.read(int(header[2]))
                    git.stdout.read(1)

    def _objects(self, commit: str) -> list[str]:
        return self._git("rev-list", "--objects", "--no-object-names", "--missing=print", f"{commit}^{{tree}}").split()

    def _create(self) -> None:
        if (self.path / "HEAD").exists():
            return
        scratch = self.path.with_suffix(".new")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "--template=", ".", folder=scratch)
        for key, value in {
            "remote.origin.url": self.url,
            "remote.origin.tagOpt": "--tags",
        }.items():
            self._git("config", key, value, folder=scratch)
        self._git("config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/heads/*", folder=scratch)
        scratch.rename(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time; several worker processes may want the same mirror."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix(".lock"), "w") as lock:
            flock(lock, LOCK_EX)
            yield

    def _git(self, *argv: str, folder: Path | None = None, stdin: str = "") -> str:
        with tempfile.TemporaryFile() as source:
            source.write(stdin.encode())
            source.seek(0)
            try:
                output = Git(str(folder or self.path)).execute(
                    ["git", *_flags(), *argv],
                    istream=source,
                    env=self._environment(folder or self.path),
                    kill_after_timeout=NETWORK_TIMEOUT_S,
                    strip_newline_in_stdout=False,
                )
            except GitCommandError as error:
                raise SourceError(_explain(self.url, argv, error)) from error
        return str(output)

    def _environment(self, folder: Path) -> dict[str, str]:
        """Our own repository, whatever git hook or alias excise itself may run in."""
        environment = {**_ENVIRONMENT, "GIT_DIR": str(folder), "TZ": "UTC"}
        if self.url.startswith(("/", "file://")):
            environment["GIT_CONFIG_GLOBAL"] = str(self._trusting_config())
        return environment

    def _trusting_config(self) -> Path:
        """The user's own git configuration, and trust in the local repository that the user named.

        It may belong to somebody else; git then refuses to read it, though reading it runs nothing.
        """
        path = self.path.with_suffix(".gitconfig")
        if not path.exists():
            name = Path(self.url.removeprefix("file://")).as_posix()
            text = f"[include]\n\tpath = ~/.gitconfig\n[safe]\n\tdirectory = {name}\n\tdirectory = {name}/.git\n"
            path.write_text(text, encoding="utf-8")
        return path


def _flags() -> list[str]:
    return [part for key, value in _OPTIONS.items() for part in ("-c", f"{key}={value}")]


def _check(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts):
        raise SourceError(f"unsafe path in the repository: {path!r}", reason="bad_archive")


def _explain(url: str, argv: tuple[str, ...], error: GitCommandError) -> str:
    text = str(error.stderr or error).strip().removeprefix("stderr: ").strip("'\n ")
    decisive = [
        line for line in text.splitlines() if re.match(r"\s*(fatal|error|remote|ssh)\b", line)
    ] or text.splitlines()
    action = next(word for word in argv if not word.startswith("-") and "=" not in word)
    return f"git {action} of {url} failed: {' '.join(line.strip() for line in decisive[:4])}"
