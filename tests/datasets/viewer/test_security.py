"""Who may ask the server, and what its answers allow."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from excise.datasets.viewer.app import build_app
from excise.datasets.viewer.pages import Site
from excise.datasets.viewer.security import HEADERS
from excise.datasets.viewer.server import Address, serve
from excise.errors import StoreError

TOKEN = "correct-horse"


def client(site: Site, token: str = "", host: str = "localhost:8421") -> TestClient:
    return TestClient(build_app(site, token=token), base_url=f"http://{host}", follow_redirects=False)


@pytest.mark.parametrize("path", ["/", "/tasks", "/static/style.css", "/version", "/nothing", "/static/../app.py"])
def test_every_answer_has_the_policy(shapes_site: Site, path: str) -> None:
    answer = client(shapes_site).get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "'unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8421", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_other_names_for_this_machine_are_refused(shapes_site: Site, host: str) -> None:
    assert client(shapes_site, host=host).get("/").status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8421", "[::1]:8421"])
def test_names_of_this_machine_are_answered(shapes_site: Site, host: str) -> None:
    assert client(shapes_site).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(shapes_site: Site, method: str) -> None:
    assert client(shapes_site).request(method, "/tasks").status_code == 405


def test_without_the_token_nothing_is_shown(shapes_site: Site) -> None:
    others = client(shapes_site, TOKEN, "machine.example")
    for path in ("/", "/static/style.css", "/version", "/?token=wrong", "/?token=", "/?token=correct-horsé"):
        assert others.get(path).status_code == 403, path
    assert others.get("/", headers={"cookie": "excise-view=wrong"}).status_code == 403
    assert others.get("/", headers={"cookie": "\x01;=;excise-view"}).status_code == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(shapes_site: Site) -> None:
    others = client(shapes_site, TOKEN, "machine.example")
    answer = others.get(f"/tasks?q=a+b&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks?q=a+b")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert others.get("/tasks").status_code == 200


def test_the_redirect_stays_on_this_host(shapes_site: Site) -> None:
    answer = client(shapes_site, TOKEN, "machine.example").get(f"http://machine.example//evil.example/?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "path", ["/static/%2e%2e/app.py", "/static/..%2fapp.py", "/raw/../patch", "/rejection/..%2f..%2fmanifest.json/0"]
)
def test_no_file_outside_is_served(shapes_site: Site, path: str) -> None:
    assert client(shapes_site).get(path).status_code == 404


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
    ],
)
def test_which_addresses_need_a_token(host: str, is_local: bool) -> None:
    assert Address(host=host).is_local is is_local


def test_an_address_that_cannot_be_used_is_an_error(shapes_site: Site) -> None:
    with pytest.raises(StoreError, match="--port 0"):
        serve(shapes_site, Address(host="203.0.113.7", port=0), print)
