"""All attacks on tasks in JavaScript."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.javascript.forged_results import FORGED_RESULTS
from excise.verifiers.attacks.javascript.planted_files import PLANTED_FILES

ATTACKS: tuple[Attack, ...] = (*FORGED_RESULTS, *PLANTED_FILES)
"""The attacks."""
