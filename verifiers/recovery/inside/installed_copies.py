"""Strategies for other copies of the project: installed, vendored, importable, archived, cached, or on an index."""

from __future__ import annotations

import io
import os
import re

from excise.verifiers.recovery.inside.code_search import CodeSearch, command_output

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import typing takes longer than most strategies
    from typing import Iterator

MAX_MEMBER = 8 << 20
MAX_MEMBERS = 20_000
SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".txt", ".md", ".rst", ".ipynb", ".html")


class InstalledCopies:
    """Searches modules that define the removed names, in any environment or in the interpreter's library."""

    name = "installed_copies"
    looks_at = "modules with the same definitions in environments, the interpreter and vendored folders"

    def run(self, search: CodeSearch) -> None:
        for path in search.files_with_names():
            if path.endswith(search.suffixes):
                search.report_definitions(path, search.read(path))


class LiveImport:
    """Imports the installed project from outside the checkout and asks ``inspect`` for the source."""

    name = "live_import"
    looks_at = "what an import from outside the checkout finds (inspect, linecache)"

    program = """
import importlib, json, os, sys
os.chdir('/')
for name, attribute in json.loads(sys.argv[1]):
    try:
        found = importlib.import_module(name)
        for part in attribute.split('.') if attribute else []:
            found = getattr(found, part)
        import inspect  # only now, since it takes longer than all else
        file = inspect.getsourcefile(found) or ''
        print('#', file)
        print(inspect.getsource(found))
    except BaseException as error:
        print('#', name, attribute, type(error).__name__)
"""

    def run(self, search: CodeSearch) -> None:
        import json

        wanted = []
        for target in search.targets[:20]:
            parts = target.path[:-3].split("/") if target.path.endswith(".py") else []
            parts = parts[:-1] if parts[-1:] == ["__init__"] else parts
            for start in range(min(len(parts), 3)):
                wanted.append((".".join(parts[start:]), target.qualname))
        python = os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin", "python")
        output = command_output([python, "-c", self.program, json.dumps(wanted)], 20.0, cwd="/")
        for part in re.split(r"(?m)^# (?=/)", output.decode("utf-8", "replace"))[1:]:
            file, _, source = part.partition("\n")
            if file not in search.tracked():
                search.report_definitions(f"{file} (imported)", source, whole=True)


class Metadata:
    """Reports an installation's file lists, whose hashes could confirm a guess."""

    name = "metadata"
    looks_at = "RECORD, SOURCES.txt, direct_url.json and METADATA of the project's own distribution"

    def run(self, search: CodeSearch) -> None:
        plain = re.sub(r"[-_.]+", "[-_.]+", re.escape(search.distribution).replace("\\-", "-"))
        own = re.compile(rf"(?i)/{plain}-[^/]*\.(dist|egg)-info/|/{plain}\.egg-info/")
        for path, _ in search.files():
            if own.search(path):
                data = search.read(path)
                if path.endswith("RECORD"):
                    lines = [line for line in data.decode("utf-8", "replace").splitlines() if "sha256=" in line]
                    hashes = [
                        line
                        for line in lines
                        if any(t.path and line.split(",")[0].endswith(t.path) for t in search.targets)
                    ]
                    if hashes:
                        search.report_note(path, "a hash of the untouched file: " + "; ".join(hashes))
                elif search.contains_name(data):
                    search.report_definitions(path, data, whole=True)


class Archives:
    """Searches archives (wheels, eggs, source archives, single compressed files) in caches, bundles, build folders."""

    name = "archives"
    looks_at = "members of zip, tar, gz, bz2 and xz files anywhere (pip and uv caches, bundled wheels, dist)"

    def run(self, search: CodeSearch) -> None:
        for path, size in search.files():
            if size > 64 << 20 or search.is_out_of_time() or path.endswith((".py", ".pyc", ".so", ".h", ".pyi", ".c")):
                continue
            head = search.read(path, 512)
            if is_archive(head, path):
                for name, data in members(search.read(path, 64 << 20)):
                    if search.contains_name(data):
                        search.report_definitions(f"{path}!{name}", data)


