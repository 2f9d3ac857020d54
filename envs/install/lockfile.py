"""The lock of an environment as a requirements file: exact versions, with hashes where they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*==[^\s;\\]+)([^\n]*(?:\n[ \t]+--hash[^\n]*)*)", re.MULTILINE)
_HASH = re.compile(r"--hash[=\s](sha256:[0-9a-f]{64})")


def lock_text(lock: Sequence[str], hashes: Mapping[str, str]) -> str:
    """``name==version --hash=sha256:…`` lines for pip or uv with ``--require-hashes --no-deps``."""
    lines: list[str] = []
    for line in lock:
        lines += [" \\\n    ".join([line, *(f"--hash={known}" for known in hashes.get(line, "").split())])]
    return "".join(f"{line}\n" for line in lines)


def read_hashes(compiled: str) -> dict[str, str]:
    """``name==version`` to its hashes (separated by spaces), from what ``uv pip compile --generate-hashes`` writes."""
    plain = re.sub(r"\\\n", "\n", compiled)
    return {match[1]: " ".join(sorted(_HASH.findall(match[2]))) for match in _ENTRY.finditer(plain)}
