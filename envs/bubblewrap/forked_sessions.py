"""Sessions in sandboxes with a fork server, which serve one session after the other.

Such a sandbox is kept while this process lives, a few at a time, until one with other layers, limits or variables takes
its place. A session in it is as fresh as in a new sandbox: all processes of the last one are gone, and everything that
it could write has been unmounted.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.bubblewrap.bubblewrap_session import BubblewrapSession
from excise.envs.sandbox.session_base import SessionBase
from excise.errors import SandboxError
from excise.protocols import Completed, ForkServer, Policy
from excise.system.job_costs import count_command

logger = logging.getLogger(__name__)
MAX_IDLE = 6
"""Most sandboxes that wait for a session in one process: as many as the proofs of one project use in turn. Each takes
some 40 MB of memory, more if it has imported a project."""
MAX_UNFIT = 10_000
"""Most configurations without a fork server that are remembered."""
MAX_LOST = 3
"""Sandboxes of one configuration that may be lost after a session, in a row, whatever they have served."""
MIN_SESSIONS = 3
"""Sessions for each lost sandbox, below which those of this configuration are not forked any more: starting the servers
would cost more than it saves."""


class ForkedSession(SessionBase):
    """A session in a sandbox with a fork server; see :class:`excise.protocols.Session`.

    Commands other than the fork server's own end the server; they run as in any other sandbox.
    """

    forks = True

    def __init__(self, sandbox: BubblewrapSession, key: str, fork_server: ForkServer) -> None:
        self._sandbox, self._key, self._fork_server = sandbox, key, fork_server
        self.out = sandbox.out
        self._closed = self._running = False
        self._closing = threading.Lock()

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command, in a fork of the server if it is the server's own."""
        if self._closed:
            raise SandboxError("The sandbox is closed.")
        served = tuple(argv) == self._fork_server.argv and dict(env or {}) == dict(self._fork_server.env)
        request = {"argv": list(argv), "cwd": cwd, "env": dict(env or {}), "forked": served}
        self._running = True  # and so after an exception, such as Ctrl-C: the answer is then still to come
        done = self._sandbox.run_request(request, timeout_s, stdin)
        self._running = False
        return done

    def snapshot(self, target: str, into: Path) -> None:
        """Copy the changes in the mount ``target`` to the folder ``into``, as a layer."""
        if self._closed:
            raise SandboxError("The sandbox is closed.")
        self._sandbox.snapshot(target, into)

    def close(self) -> None:
        """End the session, and with it a command that is still running; a sound sandbox waits for the next session."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        reusable = False
        if not self._running:
            with contextlib.suppress(SandboxError):
                reusable = self._sandbox.end()
        if reusable:
            _idle.put(self._key, self._sandbox)
        else:
            _idle.count_lost(self._key)
            self._sandbox.close()
        super().close()


class _Idle:
    """The sandboxes that wait for a session, and the configurations whose sessions are not forked."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: list[tuple[str, BubblewrapSession]] = []
        self.unfit: set[str] = set()
        self.lost_in_a_row: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def take(self, key: str) -> BubblewrapSession | None:
        """A waiting sandbox with this configuration, if there is one."""
        with self.lock:
            for place, (known, sandbox) in enumerate(self.waiting):
                if known == key:
                    del self.waiting[place]
                    return sandbox
        return None

    def count_lost(self, key: str) -> None:
        """Count a sandbox that could not be used again after a session."""
        with self.lock:
            self.lost[key] += 1
            self.lost_in_a_row[key] += 1
            if self.lost_in_a_row[key] >= MAX_LOST and self.kept[key] < MIN_SESSIONS * self.lost[key]:
                self.remember_unfit(key)

    def remember_unfit(self, key: str) -> None:
        """Remember that sessions of a configuration are not to be forked."""
        if len(self.unfit) < MAX_UNFIT:
            self.unfit.add(key)

    def put(self, key: str, sandbox: BubblewrapSession) -> None:
        """Let a sandbox wait; the one that has waited longest may be closed for it."""
        with self.lock:
            self.kept[key] += 1
            del self.lost_in_a_row[key]
            self.waiting.append((key, sandbox))
            surplus = self.waiting[:-MAX_IDLE]
            del self.waiting[:-MAX_IDLE]
        for _, last in surplus:
            last.close()

    def close(self) -> None:
        """Close all waiting sandboxes."""
        with self.lock:
            waiting, self.waiting = self.waiting, []
        for _, sandbox in waiting:
            sandbox.close()

    def forget_after_fork(self) -> None:
        """In a forked child, forget the sandboxes: they are the parent's."""
        self.lock = threading.Lock()
        for _, sandbox in self.waiting:
            sandbox.abandon()
        self.waiting = []


_idle = _Idle()
close_idle = _idle.close
atexit.register(close_idle)
os.register_at_fork(after_in_child=_idle.forget_after_fork)


def open_forked(
    config: dict[str, Any], policy: Policy, edits: Mapping[str, bytes | None], fork_server: ForkServer
) -> ForkedSession | None:
    """Open a session in a sandbox with a fork server, a waiting or a new one; ``None`` if the command cannot serve.

    ``config`` is what the supervisor is told. Raises :class:`SandboxError` if an edit cannot be made.
    """
    config = config | {"fork_server": {"argv": list(fork_server.argv), "env": dict(fork_server.env)}}
    try:
        key = _key(config)
    except OSError:  # a layer is missing, which an ordinary sandbox says better
        return None
    if key in _idle.unfit:
        return None
    sandbox = _idle.take(key)
    if sandbox is not None:
        with contextlib.suppress(SandboxError):  # it was killed while it waited
            sandbox.begin(edits)
            return ForkedSession(sandbox, key, fork_server)
        sandbox.close()
    began = time.monotonic()
    try:
        sandbox = BubblewrapSession(config, policy, {})
    except SandboxError as error:
        logger.debug("runs not forked", extra={"detail": str(error)})
        if error.reason == "cannot_serve":
            _idle.remember_unfit(key)
        else:
            _idle.count_lost(key)
        return None
    count_command(["fork server"], sandbox.start_cpu_s, time.monotonic() - began)
    try:
        sandbox.begin(edits)
    except BaseException:
        sandbox.close()
        raise
    return ForkedSession(sandbox, key, fork_server)


def _key(config: dict[str, Any]) -> str:
    """A hash of a configuration, and of the identity of its layers: a folder that was made anew is another one."""
    layers = [path for entry in config["mounts"] for path in entry["layers"]]
    stamps = [(status.st_dev, status.st_ino, status.st_ctime_ns) for status in map(os.stat, layers)]
    return hashlib.sha256(json.dumps([config, stamps], sort_keys=True).encode()).hexdigest()
