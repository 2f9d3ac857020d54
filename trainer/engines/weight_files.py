"""Weights on their way to an engine in another process: a folder per version, on memory where there is room."""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from excise.errors import EngineError
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders

if TYPE_CHECKING:
    import torch

KEPT = 2
"""Versions whose files are kept: the present one, for restarts, and the one before, which may still be read."""
FILE = "model.safetensors"
HEAD = "lm_head.weight"


class WeightFiles:
    """Writes versions of a model's weights; ``model`` is the folder that the engine was started with."""

    def __init__(self, model: Path, folder: Path | None = None) -> None:
        self._shapes, self._tied = shapes_of(model), _is_tied(model)
        within = str(folder) if folder else _memory(model)
        remove_orphaned_folders("weights", within)  # those of a trainer that was killed would fill the memory
        self._folder = Path(owned_temporary_folder("weights", within))
        self._written: list[Path] = []

    def write(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> Path:
        """A folder with these weights. Raises :class:`EngineError` if they are not those of the model."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        # tied weights are the embeddings under another name: the same memory, which no file can have twice
        wanted = ((name, tensor) for name, tensor in weights if not (self._tied and name == HEAD))
        tensors = {name: _own(tensor.detach().cpu()) for name, tensor in wanted}
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

    def forget_old(self) -> None:
        """Remove what nobody reads any more."""
        while len(self._written) > KEPT:
            shutil.rmtree(self._written.pop(0), ignore_errors=True)

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self, given: Mapping[str, list[int]]) -> None:
        for name, shape in given.items():
            if name not in self._shapes:
                raise EngineError(f"The model has no weight {name}.")
            if self._shapes[name] != shape:
                raise EngineError(f"{name} has the shape {shape}, the model's {self._shapes[name]}.")
        missing = sorted(set(self._shapes) - set(given) - ({HEAD} if self._tied else set()))
        if missing:
            raise EngineError(f"{len(missing)} weights are missing, {missing[0]} among them.")


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """In memory that is all its own, as a file needs it: experts of a layer may be parts of one tensor."""
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor.contiguous() if whole else tensor.contiguous().clone()


def shapes_of(model: Path) -> dict[str, list[int]]:
    """Name to shape of a folder's weights, from the headers alone. Raises :class:`EngineError`."""
    found: dict[str, list[int]] = {}
    try:
        for path in sorted(model.glob("*.safetensors")):
            with open(path, "rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(size))
            found |= {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, struct.error) as error:
        raise EngineError(f"{model}: its weights cannot be read: {error}") from error
    if not found:
        raise EngineError(f"{model}: there are no safetensors files in it.")
    return found


def _is_tied(model: Path) -> bool:
    """Whether the output layer is the embeddings again, so that either name may be left out."""
    try:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(config.get("tie_word_embeddings", config.get("text_config", {}).get("tie_word_embeddings")))


def _memory(model: Path) -> str | None:
    """``/dev/shm``, where it has room for some versions of the weights, in 32 bits."""
    needed = (KEPT + 2) * 4 * sum(math.prod(shape) for shape in shapes_of(model).values())
    shared = "/dev/shm"
    if os.path.isdir(shared) and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > needed:
        return shared
    return None
