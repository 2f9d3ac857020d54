"""The table of all decoders. A new one is one file and one line here; ``tests/verifiers/planting`` measures them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from excise.verifiers.leaks.decoders.archives import Tar, Zip
from excise.verifiers.leaks.decoders.base64_runs import Base64
from excise.verifiers.leaks.decoders.compressed import Brotli, Compressed
from excise.verifiers.leaks.decoders.disassembly import AstDump, Disassembly
from excise.verifiers.leaks.decoders.escapes import Escapes
from excise.verifiers.leaks.decoders.git_objects import LooseObject, Pack
from excise.verifiers.leaks.decoders.go_objects import GoObjects
from excise.verifiers.leaks.decoders.hex_dumps import HexDump
from excise.verifiers.leaks.decoders.html import Html
from excise.verifiers.leaks.decoders.java_classes import JavaClasses
from excise.verifiers.leaks.decoders.minified_js import MinifiedJavaScript
from excise.verifiers.leaks.decoders.pickles import Pickle
from excise.verifiers.leaks.decoders.pyc import ByteCode, EmbeddedByteCode
from excise.verifiers.leaks.decoders.rust_objects import RustObjects
from excise.verifiers.leaks.decoders.sqlite import Sqlite
from excise.verifiers.leaks.decoders.vim import VimSwap
from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits


class Decoder(Protocol):
    """Decodes one kind of content. It may raise any exception for damaged input; parts yielded before are used."""

    name: str
    whole: bool
    """Whether no other decoder needs to try data that this one decoded."""

    def fits(self, data: bytes) -> bool:
        """A quick check whether the data looks like this decoder's kind."""
        ...

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """Yield the decoded parts: bytes are decoded further, code objects are final."""
        ...


CONTAINERS: tuple[Decoder, ...] = (
    Zip(), Compressed(), Tar(), ByteCode(), EmbeddedByteCode(), Sqlite(), LooseObject(), Pack(), Pickle(), VimSwap(),
    GoObjects(), RustObjects(), JavaClasses(), Brotli(),
)  # fmt: skip
"""Decoders of binary files, and of files that may be binary."""
WRAPPINGS: tuple[Decoder, ...] = (
    Html(),
    Escapes(),
    Base64(),
    HexDump(),
    Disassembly(),
    AstDump(),
    MinifiedJavaScript(),
)
"""Decoders of texts that hold encoded texts."""
HIDING: tuple[Decoder, ...] = (Base64(), HexDump())
"""Those of :data:`WRAPPINGS` whose encoding changes every word, so that no words of Python show in the text."""
