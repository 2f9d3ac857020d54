"""vLLM behind HTTP: a server that is started here, and again when it dies, or one that runs somewhere.

Tokens go in and come out (``/inference/v1/generate``); weights are written to files, requests are frozen
(``/pause?mode=keep``), the server reads the files and goes on, with the keys and values of what is being written made
anew. The server labels each token with the version that drew it. It needs vLLM 0.28 or later, started with
``VLLM_SERVER_DEV_MODE=1``, and reads the weights' folder: on several machines, it must be on storage that they share.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.trainer.engines.http_calls import HTTPFailure, call
from excise.trainer.engines.server_process import WORKER_MODULE, ServerProcess
from excise.trainer.engines.vllm_engine import VLLMEngine
from excise.trainer.engines.vllm_words import SCORING, engine_options
from excise.trainer.engines.vllm_worker import METHOD, ExciseReload
from excise.trainer.engines.weight_files import WeightFiles

if TYPE_CHECKING:
    import torch

MODULE = ("-m", "vllm.entrypoints.openai.api_server")
SCALE_OUT = "--enable-scale-out"
"""Without it, newer servers refuse tokens in place of text; older ones do not know it."""
ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


class VLLMServer(VLLMEngine):
    """See :class:`excise.trainer.protocols.Engine`; made by :meth:`start` or :meth:`connect`.

    An answer that is lost with its server is asked for again from the next one.
    """

    name = "vllm-server"

    def __init__(
        self,
        model: Path,
        *,
        context_length: int,
        command: Sequence[str] = (),
        url: str = "",
        environment: Mapping[str, str] | None = None,
        weights: Path | None = None,
        start_s: float = 900.0,
        deadline_s: float = 3600.0,
        max_restarts: int = 3,
    ) -> None:
        """Use :meth:`start` or :meth:`connect`."""
        super().__init__(context_length)
        self._url, self._command = url, tuple(command)
        self._environment = ENVIRONMENT | dict(environment or {})
        self._files = WeightFiles(model, weights)
        self._start_s, self._deadline_s, self._restarts_left = start_s, deadline_s, max_restarts
        self._server: ServerProcess | None = None
        self._life = 0
        self._mending = asyncio.Lock()

    @classmethod
    async def start(
        cls, model: Path, python: Path, *, context_length: int, arguments: Sequence[str] = (), **options: Any
    ) -> VLLMServer:
        """A server of our own, run by the interpreter ``python``, which has vLLM; ``arguments`` are vLLM's.

        Raises :class:`EngineError` if it does not start.
        """
        known = engine_options(context_length)
        line = [str(python), *MODULE, "--model", str(model), "--served-model-name", "policy"]
        line += [word for name, value in known.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        line += ["--worker-extension-cls", f"{WORKER_MODULE}.{ExciseReload.__name__}", *arguments]
        options["context_length"] = context_length
        try:
            return await cls.start_command(model, [*line, SCALE_OUT], **options)
        except EngineError as error:
            if f"unrecognized arguments: {SCALE_OUT}" not in str(error):
                raise
        return await cls.start_command(model, line, **options)

    @classmethod
    async def start_command(cls, model: Path, command: Sequence[str], **options: Any) -> VLLMServer:
        """A server that speaks as vLLM does, by its whole command line (without host and port)."""
        made = cls(model, command=command, **options)
        try:
            await made._begin()
        except BaseException:
            await made.close()
            raise
        return made

    @classmethod
    async def connect(cls, model: Path, url: str, **options: Any) -> VLLMServer:
        """A server that runs already. Raises :class:`EngineError` if it cannot be used."""
        made = cls(model, url=url.rstrip("/"), **options)
        try:
            await made._adopt()
        except (OSError, HTTPFailure) as error:
            await made.close()
            raise EngineError(f"{url}: {error}. Was it started with VLLM_SERVER_DEV_MODE=1?") from error
        return made

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See the protocol."""
        async with self._loading:
            folder = await asyncio.to_thread(self._files.write, weights, version)
            self._version = version
            life = self._life
            try:
                await self._update(folder)
            except (OSError, HTTPFailure) as error:
                await self._mend(life, error)  # whoever mends it loads the latest weights
            self._files.forget_old()

    async def close(self) -> None:
        """See the protocol."""
        self._broken = self._broken or "the engine is closed"
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
        self._files.close()

    async def _sampled(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        (choice,) = (await self._ask(prompt, values))["choices"]
        logprobs = [entry["logprob"] for entry in (choice["logprobs"] or {}).get("content") or ()]
        return choice["token_ids"] or [], logprobs, choice["finish_reason"], choice.get("weight_versions")

    async def _read(self, sequence: list[int]) -> list[float]:
        found = (await self._ask(sequence, SCORING))["prompt_logprobs"]
        return [float(found[n][str(token)]["logprob"]) for n, token in enumerate(sequence) if n]

    async def _ask(self, ids: list[int], values: Mapping[str, Any]) -> Any:
        """One request, on as many servers as it takes. Raises :class:`EngineError`."""
        body = {"token_ids": ids, "sampling_params": dict(values)}
        while True:
            life = self._life
            try:
                return await self._call("/inference/v1/generate", body, timeout_s=self._deadline_s)
            except HTTPFailure as error:
                if error.status < 500:
                    raise EngineError(f"vLLM refuses a request: {error}") from error
                await self._mend(life, error)
            except OSError as error:
                await self._mend(life, error)

    async def _call(self, path: str, body: Any = None, *, timeout_s: float) -> Any:
        self._require_sound()
        return await call(self._url + path, body, timeout_s=timeout_s)

    # --------------------------------------------------------------------------- life of the server
    async def _mend(self, life: int, error: Exception) -> None:
        """After an error of the server's ``life``: another one, unless somebody else has seen to it already."""
        async with self._mending:
            if self._broken:
                raise EngineError(f"Nothing can be sampled: {self._broken}.") from error
            if life != self._life:
                return
            if self._server is None or self._restarts_left <= 0:
                said = self._server.tail() if self._server is not None else ""
                self._broken = f"vLLM is gone: {error} {said}".strip()
                raise EngineError(self._broken) from error
            self._restarts_left -= 1
            await asyncio.to_thread(self._server.close)
            try:
                await self._begin()
            except EngineError as failed:
                self._broken = str(failed)
                raise

    async def _begin(self) -> None:
        """Start a server, with the latest weights. Raises :class:`EngineError`."""
        self._server = ServerProcess(self._command, self._environment)
        self._url = self._server.url
        await self._server.ready(self._start_s)
        try:
            await self._adopt()
        except (OSError, HTTPFailure) as error:
            raise EngineError(f"vLLM cannot be used: {error}\n{self._server.tail()}") from error
        self._life += 1

    async def _adopt(self) -> None:
        """Give a server the latest weights, or tell it which version it has."""
        if self._files.latest is not None:
            await self._update(self._files.latest)
        else:
            await self._label()

    async def _label(self) -> None:
        body = {"new_version": str(self._version)}
        await self._call("/update_weight_version", body, timeout_s=60.0)

    async def _update(self, folder: Path) -> None:
        """Have the server read weights while all that is being written stands still."""
        await self._call("/pause?mode=keep&clear_cache=false", timeout_s=120.0)
        try:
            method = METHOD if self._command else "reload_weights"
            request = {"method": method, "kwargs": {"weights_path": str(folder)}}
            await self._call("/collective_rpc", request, timeout_s=self._start_s)
            await self._call("/reset_prefix_cache?reset_running_requests=true", timeout_s=120.0)
            await self._label()
        finally:
            with contextlib.suppress(OSError, HTTPFailure):
                await self._call("/resume", timeout_s=120.0)
