"""Write and apply patches in git's format, exactly and in both directions.

``git apply`` and ``git apply -R`` accept the patches of :func:`unified`. :func:`apply_patch` applies patches in Python
without fuzz and offsets: it raises :class:`PatchError` if a line, or a blob hash of an ``index`` line, differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from excise.deleters.patches.patch_reader import FilePatch, Hunk, parse_patch, quote
from excise.deleters.patches.patience_diff import Change, changes
from excise.errors import PatchError

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified(
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    modes: Mapping[str, int] | None = None,
) -> str:
    """A git-style patch from ``before`` to ``after`` (``None``: the file does not exist there).

    A path that one side does not have is a file that does not exist there. ``modes`` has ``0o100755`` for executables.
    Raises :class:`PatchError` (``not_utf8``, ``binary_file``) for content that a text patch cannot represent.
    """
    parts = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            _check_text(path, old)
            _check_text(path, new)
            parts.append(_file_patch(path, old, new, (modes or {}).get(path, 0o100644)))
    return "".join(parts)


def touched(patch: str) -> tuple[str, ...]:
    """Sorted paths of the files that a patch changes, creates or deletes."""
    return tuple(sorted(p.path for p in parse_patch(patch)))


def apply_patch(files: Mapping[str, bytes], patch: str, reverse: bool = False) -> dict[str, bytes | None]:
    """Path to new content (``None``: deleted) of every file that the patch touches.

    ``files`` must have all touched files that exist. Raises :class:`PatchError` if anything does not match exactly.
    """
    result: dict[str, bytes | None] = {}
    for part in parse_patch(patch):
        step = part.reversed() if reverse else part
        if step.path in result:
            raise PatchError(f"{step.path}: the patch changes this file twice")
        result[step.path] = apply_to_file(step, files.get(step.path))
    return result


# ----------------------------------------------------------------------------------------- writing
def _check_text(path: str, data: bytes | None) -> None:
    if data is None:
        return
    if b"\0" in data:
        raise PatchError(f"{path}: a binary file cannot be carried by a text patch", reason="binary_file")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PatchError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})", reason="not_utf8") from None


def _file_patch(path: str, old: bytes | None, new: bytes | None, mode: int) -> str:
    a, b = quote("a/" + path), quote("b/" + path)
    head = [f"diff --git {a} {b}"]
    if old is None:
        head.append(f"new file mode {mode:o}")
    if new is None:
        head.append(f"deleted file mode {mode:o}")
    both = f" {mode:o}" if old is not None and new is not None else ""
    head.append(f"index {blob_id(old)}..{blob_id(new)}{both}")
    old_lines, new_lines = _lines(old or b""), _lines(new or b"")
    if old_lines or new_lines:
        end = "\t" if " " in path and not a.startswith('"') else ""
        head.append(f"--- {a}{end}" if old is not None else "--- /dev/null")
        head.append(f"+++ {b}{end}" if new is not None else "+++ /dev/null")
    return "\n".join(head) + "\n" + "".join(_hunks(old_lines, new_lines))


def blob_id(data: bytes | None) -> str:
    """git's hash of a file's content; forty zeros for a file that does not exist."""
    if data is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ``\\n``; the last one may lack it."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(old: list[bytes], new: list[bytes]) -> list[str]:
    hunks: list[str] = []
    group: list[Change] = []
    for change in changes(old, new):
        if group and change.a1 - group[-1].a2 > 2 * _CONTEXT:
            hunks.append(_hunk(old, new, group))
            group = []
        group.append(change)
    if group:
        hunks.append(_hunk(old, new, group))
    return hunks


def _hunk(old: list[bytes], new: list[bytes], group: list[Change]) -> str:
    first, last = group[0], group[-1]
    lead = min(_CONTEXT, first.a1)
    a1, b1 = first.a1 - lead, first.b1 - lead
    tail = min(_CONTEXT, len(old) - last.a2)
    a2, b2 = last.a2 + tail, last.b2 + tail
    out = [f"@@ -{_range(a1, a2)} +{_range(b1, b2)} @@\n"]
    position = a1
    for change in group:
        out += [_line(" ", x) for x in old[position : change.a1]]
        out += [_line("-", x) for x in old[change.a1 : change.a2]]
        out += [_line("+", x) for x in new[change.b1 : change.b2]]
        position = change.a2
    out += [_line(" ", x) for x in old[position:a2]]
    return "".join(out)


def _range(first: int, end: int) -> str:
    count = end - first
    start = first + 1 if count else first
    return f"{start}" if count == 1 else f"{start},{count}"


def _line(sign: str, line: bytes) -> str:
    text = line.decode("utf-8")
    return f"{sign}{text}" if text.endswith("\n") else f"{sign}{text}\n{_NO_NEWLINE}"


# ---------------------------------------------------------------------------------------- applying
class _FileLines(NamedTuple):
    lines: list[bytes]
    path: str

    def expect(self, index: int, line: bytes) -> None:
        if index >= len(self.lines) or self.lines[index] != line:
            raise PatchError(f"{self.path}: line {index + 1} is not what the patch expects")


def apply_to_file(part: FilePatch, data: bytes | None) -> bytes | None:
    """The new content of the file of one part of a patch. Raises :class:`PatchError` if it does not match exactly."""
    if (data is None) != part.creates:
        state = "does not exist" if data is None else "exists already"
        raise PatchError(f"{part.path}: the file {state}")
    _check_blob(part.path, data, part.old_blob)
    file_lines = _FileLines(_lines(data or b""), part.path)
    result: list[bytes] = []
    position = 0
    for hunk in part.hunks:
        if hunk.old_start < position:
            raise PatchError(f"{part.path}: hunks overlap")
        result += file_lines.lines[position : hunk.old_start]
        position = _apply_hunk(hunk, file_lines, result)
    result += file_lines.lines[position:]
    new = b"".join(result)
    if part.deletes:
        if new:
            raise PatchError(f"{part.path}: the patch deletes the file but not all of its lines")
        return None
    _check_blob(part.path, new, part.new_blob)
    return new


def _apply_hunk(hunk: Hunk, file_lines: _FileLines, result: list[bytes]) -> int:
    position = hunk.old_start
    for sign, line in hunk.lines:
        if sign != "+":
            file_lines.expect(position, line)
            position += 1
        if sign != "-":
            result.append(line)
    return position


def _check_blob(path: str, data: bytes | None, expected: str) -> None:
    if expected and set(expected) != {"0"} and not blob_id(data).startswith(expected):
        raise PatchError(f"{path}: the content is not the one that the patch was made for")
