"""The install agent's sandbox session: it records commands and mocks as a recipe, with snapshots and rollback.

A state is a stack of layers. A rollback drops the layer that was written since the snapshot.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from excise.envs.model_driven.install_context import InstallContext
from excise.envs.model_driven.mock_files import put_mocks
from excise.envs.sandbox.mount_points import ENV, HOME, REPO
from excise.protocols import Completed, Session
from excise.types import Recipe, WorkerOutcome

_FINGERPRINT = (
    f"find {ENV} {REPO} {HOME} /tmp \\( -name __pycache__ -o -name .pytest_cache -o -name 'pytest-of-*' \\) -prune"
    " -o -type d -printf '%p\\n' -o -printf '%p %s %T@ %m\\n' 2>/dev/null | LC_ALL=C sort | sha256sum"
)
"""Command that prints a hash of all file names, sizes, times and modes."""


@dataclass(frozen=True, slots=True)
class _State:
    """A saved state: the layers, and the part of the recipe that produced them."""

    env: tuple[Path, ...]
    built: tuple[Path, ...] = ()
    commands: tuple[str, ...] = ()
    mocks: tuple[tuple[str, str], ...] = ()
    reasons: tuple[str, ...] = ()


class RollbackSession:
    """An installing session with snapshots; use it in a ``with`` block.

    ``bare`` is the layer of an empty environment, from which it starts.
    """

    def __init__(self, context: InstallContext, bare: Path) -> None:
        self.context = context
        self._first = _State(env=(bare,))
        self._saved = [self._first]
        self._base = self._now = self._first
        self._session: Session | None = None
        self._fingerprint = b""  # of the current files; empty while unknown

    def __enter__(self) -> RollbackSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    @property
    def session(self) -> Session:
        """The sandbox session; opened at the first use."""
        if self._session is None:
            self._session = self.context.open_installing(self._base.env, self._base.built)
        return self._session

    def bash(self, line: str, timeout_s: float) -> Completed:
        """Run a bash line; it is added to the recipe if it succeeds and changes a file."""
        before = self._fingerprint or self._take_fingerprint()
        done = self.context.run_line(self.session, line, timeout_s)
        self._fingerprint = self._take_fingerprint()
        if done.worker is WorkerOutcome.OK and done.rc == 0 and self._fingerprint != before:
            self._now = replace(self._now, commands=(*self._now.commands, line))
        return done

    def write_mock(self, path: str, reason: str, content: str) -> None:
        """Write a mock; it replaces an earlier one with the same path."""
        self._fingerprint = b""
        kept = tuple(entry for entry in self._now.mocks if entry[0] != path)
        put_mocks(self.session, self.context.interpreter, [(path, content)])
        line = f"mock: {path}: {' '.join(reason.split())}"
        self._now = replace(self._now, mocks=(*kept, (path, content)), reasons=(*self._now.reasons, line))

    def snapshot(self) -> int:
        """Save the current state; return the number of saved states, including the initial one."""
        env, built = self._snapshot_layers()
        self._saved.append(replace(self._now, env=env, built=built))
        return len(self._saved)

    def rollback(self) -> None:
        """Return to the last saved state."""
        self._restore(self._saved[-1])

    def restart(self) -> None:
        """Return to the initial state and forget all saved ones."""
        self._saved = [self._first]
        self._restore(self._first)

    def _snapshot_layers(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Snapshot the session; return the layers of the environment and of the checkout, topmost first."""
        if self._session is None:
            return self._base.env, self._base.built
        env, built = self.context.new_layer("env"), self.context.new_layer("built")
        self._session.snapshot(ENV, env)
        self._session.snapshot(REPO, built)
        return (env, *self._base.env), (built, *self._base.built)

    @contextmanager
    def current_layers(self) -> Iterator[tuple[tuple[Path, ...], tuple[Path, ...]]]:
        """Layers of the current state (environment, checkout), for as long as the block lasts."""
        env, built = self._snapshot_layers()
        try:
            yield env, built
        finally:
            for layer in {env[0], *built[:1]} - {*self._base.env, *self._base.built}:
                shutil.rmtree(layer)

    def recipe(self) -> Recipe:
        """The recipe that leads to the current state."""
        planned = self.context.recipe
        return replace(
            planned,
            requirements=(),
            extras=(),
            groups=(),
            commands=self._now.commands,
            mocks=self._now.mocks,
            evidence=(*planned.evidence, *self._now.reasons),
        )

    def _restore(self, state: _State) -> None:
        self._close()
        self._base = self._now = state

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session, self._fingerprint = None, b""

    def _take_fingerprint(self) -> bytes:
        return self.session.exec(["/bin/bash", "-c", _FINGERPRINT], timeout_s=120.0, cwd="/").stdout
