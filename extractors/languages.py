"""Registry of languages: name to adapter. To add one, write its adapter and add a line here."""

from __future__ import annotations

from collections.abc import Callable

from excise.errors import ConfigError
from excise.extractors.python.language import Python
from excise.protocols import Language

_LANGUAGES: dict[str, Callable[[], Language]] = {"python": Python}


def get_language(name: str) -> Language:
    """The adapter of a language. Raises :class:`ConfigError` for an unknown name."""
    if name not in _LANGUAGES:
        raise ConfigError(f"Unknown language {name!r}; known: {', '.join(sorted(_LANGUAGES))}")
    return _LANGUAGES[name]()
