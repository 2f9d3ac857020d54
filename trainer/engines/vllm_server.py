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
from excise.trainer.engines.vllm_requests import SCORING, engine_options
from excise.trainer.engines.vllm_worker import METHOD, ExciseReload
from excise.trainer.engines.weight_files import WeightFiles

if TYPE_CHECKING:
    import torch

MODULE = ("-m", "vllm.entrypoints.openai.api_server")
SCALE_OUT = "--enable-scale-out"
"""Without it, newer servers refuse tokens in place of text; older ones do not know it."""
SWITCH_S = 120.0
LAST_S = 20.0
"""For the last word to a server that is given up, or left to others."""
ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


class VLLMServer(VLLMEngine):
    """See :class:`excise.trainer.interfaces.Engine`; made by :meth:`start` or :meth:`connect`.

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
        self._newest: tuple[Path, int] | None = None
        self._server: ServerProcess | None = None
        self._life = 0
        self._restart: asyncio.Task[None] | None = None

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

    async def close(self) -> None:
        """See the protocol."""
        self._broken = self._broken or "the engine is closed"
        under_way = [task for task in (self._restart, self._handing) if task is not None and not task.done()]
        for task in under_way:
            task.cancel()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
        if under_way:
            await asyncio.wait(under_way)
        self._files.close()

    async def _hand_over(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        folder = await asyncio.to_thread(self._files.write, weights, version)
        self._newest, self._version = (folder, version), version
        await self._settled()
        life = self._life
        try:
            await self._update(folder, version)
        except (OSError, HTTPFailure) as error:
            self._mend(life, error)  # the next server begins with the newest weights
            await self._settled()
        self._files.forget_old()

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
            await self._settled()
            life = self._life
            try:
                return await self._call("/inference/v1/generate", body, timeout_s=self._deadline_s)
            except HTTPFailure as error:
                if error.status < 500:
                    raise EngineError(f"vLLM refuses a request: {error}") from error
                self._mend(life, error)
            except OSError as error:
                self._mend(life, error)

    async def _call(self, path: str, body: Any = None, *, timeout_s: float) -> Any:
        return await call(self._url + path, body, timeout_s=timeout_s)

    # --------------------------------------------------------------------------- life of the server
    def _mend(self, life: int, error: Exception) -> None:
        """After an error of the server's ``life``: another one, unless somebody else has seen to it already."""
        if life == self._life and not self._broken:
            self._life += 1
            self._restart = asyncio.create_task(self._begin_again(error))

    async def _settled(self) -> None:
        """Wait for a restart, which goes on for the others if this is cancelled. Raises :class:`EngineError`."""
        while self._restart is not None and not self._restart.done():
            await asyncio.wait([self._restart])
        self._require_sound()

    async def _begin_again(self, error: Exception) -> None:
        """A server in place of the one that failed; where there is none, the engine is broken."""
        if self._server is None or self._restarts_left <= 0:
            said = self._server.tail() if self._server is not None else ""
            self._broken = f"vLLM is gone: {error} {said}".strip()
            return
        self._restarts_left -= 1
        try:
            await asyncio.to_thread(self._server.close)
            await self._begin()
        except Exception as failed:  # who waits for this asks whether there is a server, not what came of the task
            self._broken = str(failed) or repr(failed)

    async def _begin(self) -> None:
        """Start a server, with the newest weights. Raises :class:`EngineError`."""
        self._server = ServerProcess(self._command, self._environment)
        self._url = self._server.url
        await self._server.ready(self._start_s)
        try:
            await self._adopt()
        except (OSError, HTTPFailure) as error:
            raise EngineError(f"vLLM cannot be used: {error}\n{self._server.tail()}") from error

    async def _adopt(self) -> None:
        """Give a server the newest weights, or tell it which version it has."""
        if self._newest is not None:
            await self._update(*self._newest)
        else:
            await self._label(self._version)

    async def _label(self, version: int) -> None:
        await self._call("/update_weight_version", {"new_version": str(version)}, timeout_s=60.0)

    async def _update(self, folder: Path, version: int) -> None:
        """Have the server read weights while all that is being written stands still."""
        try:
            await self._call("/pause?mode=keep&clear_cache=false", timeout_s=SWITCH_S)
            method = METHOD if self._command else "reload_weights"
            request = {"method": method, "kwargs": {"weights_path": str(folder)}}
            await self._call("/collective_rpc", request, timeout_s=self._start_s)
            await self._call("/reset_prefix_cache?reset_running_requests=true", timeout_s=SWITCH_S)
            await self._label(version)
        except BaseException:
            with contextlib.suppress(OSError, HTTPFailure):  # what went wrong before is told
                await self._call("/resume", timeout_s=LAST_S)
            raise
        await self._call("/resume", timeout_s=SWITCH_S)
