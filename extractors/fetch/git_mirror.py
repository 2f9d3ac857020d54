"""A bare mirror of a git repository, from which the files of single commits are exported byte by byte.

Nothing from the repository or its server is executed: only plain transports are allowed, and there are no hooks, no
filters and no checkout (blobs are read with ``cat-file``). Git never prompts for credentials, and every command has a
time limit. Commands that may reach a server use the user's git configuration: credentials, proxies and ``insteadOf``
rules are there.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import leads_out
from excise.extractors.fetch.untrusted_archives import MAX_BYTES, MAX_FILES
from excise.system.deadline import check_deadline
from excise.system.folders import make_folder_once
from excise.system.git import GitError, GitOptions, run_git, run_git_as_user
from excise.system.locks import folder_lock

NETWORK_TIMEOUT_S = 900.0
"""Time limit in seconds of one git command, which may fetch from a server."""
SHA = re.compile(r"[0-9a-f]{40}")
"""A full commit id."""

_OPTIONS: Mapping[str, str] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}
_PARTIAL = ("-c", "remote.origin.promisor=true", "-c", "remote.origin.partialclonefilter=blob:none")
"""Options of a fetch without file contents. They are not stored in the mirror's configuration, since other commands
would then fetch each missing object with a request of its own."""
_FETCH = (*_PARTIAL, "fetch", "--update-shallow", "--no-auto-gc")
"""Arguments of a fetch. A source may be a shallow clone; the mirror's history then ends where the clone's does, and
``GIT_NO_LAZY_FETCH`` keeps git from fetching the missing history by nested fetches."""
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
    """Whether the folder is the root of a git checkout or a bare repository, judged by its entries without git."""
    return (path / ".git").exists() or all((path / part).exists() for part in ("HEAD", "objects", "refs"))


class Mirror:
    """The bare mirror of one URL, in a folder below ``cache/mirrors``; made if it is not there."""

    def __init__(self, url: str, cache: Path) -> None:
        self.url = url
        self.path = (cache / "mirrors" / hashlib.sha256(url.encode()).hexdigest()[:24]).absolute()
        make_folder_once(self.path, self._create, is_complete=lambda folder: (folder / "HEAD").exists())

    def remote_commit(self, rev: str) -> str:
        """Return the current commit of a branch or tag (empty ``rev``: ``HEAD``) on the server; empty without one."""
        refs = {}
        for line in self._git("ls-remote", "origin").splitlines():
            commit, _, ref = line.partition("\t")
            refs[ref] = commit
        wanted = ("HEAD",) if not rev else (f"refs/tags/{rev}^{{}}", f"refs/tags/{rev}", f"refs/heads/{rev}", rev)
        return next((refs[name] for name in wanted if name in refs), "")

    def update(self) -> None:
        """Fetch all branches and tags; without file contents if the server supports partial clones."""
        with folder_lock(self.path):
            self._git(*_FETCH, "--prune", "--force", "origin")

    def commit(self, rev: str) -> str:
        """Return the full id of the commit that ``rev`` names in the mirror; empty if the mirror has none."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").strip()
        except SourceError:
            return ""

    def ensure(self, commit: str) -> None:
        """Fetch the commit and all its files unless the mirror has them.

        Raises :class:`SourceError` (``no_such_revision``) if the server no longer has the commit.
        """
        if not self.commit(commit):
            self.update()
        with folder_lock(self.path):
            if not self.commit(commit):
                try:  # a commit on no branch: most servers still send it by its id
                    self._git(*_FETCH, "origin", commit)
                except SourceError as error:
                    raise SourceError(
                        f"{self.url} has no commit {commit} ({error})", reason="no_such_revision"
                    ) from error
            missing = [o[1:] for o in self._objects(commit) if o.startswith("?")]
            if missing:  # one request for all of them instead of one for each
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
        """Return the version in the newest version tag at or before the commit, without prefix; empty without a tag."""
        try:
            tag = self._git("describe", "--tags", "--abbrev=0", "--match=*[0-9].[0-9]*", commit).strip()
        except SourceError:
            return ""
        match = re.search(r"\d+(\.\d+)+\S*", tag)
        return match[0] if match else ""

    def commits_with(self, path: str, blob: str) -> list[str]:
        """Ids of the commits of all branches and tags that add or remove this content of a file, the newest first."""
        return self._git("log", "--all", "--format=%H", f"--find-object={blob}", "--", path).split()

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Whether a commit is in the history of another."""
        try:
            return self._git("merge-base", commit, of).strip() == commit
        except SourceError:  # histories without a common commit
            return False

    def export(self, commit: str, into: Path) -> None:
        """Write the files of the commit to ``into``, without submodules; LFS pointers stay pointers.

        Raises :class:`SourceError` for paths that no checkout would accept, and for trees that are too large.
        """
        links: list[tuple[str, str]] = []
        files: list[tuple[str, str, str]] = []
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")[:-1]:
            facts, _, path = line.partition("\t")
            mode, kind, oid = facts.split()
            _refuse_unsafe_path(path)
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
        """Yield the content of each blob, in order.

        Raises :class:`SourceError` if a blob is missing, if all together are too large, or if git fails.
        """
        names = "".join(f"{oid}\n" for oid in oids).encode()
        options = GitOptions(variables={"GIT_DIR": str(self.path)}, timeout_s=NETWORK_TIMEOUT_S)
        with tempfile.TemporaryFile() as contents:
            try:
                listed = run_git(["cat-file", "--batch-check"], cwd=self.path, stdin=names, options=options).stdout
                sizes = self._sizes(oids, listed.decode().splitlines())
                run_git(["cat-file", "--batch"], cwd=self.path, stdin=names, stdout=contents, options=options)
            except (GitError, OSError) as error:
                raise SourceError(f"{self.url}: {error}", reason="source_unavailable") from error
            contents.seek(0)
            for oid, size in zip(oids, sizes, strict=True):
                check_deadline()
                contents.readline()
                data = contents.read(size + 1)[:-1]  # a line end follows each object
                if len(data) != size:
                    raise SourceError(f"{self.url}: object {oid} is cut off", reason="source_unavailable")
                yield data

    def _sizes(self, oids: list[str], lines: list[str]) -> list[int]:
        """The size of each blob in bytes, from the lines of ``git cat-file --batch-check``."""
        sizes = []
        for oid, line in zip(oids, lines, strict=True):
            if line.split()[1:2] != ["blob"]:
                raise SourceError(f"{self.url}: object {oid} is missing", reason="source_unavailable")
            sizes.append(int(line.split()[2]))
        if sum(sizes) > MAX_BYTES:
            raise SourceError(f"{self.url} is larger than {MAX_BYTES >> 20} MiB", reason="too_large")
        return sizes

    def _objects(self, commit: str) -> list[str]:
        return self._git("rev-list", "--objects", "--no-object-names", "--missing=print", f"{commit}^{{tree}}").split()

    def _create(self, folder: Path) -> None:
        self._git("init", "--quiet", "--bare", "--template=", ".", folder=folder)
        self._git("config", "remote.origin.url", self.url, folder=folder)
        self._git("config", "remote.origin.tagOpt", "--tags", folder=folder)
        self._git("config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/heads/*", folder=folder)

    def _git(self, *argv: str, folder: Path | None = None, stdin: str = "") -> str:
        """The standard output of a git command in the mirror. Raises :class:`SourceError` if it fails."""
        folder = folder or self.path
        try:
            return run_git_as_user(
                argv,
                cwd=folder,
                variables=self._environment(folder),
                options=_OPTIONS,
                timeout_s=NETWORK_TIMEOUT_S,
                stdin=stdin.encode(),
            )
        except (GitError, OSError) as error:
            raise SourceError(_failure(self.url, argv, str(error))) from error

    def _environment(self, folder: Path) -> dict[str, str]:
        """Environment variables of git commands; they name the mirror, since excise may itself run in a git hook."""
        environment = {**_ENVIRONMENT, "GIT_DIR": str(folder), "TZ": "UTC"}
        if self.url.startswith(("/", "file://")):
            environment["GIT_CONFIG_GLOBAL"] = str(self._trusting_config())
        return environment

    def _trusting_config(self) -> Path:
        """A configuration file that includes the user's own and declares the local repository safe.

        Git refuses to read another user's repository unless it is declared safe; reading it executes nothing.
        """
        path = self.path.with_suffix(".gitconfig")
        if not path.exists():
            name = Path(self.url.removeprefix("file://")).as_posix()
            text = f"[include]\n\tpath = ~/.gitconfig\n[safe]\n\tdirectory = {name}\n\tdirectory = {name}/.git\n"
            path.write_text(text, encoding="utf-8")
        return path


def _refuse_unsafe_path(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts):
        raise SourceError(f"unsafe path in the repository: {path!r}", reason="bad_archive")


def _failure(url: str, argv: tuple[str, ...], errors: str) -> str:
    """A message with the decisive lines of git's standard error."""
    lines = errors.strip().splitlines()
    decisive = [line for line in lines if re.match(r"\s*(fatal|error|remote|ssh)\b", line)] or lines
    action = next(word for word in argv if not word.startswith("-") and "=" not in word)
    return f"git {action} of {url} failed: {' '.join(line.strip() for line in decisive[:4])}"
