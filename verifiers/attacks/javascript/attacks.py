"""All attacks on tasks in JavaScript."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.javascript.forged_results import FORGED_RESULTS
from excise.verifiers.attacks.javascript.planted_files import PLANTED_FILES
from excise.verifiers.attacks.javascript.reported_values import REPORTED_VALUES
from excise.verifiers.attacks.javascript.runner_attacks import RUNNER_ATTACKS

ATTACKS: tuple[Attack, ...] = (*FORGED_RESULTS, *PLANTED_FILES, *REPORTED_VALUES, *RUNNER_ATTACKS)
"""The attacks."""
