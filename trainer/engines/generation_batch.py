"""A batch of answers that are sampled together: each forward pass gives every answer its next token."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

from excise.trainer.engines.kv_cache import copy_row, new_cache, select, stack_rows
from excise.trainer.rollout_types import Generation, Sampling, Stop


@dataclass(eq=False, slots=True)
class Answer:
    """One answer in progress."""

    prompt: tuple[int, ...]
    sampling: Sampling
    max_tokens: int
    """Maximum number of tokens of the answer."""
    future: Future[Generation] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    generator: torch.Generator | None = None

    @property
    def stop(self) -> Stop | None:
        """Why the answer is finished; ``None`` while it is not."""
        if self.ids and self.ids[-1] in self.sampling.stop_ids:
            return Stop.END
        return Stop.LENGTH if len(self.ids) >= self.max_tokens else None

    def finish(self, stop: Stop) -> None:
        """Complete the future with the tokens so far."""
        done = Generation(ids=tuple(self.ids), logprobs=tuple(self.logprobs), versions=tuple(self.versions), stop=stop)
        if not self.future.done():
            self.future.set_result(done)


COMPACTION_SHARE = 0.75
"""The cache is compacted when at most this share of its rows is still in use."""


class Batch:
    """Answers in progress as rows of a key-value cache, padded on the left so that all rows end in the same column.

    The rows of finished answers stay unused for a while, because compacting the cache copies all of it. The keys and
    values of prompts and of finished answers are cached, ``remembered`` tokens of each kind: of a prompt that was
    processed before, or continues such an answer (as in a conversation), only the new tokens are processed.
    """

    def __init__(self, model: Any, pad_id: int, remembered: int = 16_384) -> None:
        self.model, self.pad_id, self.remembered = model, pad_id, remembered
        self.answers: list[Answer] = []
        self.num_prefilled = 0
        """Number of prompt tokens that were processed, without padding."""
        self._cache = new_cache()
        self._mask = torch.zeros(0, 0, dtype=torch.long, device=model.device)
        self._rows: list[int] = []
        """Row in the cache of each answer."""
        self._past: dict[tuple[int, ...], Any] = {}
        """Tokens of finished answers, with their prompts, to their keys and values."""
        self._prompts: dict[tuple[int, ...], tuple[torch.Tensor, Any]] = {}
        """Tokens of prompts to the logits after them and their keys and values."""

    def clear_cache(self) -> None:
        """Drop all cached prompts and answers, because the weights have changed."""
        self._past.clear()
        self._prompts.clear()

    def admit(self, answers: Sequence[Answer], version: int) -> None:
        """Process prompts, sample each answer's first token, and add the unfinished answers to the batch.

        Equal prompts are processed once.
        """
        prompts = list(dict.fromkeys(answer.prompt for answer in answers))
        cached = {prompt: self._cached_prefix(prompt) for prompt in prompts if prompt not in self._prompts}
        self._prefill([prompt for prompt, past in cached.items() if not past])
        parts = [self._prompts[p] if p in self._prompts else self._continue_prefill(p, cached[p]) for p in prompts]
        logits = torch.cat([part[0] for part in parts])
        cache = (
            stack_rows([part[1] for part in parts]) if len(parts) > 1 else copy_row(parts[0][1], 0, 0, len(prompts[0]))
        )
        mask = functools.reduce(_stack_masks, [self._mask.new_ones(1, len(prompt)) for prompt in prompts])
        row_of_prompt = {prompt: row for row, prompt in enumerate(prompts)}
        rows = torch.tensor([row_of_prompt[answer.prompt] for answer in answers], device=self.model.device)
        self._evict_oldest(self._prompts)
        sample_tokens(logits.index_select(0, rows), answers, version)
        unfinished = [n for n, answer in enumerate(answers) if not self._finish_if_done(answer)]
        if not unfinished:
            return
        kept = rows[unfinished]
        select(cache, kept)
        mask = mask.index_select(0, kept)
        if len(self._rows) < self._mask.shape[0]:
            self._compact()
        first = self._mask.shape[0] if self.answers else 0
        self._cache = stack_rows([self._cache, cache]) if self.answers else cache
        self._mask = _stack_masks(self._mask, mask) if self.answers else mask
        self.answers += [answers[n] for n in unfinished]
        self._rows += range(first, first + len(unfinished))

    def _prefill(self, prompts: Sequence[tuple[int, ...]]) -> None:
        """Process prompts and cache the logits after each, and its keys and values."""
        if not prompts:
            return
        width, device = max(map(len, prompts)), self.model.device
        ids = torch.full((len(prompts), width), self.pad_id, dtype=torch.long)
        mask = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        self.num_prefilled += int(mask.sum())
        ids, mask, cache = ids.to(device), mask.to(device), new_cache()
        logits = self._forward(ids, mask, cache)
        for row, prompt in enumerate(prompts):
            self._prompts[prompt] = logits[row : row + 1], copy_row(cache, row, width - len(prompt), width)

    def _continue_prefill(self, prompt: tuple[int, ...], past: tuple[int, ...]) -> tuple[torch.Tensor, Any]:
        """Process one prompt that starts with the cached tokens ``past``; return its last logits, and its keys and
        values."""
        device, cache = self.model.device, copy_row(self._past[past], 0, 0, len(past))
        ids = torch.tensor([prompt[len(past) :]], device=device)
        mask = torch.ones(1, len(prompt), dtype=torch.long, device=device)
        self.num_prefilled += ids.shape[1]
        self._prompts[prompt] = self._forward(ids, mask, cache), cache
        return self._prompts[prompt]

    def _cached_prefix(self, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """The longest cached prefix of a prompt, without the prompt's last token; empty if there is none."""
        found = (past for past in self._past if len(past) < len(prompt) and prompt[: len(past)] == past)
        return max(found, key=len, default=())

    def _cache_answer(self, number: int, version: int) -> None:
        """Cache the keys and values of a finished answer, if one version of the weights computed all of them."""
        answer = self.answers[number]
        ids = (*answer.prompt, *answer.ids[:-1])
        if answer.versions[0] != version or len(ids) > self.remembered:
            return
        for past in [past for past in self._past if ids[: len(past)] == past]:
            del self._past[past]
        end = self._mask.shape[1]
        self._past[ids] = copy_row(self._cache, self._rows[number], end - len(ids), end)
        self._evict_oldest(self._past)

    def _evict_oldest(self, cached: dict[tuple[int, ...], Any]) -> None:
        while sum(map(len, cached)) > self.remembered:
            del cached[next(iter(cached))]

    def step(self, version: int) -> None:
        """Sample one more token for every answer."""
        last = [[self.pad_id]] * self._mask.shape[0]
        for row, answer in zip(self._rows, self.answers, strict=True):
            last[row] = [answer.ids[-1]]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(last), 1)], dim=1)
        logits = self._forward(torch.tensor(last, device=self.model.device), self._mask, self._cache)
        sample_tokens(logits if len(self._rows) == len(last) else logits[self._rows], self.answers, version)
        for number, answer in enumerate(self.answers):
            if answer.stop is not None and not answer.future.cancelled():
                self._cache_answer(number, version)
        self.drop_finished()

    def drop_finished(self) -> None:
        """Remove finished and cancelled answers; compacts the cache if enough rows are unused."""
        kept = [n for n, answer in enumerate(self.answers) if not self._finish_if_done(answer)]
        self.answers, self._rows = [self.answers[n] for n in kept], [self._rows[n] for n in kept]
        if len(kept) <= COMPACTION_SHARE * self._mask.shape[0]:
            self._compact()

    def _compact(self) -> None:
        """Remove the rows of finished answers from the cache, and the columns that no other row uses."""
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

    def _finish_if_done(self, answer: Answer) -> bool:
        """Whether an answer is finished or cancelled; completes the future of a finished one."""
        if answer.future.cancelled():
            return True
        stop = answer.stop
        if stop is not None:
            answer.finish(stop)
        return stop is not None

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any) -> torch.Tensor:
        """Logits after the last column, ``[rows, vocabulary]``, float32; ``ids`` are the last columns of ``mask``."""
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        out = self.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
            logits_to_keep=1,
        )  # fmt: skip
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits


