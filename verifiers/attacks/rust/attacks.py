"""All attacks on tasks in Rust."""

from excise.verifiers.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
