"""A complete training run in miniature: a plain engine, tasks that reward one token, a random curriculum."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from excise.errors import EngineError
from excise.trainer.interfaces import Engine, GroupProgress
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.loop.controller import Controller, LoopSettings, RunComponents
from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.loop.queue_state import ScheduleSettings
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.progress_display import ProgressDisplay
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Segment, Stop, Turn, Usage

from .tiny_policy import VOCABULARY, tiny_model

ANSWER = 6
"""Tokens of an answer."""


class PlainEngine:
    """Samples token by token with full forward passes, from its own copy of the weights."""

    name = "plain"
    needs_checkpoint_names = False
    context_length = 64

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model.eval().requires_grad_(False)
        self.version = -1
        self.broken = False

    @torch.no_grad()
    def _draw(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        generator = torch.Generator().manual_seed(sampling.seed or 0)
        length = len(prompts[0])
        assert all(len(prompt) == length for prompt in prompts)
        ids = torch.tensor([list(prompt) for prompt in prompts])
        logprobs = []
        for _ in range(sampling.max_tokens):
            table = (self.model(input_ids=ids).logits[:, -1] / sampling.temperature).log_softmax(-1)
            drawn = torch.multinomial(table.exp(), 1, generator=generator)
            logprobs.append(table.gather(-1, drawn)[:, 0])
            ids = torch.cat([ids, drawn], dim=1)
        return [
            Generation(
                ids=tuple(ids[i, length:].tolist()),
                logprobs=tuple(float(p[i]) for p in logprobs),
                versions=(self.version,) * sampling.max_tokens,
                stop=Stop.LENGTH,
            )
            for i in range(len(prompts))
        ]

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        if self.broken:
            raise EngineError("The engine is gone.")
        await asyncio.sleep(0)
        by_length: dict[int, list[int]] = {}
        for number, prompt in enumerate(prompts):
            by_length.setdefault(len(prompt), []).append(number)
        found: dict[int, Generation] = {}
        for numbers in by_length.values():
            answers = self._draw([prompts[n] for n in numbers], sampling)
            found |= dict(zip(numbers, answers, strict=True))
        return [found[n] for n in range(len(prompts))]

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        raise NotImplementedError

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        if self.broken:
            raise EngineError("The engine is gone.")
        with torch.no_grad():
            own = self.model.state_dict()
            for name, tensor in weights:
                own[name].copy_(tensor)
        self.version = version

    async def close(self) -> None:
        return


class TokenTasks:
    """Makes rollouts of tasks ``tN``: the reward is the share of token N in the answer."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.calls: list[str] = []

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        self.calls.append(group_id)
        progress.on_start()
        wanted = int(instance_id[1:])
        prompt = (1, wanted)
        answers = await self.engine.generate([prompt] * size, Sampling(max_tokens=ANSWER, seed=seed))
        return Group(
            group_id=group_id,
            instance_id=instance_id,
            rollouts=tuple(
                rollout(f"{group_id}-{i}", group_id, instance_id, prompt, answer, answer.ids.count(wanted) / ANSWER)
                for i, answer in enumerate(answers)
            ),
        )


def rollout(
    name: str, group_id: str, instance_id: str, prompt: Sequence[int], answer: Generation, reward: float
) -> Rollout:
    start = len(prompt)
    segment = Segment(
        ids=(*prompt, *answer.ids),
        sampled=(False,) * start + (True,) * len(answer.ids),
        logprobs=(0.0,) * start + answer.logprobs,
        versions=(-1,) * start + answer.versions,
        turns=(Turn(start=start, end=start + len(answer.ids), stop=answer.stop, prompt_end=start),),
    )
    return Rollout(
        rollout_id=name, group_id=group_id, instance_id=instance_id, segments=(segment,), ending=Ending.FINISHED,
        task_reward=reward, usage=Usage(final=len(answer.ids), num_turns=1),
    )  # fmt: skip


class RandomTasks:
    """A curriculum that draws tasks uniformly and remembers the groups that were recorded."""

    has_pending_requests = False

    def __init__(self, tasks: Sequence[str], seed: int = 0, most: int | None = None) -> None:
        self.tasks = list(tasks)
        self.random = random.Random(seed)
        self.most = most
        self.drawn = 0
        self.seen: list[list[Any]] = []

    def summary(self) -> dict[str, float]:
        return {"drawn": float(self.drawn)}

    def why_empty(self) -> str:
        return f"All {self.most} were drawn."

    def next_task(self, replayed: str | None = None) -> str | None:
        if self.most is not None and self.drawn >= self.most:
            return None
        self.drawn += 1
        return self.random.choice(self.tasks)

    def record(self, group: Group) -> None:
        self.seen.append([group.group_id, sum(r.reward for r in group.valid_rollouts)])

    def state(self) -> dict[str, Any]:
        return {"random": self.random.getstate(), "drawn": self.drawn, "seen": self.seen}

    def restore(self, state: dict[str, Any]) -> None:
        version, inner, gauss = state["random"]
        self.random.setstate((version, tuple(inner), gauss))
        self.drawn, self.seen = state["drawn"], state["seen"]


QUICK = LoopSettings(
    steps=4, checkpoint_every=2, tensorboard=False,
    schedule=ScheduleSettings(batch=4, group_size=6, staleness=0, batch_deadline_s=60, group_deadline_s=30),
)  # fmt: skip


class TinyRun:
    """A run with its components, ready to be changed by a test before :meth:`run`."""

    def __init__(
        self,
        folder: Path,
        settings: LoopSettings = QUICK,
        *,
        seed: int = 0,
        lr: float = 0.01,
        learner: LearnerSettings | None = None,
        tasks: RandomTasks | None = None,
        wrap: Any = None,
        model: dict[str, Any] | None = None,
        teacher: Any = None,
        **components: Any,
    ) -> None:
        torch.manual_seed(seed)
        changes = {"initializer_range": 0.05, "hidden_size": 32, "intermediate_size": 64} | (model or {})
        policy = tiny_model(seed, torch.float32, **changes)
        optimizer = torch.optim.AdamW(policy.parameters(), lr=lr)
        self.engine = PlainEngine(tiny_model(99, torch.float32, **changes))
        metered = MeteredEngine(self.engine)
        self.maker = TokenTasks(metered)
        self.learner = Learner(
            policy,
            optimizer,
            learner or LearnerSettings(reference_length=ANSWER),
            scheduler=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3)),
            teacher=teacher(policy) if teacher else None,
        )
        self.tasks = tasks or RandomTasks([f"t{n}" for n in range(2, 6)], seed)
        self.lines: list[str] = []
        self.folder = folder
        self.console = Console(file=(folder.parent / f"{folder.name}.log").open("a"), width=200)
        self.components = RunComponents(
            learner=self.learner,
            engine=metered,
            maker=wrap(self.maker) if wrap else self.maker,
            curriculum=self.tasks,
            **components,
        )
        self.settings = settings

    def run(self, *, resume: bool = False) -> Any:
        async def whole() -> Any:
            with ProgressDisplay(self.console, steps=self.settings.steps) as display:
                self.controller = Controller(self.components, self.settings, self.folder, display)
                return await self.controller.run(resume=resume)

        return asyncio.run(whole())

    def checkpoint_steps(self) -> list[int]:
        return Checkpoints(self.folder / "checkpoints").steps()

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in self.learner.model.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights are equal bit for bit."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


assert VOCABULARY > 6
