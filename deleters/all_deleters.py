"""The names of all deleters; each language offers those of them that it can."""

from __future__ import annotations

from excise.deleters.code_editors import editor_of
from excise.errors import ConfigError
from excise.protocols import Deleter

DELETERS = ("line", "expression", "path", "stub", "proposed", "remove_and_stub", "remove")
"""Names of deleters; those that make the easiest tasks come first."""


def get(name: str, language: str = "python") -> Deleter:
    """The deleter of a language called ``name``. Raises :class:`ConfigError` if it has none."""
    found = editor_of(language).deleters
    if name not in found:
        known = ", ".join(sorted(found))
        raise ConfigError(f"no deleter of {language} is called {name!r}; there are: {known}")
    return found[name]()
