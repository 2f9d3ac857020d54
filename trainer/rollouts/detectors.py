"""Detectors of bad turns: each looks at one answer and what came of it, and says in a sentence what would be better.

The sentence goes into the context of a teacher, right before the answer. It may say what was wrong, never what the
task's solution is: it is made of what the model itself did and saw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from excise.trainer.rollout_types import Stop

Detector = Callable[["Seen"], str]
"""The hint, or nothing."""
TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")
CODE = "code"
"""Stands for a tool where an answer's code is taken as it is."""
REPEATS = 2
"""So often a command may fail in the same way before it is a fault to run it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """One call of an answer, and what came of it."""

    tool: str
    """Name of the tool, as it was written."""
    arguments: str
    """JSON, as it was written."""
    result: str
    """What the model was told."""
    malformed: str = ""
    """Why it could not be run; empty for a call that was."""
    failed: bool = False
    """The tool refused, or the command's exit code was not 0."""
    changed: tuple[str, ...] = ()
    """Files that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An answer in its place."""

    text: str
    """The answer, thinking included."""
    stop: Stop
    """Why it ended."""
    acted: tuple[Acted, ...]
    """Its calls."""
    before: tuple[Acted, ...]
    """Calls of earlier answers, in order."""
    tools: tuple[str, ...]
    """Names of the tools there are."""
    num_tokens: int
    """Its length."""
    max_tokens: int
    """The longest that it might have been."""
    changed: bool
    """The project differs from how it was found."""


def unknown_tool(seen: Seen) -> str:
    """A call of a tool that there is not."""
    wrong = [a.tool for a in seen.acted if a.malformed and a.tool and a.tool not in seen.tools]
    return f"There is no tool {wrong[0]!r}. The tools are: {', '.join(seen.tools)}." if wrong else ""


def malformed_call(seen: Seen) -> str:
    """A call whose JSON is broken or whose arguments do not fit."""
    wrong = [a.malformed for a in seen.acted if a.malformed and (not a.tool or a.tool in seen.tools) and a.tool != CODE]
    if not wrong:
        return ""
    return f"The call cannot be read: {wrong[0][:200]}. Write one JSON object with name and arguments that fit."


def unusable_code(seen: Seen) -> str:
    """An answer without tools whose code cannot take its place."""
    wrong = [a.malformed for a in seen.acted if a.malformed and a.tool == CODE]
    return (
        f"The answer is one code block with the whole function, and it must parse: {wrong[0][:200]}." if wrong else ""
    )


def no_call(seen: Seen) -> str:
    """An answer that does nothing."""
    if seen.acted or seen.stop is Stop.LENGTH:
        return ""
    return f"Every answer calls a tool; when the work is done, that is finish. The tools are: {', '.join(seen.tools)}."


def over_long(seen: Seen) -> str:
    """An answer that was cut off."""
    if seen.stop is not Stop.LENGTH or seen.num_tokens < seen.max_tokens:
        return ""
    return f"The answer must end before {seen.max_tokens} tokens. Think less, and take one step at a time."


def repeated_failure(seen: Seen) -> str:
    """A call that failed before, several times, in just this way."""
    for acted in seen.acted:
        if acted.failed or acted.malformed:
            same = [b for b in seen.before if (b.tool, b.arguments, b.result) == _key(acted)]
            if len(same) >= REPEATS:
                return f"This call of {acted.tool} has failed in the same way {len(same)} times. Try something else."
    return ""


def edit_not_applied(seen: Seen) -> str:
    """An edit whose old text does not stand in the file exactly once."""
    for acted in seen.acted:
        if acted.tool == "edit_file" and acted.failed and "text to replace" in acted.result:
            return "Read the file first, and copy the text to replace exactly as it stands, long enough to be unique."
    return ""


def edits_tests(seen: Seen) -> str:
    """A change of tests that were there."""
    paths = [path for acted in seen.acted for path in acted.changed if TESTS.search(path)]
    if not paths:
        return ""
    return f"Leave the tests as they are ({paths[0]} is one); the code of the project is what is to be written."


def ignored_error(seen: Seen) -> str:
    """The last command failed, and the work is called done."""
    every = [*seen.before, *seen.acted]
    last = max((n for n, a in enumerate(every) if a.tool == "run" and not a.malformed), default=-1)
    if not _finishes(seen) or last < 0 or not every[last].failed or any(a.changed for a in every[last + 1 :]):
        return ""
    return (
        "The last command failed, and nothing was changed since. Read its output and mend the cause before finishing."
    )


def nothing_done(seen: Seen) -> str:
    """The work is called done, and nothing was changed."""
    if not _finishes(seen) or seen.changed:
        return ""
    return "Nothing has been changed yet. Find the place, write the code, and check it before finishing."


DETECTORS: dict[str, Detector] = {
    detector.__name__: detector
    for detector in (
        unknown_tool,
        malformed_call,
        over_long,
        unusable_code,
        no_call,
        edits_tests,
        nothing_done,
        ignored_error,
        edit_not_applied,
        repeated_failure,
    )
}
"""A new detector is one function and one line here; the first that finds something has the word."""


def detect(seen: Seen, names: Sequence[str] = ()) -> tuple[str, str]:
    """(Name, hint) of the first detector that finds something, of ``names`` or of all; two empty texts if none does."""
    for name, detector in DETECTORS.items():
        if (not names or name in names) and (hint := detector(seen)):
            return name, hint
    return "", ""


def _key(acted: Acted) -> tuple[str, str, str]:
    return acted.tool, acted.arguments, acted.result


def _finishes(seen: Seen) -> bool:
    return any(acted.tool == "finish" and not acted.malformed for acted in seen.acted)
