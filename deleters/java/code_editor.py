"""The code editor for Java; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.compiled_editor import CompiledEditor
from excise.deleters.compiled_edits import BuildError, CompiledEdits
from excise.deleters.java.bodies import body
from excise.deleters.java.hide_tests import hide
from excise.deleters.java.parts import PARTS, RETURNS
from excise.deleters.java.statement_words import JavaWords
from excise.deleters.java.tidy import mentions, tidied
from excise.extractors.field_uses import FieldGrammar
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.fields import fields, uses
from excise.extractors.java.analysis.grammar import parse_tree
from excise.extractors.java.analysis.parsed_file import parse_file

_ERROR = re.compile(r"(?m)^(\S[^:\n]*\.java):(\d+): error: (.*(?:\n(?!\S[^:\n]*\.java:\d+: ).*)*)")
_SYMBOL = re.compile(r"(?m)^\s*symbol:\s*(.*)$")


def build_errors(output: str) -> Iterable[BuildError]:
    """What javac says; the symbol that it misses stands behind the message."""
    for match in _ERROR.finditer(output):
        first, _, rest = match[3].partition("\n")
        symbol = _SYMBOL.search(rest)
        head = f"{first} {re.sub(r'[(].*', '', symbol[1])}" if symbol is not None else first
        yield BuildError(match[1], int(match[2]), f"{head}\n{rest}")


EDITOR = CompiledEditor(
    CompiledEdits(
        language="Java",
        codebase=JavaCodebase,
        parse_file=parse_file,
        parse_tree=parse_tree,
        body=body,
        tidied=tidied,
        hide=hide,
        mentions=mentions,
        goes_whole=lambda codebase, path: True,  # noqa: ARG005
        build_errors=build_errors,
        parts=PARTS,
        returns=RETURNS,
        fields=FieldGrammar(fields=fields, uses=uses, is_private_to_file=True, keeps_one=False),
    ),
    JavaWords(),
)
"""Takes features and tests out of Java code."""
