"""The relay between sandboxes and package indexes, against an index that serves JSON and HTML pages."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from excise.envs.index.index_pages import File, rewrite
from excise.envs.index.index_relay import PROGRAM, SOCKET, IndexRelay
from excise.envs.index.index_settings import index_settings

WHEEL = b"not really a wheel"
DIGEST = hashlib.sha256(WHEEL).hexdigest()
LOGIN = "Basic " + base64.b64encode(b"user:pass").decode()


class Index(ThreadingHTTPServer):
    """An index that wants a password, with one project in JSON and one in HTML."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.asked: list[str] = []
        self.broken = False
        self.digest = DIGEST
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://user:pass@127.0.0.1:{self.server_port}/simple"


class Pages(BaseHTTPRequestHandler):
    server: Index

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.broken:
            self.reply(503, "text/plain", b"")
        elif self.headers.get("Authorization") != LOGIN:
            self.reply(401, "text/plain", b"")
        elif self.path == "/simple/kit/":
            files = [
                {"filename": "kit-1.whl", "url": "../../files/kit-1.whl", "hashes": {"sha256": self.server.digest}}
            ]
            page = {"meta": {"api-version": "1.1"}, "name": "kit", "files": files}
            self.reply(200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode())
        elif self.path == "/simple/old/":
            link = f'<a href="/files/kit-1.whl#sha256={DIGEST}" data-requires-python="&gt;=3">kit-1.whl</a>'
            self.reply(200, "text/html", f"<html><body>{link}</body></html>".encode())
        elif self.path == "/files/kit-1.whl":
            self.reply(200, "application/octet-stream", WHEEL)
        else:
            self.reply(404, "text/plain", b"")

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Basic realm=x")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def index() -> Iterator[Index]:
    server = Index()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def relay(index: Index, tmp_path: Path) -> Iterator[IndexRelay]:
    with IndexRelay(tmp_path / "cache", {"UV_DEFAULT_INDEX": index.url}) as opened:
        yield opened


def file_address(relay: IndexRelay) -> str:
    status, page, kind = relay.answer("/i0/kit/")
    assert status == 200
    assert "json" in kind
    assert isinstance(page, bytes)
    return str(json.loads(page)["files"][0]["url"])


def test_pages_and_files_come_from_the_index_with_the_hosts_password(relay: IndexRelay, index: Index) -> None:
    address = file_address(relay)
    assert address.startswith("/f/")
    for _ in range(2):
        status, file, _ = relay.answer(address)
        assert status == 200
        assert isinstance(file, Path)
        assert file.read_bytes() == WHEEL
    assert index.asked.count("/files/kit-1.whl") <= 2, "once without, once with the password; then it is kept"
    status, page, kind = relay.answer("/i0/Old/")
    assert isinstance(page, bytes)
    assert (status, kind) == (200, "text/html")
    assert b'data-requires-python="&gt;=3"' in page
    assert f"#sha256={DIGEST}".encode() in page
    assert b"pass" not in page
    assert not relay.failures


@pytest.mark.parametrize(
    "path",
    [
        "/", "/i0/", "/i1/kit/", "/i0/nothing/", "/i0/kit/../old/", "/i0/%2e%2e/", "/l0/", f"/f/{'0' * 32}/kit-1.whl",
        "http://127.0.0.1/x", "/i0/kit/?x=1", "/files/kit-1.whl",
    ],
)  # fmt: skip
def test_other_requests_are_refused(relay: IndexRelay, index: Index, path: str) -> None:
    assert relay.answer(path)[0] == 404
    assert set(index.asked) <= {"/simple/nothing/"}


def test_a_file_with_another_hash_is_refused(relay: IndexRelay, index: Index) -> None:
    index.digest = "0" * 64
    status, _, _ = relay.answer(file_address(relay))
    assert status == 502
    assert "not the file" in relay.failures[0]


