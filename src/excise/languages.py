"""The languages that excise knows. To add one, write its rooms and add its name here: ``docs/adding-a-language.md``.

A language has a room of the same name in each folder that knows languages. Each room offers one object:

===============================================  ==========================================================
object                                           interface
===============================================  ==========================================================
``extractors/<name>/language.py: LANGUAGE``      :class:`excise.protocols.Language`
``deleters/<name>/code_editor.py: EDITOR``       :class:`excise.protocols.CodeEditor`
``envs/<name>/toolchain.py: TOOLCHAIN``          ``Toolchain`` of ``envs/toolchains.py``
``verifiers/attacks/<name>/attacks.py: ATTACKS`` attacks of ``verifiers/attacks/attack.py``
===============================================  ==========================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from excise.errors import ConfigError

LANGUAGES = ("python", "go", "javascript", "rust", "java")
"""Names of the languages; where files of several are found, the first of those that fit equally well is chosen."""


def language_part(language: str, module: str, name: str) -> Any:
    """The object ``name`` of a language's room: ``module`` is a module below ``excise`` with ``{}`` for the language.

    Rooms are imported when they are first asked for. Raises :class:`ConfigError` for an unknown language.
    """
    if language not in LANGUAGES:
        raise ConfigError(f"Unknown language {language!r}; known: {', '.join(sorted(LANGUAGES))}")
    return getattr(import_module(f"excise.{module.format(language)}"), name)
