"""The vLLM engine in this process, on one machine. Imported only where vLLM is installed.

vLLM's engine core still runs in a child process, which vLLM ends together with this one. Weights are passed as files in
memory, as with a server; the core loads them between two steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.trainer.engines.vllm_engine import VLLMEngine, VLLMOptions
from excise.trainer.engines.vllm_requests import SCORING, engine_options
from excise.trainer.engines.vllm_worker import METHOD, ExciseReload
from excise.trainer.engines.weight_files import FULL_PRECISION, WeightFiles

if TYPE_CHECKING:
    import torch

RESUME_TIMEOUT_S = 20.0
"""Seconds to resume generation after a failed update of the weights."""
SHUTDOWN_S = 60.0
"""Seconds to wait for the engine core to end."""


class VLLMInProcess(VLLMEngine):
    """Samples with vLLM in this process; made by :meth:`start`, for use in one event loop. Implements ``Engine``."""

    name = "vllm"

    def __init__(self, engine: Any, files: WeightFiles, *, context_length: int, deadline_s: float) -> None:
        """Use :meth:`start`."""
        super().__init__(context_length)
        self._engine, self._files, self._deadline_s = engine, files, deadline_s

    @classmethod
    async def start(
        cls,
        model: Path,
        options: VLLMOptions,
        arguments: Mapping[str, Any] | None = None,
    ) -> VLLMInProcess:
        """Load a folder's model; ``arguments`` are further ``AsyncEngineArgs``. Raises :class:`EngineError`."""
        try:
            from vllm import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise EngineError(f"vLLM is not installed here: {error}. See docs/training.md.") from error
        extension = f"{ExciseReload.__module__}.{ExciseReload.__name__}"
        required = engine_options(options.context_length) | {"worker_extension_cls": extension}
        chosen = {"dtype": options.dtype, **(arguments or {})}
        engine_args = AsyncEngineArgs(model=str(model), **required, **chosen)
        files = WeightFiles(model, options.weights, full_precision=chosen["dtype"] == FULL_PRECISION)
        try:
            async with asyncio.timeout(options.start_s):  # blocks until the core process has started
                engine = await asyncio.to_thread(AsyncLLM.from_engine_args, engine_args)
                made = cls(engine, files, context_length=options.context_length, deadline_s=options.deadline_s)
                await engine.update_weight_version("0")
        except Exception as error:
            files.close()
            raise EngineError(f"vLLM does not start: {type(error).__name__}: {error}") from error
        return made

    async def close(self) -> None:
        """See :meth:`excise.trainer.interfaces.Engine.close`. A core that does not end in time is abandoned; it ends
        with this process."""
        self._broken = self._broken or "the engine is closed"
        engine, self._engine = self._engine, None
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if engine is not None:  # a daemon thread, which cannot keep this process from ending
            ending = threading.Thread(target=engine.shutdown, daemon=True)
            ending.start()
            await asyncio.to_thread(ending.join, SHUTDOWN_S)
        self._files.close()

    async def _load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        folder = await asyncio.to_thread(self._files.write, weights, version)
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._update(folder, version)
        except Exception as error:
            self._broken = f"vLLM did not take the weights of version {version}: {error}"
            raise EngineError(self._broken) from error
        self._version = version
        self._files.delete_old()

    async def _update(self, folder: Path, version: int) -> None:
        try:
            await self._engine.pause_generation(mode="keep", clear_cache=False)
            await self._engine.collective_rpc(METHOD, kwargs={"weights_path": str(folder)})
            await self._engine.reset_prefix_cache(reset_running_requests=True)
            await self._engine.update_weight_version(str(version))
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is reported
                async with asyncio.timeout(RESUME_TIMEOUT_S):
                    await self._engine.resume_generation()
            raise
        await self._engine.resume_generation()

    async def _sample(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        result = await self._request(prompt, values)
        if result is None:
            return (), (), None, None
        (answer,) = result.outputs
        ids = list(answer.token_ids)
        entries = answer.logprobs or []
        logprobs = [float(entry[token].logprob) for token, entry in zip(ids, entries, strict=False)]
        spans = [{"version": s.version, "start": s.start, "end": s.end} for s in answer.weight_versions or ()]
        return ids, logprobs, answer.finish_reason, spans

    async def _prompt_logprobs(self, sequence: list[int]) -> list[float]:
        result = await self._request(sequence, SCORING)
        if result is None:
            raise EngineError("vLLM gave up in the middle of scoring.")
        return [float(result.prompt_logprobs[n][token].logprob) for n, token in enumerate(sequence) if n]

    async def _request(self, ids: list[int], values: dict[str, Any]) -> Any:
        """The final output of one request; ``None`` if there is none. Raises :class:`EngineError`."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        self._require_working()
        params = SamplingParams(**values, output_kind=RequestOutputKind.FINAL_ONLY)
        result = None
        try:
            async with asyncio.timeout(self._deadline_s):
                prompt = TokensPrompt(prompt_token_ids=ids)
                async for output in self._engine.generate(prompt, params, uuid.uuid4().hex):
                    result = output
        except TimeoutError:
            raise EngineError(f"vLLM did not answer within {self._deadline_s:.0f} s.") from None
        except ValueError as error:
            raise EngineError(f"vLLM refuses a request: {error}") from error
        except Exception as error:
            self._broken = f"vLLM is gone: {type(error).__name__}: {error}"
            raise EngineError(self._broken) from error
        return result
