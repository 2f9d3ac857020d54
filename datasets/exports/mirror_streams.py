"""Git repositories of an export, as streams for ``git fast-import``: equal sets give equal bytes, which packs do not.

A project's repository has a branch for each task, named by its id, with the tree that an agent gets, and where a format
needs it the branch ``main`` with the solved sources. All commits are without parents, by a fixed author at a fixed
date, so that their ids are known: those of :attr:`excise.protocols.Checkout.commit`.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from excise.protocols import Checkout
from excise.system.files import replace_file

IDENTITY = b"excise <excise@localhost> 946684800 +0000"
"""Author, committer and date of the commits."""
MESSAGE = b"Import\n"
MAIN = "main"
"""The branch with the solved sources."""
FOLDER = "mirrors"
"""Folder of the streams."""
BUILD = """#!/bin/sh
# Makes a bare git repository NAME.git of each stream.
set -eu
cd "$(dirname "$0")"
for stream in *.fast-import; do
    name=${stream%.fast-import}.git
    rm -rf "$name"
    git init --quiet --bare --initial-branch=main "$name"
    git -C "$name" fast-import --quiet <"$stream"
done
"""
"""Script that makes the repositories."""


class MirrorStreams:
    """Writes one stream for each repository of an export, a branch at a time; earlier streams in ``root`` go."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._marks: dict[str, dict[bytes, int]] = {}
        """Name of a repository to hash of a content to its number in the stream."""
        self._branches: set[tuple[str, str]] = set()
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    def add(self, name: str, branch: str, tree: Checkout) -> None:
        """Add a branch with a tree to the repository ``name``, unless it is there."""
        if (name, branch) in self._branches:
            return
        self._branches.add((name, branch))
        with (self.root / f"{name}.fast-import").open("ab") as stream:
            stream.writelines(_branch(branch, tree.archive, self._marks.setdefault(name, {})))

    def finish(self) -> None:
        """Write the script that makes the repositories."""
        replace_file(self.root / "build.sh", BUILD.encode())


def mirror_name(repo: str) -> str:
    """Name of the repository of a project: ``OWNER__NAME``."""
    owner, _, name = repo.rpartition("/")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return f"{re.sub(r'[^A-Za-z0-9-]+', '-', owner) or 'excise'}__{plain}"


def _branch(branch: str, archive: bytes, marks: dict[bytes, int]) -> Iterator[bytes]:
    """The part of a stream that makes a branch: contents without a number yet, then the commit."""
    lines = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            data, mode = _content(files, member)
            digest = hashlib.sha256(data).digest()
            if digest not in marks:
                marks[digest] = len(marks) + 1
                yield b"blob\nmark :%d\ndata %d\n%s\n" % (marks[digest], len(data), data)
            lines.append(b"M %s :%d %s\n" % (mode, marks[digest], _quoted(member.name)))
    yield b"commit refs/heads/%s\nauthor %s\ncommitter %s\n" % (branch.encode(), IDENTITY, IDENTITY)
    yield b"data %d\n%s" % (len(MESSAGE), MESSAGE)
    yield from lines
    yield b"\n"


def _content(files: tarfile.TarFile, member: tarfile.TarInfo) -> tuple[bytes, bytes]:
    """Content and mode of a file in git's terms; of a link, its target."""
    if member.issym():
        return member.linkname.encode("utf-8", "surrogateescape"), b"120000"
    stream = files.extractfile(member)
    assert stream is not None, "checkouts hold files and links"
    return stream.read(), b"100755" if member.mode & 0o100 else b"100644"


def _quoted(path: str) -> bytes:
    """A path for a line of the stream."""
    data = path.encode("utf-8", "surrogateescape")
    if data.startswith(b'"') or b"\n" in data:
        return b'"' + data.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    return data
