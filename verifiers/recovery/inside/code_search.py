"""The search state of all strategies: the removed names, limits on reading files, and the report.

Runs inside the agent's sandbox, from memory, on the environment's interpreter (3.8 or newer).
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Any, Callable, Iterator

MAX_FILE_BYTES = 8 << 20
"""Maximum bytes read of one file, unless a strategy asks for more."""
MAX_COMPILED_BYTES = 32 << 20
"""Maximum bytes read of one compiled module."""
MAX_READ_BYTES = 1 << 30
"""Maximum bytes that all strategies together read."""
MAX_ITEM_CHARS = 64 << 10
"""Maximum characters of one item of the report."""
MAX_ITEMS = 500
"""Maximum items that one strategy reports."""
MAX_STRATEGY_CHARS = 1 << 20
"""Maximum characters that one strategy reports."""
MAX_TOTAL_CHARS = 6 << 20
"""Maximum characters that all strategies together report."""
MAX_NAMES = 12
"""Maximum number of removed names that are searched for; the longest ones are taken."""
PSEUDO = ("/proc", "/sys", "/dev")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
DEFINITIONS = ("async[ \t]+def", "def", "class")
"""What stands before the name of a definition, if the request does not say."""
BLANKS = {"utf-8": rb"[ \t]", "utf-16-le": rb"[ \t]\0", "utf-16-be": rb"\0[ \t]"}
"""Encoding of text to the pattern of a blank in it."""
IDENTIFIER = re.compile(rb"[A-Za-z0-9_]")


class RemovedSymbol:
    """One removed symbol, as an agent may know it: its file and name, without its code."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.path, _, self.qualname = symbol.partition("::")
        self.name = self.qualname.rpartition(".")[2].partition("#")[0]
        self.stem = os.path.splitext(os.path.basename(self.path))[0]


