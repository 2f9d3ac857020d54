"""Everything to go on from, in folders that are whole or not there.

::

    checkpoints/step-00000040/model/            torch's distributed checkpoint: weights, optimizer, teacher
    checkpoints/step-00000040/random-0.json     random states of rank 0
    checkpoints/step-00000040/state.json        step, curriculum, queue of groups
    checkpoints/step-00000040/COMPLETE          written last, inside; then the folder gets its name

The folder is written under a hidden name, flushed, and renamed in one step. Weights are stored by name and by shard, so
that any number of ranks reads what any number wrote; one process writes the same format.
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
from excise.trainer.collectives import Ranks
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.queue_state import QueueState
from excise.types import from_json, to_json

FORMAT = 1
"""Raised when an older program could not read what is written."""
_MARKER = "COMPLETE"
_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)
"""Optimizer states by name of parameter, whatever groups the parameters are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What a checkpoint holds beside tensors."""

    step: int
    """Optimizer steps made; the version of the weights."""
    queue: QueueState
    """Groups that wait, and those to be made again."""
    curriculum: dict[str, Any] = field(default_factory=dict)
    """The curriculum's own state."""
    scheduler: dict[str, Any] = field(default_factory=dict)
    """Of the learning rate."""
    has_optimizer: bool = True
    """False before the first step that trained."""
    journal: int = 0
    """Number of the journal's file that goes on from here."""
    history: dict[str, Any] = field(default_factory=dict)
    """What the run has to remember for its reports."""
    format: int = FORMAT
    """Version of all this."""


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, folder: Path, *, keep: int = 2, ranks: Ranks | None = None) -> None:
        self._folder = folder
        self._keep = keep
        self._ranks = ranks or Ranks()

    def steps(self) -> list[int]:
        """Steps of all whole checkpoints, rising."""
        found = self._folder.glob(f"step-*/{_MARKER}")
        return sorted(int(marker.parent.name.removeprefix("step-")) for marker in found)

    def path(self, step: int) -> Path:
        """Folder of the checkpoint of this step."""
        return self._folder / f"step-{step:08d}"

    def save(self, learner: Learner, state: RunState) -> Path:
        """Write a checkpoint; every rank calls it. When it returns, it is on the disk, and older ones are gone.

        Raises ``OSError`` if it cannot be written; the ones before are intact.
        """
        learner.say("save", state)
        try:
            return self._save(learner, state)
        except CheckpointException as error:  # no Exception, as torch has it
            raise OSError(f"{self.path(state.step)}: {_cause_of(error)}") from error

    def _save(self, learner: Learner, state: RunState) -> Path:
        target = self.path(state.step)
        temporary = self._folder / f".{target.name}.tmp"
        if self._ranks.is_first:
            _remove(temporary)
            temporary.mkdir(parents=True)
        self._ranks.wait()
        trained, alone = bool(learner.optimizer.state), self._ranks.world == 1
        with _quiet():
            save_tensors(_tensors(learner, with_optimizer=trained), checkpoint_id=temporary / "model", no_dist=alone)
        write_file(temporary / f"random-{self._ranks.rank}.json", [json.dumps(random_states()).encode()])
        self._ranks.wait()
        if self._ranks.is_first:
            scheduler = learner.scheduler.state_dict() if learner.scheduler else {}
            write_file(temporary / "state.json", [to_json(_with(state, scheduler, trained))])
            _flush(temporary)
            write_file(temporary / _MARKER, [b""])
            self._put_away(target)
            temporary.rename(target)
            sync(self._folder)
            for step in self.steps()[: -self._keep]:
                self._put_away(self.path(step))
            self._sweep()
        self._ranks.wait()
        return target

    def mend(self) -> None:
        """After a kill: what was whole and only lacked its name gets it, everything else that is hidden goes.

        To be called once, by one rank, before anything is written.
        """
        for hidden in sorted(self._folder.glob(".step-*.*"), reverse=True):  # .tmp before .old
            target = self._folder / hidden.stem.removeprefix(".")
            if (hidden / _MARKER).exists() and not target.exists():
                hidden.rename(target)
        self._sweep()

    def read(self, step: int) -> RunState:
        """The state without the tensors. Raises :class:`TrainingError` for one that cannot be read."""
        path = self.path(step) / "state.json"
        try:
            data = path.read_bytes()
            found = json.loads(data).get("format", 0)
            if found > FORMAT:
                raise TrainingError(f"{path} has format {found}, this excise reads up to {FORMAT}. Upgrade excise.")
            return from_json(RunState, data)
        except (OSError, ValueError) as error:
            raise self._unreadable(path, error) from error

    def load(self, step: int, learner: Learner) -> RunState:
        """Put weights, optimizer, teacher and random states back; every rank calls it.

        Raises :class:`TrainingError` if it cannot be read.
        """
        learner.say("load", step)
        state = self.read(step)
        found = _tensors(learner, with_optimizer=state.has_optimizer)
        try:
            with _quiet():
                load_tensors(found, checkpoint_id=self.path(step) / "model", no_dist=self._ranks.world == 1)
        except (CheckpointException, OSError, ValueError, RuntimeError) as error:
            raise self._unreadable(self.path(step) / "model", _cause_of(error)) from error
        set_model_state_dict(learner.model, found["model"])
        if state.has_optimizer:
            set_optimizer_state_dict(learner.model, learner.optimizer, found["optimizer"], options=_OPTIONS)
        if learner.scheduler is not None and state.scheduler:
            learner.scheduler.load_state_dict(state.scheduler)
        own = self.path(step) / f"random-{self._ranks.rank}.json"
        if own.exists():
            set_random_states(json.loads(own.read_bytes()))
        return state

    def clear(self) -> None:
        """Remove all: a new run begins in an old folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _unreadable(self, path: Path, why: BaseException) -> TrainingError:
        return TrainingError(
            f"{path} cannot be read ({why}). Remove {path.parent} to go on from the checkpoint before it, or choose "
            "another folder to begin anew.",
            reason="checkpoint",
        )

    def _put_away(self, target: Path) -> None:
        """Hide a folder, in one step: a kill leaves nothing that looks whole and is not."""
        if target.exists():
            hidden = self._folder / f".{target.name}.old"
            _remove(hidden)
            target.rename(hidden)

    def _sweep(self) -> None:
        for hidden in self._folder.glob(".step-*.*"):
            _remove(hidden)


def _remove(hidden: Path) -> None:
    """The marker first: what a kill leaves of it must not count as whole."""
    (hidden / _MARKER).unlink(missing_ok=True)
    shutil.rmtree(hidden, ignore_errors=True)


def _cause_of(error: BaseException) -> BaseException:
    """What went wrong on the first rank, without torch's account of all of them."""
    return next(iter(error.failures.values()))[0] if isinstance(error, CheckpointException) else error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the remark that there is one process: that is meant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _with(state: RunState, scheduler: dict[str, Any], trained: bool) -> RunState:
    return replace(state, scheduler=scheduler, has_optimizer=trained)


