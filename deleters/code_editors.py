"""The code editors by language."""

from __future__ import annotations

from typing import cast

from excise.languages import language_part
from excise.protocols import CodeEditor


def editor_of(language: str) -> CodeEditor:
    """The code editor of a language. Raises :class:`ConfigError` for an unknown name."""
    return cast(CodeEditor, language_part(language, "deleters.{}.code_editor", "EDITOR"))
