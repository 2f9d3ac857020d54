"""``excise train``: trains a model on a task set."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.cli.options import Json, Quiet, Set, Verbose, exit_codes_for_errors, require_sandbox, stderr
from excise.pipeline.exit_codes import INTERRUPTED, OK
from excise.system.run_log import run_log

if TYPE_CHECKING:
    from excise.trainer.interfaces import Engine
    from excise.trainer.loop.controller import RunEnd
    from excise.trainer.setup.run_builder import TaskSetComponents
    from excise.trainer.setup.training_config import TrainSettings
    from excise.types import Task

TRAIN_CODES = "Exit code: 0 done; 1 the run failed, go on with --resume; 2 usage; 130 stopped, go on with --resume."


class Method(StrEnum):
    """How the policy is trained."""

    RL = "rl"
    SDFT = "sdft"


def train(
    config: Annotated[Path, typer.Argument(help="TOML file with the run's settings.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in its folder stopped.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print the plan.")] = False,
    method: Annotated[Method | None, typer.Option(help="rl, or sdft (from demonstrations); else the file's.")] = None,
    set_: Set = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a model on a task set by reinforcement learning, or on demonstrations by on-policy distillation."""
    with exit_codes_for_errors():
        _require_torch()
        from excise.trainer.setup.dry_run import describe_run
        from excise.trainer.setup.training_config import load_training

        settings = load_training(config, set_ or [], method=method and str(method))
        description = describe_run(settings)
        if dry_run:
            lines = "\n".join(f"{name}: {value}" for name, value in description.items())
            print(json.dumps(description, indent=2) if as_json else lines)
            return
        from excise.trainer.loop.rank_commands import exit_rank, join_rank_group

        several = join_rank_group(settings.loop.max_idle_s)
        with run_log(settings.folder, verbose=verbose):
            end = asyncio.run(_train(settings, resume=resume, quiet=quiet or as_json))
        if end is None:  # only the first rank prints the result
            exit_rank(OK)
        if as_json:
            print(json.dumps({"folder": str(settings.folder), "end": str(end)}))
        elif not quiet:
            print(f"{_ENDINGS[str(end)]} The policy is in {settings.folder / 'policy'}.")
        code = INTERRUPTED if str(end) == "stopped" else OK
        if several:
            exit_rank(code)
        raise typer.Exit(code)


_ENDINGS = {
    "steps": "All steps are made.",
    "exhausted": "No task is left.",
    "stopped": "Stopped; go on with --resume.",
}


def _require_torch() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} are not installed. On a machine with a GPU: pip install 'excise[train]'; "
            "on one without: pip install 'excise[train-cpu]'."
        )


async def _train(settings: TrainSettings, *, resume: bool, quiet: bool) -> RunEnd | None:
    """Train; return how the run ended, or ``None`` on all ranks but the first."""
    from excise.trainer.loop.checkpoints import Checkpoints, export
    from excise.trainer.loop.controller import Controller
    from excise.trainer.loop.rank_commands import leave_rank_group, run_follower
    from excise.trainer.reporting.progress_display import ProgressDisplay
    from excise.trainer.setup.run_builder import build_policy, build_run

    async with AsyncExitStack() as stack:
        with ProgressDisplay(stderr, steps=settings.loop.steps, quiet=quiet) as display:
            display.status("loading the model")
            policy = build_policy(settings)
            if not policy.learner.ranks.is_first:
                run_follower(policy.learner, Checkpoints(settings.folder / "checkpoints", ranks=policy.learner.ranks))
                leave_rank_group()
                return None
            engine, task_set = await _engine_and_components(settings, stack, display.message)
            components = build_run(settings, engine, policy, task_set)
            controller = Controller(components, settings.loop, settings.folder, display)
            end = await controller.run(resume=resume)
            export(policy.learner, policy.tokenizer, settings.folder / "policy")
            policy.learner.announce("over")
            leave_rank_group()
            return end


def options_of(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return settings as options of ``excise generate``, without the task set and its sources."""
    options: list[str] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            options += options_of(value, f"{prefix}{name}.")
        elif value is not None and prefix + name not in ("out", "sources"):
            options += ["--set", f"{prefix}{name}={json.dumps(value, default=str)}"]
    return options


async def _engine_and_components(
    settings: TrainSettings, stack: AsyncExitStack, say: Callable[[str], object]
) -> tuple[Engine, TaskSetComponents | None]:
    """Make the engine and, for reinforcement learning, the parts that depend on the task set; ``stack`` closes them."""
    from excise.datasets.difficulty.stored_model import stored_model
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.arena import ArenaOptions, TaskArena
    from excise.pipeline.services.request_runner import PublishedTasks, RequestRunner
    from excise.pipeline.services.statements import StatementChoice
    from excise.trainer.curriculum.task_pool import TaskPool
    from excise.trainer.engines.engine_kinds import build_engine
    from excise.trainer.rollouts.rollout_maker import TaskRolloutMaker
    from excise.trainer.setup.evaluation_config import attempt_mode, eligible_tasks, highest_level
    from excise.trainer.setup.run_builder import TaskSetComponents
    from excise.trainer.setup.training_config import Method as Configured

    engine = await build_engine(settings.engine, settings.policy.model)
    stack.push_async_callback(engine.close)
    if settings.method is Configured.SDFT:
        return engine, None
    excise = Settings.model_validate(settings.excise)
    require_sandbox(excise)
    arena = TaskArena(
        TaskSet.open(excise.out),
        excise,
        ArenaOptions(
            graders=settings.eval.graders,
            fail_fast=settings.rollouts.partial_credit == 0,
            statements=StatementChoice(style=settings.rollouts.style, model_written=settings.rollouts.model_written),
            flagged=settings.folder / "suspicious",
        ),
    )
    stack.callback(arena.close)
    requests = RequestRunner(settings.folder / "requests", excise.out, options_of(settings.excise), report=say)
    stack.callback(requests.close)
    left_out = None if settings.curriculum.tests_only else lambda: TaskSet.open(excise.out).tests_only()
    published = PublishedTasks(excise.out, arena.tasks, arena.refresh, left_out)

    filtered: tuple[Mapping[str, Task], Mapping[str, Task]] = {}, {}

    def tasks() -> Mapping[str, Task]:
        """Tasks that this mode can try and that may be trained on; filtered again when tasks are published."""
        nonlocal filtered
        if (every := published()) is not filtered[0]:
            trainable = {
                instance_id: every[instance_id] for instance_id in eligible_tasks(settings.eval, every, held_out=False)
            }
            filtered = every, trainable
        return filtered[1]

    def make_rollouts(metered: Engine) -> TaskRolloutMaker:
        rollouts = TaskRolloutMaker(
            metered, arena, attempt_mode(settings.eval, settings.policy.model), settings.rollouts
        )
        stack.callback(rollouts.close)
        return rollouts

    ask = settings.curriculum.ask
    ask = ask.model_copy(update={"highest": highest_level(settings.eval, ask.highest)})
    prior = stored_model(excise.out) if settings.curriculum.uses_attempts else None
    curriculum = TaskPool(tasks, settings.curriculum.model_copy(update={"ask": ask}), requests, prior)
    return engine, TaskSetComponents(maker=make_rollouts, curriculum=curriculum, tasks=tasks)
