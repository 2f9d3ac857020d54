"""Intake: which changes of a solution's diff are accepted for grading.

The diff is applied by ``git apply`` to a copy of the shipped tree, and the two trees are compared, so that the diff's
own headers need not be trusted. Only regular source files at allowed paths are accepted.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from excise.deleters.patches.git_patches import touched
from excise.deleters.patches.patch_reader import unquote
from excise.errors import PatchError, SandboxError
from excise.system.git import GitError
from excise.types import Task
from excise.verifiers.git_apply import apply_in_folder
from excise.verifiers.workbench import Edits, Workbench

MAX_DIFF_BYTES = 4 << 20
"""Maximum size of a diff in bytes; a larger one is refused."""
MAX_FILES = 2000
"""Maximum number of files that a diff may change."""
MAX_FILE_BYTES = 8 << 20
_LINES = re.compile(r"^(?:--- |\+\+\+ |rename from |rename to |copy from |copy to )(.*)$")
_UNSAFE = frozenset({"..", ".", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The accepted and the ignored changes of a diff."""

    edits: dict[str, bytes | None] = field(default_factory=dict)
    """Accepted changes: path to new content, ``None`` for a deleted file."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Ignored changes: path to the reason."""


def accepted_changes(bench: Workbench, task: Task, diff: str, shipped: Edits) -> Intake:
    """Decide which changes of ``diff`` are accepted; it is a diff against the tree with ``shipped`` edits.

    Raises :class:`PatchError` (``diff_too_large``, ``patch_does_not_apply``).
    """
    if len(diff.encode("utf-8", "surrogateescape")) > MAX_DIFF_BYTES:
        raise PatchError(f"The diff is larger than {MAX_DIFF_BYTES >> 20} MiB.", reason="diff_too_large")
    ignored: dict[str, str] = {}
    parts: list[str] = []
    paths: set[str] = set()
    found = list(sections(diff))
    prefixed = not all(map(is_bare, found))  # git diff --no-prefix
    for part in found:
        named = paths_of(part, prefixed=prefixed)
        bad = next((path for path in named if not is_safe(path)), None)
        if bad is None and named:
            parts.append(part)
            paths |= named
        else:
            ignored[bad or part.partition("\n")[0][:200]] = "outside_the_tree"
    if len(paths) > MAX_FILES:
        raise PatchError(f"The diff changes more than {MAX_FILES} files.", reason="diff_too_large")
    edits: dict[str, bytes | None] = {}
    if parts:
        ours = set(touched(task.patch))
        for path, data in _applied(bench, "".join(parts), paths, shipped, prefixed=prefixed).items():
            reason = _refused(bench, path, data, ours)
            if reason:
                ignored[path] = reason
            else:
                edits[path] = data if isinstance(data, bytes) else None
    return Intake(edits=edits, ignored=ignored)


def sections(diff: str) -> Iterator[str]:
    """The sections of a diff, one per file. No line of content begins with ``diff --git``."""
    for part in re.split(r"(?m)^(?=diff --git )", diff):
        if part.startswith("diff --git "):
            yield part if part.endswith("\n") else part + "\n"
        elif part.strip():
            raise PatchError("The diff does not begin with 'diff --git'.")


def is_bare(part: str) -> bool:
    """Whether the paths in a section's first line lack the prefixes ``a/`` and ``b/``.

    For a new file, ``git diff --no-index`` writes ``b/`` before both paths.
    """
    head = part.partition("\n@@ ")[0]
    if moved := re.search(r"(?m)^(rename|copy) from (.*)\n\1 to (.*)$", head):
        return head.startswith(f"diff --git {moved[2]} {moved[3]}\n")
    return len(set(sides_of(part))) == 1 and not sides_of(part)[0].startswith(("a/", "b/", '"a/', '"b/'))


