"""mini-swe-agent's environment over excise's sandbox; this file is copied into every export as ``excise_mini.py``.

It runs in mini-swe-agent's process, with its package and the standard library, and calls the command ``excise`` (or
what the variable EXCISE names) of any other Python. In the exported folder:

    PYTHONPATH=$PWD mini-extra swebench --subset tasks --split train -c swebench.yaml -c bubblewrap.yaml -o runs
"""

from __future__ import annotations

import base64
import json
import os
import platform
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

from minisweagent.exceptions import Submitted
from pydantic import BaseModel

HERE = Path(__file__).resolve().parent
START = "excise-start"
"""First word of the start-up command, ``excise-start IMAGE INSTANCE``, which opens the sandbox."""
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class BubblewrapEnvironmentConfig(BaseModel):
    """Settings of the environment."""

    cwd: str = "/testbed"
    """Working directory."""
    env: dict[str, str] = {}
    """Variables of each command."""
    timeout: int = 60
    """Seconds for a command."""
    interpreter: list[str] = ["bash", "-c"]
    """What runs a command."""


class BubblewrapEnvironment:
    """Runs commands in excise's sandbox: no container engine, no network, the environment built from its lock."""

    def __init__(self, **settings: Any) -> None:
        known = BubblewrapEnvironmentConfig.model_fields
        self.config = BubblewrapEnvironmentConfig(**{name: settings[name] for name in known.keys() & settings.keys()})
        self._server: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command; raises ``Submitted`` when it hands in the work."""
        command = action.get("command", "")
        if command.startswith(f"{START} "):
            return self._start(*shlex.split(command)[1:])
        limit = timeout or self.config.timeout
        answer = self._run([*self.config.interpreter, f"exec 2>&1\n{command}"], cwd or self.config.cwd, limit)
        text = base64.b64decode(answer["stdout"]).decode("utf-8", "replace")
        late = answer["worker"] == "timeout"
        output = {
            "output": text,
            "returncode": -1 if late else answer["rc"],
            "exception_info": f"The command took more than {limit} seconds." if late else "",
        }
        lines = text.lstrip().splitlines(keepends=True)
        if lines and lines[0].strip() == SUBMIT and answer["rc"] == 0:
            patch = "".join(lines[1:])
            extra = {"exit_status": "Submitted", "submission": patch}
            raise Submitted({"role": "exit", "content": patch, "extra": extra})
        return output

    def _start(self, image: str, instance_id: str) -> dict[str, Any]:
        """Open the sandbox of an image, and unpack the checkout of an instance."""
        images = Path(os.environ.get("EXCISE_IMAGES") or HERE / "images")
        folder = images / image.replace(":", "-").replace("/", "-")
        command = [*shlex.split(os.environ.get("EXCISE", "excise")), "sandbox", str(folder)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answer()
        for name, target in ((f"{instance_id}.tar.gz", "tar.gz"), ("checkout.sh", "sh")):
            data = (HERE / "checkouts" / name).read_bytes()
            self._run(["sh", "-c", f"cat > /testbed/.excise-checkout.{target}"], "/testbed", 60, data)
        answer = self._run(["sh", "/testbed/.excise-checkout.sh"], "/testbed", 120)
        return {"output": base64.b64decode(answer["stderr"]).decode(), "returncode": answer["rc"], "exception_info": ""}

    def _answer(self) -> dict[str, Any]:
        assert self._server is not None
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise RuntimeError(f"excise's sandbox failed: {answer['error']}")
        return answer

    def _run(self, argv: list[str], cwd: str, timeout_s: float, stdin: bytes = b"") -> dict[str, Any]:
        if self._server is None or self._server.stdin is None:
            raise RuntimeError("The sandbox is not open: is run.env_startup_command that of bubblewrap.yaml?")
        request = {"argv": argv, "cwd": cwd, "env": self.config.env, "timeout_s": timeout_s}
        with self._lock:
            data = base64.b64encode(stdin).decode()
            self._server.stdin.write(json.dumps(request | {"stdin": data}).encode() + b"\n")
            self._server.stdin.flush()
            return self._answer()

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """Variables of prompts."""
        return {**self.config.model_dump(), **platform.uname()._asdict(), **more}

    def serialize(self) -> dict[str, Any]:
        """What the trajectory says about the environment."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return {"info": {"config": {"environment": self.config.model_dump(mode="json"), "environment_type": kind}}}

    def cleanup(self) -> None:
        """Close the sandbox."""
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            self._server.wait(20)
            self._server = None

    def __del__(self) -> None:
        self.cleanup()
