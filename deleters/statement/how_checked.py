"""The last section of a problem statement: which tests check a solution, and which of them can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from excise.deleters.patches.git_patches import touched
from excise.deleters.patches.patch_reader import removed_lines
from excise.types import Deletion, TestId, Visibility, path_of, without_parameter

MAX_NAMES = 12
"""Number of failing tests in sight that are named, where there are two more."""
MAX_FILES = 5
"""Number of files of tests that are named, where there are two more."""


def how_checked(fail_to_pass: Sequence[str], deletion: Deletion, visibility: Visibility) -> str:
    """The section about the tests ``fail_to_pass`` and all others."""
    changed = set(touched(deletion.hide_patch))
    unseen = [test for test in fail_to_pass if test in set(deletion.hidden)]
    gone = {path: _defined(lines) for path, lines in removed_lines(deletion.hide_patch).items()}
    rest = [t for t in fail_to_pass if t not in set(deletion.hidden) and path_of(t) in changed]
    partly = [t for t in rest if _function(t) in gone.get(path_of(t), ())]
    if visibility is Visibility.SAMPLE_TESTS:
        partly = []
    seen = [test for test in fail_to_pass if test not in {*unseen, *partly}]
    parts = []
    if unseen:
        parts.append(f"{_count(len(unseen), 'test')} not in this checkout (from {_files(unseen)}) must pass")
    if partly:
        were = f"{_count(len(partly), 'test')} in files of which this checkout has parts only"
        parts.append(f"{were} ({_files(partly)}) must pass")
    if seen:
        parts.append(f"{_count(len(seen), 'test')} in this checkout (in {_files(seen)}), failing now, must pass")
    parts[1:] = [part[0].lower() + part[1:] for part in parts[1:]]
    names = list(dict.fromkeys(f"`{without_parameter(test)}`" for test in seen))
    shown = names if len(names) <= MAX_NAMES + 1 else [*names[:MAX_NAMES], f"{len(names) - MAX_NAMES} more"]
    listed = f"\n\nThose that can be seen: {', '.join(shown)}." if seen and unseen else ""
    return f"## How it is checked\n\n{'; '.join(parts)}; and all tests that pass now must still pass.{listed}"


def _defined(lines: Iterable[str]) -> frozenset[str]:
    """The names of the functions that removed lines define."""
    return frozenset(re.findall(r"(?m)^[ \t]*(?:async )?def (\w+)", "\n".join(lines)))


def _function(test: str) -> str:
    """The name of a test's function."""
    return "".join(TestId.parse(test).names[-1:])


def _files(tests: Sequence[str]) -> str:
    files = sorted({path_of(test) for test in tests})
    shown = files if len(files) <= MAX_FILES + 1 else files[:MAX_FILES]
    rest = f" and {len(files) - MAX_FILES} more files" if len(files) > len(shown) else ""
    return ", ".join(f"`{file}`" for file in shown) + rest


def _count(number: int, noun: str) -> str:
    return f"One {noun} that is" if number == 1 else f"{number} {noun}s that are"
