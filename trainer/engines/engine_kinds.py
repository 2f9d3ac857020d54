"""An engine from a table of a TOML file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from excise.errors import EngineError
from excise.trainer.interfaces import Engine


class EngineSettings(BaseModel):
    """What samples, and on what: the table ``[engine]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["transformers", "vllm", "vllm-server"] = "transformers"
    """``transformers`` and ``vllm`` run in this process, ``vllm-server`` in one that is started, or at ``url``."""
    context_length: int = Field(default=4096, ge=16)
    """Tokens of prompt and answer together; the model's own limit is kept, too."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the weights; ``auto`` is ``bfloat16`` on a GPU, and ``float32`` without one."""
    device: str = "auto"
    """For ``transformers``: ``cpu``, ``cuda``, ``cuda:1``; ``auto`` takes a GPU if there is one."""
    max_batch: int = Field(default=64, ge=1)
    """For ``transformers``: answers that are written at once."""
    remembered: int = Field(default=16_384, ge=0)
    """For ``transformers``: tokens whose keys and values are kept, so that conversations are not read again."""
    python: Path | None = None
    """For ``vllm-server``: the interpreter that has vLLM; without it, this one."""
    url: str = ""
    """For ``vllm-server``: a server that runs already, started with ``VLLM_SERVER_DEV_MODE=1``."""
    arguments: tuple[str, ...] = ()
    """For ``vllm-server``: further arguments of vLLM's, such as ``--tensor-parallel-size 2``, word by word."""
    options: dict[str, Any] = Field(default_factory=dict)
    """For ``vllm``: further fields of ``AsyncEngineArgs``, such as ``gpu_memory_utilization = 0.4``."""
    environment: dict[str, str] = Field(default_factory=dict)
    """For ``vllm-server``: variables that it gets, such as ``CUDA_VISIBLE_DEVICES``."""
    weights: Path | None = None
    """Folder for weights on their way to vLLM; on several machines one that they share. Without it, in memory."""
    start_s: float = Field(default=900.0, gt=0)
    """Longest that vLLM may take to start; ``load_tries`` times ``load_deadline_s`` of ``[loop]`` are no less."""
    deadline_s: float = Field(default=3600.0, gt=0)
    """Longest that one answer may take."""
    max_restarts: int = Field(default=3, ge=0)
    """How often a server of our own that died is started again."""

    @property
    def is_own_server(self) -> bool:
        """Whether a server is started here, and again when it dies."""
        return self.kind == "vllm-server" and not self.url


async def build_engine(settings: EngineSettings, model: Path) -> Engine:
    """The engine with the weights of a folder. Raises :class:`EngineError` if it does not start."""
    if settings.kind == "transformers":
        return _transformers(settings, model)
    dtype = {} if settings.dtype == "auto" else {"dtype": settings.dtype}
    common: Mapping[str, Any] = {
        "context_length": settings.context_length,
        "weights": settings.weights,
        "start_s": settings.start_s,
        "deadline_s": settings.deadline_s,
    }
    if settings.kind == "vllm":
        from excise.trainer.engines.vllm_in_process import VLLMInProcess

        return await VLLMInProcess.start(model, **common, **{**dtype, **settings.options})
    from excise.trainer.engines.vllm_server import VLLMServer

    if settings.url:
        return await VLLMServer.connect(model, settings.url, **common)
    words = [word for name, value in dtype.items() for word in (f"--{name}", value)]
    return await VLLMServer.start(
        model,
        settings.python or Path(sys.executable),
        arguments=(*words, *settings.arguments),
        environment=settings.environment,
        max_restarts=settings.max_restarts,
        **common,
    )


def _transformers(settings: EngineSettings, model: Path) -> Engine:
    try:
        import torch

        from excise.trainer.engines.transformers_engine import TransformersEngine
    except ImportError as error:
        raise EngineError(
            f"{error.name} is not installed: pip install 'excise[train]', or 'excise[train-cpu]' without a GPU."
        ) from error
    gpu = torch.cuda.is_available()
    device = ("cuda" if gpu else "cpu") if settings.device == "auto" else settings.device
    dtype = ("bfloat16" if device != "cpu" else "float32") if settings.dtype == "auto" else settings.dtype
    return TransformersEngine.from_folder(
        model, device=device, dtype=dtype, context_length=settings.context_length, max_batch=settings.max_batch,
        remembered=settings.remembered, deadline_s=settings.deadline_s,
    )  # fmt: skip
