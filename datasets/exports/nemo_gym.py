"""Export for NeMo-Gym: rows with a request of the Responses API, and a resources server with a tool ``bash``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from excise.datasets.exports.served_tasks import write_served_tasks
from excise.protocols import ExportedSet, ExportReport
from excise.system.files import replace_file, replace_lines

AGENT = {"type": "responses_api_agents", "name": "simple_agent"}
"""The agent that runs a row: NeMo-Gym's own, which calls tools until it answers."""
BASH = {
    "type": "function",
    "name": "bash",
    "description": "Run a command with bash in the project's folder, /testbed. There is no network.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command."}},
        "required": ["command"],
        "additionalProperties": False,
    },
    "strict": True,
}
"""The tool."""

NOT_CARRIED = (
    "The grading kit: without EXCISE_SET the server believes the report of the tests, which a solution can forge.",
    "Limits of tokens and steps: they are the agent's.",
    "The server speaks the protocol of NeMo-Gym's resources servers, but is none of its classes: start it yourself and "
    "give its address.",
    "Gold patches, the gates' verdicts: only the files in `set/` have them.",
)


class NemoGymExporter:
    """Exports tasks as rows for NeMo-Gym, with a resources server."""

    name = "nemo-gym"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``tasks.jsonl``, ``index.jsonl``, ``checkouts/``, ``graders/``, ``images/`` and the server."""
        count = 0

        def lines() -> Iterator[str]:
            nonlocal count
            for entry in write_served_tasks(tasks, into):
                count += 1
                yield json.dumps(_row(entry), ensure_ascii=False)

        replace_lines(into / "tasks.jsonl", lines())
        replace_file(into / "excise_nemo_gym.py", tasks.materials.program("nemo_gym_server.py"))
        run = (
            "# `excise` must be on PATH, or EXCISE its command; EXCISE_SET=PATH-OF-THE-SET lets excise grade",
            "python excise_nemo_gym.py --port 8000",
            "# with verifiers: a taskset of class verifiers.v1.tasksets.nemo_gym.NeMoGymTaskset, its dataset "
            "tasks.jsonl and task.resources-url http://127.0.0.1:8000",
        )
        return ExportReport(num_tasks=count, not_carried=NOT_CARRIED, run=run)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    """The row of a task: the request, the agent, and what the server needs to find the task."""
    request = {"input": [{"role": "user", "content": entry["prompt"]}], "tools": [BASH], "parallel_tool_calls": False}
    return {
        "responses_create_params": request,
        "agent_ref": AGENT,
        "instance_id": entry["instance_id"],
        "repo": entry["repo"],
        "commit": entry["commit"],
    }
