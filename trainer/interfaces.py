"""What the trainer stands on: an engine that samples, an arena of tasks, and between them who makes groups of rollouts
and who chooses the tasks.
"""

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
    """Samples from a policy whose weights change under way; tokens in, tokens out."""

    name: str
    context_length: int
    """Most tokens of prompt and answer together."""
    reads_files: bool
    """It wants weights by the names and shapes that the model's files have, not those of its modules."""

    @property
    def version(self) -> int:
        """Version of the weights that the next token is drawn from."""
        ...

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        """One answer to each prompt (token ids). Calls may overlap; the engine batches them.

        Raises :class:`EngineError` if the engine is gone; a single answer that failed is ``Stop.ABORTED``.
        """
        ...

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability of each token given those before it (the first is 0), temperature 1."""
        ...

    async def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """New weights (names and shapes as ``reads_files`` says), without a restart; running answers go on with them.

        Raises :class:`EngineError` if they do not fit.
        """
        ...

    async def close(self) -> None:
        """Let go of everything; safe to call twice."""
        ...


class Tokenizer(Protocol):
    """Of a Hugging Face tokenizer what is used; templates are rendered once per message, never for history."""

    eos_token_id: int

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to ids."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text."""
        ...


class Desk(Protocol):
    """One task's sandbox as an agent sees it."""

    task: Task
    session: Session
    """Commands run in it; the tree is at ``/testbed``."""

    def diff(self) -> str:
        """What was changed so far, against the shipped tree."""
        ...

    def flags(self) -> tuple[str, ...]:
        """Labels of the monitor over what was done so far; empty without suspicion."""
        ...


class Arena(Protocol):
    """Tasks to try, and the grader's word on attempts."""

    def tasks(self) -> Mapping[str, Task]:
        """Instance id to task; grows while a generator adds harder ones."""
        ...

    def open(self, instance_id: str) -> AbstractAsyncContextManager[Desk]:
        """A fresh sandbox for one attempt; many may be open. Raises :class:`SandboxError`."""
        ...

    async def grade(self, instance_id: str, diff: str) -> Grade:
        """Grade in sandboxes of the grader's own. An infrastructure failure is a grade that is not ``decided``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What a group's maker is given, and whom it tells."""

    known: Mapping[str, Rollout] = field(default_factory=dict)
    """Rollout id to attempts of an earlier try, or of before a kill: these are not made again."""
    started: Callable[[], None] = lambda: None
    """To be called when the first attempt has its place; the group's deadline counts from there."""
    made: Callable[[Rollout], None] = lambda _: None
    """To be called with each attempt that is done."""


class RolloutMaker(Protocol):
    """Makes all attempts at one task, with an engine, in an arena."""

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, making: Making) -> Group:
        """``size`` attempts at one task, which share ``group_id``; equal seeds repeat what the engine can repeat.

        Attempts have the ids ``{group_id}-{number}``.

        Many calls run at once. What fails in one attempt is its ``Ending``; what is raised spoils the group, which is
        tried again. A call that is cancelled lets go of its sandboxes.
        """
        ...


class Curriculum(Protocol):
    """Chooses tasks. Called from one thread, in an order that a resumed run repeats."""

    @property
    def is_waiting(self) -> bool:
        """Others have been asked for and may come."""
        ...

    def next_task(self, replayed: str | None = None) -> str | None:
        """Instance id of the next group; ``None``: there is none now (there may be later).

        ``replayed``: what was drawn then, when a journal happens again; by now, there may be more to draw from.
        """
        ...

    def record(self, group: Group) -> None:
        """What became of a group, in the order in which groups were begun, but for those that were overtaken."""
        ...

    def summary(self) -> dict[str, float]:
        """Numbers for the run's metrics."""
        ...

    def why_empty(self) -> str:
        """For people: why there is nothing to give."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything to go on from, as JSON has it."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there, exactly."""
        ...
