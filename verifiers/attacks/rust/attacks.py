"""All attacks on tasks in Rust."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.rust.compile_time import COMPILE_TIME
from excise.verifiers.attacks.rust.forged_results import FORGED_RESULTS

ATTACKS: tuple[Attack, ...] = (*FORGED_RESULTS, *COMPILE_TIME)
"""The attacks."""
