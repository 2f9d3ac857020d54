"""Parse patches in git's format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from excise.errors import PatchError

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(r"^index ([0-9a-f]+)\.\.([0-9a-f]+)")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r"\\([abtnvfr\"\\]|[0-7]{3})")
_OPPOSITE = {" ": " ", "-": "+", "+": "-"}


class Hunk(NamedTuple):
    """One hunk; starts are 0-based indices of lines."""

    old_start: int
    new_start: int
    lines: tuple[tuple[str, bytes], ...]

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        return Hunk(self.new_start, self.old_start, tuple((_OPPOSITE[s], x) for s, x in self.lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """The part of a patch that changes one file."""

    path: str
    """Path inside the repository."""
    creates: bool = False
    """The file must not exist before."""
    deletes: bool = False
    """The file does not exist afterwards."""
    old_blob: str = ""
    """git's hash of the old content, possibly abbreviated; empty if the patch has none."""
    new_blob: str = ""
    """git's hash of the new content, in the same form."""
    hunks: tuple[Hunk, ...] = field(default=())
    """The hunks, in the order of the file."""

    def reversed(self) -> FilePatch:
        """The patch that undoes this one."""
        return replace(
            self,
            creates=self.deletes,
            deletes=self.creates,
            old_blob=self.new_blob,
            new_blob=self.old_blob,
            hunks=tuple(h.reversed() for h in self.hunks),
        )


def quote(path: str) -> str:
    """A path as git writes it: C-style quotes around unusual characters."""
    if all(" " <= c <= "~" and c not in '"\\' for c in path):
        return path
    names = {code: letter for letter, code in _ESCAPES.items()}
    out = [
        f"\\{names[b]}" if b in names else chr(b) if 32 <= b < 127 else f"\\{b:03o}"
        for b in path.encode("utf-8", "surrogateescape")
    ]
    return '"' + "".join(out) + '"'


def unquote(path: str) -> str:
    """The inverse of :func:`quote`."""
    if not path.startswith('"'):
        return path
    inner = path[1:-1].encode("utf-8").decode("latin-1")
    raw = _QUOTED.sub(lambda m: chr(_ESCAPES[m[1]] if m[1] in _ESCAPES else int(m[1], 8)), inner)
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")


def parse_patch(patch: str) -> list[FilePatch]:
    """The files of a patch, in order. Raises :class:`PatchError` for a patch that cannot be parsed."""
    lines = patch.split("\n")
    if lines.pop():
        raise PatchError("the patch does not end with a newline")
    starts = [i for i, line in enumerate(lines) if line.startswith("diff --git ")]
    if lines and (not starts or starts[0] != 0):
        raise PatchError("the patch does not begin with 'diff --git'")
    return [_parse_file(lines[a:b]) for a, b in pairwise([*starts, len(lines)])]


def removed_lines(patch: str) -> dict[str, list[str]]:
    """Path to the lines that a patch removes. Raises :class:`PatchError` if it is malformed."""
    return {
        part.path: [
            line.decode(errors="replace").rstrip("\n")
            for hunk in part.hunks
            for sign, line in hunk.lines
            if sign == "-"
        ]
        for part in parse_patch(patch)
    }


class Change(NamedTuple):
    """A run of changed lines."""

    first: int
    """Number of the first line in the file before, from 0."""
    before: list[str]
    """The lines before."""
    after: list[str]
    """The lines after."""
    below: list[str]
    """The unchanged lines below them that the patch shows."""


def changes_of(part: FilePatch) -> Iterator[Change]:
    """The runs of changed lines of a file."""
    for hunk in part.hunks:
        number = hunk.old_start
        runs = [
            (is_context, [(sign, line.decode(errors="replace").rstrip("\r\n")) for sign, line in run])
            for is_context, run in groupby(hunk.lines, lambda each: each[0] == " ")
        ]
        for (is_context, lines), (_, following) in pairwise([*runs, (True, [])]):
            before = [line for sign, line in lines if sign != "+"]
            if not is_context:
                after = [line for sign, line in lines if sign == "+"]
                yield Change(number, before, after, [line for _, line in following])
            number += len(before)


def _parse_file(lines: list[str]) -> FilePatch:
    path = _header_path(lines[0])
    part = FilePatch(path=path)
    body = len(lines)
    for i, line in enumerate(lines[1:], 1):
        index = _INDEX.match(line)
        if line.startswith("@@ "):
            body = i
            break
        if line.startswith("new file mode "):
            part = replace(part, creates=True)
        elif line.startswith("deleted file mode "):
            part = replace(part, deletes=True)
        elif index:
            part = replace(part, old_blob=index[1], new_blob=index[2])
        elif not line.startswith(("--- ", "+++ ")):
            raise PatchError(f"{path}: not understood: {line[:80]!r}")
    return replace(part, hunks=tuple(_parse_hunks(path, lines[body:])))


def _header_path(line: str) -> str:
    """The path of ``diff --git a/path b/path``; both sides are the same."""
    rest = line.removeprefix("diff --git ")
    half = len(rest) // 2
    a, b = unquote(rest[:half]), unquote(rest[half + 1 :])
    if len(rest) % 2 == 0 or a[:2] != "a/" or b[:2] != "b/" or a[2:] != b[2:]:
        raise PatchError(f"not understood: {line[:120]!r}")
    return a[2:]


def _parse_hunks(path: str, lines: list[str]) -> Iterator[Hunk]:
    i = 0
    while i < len(lines):
        match = _HUNK.match(lines[i])
        if not match:
            raise PatchError(f"{path}: not understood: {lines[i][:80]!r}")
        old, new = int(match[2] or 1), int(match[4] or 1)
        old_start = int(match[1]) - (1 if old else 0)
        new_start = int(match[3]) - (1 if new else 0)
        body: list[tuple[str, bytes]] = []
        i += 1
        while i < len(lines) and (old or new or lines[i].startswith("\\")):
            sign, content = lines[i][:1], lines[i][1:]
            if sign == "\\" and body:
                body[-1] = (body[-1][0], body[-1][1].removesuffix(b"\n"))
            elif sign in _OPPOSITE:
                body.append((sign, content.encode("utf-8", "surrogateescape") + b"\n"))
                old -= sign != "+"
                new -= sign != "-"
            else:
                raise PatchError(f"{path}: not understood: {lines[i][:80]!r}")
            i += 1
        if old or new:
            raise PatchError(f"{path}: a hunk is shorter than its header says")
        yield Hunk(old_start, new_start, tuple(body))
