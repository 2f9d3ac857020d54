"""Files that pass weights to an engine in another process: one folder per version, in memory if there is room."""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excise.errors import EngineError
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders

if TYPE_CHECKING:
    import torch

KEPT_VERSIONS = 2
"""Number of versions whose files are kept: the current one, for restarts, and the previous one, which may be in use."""
FILE = "model.safetensors"
HEAD = "lm_head.weight"
FULL_PRECISION = "float32"
"""vLLM's name of the number format with 32 bits."""


class WeightFiles:
    """Writes versions of a model's weights.

    A weight that has 16 bits in the model's own files is written with as many: the engine would round it anyway, and
    files of half the size are written and read in half the time.
    """

    def __init__(self, model: Path, folder: Path | None = None, *, full_precision: bool = False) -> None:
        """``model``: the folder that the engine was started with; ``full_precision``: the engine computes in 32 bits,
        whatever the model's files have, and gets every weight as it is."""
        entries = _entries_of(model)
        self._shapes, self._tied = {name: entry["shape"] for name, entry in entries.items()}, _is_tied(model)
        self._formats = {} if full_precision else {name: entry["dtype"] for name, entry in entries.items()}
        within = str(folder) if folder else _shared_memory(model)
        remove_orphaned_folders("weights", within)  # left by a killed trainer, they would fill the memory
        self._folder = Path(owned_temporary_folder("weights", within))
        self._written: list[Path] = []

    def write(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> Path:
        """Write a folder with these weights. Raises :class:`EngineError` if names or shapes differ from the model's."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        # a tied head shares the memory of the embeddings, and a file cannot contain the same memory twice
        wanted = ((name, tensor) for name, tensor in weights if not (self._tied and name == HEAD))
        tensors = {name: _separate(self._rounded(name, tensor.detach()).cpu()) for name, tensor in wanted}
        self._check({name: list(tensor.shape) for name, tensor in tensors.items()})
        into = self._folder / f"version-{version}"
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir()
        try:
            save_file(tensors, into / FILE)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(into, ignore_errors=True)
            raise EngineError(f"The weights cannot be written to {into}: {error}") from error
        self._written = [path for path in self._written if path != into] + [into]
        return into

    def delete_old(self) -> None:
        """Delete the files of all but the newest :data:`KEPT_VERSIONS` versions."""
        while len(self._written) > KEPT_VERSIONS:
            shutil.rmtree(self._written.pop(0), ignore_errors=True)

    def close(self) -> None:
        """Delete all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _rounded(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """The weight in the number format of the model's files, if that has 16 bits."""
        import torch

        kind = {"BF16": torch.bfloat16, "F16": torch.float16}.get(self._formats.get(name, ""))
        return tensor if kind is None else tensor.to(kind)

    def _check(self, shapes: Mapping[str, list[int]]) -> None:
        for name, shape in shapes.items():
            if name not in self._shapes:
                raise EngineError(f"The model has no weight {name}.")
            if self._shapes[name] != shape:
                raise EngineError(f"{name} has the shape {shape}, the model's {self._shapes[name]}.")
        missing = sorted(set(self._shapes) - set(shapes) - ({HEAD} if self._tied else set()))
        if missing:
            raise EngineError(f"{len(missing)} weights are missing, {missing[0]} among them.")


def _separate(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor that is a view of a larger one (as the experts of a layer may be): files need separate
    memory."""
    is_separate = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor.contiguous() if is_separate else tensor.contiguous().clone()


def shapes_of(model: Path) -> dict[str, list[int]]:
    """Name to shape of a folder's weights, read from the file headers. Raises :class:`EngineError`."""
    return {name: entry["shape"] for name, entry in _entries_of(model).items()}


def _entries_of(model: Path) -> dict[str, dict[str, Any]]:
    """Name to ``shape`` and ``dtype`` of a folder's weights, as :func:`shapes_of` finds them."""
    found: dict[str, dict[str, Any]] = {}
    try:
        for path in sorted(model.glob("*.safetensors")):
            with open(path, "rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(size))
            found |= {name: entry for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, struct.error) as error:
        raise EngineError(f"{model}: its weights cannot be read: {error}") from error
    if not found:
        raise EngineError(f"{model}: there are no safetensors files in it.")
    return found


def _is_tied(model: Path) -> bool:
    """Whether the output head shares the weights of the embeddings, so that either name may be missing."""
    try:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(config.get("tie_word_embeddings", config.get("text_config", {}).get("tie_word_embeddings")))


def _shared_memory(model: Path) -> str | None:
    """``/dev/shm``, if it has room for several versions of the weights in float32; else ``None``."""
    needed = (KEPT_VERSIONS + 2) * 4 * sum(math.prod(shape) for shape in shapes_of(model).values())
    shared = "/dev/shm"
    if os.path.isdir(shared) and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > needed:
        return shared
    return None
