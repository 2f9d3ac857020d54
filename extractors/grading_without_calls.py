"""The part of grading that records calls and judges reported values, for languages that do neither."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from excise.protocols import (
    CallRecording,
    Canaries,
    Codebase,
    GradedRunRequest,
    LiftedTests,
    ReportedValues,
    Session,
    Start,
)
from excise.types import Recipe, RecordedCall, Watched


class GradingWithoutCalls:
    """Base of :class:`excise.protocols.Grading` for a language without recorded calls.

    Then nothing but lifted and mirrored tests tells a forged result, so that some FAIL_TO_PASS tests must be either.
    """

    needs_mirrors = True
    mirror_seeds: Sequence[str] = ("",)

    def failing_copies(
        self, path: str, source: bytes, functions: Sequence[str], seed: str
    ) -> tuple[str, Canaries] | None:
        """No test is copied."""
        return None

    def lifted(
        self,
        source: bytes,
        functions: Collection[str],
        depending: Collection[str],
        beside: Callable[[], Iterable[bytes]] = tuple,
        **_: object,
    ) -> LiftedTests | None:
        """None is divided, unless a language does it."""
        why = "tests of this language are not divided"
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=dict.fromkeys(functions, why))

    def reported(self, values: str) -> ReportedValues:
        """Nothing: no values are reported."""
        return ReportedValues()

    def record_calls(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
        start: Start = Start.FRESH,
        executed: Collection[str] | None = None,
    ) -> CallRecording:
        """No calls are recorded."""
        return CallRecording(calls=(), modules=(), removed=(), watched=0, refused={})

    def watch_tests(
        self,
        session: Session,
        recipe: Recipe,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        ids: Sequence[str],
        timeout_s: float,
        start: Start = Start.FRESH,
        executed: Collection[str],
    ) -> Watched:
        """Tests are not watched."""
        return Watched()

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> None:
        """No run is forked."""

    def replay_server(self, recipe: Recipe, hash_seed: int) -> None:
        """There are no calls to replay."""

    def replay_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        *,
        timeout_s: float,
        hash_seed: int = 0,
        later_s: float = 0.0,
        zone: str = "",
        alone: int | None = None,
    ) -> list[str]:
        """No outcome of any call."""
        return [""] * len(recording.calls)

    def trace_calls(
        self,
        session: Session,
        recipe: Recipe,
        recording: CallRecording,
        codebase: Codebase,
        symbols: Sequence[str],
        *,
        new: int,
        timeout_s: float,
        alone: int = 0,
    ) -> list[tuple[str, frozenset[str]]]:
        """No outcome of any call."""
        return [("", frozenset())] * len(recording.calls)

    def vary_calls(self, calls: Sequence[str], codebase: Codebase, removed: Sequence[str]) -> list[str]:
        """None."""
        return []

    def added_argument(self, call: str) -> tuple[str, str]:
        """There is no call."""
        return "", call

    def called(self, call: str) -> str:
        """The call itself."""
        return call

    def arguments_given(self, call: str) -> str:
        """There is no call."""
        return ""

    def is_result(self, outcome: str) -> bool:
        """Whether there is an outcome."""
        return bool(outcome)

    def texts_in(self, outcome: str) -> frozenset[str]:
        """There is no outcome."""
        return frozenset()

    def has_few_in_order(self, outcome: str) -> bool:
        """There is no outcome."""
        return False

    def is_compared_whole(self, outcome: str) -> bool:
        """Whether there is an outcome."""
        return bool(outcome)

    def told_outcome(self, call: str, outcome: str) -> str:
        """Nothing is told."""
        return ""

    def example(self, call: str, outcome: str) -> str:
        """None."""
        return ""

    def distinguish_from_stub(self, recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
        """There are no calls that could."""
        return False

    def same_result(self, first: str, second: str) -> bool:
        """Whether two outcomes are equal texts."""
        return first == second

    def same_outcome(self, expected: str, found: str, statement: str | None = None) -> bool:
        """Whether two outcomes are equal texts."""
        return expected == found
