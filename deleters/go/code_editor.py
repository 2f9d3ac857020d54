"""The code editor for Go; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from excise.deleters.go.bodies import functions_of, with_bodies
from excise.deleters.go.hide_tests import hide
from excise.deleters.go.statement_words import GoWords
from excise.deleters.stub_bodies import StubEditor, StubEdits
from excise.extractors.go.analysis.codebase import GoCodebase

EDITOR = StubEditor(
    StubEdits(language="Go", codebase=GoCodebase, functions_of=functions_of, with_bodies=with_bodies, hide=hide),
    GoWords(),
)
"""Takes features and tests out of Go code."""
