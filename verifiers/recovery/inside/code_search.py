"""What every strategy shares: the names it is after, the files that it may read, and what it brings back.

Runs inside the agent's sandbox, from memory, on whatever interpreter the environment has (3.8 or newer).
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import time
from typing import Any, Callable, Iterator

MAX_FILE = 8 << 20
MAX_READ = 1 << 30
MAX_PIECE = 64 << 10
MAX_PIECES = 500
MAX_CHARS = 1 << 20
MAX_ALL_CHARS = 6 << 20
MAX_NAMES = 12
PSEUDO = ("/proc", "/sys", "/dev")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
IDENTIFIER = re.compile(rb"[A-Za-z0-9_]")


class Target:
    """One removed symbol, as the agent may know it: file and name, nothing of its code."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.path, _, self.qualname = symbol.partition("::")
        self.name = self.qualname.rpartition(".")[2]
        self.stem = os.path.splitext(os.path.basename(self.path))[0]


class Hunt:
    """The common ground of all strategies, and the collector of what they find."""

    def __init__(self, order: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
        self.targets = [Target(symbol) for symbol in order["symbols"]]
        self.repo: str = order["repo"]
        self.distribution: str = order["distribution"]
        self.packages: list[str] = order["packages"]
        self.thorough: bool = order["thorough"]
        self.ends = time.monotonic() + float(order["seconds"])
        self.emit = emit
        self.strategy = ""
        self.pieces = self.chars = self.all_chars = 0
        self.seen: set[int] = set()
        self.num_read = self.bytes_read = 0
        names = {t.name for t in self.targets if t.name} or {t.stem for t in self.targets}
        self.names = sorted(names, key=lambda name: (-len(name), name))[:MAX_NAMES]
        self.stems = sorted({t.stem for t in self.targets})
        self.wanted = [name.encode() for name in self.names]
        either = "|".join(map(re.escape, self.names))
        self.definition = re.compile(r"(?m)^([ \t>|+#-]*)(?:async[ \t]+def|def|class)[ \t]+(?:%s)\b" % either)
        self._files: list[tuple[str, int]] | None = None
        self._naming: list[str] | None = None
        self._tracked: frozenset[str] | None = None

    # ------------------------------------------------------------------------------------ files
    def late(self) -> bool:
        return time.monotonic() > self.ends

    def roots(self) -> list[str]:
        """Everything but the system itself; with ``thorough``, that too. The interpreter's library always."""
        library = os.path.dirname(os.__file__)
        try:
            top = sorted("/" + name for name in os.listdir("/"))
        except OSError:
            top = [self.repo, os.path.expanduser("~"), "/tmp"]
        skipped = PSEUDO if self.thorough else PSEUDO + SYSTEM
        found = [path for path in top if path not in skipped and not os.path.islink(path)]
        found.append("/dev/shm")
        if not any(library.startswith(root + "/") for root in found):
            found.append(library)
        return found

    def files(self) -> list[tuple[str, int]]:
        """(path, size) of every regular file that can be listed."""
        if self._files is None:
            self._files = list(walk(self.roots()))
        return self._files

    def read(self, path: str, limit: int = MAX_FILE) -> bytes:
        if self.bytes_read > MAX_READ:
            return b""
        try:
            with open(path, "rb") as file:
                data = file.read(limit)
        except (OSError, ValueError):
            return b""
        self.num_read += 1
        self.bytes_read += len(data)
        return data

    def tracked(self) -> frozenset[str]:
        """Files of the checkout that its history holds: what the agent is meant to read."""
        if self._tracked is None:
            said = run(["git", "-C", self.repo, "ls-files", "-z"], 60.0)
            names = said.decode("utf-8", "surrogateescape").split("\0")
            self._tracked = frozenset(os.path.join(self.repo, name) for name in names if name)
        return self._tracked

    def stray(self) -> Iterator[tuple[str, bytes]]:
        """Files that nobody gave on purpose: untracked in the checkout, in the home, in temporary folders."""
        for path, size in self.files():
            outside = path.startswith(os.path.expanduser("~") + "/") or path.startswith(("/tmp/", "/var/", "/dev/shm/"))
            if size <= MAX_FILE and (outside or (path.startswith(self.repo + "/") and path not in self.tracked())):
                yield path, self.read(path)

    def naming(self) -> list[str]:
        """Files in which one of the names occurs; those of the checkout's history are no find."""
        if self._naming is None:
            self._naming = []
            git = os.path.join(self.repo, ".git") + os.sep
            for path, size in self.files():
                if self.late():
                    break
                read = size <= MAX_FILE and not path.startswith(git) and path not in self.tracked()
                if read and self.names_in(self.read(path)):
                    self._naming.append(path)
            library = os.path.dirname(os.__file__)  # what everybody has comes last: there is room for so much only
            self._naming.sort(
                key=lambda path: (path.startswith(library), os.path.basename(path)[:-3] not in self.stems)
            )
        return self._naming

    def names_in(self, data: bytes) -> bool:
        """Whether one of the names stands in ``data`` as a word."""
        for name in self.wanted:
            at = data.find(name)
            while at >= 0:
                before, after = data[max(at - 1, 0) : at], data[at + len(name) : at + len(name) + 1]
                if not IDENTIFIER.match(before) and not IDENTIFIER.match(after):
                    return True
                if before and before[0] == len(name):  # a marshalled or pickled string, its length before it
                    return True
                at = data.find(name, at + 1)
        return False

    # ---------------------------------------------------------------------------------- results
    def piece(self, kind: str, where: str, text: str, **more: Any) -> None:
        text = text[:MAX_PIECE]
        size, mark = len(text) + len(str(more)), hash((self.strategy, kind, text, str(more)))
        room = self.chars + size <= MAX_CHARS and self.all_chars + size <= MAX_ALL_CHARS
        if text and room and self.pieces < MAX_PIECES and mark not in self.seen:
            self.seen.add(mark)
            self.pieces, self.chars, self.all_chars = self.pieces + 1, self.chars + size, self.all_chars + size
            self.emit({"strategy": self.strategy, "kind": kind, "where": where[:300], "text": text, **more})

    def text(self, where: str, data: bytes | str, whole: bool = False) -> None:
        """Definitions of the wanted names in a text; ``whole``: all of it, if any name occurs."""
        text = data if isinstance(data, str) else decoded(data)
        blocks = list(self.blocks(text))
        for block in blocks[:8]:
            self.piece("text", where, block)
        if whole and not blocks and self.names_in(text.encode("utf-8", "replace")):
            for window in self.windows(text):
                self.piece("text", where, window)

    def blocks(self, text: str) -> Iterator[str]:
        """Each definition of a wanted name, to where its indentation ends."""
        for match in self.definition.finditer(text):
            lines = text[match.start() : match.start() + MAX_PIECE].splitlines(True)
            edge = len(match.group(1).expandtabs())
            end = 1
            while end < len(lines):
                line = lines[end]
                body = line.strip(" \t>|+#-\r\n")
                indent = len(line.expandtabs()) - len(line.expandtabs().lstrip(" \t>|+#-"))
                if body and indent <= edge and not body.startswith((")", "]", "}")):
                    break
                end += 1
            yield "".join(lines[:end])

    def windows(self, text: str) -> Iterator[str]:
        """What stands around the names, in a text that defines nothing in the usual form."""
        if len(text) <= MAX_PIECE:
            yield text
            return
        at, told = 0, 0
        for name in self.names:
            at = text.find(name)
            while at >= 0 and told < 4:
                yield text[max(0, at - 2000) : at + 8000]
                told += 1
                at = text.find(name, at + 8000)

    def code(self, where: str, name: str, shape: dict[str, Any], marshalled: bytes) -> None:
        body = base64.b64encode(marshalled).decode() if len(marshalled) <= MAX_PIECE else ""
        self.piece("code", where, name, shape=shape, code=body, magic=magic())

    def note(self, where: str, text: str) -> None:
        self.piece("note", where, text)


def magic() -> str:
    import importlib.util

    return importlib.util.MAGIC_NUMBER.hex()


def walk(roots: list[str]) -> Iterator[tuple[str, int]]:
    """(path, size) of regular files, links not followed, without recursion."""
    waiting = list(reversed(roots))
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in PSEUDO:
                        waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue


def decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if data[1:2] == b"\0" and data[3:4] == b"\0":
        return data.decode("utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def printable(data: bytes, least: int = 6) -> str:
    """What ``strings`` prints, in bytes and in UTF-16."""
    found = [
        match.group().decode("ascii", "replace") for match in re.finditer(rb"[\t\n\r\x20-\x7e]{%d,}" % least, data)
    ]
    wide = re.finditer(rb"(?:[\t\n\r\x20-\x7e]\x00){%d,}" % least, data)
    found += [match.group().decode("utf-16-le", "replace") for match in wide]
    return "\n".join(found)


def run(argv: list[str], seconds: float, **options: Any) -> bytes:
    """Output of a command; nothing if it is not there, fails to start, or takes too long."""
    import subprocess

    try:
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            **options,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    said: bytes = done.stdout
    return said[: 16 << 20]


def emitter() -> Callable[[dict[str, Any]], None]:
    """Writes one JSON line per piece to the standard output as it was at first."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii", errors="replace")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def emit(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    return emit
