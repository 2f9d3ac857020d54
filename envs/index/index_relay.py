"""An HTTP server on a Unix socket that gives sandboxes without a network access to the package indexes.

It answers with pages and files of the indexes that the machine is configured to use. Requests are limited to index
pages and to the files that such pages list. The machine's proxies, certificates and credentials are not visible in the
sandbox. Downloads are cached.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from packaging.utils import canonicalize_name

from excise.envs.index.downloads import Downloads, Unreachable
from excise.envs.index.index_pages import JSON, File, rewrite
from excise.envs.index.index_settings import IndexSettings, index_settings
from excise.protocols import Mount

PROGRAM = Path(__file__).resolve().parent / "inside" / "index_forwarder.py"
INSIDE, SOCKET = "/excise/relay.py", "/excise/relay/index"
PORT = 8640
"""Port on the sandbox's loopback interface; fixed, since uv's cache identifies an index by its address."""
ADDRESS = f"http://127.0.0.1:{PORT}"
_PAGE = re.compile(r"/([il])(\d+)/(?:([A-Za-z0-9][A-Za-z0-9._-]*)/?)?")
_FILE = re.compile(r"/f/([0-9a-f]{32})/[^/]+")


class IndexRelay:
    """Serves the machine's indexes on a Unix socket inside a ``with`` block.

    ``cache`` is the cache folder; downloads are kept in it.
    """

    def __init__(self, cache: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.settings: IndexSettings = index_settings(environ)
        self.failures: list[str] = []
        """``path: error`` of every request that failed because an index did not answer."""
        self._pages = {"i": self.settings.indexes, "l": self.settings.flat}
        self._files: dict[str, File] = {}
        self._downloads = Downloads(cache / "downloads", self.settings.indexes)
        self._folder = Path(tempfile.mkdtemp(prefix="excise-index-"))
        public = self._folder / "socket"
        public.mkdir()
        public.chmod(0o755)
        self._server = _Server(str(public / "index"), self)
        (public / "index").chmod(0o666)  # for the sandbox's user; the parent folder is closed to all others
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> IndexRelay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._downloads.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def mounts(self) -> list[Mount]:
        """Mounts that a sandbox needs to reach the relay: the socket and the forwarder program."""
        socket = str(self._folder / "socket")
        return [
            Mount(target=INSIDE, layers=(str(PROGRAM),)),
            Mount(target=SOCKET.rpartition("/")[0], layers=(socket,), live=True),
        ]

    def variables(self) -> dict[str, str]:
        """Environment variables that point uv and pip at the relay."""
        return self.settings.variables(ADDRESS)

    @staticmethod
    def command(python: str, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command line that runs ``argv`` under the forwarder with the sandbox's interpreter ``python``."""
        return (python, "-I", "-S", INSIDE, SOCKET, str(PORT), *argv)

    def answer(self, path: str) -> tuple[int, bytes | Path, str]:
        """Answer a request from a sandbox; return HTTP status, body or path of a file, and content type."""
        try:
            if match := _PAGE.fullmatch(path):
                return self._page(match[1], int(match[2]), match[3] or "")
            if match := _FILE.fullmatch(path):
                return self._file(match[1], metadata=path.endswith(".metadata"))
        except (Unreachable, OSError, ValueError) as error:
            self.failures.append(f"{path}: {error}")
            return 502, str(error).encode(), "text/plain"
        return 404, b"no such page", "text/plain"

    def _page(self, kind: str, number: int, name: str) -> tuple[int, bytes | Path, str]:
        if number >= len(self._pages[kind]) or (kind == "i") != bool(name):
            return 404, b"no such index", "text/plain"
        base = self._pages[kind][number]
        url = f"{base.rstrip('/')}/{canonicalize_name(name)}/" if name else base
        response = self._downloads.page(url)
        if response.status != 200:
            return response.status, b"", "text/plain"
        page = rewrite(response.body, response.content_type, response.url or url, self._new_url)
        return 200, page, JSON if "json" in response.content_type else "text/html"

    def _new_url(self, file: File) -> str:
        token = hashlib.sha256(f"{file.url} {file.sha256}".encode()).hexdigest()[:32]
        self._files[token] = file
        return f"/f/{token}/{quote(file.name)}"

    def _file(self, token: str, *, metadata: bool) -> tuple[int, bytes | Path, str]:
        known = self._files.get(token)
        if known is None:
            return 404, b"not on a page that was asked for", "text/plain"
        if metadata and not known.name.endswith(".metadata"):
            known = File(f"{known.name}.metadata", f"{known.url}.metadata")
        got = self._downloads.file(known)
        return (got, b"", "text/plain") if isinstance(got, int) else (200, got, "application/octet-stream")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: str, relay: IndexRelay) -> None:
        self.relay = relay
        super().__init__(path, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection early, as uv does after the beginning of a wheel."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 300

    def address_string(self) -> str:
        return "sandbox"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests come from untrusted code."""

    def do_HEAD(self) -> None:
        """Refuse: installers use it to read a wheel by ranges; without it they download the whole file."""
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Answer with a page, or stream a file."""
        status, body, kind = self.server.relay.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(body.stat().st_size if isinstance(body, Path) else len(body)))
        self.end_headers()
        if isinstance(body, bytes):
            self.wfile.write(body)
            return
        with body.open("rb") as file:
            shutil.copyfileobj(file, self.wfile, 1 << 18)
