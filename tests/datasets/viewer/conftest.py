"""Sets to look at, a real server over each, and a real browser."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from excise.datasets.storage.store import Store
from excise.datasets.viewer.loaded_set import LoadedSet
from excise.datasets.viewer.pages import Site
from excise.datasets.viewer.server import Address, serve

from .hostile import hostile_attempts, hostile_imports, hostile_refreshes, hostile_rollouts, hostile_rows

SETS = Path(__file__).parents[2] / "sets"
ANY_PORT = Address(port=0)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def shapes_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of a real project, made by an earlier version of excise."""
    folder = tmp_path_factory.mktemp("viewed") / "shapes"
    shutil.copytree(SETS / "shapes", folder, symlinks=True)
    return folder


@pytest.fixture(scope="session")
def hostile_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set in which every text attacks the page."""
    folder = tmp_path_factory.mktemp("viewed") / "hostile"
    with Store(folder).writer() as writer:
        for name, rows in hostile_rows().items():
            writer.put_repo(name, rows)
        writer.publish()
    hostile_rollouts(folder)
    hostile_refreshes(folder)
    hostile_attempts(folder)
    hostile_imports(folder)
    return folder


@contextmanager
def running(site: Site, address: Address = ANY_PORT) -> Iterator[str]:
    """A server in a thread; yields the address that it announces. It ends with the tests' process."""
    announced: list[str] = []
    ready = threading.Event()

    def announce(text: str) -> None:
        announced.append(text)
        ready.set()

    threading.Thread(target=serve, args=(site, address, announce), daemon=True).start()
    assert ready.wait(60)
    yield announced[0].rstrip("/")


@pytest.fixture(scope="session")
def shapes_site(shapes_set: Path) -> Site:
    return Site(index=LoadedSet(shapes_set), name="shapes", claims={"g1_baseline": "All tests passed before"})


@pytest.fixture(scope="session")
def shapes_server(shapes_site: Site) -> Iterator[str]:
    with running(shapes_site) as address:
        yield address


@pytest.fixture(scope="session")
def hostile_site(hostile_set: Path) -> Site:
    return Site(index=LoadedSet(hostile_set), name="<script>window.pwned=1</script>")


@pytest.fixture(scope="session")
def hostile_server(hostile_site: Site) -> Iterator[str]:
    with running(hostile_site) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert program, "The viewer is tested in a real browser: apt-get install chromium (./check does that)."
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=options)
        yield opened
        opened.close()


@dataclass
class Visit:
    """A page with everything that went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visitor]:
    """Opens addresses in fresh contexts of the browser; notes errors, dialogs and requests to other places."""
    contexts = []

    def opened(address: str, **options: object) -> Visit:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(30_000)
        contexts.append(context)
        found = Visit(page=context.new_page())
        origin = "/".join(address.split("/")[:3])
        note = found.problems.append
        found.page.on("console", lambda m: note(f"{m.type}: {m.text}") if m.type in {"error", "warning"} else None)
        found.page.on("pageerror", lambda error: note(f"page error: {error}"))
        found.page.on("dialog", lambda dialog: (note(f"dialog: {dialog.message}"), dialog.dismiss()))
        found.page.on("request", lambda r: note(f"asked {r.url}") if not r.url.startswith((origin, "data:")) else None)
        found.page.goto(address)
        return found

    yield opened
    for context in contexts:
        context.close()
