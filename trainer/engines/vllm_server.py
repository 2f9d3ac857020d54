"""The vLLM engine behind HTTP: a server of our own, restarted when it dies, or one that is already running.

Requests and answers are token ids (``/inference/v1/generate``). To update the weights, they are written to files,
requests are frozen (``/pause?mode=keep``), and the server loads the files and continues, recomputing the keys and
values of unfinished answers. The server labels each token with the policy version that sampled it. vLLM 0.28 or later
is needed, started with ``VLLM_SERVER_DEV_MODE=1``. It reads the folder of the weights, so with several machines that
folder must be on shared storage.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.trainer.engines.http_calls import HTTPFailure, call
from excise.trainer.engines.server_process import WORKER_MODULE, ServerProcess
from excise.trainer.engines.vllm_engine import VLLMEngine, VLLMOptions
from excise.trainer.engines.vllm_requests import SCORING, engine_options
from excise.trainer.engines.vllm_worker import METHOD, ExciseReload
from excise.trainer.engines.weight_files import FULL_PRECISION, WeightFiles

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

MODULE = ("-m", "vllm.entrypoints.openai.api_server")
SCALE_OUT = "--enable-scale-out"
"""Without this option, newer servers refuse token ids as input; older servers do not know it."""
CONTROL_TIMEOUT_S = 120.0
"""Timeout in seconds of a request that pauses, resumes or resets the server."""
RESUME_TIMEOUT_S = 20.0
"""Timeout in seconds of the request to resume after a failed update."""
LABEL_TIMEOUT_S = 60.0
"""Timeout in seconds of the request that sets the version label."""
ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


class VLLMServer(VLLMEngine):
    """Samples with a vLLM server; made by :meth:`start` or :meth:`connect`. Implements ``Engine`` of ``interfaces.py``.

    An answer that is lost with its server is requested again from the next server.
    """

    name = "vllm-server"

    def __init__(self, model: Path, options: VLLMOptions, *, command: Sequence[str] = (), url: str = "") -> None:
        """Use :meth:`start` or :meth:`connect`. Either ``command``, which starts a server, or ``url`` is given."""
        super().__init__(options.context_length)
        self._url, self._command = url, tuple(command)
        self._environment = ENVIRONMENT | dict(options.environment)
        words = [word.removeprefix("--dtype=") for word in command] or [options.dtype]
        self._files = WeightFiles(model, options.weights, full_precision=FULL_PRECISION in words)
        self._start_s, self._deadline_s = options.start_s, options.deadline_s
        self._restarts_left = options.max_restarts
        self._newest: tuple[Path, int] | None = None
        self._server: ServerProcess | None = None
        self._generation = 0
        """Number of server processes that have failed, to distinguish errors of old servers from those of the current
        one."""
        self._restart: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, model: Path, python: Path, options: VLLMOptions, *, arguments: Sequence[str] = ()
    ) -> VLLMServer:
        """Start a server with the interpreter ``python``, which has vLLM; ``arguments`` are added to its command line.

        Raises :class:`EngineError` if it does not start.
        """
        required = engine_options(options.context_length) | {"dtype": options.dtype}
        line = [str(python), *MODULE, "--model", str(model), "--served-model-name", "policy"]
        line += [word for name, value in required.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        line += ["--worker-extension-cls", f"{WORKER_MODULE}.{ExciseReload.__name__}", *arguments]
        try:
            return await cls.start_command(model, [*line, SCALE_OUT], options)
        except EngineError as error:
            if f"unrecognized arguments: {SCALE_OUT}" not in str(error):
                raise
        return await cls.start_command(model, line, options)

    @classmethod
    async def start_command(cls, model: Path, command: Sequence[str], options: VLLMOptions) -> VLLMServer:
        """Start a server with vLLM's interface by its complete command line (without host and port)."""
        engine = cls(model, options, command=command)
        try:
            await engine._start_server()
        except BaseException:
            await engine.close()
            raise
        return engine

    @classmethod
    async def connect(cls, model: Path, url: str, options: VLLMOptions) -> VLLMServer:
        """Connect to a running server. Raises :class:`EngineError` if it cannot be used."""
        engine = cls(model, options, url=url.rstrip("/"))
        try:
            await engine._synchronise()
        except (OSError, HTTPFailure) as error:
            await engine.close()
            raise EngineError(f"{url}: {error}. Was it started with VLLM_SERVER_DEV_MODE=1?") from error
        return engine

    async def close(self) -> None:
        """See :meth:`excise.trainer.interfaces.Engine.close`."""
        self._broken = self._broken or "the engine is closed"
        pending = [task for task in (self._restart, self._loading) if task is not None and not task.done()]
        for task in pending:
            task.cancel()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
        if pending:
            await asyncio.wait(pending)
        self._files.close()

    async def _load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        folder = await asyncio.to_thread(self._files.write, weights, version)
        self._newest, self._version = (folder, version), version
        await self._wait_for_restart()
        generation = self._generation
        try:
            await self._update(folder, version)
        except (OSError, HTTPFailure) as error:
            self._restart_server(generation, error)  # the next server starts with the newest weights
            await self._wait_for_restart()
        self._files.delete_old()

    async def _sample(
        self, prompt: list[int], values: dict[str, Any]
    ) -> tuple[Sequence[int], Sequence[float], str | None, Sequence[Mapping[str, Any]] | None]:
        (choice,) = (await self._request(prompt, values))["choices"]
        logprobs = [entry["logprob"] for entry in (choice["logprobs"] or {}).get("content") or ()]
        return choice["token_ids"] or [], logprobs, choice["finish_reason"], choice.get("weight_versions")

    async def _prompt_logprobs(self, sequence: list[int]) -> list[float]:
        logprobs = (await self._request(sequence, SCORING))["prompt_logprobs"]
        return [float(logprobs[n][str(token)]["logprob"]) for n, token in enumerate(sequence) if n]

    async def _request(self, ids: list[int], values: Mapping[str, Any]) -> Any:
        """One request, repeated on new servers if servers fail. Raises :class:`EngineError`."""
        body = {"token_ids": ids, "sampling_params": dict(values)}
        while True:
            await self._wait_for_restart()
            generation = self._generation
            try:
                return await self._call("/inference/v1/generate", body, timeout_s=self._deadline_s)
            except HTTPFailure as error:
                if error.status < 500:
                    raise EngineError(f"vLLM refuses a request: {error}") from error
                self._restart_server(generation, error)
            except OSError as error:
                self._restart_server(generation, error)

    async def _call(self, path: str, body: Any = None, *, timeout_s: float) -> Any:
        return await call(self._url + path, body, timeout_s=timeout_s)

    # ---------------------------------------------------------------- life cycle of the server
    def _restart_server(self, generation: int, error: Exception) -> None:
        """Begin a restart after an error of the server number ``generation``, unless one has begun already."""
        if generation == self._generation and not self._broken:
            self._generation += 1
            self._restart = asyncio.create_task(self._replace_server(error))

    async def _wait_for_restart(self) -> None:
        """Wait for a restart in progress; cancelling this wait does not cancel it. Raises :class:`EngineError`."""
        while self._restart is not None and not self._restart.done():
            await asyncio.wait([self._restart])
        self._require_working()

    async def _replace_server(self, error: Exception) -> None:
        """Start a new server in place of a failed one. Marks the engine as broken if that is not possible."""
        if self._server is None or self._restarts_left <= 0:
            log = self._server.log_tail() if self._server is not None else ""
            self._broken = f"vLLM is gone: {error} {log}".strip()
            return
        self._restarts_left -= 1
        reason = f"{type(error).__name__}: {error}"
        logger.warning("engine restarted", extra={"reason": reason, "restarts_left": self._restarts_left})
        try:
            await asyncio.to_thread(self._server.close)
            await self._start_server()
        except Exception as failure:  # reported to callers by _require_working
            self._broken = str(failure) or repr(failure)

    async def _start_server(self) -> None:
        """Start a server and give it the newest weights. Raises :class:`EngineError`."""
        self._server = ServerProcess(self._command, self._environment)
        self._url = self._server.url
        await self._server.wait_until_ready(self._start_s)
        try:
            await self._synchronise()
        except (OSError, HTTPFailure) as error:
            raise EngineError(f"vLLM cannot be used: {error}\n{self._server.log_tail()}") from error

    async def _synchronise(self) -> None:
        """Load the newest weights into a server, or only set its version label if there are none yet."""
        if self._newest is not None:
            await self._update(*self._newest)
        else:
            await self._set_version_label(self._version)

    async def _set_version_label(self, version: int) -> None:
        await self._call("/update_weight_version", {"new_version": str(version)}, timeout_s=LABEL_TIMEOUT_S)

    async def _update(self, folder: Path, version: int) -> None:
        """Let the server load weights while generation is paused."""
        try:
            await self._call("/pause?mode=keep&clear_cache=false", timeout_s=CONTROL_TIMEOUT_S)
            method = METHOD if self._command else "reload_weights"
            request = {"method": method, "kwargs": {"weights_path": str(folder)}}
            await self._call("/collective_rpc", request, timeout_s=self._start_s)
            await self._call("/reset_prefix_cache?reset_running_requests=true", timeout_s=CONTROL_TIMEOUT_S)
            await self._set_version_label(version)
        except BaseException:
            with contextlib.suppress(OSError, HTTPFailure):  # the first error is reported
                await self._call("/resume", timeout_s=RESUME_TIMEOUT_S)
            raise
        await self._call("/resume", timeout_s=CONTROL_TIMEOUT_S)
