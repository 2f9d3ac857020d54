"""An external command as an agent: it works on a copy of the tree, or by a program that runs commands in the sandbox.

The command runs on the host with the rights of the user. Its words may contain:

==================  ===================================================================================
``{workdir}``       folder with the task's tree; what it holds at the end is graded
``{run}``           program that runs one shell command in the task's sandbox; what it changed is graded
``{statement}``     the statement, as text
``{statement_file}``  file with the statement
``{instance_id}``   id of the task
``{base_url}``      a proxy of the configured model (also ``OPENAI_BASE_URL``)
``{api_key}``       the key of the proxy (also ``OPENAI_API_KEY``)
``{model}``         name of the configured model
==================  ===================================================================================
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from excise.agents.budget import Meter, budget_of
from excise.agents.metered_proxy import MeteredProxy
from excise.config import Settings
from excise.errors import AgentError, ConfigError
from excise.pipeline.solve.attempt import (
    ENDING_OF_LIMIT,
    AttemptEnding,
    AttemptJob,
    AttemptOutcome,
    AttemptsStopped,
    limit_reached,
)
from excise.pipeline.solve.folder_changes import TooManyChanges, folder_diff
from excise.pipeline.solve.host_program import HostProgram, ProgramEnd, run_host_program
from excise.pipeline.solve.sandbox_bridge import SandboxBridge
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders

PLACEHOLDERS = frozenset(
    {"workdir", "run", "statement", "statement_file", "instance_id", "base_url", "api_key", "model"}
)
"""Names that the words of a command may contain in braces."""
MODEL_PLACEHOLDERS = frozenset({"base_url", "api_key", "model"})
REFUSED_S = 3.0
"""Seconds after the first request beyond the budget in which a program has to end by itself."""
MAX_ARGUMENT = 120_000
"""Maximum number of bytes of one argument; Linux allows 128 KiB."""
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class AttemptTools:
    """What a program gets for one attempt."""

    folder: Path
    """Scratch folder, for this attempt only."""
    values: dict[str, str]
    """Placeholder to its value."""
    meter: Meter
    """Counts what the model uses, and the time."""
    proxy: MeteredProxy | None
    """The proxy of the model; ``None`` if no model is configured."""
    bridge: SandboxBridge | None
    """The way into the sandbox; ``None`` for programs that work on a folder."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables in addition to this process's."""


class CommandAgent:
    """See :class:`excise.pipeline.solve.attempt.Agent`."""

    name = "command"

    def __init__(self, settings: Settings, command: str) -> None:
        """Raises :class:`ConfigError` for a command that cannot be run."""
        self.settings, self.detail = settings, command
        self.words = checked_words(command)
        self.used = frozenset(name for word in self.words for name in _NAME.findall(word)) & PLACEHOLDERS
        self.model = settings.model.model if settings.model.base_url else ""
        if self.used & MODEL_PLACEHOLDERS and not self.model:
            raise ConfigError("The command wants a model: set model.base_url and model.model, too.")

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        """Run the command to its end or a limit."""
        with attempt_tools(self.settings, job, through_sandbox="run" in self.used) as tools:
            workdir = tools.folder / "work"
            if "workdir" in self.used:
                shutil.copytree(job.sandbox.workspace.tree, workdir, symlinks=True)
                tools.values["workdir"] = str(workdir)
            argv = [_NAME.sub(lambda name: tools.values.get(name[1], name[0]), word) for word in self.words]
            if too_long := next((word for word in argv if len(word.encode()) > MAX_ARGUMENT), None):
                raise AgentError(f"An argument of {len(too_long)} characters: use {{statement_file}}.", reason="usage")
            outcome = run_program(argv, workdir if workdir.exists() else tools.folder, tools, job)
            if "workdir" not in self.used:
                return outcome
            try:
                return replace(
                    outcome,
                    diff=folder_diff(job.sandbox.workspace.tree, workdir, job.sandbox.workspace.bench.repo.language),
                )
            except TooManyChanges:
                return replace(outcome, diff="", refused="diff_too_large")
            finally:
                _remove(workdir)


