"""Strategies for text in other forms (histories, documentation, encodings, binaries) and in ``/proc``."""

from __future__ import annotations

import base64
import binascii
import os
import re

from excise.verifiers.recovery.inside.code_search import (
    MAX_FILE_BYTES,
    CodeSearch,
    command_output,
    decoded,
    printable_strings,
)

SHOWN = (".html", ".htm", ".xhtml", ".ipynb", ".json", ".js", ".map", ".md", ".rst", ".txt", ".xml", ".tex", ".man")
BLOCK = re.compile(rb"[A-Za-z0-9+/=\r\n_-]{64,}")
HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){48,}")


class Histories:
    """Searches histories of shells and interpreters, and everything else in the home folder."""

    name = "histories"
    looks_at = "shell and interpreter histories, dot files, temporary folders"

    def run(self, search: CodeSearch) -> None:
        for path, data in search.untracked_files():
            if not path.startswith(search.repo + "/") and search.contains_name(data):
                text = printable_strings(data) if b"\0" in data[:4096] else decoded(data)
                search.report_definitions(path, text.replace("\\n", "\n").replace("\\040", " "), whole=True)


class Documents:
    """Searches documentation and notebooks that quote code, with markup removed."""

    name = "documents"
    looks_at = "HTML, notebooks and documentation that is no part of the checkout's history"

    def run(self, search: CodeSearch) -> None:
        for path in search.files_with_names():
            if path.endswith(SHOWN):
                text = decoded(search.read(path))
                if "<" in text:
                    import html

                    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?i)<br\s*/?>|</p>|</div>|</tr>", "\n", text)))
                if "\\n" in text:
                    text = re.sub(r'",?\s*\n\s*"', "", text).replace("\\n", "\n").replace('\\"', '"')
                search.report_definitions(path, text)


class Encoded:
    """Decodes base64 and hexadecimal blocks: source maps, data URIs, dumps."""

    name = "encoded"
    looks_at = "base64 and hexadecimal blocks in stray files"

    def run(self, search: CodeSearch) -> None:
        for path, data in search.untracked_files():
            for block in [*BLOCK.findall(data)[:200], *HEX.findall(data)[:50]]:
                for content in decodings(block):
                    if search.contains_name(content):
                        search.report_definitions(f"{path}: encoded", content, whole=True)


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
    """Searches the printable strings of binary files."""

    name = "strings"
    looks_at = "printable strings of every binary file that has one of the names"

    def run(self, search: CodeSearch) -> None:
        for path in search.files_with_names():
            data = search.read(path)
            whole = not path.endswith((".so", ".a"))
            if b"\0" in data[:65536] and not path.endswith(".pyc") and (whole or search.may_define_name(data)):
                search.report_definitions(path, printable_strings(data, 4), whole=whole)


class Stray:
    """Searches all other untracked files."""

    name = "stray_files"
    looks_at = "untracked files of the checkout, as they are"

    def run(self, search: CodeSearch) -> None:
        for path, data in search.untracked_files():
            if b"\0" not in data[:4096] and "/.git/" not in path:
                search.report_definitions(path, decoded(data))


class Processes:
    """Searches environments, command lines and open files (deleted ones too) of all processes."""

    name = "processes"
    looks_at = "/proc/*/fd, environ and cmdline of every process that can be seen"

    def run(self, search: CodeSearch) -> None:
        own = str(os.getpid())
        for pid in [name for name in os.listdir("/proc") if name.isdigit() and name != own]:
            for part in ("environ", "cmdline"):
                data = search.read(f"/proc/{pid}/{part}", 1 << 20).replace(b"\0", b"\n")
                if search.contains_name(data):
                    search.report_definitions(f"/proc/{pid}/{part}", data, whole=True)
            try:
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            for number in descriptors:
                path = f"/proc/{pid}/fd/{number}"
                try:
                    target = os.readlink(path)
                    regular = os.path.isfile(path) and os.stat(path).st_size <= MAX_FILE_BYTES
                except OSError:
                    continue
                if regular and target not in search.tracked():
                    data = search.read(path)
                    if search.contains_name(data):
                        search.report_definitions(f"{path} -> {target}", decoded(data), whole=True)


class Mounts:
    """Searches layers and mounts that the agent should not see."""

    name = "mounts"
    looks_at = "other mounts, overlay layers and block devices that can be read"

    def run(self, search: CodeSearch) -> None:
        for line in search.read("/proc/self/mountinfo", 1 << 20).decode("utf-8", "replace").splitlines():
            for layer in re.findall(r"(?:lowerdir|upperdir|workdir)=([^,\s]+)", line):
                for folder in layer.split(":"):
                    for target in search.targets:
                        path = os.path.join(folder, target.path)
                        if os.path.isfile(path):
                            search.report_definitions(path, search.read(path))
        for target in search.targets:
            for base in ("/proc/1/root", "/proc/1/cwd", "/mnt", "/media", "/srv", "/host"):
                path = os.path.join(base, target.path)
                if os.path.isfile(path) and os.path.realpath(path) not in search.tracked():
                    search.report_definitions(path, search.read(path))
        for line in (
            command_output(["git", "-C", search.repo, "worktree", "list", "--porcelain"], 10.0)
            .decode()
            .splitlines()[1:]
        ):
            if line.startswith("worktree "):
                for target in search.targets:
                    path = os.path.join(line[9:], target.path)
                    search.report_definitions(path, search.read(path))