def sides_of(part: str) -> tuple[str, ...]:
    """The old and the new path in a section's `diff --git` line, as written."""
    rest = part.partition("\n")[0].removeprefix("diff --git ")
    half = len(rest) // 2
    if len(rest) % 2 and rest[half] == " " and rest[2:half] == rest[half + 3 :]:
        return rest[:half], rest[half + 1 :]
    quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*"|\S.*?) ("(?:[^"\\]|\\.)*"|b/.*)', rest)
    return (quoted[1], quoted[2]) if quoted else (rest, "")


def paths_of(part: str, *, prefixed: bool = True) -> set[str]:
    """All paths in the header of a section; ``prefixed`` by ``a/`` and ``b/`` or by git's other prefixes."""
    found = {_plain(side, strip=prefixed) for side in sides_of(part) if side}
    for line in part.split("\n")[1:]:
        if line.startswith(("@@ ", "GIT binary patch")):
            break
        match = _LINES.match(line)
        if match and match[1] != "/dev/null":
            strip = prefixed and line.startswith(("---", "+++"))
            found.add(_plain(match[1].partition("\t")[0], strip=strip))
    return found


def _plain(path: str, *, strip: bool) -> str:
    plain = unquote(path)
    return plain.partition("/")[2] if strip else plain


def is_safe(path: str) -> bool:
    """Whether a path is inside the tree and not in ``.git``."""
    parts = path.split("/")
    return (
        bool(path)
        and "\0" not in path
        and "\\" not in path
        and not path.startswith("/")
        and not _UNSAFE & set(parts)
        and not any(part.lower() == ".git" for part in parts)
    )


def storable(text: str) -> str:
    """The text with surrogates (bytes that are not UTF-8, read by ``surrogateescape``) replaced by escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class _Irregular:
    """Stands for the content of a file that is not regular or is too large."""


def _applied(
    bench: Workbench, diff: str, paths: set[str], shipped: Edits, *, prefixed: bool
) -> dict[str, bytes | _Irregular | None]:
    """Path to new content of every file that ``git apply`` changes in the shipped tree."""
    before: dict[str, bytes] = {}
    for path in paths:
        source = bench.root / path
        data = shipped.get(path)
        if path not in shipped and source.is_file() and not source.is_symlink():
            data = source.read_bytes()
        if data is not None:
            before[path] = data
    with tempfile.TemporaryDirectory(prefix="excise-intake-") as folder:
        root = Path(folder) / "tree"
        root.mkdir()
        for path, data in before.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
            if (bench.root / path).is_file() and (bench.root / path).stat().st_mode & 0o100:
                (root / path).chmod(0o755)
        _apply_diff(root, diff, 1 if prefixed else 0)
        after = dict(_files(root))
    gone: dict[str, bytes | _Irregular | None] = dict.fromkeys(before.keys() - after.keys())
    return gone | {path: data for path, data in after.items() if before.get(path) != data}


def _apply_diff(root: Path, diff: str, strip: int = 1) -> None:
    """Apply a solution's diff below ``root``. A diff on which git times out is refused like an invalid one."""
    try:
        apply_in_folder(root, diff.encode("utf-8", "surrogateescape"), strip=strip)
    except PatchError as error:
        raise PatchError(str(error).replace("the patch", "the diff", 1)[:340]) from error
    except GitError as error:
        if error.reason != "git_timeout":
            raise SandboxError(str(error), reason=error.reason) from error
        raise PatchError("git apply does not come to an end.") from None


def _files(root: Path) -> Iterator[tuple[str, bytes | _Irregular]]:
    for folder, folders, names in os.walk(root):
        for name in (*names, *(f for f in folders if (Path(folder) / f).is_symlink())):
            path = Path(folder) / name
            found = path.lstat()
            regular = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_FILE_BYTES
            yield path.relative_to(root).as_posix(), path.read_bytes() if regular else _Irregular()


def _refused(bench: Workbench, path: str, data: bytes | _Irregular | None, ours: set[str]) -> str:
    """The reason why a change is ignored; empty if it is accepted."""
    if isinstance(data, _Irregular):
        return "not_a_regular_file"
    grading = bench.language.grading
    if reason := why_kept(bench, path, ours=path in ours):
        return reason
    new = path not in ours and path not in bench.paths and _new_top(bench, path)
    if new and grading.shadows(path, Path(bench.prepared.layers.env), bench.recipe.roots):
        return "shadows_a_module"
    return ""


def why_kept(bench: Workbench, path: str, *, ours: bool) -> str:
    """The reason why graders keep their own version of a file; empty if a solution may change it.

    ``ours``: the gold patch changes it.
    """
    is_test = bench.codebase.is_test(path)
    library = path in bench.codebase.modules and not is_test  # perhaps with a name like a test's
    reason = bench.language.grading.forbidden(path, ours=ours or library)
    return reason or ("test" if is_test and not ours else "")


def _new_top(bench: Workbench, path: str) -> bool:
    """Whether the path adds a new name directly below an import root or the checkout."""
    for root in (".", *bench.recipe.roots):
        folder = "" if root in {".", ""} else root.strip("/") + "/"
        if path.startswith(folder):
            top = folder + path[len(folder) :].partition("/")[0]
            if not any(other == top or other.startswith(top + "/") for other in bench.paths):
                return True
    return False
