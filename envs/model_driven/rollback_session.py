"""The install agent's sandbox: what was done in it so far, and how to go back.

A state is a stack of layers. Going back drops the layer that was written since, never undoes anything by itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from excise.envs.model_driven.install_context import Site
from excise.envs.model_driven.mock_files import put_mocks
from excise.envs.sandbox.mount_points import ENV, HOME, REPO
from excise.protocols import Completed, Session
from excise.types import Recipe, Worker

_PRINT = (
    f"find {ENV} {REPO} {HOME} /tmp \\( -name __pycache__ -o -name .pytest_cache -o -name 'pytest-of-*' \\) -prune"
    " -o -type d -printf '%p\\n' -o -printf '%p %s %T@ %m\\n' 2>/dev/null | LC_ALL=C sort | sha256sum"
)
"""One line that changes when a file does."""


@dataclass(frozen=True, slots=True)
class _State:
    env: tuple[Path, ...]
    built: tuple[Path, ...] = ()
    commands: tuple[str, ...] = ()
    mocks: tuple[tuple[str, str], ...] = ()
    reasons: tuple[str, ...] = ()


class Workshop:
    """An installing session with a memory; use it in a ``with`` block."""

    def __init__(self, site: Site, bare: Path) -> None:
        self.site = site
        self._first = _State(env=(bare,))
        self._saved = [self._first]
        self._base = self._now = self._first
        self._session: Session | None = None
        self._print = b""  # of the files as they are; empty while it is not known

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    @property
    def session(self) -> Session:
        """The open session; opened when it is needed."""
        if self._session is None:
            self._session = self.site.installing(self._base.env, self._base.built)
        return self._session

    def bash(self, line: str, timeout_s: float) -> Completed:
        """Run a line; it joins the recipe if it succeeds and changes something."""
        before = self._print or self._fingerprint()
        done = self.site.install(self.session, line, timeout_s)
        self._print = self._fingerprint()
        if done.worker is Worker.OK and done.rc == 0 and self._print != before:
            self._now = replace(self._now, commands=(*self._now.commands, line))
        return done

    def mock(self, path: str, reason: str, content: str) -> None:
        """Write a mock, in place of an earlier one with that path."""
        self._print = b""
        kept = tuple(entry for entry in self._now.mocks if entry[0] != path)
        put_mocks(self.session, self.site.interpreter, [(path, content)])
        line = f"mock: {path}: {' '.join(reason.split())}"
        self._now = replace(self._now, mocks=(*kept, (path, content)), reasons=(*self._now.reasons, line))

    def snapshot(self) -> int:
        """Keep the state; the number of states kept, the first one included."""
        env, built = self.layers()
        self._saved.append(replace(self._now, env=env, built=built))
        return len(self._saved)

    def rollback(self) -> None:
        """Back to the state kept last."""
        self._go(self._saved[-1])

    def restart(self) -> None:
        """Back to the beginning; nothing is kept."""
        self._saved = [self._first]
        self._go(self._first)

    def layers(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The environment's and the checkout's layers as they are now, topmost first."""
        if self._session is None:
            return self._base.env, self._base.built
        env, built = self.site.new_layer("env"), self.site.new_layer("built")
        self._session.snapshot(ENV, env)
        self._session.snapshot(REPO, built)
        return (env, *self._base.env), (built, *self._base.built)

    @contextmanager
    def as_it_is(self) -> Iterator[tuple[tuple[Path, ...], tuple[Path, ...]]]:
        """The layers as they are now, for a look at them; their copies are gone afterwards."""
        env, built = self.layers()
        try:
            yield env, built
        finally:
            for layer in {env[0], *built[:1]} - {*self._base.env, *self._base.built}:
                shutil.rmtree(layer)

    def recipe(self) -> Recipe:
        """What was done, as a recipe."""
        planned = self.site.recipe
        return replace(
            planned,
            requirements=(),
            extras=(),
            groups=(),
            commands=self._now.commands,
            mocks=self._now.mocks,
            evidence=(*planned.evidence, *self._now.reasons),
        )

    def _go(self, state: _State) -> None:
        self._close()
        self._base = self._now = state

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session, self._print = None, b""

    def _fingerprint(self) -> bytes:
        return self.session.exec(["/bin/bash", "-c", _PRINT], timeout_s=120.0, cwd="/").stdout
