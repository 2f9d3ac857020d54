"""Deleters and gates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from excise.protocols.codebase_protocol import Codebase
from excise.types import Deletion, Feature, Verdict


class Deleter(Protocol):
    """Deletes a feature from a codebase; all other code stays byte-identical."""

    name: str
    version: int

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """The deletion of ``feature``, or only of its symbols in ``only`` (for delta debugging), as patches.

        ``hide`` are the ids of the tests to remove from the visible tree; the feature's predicted tests if empty.
        Raises :class:`DeletionRefused` with a machine-readable reason.
        """
        ...


@runtime_checkable
class CompiledDeleter(Deleter, Protocol):
    """Takes definitions out of a compiled language, where the compiler says what code that stays needs."""

    def corrected(self, codebase: Codebase, deletion: Deletion, messages: Iterable[str]) -> CompiledDeleter:
        """A deleter that leaves what a compiler misses, as its messages say, in the tree without a deletion of this.

        Raises :class:`DeletionRefused` if they do not tell.
        """
        ...


@runtime_checkable
class ShorteningDeleter(Deleter, Protocol):
    """Leaves parts of hidden tests in the tree: what they check of other code."""

    def hiding_whole(self, tests: Iterable[str]) -> Deleter:
        """The deleter that leaves no part of the tests with these ids, either."""
        ...

    def probing(self, codebase: Codebase, tests: Collection[str]) -> Mapping[str, bytes]:
        """Files of tests, as path to content, in which those that may lose a part go on where they fail, to say at
        their end which of their statements did."""
        ...

    def losing(self, codebase: Codebase, messages: Mapping[str, str]) -> Deleter:
        """The deleter that takes out of tests the statements that failed, by the messages of the failures of
        :meth:`probing`; those of tests that pass are empty."""
        ...


class ExampleTests(NamedTuple):
    """Tests that run the examples of documents."""

    files: Mapping[str, bytes]
    """Path to content of the files to add to a tree."""
    examples: Mapping[str, str]
    """Id of each test to its example: the document, the code and what it gives."""


@runtime_checkable
class DocumentingDeleter(Deleter, Protocol):
    """Leaves documents whose examples can be run."""

    def example_tests(self, codebase: Codebase, documents: Mapping[str, str]) -> ExampleTests:
        """Tests for the examples in documents (path to text) that are about the project."""
        ...


@dataclass(slots=True, kw_only=True)
class GateReport:
    """The result of a gate: verdict rows, and whether the candidate passed."""

    verdicts: list[Verdict] = field(default_factory=list)
    """One row per run."""

    @property
    def passed(self) -> bool:
        """Whether every verdict is ``PASSED``."""
        return all(v.outcome.value == "PASSED" for v in self.verdicts)


class NamedClaim(Protocol):
    """The name and the claim of a check, as its verdict rows show them."""

    name: str
    """Stored name, for example ``g5_f2p_fail``: it never changes."""
    claim: str
    """The condition as a sentence; it is the detail of a row that passed."""


Candidate_contra = TypeVar("Candidate_contra", contravariant=True)


class Gate(NamedClaim, Protocol[Candidate_contra]):
    """One condition that a task must meet, checked by running code on a ``verifiers.candidate.Candidate``."""

    def check(self, candidate: Candidate_contra, /) -> GateReport:
        """Prove or refute the claim in fresh sandboxes.

        Raises :class:`SandboxError` if the infrastructure fails, so that nothing is decided.
        """
        ...
