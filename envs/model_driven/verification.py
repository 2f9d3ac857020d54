"""Stage 3: does the environment that the recipe alone makes keep its promise? No model, no network, fresh sandboxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from excise.envs.install.install_job import Installed
from excise.envs.model_driven.goals import MIN_HELD_OUT, Goal, attain
from excise.envs.model_driven.install_context import Site
from excise.envs.model_driven.mock_files import tests_touching
from excise.errors import EnvironmentFailure
from excise.types import Baseline, Status, TestRun

CONTROL_TESTS = 50
"""Tests that the negative control runs, at most."""
BROKEN = b'raise RuntimeError("this module was made to fail, to see whether a test notices")\n'


class Suite(Protocol):
    """Runs the project's tests in an installed environment. The pipeline connects it."""

    def baseline(self, installed: Installed) -> Baseline:
        """Several runs, one of them shuffled, flaky tests found.

        Raises :class:`EnvironmentFailure` where too few tests pass.
        """
        ...

    def collect_errors(self, installed: Installed) -> Sequence[tuple[str, str]]:
        """Files that cannot be collected, with the reason."""
        ...

    def run(self, installed: Installed, ids: Sequence[str], edits: Mapping[str, bytes | None]) -> TestRun:
        """Run some tests with files of the checkout changed."""
        ...


def verify(
    installed: Installed, site: Site, visible: Sequence[Goal], held_out: Sequence[Goal], suite: Suite, timeout_s: float
) -> Installed:
    """The environment with its ledger and evidence, if it passes everything.

    Raises :class:`EnvironmentFailure`; no message tells what the held-out goals are.
    """
    _require_goals(installed, site, visible, held_out)
    tolerated = _require_collection(suite.collect_errors(installed), site.repo.repo)
    baseline = suite.baseline(installed)
    _require_control(installed, site, suite, baseline)
    environment = installed.environment
    mocked: tuple[str, ...] = ()
    if environment.recipe.mocks:
        names = [path for path, _ in environment.recipe.mocks]
        layers = [installed.env_layer], [installed.built_layer]
        mocked = tests_touching(site, *layers, baseline.passing(), names, timeout_s)
    recipe = replace(environment.recipe, evidence=(*environment.recipe.evidence, *tolerated))
    return replace(installed, environment=replace(environment, recipe=recipe, mocked=mocked))


def goals_met(
    site: Site, env: Sequence[Path], built: Sequence[Path], goals: Sequence[Goal]
) -> list[tuple[Goal, bool, str]]:
    """Each goal, whether it is attained in a fresh sandbox without a network, and the end of its output."""
    with site.checking(env, built) as session:
        return [(goal, *attain(session, goal)) for goal in goals]


def _require_goals(installed: Installed, site: Site, visible: Sequence[Goal], held_out: Sequence[Goal]) -> None:
    layers = [installed.env_layer], [installed.built_layer]
    for goal, met, output in goals_met(site, *layers, visible):
        if not met:
            raise EnvironmentFailure(
                f"{site.repo.repo}: this does not work in the environment that the recipe makes: {goal.cmd}\n{output}",
                reason="low_pass",
            )
    count = sum(met for _, met, _ in goals_met(site, *layers, held_out))
    if count < MIN_HELD_OUT:
        raise EnvironmentFailure(
            f"{site.repo.repo}: only {count} of {len(held_out)} checks that were not shown work, {MIN_HELD_OUT} are "
            "needed.",
            reason="low_pass",
        )


def _require_collection(errors: Sequence[tuple[str, str]], repo: str) -> list[str]:
    """Files written for another Python are recorded; any other one that cannot be collected is a failure."""
    other = [(path, message) for path, message in errors if not message.startswith("SyntaxError")]
    if other:
        path, message = other[0]
        raise EnvironmentFailure(
            f"{repo}: {len(other)} test files cannot be collected; first {path}: {message}", reason="collect_error"
        )
    return [f"collection: {path} is written for another Python ({message})" for path, message in errors]


def _require_control(installed: Installed, site: Site, suite: Suite, baseline: Baseline) -> None:
    """A module of the project made to raise: a test must notice, or the tests do not test the checkout."""
    passing = baseline.passing()
    ids = passing[:: max(1, len(passing) // CONTROL_TESTS)][:CONTROL_TESTS]
    broken = [edits for name in site.recipe.packages if (edits := _broken(name, site))]
    for edits in broken:
        statuses = suite.run(installed, ids, edits).statuses()
        if any(statuses.get(test) is not Status.PASSED for test in ids):
            return
    names = ", ".join(path for edits in broken for path in edits) or "any package"
    raise EnvironmentFailure(
        f"{site.repo.repo}: {len(ids)} tests pass although {names} was made to fail: they do not test the checkout.",
        reason="import_error",
    )


def _broken(name: str, site: Site) -> dict[str, bytes | None]:
    """Edits that make a package fail where it begins; for one without a beginning, in each of its modules."""
    for root in site.recipe.roots:
        base = Path(root, *name.split("."))
        modules = [base / "__init__.py", base.with_suffix(".py")]
        found = [path for path in modules if (site.sources / path).is_file()][:1]
        found = found or [path.relative_to(site.sources) for path in sorted((site.sources / base).glob("*.py"))]
        if found:
            return {path.as_posix(): BROKEN for path in found}
    return {}
