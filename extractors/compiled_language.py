"""What the adapters of compiled languages share: tests run by a program that builds them, and nothing is forked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from excise.errors import EnvironmentFailure
from excise.extractors.compiled_codebase import CompiledCodebase
from excise.extractors.test_reports import executed_symbols
from excise.extractors.test_reports.runner_program import RunnerProgram
from excise.protocols import (
    Codebase,
    CoveragePass,
    CoverageRequest,
    ForkServer,
    PlainRun,
    Session,
    Start,
    TestRunRequest,
)
from excise.types import ExecutedCode, Need, Recipe, TestRun, Watched

C = TypeVar("C", bound=CompiledCodebase[Any])


class CompiledLanguage(Generic[C]):
    """A part of :class:`excise.protocols.Language`; a language adds its name, rules, ``detect`` and ``parse``."""

    keeps_outputs = False
    shares_process: ClassVar[bool] = False
    """Whether tests of one pass share a process, so that one in the reverse order may find more."""

    def __init__(
        self,
        codebase: type[C],
        runner: RunnerProgram,
        find_needs: Callable[[C, Sequence[str], Sequence[str]], tuple[Need, ...]],
    ) -> None:
        self._codebase, self._runner, self._find_needs = codebase, runner, find_needs

    def complete_subfolder(self, copy: Path, folder: Path, whole: Path) -> None:
        """Nothing: the manifest of a folder says all."""

    def fork_server(self, recipe: Recipe, start: Start) -> ForkServer | None:  # noqa: ARG002
        """None: tests have processes of their own, or a virtual machine with threads."""
        return None

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Build and run the tests; see :meth:`excise.protocols.Language.run_tests`."""
        return self._runner.run_tests(session, recipe, request)

    def plain_run(
        self,
        recipe: Recipe,
        ids: Sequence[str],
        *,
        timeout_s: float,  # noqa: ARG002  (the caller ends the program)
        test_timeout_s: float,
    ) -> PlainRun:
        """What runs the tests outside excise; see :meth:`excise.protocols.Language.plain_run`."""
        return self._runner.plain_run(recipe, ids, test_timeout_s=test_timeout_s)

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> Sequence[CoveragePass]:
        """See :meth:`excise.protocols.Language.map_coverage`. Raises :class:`EnvironmentFailure`."""
        own = self._own(codebase)
        if not self.shares_process:
            made = self._runner.coverage_pass(session, recipe, own, request)
            again = made._replace(coverage=replace(made.coverage, cpu_s=0.0))
            return (made, again) if request.both_orders else (made,)
        orders = (False, True) if request.both_orders else (request.reverse,)
        passes = [self._runner.coverage_pass(session, recipe, own, request, reverse=order) for order in orders]
        if not all(each.coverage.tests for each in passes):
            raise EnvironmentFailure("A coverage run ran no test.", reason="collect_error")
        return tuple(passes)

    def map_executed(
        self, codebase: Codebase, env_id: str, executed: ExecutedCode, tests: Iterable[str]
    ) -> CoveragePass:
        """See :meth:`excise.protocols.Language.map_executed`."""
        return executed_symbols.map_executed(self._own(codebase), env_id, executed, tests)

    def find_needs(
        self,
        codebase: Codebase,
        removed: Sequence[str],
        tests: Sequence[str],
        watched: Watched | None = None,  # noqa: ARG002
    ) -> tuple[Need, ...]:
        """Texts that the tests expect; see :meth:`excise.protocols.Language.find_needs`."""
        return self._find_needs(self._own(codebase), removed, tests)

    def _own(self, codebase: Codebase) -> C:
        if not isinstance(codebase, self._codebase):
            raise EnvironmentFailure("The codebase was not parsed by this adapter.", reason="infra")
        return codebase
