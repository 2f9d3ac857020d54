"""On-policy fine-tuning on demonstrations (SDFT, arXiv 2601.19897).

The policy samples its own answer to a prompt. A teacher, the same model with the demonstration in its context, gives
the distribution of each token of that answer, and the policy is moved towards it. Trained on its own samples, the
policy forgets less than by imitating the demonstration's text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from excise.errors import ConfigError
from excise.trainer.concurrency import gather_or_cancel
from excise.trainer.interfaces import Engine, GroupProgress
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Segment, Stop, Turn, Usage
from excise.types import content_id

TEACHER_CONTEXT = (
    "For your eyes only, this is an answer that somebody else gave:\n\n{demonstration}\n\n"
    "Now answer in your own words, with what you can learn from it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A prompt with an example answer."""

    prompt: str
    """The prompt that the policy answers."""
    demonstration: str
    """The example answer, in the teacher's context only."""

    @property
    def demonstration_id(self) -> str:
        """Content hash, used as the instance id of its group."""
        return content_id("demonstration", self.prompt, self.demonstration)


def read_demonstrations(path: Path) -> list[Demonstration]:
    """Read JSON lines with ``prompt`` and ``demonstration``, without duplicates. Raises :class:`ConfigError`."""
    found: dict[str, Demonstration] = {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            one = Demonstration(prompt=str(values["prompt"]), demonstration=str(values["demonstration"]))
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{path}:{number}: write an object with prompt and demonstration.") from None
        found[one.demonstration_id] = one
    if not found:
        raise ConfigError(f"{path}: no demonstrations.")
    return list(found.values())


class PromptTemplate:
    """Renders one question with a tokenizer's chat template; without a template, as plain text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def question(self, text: str) -> tuple[tuple[int, ...], int]:
        """The prompt's token ids, and the index in them where the generation prompt starts."""
        before, after = self._render([text], False), self._render([text], True)
        if after[: len(before)] != before:
            return tuple(after), len(after)
        return tuple(after), len(before)

    def further_message(self, question: str, text: str) -> tuple[int, ...]:
        """Token ids of a second user message after a question, to be inserted before the generation prompt."""
        alone, both = self._render([question], False), self._render([question, text], False)
        if both[: len(alone)] != alone or len(both) == len(alone):
            return tuple(self._tokenizer.encode(f"\n{text}\n", add_special_tokens=False))
        return tuple(both[len(alone) :])

    def _render(self, texts: Sequence[str], generation: bool) -> list[int]:
        if getattr(self._tokenizer, "chat_template", None) is None:
            return list(self._tokenizer.encode("".join(texts), add_special_tokens=False))
        messages = [{"role": "user", "content": text} for text in texts]
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation)
        return list(self._tokenizer.encode(text, add_special_tokens=False))


class DemonstrationRolloutMaker:
    """Samples answers to the prompts of demonstrations, each with its demonstration as a lesson.

    Implements :class:`excise.trainer.interfaces.RolloutMaker`. Answers have no reward.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Any,
        demonstrations: Iterable[Demonstration],
        *,
        answer_tokens: int,
        temperature: float = 1.0,
    ) -> None:
        self._engine = engine
        self._stop_ids = (int(tokenizer.eos_token_id),)
        self._template = PromptTemplate(tokenizer)
        self._demonstrations = {one.demonstration_id: one for one in demonstrations}
        self._answer_tokens, self._temperature = answer_tokens, temperature

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        """Sample ``size`` answers to the prompt of one demonstration."""
        one = self._demonstrations[instance_id]
        prompt, hint_at = self._template.question(one.prompt)
        context = self._template.further_message(one.prompt, TEACHER_CONTEXT.format(demonstration=one.demonstration))
        progress.on_start()

        async def answer_to(number: int) -> Rollout:
            name = f"{group_id}-{number}"
            if name in progress.finished_attempts:
                return progress.finished_attempts[name]
            sampling = Sampling(
                max_tokens=self._answer_tokens, temperature=self._temperature, stop_ids=self._stop_ids,
                seed=(seed * 1000 + number) % 2**62,
            )  # fmt: skip
            (answer,) = await self._engine.generate([prompt], sampling)
            empty = Rollout(
                rollout_id=name, group_id=group_id, instance_id=instance_id, segments=(), ending=Ending.FINISHED
            )
            rollout = _filled(empty, prompt, hint_at, context, answer)
            progress.on_attempt(rollout)
            return rollout

        rollouts = await gather_or_cancel(answer_to(number) for number in range(size))
        return Group(group_id=group_id, instance_id=instance_id, rollouts=tuple(rollouts))


def _filled(
    rollout: Rollout, prompt: tuple[int, ...], hint_at: int, context: tuple[int, ...], answer: Generation
) -> Rollout:
    """The rollout of one answer, with the teacher's context as the hint of its only turn."""
    before = len(prompt)
    ids = (*prompt, *answer.ids)
    turn = Turn(
        start=before, end=len(ids), stop=answer.stop, prompt_end=hint_at,
        hint="a demonstration", hint_ids=context, detector="demonstration",
    )  # fmt: skip
    segment = Segment(
        ids=ids,
        sampled=(False,) * before + (True,) * len(answer.ids),
        logprobs=(0.0,) * before + answer.logprobs,
        versions=(-1,) * before + answer.versions,
        turns=(turn,),
    )
    return replace(
        rollout,
        segments=(segment,),
        ending=Ending.INFRA if answer.stop is Stop.ABORTED else Ending.FINISHED,
        usage=Usage(prompt=before, final=len(answer.ids), num_turns=1),
    )


class EpochCurriculum:
    """Draws all demonstrations in each epoch, in random order. Implements ``Curriculum`` of ``interfaces.py``."""

    def __init__(self, ids: Sequence[str], *, epochs: int, seed: int) -> None:
        self._ids, self._epochs, self._seed = sorted(ids), epochs, seed
        self._drawn = 0

    @property
    def has_pending_requests(self) -> bool:
        """Always false: no further demonstrations are requested."""
        return False

    def next_task(self, replayed: str | None = None) -> str | None:
        """Id of the next demonstration; ``None`` after the last epoch."""
        if replayed is not None:
            self._drawn += 1
            return replayed
        epoch, place = divmod(self._drawn, len(self._ids))
        if epoch >= self._epochs:
            return None
        self._drawn += 1
        order = list(self._ids)
        random.Random(f"{self._seed} {epoch}").shuffle(order)
        return order[place]

    def record(self, group: Group) -> None:
        """Ignored: draws do not depend on results."""

    def summary(self) -> dict[str, float]:
        """Metric ``epoch``: how often each demonstration was drawn, on average."""
        return {"epoch": self._drawn / len(self._ids)}

    def why_empty(self) -> str:
        """Human-readable: all epochs are done."""
        return f"All {self._epochs} epochs over {len(self._ids)} demonstrations are made."

    def state(self) -> dict[str, Any]:
        """The number of draws."""
        return {"drawn": self._drawn}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        self._drawn = int(state["drawn"])
