"""Detectors of bad turns: each examines one answer with the results of its tool calls and writes a one-sentence hint.

The hint is inserted into the teacher's context just before the answer. It may say what was wrong but never contains
the solution: detectors see only what the model itself did and read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from excise.trainer.rollout_types import Stop

Detector = Callable[["TurnObservation"], str]
"""Returns a hint, or an empty string if it finds no fault."""
TEST_FILE = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")
CODE = "code"
"""Tool name of answers without tools, whose code is put into the file directly."""
MAX_EQUAL_FAILURES = 2
"""How often the same call may fail in the same way before repeating it is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallResult:
    """One tool call of an answer and its result."""

    tool: str
    """Name of the tool as the model wrote it."""
    arguments: str
    """Arguments as the model wrote them (JSON)."""
    result: str
    """Text that the model received as the result."""
    malformed: str = ""
    """Why the call could not be run; empty if it ran."""
    failed: bool = False
    """Whether the tool reported an error or the command's exit code was not 0."""
    changed: tuple[str, ...] = ()
    """Files that the call changed, relative to the project's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnObservation:
    """The input of detectors: one answer with its tool calls."""

    text: str
    """Text of the answer, including thinking."""
    stop: Stop
    """Why the answer ended."""
    calls: tuple[ToolCallResult, ...]
    """Tool calls of the answer."""
    earlier_calls: tuple[ToolCallResult, ...]
    """Tool calls of earlier answers, in order."""
    tools: tuple[str, ...]
    """Names of the available tools."""
    num_tokens: int
    """Number of tokens of the answer."""
    max_tokens: int
    """Token limit of the answer."""
    project_changed: bool
    """Whether the project differs from the shipped tree."""


def unknown_tool(turn: TurnObservation) -> str:
    """A call of a tool that does not exist."""
    wrong = [a.tool for a in turn.calls if a.malformed and a.tool and a.tool not in turn.tools]
    return f"There is no tool {wrong[0]!r}. The tools are: {', '.join(turn.tools)}." if wrong else ""


def malformed_call(turn: TurnObservation) -> str:
    """A call with invalid JSON or arguments."""
    wrong = [a.malformed for a in turn.calls if a.malformed and (not a.tool or a.tool in turn.tools) and a.tool != CODE]
    if not wrong:
        return ""
    return f"The call cannot be read: {wrong[0][:200]}. Write one JSON object with name and arguments that fit."


def unusable_code(turn: TurnObservation) -> str:
    """An answer without tools whose code cannot be put into the file."""
    wrong = [a.malformed for a in turn.calls if a.malformed and a.tool == CODE]
    return (
        f"The answer is one code block with the whole function, and it must parse: {wrong[0][:200]}." if wrong else ""
    )


def no_call(turn: TurnObservation) -> str:
    """An answer without a tool call."""
    if turn.calls or turn.stop is Stop.LENGTH:
        return ""
    return f"Every answer calls a tool; when the work is done, that is finish. The tools are: {', '.join(turn.tools)}."


def over_long(turn: TurnObservation) -> str:
    """A hint for an answer that was cut off at its token limit."""
    if turn.stop is not Stop.LENGTH or turn.num_tokens < turn.max_tokens:
        return ""
    return f"The answer must end before {turn.max_tokens} tokens. Think less, and take one step at a time."


def repeated_failure(turn: TurnObservation) -> str:
    """A call that has failed several times before with the same arguments and result."""
    for call in turn.calls:
        if call.failed or call.malformed:
            same = [
                b
                for b in turn.earlier_calls
                if (b.tool, b.arguments, b.result) == (call.tool, call.arguments, call.result)
            ]
            if len(same) >= MAX_EQUAL_FAILURES:
                return f"This call of {call.tool} has failed in the same way {len(same)} times. Try something else."
    return ""


def edit_not_applied(turn: TurnObservation) -> str:
    """An edit whose old text does not occur exactly once in the file."""
    for call in turn.calls:
        if call.tool == "edit_file" and call.failed and "text to replace" in call.result:
            return "Read the file first, and copy the text to replace exactly as it stands, long enough to be unique."
    return ""


def edits_tests(turn: TurnObservation) -> str:
    """A change of a test file."""
    paths = [path for call in turn.calls for path in call.changed if TEST_FILE.search(path)]
    if not paths:
        return ""
    return f"Leave the tests as they are ({paths[0]} is one); the code of the project is what is to be written."


def ignored_error(turn: TurnObservation) -> str:
    """The model calls finish although the last command failed and nothing was changed since."""
    every = [*turn.earlier_calls, *turn.calls]
    last = max((n for n, a in enumerate(every) if a.tool == "run" and not a.malformed), default=-1)
    if not _finishes(turn) or last < 0 or not every[last].failed or any(a.changed for a in every[last + 1 :]):
        return ""
    return (
        "The last command failed, and nothing was changed since. Read its output and mend the cause before finishing."
    )


def nothing_done(turn: TurnObservation) -> str:
    """The model calls finish and has changed nothing."""
    if not _finishes(turn) or turn.project_changed:
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
"""Name to detector, in order of precedence. To add a detector, write a function and list it here."""


def detect(turn: TurnObservation, names: Sequence[str] = ()) -> tuple[str, str]:
    """(Name, hint) of the first detector that finds a fault, of ``names`` or of all; two empty strings if none does."""
    for name, detector in DETECTORS.items():
        if (not names or name in names) and (hint := detector(turn)):
            return name, hint
    return "", ""


def _finishes(turn: TurnObservation) -> bool:
    return any(call.tool == "finish" and not call.malformed for call in turn.calls)
