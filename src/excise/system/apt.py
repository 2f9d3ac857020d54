"""apt of this machine, with lists of packages of our own: it needs no root, and the system's lists stay as they are.

apt checks the archive's signature, and with it the hash of every file.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from excise.errors import SourceError
from excise.system.commands import run_command
from excise.system.files import replace_file
from excise.system.locks import waiting_lock

_MAX_AGE_S = 24 * 3600
"""Age of the lists of packages from which they are fetched again."""
_TIMEOUT_S = 600.0
"""Time limit of one call of apt."""


def archive_entries(kind: str) -> list[str]:
    """Lines of a ``sources.list`` for the archives that this machine's apt uses; ``kind``: ``deb`` or ``deb-src``.

    Raises :class:`SourceError` without any.
    """
    wanted = "$(SITE) $(RELEASE) $(COMPONENT)"
    output = _apt(["indextargets", "--format", wanted, "Created-By: Packages"])
    lines = dict.fromkeys(f"{kind} {line}" for line in output.splitlines() if len(line.split()) == 3)
    if not lines:
        raise SourceError("apt of this machine knows no archive: see /etc/apt/sources.list.d", reason="no_archive")
    return list(lines)


class PackageLists:
    """Lists of packages in a folder, fetched once a day, and apt as it answers from them."""

    def __init__(self, root: Path, entries: Callable[[], Sequence[str]]) -> None:
        """``root`` is the folder; ``entries`` returns the lines of a ``sources.list``."""
        self.root = root
        self._entries = entries

    def ask(self, words: list[str], *, program: str = "apt-get", cwd: Path | None = None) -> str:
        """What apt prints. Raises :class:`SourceError` (``source_unavailable``, ``no_apt``) with its message."""
        for folder in ("lists/partial", "archives/partial"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        with waiting_lock(self.root / ".lock"):
            lines = "".join(f"{line}\n" for line in self._entries())
            stamp, entries = self.root / "updated", self.root / "sources.list"
            is_known = entries.exists() and entries.read_text() == lines
            if not is_known or not stamp.exists() or time.time() - stamp.stat().st_mtime > _MAX_AGE_S:
                replace_file(entries, lines.encode())
                _apt(["update"], self.root)
                replace_file(stamp, b"")
        return _apt(words, self.root, program=program, cwd=cwd)


def _apt(words: list[str], root: Path | None = None, *, program: str = "apt-get", cwd: Path | None = None) -> str:
    """The output of apt. Raises :class:`SourceError` with its message."""
    options = {"Dir::State::Lists": f"{root}/lists", "Dir::Etc::SourceList": f"{root}/sources.list"} if root else {}
    options |= {"Dir::Etc::SourceParts": "/dev/null", "Dir::Cache": f"{root}/archives"} if root else {}
    options |= {"APT::Sandbox::User": "", "APT::Cmd::Pattern-Only": "true", "Debug::NoLocking": "true"}
    line = [program, "-q", *(f"-o{key}={value}" for key, value in options.items()), *words]
    try:
        done = run_command(line, timeout_s=_TIMEOUT_S, cwd=cwd)
    except FileNotFoundError:
        raise SourceError("there is no apt, which Debian and its relatives have", reason="no_apt") from None
    if done.returncode != 0:
        errors = [text.strip() for text in done.stderr.decode("utf-8", "replace").splitlines() if text.startswith("E:")]
        detail = " ".join(errors) or f"{shlex.join(line)} failed"
        raise SourceError(f"apt: {detail}", reason="source_unavailable")
    return done.stdout.decode("utf-8", "replace")
