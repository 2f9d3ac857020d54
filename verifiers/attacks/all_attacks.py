"""The table of all attacks by name; each language has its own, in its folder beside this file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import cast

from excise.errors import ConfigError
from excise.languages import LANGUAGES, language_part
from excise.verifiers.attacks.attack import Attack


def attacks_of(language: str) -> dict[str, Attack]:
    """Name to attack, of those on tasks in one language. Raises :class:`ConfigError` for an unknown language."""
    found = cast(Iterable[Attack], language_part(language, "verifiers.attacks.{}.attacks", "ATTACKS"))
    return {attack.name: attack for attack in found}


def named(names: Sequence[str] | None, language: str = "python") -> list[Attack]:
    """The attacks on tasks in ``language`` of these names; all for ``None``.

    Names that only other languages have are left out. Raises :class:`ConfigError` for one that no language has.
    """
    known, mine = {name for each in LANGUAGES for name in attacks_of(each)}, attacks_of(language)
    for name in names or ():
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise ConfigError(f"There is no attack {name!r}.{hint}")
    return [mine[name] for name in names if name in mine] if names else list(mine.values())
