"""The code editor for Go; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.compiled_editor import CompiledEditor
from excise.deleters.compiled_edits import BuildError, CompiledEdits
from excise.deleters.go.alignment import realigned
from excise.deleters.go.bodies import body
from excise.deleters.go.hide_tests import hide
from excise.deleters.go.parts import PARTS, RETURNS
from excise.deleters.go.statement_words import GoWords
from excise.deleters.go.tidy import goes_whole, tidied
from excise.extractors.field_uses import FieldGrammar
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.fields import fields, uses
from excise.extractors.go.analysis.grammar import parse_tree
from excise.extractors.go.analysis.parsed_file import parse_file

_ERROR = re.compile(r"(?m)^(?:\./)?([^\s:]+\.go):(\d+)(?::\d+)?: (.*(?:\n\t.*)*)$")


def build_errors(output: str) -> Iterable[BuildError]:
    """What Go's compiler says: ``./spans.go:12:3: undefined: Parse``, with paths from the main folder."""
    return (BuildError(match[1], int(match[2]), match[3]) for match in _ERROR.finditer(output))


EDITOR = CompiledEditor(
    CompiledEdits(
        language="Go",
        codebase=GoCodebase,
        parse_file=parse_file,
        parse_tree=parse_tree,
        body=body,
        tidied=tidied,
        hide=hide,
        documents_by_lines=True,
        mentions=lambda *_: {},  # what code names, Go uses
        goes_whole=goes_whole,
        build_errors=build_errors,
        parts=PARTS,
        returns=RETURNS,
        fields=FieldGrammar(fields=fields, uses=uses, evened=realigned),
    ),
    GoWords(),
)
"""Takes features and tests out of Go code."""
