"""``excise train``."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.errors import ConfigError
from excise.pipeline.cli_common import INTERRUPTED, OK, Json, Quiet, Set, errors, guarded

if TYPE_CHECKING:
    from excise.trainer.config import TrainSettings
    from excise.trainer.loop import End

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
) -> None:
    """Train a model on a task set by reinforcement learning, or on demonstrations by on-policy distillation."""
    with guarded():
        _require_torch()
        from excise.trainer.config import load_training

        settings = load_training(config, set_ or [], method=method and str(method))
        if dry_run:
            from excise.trainer.plan import plan

            found = plan(settings)
            print(
                json.dumps(found, indent=2) if as_json else "\n".join(f"{name}: {fact}" for name, fact in found.items())
            )
            return
        end = asyncio.run(_train(settings, resume=resume, quiet=quiet or as_json))
        if as_json:
            print(json.dumps({"folder": str(settings.folder), "end": str(end)}))
        elif not quiet:
            print(f"{_ENDINGS[str(end)]} The policy is in {settings.folder / 'policy'}.")
        raise typer.Exit(INTERRUPTED if str(end) == "stopped" else OK)


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


async def _train(settings: TrainSettings, *, resume: bool, quiet: bool) -> End:
    from excise.trainer.build import build, build_policy
    from excise.trainer.checkpoints import Checkpoints, export
    from excise.trainer.leading import follow, join
    from excise.trainer.loop import End, Loop
    from excise.trainer.watch import Watch

    async with AsyncExitStack() as stack:
        join(settings.loop.silence_s)
        with Watch(errors, steps=settings.loop.steps, quiet=quiet) as watch:
            watch.status("loading the model")
            policy = build_policy(settings)
            if not policy.learner.ranks.is_first:
                follow(policy.learner, Checkpoints(settings.folder / "checkpoints", ranks=policy.learner.ranks))
                return End.STEPS
            engine, supplies = await _supplied(settings, stack)
            loop = Loop(build(settings, engine, policy, supplies), settings.loop, settings.folder, watch)
            end = await loop.run(resume=resume)
            export(policy.learner, policy.tokenizer, settings.folder / "policy")
            policy.learner.say("over")
            return end


async def _supplied(settings: TrainSettings, _: AsyncExitStack) -> tuple[Any, Any]:
    """Engine, and for reinforcement learning what makes rollouts and chooses tasks; the stack lets go of them."""
    raise ConfigError(f"{settings.folder.name}: this build has no engine to sample with.")
