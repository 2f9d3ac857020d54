"""All attacks on tasks in Go."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
