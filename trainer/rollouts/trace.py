"""What a model was shown and what it drew, as segments that only ever grow at their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from excise.trainer.rollout_types import Generation, Segment, Turn
from excise.trainer.rollouts.chat import Bridge


class Trace:
    """Collects the segments of one rollout."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.num_turns = 0
        """Answers of all segments."""
        self._begin()

    def _begin(self) -> None:
        self.ids: list[int] = []
        """Tokens of the segment that is open."""
        self._sampled: list[bool] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self._turns: list[Turn] = []
        self._prompt_end = 0

    def given(self, bridge: Bridge) -> None:
        """Append what was not sampled, up to the next answer."""
        self._append(bridge.body)
        self._prompt_end = len(self.ids)
        self._append(bridge.generation)

    def answered(self, answer: Generation, *, calls: int = 0, thinking: int = 0) -> None:
        """Append an answer, token by token as it was drawn."""
        start = len(self.ids)
        self.ids += answer.ids
        self._sampled += [True] * len(answer.ids)
        self._logprobs += answer.logprobs
        self._versions += answer.versions
        self.num_turns += 1
        turn = Turn(
            start=start, end=len(self.ids), stop=answer.stop, calls=calls, thinking=thinking,
            prompt_end=self._prompt_end,
        )  # fmt: skip
        self._turns.append(turn)

    def hinted(self, detector: str, hint: str, hint_ids: Sequence[int]) -> None:
        """Say what is wrong with the last answer."""
        last = self._turns[-1]
        self._turns[-1] = replace(last, detector=detector, hint=hint, hint_ids=tuple(hint_ids))

    def close(self, *, is_summary: bool = False) -> None:
        """End the open segment behind its last answer; one without any is left out: nothing in it can be learnt."""
        if self._turns:
            end = self._turns[-1].end
            self.segments.append(
                Segment(
                    ids=tuple(self.ids[:end]),
                    sampled=tuple(self._sampled[:end]),
                    logprobs=tuple(self._logprobs[:end]),
                    versions=tuple(self._versions[:end]),
                    turns=tuple(self._turns),
                    is_summary=is_summary,
                )
            )
        self._begin()

    def _append(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self._sampled += [False] * len(ids)
        self._logprobs += [0.0] * len(ids)
        self._versions += [-1] * len(ids)
