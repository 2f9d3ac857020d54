"""All attacks on tasks in JavaScript."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
"""The attacks."""
