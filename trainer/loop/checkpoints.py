"""Checkpoints: everything that a run needs to continue, in folders that are complete or absent.

::

    checkpoints/step-00000040/model/            torch's distributed checkpoint: weights, optimizer, teacher
    checkpoints/step-00000040/random-0.json     states of the random generators of rank 0
    checkpoints/step-00000040/state.json        step, curriculum, queue of groups
    checkpoints/step-00000040/COMPLETE          empty; written last, just before the folder is renamed

A checkpoint is written to a hidden folder (``.step-….tmp``), flushed, and renamed. One that is replaced or deleted is
first renamed to ``.step-….old``. Weights are stored by name and by shard, so a checkpoint can be read by any number of
ranks, whatever number wrote it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import random
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as load_tensors
from torch.distributed.checkpoint.state_dict_saver import save as save_tensors

from excise.errors import TrainingError
from excise.system.files import sync, write_file
from excise.system.folders import publish_folder, sync_tree, temporary_folder_beside
from excise.trainer.collectives import RankGroup
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.queue_state import QueueState
from excise.types import from_json, to_json

FORMAT = 1
"""Version of the format; increased when older programs cannot read a checkpoint any more."""
_MARKER = "COMPLETE"
_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)
"""Stores optimizer states by parameter name, independent of parameter groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The contents of ``state.json``: everything except tensors and random states."""

    step: int
    """Optimizer steps made, which is the version of the weights."""
    queue: QueueState
    """The queue of groups."""
    curriculum: dict[str, Any] = field(default_factory=dict)
    """State of the curriculum."""
    scheduler: dict[str, Any] = field(default_factory=dict)
    """State of the learning-rate scheduler."""
    has_optimizer: bool = True
    """False if no step has changed the weights yet."""
    journal: int = 0
    """Number of the journal file that starts at this checkpoint."""

    format: int = FORMAT
    """Version of the format."""


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, folder: Path, *, keep: int = 2, ranks: RankGroup | None = None) -> None:
        self._folder = folder
        self._keep = keep
        self._ranks = ranks or RankGroup()

    def steps(self) -> list[int]:
        """Steps of all complete checkpoints, ascending."""
        found = self._folder.glob(f"step-*/{_MARKER}")
        return sorted(int(marker.parent.name.removeprefix("step-")) for marker in found)

    def path(self, step: int) -> Path:
        """Folder of the checkpoint of this step."""
        return self._folder / f"step-{step:08d}"

    def save(self, learner: Learner, state: RunState) -> Path:
        """Write a checkpoint and delete old ones; every rank has to call this.

        When it returns, the checkpoint is on the disk. Raises ``OSError`` if it cannot be written; earlier checkpoints
        are intact then.
        """
        learner.announce("save", state)
        try:
            return self._save(learner, state)
        except CheckpointException as error:  # a BaseException in torch
            raise OSError(f"{self.path(state.step)}: {_cause_of(error)}") from error

    def _save(self, learner: Learner, state: RunState) -> Path:
        target = self.path(state.step)
        temporary = self._folder / f".{target.name}.tmp"
        if self._ranks.is_first:
            _remove(temporary)
            temporary.mkdir(parents=True)
        self._ranks.barrier()
        has_optimizer, is_single = bool(learner.optimizer.state), self._ranks.world_size == 1
        with _without_warning():
            save_tensors(
                _tensors(learner, with_optimizer=has_optimizer), checkpoint_id=temporary / "model", no_dist=is_single
            )
        write_file(temporary / f"random-{self._ranks.rank}.json", [json.dumps(random_states()).encode()])
        self._ranks.barrier()
        if self._ranks.is_first:
            scheduler = learner.scheduler.state_dict() if learner.scheduler else {}
            write_file(
                temporary / "state.json", [to_json(replace(state, scheduler=scheduler, has_optimizer=has_optimizer))]
            )
            sync_tree(temporary)
            write_file(temporary / _MARKER, [b""])
            self._hide(target)
            temporary.rename(target)
            sync(self._folder)
            for step in self.steps()[: -self._keep]:
                self._hide(self.path(step))
            self._delete_hidden()
        self._ranks.barrier()
        return target

    def recover(self) -> None:
        """Clean up after a kill: rename complete checkpoints that only lack their final name, delete other hidden ones.

        To be called once, by one rank, before anything is written.
        """
        for hidden in sorted(self._folder.glob(".step-*.*"), reverse=True):  # .tmp before .old
            target = self._folder / hidden.stem.removeprefix(".")
            if (hidden / _MARKER).exists() and not target.exists():
                hidden.rename(target)
        self._delete_hidden()

    def read(self, step: int) -> RunState:
        """Read ``state.json``. Raises :class:`TrainingError` if it cannot be read."""
        path = self.path(step) / "state.json"
        try:
            data = path.read_bytes()
            version = json.loads(data).get("format", 0)
            if version > FORMAT:
                raise TrainingError(f"{path} has format {version}, this excise reads up to {FORMAT}. Upgrade excise.")
            return from_json(RunState, data)
        except (OSError, ValueError) as error:
            raise self._unreadable(path, error) from error

    def load(self, step: int, learner: Learner) -> RunState:
        """Restore weights, optimizer, teacher and random states; every rank has to call this.

        Raises :class:`TrainingError` if the checkpoint cannot be read.
        """
        learner.announce("load", step)
        state = self.read(step)
        tensors = _tensors(learner, with_optimizer=state.has_optimizer)
        try:
            with _without_warning():
                load_tensors(tensors, checkpoint_id=self.path(step) / "model", no_dist=self._ranks.world_size == 1)
        except (CheckpointException, OSError, ValueError, RuntimeError) as error:
            raise self._unreadable(self.path(step) / "model", _cause_of(error)) from error
        set_model_state_dict(learner.model, tensors["model"])
        if state.has_optimizer:
            set_optimizer_state_dict(learner.model, learner.optimizer, tensors["optimizer"], options=_OPTIONS)
        if learner.scheduler is not None and state.scheduler:
            learner.scheduler.load_state_dict(state.scheduler)
        random_file = self.path(step) / f"random-{self._ranks.rank}.json"
        if random_file.exists():
            set_random_states(json.loads(random_file.read_bytes()))
        return state

    def _unreadable(self, path: Path, why: BaseException) -> TrainingError:
        return TrainingError(
            f"{path} cannot be read ({why}). Remove {path.parent} to go on from the checkpoint before it, or choose "
            "another folder to begin anew.",
            reason="checkpoint",
        )

    def _hide(self, target: Path) -> None:
        """Rename a checkpoint to a hidden name, so that a kill during its deletion leaves no partial checkpoint."""
        if target.exists():
            hidden = self._folder / f".{target.name}.old"
            _remove(hidden)
            target.rename(hidden)

    def _delete_hidden(self) -> None:
        for hidden in self._folder.glob(".step-*.*"):
            _remove(hidden)


def _remove(hidden: Path) -> None:
    """Delete a hidden folder, its marker first: the rest must not count as complete after a kill."""
    (hidden / _MARKER).unlink(missing_ok=True)
    shutil.rmtree(hidden, ignore_errors=True)


def _cause_of(error: BaseException) -> BaseException:
    """The first rank's error if torch collected several; else the error itself."""
    return next(iter(error.failures.values()))[0] if isinstance(error, CheckpointException) else error


