"""The decoders. A new one is one file and one line here; ``tests/verifiers/planting`` measures what each finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from excise.verifiers.leaks.decoders.archives import Tar, Zip
from excise.verifiers.leaks.decoders.base64_runs import Base64
from excise.verifiers.leaks.decoders.compressed import Compressed
from excise.verifiers.leaks.decoders.disassembly import AstDump, Disassembly
from excise.verifiers.leaks.decoders.escapes import Escapes
from excise.verifiers.leaks.decoders.git_objects import LooseObject, Pack
from excise.verifiers.leaks.decoders.html import Html
from excise.verifiers.leaks.decoders.pickles import Pickle
from excise.verifiers.leaks.decoders.pyc import ByteCode, EmbeddedByteCode
from excise.verifiers.leaks.decoders.sqlite import Sqlite
from excise.verifiers.leaks.decoders.vim import VimSwap
from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits


class Decoder(Protocol):
    """Takes one kind of artefact apart. May raise anything for damaged input: what came before it counts."""

    name: str
    whole: bool
    """Nothing else needs to be looked for in what it has taken apart."""

    def fits(self, data: bytes) -> bool:
        """Whether this looks like its artefact, by content; cheap."""
        ...

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """What is in it."""
        ...


CONTAINERS: tuple[Decoder, ...] = (
    Zip(), Compressed(), Tar(), ByteCode(), EmbeddedByteCode(), Sqlite(), LooseObject(), Pack(), Pickle(), VimSwap(),
)  # fmt: skip
"""Of files that are not text, or need not be."""
WRAPPINGS: tuple[Decoder, ...] = (Html(), Escapes(), Base64(), Disassembly(), AstDump())
"""Of texts that hold texts in disguise."""
HIDING: tuple[Decoder, ...] = (Base64(),)
"""Those of them that leave no word as it was."""
