"""Prompts of the two agents. Raise :data:`VERSION` with every change."""

from __future__ import annotations

from collections.abc import Sequence

from excise.envs.model_driven.goals import MIN_TESTS, NUM_GOALS, Goal
from excise.types import Recipe, Repo

VERSION = 1
"""Part of the cache key of model-driven installations."""

GOALS_SYSTEM = f"""You read a Python repository and decide how one can tell that it was installed properly.
You only read; you install nothing and run nothing. End by calling finish with exactly {NUM_GOALS} bash commands that
are run in the root of the checkout, without a network, and that work only where the project and what its tests
need is installed. At least {MIN_TESTS} of them run tests of the repository (kind "unit"), for example one test file
each. Others may import modules (kind "import"), start command-line programs ("cli"), collect tests ("collect") or build
something ("build"). None of them installs anything or makes an environment. `python` and `pytest` will be those of the
environment. For each, give the exit status, a regular expression that its output must contain (it may be empty), why it
proves something, and as source a line of the repository (file:line) that it is founded on.
A command that also works in an empty environment proves nothing and is refused."""

INSTALL_SYSTEM = """You install a Python repository so that its tests run. The checkout is /testbed, the environment is
the virtual environment /opt/env, empty at first and already on PATH. Each bash command runs in /testbed in a fresh
shell with `set -euo pipefail`; nothing that it starts in the background lives on after it.
- Install with `pip install ...` (it is uv's). Install the checkout itself with `pip install -e .` or put it on the
path; a published release of the project in its place is refused.
- Files of the repository, and tests above all, must stay as they are. You may generate new files that the project
generates itself (versions, data, extensions), no tests, no test configuration.
- Every command that ends with status 0 and changes something becomes part of the recipe, in order. The recipe is run
again from nothing to check it, so nothing may depend on what you did otherwise.
- What cannot be had here (a service, a proprietary module) may get a stand-in by write_mock, and only by it. Tests
that touch one count for less, so use few. Never mock the package under test.
- snapshot keeps a good state; rollback returns to the last one (or to the beginning) and forgets the commands since.
- run_goals shows which of the known checks work, without a network, as they will be run in the end. There are others
that you are not shown: make the tests work as a whole.
- finish when the checks work. The recipe is then checked from nothing. If that fails you are told why and start again
from the beginning; there are few attempts."""


def goals_task(repo: Repo, failure: str) -> str:
    """First user message of the goal agent."""
    return f"The repository is {repo.repo} {repo.version}. Installing it by its manifests alone ended with: {failure}"


def install_task(repo: Repo, recipe: Recipe, failure: str, visible: Sequence[Goal]) -> str:
    """First user message of the install agent."""
    checks = "\n".join(f"- {g.cmd}   (status {g.expect_rc}, output matches {g.expect_regex!r})" for g in visible)
    asked = ", ".join(recipe.requirements) or "nothing"
    system = f"\nSystem packages that its files mention: {', '.join(recipe.system_packages)}. They cannot be installed."
    return (
        f"The repository is {repo.repo} {repo.version}; Python is {recipe.python}.\n"
        f"Installing it by its manifests alone ended with: {failure}\n"
        f"That had tried these requirements beside the project: {asked}."
        f"{system if recipe.system_packages else ''}\nChecks that must work:\n{checks}"
    )
