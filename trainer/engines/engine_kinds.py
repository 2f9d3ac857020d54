"""The kinds of engines, their settings, and how each is built."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from excise.errors import EngineError
from excise.trainer.engines.vllm_engine import VLLMOptions
from excise.trainer.interfaces import Engine


class EngineSettings(BaseModel):
    """``[engine]``: the engine that samples and where it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["transformers", "vllm", "vllm-server"] = "transformers"
    """``transformers`` and ``vllm`` run in this process, ``vllm-server`` in a child process or at ``url``."""
    context_length: int = Field(default=4096, ge=16)
    """Maximum number of tokens of prompt and answer together; the model's own limit also applies."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of the weights; ``auto`` is ``bfloat16`` on a GPU and ``float32`` without one."""
    device: str = "auto"
    """For ``transformers``: ``cpu``, ``cuda``, ``cuda:1``; ``auto`` uses a GPU if there is one."""
    max_batch: int = Field(default=64, ge=1)
    """For ``transformers``: maximum number of answers that are sampled at the same time."""
    remembered: int = Field(default=16_384, ge=0)
    """For ``transformers``: maximum number of tokens whose keys and values are cached for prompts that continue a
    conversation."""
    python: Path | None = None
    """For ``vllm-server``: the Python interpreter that has vLLM; default: this one."""
    url: str = ""
    """For ``vllm-server``: address of a running server that was started with ``VLLM_SERVER_DEV_MODE=1``."""
    arguments: tuple[str, ...] = ()
    """For ``vllm-server``: further command-line arguments, one per item: ``["--tensor-parallel-size", "2"]``."""
    options: dict[str, Any] = Field(default_factory=dict)
    """For ``vllm``: further fields of ``AsyncEngineArgs``, such as ``gpu_memory_utilization = 0.4``."""
    environment: dict[str, str] = Field(default_factory=dict)
    """For ``vllm-server``: environment variables of the server, such as ``CUDA_VISIBLE_DEVICES``."""
    weights: Path | None = None
    """Folder for files that pass weights to vLLM, shared by all machines; default: in memory."""
    start_s: float = Field(default=900.0, gt=0)
    """Timeout in seconds for vLLM to start; at most ``load_tries`` times ``load_deadline_s`` of ``[loop]``."""
    deadline_s: float = Field(default=3600.0, gt=0)
    """Timeout in seconds of one answer."""
    max_restarts: int = Field(default=3, ge=0)
    """Maximum number of restarts of a server that was started here and died."""

    @property
    def is_own_server(self) -> bool:
        """Whether the server is started by this engine, and restarted when it dies."""
        return self.kind == "vllm-server" and not self.url


async def build_engine(settings: EngineSettings, model: Path) -> Engine:
    """Build the engine with the weights of a model's folder. Raises :class:`EngineError` if it does not start."""
    if settings.kind == "transformers":
        return _transformers(settings, model)
    options = VLLMOptions(
        context_length=settings.context_length,
        dtype=settings.dtype,
        weights=settings.weights,
        start_s=settings.start_s,
        deadline_s=settings.deadline_s,
        environment=settings.environment,
        max_restarts=settings.max_restarts,
    )
    if settings.kind == "vllm":
        from excise.trainer.engines.vllm_in_process import VLLMInProcess

        return await VLLMInProcess.start(model, options, settings.options)
    from excise.trainer.engines.vllm_server import VLLMServer

    if settings.url:
        return await VLLMServer.connect(model, settings.url, options)
    python = settings.python or Path(sys.executable)
    return await VLLMServer.start(model, python, options, arguments=settings.arguments)


def _transformers(settings: EngineSettings, model: Path) -> Engine:
    try:
        import torch

        from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions
    except ImportError as error:
        raise EngineError(
            f"{error.name} is not installed: pip install 'excise[train]', or 'excise[train-cpu]' without a GPU."
        ) from error
    gpu = torch.cuda.is_available()
    device = ("cuda" if gpu else "cpu") if settings.device == "auto" else settings.device
    dtype = ("bfloat16" if device != "cpu" else "float32") if settings.dtype == "auto" else settings.dtype
    options = TransformersOptions(
        context_length=settings.context_length,
        max_batch=settings.max_batch,
        remembered=settings.remembered,
        deadline_s=settings.deadline_s,
    )
    return TransformersEngine.from_folder(model, options, device=device, dtype=dtype)
