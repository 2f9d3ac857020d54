"""Programs of registries, and archives of releases: downloaded, checked against a registry's hashes, and kept."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeVar

from excise.errors import SourceError
from excise.system.commands import CommandTimeout, run_command
from excise.system.files import file_sha256, replace_file, replacement

T = TypeVar("T")
_FACTS = "facts.json"
_MAX_BYTES = 512 << 20
"""Maximum size of one archive."""
_ATTEMPTS = 3
"""Maximum number of requests that fail; the pause before each retry is one second longer than the last."""


def kept_archive(slot: Path) -> tuple[Path, dict[str, str]] | None:
    """The archive in the folder of a release and its recorded facts; ``None`` if it is missing or damaged."""
    try:
        facts: dict[str, str] = json.loads((slot / _FACTS).read_text(encoding="utf-8"))
        archive = slot / facts["filename"]
        intact = file_sha256(archive) == facts["sha256"]
    except (OSError, ValueError, KeyError):
        return None
    return (archive, facts) if intact else None


def record_archive(archive: Path, sha256: str, **facts: str) -> dict[str, str]:
    """Write down what is known of an archive beside it; return that, with its name and hash."""
    known = {"filename": archive.name, "sha256": sha256, **facts}
    replace_file(archive.with_name(_FACTS), json.dumps(known).encode())
    return known


def run_registry_tool(line: Sequence[str], *, cwd: Path, packages: str, timeout_s: float) -> CompletedProcess[bytes]:
    """Run the program of a registry, such as ``npm``, whatever its exit code.

    Raises :class:`SourceError` if it takes too long or is missing; then ``packages`` are the Debian packages with it.
    """
    try:
        return run_command(line, timeout_s=timeout_s, cwd=cwd)
    except OSError:
        raise SourceError(
            f"{line[0]} is missing: install Debian's {packages} (apt-get install {packages})",
            reason="source_unavailable",
        ) from None
    except CommandTimeout as error:
        raise SourceError(str(error), reason="source_unavailable") from error


def retrying(request: Callable[[], T], asked: str) -> T:
    """Call ``request``, again after HTTP errors; after :data:`_ATTEMPTS` failures raises :class:`SourceError`, which
    says that ``asked`` does not answer."""
    import httpx2

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return request()
        except httpx2.HTTPError as error:
            if attempt == _ATTEMPTS:
                raise SourceError(f"{asked} does not answer: {error}", reason="source_unavailable") from error
            time.sleep(attempt)
    raise AssertionError


def download(stream: AbstractContextManager[Any], archive: Path, expected: Mapping[str, list[str]]) -> str:
    """Write what a request answers to ``archive`` and return its sha256.

    ``expected`` has the hashes that the registry names, by kind; one of each kind must be that of the answer. Raises
    :class:`SourceError` (``hash_mismatch``, ``too_large``).
    """
    kinds = expected.keys() & hashlib.algorithms_available
    hashers = {kind: hashlib.new(kind) for kind in {"sha256", *kinds}}
    size = 0
    with replacement(archive) as partial:
        with stream as response:
            response.raise_for_status()
            for chunk in response.iter_bytes(1 << 16):
                size += len(chunk)
                if size > _MAX_BYTES:
                    raise SourceError(f"{archive.name} is larger than {_MAX_BYTES >> 20} MiB", reason="too_large")
                partial.write(chunk)
                for hasher in hashers.values():
                    hasher.update(chunk)
        for kind in sorted(kinds):
            if (found := hashers[kind].hexdigest()) not in expected[kind]:
                raise SourceError(
                    f"{archive.name}: {kind} is {found}, the index says {expected[kind][0]}", reason="hash_mismatch"
                )
    return hashers["sha256"].hexdigest()
