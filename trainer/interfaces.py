"""The trainer's interfaces: engine (samples), arena (tasks, sandboxes, grades), rollout maker, curriculum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from excise.trainer.rollout_types import Generation, Group, Rollout, Sampling
from excise.types import Grade, Task

if TYPE_CHECKING:
    import torch

    from excise.protocols import Session


class Engine(Protocol):
    """Samples from a policy whose weights are replaced during the run. Works on token ids, never on text."""

    name: str
    context_length: int
    """Maximum number of tokens of prompt and answer together."""
    needs_checkpoint_names: bool
    """Whether :meth:`load` takes weights under the names and shapes of the model's safetensors files.

    Otherwise they have the names and shapes of its modules.
    """

    @property
    def version(self) -> int:
        """Version of the weights that the next token is sampled from."""
        ...

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """One answer to each prompt (token ids). Calls may overlap; the engine batches them.

        Raises :class:`EngineError` if the engine is gone. A single answer that failed has ``Stop.ABORTED``.
        """
        ...

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability of each token given those before it (0 for the first), at temperature 1."""
        ...

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Replace the weights without a restart; answers in progress continue with the new weights.

        Names and shapes as :attr:`needs_checkpoint_names` says. Raises :class:`EngineError` if they do not fit.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


class Tokenizer(Protocol):
    """The part of a Hugging Face tokenizer that is used. Messages are encoded once each, histories never again."""

    eos_token_id: int

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to token ids."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Token ids to text."""
        ...


class TaskSandbox(Protocol):
    """The sandbox of one attempt at a task."""

    task: Task
    session: Session
    """Runs commands in the sandbox; the tree is at ``/testbed``."""

    def diff(self) -> str:
        """Changes made so far, against the shipped tree."""
        ...

    def flags(self) -> tuple[str, ...]:
        """The monitor's labels for the actions so far; empty if nothing is suspicious."""
        ...


class Arena(Protocol):
    """The tasks of a set, with sandboxes to attempt them in and a grader."""

    def tasks(self) -> Mapping[str, Task]:
        """Instance id to task. Grows while a generator adds harder tasks."""
        ...

    def open(self, instance_id: str) -> AbstractAsyncContextManager[TaskSandbox]:
        """A fresh sandbox for one attempt; many may be open. Raises :class:`SandboxError`."""
        ...

    async def grade(self, instance_id: str, diff: str) -> Grade:
        """Grade a diff in the grader's own sandboxes. After an infrastructure failure the grade is not ``decided``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """The attempts of a group that exist already, and callbacks for new ones."""

    finished_attempts: Mapping[str, Rollout] = field(default_factory=dict)
    """Rollout id to attempts of an earlier try or of before a restart; these are not made again."""
    on_start: Callable[[], None] = lambda: None
    """To be called when the first attempt starts; the group's deadline counts from then."""
    on_attempt: Callable[[Rollout], None] = lambda _: None
    """To be called with each finished attempt."""


class RolloutMaker(Protocol):
    """Makes all attempts at one task."""

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        """Make ``size`` attempts at one task, with the ids ``{group_id}-{number}``.

        Equal seeds give equal attempts as far as the engine can repeat them. Many calls run at once. A failure inside
        one attempt becomes its ``Ending``; if the call raises, the whole group is retried. A cancelled call closes its
        sandboxes.
        """
        ...


class Curriculum(Protocol):
    """Chooses tasks. Called from one thread, in an order that a resumed run repeats."""

    @property
    def has_pending_requests(self) -> bool:
        """Whether further tasks were requested and may still arrive."""
        ...

    def next_task(self, replayed: str | None = None) -> str | None:
        """Instance id of the next group's task; ``None`` if there is none now (there may be later).

        ``replayed`` is the task that was drawn originally, when a journal is replayed: by now there may be more tasks
        to draw from, and the draw must not change.
        """
        ...

    def record(self, group: Group) -> None:
        """Update the estimates with a group's result. Groups are recorded in the order of their start, with few
        exceptions."""
        ...

    def summary(self) -> dict[str, float]:
        """Metrics of the curriculum."""
        ...

    def why_empty(self) -> str:
        """Human-readable explanation of why :meth:`next_task` returns ``None``."""
        ...

    def state(self) -> dict[str, Any]:
        """The complete state, as JSON values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue exactly from a :meth:`state`."""
        ...
