"""Version control: histories, unreferenced objects, and other files in ``.git``."""

from __future__ import annotations

import os
import zlib

from excise.verifiers.recovery.inside.code_search import CodeSearch, command_output, printable_strings

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Iterator

MAX_OBJECTS = 3000
MAX_STREAMS = 4000
GIT_S = 30.0


def repositories(search: CodeSearch) -> list[str]:
    """Every git directory on the machine, including alternates and bare repositories."""
    found = []
    for path, _ in search.files():
        folder = path[: -len("/HEAD")]
        if path.endswith("/HEAD") and os.path.isdir(os.path.join(folder, "objects")):
            found.append(folder)
            text = search.read(os.path.join(folder, "objects", "info", "alternates")).decode("utf-8", "replace")
            found += [os.path.dirname(line) for line in text.splitlines() if line.startswith("/")]
    return sorted(set(found))


def git(folder: str, *arguments: str) -> bytes:
    env = dict(os.environ, GIT_DIR=folder, GIT_PAGER="cat", GIT_OPTIONAL_LOCKS="0")
    return command_output(["git", "-c", "core.fsmonitor=false", *arguments], GIT_S, env=env)


class History:
    """Searches the patches of the newest 200 commits each of all references, of the reflogs and of the stashes."""

    name = "git_history"
    looks_at = "commits of all branches, tags, notes, stashes, reflogs and worktrees"

    def run(self, search: CodeSearch) -> None:
        for folder in repositories(search):
            own = folder == os.path.join(search.repo, ".git")
            if own and git(folder, "rev-list", "--all", "--reflog", "--count", "HEAD").strip() == b"1":
                continue  # the single commit that every task has, whose tree the agent is given
            for arguments in (["log", "--all"], ["log", "--reflog"], ["stash", "list"]):
                output = git(folder, *arguments, "-p", "--no-color", "-n", "200").decode("utf-8", "replace")
                removed = "\n".join(line[1:] for line in output.splitlines() if line[:1] == "-" and line[:4] != "--- ")
                added = "\n".join(line[1:] for line in output.splitlines() if line[:1] == "+" and line[:4] != "+++ ")
                search.report_definitions(f"{folder}: git {' '.join(arguments)}", removed)
                if output.count("\ncommit ") > 0:  # more than the single commit that every task has
                    search.report_definitions(f"{folder}: git {' '.join(arguments)}", added)


class Objects:
    """Searches git objects that the shipped commit does not contain: dangling, packed, or from alternates."""

    name = "git_objects"
    looks_at = "objects that HEAD does not reach (fsck, packs, alternates, the index)"

    def run(self, search: CodeSearch) -> None:
        for folder in repositories(search):
            own = folder == os.path.join(search.repo, ".git")
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
                if asked > MAX_OBJECTS or search.is_out_of_time():
                    break
                content = git(folder, "cat-file", parts[1].decode(), parts[0].decode())
                if search.contains_name(content):
                    search.report_definitions(
                        f"{folder}: object {parts[0].decode()}", content, whole=parts[1] != b"blob"
                    )


class Carving:
    """Decompresses zlib streams in every file below a git directory, even if git cannot read it."""

    name = "git_carving"
    looks_at = "zlib streams carved out of packs, temporary packs and loose objects"

    def run(self, search: CodeSearch) -> None:
        known = {zlib.crc32(search.read(path)) for path in search.tracked()}
        for folder in repositories(search):
            for path, size in search.files():
                if path.startswith(folder + "/") and size <= 64 << 20 and not search.is_out_of_time():
                    for content in streams(search.read(path, 64 << 20)):
                        body = content.partition(b"\0")[2] if content[:5] in (b"blob ", b"commi") else content
                        if zlib.crc32(body) not in known and search.contains_name(body):
                            search.report_definitions(f"{path}: zlib stream", body)


def streams(data: bytes) -> Iterator[bytes]:
    """Decompressed contents of zlib streams that begin anywhere in ``data``."""
    at, count = 0, 0
    while count < MAX_STREAMS:
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
                count += 1
                yield content
                if unpacker.eof:
                    at = len(data) - len(unpacker.unused_data)
                    continue
        at += 1


class Leftovers:
    """Searches git files that are not objects (messages, rebase patches, bundles) and stores of other systems."""

    name = "git_leftovers"
    looks_at = "ORIG_HEAD, messages, rebase patches, bundles, .hg and .svn stores"

    def run(self, search: CodeSearch) -> None:
        marks = ("/.git/", "/.hg/", "/.svn/", "/.bzr/")
        for path, size in search.files():
            if size > 32 << 20 or not (any(mark in path for mark in marks) or path.endswith((".bundle", ".pack"))):
                continue
            if "/objects/" in path and path.startswith(os.path.join(search.repo, ".git")):
                continue
            data = search.read(path)
            if path.endswith((".bundle", ".pack", ".i", ".d", ".svn-base")):
                for content in streams(data):
                    search.report_definitions(f"{path}: stream", content)
            if search.contains_name(data):
                search.report_definitions(path, printable_strings(data), whole=True)
