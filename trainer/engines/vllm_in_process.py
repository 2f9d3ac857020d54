"""vLLM inside this process: one machine, nothing to address. Imported by the interpreter that has vLLM.

vLLM's own core still runs in a process of its own, which vLLM ends with this one. Weights go by files in memory, as
with a server: the core reads them between two steps.
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
from excise.trainer.engines.vllm_engine import VLLMEngine
from excise.trainer.engines.vllm_requests import SCORING, engine_options
from excise.trainer.engines.vllm_worker import METHOD, ExciseReload
from excise.trainer.engines.weight_files import WeightFiles

if TYPE_CHECKING:
    import torch

RESUME_S = 20.0
SHUTDOWN_S = 60.0


class VLLMInProcess(VLLMEngine):
    """See :class:`excise.trainer.interfaces.Engine`; made by :meth:`start`, and used by one event loop."""

    name = "vllm"

    def __init__(self, engine: Any, files: WeightFiles, *, context_length: int, deadline_s: float) -> None:
        """Use :meth:`start`."""
        super().__init__(context_length)
        self._engine, self._files, self._deadline_s = engine, files, deadline_s

    @classmethod
    async def start(
        cls,
        model: Path,
        *,
        context_length: int,
        start_s: float = 900.0,
        deadline_s: float = 3600.0,
        weights: Path | None = None,
        **options: Any,
    ) -> VLLMInProcess:
        """Load a folder's model; ``options`` are those of vLLM's ``AsyncEngineArgs``. Raises :class:`EngineError`."""
        try:
            from vllm import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise EngineError(f"vLLM is not installed here: {error}. See docs/training.md.") from error
        extension = f"{ExciseReload.__module__}.{ExciseReload.__name__}"
        known = engine_options(context_length) | {"worker_extension_cls": extension}
        arguments = AsyncEngineArgs(model=str(model), **known, **options)
        files = WeightFiles(model, weights)
        try:
            async with asyncio.timeout(start_s):  # the core starts in a process; this thread waits for it
                engine = await asyncio.to_thread(AsyncLLM.from_engine_args, arguments)
                made = cls(engine, files, context_length=context_length, deadline_s=deadline_s)
                await engine.update_weight_version("0")
        except Exception as error:
            files.close()
            raise EngineError(f"vLLM does not start: {type(error).__name__}: {error}") from error
        return made

    async def close(self) -> None:
        """See the protocol. A core that does not go in time is left behind; it ends with this process."""
        self._broken = self._broken or "the engine is closed"
        engine, self._engine = self._engine, None
        if self._handing is not None and not self._handing.done():
            self._handing.cancel()
            await asyncio.wait([self._handing])
        if engine is not None:  # a thread that nobody waits for when this process ends
            ending = threading.Thread(target=engine.shutdown, daemon=True)
            ending.start()
            await asyncio.to_thread(ending.join, SHUTDOWN_S)
        self._files.close()

    async def _hand_over(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        folder = await asyncio.to_thread(self._files.write, weights, version)
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._update(folder, version)
        except Exception as error:
            self._broken = f"vLLM did not take the weights of version {version}: {error}"
            raise EngineError(self._broken) from error
        self._version = version
        self._files.forget_old()

    async def _update(self, folder: Path, version: int) -> None:
        try:
            await self._engine.pause_generation(mode="keep", clear_cache=False)
            await self._engine.collective_rpc(METHOD, kwargs={"weights_path": str(folder)})
            await self._engine.reset_prefix_cache(reset_running_requests=True)
            await self._engine.update_weight_version(str(version))
        except BaseException:
            with contextlib.suppress(Exception):  # what went wrong before is told
                async with asyncio.timeout(RESUME_S):
                    await self._engine.resume_generation()
            raise
        await self._engine.resume_generation()

    async def _sampled(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        found = await self._ask(prompt, values)
        if found is None:
            return (), (), None, None
        (answer,) = found.outputs
        ids = list(answer.token_ids)
        entries = answer.logprobs or []
        logprobs = [float(entry[token].logprob) for token, entry in zip(ids, entries, strict=False)]
        spans = [{"version": s.version, "start": s.start, "end": s.end} for s in answer.weight_versions or ()]
        return ids, logprobs, answer.finish_reason, spans

    async def _read(self, sequence: list[int]) -> list[float]:
        found = await self._ask(sequence, SCORING)
        if found is None:
            raise EngineError("vLLM gave up in the middle of scoring.")
        return [float(found.prompt_logprobs[n][token].logprob) for n, token in enumerate(sequence) if n]

    async def _ask(self, ids: list[int], values: dict[str, Any]) -> Any:
        """vLLM's last word on one request; ``None`` if there is none. Raises :class:`EngineError`."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        self._require_sound()
        params = SamplingParams(**values, output_kind=RequestOutputKind.FINAL_ONLY)
        found = None
        try:
            async with asyncio.timeout(self._deadline_s):
                prompt = TokensPrompt(prompt_token_ids=ids)
                async for said in self._engine.generate(prompt, params, uuid.uuid4().hex):
                    found = said
        except TimeoutError:
            raise EngineError(f"vLLM did not answer within {self._deadline_s:.0f} s.") from None
        except ValueError as error:
            raise EngineError(f"vLLM refuses a request: {error}") from error
        except Exception as error:
            self._broken = f"vLLM is gone: {type(error).__name__}: {error}"
            raise EngineError(self._broken) from error
        return found
