"""An environment of mini-swe-agent: commands run in the sandbox of an attempt. Runs in mini-swe-agent's Python."""

from __future__ import annotations

import os
import platform
from typing import Any

from excise_run import run
from minisweagent.exceptions import Submitted
from pydantic import BaseModel

FINISHED = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The first line of output by which an agent says that it is done."""


class SandboxConfig(BaseModel):
    """Settings, as a file of mini-swe-agent may have them under ``environment``."""

    cwd: str = "/testbed"
    env: dict[str, str] = {}
    timeout: int = 60


class SandboxEnvironment:
    """See ``minisweagent.Environment``. The variable ``EXCISE_SANDBOX`` names the socket of the sandbox."""

    def __init__(self, **settings: Any) -> None:
        self.config = SandboxConfig(**settings)

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command of the agent and return what it printed."""
        exports = "".join(f"export {name}='{value}'; " for name, value in self.config.env.items() if "'" not in value)
        limit = timeout or self.config.timeout
        done = run(
            os.environ["EXCISE_SANDBOX"],
            f"exec 2>&1; {exports}\n{action.get('command', '')}",
            float(limit),
            cwd or self.config.cwd,
        )
        output = (done["stdout"] + done["stderr"]).decode("utf-8", errors="replace")
        lines = output.lstrip().splitlines(keepends=True)
        if lines and lines[0].strip() == FINISHED and done["returncode"] == 0:
            submission = "".join(lines[1:])
            extra = {"exit_status": "Submitted", "submission": submission}
            raise Submitted({"role": "exit", "content": submission, "extra": extra})
        what = f"The command did not end within {limit} s." if done["timed_out"] else ""
        return {"output": output, "returncode": done["returncode"], "exception_info": what}

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """Values for the prompts; nothing of the host's variables."""
        return self.config.model_dump() | platform.uname()._asdict() | more

    def serialize(self) -> dict[str, Any]:
        """What the trajectory says about the environment."""
        config = {"environment": self.config.model_dump(mode="json"), "environment_type": "excise.SandboxEnvironment"}
        return {"info": {"config": config}}
