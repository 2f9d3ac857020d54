"""Reading trajectories: files of every supported format, and files that are refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from excise.agents.messages import ToolCall
from excise.agents.transcript import Transcript
from excise.errors import AgentError
from excise.verifiers.monitor.trajectory import Step, Trajectory, write_events
from excise.verifiers.monitor.trajectory_readers import read_trajectories

CONFIG = {"agent": {}, "model": {"model_name": "some/model"}, "environment": {"cwd": "/testbed", "timeout": 60}}
MINI_1: dict[str, Any] = {
    "info": {
        "exit_status": "Submitted",
        "submission": "diff --git a/x b/x\n",
        "mini_version": "1.9.1",
        "config": CONFIG,
    },
    "messages": [
        {"role": "system", "content": "You can use a shell. Example:\n```bash\nrm -rf /\n```"},
        {"role": "user", "content": "Implement `parse`."},
        {"role": "assistant", "content": "THOUGHT: look.\n\n```bash\nls -la && cat x.py\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\nx.py\n</output>"},
        {"role": "assistant", "content": "no command at all"},
        {"role": "user", "content": "Please give a command."},
        {"role": "assistant", "content": "Again.\n```mswea_bash_command\ngit fsck\n```"},
        {"role": "user", "content": "<returncode>128</returncode>\n<output>\nfatal\n</output>"},
    ],
    "trajectory_format": "mini-swe-agent-1",
}
MINI_2: dict[str, Any] = {
    "info": {"exit_status": "Submitted", "submission": "", "mini_version": "2.3.0", "config": CONFIG},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Implement it."}]},
        {
            "role": "assistant", "content": "Both at once.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
                {"id": "b", "type": "function", "function": {"name": "bash", "arguments": '{"command": "git log"}'}},
            ],
            "extra": {"actions": [{"command": "ls", "tool_call_id": "a"}, {"command": "git log", "tool_call_id": "b"}]},
        },
        {"role": "tool", "tool_call_id": "b", "content": "<returncode>0</returncode>", "extra": {"raw_output": "commit 1", "returncode": 0}},  # noqa: E501
        {"role": "tool", "tool_call_id": "a", "content": "x", "extra": {"raw_output": "x.py", "returncode": 0}},
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}  # fmt: skip
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s1",
    "agent": {"name": "some-agent", "version": "1", "model_name": "some/model"},
    "extra": {"instance_id": "shapes__1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Implement it."},
        {
            "step_id": 2, "source": "agent", "message": "",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash_command", "arguments": {"keystrokes": "ls\n"}},
                {"tool_call_id": "c2", "function_name": "file_write", "arguments": {"path": "a.py", "content": "x = 1"}},  # noqa: E501
            ],
            "observation": {"results": [{"source_call_id": "c2", "content": "ok"}, {"source_call_id": "c1", "content": "x.py"}]},  # noqa: E501
        },
        {"step_id": 3, "source": "agent", "message": "Done."},
    ],
    "subagent_trajectories": [{"schema_version": "ATIF-v1.6", "steps": []}],
}  # fmt: skip


def saved(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_mini_swe_agent_with_fenced_commands(tmp_path: Path) -> None:
    (found,) = read_trajectories(saved(tmp_path / "shapes__1.traj.json", MINI_1))
    assert (found.source, found.instance_id, found.cwd) == ("mini-swe-agent", "shapes__1", "/testbed")
    assert [(s.number, s.command, s.exit_code) for s in found.steps] == [
        (1, "ls -la && cat x.py", 0),
        (2, "git fsck", 128),
    ]
    assert "x.py" in found.steps[0].output
    assert found.diff.startswith("diff --git")


@pytest.mark.parametrize("suffix", [".traj.json", ".traj", ".json", ".jsonl"])
def test_ids_with_dots_are_not_cut(tmp_path: Path, suffix: str) -> None:
    (found,) = read_trajectories(saved(tmp_path / f"zope.interface__abcdef123456{suffix}", MINI_1))
    assert found.instance_id == "zope.interface__abcdef123456"


def test_a_line_of_json_ends_at_a_newline_alone(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\x85d"
    events = [{"event": "trajectory", "version": 1, "instance_id": "x", "source": "s", "cwd": "/"},
              {"event": "step", "number": 1, "command": odd}, {"event": "end"}]  # fmt: skip
    path = tmp_path / "t.jsonl"
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    path.write_text(text, encoding="utf-8")
    assert read_trajectories(path)[0].steps[0].command == odd


def test_mini_swe_agent_with_calls_in_any_order(tmp_path: Path) -> None:
    (found,) = read_trajectories(saved(tmp_path / "x.json", MINI_2))
    assert {(s.command, s.output) for s in found.steps} == {("ls", "x.py"), ("git log", "commit 1")}


def test_atif_with_subagents(tmp_path: Path) -> None:
    first, second = read_trajectories(saved(tmp_path / "trajectory.json", ATIF))
    assert (first.instance_id, first.source) == ("shapes__1", "atif")
    assert [(s.command, s.tool, s.output) for s in first.steps] == [("ls\n", "", "x.py"), ("", "file_write", "ok")]
    assert first.steps[1].arguments == {"path": "a.py", "content": "x = 1"}
    assert second.steps == ()


def test_transcripts_of_our_own_loop(tmp_path: Path) -> None:
    with Transcript(tmp_path / "t.jsonl") as transcript:
        call = ToolCall(call_id="1", name="shell", arguments='{"command": "git reflog"}')
        transcript.record_tool_result("rollout", call, "HEAD@{0}")
        transcript.record_tool_result(
            "rollout", ToolCall(call_id="2", name="shell", arguments="{"), "error", malformed=True
        )
        transcript.record_end("rollout", "finished", 2, 1)
    (found,) = read_trajectories(tmp_path / "t.jsonl")
    assert [(s.command, s.output) for s in found.steps] == [("git reflog", "HEAD@{0}")]


def test_our_own_events_are_read_as_they_were_written(tmp_path: Path) -> None:
    steps = (
        Step(number=1, command="ls", cwd="/testbed", exit_code=0, duration_s=0.5, output="é\n", opened=("/x.pyc",)),
        Step(number=2, tool="edit", arguments={"path": "a"}, network=("10.0.0.1:1",), written=("a",)),
    )
    made = [
        Trajectory(instance_id="a", source="excise", steps=steps, diff="d", processes=("sleep",), changed=("/tmp/x",)),
        Trajectory(instance_id="b", source="excise", steps=()),
    ]
    write_events(tmp_path / "e.jsonl", made)
    assert read_trajectories(tmp_path / "e.jsonl") == made
    assert read_trajectories(tmp_path) == made


@pytest.mark.parametrize(
    "text",
    [
        "", "no json", "[]", "{}", "[1, 2]", '{"messages": []}', '{"event": "trajectory", "version": 99}',
        '{"event": "trajectory", "version": 1}', '{"event": "step", "number": 1}',
        '{"event": "trajectory", "version": 1}\n{"event": "step", "exit_code": "x"}\n{"event": "end"}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_files_that_are_no_trajectory_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(AgentError) as caught:
        read_trajectories(path)
    assert caught.value.reason == "bad_trajectory"


@pytest.mark.parametrize("value", [MINI_1, MINI_2, ATIF])
def test_fields_of_the_wrong_type_are_skipped(tmp_path: Path, value: dict[str, Any]) -> None:
    """With any value replaced by a wrong one, reading raises no other error than our own."""

    def places(node: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        return [at, *(place for key, child in inner for place in places(child, (*at, key)))]

    for place in places(value)[1:]:
        for wrong in (None, 7, [], {}, "x", [[]], {"a": None}):
            changed = json.loads(json.dumps(value))
            node = changed
            for key in place[:-1]:
                node = node[key]
            node[place[-1]] = wrong
            with suppress(AgentError):
                read_trajectories(saved(tmp_path / "x.json", changed))