@contextlib.contextmanager
def _without_warning() -> Iterator[None]:
    """Suppress torch's warning that a single process writes the checkpoint: that is intended."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _tensors(learner: Learner, *, with_optimizer: bool) -> dict[str, Any]:
    """The tensors to store, as views; loading fills the same tensors."""
    options = _OPTIONS
    found: dict[str, Any] = {"model": get_model_state_dict(learner.model, options=options)}
    if with_optimizer:
        found["optimizer"] = get_optimizer_state_dict(learner.model, learner.optimizer, options=options)
    if learner.teacher is not None and (average := learner.teacher.weights()) is not None:
        found["teacher"] = get_model_state_dict(average, options=options)
    return found


def random_states() -> dict[str, Any]:
    """States of the random generators of Python, numpy, torch and its devices, as JSON values."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": [name, np.asarray(keys).tolist(), *rest],
        "torch": _as_text(torch.get_rng_state()),
        "cuda": [_as_text(state) for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Restore :func:`random_states`; the states of missing devices are ignored."""
    version, inner, gauss = states["python"]
    random.setstate((version, tuple(inner), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(_as_tensor(states["torch"]))
    if torch.cuda.is_available() and len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([_as_tensor(text) for text in states["cuda"]])


def export(learner: Learner, tokenizer: Any, folder: Path) -> None:
    """Write the policy as a Hugging Face folder (safetensors), replacing ``folder``; every rank has to call this.

    ``tokenizer`` is saved too, if it has ``save_pretrained``.
    """
    weights = {name: tensor.cpu() for name, tensor in learner.weights()}
    if not learner.ranks.is_first:
        return
    with temporary_folder_beside(folder) as temporary:
        learner.model.save_pretrained(temporary, state_dict=weights)  # type: ignore[operator]
        if hasattr(tokenizer, "save_pretrained"):
            tokenizer.save_pretrained(temporary)
        sync_tree(temporary)
        shutil.rmtree(folder, ignore_errors=True)
        publish_folder(temporary, folder)


def _as_text(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _as_tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
