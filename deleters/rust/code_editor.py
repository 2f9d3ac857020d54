"""The code editor for Rust; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from excise.deleters.rust.bodies import functions_of, with_bodies
from excise.deleters.rust.hide_tests import hide
from excise.deleters.rust.statement_words import RustWords
from excise.deleters.stub_bodies import StubEditor, StubEdits
from excise.extractors.rust.analysis.codebase import RustCodebase

EDITOR = StubEditor(
    StubEdits(language="Rust", codebase=RustCodebase, functions_of=functions_of, with_bodies=with_bodies, hide=hide),
    RustWords(),
)
"""Takes features and tests out of Rust code."""
