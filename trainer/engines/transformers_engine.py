"""An engine with a Hugging Face model in this process: for CPUs, for debugging, and where vLLM does not run.

One thread owns the model. Between two forward passes it accepts new prompts, new weights and sequences to score, so
overlapping calls share forward passes, and every token is sampled by exactly one version of the weights.
"""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from excise.errors import EngineError
from excise.trainer.engines.generation_batch import Answer, Batch
from excise.trainer.rollout_types import Generation, Sampling, Stop

SHUTDOWN_S = 30.0
"""Seconds that :meth:`TransformersEngine.close` waits for the thread."""
SCORE_TOKENS = 2048
"""Maximum number of tokens, with padding, of one forward pass for scoring."""
CLOSED = "the engine is closed"


class _Job:
    """A function to be called in the engine's thread between two forward passes; its errors are raised in the
    caller."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.future = work, Future[Any]()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except EngineError as error:
            self.future.set_exception(error)
        except BaseException as error:
            self.future.set_exception(EngineError(f"The engine failed: {error}"))
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersOptions:
    """Limits of a :class:`TransformersEngine`."""

    context_length: int = 0
    """Maximum number of tokens of prompt and answer together; 0, or more than the model's own limit: that limit."""
    max_batch: int = 64
    """Maximum number of answers that are sampled at the same time."""
    max_prefill: int = 8192
    """Maximum number of prompt tokens of one forward pass; a longer prompt has a pass of its own."""
    remembered: int = 16_384
    """Maximum number of tokens whose keys and values are cached for prompts that continue a conversation."""
    version: int = 0
    """Policy version of the model's weights."""
    deadline_s: float = 3600.0
    """Timeout in seconds of any call."""


DEFAULTS = TransformersOptions()
"""The options that are used if none are given."""


