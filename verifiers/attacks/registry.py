"""All attacks by name. A new one is one entry in a file beside this one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from excise.errors import ConfigError
from excise.verifiers.attacks.answers import ANSWERS
from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.channel import CHANNEL
from excise.verifiers.attacks.ending import ENDING
from excise.verifiers.attacks.files import FILES
from excise.verifiers.attacks.runner import RUNNER

ATTACKS: dict[str, Attack] = {attack.name: attack for attack in (*FILES, *ENDING, *RUNNER, *CHANNEL, *ANSWERS)}
"""Name to attack."""


def named(names: Sequence[str] | None) -> list[Attack]:
    """The attacks of these names, or all. Raises :class:`ConfigError` for an unknown one."""
    for name in names or ():
        if name not in ATTACKS:
            close = difflib.get_close_matches(name, ATTACKS, n=3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise ConfigError(f"There is no attack {name!r}.{hint}")
    return [ATTACKS[name] for name in names] if names else list(ATTACKS.values())