class CodeSearch:
    """The state that all strategies share: names to search for, files listed and read, items reported."""

    def __init__(self, request: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
        self.targets = [RemovedSymbol(symbol) for symbol in request["symbols"]]
        self.repo: str = request["repo"]
        self.distribution: str = request["distribution"]
        self.packages: list[str] = request["packages"]
        self.thorough: bool = request["thorough"]
        self.ends_at = time.monotonic() + float(request["seconds"])
        self.emit = emit
        self.strategy = ""
        self.num_items = self.chars = self.all_chars = 0
        self.seen: set[int] = set()
        self.num_read = self.bytes_read = 0
        names = {t.name for t in self.targets if t.name} or {t.stem for t in self.targets}
        self.names = sorted(names, key=lambda name: (-len(name), name))[:MAX_NAMES]
        self.names_are_complete = len(names) <= MAX_NAMES and all(t.name for t in self.targets)
        """Whether the code of every removed symbol contains one of ``names``."""
        self.stems = sorted({t.stem for t in self.targets})
        self.encoded_stems = [stem.encode("utf-8", "surrogateescape") for stem in self.stems]
        self.wanted = [(name.encode(), name_pattern(name.encode())) for name in self.names]
        either = "|".join(map(re.escape, self.names))
        self.suffixes = tuple(request.get("suffixes") or (".py", ".pyi", ".pyx", ".pxd"))
        heads = request.get("definitions") or DEFINITIONS
        words = [re.match(r"\w+", head).group() for head in heads]
        gap = 80 if any("(" in head for head in heads) else 0
        self.definition = re.compile(r"(?m)^([ \t>|+#-]*)(?:%s)[ \t]+(?:%s)\b" % ("|".join(heads), either))
        self.definition_starts = [definition_start(word, self.names, code, gap) for word in words for code in BLANKS]
        home = os.path.expanduser("~")
        self.outside = (home + "/", "/tmp/", "/var/", "/dev/shm/")
        self._files: list[tuple[str, int]] | None = None
        self._untracked: list[str] | None = None
        self._matches: tuple[list[str], list[str]] | None = None
        self._tracked: frozenset[str] | None = None

    # ------------------------------------------------------------------------------------ files
    def is_out_of_time(self) -> bool:
        """Whether the time limit of the search has passed."""
        return time.monotonic() > self.ends_at

    def roots(self) -> list[str]:
        """Folders to search, always with the interpreter's library, but with the system's folders only if
        ``thorough``."""
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

    def read(self, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
        """At most ``limit`` bytes of a file; empty if it cannot be read or :data:`MAX_READ_BYTES` are used up."""
        if self.bytes_read > MAX_READ_BYTES:
            return b""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # thousands of files: `open` takes twice as long
            try:
                size = min(os.fstat(file).st_size, limit)
                data = os.read(file, size)  # as much as is asked for is allocated
                size = size or limit  # files of /proc have no size
                while len(data) < size and (more := os.read(file, min(size - len(data), 1 << 16))):
                    data += more
            finally:
                os.close(file)
        except (OSError, ValueError):
            return b""
        self.num_read += 1
        self.bytes_read += len(data)
        return data

    def tracked(self) -> frozenset[str]:
        """Files of the checkout that git tracks; agents are meant to read them."""
        if self._tracked is None:
            output = command_output(["git", "-C", self.repo, "ls-files", "-z"], 60.0)
            names = output.decode("utf-8", "surrogateescape").split("\0")
            self._tracked = frozenset(os.path.join(self.repo, name) for name in names if name)
        return self._tracked

    def untracked_files(self) -> Iterator[tuple[str, bytes]]:
        """(path, content) of files that are not part of the task: untracked, or in the home or temporary folders."""
        if self._untracked is None:
            inside = self.repo + "/"
            self._untracked = [
                path
                for path, size in self.files()
                if size <= MAX_FILE_BYTES
                and (path.startswith(self.outside) or (path.startswith(inside) and path not in self.tracked()))
            ]
        for path in self._untracked:
            yield path, self.read(path)

    def files_with_names(self) -> list[str]:
        """Files that contain one of the names, without those that git tracks."""
        return self._matching_files()[0]

    def compiled_copies(self) -> list[str]:
        """Compiled modules that may be a removed symbol's file, by their own name or by one that is stored in them."""
        return self._matching_files()[1]

    def _matching_files(self) -> tuple[list[str], list[str]]:
        """:meth:`files_with_names` and :meth:`compiled_copies`; every file is read once for both."""
        if self._matches is None:
            named: list[str] = []
            compiled: list[str] = []
            self._matches = named, compiled
            git = os.path.join(self.repo, ".git") + os.sep
            for path, size in self.files():
                if self.is_out_of_time():
                    break
                is_compiled = path.endswith((".pyc", ".pyo")) or "/__pycache__/" in path
                if size > (MAX_COMPILED_BYTES if is_compiled else MAX_FILE_BYTES):
                    continue
                may_be_named = size <= MAX_FILE_BYTES and not path.startswith(git) and path not in self.tracked()
                if not may_be_named and not is_compiled:
                    continue
                data = self.read(path, MAX_COMPILED_BYTES)
                has_name = self.contains_name(data)
                if may_be_named and has_name:
                    named.append(path)
                if is_compiled and self._may_be_copy(path, data, has_name):
                    compiled.append(path)
            library = os.path.dirname(os.__file__)  # common files come last, because the report is limited
            named.sort(key=lambda path: (path.startswith(library), os.path.basename(path)[:-3] not in self.stems))
        return self._matches

    def _may_be_copy(self, path: str, data: bytes, has_name: bool) -> bool:
        """Whether a compiled module may have been made from a removed symbol's file."""
        if os.path.basename(path).partition(".")[0] in self.stems:
            return True
        return (has_name or not self.names_are_complete) and self.contains_file_name(data)

    def contains_file_name(self, data: bytes) -> bool:
        """Whether marshalled code may hold the name of a removed symbol's file: with a suffix, in a folder, or bare."""
        for stem in self.encoded_stems:
            length = len(stem).to_bytes(1 if stem.isascii() else 4, "little")  # marshal puts it before a string
            if b"/" + stem in data or length + stem in data:
                return True
            at = data.find(stem + b".")
            while at >= 0:
                before, suffix = data[max(at - 1, 0) : at], data[at + len(stem) + 1 : at + len(stem) + 2]
                if IDENTIFIER.match(suffix) and not IDENTIFIER.match(before):
                    return True
                at = data.find(stem + b".", at + 1)
        return False

    def contains_name(self, data: bytes) -> bool:
        """Whether one of the names occurs in ``data`` as a word or as a marshalled or pickled string."""
        return any(name in data and pattern.search(data) is not None for name, pattern in self.wanted)

    def may_define_name(self, data: bytes) -> bool:
        """Whether :meth:`definitions` may find anything in the text of ``data``, or in its printable strings."""
        return any(pattern.search(data) is not None for pattern in self.definition_starts)

    # ---------------------------------------------------------------------------------- results
    def report_item(self, kind: str, where: str, text: str, **more: Any) -> None:
        """Report one find, unless an equal one was reported or a limit of the report is reached."""
        text = text[:MAX_ITEM_CHARS]
        size, mark = len(text) + len(str(more)), hash((self.strategy, kind, text, str(more)))
        room = self.chars + size <= MAX_STRATEGY_CHARS and self.all_chars + size <= MAX_TOTAL_CHARS
        if text and room and self.num_items < MAX_ITEMS and mark not in self.seen:
            self.seen.add(mark)
            self.num_items, self.chars, self.all_chars = self.num_items + 1, self.chars + size, self.all_chars + size
            self.emit({"strategy": self.strategy, "kind": kind, "where": where[:300], "text": text, **more})

    def report_definitions(self, where: str, data: bytes | str, whole: bool = False) -> None:
        """Report the definitions of the names in a text; if there are none and ``whole``, the text around the names."""
        if isinstance(data, bytes) and not whole and not self.may_define_name(data):
            return
        text = data if isinstance(data, str) else decoded(data)
        blocks = list(self.definitions(text))
        for block in blocks[:8]:
            self.report_item("text", where, block)
        if whole and not blocks and self.contains_name(text.encode("utf-8", "replace")):
            for window in self.surroundings(text):
                self.report_item("text", where, window)

    def definitions(self, text: str) -> Iterator[str]:
        """Each definition of a removed name, up to the end of its indented block."""
        for match in self.definition.finditer(text):
            lines = text[match.start() : match.start() + MAX_ITEM_CHARS].splitlines(True)
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

    def surroundings(self, text: str) -> Iterator[str]:
        """The text around each name, for texts without ``def`` or ``class`` statements of them."""
        if len(text) <= MAX_ITEM_CHARS:
            yield text
            return
        at, count = 0, 0
        for name in self.names:
            at = text.find(name)
            while at >= 0 and count < 4:
                yield text[max(0, at - 2000) : at + 8000]
                count += 1
                at = text.find(name, at + 8000)

    def report_code(self, where: str, name: str, shape: dict[str, Any], marshalled: bytes) -> None:
        """Report a code object: its qualified name, shape and marshalled bytes (left out if they are too long)."""
        body = base64.b64encode(marshalled).decode() if len(marshalled) <= MAX_ITEM_CHARS else ""
        self.report_item("code", where, name, shape=shape, code=body, magic=magic())

    def report_note(self, where: str, text: str) -> None:
        """Report a fact that is no recovered code."""
        self.report_item("note", where, text)


def name_pattern(name: bytes) -> re.Pattern[bytes]:
    """Finds a name as a word, or after its length in one byte or four, as marshal and pickle write it."""
    escaped, length = re.escape(name), len(name).to_bytes(4, "little")
    stored = b"|".join(b"(?<=%s%s)" % (re.escape(before), escaped) for before in (length[:1], length))
    return re.compile(b"%s(?:(?<![A-Za-z0-9_]%s)(?![A-Za-z0-9_])|%s)" % (escaped, escaped, stored))


def definition_start(word: str, names: list[str], encoding: str, gap: int = 0) -> re.Pattern[bytes]:
    """Finds a word and one of the names after it, in text of an encoding of :data:`BLANKS`.

    Up to ``gap`` bytes may stand between them, such as the receiver of a method.
    """
    either = b"|".join(re.escape(name.encode(encoding)) for name in names)
    between = b"(?s:.{0,%d}?)" % gap if gap else b""
    return re.compile(b"%s(?:%s)+%s(?:%s)" % (re.escape(word.encode(encoding)), BLANKS[encoding], between, either))


def magic() -> str:
    """The magic number of this interpreter's byte code, hexadecimal."""
    import importlib.util

    return importlib.util.MAGIC_NUMBER.hex()


def walk(roots: list[str]) -> Iterator[tuple[str, int]]:
    """(path, size) of regular files, links not followed, without recursion."""
    pending = list(reversed(roots))
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in PSEUDO:
                        pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue


def decoded(data: bytes) -> str:
    """The data as text: UTF-16 if it looks like that, else UTF-8; invalid bytes are replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if data[1:2] == b"\0" and data[3:4] == b"\0":
        return data.decode("utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def printable_strings(data: bytes, least: int = 6) -> str:
    """Printable strings of at least ``least`` characters, in ASCII and in UTF-16."""
    found = [
        match.group().decode("ascii", "replace") for match in re.finditer(rb"[\t\n\r\x20-\x7e]{%d,}" % least, data)
    ]
    wide = re.finditer(rb"(?:[\t\n\r\x20-\x7e]\x00){%d,}" % least, data)
    found += [match.group().decode("utf-16-le", "replace") for match in wide]
    return "\n".join(found)


def command_output(argv: list[str], seconds: float, **options: Any) -> bytes:
    """Output of a command; empty if it cannot be started or runs longer than ``seconds``."""
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
    output: bytes = done.stdout
    return output[: 16 << 20]


def report_writer() -> Callable[[dict[str, Any]], None]:
    """Redirect standard output, and return a function that writes JSON lines to the original one."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii", errors="replace")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def emit(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    return emit