class TransformersEngine:
    """Samples with a Hugging Face model in this process. Implements :class:`excise.trainer.interfaces.Engine`."""

    name = "transformers"
    needs_checkpoint_names = False

    def __init__(self, model: Any, options: TransformersOptions = DEFAULTS) -> None:
        """``model`` is a causal language model; the engine changes its weights and must be its only user."""
        self.model = model.eval()
        pack_linears(model)
        own = int(model.config.get_text_config().max_position_embeddings)
        self.context_length = min(options.context_length or own, own)
        self.max_batch, self.max_prefill = options.max_batch, options.max_prefill
        self.deadline_s = options.deadline_s
        self._version = options.version
        self._waiting: list[Answer] = []
        self._inbox: queue.SimpleQueue[Answer | _Job | None] = queue.SimpleQueue()
        self._batch = Batch(model, int(getattr(model.config, "pad_token_id", None) or 0), options.remembered)
        self._broken = ""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="excise-engine", daemon=True)
        self._thread.start()

    @classmethod
    def from_folder(
        cls, folder: Path, options: TransformersOptions = DEFAULTS, *, device: str = "cpu", dtype: str = "float32"
    ) -> TransformersEngine:
        """Load the model of a folder. Raises :class:`EngineError` if that fails."""
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()
        try:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
        except (OSError, ValueError) as error:
            raise EngineError(f"{folder}: no model can be loaded from it: {error}") from error
        return cls(model.to(device), options)

    @property
    def version(self) -> int:
        """Version of the weights that the next token is sampled from."""
        return self._version

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """See :meth:`excise.trainer.interfaces.Engine.generate`. A prompt that fills the context gets an empty answer
        with ``Stop.LENGTH``."""
        answers = [self._answer(tuple(prompt), sampling, n) for n, prompt in enumerate(prompts)]
        for answer in answers:
            if answer.max_tokens <= 0:
                answer.finish(Stop.LENGTH)
            else:
                self._put(answer)
        return list(await self._wait(*(answer.future for answer in answers)))

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """See :meth:`excise.trainer.interfaces.Engine.score`. Raises :class:`EngineError` for a sequence that is
        longer than the context."""
        if any(len(sequence) > self.context_length for sequence in sequences):
            raise EngineError(f"A sequence to score is longer than the context of {self.context_length} tokens.")
        (scores,) = await self._wait(self._run_in_thread(lambda: self._scores(sequences)))
        return list(scores)

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See :meth:`excise.trainer.interfaces.Engine.load`. Nothing is changed if a name or a shape does not fit."""
        await self._wait(self._run_in_thread(lambda: self._load(list(weights), version)))

    async def close(self) -> None:
        """See :meth:`excise.trainer.interfaces.Engine.close`. Unfinished answers end with ``Stop.ABORTED``."""
        with self._lock:
            self._broken = self._broken or CLOSED
            self._inbox.put(None)
        await asyncio.to_thread(self._thread.join, SHUTDOWN_S)

    def _answer(self, prompt: tuple[int, ...], sampling: Sampling, number: int) -> Answer:
        max_tokens = min(sampling.max_tokens, self.context_length - len(prompt)) if prompt else 0
        generator = None
        if sampling.seed is not None:
            generator = torch.Generator(device=self.model.device).manual_seed(sampling.seed + number)
        return Answer(prompt, sampling, max_tokens, generator=generator)

    def _put(self, item: Answer | _Job) -> None:
        with self._lock:
            if self._broken:
                raise EngineError(f"Nothing can be sampled: {self._broken}.")
            self._inbox.put(item)

    def _run_in_thread(self, work: Callable[[], Any]) -> Future[Any]:
        """Call a function in the engine's thread between two forward passes."""
        job = _Job(work)
        self._put(job)
        return job.future

    async def _wait(self, *futures: Future[Any]) -> Sequence[Any]:
        try:
            async with asyncio.timeout(self.deadline_s):
                return await asyncio.gather(*map(asyncio.wrap_future, futures))
        except TimeoutError:
            raise EngineError(f"The engine did not answer within {self.deadline_s:.0f} s.") from None

    # ---------------------------------------------------------------- in the thread
    def _work(self) -> None:
        try:
            with torch.no_grad():
                while self._accept_work():
                    self._generate_token()
        except Exception as error:  # of any kind: all pending calls must fail
            with self._lock:
                self._broken = f"the engine failed: {type(error).__name__}: {error}"
        self._end_pending()

    def _accept_work(self) -> bool:
        """Accept all work submitted since the last pass; waits if there is none. Returns false if the engine is to
        close."""
        while not self._inbox.empty() or not (self._waiting or self._batch.answers):
            item = self._inbox.get()
            if item is None:
                return False
            if isinstance(item, Answer):
                self._waiting.append(item)
            else:
                item.run()
        return True

    def _generate_token(self) -> None:
        """Admit waiting prompts to the batch, then sample one more token for all answers in it."""
        self._batch.drop_finished()
        self._waiting = [answer for answer in self._waiting if not answer.future.cancelled()]
        if admitted := self._next_prompts():
            self._batch.admit(admitted, self._version)
        if self._batch.answers:
            self._batch.step(self._version)

    def _next_prompts(self) -> list[Answer]:
        """The waiting answers that fit into the batch; equal prompts count once towards the prefill.

        The list is empty if only a few would fit, because admitting answers moves the keys and values of all others.
        """
        admitted: list[Answer] = []
        num_free = self.max_batch - len(self._batch.answers)
        if self._batch.answers and num_free < min(len(self._waiting), self.max_batch // 4):
            return admitted
        prompts: set[tuple[int, ...]] = set()
        widest = 0
        while self._waiting and len(self._batch.answers) + len(admitted) < self.max_batch:
            prompt = self._waiting[0].prompt
            widest = max(widest, len(prompt))
            if admitted and widest * len(prompts | {prompt}) > self.max_prefill:
                break
            prompts.add(prompt)
            admitted.append(self._waiting.pop(0))
        return admitted

    def _end_pending(self) -> None:
        """End all pending calls: as aborted if the engine was closed, with an error if it failed."""
        closed = self._broken == CLOSED
        pending: list[Answer | _Job] = [*self._batch.answers, *self._waiting]
        with self._lock:
            while not self._inbox.empty():
                item = self._inbox.get()
                pending += [item] if item is not None else []
        for item in pending:
            if isinstance(item, Answer) and closed:
                item.finish(Stop.ABORTED)
            elif not item.future.done():
                item.future.set_exception(EngineError(f"The answer was lost: {self._broken}."))

    def _load(self, weights: list[tuple[str, torch.Tensor]], version: int) -> None:
        own = dict(self.model.named_parameters(remove_duplicate=False))
        for name, tensor in weights:
            if name not in own:
                raise EngineError(f"The model has no weight {name}.")
            if own[name].shape != tensor.shape:
                raise EngineError(f"{name} has the shape {tuple(tensor.shape)}, the model's {tuple(own[name].shape)}.")
        loaded = {own[name].data_ptr() for name, _ in weights}
        if missing := [name for name, parameter in own.items() if parameter.data_ptr() not in loaded]:
            raise EngineError(f"{len(missing)} weights are missing, {missing[0]} among them.")
        for name, tensor in weights:
            own[name].data.copy_(tensor)
        pack_linears(self.model)
        self._batch.clear_cache()
        self._version = version

    def _scores(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        scores: list[list[float]] = [[] for _ in sequences]
        by_length = sorted((n for n, s in enumerate(sequences) if s), key=lambda n: len(sequences[n]), reverse=True)
        while by_length:
            width = len(sequences[by_length[0]])
            count = max(1, SCORE_TOKENS // width)
            chosen, by_length = by_length[:count], by_length[count:]
            ids = torch.zeros(len(chosen), width, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, n in enumerate(chosen):
                ids[row, : len(sequences[n])] = torch.tensor(sequences[n])
                mask[row, : len(sequences[n])] = 1
            ids, mask = ids.to(self.model.device), mask.to(self.model.device)
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
            logprobs = torch.log_softmax(logits, dim=-1).gather(2, ids[:, 1:, None])[..., 0].tolist()
            for row, n in enumerate(chosen):
                scores[n] = [0.0, *logprobs[row][: len(sequences[n]) - 1]]
        return scores


def pack_linears(model: torch.nn.Module) -> None:
    """Let each float32 linear layer on the CPU use a copy of its weight in oneDNN's packed layout, which is faster.

    Must be called again when weights change. Does nothing without oneDNN. The layers have no gradients afterwards.
    """
    if not torch.backends.mkldnn.is_available():
        return
    for module in model.modules():
        if type(module) is torch.nn.Linear and _is_slow(module.weight):
            packed = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach())
            module.forward = functools.partial(_product, packed, module.bias)  # type: ignore[method-assign]


def _is_slow(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _product(packed: torch.Tensor, bias: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    """``x Wᵀ + b``, ``[..., out]``."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product