def _tensors(learner: Learner, *, with_optimizer: bool) -> dict[str, Any]:
    """Views of what is to be stored; loading fills the same tensors."""
    options = _OPTIONS
    found: dict[str, Any] = {"model": get_model_state_dict(learner.model, options=options)}
    if with_optimizer:
        found["optimizer"] = get_optimizer_state_dict(learner.model, learner.optimizer, options=options)
    if learner.teacher is not None and (average := learner.teacher.weights()) is not None:
        found["teacher"] = get_model_state_dict(average, options=options)
    return found


def random_states() -> dict[str, Any]:
    """Of Python, numpy, torch and its devices, as JSON has it."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": [name, np.asarray(keys).tolist(), *rest],
        "torch": _text(torch.get_rng_state()),
        "cuda": [_text(state) for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """The way back; states of devices that are not there are left out."""
    version, inner, gauss = states["python"]
    random.setstate((version, tuple(inner), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(_tensor(states["torch"]))
    if torch.cuda.is_available() and len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([_tensor(text) for text in states["cuda"]])


def export(learner: Learner, tokenizer: Any, folder: Path) -> None:
    """The policy as a Hugging Face folder (safetensors), in place in one step; every rank calls it.

    ``tokenizer`` goes along if it can be saved. What was in the folder before is gone.
    """
    weights = {name: tensor.cpu() for name, tensor in learner.weights()}
    if not learner.ranks.is_first:
        return
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    learner.model.save_pretrained(temporary, state_dict=weights)  # type: ignore[operator]
    if hasattr(tokenizer, "save_pretrained"):
        tokenizer.save_pretrained(temporary)
    _flush(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    sync(folder.parent)


def _text(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


def _flush(folder: Path) -> None:
    """Every file and folder below, and itself."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)
