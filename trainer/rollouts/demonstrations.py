"""Fine-tuning on demonstrations without leaving one's own distribution (SDFT, arXiv 2601.19897).

The policy answers a prompt as it would; a teacher, the same model with the demonstration in its context, says how
likely it finds each token of that answer; the policy moves there. Since it learns from what it says itself, it forgets
less of the rest than by imitating the demonstration's text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.errors import ConfigError
from excise.trainer.interfaces import Engine, Making
from excise.trainer.loop.together import together
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Segment, Stop, Turn, Usage
from excise.types import content_id

TEACHER_SAYS = (
    "For your eyes only, this is an answer that somebody else gave:\n\n{demonstration}\n\n"
    "Now answer in your own words, with what you can learn from it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A prompt, and how somebody answered it."""

    prompt: str
    """What the policy is asked."""
    demonstration: str
    """What only the teacher sees."""

    @property
    def demonstration_id(self) -> str:
        """Content hash; the instance id of its group."""
        return content_id("demonstration", self.prompt, self.demonstration)


def read_demonstrations(path: Path) -> list[Demonstration]:
    """JSON lines with ``prompt`` and ``demonstration``; the same twice counts once. Raises :class:`ConfigError`."""
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


class Templated:
    """A tokenizer's chat template around one question; without a template, the bare text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def question(self, text: str) -> tuple[tuple[int, ...], int]:
        """Ids of the prompt, and the place before what asks for the answer."""
        before, after = self._render([text], False), self._render([text], True)
        if after[: len(before)] != before:
            return tuple(after), len(after)
        return tuple(after), len(before)

    def aside(self, question: str, text: str) -> tuple[int, ...]:
        """Ids of a further message of the user behind a question, as they are spliced in there."""
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


class DemonstrationMaker:
    """Answers of the policy to a demonstration's prompt, each with the demonstration as its lesson; a
    :class:`excise.trainer.interfaces.RolloutMaker`.
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
        self._templated = Templated(tokenizer)
        self._all = {one.demonstration_id: one for one in demonstrations}
        self._answer_tokens, self._temperature = answer_tokens, temperature

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, making: Making) -> Group:
        """Answers without a reward: what is learned is the lesson."""
        one = self._all[instance_id]
        prompt, at = self._templated.question(one.prompt)
        context = self._templated.aside(one.prompt, TEACHER_SAYS.format(demonstration=one.demonstration))
        making.started()

        async def one_of_them(number: int) -> Rollout:
            name = f"{group_id}-{number}"
            if name in making.known:
                return making.known[name]
            sampling = Sampling(
                max_tokens=self._answer_tokens, temperature=self._temperature, stop_ids=self._stop_ids,
                seed=(seed * 1000 + number) % 2**62,
            )  # fmt: skip
            (answer,) = await self._engine.generate([prompt], sampling)
            made = _rollout(name, group_id, instance_id, prompt, at, context, answer)
            making.made(made)
            return made

        rollouts = await together(one_of_them(number) for number in range(size))
        return Group(group_id=group_id, instance_id=instance_id, rollouts=tuple(rollouts))


def _rollout(
    name: str, group_id: str, instance_id: str, prompt: tuple[int, ...], at: int, context: tuple[int, ...],
    answer: Generation,
) -> Rollout:  # fmt: skip
    before = len(prompt)
    ids = (*prompt, *answer.ids)
    turn = Turn(
        start=before, end=len(ids), stop=answer.stop, prompt_end=at,
        hint="a demonstration", hint_ids=context, detector="demonstration",
    )  # fmt: skip
    segment = Segment(
        ids=ids,
        sampled=(False,) * before + (True,) * len(answer.ids),
        logprobs=(0.0,) * before + answer.logprobs,
        versions=(-1,) * before + answer.versions,
        turns=(turn,),
    )
    return Rollout(
        rollout_id=name, group_id=group_id, instance_id=instance_id, segments=(segment,),
        ending=Ending.INFRA if answer.stop is Stop.ABORTED else Ending.FINISHED,
        usage=Usage(prompt=before, final=len(answer.ids), num_turns=1),
    )  # fmt: skip


class Epochs:
    """All demonstrations in an order that is drawn for each epoch; a :class:`excise.trainer.interfaces.Curriculum`."""

    def __init__(self, ids: Sequence[str], *, epochs: int, seed: int) -> None:
        self._ids, self._epochs, self._seed = sorted(ids), epochs, seed
        self._drawn = 0

    @property
    def is_waiting(self) -> bool:
        """Never: there are these and no others."""
        return False

    def next_task(self, replayed: str | None = None) -> str | None:
        """The next one, which a journal says as well; ``None`` after the last epoch."""
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
        """Nothing depends on it."""

    def summary(self) -> dict[str, float]:
        """How often each was used."""
        return {"epoch": self._drawn / len(self._ids)}

    def why_empty(self) -> str:
        """There is one reason."""
        return f"All {self._epochs} epochs over {len(self._ids)} demonstrations are made."

    def state(self) -> dict[str, Any]:
        """How many were drawn."""
        return {"drawn": self._drawn}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on."""
        self._drawn = int(state["drawn"])
