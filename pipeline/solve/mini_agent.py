"""mini-swe-agent as an agent: its program runs on the host, its commands in the task's sandbox, its model by the proxy.

The package is not a dependency: it is in an environment of its own, whose folder ``EXCISE_MINI_VENV`` names, or its
program ``mini`` is on the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.solve.attempt import AttemptEnding, AttemptJob, AttemptOutcome
from excise.pipeline.solve.command_agent import attempt_tools, run_program
from excise.pipeline.solve.sandbox_bridge import CLIENTS

ENVIRONMENT = "excise_mini_environment.SandboxEnvironment"
"""Class of the environment, in ``clients/``."""
_ENDINGS = {
    "Submitted": AttemptEnding.FINISHED,
    "LimitsExceeded": AttemptEnding.STEPS,
    "TimeExceeded": AttemptEnding.TIME,
    "RepeatedFormatError": AttemptEnding.MALFORMED,
}
"""Exit status of mini-swe-agent to the ending of an attempt; those of our own limits outrank it."""


class MiniAgent:
    """See :class:`excise.pipeline.solve.attempt.Agent`."""

    name = "mini"

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        """Raises :class:`ConfigError` if mini-swe-agent is missing or no model is configured."""
        if not (settings.model.base_url and settings.model.model):
            raise ConfigError("--agent mini needs a model: set model.base_url and model.model (--base-url, --model).")
        self.settings, self.model = settings, settings.model.model
        self.program = mini_program(environ)
        self.detail = f"mini-swe-agent {_version_of(self.program)}".strip()

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        """Run ``mini`` until it submits or a limit is reached."""
        with attempt_tools(self.settings, job, through_sandbox=True) as tools:
            record = tools.folder / "mini.traj.json"
            overrides = tools.folder / "excise.yaml"
            overrides.write_text(json.dumps(self._settings_of_mini(tools.values)), encoding="utf-8")
            tools.env |= {
                "PYTHONPATH": str(CLIENTS),
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": str(tools.folder),
                "MSWEA_COST_TRACKING": "ignore_errors",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            }
            line = [self.program, "-y", "--exit-immediately", "--agent-class", "default", "-l", "0"]
            line += ["-c", "mini.yaml", "-c", str(overrides), "-o", str(record), "-t", job.statement]
            outcome = run_program(line, tools.folder, tools, job)
            return _with_record(outcome, record)

    def _settings_of_mini(self, values: Mapping[str, str]) -> dict[str, object]:
        model = self.settings.model
        limits = {"step_limit": model.solve_steps, "wall_time_limit_seconds": 0}
        arguments = {
            "api_base": values["base_url"],
            "api_key": values["api_key"],
            "temperature": model.temperature,
            "max_tokens": model.max_reply_tokens,
        }
        return {
            "agent": limits,
            "environment": {"environment_class": ENVIRONMENT, "cwd": "/testbed"},
            "model": {"model_name": f"openai/{model.model}", "model_class": "litellm", "model_kwargs": arguments},
        }


def mini_program(environ: Mapping[str, str]) -> str:
    """Path of the program ``mini``. Raises :class:`ConfigError` if there is none."""
    venv = environ.get("EXCISE_MINI_VENV", "")
    found = shutil.which("mini", path=str(Path(venv).absolute() / "bin") if venv else environ.get("PATH"))
    if found is None:
        where = f"in {venv} (EXCISE_MINI_VENV)" if venv else "on the path"
        raise ConfigError(
            f"There is no mini-swe-agent {where}. Install it into an environment of its own and name that: "
            "python3 -m venv mini && mini/bin/pip install mini-swe-agent && export EXCISE_MINI_VENV=$PWD/mini"
        )
    return found


def _version_of(program: str) -> str:
    """Version of the package beside the program; empty if it cannot be told."""
    found = Path(program).resolve().parents[1].glob("lib/python3*/site-packages/mini_swe_agent-*.dist-info")
    match = re.search(r"mini_swe_agent-(.+)\.dist-info$", next(map(str, found), ""))
    return match[1] if match else ""


def _with_record(outcome: AttemptOutcome, record: Path) -> AttemptOutcome:
    """The outcome with mini-swe-agent's trajectory as its transcript, and with the ending that this tells."""
    try:
        text = record.read_text(encoding="utf-8", errors="replace")
        status = str(json.loads(text).get("info", {}).get("exit_status", ""))
    except (OSError, ValueError, AttributeError):
        return outcome
    ending = outcome.ending
    if ending in (AttemptEnding.FINISHED, AttemptEnding.FAILED):
        ending = _ENDINGS.get(status, AttemptEnding.FAILED)
    detail = outcome.detail if ending is not AttemptEnding.FAILED else f"{status}: {outcome.detail}".strip(": ")
    return replace(outcome, ending=ending, detail=detail, transcript=text, output=None)
