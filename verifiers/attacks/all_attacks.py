"""The table of all attacks by name. A new attack is one entry in one of the files that this one imports."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from excise.errors import ConfigError
from excise.verifiers.attacks.attack import Attack
from excise.verifiers.attacks.early_exit import EARLY_EXITS
from excise.verifiers.attacks.fake_answers import FAKE_ANSWERS
from excise.verifiers.attacks.forged_reports import FORGED_REPORTS
from excise.verifiers.attacks.patched_runner import PATCHED_RUNNERS
from excise.verifiers.attacks.planted_files import PLANTED_FILES
from excise.verifiers.attacks.reported_values import REPORTED_VALUES

_ALL = (*PLANTED_FILES, *EARLY_EXITS, *PATCHED_RUNNERS, *FORGED_REPORTS, *FAKE_ANSWERS, *REPORTED_VALUES)
ATTACKS: dict[str, Attack] = {attack.name: attack for attack in _ALL}
"""Name to attack."""


def named(names: Sequence[str] | None) -> list[Attack]:
    """The attacks of these names; all for ``None``. Raises :class:`ConfigError` for an unknown name."""
    for name in names or ():
        if name not in ATTACKS:
            close = difflib.get_close_matches(name, ATTACKS, n=3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise ConfigError(f"There is no attack {name!r}.{hint}")
    return [ATTACKS[name] for name in names] if names else list(ATTACKS.values())
