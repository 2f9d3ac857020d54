"""Files that development tools write, made by the tools, and files of editors in their formats."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path


def _module(source: bytes, folder: Path) -> Path:
    work = folder.parent / f"{folder.name}-work"
    work.mkdir(exist_ok=True)
    (work / "module.py").write_bytes(source)
    return work


def _run(work: Path, *command: str) -> None:
    subprocess.run(command, cwd=work, check=False, capture_output=True, timeout=120)


def coverage_html(source: bytes, folder: Path) -> None:
    work = _module(source, folder)
    _run(work, sys.executable, "-m", "coverage", "run", "--include=module.py", "-m", "module")
    _run(work, sys.executable, "-m", "coverage", "html", "-i", "-d", str(folder / "htmlcov"))


def vim_swap(source: bytes, folder: Path) -> None:
    """A swap file of one data block: the lines lie from its end to its beginning."""
    lines = source.splitlines()
    size = max(4096, -(-(len(source) + 5 * len(lines) + 40) // 4096) * 4096)
    header = b"b0VIM 9.0\0".ljust(12, b"\0") + struct.pack("<I", size)
    block, text, place = bytearray(size), b"", size
    index = b""
    for line in lines:
        place -= len(line) + 1
        text = line + b"\0" + text
        index += struct.pack("<I", place)
    head = b"ad" + struct.pack("<HIIIQ", 0, 0, place, size, len(lines))
    block[: len(head)] = head
    block[24 : 24 + len(index)] = index
    block[place:] = text
    (folder / ".module.py.swp").write_bytes(header.ljust(size, b"\0") + bytes(block))


def stubs(source: bytes, folder: Path) -> None:
    work = _module(source, folder)
    _run(work, str(Path(sys.executable).with_name("stubgen")), "-q", "module.py", "-o", str(folder / "out"))


def signatures(source: bytes, folder: Path) -> None:
    import ast

    tree = ast.parse(source)
    rows = [
        f"def {n.name}({ast.unparse(n.args)})"
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    (folder / "api.txt").write_text("\n".join(rows))


FULL = (coverage_html,)
"""Artefacts that contain the source (L4), too slow for every run."""
EDITORS = (vim_swap,)
"""Artefacts that contain the source (L4)."""
SIGNATURES = (signatures,)
"""Artefacts that contain the signature (L2)."""
STUBS = (stubs,)
"""Artefacts that contain the signature (L2), too slow for every run."""
