"""Detectors of bad turns: each finds its own fault, and none of them finds one in good work."""

from __future__ import annotations

from typing import Any

import pytest

from excise.trainer.rollout_types import Stop
from excise.trainer.rollouts.detectors import DETECTORS, Acted, Seen, detect

TOOLS = ("read_file", "edit_file", "run", "finish")
GOOD = Acted(tool="read_file", arguments='{"path": "a.py"}', result="    1\tx = 1")
FAILED = Acted(tool="run", arguments='{"command": "pytest"}', result="1 failed\n[exit code 1]", failed=True)
EDIT = Acted(tool="edit_file", arguments="{}", result="a.py was changed.", changed=("a.py",))
FINISH = Acted(tool="finish", arguments="{}", result="Done.")
REFUSED = Acted(
    tool="edit_file", arguments="{}", result="error: a.py: the text to replace does not stand in the file", failed=True
)


def seen(*acted: Acted, **other: Any) -> Seen:
    values: dict[str, Any] = {
        "text": "", "stop": Stop.END, "before": (), "tools": TOOLS, "num_tokens": 20,
        "max_tokens": 100, "changed": True,
    }  # fmt: skip
    return Seen(acted=acted, **(values | other))


BAD = {
    "unknown_tool": seen(Acted(tool="grep", arguments="{}", result="error", malformed="no tool")),
    "malformed_call": seen(Acted(tool="run", arguments="{", result="error", malformed="run: command: missing")),
    "over_long": seen(stop=Stop.LENGTH, num_tokens=100),
    "unusable_code": seen(
        Acted(tool="code", arguments="", result="", malformed="the code does not parse"), tools=("code",)
    ),
    "no_call": seen(),
    "edits_tests": seen(Acted(tool="edit_file", arguments="{}", result="", changed=("tests/test_a.py",))),
    "nothing_done": seen(FINISH, changed=False),
    "ignored_error": seen(FINISH, before=(GOOD, EDIT, FAILED)),
    "edit_not_applied": seen(REFUSED),
    "repeated_failure": seen(FAILED, before=(FAILED, GOOD, FAILED)),
}
FINE = [
    seen(GOOD),
    seen(FAILED),
    seen(FAILED, before=(FAILED,)),
    seen(FINISH, before=(FAILED, EDIT)),
    seen(FINISH, before=(FAILED, EDIT, Acted(tool="run", arguments="{}", result="[exit code 0]"))),
    seen(EDIT, before=(FAILED, FAILED)),
    seen(GOOD, stop=Stop.LENGTH, num_tokens=40),
    seen(Acted(tool="write_file", arguments="{}", result="", changed=("src/contest.py",))),
]


@pytest.mark.parametrize("name", DETECTORS)
def test_each_detector_finds_its_fault(name: str) -> None:
    found, hint = detect(BAD[name])
    assert found == name
    assert hint.endswith(".")
    assert detect(BAD[name], [other for other in DETECTORS if other != name]) == ("", "")


@pytest.mark.parametrize("number", range(len(FINE)))
def test_good_work_has_no_hint(number: int) -> None:
    assert detect(FINE[number]) == ("", "")
