"""``excise eval``: scores of a policy on the tasks of a set."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.cli.options import (
    Cache,
    Json,
    Out,
    Quiet,
    Set,
    exit_codes_for_errors,
    print_message,
    require_sandbox,
)
from excise.pipeline.cli.scores_output import read_evaluation, show_evaluations
from excise.pipeline.exit_codes import FAILED, OK

if TYPE_CHECKING:
    from excise.datasets.queries.scores import Evaluation, TaskScore
    from excise.trainer.setup.evaluation_config import EvaluationConfig

EVAL_CODES = "Exit code: 0 evaluated; 1 no attempt says anything; 2 usage."


def evaluate(
    config: Annotated[Path, typer.Argument(help="TOML file with [engine], [rollouts] and [eval].")],
    model: Annotated[Path, typer.Option(help="Folder with the policy's weights and tokenizer.")],
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only this task; repeatable. Default: all of the set.")
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Only what training leaves out, see [eval.held_out].")
    ] = False,
    samples: Annotated[int | None, typer.Option(min=1, help="Attempts at each task; default: the file's.")] = None,
    name: Annotated[str, typer.Option(help="What to call the policy; default: the folder's name.")] = "",
    compare: Annotated[list[Path] | None, typer.Option(help="Results of earlier evaluations, to show beside.")] = None,
    into: Annotated[Path | None, typer.Option(help="Folder for eval.json and eval.svg.")] = None,
    out: Out = None,
    cache: Cache = None,
    set_: Set = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a policy: pass@1 to pass@16, and score against completion tokens, as a table, JSON and a picture."""
    from excise.datasets.difficulty.observations import store_evaluation
    from excise.trainer.setup.evaluation_config import load_evaluation
    from excise.trainer.setup.model_folder import require_model

    with exit_codes_for_errors():
        evaluation = load_evaluation(config, set_ or [])
        settings = _settings(evaluation.excise, out, cache)
        require_sandbox(settings)
        earlier = [read_evaluation(path) for path in compare or ()]
        require_model(model)
        options = _Options(tasks, held_out, samples or evaluation.eval.samples, name or model.name)
        found = asyncio.run(_evaluate(options, evaluation, settings, model, quiet=quiet or as_json))
        store_evaluation(settings.out, found)
        show_evaluations([*earlier, found], into, "eval", found if as_json else None)
        raise typer.Exit(OK if found.num_attempts else FAILED)


def _settings(values: dict[str, Any], out: Path | None, cache: Path | None) -> Settings:
    given = {key: value for key, value in (("out", out), ("cache", cache)) if value is not None}
    return Settings.model_validate({**values, **{key: path.absolute() for key, path in given.items()}})


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of the command line."""

    tasks: list[str] | None
    held_out: bool
    samples: int
    name: str


async def _evaluate(
    options: _Options, evaluation: EvaluationConfig, settings: Settings, model: Path, *, quiet: bool
) -> Evaluation:
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.arena import ArenaOptions, TaskArena
    from excise.pipeline.services.statements import StatementChoice
    from excise.trainer.engines.engine_kinds import build_engine
    from excise.trainer.rollouts.evaluation import evaluate as score
    from excise.trainer.rollouts.rollout_maker import TaskRolloutMaker
    from excise.trainer.setup.evaluation_config import attempt_mode, eligible_tasks

    rolled = evaluation.rollouts
    choice = StatementChoice(style=rolled.style, model_written=rolled.model_written)
    arena_options = ArenaOptions(ids=options.tasks, graders=evaluation.eval.graders, statements=choice)
    arena = TaskArena(TaskSet.open(settings.out), settings, arena_options)
    try:
        work = attempt_mode(evaluation.eval, model)
        ids = eligible_tasks(evaluation.eval, arena.tasks(), held_out=options.held_out or None)
        if not ids and options.held_out:
            raise ConfigError(f"Nothing of {settings.out} is held out: say what is in [eval.held_out].")
        if not ids:
            raise ConfigError(f"{settings.out} has no task that the mode {evaluation.eval.mode!r} can be tried on.")
        engine = await build_engine(evaluation.engine, model)
        rollouts = TaskRolloutMaker(engine, arena, work, evaluation.rollouts)
        try:
            return await score(
                rollouts,
                ids,
                name=options.name,
                samples=options.samples,
                listener=(lambda _: None) if quiet else _print_score,
            )
        finally:
            rollouts.close()
            await engine.close()
    finally:
        arena.close()


def _print_score(done: TaskScore) -> None:
    lost = f", {done.num_lost} lost" if done.num_lost else ""
    print_message(f"{done.instance_id}: {done.num_solved} of {done.num_attempts} solved{lost}")