def checked_words(command: str) -> list[str]:
    """The words of a command. Raises :class:`ConfigError` if it cannot be run, or what it does could not be graded."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--agent {command!r} is no command: {error}.") from error
    used = {name for word in words for name in _NAME.findall(word)}
    if not words or not used & {"workdir", "run"}:
        raise ConfigError(
            f"--agent {command!r}: name {{workdir}} (a folder that is graded) or {{run}} (a program that runs commands "
            "in the sandbox). Agents that need no command: model, mini, gold, noop, stub."
        )
    if {"workdir", "run"} <= used:
        raise ConfigError("--agent: name {workdir} or {run}, not both: only one of them is graded.")
    if not words[0].startswith("{") and shutil.which(words[0]) is None:
        raise ConfigError(f"--agent: there is no program {words[0]!r}.")
    return words


@contextmanager
def attempt_tools(settings: Settings, job: AttemptJob, *, through_sandbox: bool) -> Iterator[AttemptTools]:
    """Scratch folder, proxy and bridge of one attempt. Raises :class:`AgentError` if the model's key is missing."""
    remove_orphaned_folders("solve")
    folder = Path(owned_temporary_folder("solve"))
    meter = Meter(budget_of(settings.model))
    try:
        with ExitStack() as stack:
            (folder / "statement.md").write_text(job.statement, encoding="utf-8")
            values = {
                "statement": job.statement,
                "statement_file": str(folder / "statement.md"),
                "instance_id": job.sandbox.task.instance_id,
            }
            env: dict[str, str] = {}
            proxy = bridge = None
            if settings.model.base_url and settings.model.model:
                proxy = stack.enter_context(MeteredProxy(settings.model, meter, settings.model.solve_steps))
                values |= {"base_url": proxy.url, "api_key": proxy.key, "model": settings.model.model}
                env |= {"OPENAI_BASE_URL": proxy.url, "OPENAI_API_BASE": proxy.url, "OPENAI_API_KEY": proxy.key}
            if through_sandbox:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="excise-sb-", dir="/tmp")))
                bridge = stack.enter_context(SandboxBridge(job.sandbox.session, place, meter.left_s))
                values["run"] = str(bridge.program)
                env["EXCISE_SANDBOX"] = str(bridge.socket)
            yield AttemptTools(folder=folder, values=values, meter=meter, proxy=proxy, bridge=bridge, env=env)
    finally:
        _remove(folder)


def run_program(argv: list[str], cwd: Path, tools: AttemptTools, job: AttemptJob) -> AttemptOutcome:
    """Run an agent's program within the budget.

    Raises :class:`AgentError` if the endpoint failed and the program therefore, :class:`SandboxError` if the sandbox
    did.
    """
    program = HostProgram(argv=argv, cwd=cwd, env=_environment(tools), log=tools.folder / "log")
    try:
        end = run_host_program(program, _stop_condition(tools, job))
    except OSError as error:
        raise AgentError(f"{argv[0]} cannot be started: {error.strerror}", reason="agent_not_started") from error
    if job.is_stopped():
        raise AttemptsStopped("The run was stopped.")
    if tools.bridge is not None and tools.bridge.failure is not None:
        raise tools.bridge.failure
    ending, detail = _ending(end, tools)
    proxy = tools.proxy
    if ending is AttemptEnding.FAILED and proxy is not None and proxy.failure:
        raise AgentError(f"The model gave no answer: {proxy.failure}.")
    return AttemptOutcome(
        ending=ending,
        detail=detail,
        usage=tools.meter.spent if proxy is not None and proxy.steps else None,
        steps=proxy.steps if proxy is not None and proxy.steps else None,
        transcript=end.output,
        output=end.output,
    )


def _environment(tools: AttemptTools) -> Mapping[str, str]:
    """The variables of a program: the user's, without the model's key, which only the proxy has."""
    hidden = {tools.proxy.settings.api_key_env} if tools.proxy is not None else set()
    direct = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1"]))
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    return variables | {"NO_PROXY": direct, "no_proxy": direct} | tools.env


def _stop_condition(tools: AttemptTools, job: AttemptJob) -> Callable[[], bool]:
    def should_stop() -> bool:
        refused_at = tools.proxy.refused_at if tools.proxy is not None else None
        persists = refused_at is not None and time.monotonic() - refused_at >= REFUSED_S
        return job.is_stopped() or tools.meter.left_s() <= 0 or persists

    return should_stop


def _ending(end: ProgramEnd, tools: AttemptTools) -> tuple[AttemptEnding, str]:
    proxy = tools.proxy
    if proxy is not None and proxy.refused_at is not None:
        setting, what = proxy.exhausted()
        return ENDING_OF_LIMIT[setting], what
    if end.stopped:
        return limit_reached(tools.meter) or (AttemptEnding.TIME, "")
    if end.returncode != 0:
        return AttemptEnding.FAILED, f"exit code {end.returncode}: {end.output[-500:]}"
    return AttemptEnding.FINISHED, ""


def _remove(folder: Path) -> None:
    """Remove a folder, also one that a program made unwritable."""

    def make_writable(function: Callable[[str], object], path: str, _: object) -> None:
        for each in (os.path.dirname(path), path):
            if os.path.isdir(each) and not os.path.islink(each):
                os.chmod(each, 0o700)
        try:
            function(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=make_writable)
