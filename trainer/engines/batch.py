"""Answers that are written together: one forward pass gives each of them its next token."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

from excise.trainer.engines.growing_cache import joined, new_cache, select
from excise.trainer.records import Generation, Sampling, Stop


@dataclass(eq=False, slots=True)
class Answer:
    """One answer that is being written."""

    prompt: tuple[int, ...]
    sampling: Sampling
    room: int
    """Most tokens that it may have."""
    future: Future[Generation] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    generator: torch.Generator | None = None

    @property
    def stop(self) -> Stop | None:
        """Why it is over, if it is."""
        if self.ids and self.ids[-1] in self.sampling.stop_ids:
            return Stop.END
        return Stop.LENGTH if len(self.ids) >= self.room else None

    def finish(self, stop: Stop) -> None:
        """Hand over what was written."""
        done = Generation(ids=tuple(self.ids), logprobs=tuple(self.logprobs), versions=tuple(self.versions), stop=stop)
        if not self.future.done():
            self.future.set_result(done)


class Batch:
    """Rows of answers with their keys and values; all of them end in the same column."""

    def __init__(self, model: Any, pad_id: int) -> None:
        self.model, self.pad_id = model, pad_id
        self.answers: list[Answer] = []
        self._cache = new_cache()
        self._mask = torch.zeros(0, 0, dtype=torch.long, device=model.device)

    def admit(self, answers: Sequence[Answer], version: int) -> None:
        """Read prompts, draw each answer's first token, and go on with those that are not over by then.

        Equal prompts are read once.
        """
        prompts = list(dict.fromkeys(answer.prompt for answer in answers))
        width, device = max(map(len, prompts)), self.model.device
        ids = torch.full((len(prompts), width), self.pad_id, dtype=torch.long)
        mask = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        ids, mask, cache = ids.to(device), mask.to(device), new_cache()
        logits = self._forward(ids, mask, cache)
        row_of = {prompt: row for row, prompt in enumerate(prompts)}
        rows = torch.tensor([row_of[answer.prompt] for answer in answers], device=device)
        draw(logits.index_select(0, rows), answers, version)
        going_on = [n for n, answer in enumerate(answers) if not self._over(answer)]
        if not going_on:
            return
        kept = rows[going_on]
        select(cache, kept)
        self._cache = joined([self._cache, cache]) if self.answers else cache
        self._mask = _stacked(self._mask, mask.index_select(0, kept)) if self.answers else mask.index_select(0, kept)
        self.answers += [answers[n] for n in going_on]

    def step(self, version: int) -> None:
        """One more token for every answer."""
        last = torch.tensor([[answer.ids[-1]] for answer in self.answers], device=self.model.device)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self.answers), 1)], dim=1)
        draw(self._forward(last, self._mask, self._cache), self.answers, version)
        self.drop_finished()

    def drop_finished(self) -> None:
        """Take out what is over, or no longer wanted, and the columns that nobody needs any more."""
        kept = [n for n, answer in enumerate(self.answers) if not self._over(answer)]
        if len(kept) == len(self.answers):
            return
        self.answers = [self.answers[n] for n in kept]
        if not kept:
            self._cache = new_cache()
            self._mask = self._mask[:0, :0]
            return
        rows = torch.tensor(kept, device=self._mask.device)
        mask = self._mask.index_select(0, rows)
        first = int(mask.argmax(dim=1).min())
        self._mask = mask[:, first:]
        select(self._cache, rows, first)

    def _over(self, answer: Answer) -> bool:
        if answer.future.cancelled():
            return True
        stop = answer.stop
        if stop is not None:
            answer.finish(stop)
        return stop is not None

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any) -> torch.Tensor:
        """Logits of the last column, ``[rows, vocabulary]``, 32 bits; ``ids`` are the last columns of ``mask``."""
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        out = self.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
            logits_to_keep=1,
        )  # fmt: skip
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits


def draw(logits: torch.Tensor, answers: Sequence[Answer], version: int) -> None:
    """Append to each answer a token drawn from its row of ``logits``, with its log-probability and version.

    At temperature 0 the likeliest token is taken and its log-probability is that at temperature 1.
    """
    temperatures = torch.tensor([answer.sampling.temperature or 1.0 for answer in answers], device=logits.device)
    logprobs = torch.log_softmax(logits / temperatures[:, None], dim=-1)
    ids = logprobs.argmax(dim=-1)
    free = [n for n, a in enumerate(answers) if a.sampling.temperature > 0 and a.generator is None]
    if free:
        ids[free] = torch.multinomial(logprobs[free].exp(), 1)[:, 0]
    for n, answer in enumerate(answers):
        if answer.sampling.temperature > 0 and answer.generator is not None:
            ids[n] = torch.multinomial(logprobs[n].exp(), 1, generator=answer.generator)[0]
    chosen = logprobs.gather(1, ids[:, None])[:, 0].tolist()
    for answer, token, logprob in zip(answers, ids.tolist(), chosen, strict=True):
        answer.ids.append(token)
        answer.logprobs.append(logprob)
        answer.versions.append(version)


def _stacked(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Two masks, one below the other, ending in the same column."""
    width = max(above.shape[1], below.shape[1])
    whole = above.new_zeros(above.shape[0] + below.shape[0], width)
    whole[: above.shape[0], width - above.shape[1] :] = above
    whole[above.shape[0] :, width - below.shape[1] :] = below
    return whole
