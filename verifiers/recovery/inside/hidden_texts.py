"""Text in disguise, and what processes hold: histories, documentation, encodings, binaries, ``/proc``."""

from __future__ import annotations

import base64
import binascii
import html
import os
import re

from excise.verifiers.recovery.inside.code_search import MAX_FILE, Hunt, decoded, printable, run

SHOWN = (".html", ".htm", ".xhtml", ".ipynb", ".json", ".js", ".map", ".md", ".rst", ".txt", ".xml", ".tex", ".man")
BLOCK = re.compile(rb"[A-Za-z0-9+/=\r\n_-]{64,}")
HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){48,}")


class Histories:
    """What shells, interpreters and pagers remember, and everything else in the home."""

    name = "histories"
    looks_at = "shell and interpreter histories, dot files, temporary folders"

    def go(self, hunt: Hunt) -> None:
        for path, data in hunt.stray():
            if not path.startswith(hunt.repo + "/") and hunt.names_in(data):
                text = printable(data) if b"\0" in data[:4096] else decoded(data)
                hunt.text(path, text.replace("\\n", "\n").replace("\\040", " "), whole=True)


class Documents:
    """Documentation and notebooks that show code, with their markup taken off."""

    name = "documents"
    looks_at = "HTML, notebooks and documentation that is no part of the checkout's history"

    def go(self, hunt: Hunt) -> None:
        for path in hunt.naming():
            if path.endswith(SHOWN):
                text = decoded(hunt.read(path))
                if "<" in text:
                    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?i)<br\s*/?>|</p>|</div>|</tr>", "\n", text)))
                if "\\n" in text:
                    text = re.sub(r'",?\s*\n\s*"', "", text).replace("\\n", "\n").replace('\\"', '"')
                hunt.text(path, text)


class Encoded:
    """base64 and hexadecimal blocks: source maps, data URIs, dumps."""

    name = "encoded"
    looks_at = "base64 and hexadecimal blocks in stray files"

    def go(self, hunt: Hunt) -> None:
        for path, data in hunt.stray():
            for block in [*BLOCK.findall(data)[:200], *HEX.findall(data)[:50]]:
                for content in decodings(block):
                    if hunt.names_in(content):
                        hunt.text(f"{path}: encoded", content, whole=True)


def decodings(block: bytes) -> list[bytes]:
    found = []
    compact = re.sub(rb"\s", b"", block)
    for decode in (base64.b64decode, base64.urlsafe_b64decode, binascii.unhexlify):
        try:
            found.append(decode(compact + (b"=" * (-len(compact) % 4) if decode is not binascii.unhexlify else b"")))
        except (ValueError, binascii.Error):
            continue
    return found


class Strings:
    """Printable runs of binary files of any kind."""

    name = "strings"
    looks_at = "printable strings of every binary file that has one of the names"

    def go(self, hunt: Hunt) -> None:
        for path in hunt.naming():
            data = hunt.read(path)
            if b"\0" in data[:65536] and not path.endswith(".pyc"):
                hunt.text(path, printable(data, 4), whole=not path.endswith((".so", ".a")))


class Stray:
    """Any other file that nobody gave on purpose."""

    name = "stray_files"
    looks_at = "untracked files of the checkout, as they are"

    def go(self, hunt: Hunt) -> None:
        for path, data in hunt.stray():
            if b"\0" not in data[:4096] and "/.git/" not in path:
                hunt.text(path, decoded(data))


class Processes:
    """Open files, deleted ones too, environments, command lines and shared memory of all processes."""

    name = "processes"
    looks_at = "/proc/*/fd, environ, cmdline and maps of every process that can be seen"

    def go(self, hunt: Hunt) -> None:
        own = str(os.getpid())
        for pid in [name for name in os.listdir("/proc") if name.isdigit() and name != own]:
            for part in ("environ", "cmdline"):
                data = hunt.read(f"/proc/{pid}/{part}", 1 << 20).replace(b"\0", b"\n")
                if hunt.names_in(data):
                    hunt.text(f"/proc/{pid}/{part}", data, whole=True)
            try:
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            for number in descriptors:
                path = f"/proc/{pid}/fd/{number}"
                try:
                    target = os.readlink(path)
                    regular = os.path.isfile(path) and os.stat(path).st_size <= MAX_FILE
                except OSError:
                    continue
                if regular and target not in hunt.tracked():
                    data = hunt.read(path)
                    if hunt.names_in(data):
                        hunt.text(f"{path} -> {target}", decoded(data), whole=True)


class Mounts:
    """Layers and mounts below the ones that are meant to be seen."""

    name = "mounts"
    looks_at = "other mounts, overlay layers and block devices that can be read"

    def go(self, hunt: Hunt) -> None:
        for line in hunt.read("/proc/self/mountinfo", 1 << 20).decode("utf-8", "replace").splitlines():
            for layer in re.findall(r"(?:lowerdir|upperdir|workdir)=([^,\s]+)", line):
                for folder in layer.split(":"):
                    for target in hunt.targets:
                        path = os.path.join(folder, target.path)
                        if os.path.isfile(path):
                            hunt.text(path, hunt.read(path))
        for target in hunt.targets:
            for base in ("/proc/1/root", "/proc/1/cwd", "/mnt", "/media", "/srv", "/host"):
                path = os.path.join(base, target.path)
                if os.path.isfile(path) and os.path.realpath(path) not in hunt.tracked():
                    hunt.text(path, hunt.read(path))
        for line in run(["git", "-C", hunt.repo, "worktree", "list", "--porcelain"], 10.0).decode().splitlines()[1:]:
            if line.startswith("worktree "):
                for target in hunt.targets:
                    path = os.path.join(line[9:], target.path)
                    hunt.text(path, hunt.read(path))