def test_cached_pages_are_used_when_the_index_is_down(relay: IndexRelay, index: Index, tmp_path: Path) -> None:
    file_address(relay)
    index.broken = True
    for page in (tmp_path / "cache/downloads/pages").iterdir():
        os.utime(page, (time.time() - 7200,) * 2)
    assert file_address(relay)
    assert not relay.failures
    assert relay.answer("/i0/old/")[0] == 502
    assert "503" in relay.failures[0]


def test_a_fresh_page_is_not_requested_again(relay: IndexRelay, index: Index) -> None:
    file_address(relay)
    asked = len(index.asked)
    file_address(relay)
    assert len(index.asked) == asked


def test_metadata_files_are_found_beside_their_wheels(relay: IndexRelay, index: Index) -> None:
    assert relay.answer(f"{file_address(relay)}.metadata")[0] == 404
    assert "/files/kit-1.whl.metadata" in index.asked


def test_a_command_inside_reaches_the_index_at_the_loopback(relay: IndexRelay) -> None:
    """The program of the sandbox, run here: bytes go through the socket, and the exit code comes back."""
    folder = relay.mounts()[1].layers[0]
    fetch = (
        "import os, sys, urllib.request as r\n"
        "url = os.environ['UV_DEFAULT_INDEX']\n"
        "sys.stdout.write(str(len(r.urlopen(url + 'kit/').read()) > 50))\n"
        "sys.exit(7)\n"
    )
    command = relay.command(sys.executable, (sys.executable, "-c", fetch))
    command = tuple({SOCKET: f"{folder}/index", "/excise/relay.py": str(PROGRAM)}.get(word, word) for word in command)
    env = relay.variables() | {"no_proxy": "127.0.0.1"}
    with socket.socket() as taken:  # another relay of this machine may hold the port: then a free one is taken
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8640))
            taken.listen()
        except OSError:
            pass
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("True", 7), done.stderr


def test_two_relays_may_bind_the_port_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxes with a network share the host's ports: between bind and listen, another one may come first."""
    rival = socket.socket()
    rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    rival.bind(("127.0.0.1", 0))
    port = rival.getsockname()[1]

    class LosingSocket(socket.socket):
        def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            super().bind(address)
            if address[1] == port:
                rival.listen()

    listen = runpy.run_path(str(PROGRAM))["listen"]
    monkeypatch.setattr(socket, "socket", LosingSocket)
    with rival, listen(port) as server, socket.create_connection(server.getsockname(), timeout=60):
        assert server.getsockname()[1] != port


def test_a_client_that_disconnects_is_ignored(relay: IndexRelay, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{relay.mounts()[1].layers[0]}/index")
        client.sendall(b"GET /i0/kit/ HTTP/1.1\r\nHost: x\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert relay.answer("/i0/kit/")[0] == 200
    assert capfd.readouterr().err == ""


def test_local_indexes_stay_local(tmp_path: Path) -> None:
    found = index_settings(
        {"UV_DEFAULT_INDEX": f"file://{tmp_path}", "UV_FIND_LINKS": f"{tmp_path} https://l.invalid/x"}
    )
    assert (found.indexes, found.flat, found.local) == ((), ("https://l.invalid/x",), (str(tmp_path),))
    assert found.variables("http://r:1")["UV_FIND_LINKS"] == f"{tmp_path},http://r:1/l0/"


def test_pages_that_are_no_index_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="no list of files"):
        rewrite(b'{"x": 1}', "application/json", "https://i.invalid/simple/x/", lambda file: "")
    seen: list[File] = []
    body = b'<base href="https://f.invalid/d/"><a href="a.whl#sha256=ab">a</a><a href="mailto:x">m</a>'
    rewrite(body, "text/html", "https://i.invalid/simple/x/", lambda file: seen.append(file) or "/f")  # type: ignore[func-returns-value]
    assert seen == [File("a.whl", "https://f.invalid/d/a.whl", "ab")]
