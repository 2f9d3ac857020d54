"""Answers that are written together: one forward pass gives each of them its next token."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

from excise.trainer.engines.kv_cache import joined, new_cache, row_of, select
from excise.trainer.rollout_types import Generation, Sampling, Stop


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


SPARE = 0.75
"""Rows are moved together when no more than this share of them is still being written."""


class Batch:
    """Rows of answers with their keys and values; all of them end in the same column.

    Rows of answers that are over stay where they are for a while, unread: moving the others copies everything.

    Of prompts, and of answers that are over, keys and values are remembered, ``remembered`` tokens of each kind: where
    a prompt was read before, or goes on from such an answer, as in a conversation, only what is new is read.
    """

    def __init__(self, model: Any, pad_id: int, remembered: int = 16_384) -> None:
        self.model, self.pad_id, self.remembered = model, pad_id, remembered
        self.answers: list[Answer] = []
        self.num_read = 0
        """Tokens of prompts that were read, padding not counted."""
        self._cache = new_cache()
        self._mask = torch.zeros(0, 0, dtype=torch.long, device=model.device)
        self._rows: list[int] = []
        """Of each answer."""
        self._past: dict[tuple[int, ...], Any] = {}
        self._prompts: dict[tuple[int, ...], tuple[torch.Tensor, Any]] = {}

    def forget(self) -> None:
        """Forget what other weights made of earlier answers."""
        self._past.clear()
        self._prompts.clear()

    def admit(self, answers: Sequence[Answer], version: int) -> None:
        """Read prompts, draw each answer's first token, and go on with those that are not over by then.

        Equal prompts are read once.
        """
        prompts = list(dict.fromkeys(answer.prompt for answer in answers))
        known = {prompt: self._known(prompt) for prompt in prompts if prompt not in self._prompts}
        self._read([prompt for prompt, past in known.items() if not past])
        parts = [self._prompts[p] if p in self._prompts else self._read_on(p, known[p]) for p in prompts]
        logits = torch.cat([part[0] for part in parts])
        cache = joined([part[1] for part in parts]) if len(parts) > 1 else row_of(parts[0][1], 0, 0, len(prompts[0]))
        mask = functools.reduce(_stacked, [self._mask.new_ones(1, len(prompt)) for prompt in prompts])
        row_of_prompt = {prompt: row for row, prompt in enumerate(prompts)}
        rows = torch.tensor([row_of_prompt[answer.prompt] for answer in answers], device=self.model.device)
        self._forget_oldest(self._prompts)
        draw(logits.index_select(0, rows), answers, version)
        going_on = [n for n, answer in enumerate(answers) if not self._over(answer)]
        if not going_on:
            return
        kept = rows[going_on]
        select(cache, kept)
        mask = mask.index_select(0, kept)
        if len(self._rows) < self._mask.shape[0]:
            self._move_together()
        first = self._mask.shape[0] if self.answers else 0
        self._cache = joined([self._cache, cache]) if self.answers else cache
        self._mask = _stacked(self._mask, mask) if self.answers else mask
        self.answers += [answers[n] for n in going_on]
        self._rows += range(first, first + len(going_on))

    def _read(self, prompts: Sequence[tuple[int, ...]]) -> None:
        """Remember each prompt: the logits behind it, and its cache."""
        if not prompts:
            return
        width, device = max(map(len, prompts)), self.model.device
        ids = torch.full((len(prompts), width), self.pad_id, dtype=torch.long)
        mask = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        self.num_read += int(mask.sum())
        ids, mask, cache = ids.to(device), mask.to(device), new_cache()
        logits = self._forward(ids, mask, cache)
        for row, prompt in enumerate(prompts):
            self._prompts[prompt] = logits[row : row + 1], row_of(cache, row, width - len(prompt), width)

    def _read_on(self, prompt: tuple[int, ...], past: tuple[int, ...]) -> tuple[torch.Tensor, Any]:
        """The same for one prompt that begins with what is remembered."""
        device, cache = self.model.device, row_of(self._past[past], 0, 0, len(past))
        ids = torch.tensor([prompt[len(past) :]], device=device)
        mask = torch.ones(1, len(prompt), dtype=torch.long, device=device)
        self.num_read += ids.shape[1]
        self._prompts[prompt] = self._forward(ids, mask, cache), cache
        return self._prompts[prompt]

    def _known(self, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """The longest beginning of a prompt that is remembered; its last token is always read."""
        found = (past for past in self._past if len(past) < len(prompt) and prompt[: len(past)] == past)
        return max(found, key=len, default=())

    def _remember(self, number: int, version: int) -> None:
        """Keep the keys and values of an answer that is over, if one version of the weights made all of them."""
        answer = self.answers[number]
        ids = (*answer.prompt, *answer.ids[:-1])
        if answer.versions[0] != version or len(ids) > self.remembered:
            return
        for past in [past for past in self._past if ids[: len(past)] == past]:
            del self._past[past]
        end = self._mask.shape[1]
        self._past[ids] = row_of(self._cache, self._rows[number], end - len(ids), end)
        self._forget_oldest(self._past)

    def _forget_oldest(self, known: dict[tuple[int, ...], Any]) -> None:
        while sum(map(len, known)) > self.remembered:
            del known[next(iter(known))]

    def step(self, version: int) -> None:
        """One more token for every answer."""
        last = [[self.pad_id]] * self._mask.shape[0]
        for row, answer in zip(self._rows, self.answers, strict=True):
            last[row] = [answer.ids[-1]]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(last), 1)], dim=1)
        logits = self._forward(torch.tensor(last, device=self.model.device), self._mask, self._cache)
        draw(logits if len(self._rows) == len(last) else logits[self._rows], self.answers, version)
        for number, answer in enumerate(self.answers):
            if answer.stop is not None and not answer.future.cancelled():
                self._remember(number, version)
        self.drop_finished()

    def drop_finished(self) -> None:
        """Take out what is over, or no longer wanted; with many of them, their rows and columns as well."""
        kept = [n for n, answer in enumerate(self.answers) if not self._over(answer)]
        self.answers, self._rows = [self.answers[n] for n in kept], [self._rows[n] for n in kept]
        if len(kept) <= SPARE * self._mask.shape[0]:
            self._move_together()

    def _move_together(self) -> None:
        """Let go of the rows of answers that are over, and of the columns that nobody needs any more."""
        if not self.answers:
            self._cache = new_cache()
            self._mask = self._mask[:0, :0]
            return
        rows = torch.tensor(self._rows, device=self._mask.device)
        self._rows = list(range(len(self._rows)))
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
    if warm := [n for n, answer in enumerate(answers) if answer.sampling.temperature > 0]:
        ids[warm] = _drawn(logprobs[warm], [answers[n].generator for n in warm])
    chosen = logprobs.gather(1, ids[:, None])[:, 0].tolist()
    for answer, token, logprob in zip(answers, ids.tolist(), chosen, strict=True):
        answer.ids.append(token)
        answer.logprobs.append(logprob)
        answer.versions.append(version)


def _drawn(logprobs: torch.Tensor, generators: Sequence[torch.Generator | None]) -> torch.Tensor:
    """``[rows]``: a token from each row of ``[rows, vocabulary]``, by inversion of its distribution function.

    ``torch.multinomial`` draws a random number for each word of the vocabulary; this draws one for each row.
    """
    sums = logprobs.exp().cumsum(dim=-1, dtype=torch.float64)
    device = logprobs.device
    points = torch.cat([torch.rand(1, 1, dtype=torch.float64, device=device, generator=g) for g in generators])
    return torch.searchsorted(sums, points * sums[:, -1:], right=True)[:, 0].clamp(max=logprobs.shape[1] - 1)


def _stacked(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Two masks, one below the other, ending in the same column."""
    width = max(above.shape[1], below.shape[1])
    whole = above.new_zeros(above.shape[0] + below.shape[0], width)
    whole[: above.shape[0], width - above.shape[1] :] = above
    whole[above.shape[0] :, width - below.shape[1] :] = below
    return whole
