"""Detectors of bad turns: each finds its own fault, and none reports a good turn."""

from __future__ import annotations

from typing import Any

import pytest

from excise.trainer.rollout_types import Stop
from excise.trainer.rollouts.detectors import DETECTORS, ToolCallResult, TurnObservation, detect

TOOLS = ("read_file", "edit_file", "run", "finish")
GOOD = ToolCallResult(tool="read_file", arguments='{"path": "a.py"}', result="    1\tx = 1")
FAILED = ToolCallResult(tool="run", arguments='{"command": "pytest"}', result="1 failed\n[exit code 1]", failed=True)
EDIT = ToolCallResult(tool="edit_file", arguments="{}", result="a.py was changed.", changed=("a.py",))
FINISH = ToolCallResult(tool="finish", arguments="{}", result="Done.")
REFUSED = ToolCallResult(
    tool="edit_file", arguments="{}", result="error: a.py: the text to replace does not stand in the file", failed=True
)


def observe(*calls: ToolCallResult, **other: Any) -> TurnObservation:
    values: dict[str, Any] = {
        "text": "", "stop": Stop.END, "earlier_calls": (), "tools": TOOLS, "num_tokens": 20,
        "max_tokens": 100, "project_changed": True,
    }  # fmt: skip
    return TurnObservation(calls=calls, **(values | other))


BAD_TURNS = {
    "unknown_tool": observe(ToolCallResult(tool="grep", arguments="{}", result="error", malformed="no tool")),
    "malformed_call": observe(
        ToolCallResult(tool="run", arguments="{", result="error", malformed="run: command: missing")
    ),
    "over_long": observe(stop=Stop.LENGTH, num_tokens=100),
    "unusable_code": observe(
        ToolCallResult(tool="code", arguments="", result="", malformed="the code does not parse"), tools=("code",)
    ),
    "no_call": observe(),
    "edits_tests": observe(ToolCallResult(tool="edit_file", arguments="{}", result="", changed=("tests/test_a.py",))),
    "nothing_done": observe(FINISH, project_changed=False),
    "ignored_error": observe(FINISH, earlier_calls=(GOOD, EDIT, FAILED)),
    "edit_not_applied": observe(REFUSED),
    "repeated_failure": observe(FAILED, earlier_calls=(FAILED, GOOD, FAILED)),
}
GOOD_TURNS = [
    observe(GOOD),
    observe(FAILED),
    observe(FAILED, earlier_calls=(FAILED,)),
    observe(FINISH, earlier_calls=(FAILED, EDIT)),
    observe(FINISH, earlier_calls=(FAILED, EDIT, ToolCallResult(tool="run", arguments="{}", result="[exit code 0]"))),
    observe(EDIT, earlier_calls=(FAILED, FAILED)),
    observe(GOOD, stop=Stop.LENGTH, num_tokens=40),
    observe(ToolCallResult(tool="write_file", arguments="{}", result="", changed=("src/contest.py",))),
]


@pytest.mark.parametrize("name", DETECTORS)
def test_each_detector_finds_its_fault(name: str) -> None:
    found, hint = detect(BAD_TURNS[name])
    assert found == name
    assert hint.endswith(".")
    assert detect(BAD_TURNS[name], [other for other in DETECTORS if other != name]) == ("", "")


@pytest.mark.parametrize("number", range(len(GOOD_TURNS)))
def test_a_good_turn_has_no_hint(number: int) -> None:
    assert detect(GOOD_TURNS[number]) == ("", "")