def sample_tokens(logits: torch.Tensor, answers: Sequence[Answer], version: int) -> None:
    """Append a token sampled from its row of ``logits`` to each answer, with its log-probability and version.

    At temperature 0 this is the likeliest token, with its log-probability at temperature 1.
    """
    temperatures = torch.tensor([answer.sampling.temperature or 1.0 for answer in answers], device=logits.device)
    logprobs = torch.log_softmax(logits / temperatures[:, None], dim=-1)
    ids = logprobs.argmax(dim=-1)
    if random_rows := [n for n, answer in enumerate(answers) if answer.sampling.temperature > 0]:
        ids[random_rows] = _sampled_ids(logprobs[random_rows], [answers[n].generator for n in random_rows])
    chosen = logprobs.gather(1, ids[:, None])[:, 0].tolist()
    for answer, token, logprob in zip(answers, ids.tolist(), chosen, strict=True):
        answer.ids.append(token)
        answer.logprobs.append(logprob)
        answer.versions.append(version)


def _sampled_ids(logprobs: torch.Tensor, generators: Sequence[torch.Generator | None]) -> torch.Tensor:
    """``[rows]``: a token sampled from each row of ``[rows, vocabulary]``, by inverting its cumulative distribution.

    ``torch.multinomial`` needs a random number for each token of the vocabulary; this needs one per row.
    """
    sums = logprobs.exp().cumsum(dim=-1, dtype=torch.float64)
    device = logprobs.device
    points = torch.cat([torch.rand(1, 1, dtype=torch.float64, device=device, generator=g) for g in generators])
    return torch.searchsorted(sums, points * sums[:, -1:], right=True)[:, 0].clamp(max=logprobs.shape[1] - 1)


def _stack_masks(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Two masks, one below the other, aligned at their last column."""
    width = max(above.shape[1], below.shape[1])
    whole = above.new_zeros(above.shape[0] + below.shape[0], width)
    whole[: above.shape[0], width - above.shape[1] :] = above
    whole[above.shape[0] :, width - below.shape[1] :] = below
    return whole
