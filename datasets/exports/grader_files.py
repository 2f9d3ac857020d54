"""The files of a plain grader, for formats that carry them in a script or a folder."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

from excise.protocols import GradingFiles

GRADER = Path(__file__).resolve().parent / "inside" / "plain_grader.py"
"""The plain grader."""
LINE = 76
"""Letters of a line of base64."""


def grader_files(grading: GradingFiles) -> dict[str, bytes]:
    """File name to content of everything that ``plain_grader.py`` reads, itself included."""
    return {
        "plain_grader.py": GRADER.read_bytes(),
        "request.json": (json.dumps(grading.request, ensure_ascii=False, indent=1) + "\n").encode(),
        "kept.tar.gz": grading.kept,
        **grading.programs,
    }


def packed(files: Mapping[str, bytes]) -> bytes:
    """The files as a reproducible tar.gz."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def packed_text(files: Mapping[str, bytes]) -> str:
    """The files as tar.gz in base64, for a here-document."""
    text = base64.b64encode(packed(files)).decode()
    return "\n".join(text[start : start + LINE] for start in range(0, len(text), LINE))
