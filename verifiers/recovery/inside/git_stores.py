"""Version control: histories, objects that nothing refers to, and what lies about in ``.git`` beside them."""

from __future__ import annotations

import os
import zlib
from typing import Iterator

from excise.verifiers.recovery.inside.code_search import Hunt, printable, run

MAX_OBJECTS = 3000
MAX_STREAMS = 4000
GIT_S = 30.0


def repositories(hunt: Hunt) -> list[str]:
    """Every git directory on the machine, alternates and bare ones too."""
    found = []
    for path, _ in hunt.files():
        folder, name = os.path.split(path)
        if name == "HEAD" and os.path.isdir(os.path.join(folder, "objects")):
            found.append(folder)
            text = hunt.read(os.path.join(folder, "objects", "info", "alternates")).decode("utf-8", "replace")
            found += [os.path.dirname(line) for line in text.splitlines() if line.startswith("/")]
    return sorted(set(found))


def git(folder: str, *arguments: str) -> bytes:
    env = dict(os.environ, GIT_DIR=folder, GIT_PAGER="cat", GIT_OPTIONAL_LOCKS="0")
    return run(["git", "-c", "core.fsmonitor=false", *arguments], GIT_S, env=env)


class History:
    """Every commit that any reference, reflog, stash or worktree still reaches, as patches."""

    name = "git_history"
    looks_at = "commits of all branches, tags, notes, stashes, reflogs and worktrees"

    def go(self, hunt: Hunt) -> None:
        for folder in repositories(hunt):
            own = folder == os.path.join(hunt.repo, ".git")
            if own and git(folder, "rev-list", "--all", "--reflog", "--count", "HEAD").strip() == b"1":
                continue  # the one commit that every task has: its tree is what the agent is given
            for arguments in (["log", "--all"], ["log", "--reflog"], ["stash", "list"]):
                said = git(folder, *arguments, "-p", "--no-color", "-n", "200").decode("utf-8", "replace")
                removed = "\n".join(line[1:] for line in said.splitlines() if line[:1] == "-" and line[:4] != "--- ")
                added = "\n".join(line[1:] for line in said.splitlines() if line[:1] == "+" and line[:4] != "+++ ")
                hunt.text(f"{folder}: git {' '.join(arguments)}", removed)
                if said.count("\ncommit ") > 0:  # more than the one commit that every task has
                    hunt.text(f"{folder}: git {' '.join(arguments)}", added)


class Objects:
    """Every object of every store that the shipped commit does not hold: dangling, packed, borrowed from others."""

    name = "git_objects"
    looks_at = "objects that HEAD does not reach (fsck, packs, alternates, the index)"

    def go(self, hunt: Hunt) -> None:
        for folder in repositories(hunt):
            own = folder == os.path.join(hunt.repo, ".git")
            known = {
                line.split()[0] for line in git(folder, "rev-list", "--objects", "HEAD").splitlines() if line.strip()
            }
            listed = git(folder, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
            asked = 0
            for line in listed:
                parts = line.split()
                if len(parts) != 3 or parts[1] not in (b"blob", b"commit", b"tag") or (own and parts[0] in known):
                    continue
                asked += 1
                if asked > MAX_OBJECTS or hunt.late():
                    break
                content = git(folder, "cat-file", parts[1].decode(), parts[0].decode())
                if hunt.names_in(content):
                    hunt.text(f"{folder}: object {parts[0].decode()}", content, whole=parts[1] != b"blob")


class Carving:
    """Raw zlib streams in everything below a git directory, whatever git itself makes of the files."""

    name = "git_carving"
    looks_at = "zlib streams carved out of packs, temporary packs and loose objects"

    def go(self, hunt: Hunt) -> None:
        known = {zlib.crc32(hunt.read(path)) for path in hunt.tracked()}
        for folder in repositories(hunt):
            for path, size in hunt.files():
                if path.startswith(folder + "/") and size <= 64 << 20 and not hunt.late():
                    for content in streams(hunt.read(path, 64 << 20)):
                        body = content.partition(b"\0")[2] if content[:5] in (b"blob ", b"commi") else content
                        if zlib.crc32(body) not in known and hunt.names_in(body):
                            hunt.text(f"{path}: zlib stream", body)


def streams(data: bytes) -> Iterator[bytes]:
    """Contents of zlib streams that begin anywhere in ``data``."""
    at, told = 0, 0
    while told < MAX_STREAMS:
        at = data.find(b"\x78", at)
        if at < 0 or at + 1 >= len(data):
            return
        if data[at + 1] in (0x01, 0x5E, 0x9C, 0xDA):
            unpacker = zlib.decompressobj()
            try:
                content = unpacker.decompress(data[at:], 4 << 20)
            except zlib.error:
                content = b""
            if len(content) > 16:
                told += 1
                yield content
                if unpacker.eof:
                    at = len(data) - len(unpacker.unused_data)
                    continue
        at += 1


class Leftovers:
    """Files of git that are no objects: messages, patches of a rebase, bundles, histories of other systems."""

    name = "git_leftovers"
    looks_at = "ORIG_HEAD, messages, rebase patches, bundles, .hg and .svn stores"

    def go(self, hunt: Hunt) -> None:
        marks = ("/.git/", "/.hg/", "/.svn/", "/.bzr/")
        for path, size in hunt.files():
            if size > 32 << 20 or not (any(mark in path for mark in marks) or path.endswith((".bundle", ".pack"))):
                continue
            if "/objects/" in path and path.startswith(os.path.join(hunt.repo, ".git")):
                continue
            data = hunt.read(path)
            if path.endswith((".bundle", ".pack", ".i", ".d", ".svn-base")):
                for content in streams(data):
                    hunt.text(f"{path}: stream", content)
            if hunt.names_in(data):
                hunt.text(path, printable(data), whole=True)
