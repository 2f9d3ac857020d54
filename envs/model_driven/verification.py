"""Stage 3: verifies the environment of a recipe in fresh sandboxes, without a model or a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from excise.envs.install.install_job import Installed
from excise.envs.model_driven.goals import MIN_HELD_OUT, Goal, check_goal
from excise.envs.model_driven.install_context import InstallContext
from excise.envs.model_driven.mock_files import tests_using_mocks
from excise.errors import EnvironmentFailure
from excise.types import Baseline, Status, TestRun

CONTROL_TESTS = 50
"""Maximum number of tests that the negative control runs."""
_RAISING_MODULE = b'raise RuntimeError("this module was made to fail, to see whether a test notices")\n'


class Suite(Protocol):
    """Runs the project's tests in an installed environment; implemented by the pipeline."""

    def baseline(self, installed: Installed) -> Baseline:
        """Run the tests several times, once shuffled, to find flaky ones.

        Raises :class:`EnvironmentFailure` where too few tests pass.
        """
        ...

    def collect_errors(self, installed: Installed) -> Sequence[tuple[str, str]]:
        """Return (path, error message) of files that cannot be collected."""
        ...

    def run(self, installed: Installed, ids: Sequence[str], edits: Mapping[str, bytes | None]) -> TestRun:
        """Run some tests with edited files of the checkout."""
        ...


def verify(
    installed: Installed,
    context: InstallContext,
    visible: Sequence[Goal],
    held_out: Sequence[Goal],
    suite: Suite,
    timeout_s: float,
) -> Installed:
    """Return the environment, with the tests that use mocks and with evidence, if it passes all checks.

    Raises :class:`EnvironmentFailure`; no message names a held-out goal, since the agent reads it.
    """
    _require_goals(installed, context, visible, held_out)
    tolerated = _require_collection(suite.collect_errors(installed), context.repo.repo)
    baseline = suite.baseline(installed)
    _require_control(installed, context, suite, baseline)
    environment = installed.environment
    mocked: tuple[str, ...] = ()
    if environment.recipe.mocks:
        names = [path for path, _ in environment.recipe.mocks]
        layers = [installed.env_layer], [installed.built_layer]
        mocked = tests_using_mocks(context, *layers, baseline.passing(), names, timeout_s)
    recipe = replace(environment.recipe, evidence=(*environment.recipe.evidence, *tolerated))
    return replace(installed, environment=replace(environment, recipe=recipe, mocked=mocked))


def check_goals(
    context: InstallContext, env: Sequence[Path], built: Sequence[Path], goals: Sequence[Goal]
) -> list[tuple[Goal, bool, str]]:
    """Check goals in a fresh sandbox without a network: (goal, whether it is reached, end of its output)."""
    with context.open_checking(env, built) as session:
        return [(goal, *check_goal(session, goal)) for goal in goals]


def _require_goals(
    installed: Installed, context: InstallContext, visible: Sequence[Goal], held_out: Sequence[Goal]
) -> None:
    layers = [installed.env_layer], [installed.built_layer]
    for goal, met, output in check_goals(context, *layers, visible):
        if not met:
            raise EnvironmentFailure(
                f"{context.repo.repo}: this does not work in the environment that the recipe makes: {goal.cmd}\n"
                f"{output}",
                reason="low_pass",
            )
    count = sum(met for _, met, _ in check_goals(context, *layers, held_out))
    if count < MIN_HELD_OUT:
        raise EnvironmentFailure(
            f"{context.repo.repo}: only {count} of {len(held_out)} checks that were not shown work, {MIN_HELD_OUT} "
            "are needed.",
            reason="low_pass",
        )


def _require_collection(errors: Sequence[tuple[str, str]], repo: str) -> list[str]:
    """Require that all test files can be collected, except those with a syntax of another Python version.

    Return one line of evidence for each exception.
    """
    other = [(path, message) for path, message in errors if not message.startswith("SyntaxError")]
    if other:
        path, message = other[0]
        raise EnvironmentFailure(
            f"{repo}: {len(other)} test files cannot be collected; first {path}: {message}", reason="collect_error"
        )
    return [f"collection: {path} is written for another Python ({message})" for path, message in errors]


def _require_control(installed: Installed, context: InstallContext, suite: Suite, baseline: Baseline) -> None:
    """Negative control: with a module of the project made to raise, some test must fail."""
    passing = baseline.passing()
    ids = passing[:: max(1, len(passing) // CONTROL_TESTS)][:CONTROL_TESTS]
    broken = [edits for name in context.recipe.packages if (edits := _edits_that_raise(name, context))]
    for edits in broken:
        statuses = suite.run(installed, ids, edits).statuses()
        if any(statuses.get(test) is not Status.PASSED for test in ids):
            return
    names = ", ".join(path for edits in broken for path in edits) or "any package"
    raise EnvironmentFailure(
        f"{context.repo.repo}: {len(ids)} tests pass although {names} was made to fail: they do not test the checkout.",
        reason="import_error",
    )


def _edits_that_raise(name: str, context: InstallContext) -> dict[str, bytes | None]:
    """Edits after which importing a package raises: in its ``__init__``, or in each module if it has none."""
    for root in context.recipe.roots:
        base = Path(root, *name.split("."))
        modules = [base / "__init__.py", base.with_suffix(".py")]
        found = [path for path in modules if (context.sources / path).is_file()][:1]
        found = found or [path.relative_to(context.sources) for path in sorted((context.sources / base).glob("*.py"))]
        if found:
            return {path.as_posix(): _RAISING_MODULE for path in found}
    return {}
