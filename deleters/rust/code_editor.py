"""The code editor for Rust; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.compiled_editor import CompiledEditor
from excise.deleters.compiled_edits import BuildError, CompiledEdits
from excise.deleters.rust.bodies import body
from excise.deleters.rust.hide_tests import hide
from excise.deleters.rust.parts import PARTS, RETURNS
from excise.deleters.rust.statement_words import RustWords
from excise.deleters.rust.tidy import goes_whole, mentions, tidied
from excise.extractors.field_uses import FieldGrammar
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.fields import fields, uses
from excise.extractors.rust.analysis.grammar import parse_tree
from excise.extractors.rust.analysis.parsed_file import parse_file

_ERROR = re.compile(r"(?m)^(error(?:\[E\d+\])?: .*)((?:\n(?!error(?:\[E\d+\])?: ).*)*)")
_PLACE = re.compile(r"(?m)^\s*--> ([^\s:]+\.rs):(\d+):\d+$")


def build_errors(output: str) -> Iterable[BuildError]:
    """What rustc says, with the first place that it shows."""
    for match in _ERROR.finditer(output):
        place = _PLACE.search(match[2])
        if place is not None:
            yield BuildError(place[1], int(place[2]), match[1] + match[2])


EDITOR = CompiledEditor(
    CompiledEdits(
        language="Rust",
        codebase=RustCodebase,
        parse_file=parse_file,
        parse_tree=parse_tree,
        body=body,
        tidied=tidied,
        hide=hide,
        mentions=mentions,
        goes_whole=goes_whole,
        build_errors=build_errors,
        parts=PARTS,
        returns=RETURNS,
        fields=FieldGrammar(fields=fields, uses=uses),
    ),
    RustWords(),
)
"""Takes features and tests out of Rust code."""