def is_archive(head: bytes, path: str) -> bool:
    magics = (b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00")
    return head.startswith(magics) or head[257:262] == b"ustar" or path.endswith((".whl", ".zip", ".pyz", ".pex"))


def members(data: bytes, depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """(name, content) of an archive's members, nested archives included; a damaged archive ends early."""
    import bz2
    import gzip
    import lzma
    import tarfile
    import zipfile

    try:
        if data[:2] == b"PK" or b"PK\x05\x06" in data[-65536:]:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for info in archive.infolist()[:MAX_MEMBERS]:
                    if info.file_size <= MAX_MEMBER:
                        yield from _opened(info.filename, archive.read(info), depth)
            return
        openers = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
        opener = openers.get(data[:2])
        plain = opener(io.BytesIO(data)).read(64 << 20) if opener else data  # type: ignore[operator]
        if plain[257:262] != b"ustar":
            if opener:
                yield from _opened("", plain, depth)
            return
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            for number, member in enumerate(tar):
                if number > MAX_MEMBERS:
                    return
                if member.isfile() and member.size <= MAX_MEMBER:
                    stream = tar.extractfile(member)
                    yield from _opened(member.name, stream.read() if stream else b"", depth)
    except Exception:  # damaged archives may raise any exception
        return


def _opened(name: str, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth < 2 and is_archive(data[:512], name):
        for inner, content in members(data, depth + 1):
            yield f"{name}!{inner}", content
    else:
        yield name, data


class PackageIndex:
    """Requests the project from a package index, with every installer and by plain HTTP."""

    name = "package_index"
    looks_at = "pip download, pip install, uv, and a configured index or proxy (there is no network)"

    def run(self, search: CodeSearch) -> None:
        import shutil
        import tempfile

        into = tempfile.mkdtemp()
        python = os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin", "python")
        quick = ["--disable-pip-version-check", "--retries", "0", "--timeout", "2"]
        tries = [[python, "-m", "pip", "download", "--no-deps", *quick, "-d", into, search.distribution]]
        tries.append([python, "-m", "pip", "install", "--no-deps", *quick, "-t", into + "/t", search.distribution])
        if shutil.which("uv"):
            tries.append(["uv", "pip", "install", "--no-deps", "--target", into + "/u", search.distribution])
        has_pip = search.thorough or any(path.endswith("/pip/__main__.py") for path, _ in search.files())
        for command in tries if has_pip else tries[2:]:
            command_output(command, 20.0, cwd=into)
        for url in indexes(search):
            fetch(url.rstrip("/") + "/" + re.sub(r"[-_.]+", "-", search.distribution).lower() + "/", into)
        for folder, _, names in os.walk(into):
            for name in names:
                path = os.path.join(folder, name)
                data = search.read(path, 64 << 20)
                for member, content in members(data) if is_archive(data[:512], path) else [("", data)]:
                    if search.contains_name(content):
                        search.report_definitions(f"index: {name}!{member}", content)
        shutil.rmtree(into, ignore_errors=True)


def indexes(search: CodeSearch) -> list[str]:
    """Addresses of package indexes in the configuration of pip and uv."""
    output = [
        os.environ.get(name, "")
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
    ]
    home = os.path.expanduser("~")
    files = (
        f"{home}/.config/pip/pip.conf",
        f"{home}/.pip/pip.conf",
        f"{home}/.config/uv/uv.toml",
        "/etc/pip.conf",
        "/etc/uv/uv.toml",
    )
    output += [search.read(path).decode("utf-8", "replace") for path in files]
    return sorted(set(re.findall(r"https?://[^\s\"']+", "\n".join(output))))[:4]


def fetch(page: str, into: str) -> None:
    """Download the last three files that an index page links to."""
    import urllib.parse
    import urllib.request

    try:
        with urllib.request.urlopen(page, timeout=2) as reply:
            text = reply.read(1 << 20).decode("utf-8", "replace")
        for link in re.findall(r'href="([^"#]+)', text)[-3:]:
            with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=5) as reply:
                name = os.path.basename(urllib.parse.urlparse(link).path) or "file"
                with open(os.path.join(into, name), "wb") as file:
                    file.write(reply.read(64 << 20))
    except Exception:  # no network or no such page: nothing is found
        return
