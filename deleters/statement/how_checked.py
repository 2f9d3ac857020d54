"""The last section of a problem statement: which tests check a solution, and which of them can be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from excise.deleters.patches.patch_reader import Change, changes_of, parse_patch
from excise.protocols import Codebase
from excise.types import Deletion, TestId, Visibility, joined, path_of, without_parameter

MAX_NAMES = 12
"""Number of failing tests in sight that are named, where there are two more."""
MAX_CHARS = 160
"""Number of characters of a test's id that are shown."""
MAX_FILES = 5
"""Number of files of tests that are named, where there are two more."""


CALLS = "What the calls of these tests to the code give is compared with what the original gave, too."
"""What is said of recorded calls."""
EXAMPLES = "So is what the calls of the examples above give."
"""What is said of calls that a statement shows."""


def how_checked(
    codebase: Codebase,
    fail_to_pass: Sequence[str],
    deletion: Deletion,
    visibility: Visibility,
    *,
    compares_calls: bool = False,
    has_examples: bool = False,
) -> str:
    """The section about the tests ``fail_to_pass`` and all others, and about calls of those that are not in sight, and
    of examples."""
    unseen = [test for test in fail_to_pass if test in set(deletion.hidden)]
    gone = {part.path: list(changes_of(part)) for part in parse_patch(deletion.hide_patch)}
    rest = [test for test in fail_to_pass if test not in set(deletion.hidden)]
    partly = [test for test in rest if _is_removed(codebase, test, gone)]
    if visibility is Visibility.SAMPLE_TESTS:
        partly = []
    seen = [test for test in fail_to_pass if test not in {*unseen, *partly}]
    parts = []
    if unseen:
        part = "" if set(unseen).isdisjoint(deletion.shortened) else ", or only in part,"
        were = f"{_count(len(unseen), 'test')} not{part} in this checkout"
        parts.append(f"{were} (from {_files(codebase, unseen)}) must pass")
    if partly:
        were = f"{_count(len(partly), 'test')} in files of which this checkout has parts only"
        parts.append(f"{were} ({_files(codebase, partly)}) must pass")
    if seen:
        were = f"{_count(len(seen), 'test')} in this checkout"
        parts.append(f"{were} (in {_files(codebase, seen)}), failing now, must pass")
    parts[1:] = [part[0].lower() + part[1:] for part in parts[1:]]
    names = list(dict.fromkeys(f"`{_shortened(without_parameter(test))}`" for test in seen))
    shown = names if len(names) <= MAX_NAMES + 1 else [*names[:MAX_NAMES], f"{len(names) - MAX_NAMES} more"]
    listed = f"\n\nThose that can be seen: {', '.join(shown)}." if seen and unseen else ""
    calls = f" {CALLS}{f' {EXAMPLES}' if has_examples else ''}" if compares_calls and unseen else ""
    return f"## How it is checked\n\n{'; '.join(parts)}; and all tests that pass now must still pass.{calls}{listed}"


def without_calls(statement: str) -> str:
    """The problem statement of a task whose calls decide nothing."""
    return statement.replace(f" {CALLS} {EXAMPLES}", "").replace(f" {CALLS}", "")


def _is_removed(codebase: Codebase, test: str, gone: Mapping[str, Sequence[Change]]) -> bool:
    """Whether the first line of a test's function is among those that files of tests lost: of its own file, or of the
    one from which that has the test."""
    known, (*_, name) = codebase.symbols(), TestId.parse(without_parameter(test)).names or ("",)
    own = known.get(joined(path_of(test), ".".join(TestId.parse(test).names)))
    named = [own] if own else [s for path in gone if path in codebase.modules for s in codebase.modules[path].symbols]
    return any(
        each.first <= symbol.start_line - 1 < each.first + len(each.before)
        for symbol in named
        if symbol.name == name
        for each in gone.get(symbol.path, ())
    )


def _shortened(test: str) -> str:
    """An id of a test; of a function whose name holds its parameters, the beginning."""
    return test if len(test) <= MAX_CHARS else f"{test[: MAX_CHARS - 1]}…"


def _files(codebase: Codebase, tests: Sequence[str]) -> str:
    definitions = ((test, codebase.definition_of_test(test)) for test in tests)
    files = sorted({path_of(test) if found is None else found.path for test, found in definitions})
    shown = files if len(files) <= MAX_FILES + 1 else files[:MAX_FILES]
    rest = f" and {len(files) - MAX_FILES} more files" if len(files) > len(shown) else ""
    return ", ".join(f"`{file}`" for file in shown) + rest


def _count(number: int, noun: str) -> str:
    return f"One {noun} that is" if number == 1 else f"{number} {noun}s that are"
