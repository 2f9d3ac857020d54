"""A small hub on this machine that speaks the protocol of HuggingFace's for datasets: files in commits, no LFS."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class Hub:
    """The datasets: name to the files of each commit."""

    def __init__(self) -> None:
        self.commits: dict[str, list[dict[str, bytes]]] = {}
        self.private: dict[str, bool] = defaultdict(bool)
        self.token = "hf_test"
        self.requests: list[str] = []

    def files(self, repo: str) -> dict[str, bytes]:
        return self.commits[repo][-1] if self.commits[repo] else {}

    def sha(self, repo: str) -> str:
        return hashlib.sha1(f"{repo}{len(self.commits[repo])}".encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answers the client's requests for one hub."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, value: object, status: int = 200, **headers: str) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str) -> None:
        self.answer({"error": code}, status, X_Error_Code=code, X_Error_Message=code)

    def handle_request(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        data = self.body()
        if self.command == "POST" and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self.refuse(401, "Unauthorized")
        elif path == "/api/repos/create":
            request = json.loads(data)
            name = f"{request.get('organization') or 'me'}/{request['name']}"
            exists = name in self.hub.commits
            self.hub.commits.setdefault(name, [])
            self.hub.private[name] |= bool(request.get("private") or request.get("visibility") == "private")
            self.answer({"url": f"http://{self.headers['Host']}/datasets/{name}"}, 409 if exists else 200)
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif path.startswith("/api/datasets/"):
            self.dataset(path.removeprefix("/api/datasets/").split("/"), data)
        elif path.startswith("/datasets/"):
            owner, name, _, _, *rest = path.removeprefix("/datasets/").split("/")
            content = self.hub.files(f"{owner}/{name}").get("/".join(rest))
            if content is None:
                self.refuse(404, "EntryNotFound")
            else:
                etag = f'"{hashlib.sha1(content).hexdigest()}"'
                self.answer(content, ETag=etag, X_Repo_Commit=self.hub.sha(f"{owner}/{name}"))
        else:
            self.refuse(404, "RepoNotFound")

    def dataset(self, parts: list[str], data: bytes) -> None:
        repo, kind = "/".join(parts[:2]), parts[2] if len(parts) > 2 else ""
        if repo not in self.hub.commits:
            self.refuse(404, "RepoNotFound")
        elif kind == "preupload":
            found = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(data)["files"]
            ]
            self.answer({"files": found})
        elif kind == "commit":
            self.commit(repo, data)
        elif kind == "tree":
            files = self.hub.files(repo)
            self.answer(
                [
                    {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for path, content in sorted(files.items())
                ]
            )
        else:
            self.answer(
                {"id": repo, "sha": self.hub.sha(repo), "private": self.hub.private[repo], **self.siblings(repo)}
            )

    def siblings(self, repo: str) -> dict[str, Any]:
        return {"siblings": [{"rfilename": path} for path in sorted(self.hub.files(repo))], "tags": [], "downloads": 0}

    def commit(self, repo: str, data: bytes) -> None:
        files = dict(self.hub.files(repo))
        for line in data.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "deletedFile":
                files.pop(value["path"], None)
        self.hub.commits[repo].append(files)
        url = f"http://{self.headers['Host']}/datasets/{repo}/commit/{self.hub.sha(repo)}"
        self.answer({"success": True, "commitOid": self.hub.sha(repo), "commitUrl": url, "hookOutput": ""})

    do_GET = do_POST = do_HEAD = do_PUT = handle_request


@contextmanager
def running(hub: Hub) -> Iterator[str]:
    """The address at which the hub answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
