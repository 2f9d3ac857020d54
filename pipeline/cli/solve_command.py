"""``excise solve``: an agent attempts tasks of a set, and is graded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.config import Settings
from excise.datasets.queries.attempts import AttemptRow, score_run
from excise.errors import ConfigError
from excise.pipeline.cli.options import (
    Cache,
    Config,
    Json,
    ModelWritten,
    Out,
    Quiet,
    Set,
    Style,
    Verbose,
    exit_codes_for_errors,
    print_message,
    require_sandbox,
    settings_of,
)
from excise.pipeline.cli.scores_output import read_evaluation, show_evaluations
from excise.pipeline.exit_codes import INFRA, OK, PARTIAL
from excise.types import StatementStyle

if TYPE_CHECKING:
    from excise.datasets.queries.scores import Evaluation
    from excise.pipeline.solve.attempt import Agent
    from excise.pipeline.solve.solve_run import LostAttempt, SolvePlan, SolveResult

SOLVE_CODES = (
    "Exit code: 0 every attempt was made, whatever came of it; 2 usage; 3 some attempts were lost (infrastructure) "
    "and are made by the same command again; 4 all were; 130 interrupted."
)
_OF_MODEL = {
    "base_url": "model.base_url",
    "model": "model.model",
    "temperature": "model.temperature",
    "max_steps": "model.solve_steps",
    "max_tokens": "model.max_tokens",
    "max_seconds": "model.max_wall_s",
    "max_cost": "model.max_cost",
    "price_in": "model.prompt_price",
    "price_out": "model.completion_price",
}
"""Option to the setting that it stands for."""


def solve(
    instance_id: Annotated[list[str] | None, typer.Argument(help="Tasks; default: all of the set.")] = None,
    agent: Annotated[
        str,
        typer.Option(
            help="model (excise's own), mini (mini-swe-agent), gold, noop, stub, or a command with {workdir} or {run}, "
            "and {statement}."
        ),
    ] = "model",
    attempts: Annotated[int, typer.Option("--attempts", "-k", min=1, help="Attempts at each task.")] = 1,
    style: Style = StatementStyle.SPECIFICATION,
    model_written: ModelWritten = False,
    name: Annotated[str, typer.Option(help="Name of the run; default: agent, model and style.")] = "",
    at_once: Annotated[int | None, typer.Option(min=1, help="Attempts at once; default: one per core.")] = None,
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint: model.base_url.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model there: model.model.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature: model.temperature.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Replies of one attempt: model.solve_steps.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of one attempt: model.max_tokens.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds of one attempt: model.max_wall_s.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Money for one attempt: model.max_cost.")] = None,
    price_in: Annotated[
        float | None, typer.Option(help="Price of a million prompt tokens: model.prompt_price.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(help="Price of a million completion tokens: model.completion_price.")
    ] = None,
    compare: Annotated[
        list[str] | None, typer.Option(help="Another run of the set, or the JSON file of one, to show beside.")
    ] = None,
    into: Annotated[Path | None, typer.Option(help="Folder for solve.json and solve.svg.")] = None,
    out: Out = None,
    cache: Cache = None,
    config: Config = None,
    set_: Set = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Let an agent attempt tasks, grade it, and store the attempts; the same command again goes on."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.statements import StatementChoice, Statements
    from excise.system.run_log import run_log

    values = (base_url, model, temperature, max_steps, max_tokens, max_seconds, max_cost, price_in, price_out)
    given = {key: value for key, value in zip(_OF_MODEL, values, strict=True) if value is not None}
    with exit_codes_for_errors():
        direct = [f"{_OF_MODEL[key]}={json.dumps(value)}" for key, value in given.items()]
        settings = settings_of(config, [*(set_ or []), *direct], out=out, cache=cache)
        taskset = TaskSet.open(settings.out)
        solver = agent_of(settings, agent)
        ids = _chosen(taskset, instance_id)
        others = [_read_scores(settings.out, entry, ids) for entry in compare or ()]
        require_sandbox(settings)
        statements = Statements(taskset, StatementChoice(style=style, model_written=model_written))
        plan = _plan(settings, solver, ids, name=name, attempts=attempts, statements=statements, at_once=at_once)
        with run_log(settings.out, verbose=verbose):
            result = _run(settings, taskset, solver, plan, quiet=quiet or as_json)
        _show(result, others, into, as_json=as_json)
        raise typer.Exit(_exit_code(result))


def agent_of(settings: Settings, agent: str) -> Agent:
    """The agent that the option names. Raises :class:`ConfigError` if it cannot be used."""
    from excise.pipeline.solve.command_agent import CommandAgent
    from excise.pipeline.solve.mini_agent import MiniAgent
    from excise.pipeline.solve.model_agent import ModelAgent
    from excise.pipeline.solve.reference_agents import REFERENCES, ReferenceAgent

    if agent in REFERENCES:
        return ReferenceAgent(agent)
    if agent == "mini":
        return MiniAgent(settings)
    if agent == "model":
        has_model = settings.model.model and (settings.model.base_url or settings.model.replay)
        if not has_model:
            raise ConfigError("--agent model needs a model: set model.base_url and model.model (--base-url, --model).")
        return ModelAgent(settings)
    return CommandAgent(settings, agent)


def _chosen(taskset: Any, named: list[str] | None) -> list[str]:
    """The named tasks, or all that are not in quarantine. Raises :class:`ConfigError` if there is none."""
    usable = [task.instance_id for task in taskset.tasks()]
    for instance_id in named or ():
        taskset.task(instance_id)
        if instance_id not in usable:
            raise ConfigError(f"{instance_id} is in quarantine, with a reason: see `excise show`.")
    ids = list(dict.fromkeys(named or usable))
    if not ids:
        raise ConfigError("The set has no tasks.")
    return ids


def _plan(settings: Settings, solver: Agent, ids: list[str], **options: Any) -> SolvePlan:
    from excise.pipeline.solve.solve_run import SolvePlan, default_run_name

    name = options.pop("name") or default_run_name(solver, options["statements"].choice)
    if name.startswith(".") or "/" in name:
        raise ConfigError(f"--name {name!r} is no name of a folder.")
    at_once = options.pop("at_once") or settings.workers
    return SolvePlan(run=name, ids=ids, at_once=at_once, **options)


def _run(settings: Settings, taskset: Any, solver: Agent, plan: SolvePlan, *, quiet: bool) -> SolveResult:
    from excise.pipeline.services.arena import ArenaOptions, TaskArena
    from excise.pipeline.solve.solve_run import SolveRun, open_run

    with open_run(settings, plan, solver):
        arena = TaskArena(taskset, settings, ArenaOptions(ids=plan.ids, graders=max(2, settings.workers)))
        try:
            listener = (lambda _: None) if quiet else _print_attempt
            return asyncio.run(SolveRun(settings, arena, solver, plan, listener).run())
        finally:
            arena.close()


def _print_attempt(done: AttemptRow | LostAttempt) -> None:
    if not isinstance(done, AttemptRow):
        print_message(f"{done.attempt_id}: lost, {done.reason}: {done.detail}", "yellow")
        return
    parts = ["solved" if done.solved else f"not solved ({', '.join(done.flags or done.reasons)})", done.ending]
    if done.steps is not None:
        parts.append(f"{done.steps} steps")
    if done.prompt_tokens is not None and done.completion_tokens is not None:
        parts.append(f"{done.prompt_tokens + done.completion_tokens} tokens")
    if done.cost is not None:
        parts.append(f"cost {done.cost:.4f}")
    print_message(f"{done.attempt_id}: {', '.join(parts)}, {done.wall_s:.1f} s")


def _read_scores(store: Path, entry: str, ids: list[str]) -> Evaluation:
    """Scores of a run of the set at the chosen tasks, or those of a file."""
    if entry.endswith(".json"):
        return read_evaluation(Path(entry))
    score_run(store, entry)  # without any attempt, this says which runs there are
    return score_run(store, entry, ids)


def _exit_code(result: SolveResult) -> int:
    if not (result.lost or result.num_left_out):
        return OK
    return PARTIAL if result.num_new + result.num_kept else INFRA


def _show(result: SolveResult, others: list[Evaluation], into: Path | None, *, as_json: bool) -> None:
    show_evaluations([*others, result.scores], into, "solve", result if as_json else None)
    if result.lost:
        left = f" and {result.num_left_out} not begun after that" if result.num_left_out else ""
        print_message(
            f"{len(result.lost)} attempts were lost to the infrastructure{left}; the same command makes them again. "
            f"The last one: {result.lost[-1].detail}",
            "yellow",
        )
