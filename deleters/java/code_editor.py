"""The code editor for Java; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from excise.deleters.java.bodies import functions_of, with_bodies
from excise.deleters.java.hide_tests import hide
from excise.deleters.java.statement_words import JavaWords
from excise.deleters.stub_bodies import StubEditor, StubEdits
from excise.extractors.java.analysis.codebase import JavaCodebase

EDITOR = StubEditor(
    StubEdits(language="Java", codebase=JavaCodebase, functions_of=functions_of, with_bodies=with_bodies, hide=hide),
    JavaWords(),
)
"""Takes features and tests out of Java code."""
