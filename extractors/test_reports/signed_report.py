"""The report of a graded run: one line on standard output, signed with a key that no code of the project has seen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from typing import Any

MAX_REPORT = 256 << 20
"""Maximum number of bytes of a report."""


def signed_report(stdout: bytes, key: str) -> dict[str, Any] | None:
    """The report in the line with a valid signature; ``None`` if there is none. Other lines are ignored."""
    for line in stdout.split(b"\n"):
        code, _, body = line.partition(b" ")
        if hmac.compare_digest(code, hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode()):
            try:
                found = json.loads(zlib.decompressobj().decompress(base64.b64decode(body), MAX_REPORT))
            except (ValueError, zlib.error, RecursionError):
                continue
            return found if isinstance(found, dict) else None
    return None
